//! Walking over the lines of a source chunk by chunk: skipping, showing and counting them in one reused
//! buffer.

use std::io::{self, Read};
use std::path::Path;

use super::failure::ReadFailure;
use crate::text::decode::{StreamedLine, TextForm};

/// Where bytes come from and who may stop it.
pub(super) struct Source<'a> {
    reader: &'a mut dyn Read,
    size: u64,
    path: &'a Path,
    stop: &'a dyn Fn() -> bool,
    ended: bool,
}

impl<'a> Source<'a> {
    /// A source of about `size` bytes; files made up by the kernel say zero and have content all the same, so
    /// the size is never more than a hint.
    pub(super) fn new(
        reader: &'a mut dyn Read,
        size: u64,
        path: &'a Path,
        stop: &'a dyn Fn() -> bool,
    ) -> Self {
        Self { reader, size, path, stop, ended: false }
    }

    /// The first bytes, at most `most`, in a buffer no larger than the source needs.
    pub(super) fn head(&mut self, most: usize) -> Result<Vec<u8>, ReadFailure> {
        let guess = usize::try_from(self.size).unwrap_or(most).saturating_add(1);
        let mut head = vec![0; guess.clamp(most.min(4096), most)];
        let mut filled = self.fill(&mut head)?;
        while !self.ended && filled < most {
            head.resize(most, 0);
            filled += self.fill(&mut head[filled..])?;
        }
        head.truncate(filled);
        Ok(head)
    }

    /// Fills `buffer` as far as the source goes. Filling up keeps the chunks of two-byte encodings whole even
    /// when the source hands out odd pieces.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<usize, ReadFailure> {
        if (self.stop)() {
            return Err(ReadFailure::Cancelled);
        }
        let mut filled = 0;
        while filled < buffer.len() {
            match self.reader.read(&mut buffer[filled..]) {
                Ok(0) => {
                    self.ended = true;
                    break;
                }
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(ReadFailure::io(self.path, error)),
            }
        }
        Ok(filled)
    }
}

/// A position in a source that moves forward line by line.
pub(super) struct Lines<'a> {
    source: Source<'a>,
    form: TextForm,
    chunk: usize,
    buffer: Vec<u8>,
    at: usize,
    taken: u64,
    newlines: u64,
    /// Whether the last line that was passed has no line feed, which only the last of all may lack.
    open_line: bool,
}

impl<'a> Lines<'a> {
    /// Starts after the byte order mark of `head`, the bytes already taken from the source; `chunk` is how
    /// many bytes are taken at a time from then on.
    pub(super) fn new(source: Source<'a>, form: TextForm, head: Vec<u8>, chunk: usize) -> Self {
        let chunk = chunk.next_multiple_of(form.unit()).max(form.unit());
        let taken = head.len() as u64;
        Self { source, form, chunk, buffer: head, at: form.bom, taken, newlines: 0, open_line: false }
    }

    /// Whether there is anything after the position.
    pub(super) fn more(&mut self) -> Result<bool, ReadFailure> {
        if self.at < self.buffer.len() {
            return Ok(true);
        }
        if self.source.ended {
            return Ok(false);
        }
        self.buffer.resize(self.chunk, 0);
        let filled = self.source.fill(&mut self.buffer)?;
        self.buffer.truncate(filled);
        self.at = 0;
        self.taken += filled as u64;
        Ok(filled > 0)
    }

    /// The lines passed so far: all there are once the end is reached.
    pub(super) fn passed(&self) -> u64 {
        self.newlines + u64::from(self.open_line)
    }

    pub(super) fn path(&self) -> &'a Path {
        self.source.path
    }

    pub(super) fn encoding(&self) -> &'static str {
        self.form.encoding.name()
    }

    /// Bytes taken from the source so far.
    pub(super) fn taken(&self) -> u64 {
        self.taken
    }

    /// Passes `count` line feeds, or all there are.
    pub(super) fn skip(&mut self, mut count: u64) -> Result<(), ReadFailure> {
        while count > 0 && self.more()? {
            let here = self.form.count_newlines(self.rest()) as u64;
            if here < count {
                count -= here;
                self.pass_chunk(here);
                continue;
            }
            // `count` is at most `here`, which is a number of bytes in memory, and so many line feeds exist.
            let last = usize::try_from(count - 1).unwrap_or(usize::MAX);
            if let Some(found) = self.form.nth_newline(self.rest(), last) {
                self.at += found + self.form.unit();
                self.newlines += count;
                self.open_line = false;
            }
            return Ok(());
        }
        Ok(())
    }

    /// Appends the next line without its end, cut at `most_chars`, and returns how many characters were left
    /// out; none when there is no further line.
    pub(super) fn next_line(
        &mut self,
        out: &mut String,
        most_chars: usize,
    ) -> Result<Option<u64>, ReadFailure> {
        if !self.more()? {
            return Ok(None);
        }
        match self.form.find_newline(self.rest()) {
            Some(end) => {
                let left_out = self.form.push_line(out, &self.rest()[..end], true, most_chars);
                self.pass_newline(end);
                Ok(Some(left_out))
            }
            None => self.streamed_line(out, most_chars).map(Some),
        }
    }

    /// How many lines there are in all, unless finding out takes reading more than `most_bytes`.
    pub(super) fn count_all(&mut self, most_bytes: u64) -> Result<Option<u64>, ReadFailure> {
        let end = self.taken.saturating_add(most_bytes);
        if self.source.size > end {
            return Ok(None);
        }
        while self.more()? {
            if self.taken > end {
                return Ok(None);
            }
            self.pass_chunk(self.form.count_newlines(self.rest()) as u64);
        }
        Ok(Some(self.passed()))
    }

    /// A line that does not end in this chunk is never held in one piece, however long it is.
    fn streamed_line(&mut self, out: &mut String, most_chars: usize) -> Result<u64, ReadFailure> {
        let mut line = StreamedLine::new(self.form, most_chars);
        loop {
            if let Some(end) = self.form.find_newline(self.rest()) {
                line.feed(out, &self.rest()[..end]);
                self.pass_newline(end);
                return Ok(line.finish(out, true));
            }
            line.feed(out, self.rest());
            self.pass_chunk(0);
            if !self.more()? {
                return Ok(line.finish(out, false));
            }
        }
    }

    fn rest(&self) -> &[u8] {
        &self.buffer[self.at..]
    }

    fn pass_newline(&mut self, end: usize) {
        self.at += end + self.form.unit();
        self.newlines += 1;
        self.open_line = false;
    }

    fn pass_chunk(&mut self, newlines: u64) {
        self.open_line = !self.form.ends_with_newline(self.rest());
        self.at = self.buffer.len();
        self.newlines += newlines;
    }
}
