//! What a child prints: the beginning and the end in memory, all of it on disk within a quota.

mod spool;

use std::{collections::VecDeque, sync::Mutex};

use tokio::sync::watch;

use crate::{live::Keep, tree::lock};
use spool::Spool;

/// The most that one look at new output brings.
const LOOK: usize = 1024 * 1024;

/// Where output came from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    Stdout,
    Stderr,
}

/// The output of a child, which may still grow.
#[derive(Debug)]
pub struct Output {
    kept: Mutex<Kept>,
    /// Locked before `kept`, never after it.
    spool: Option<Mutex<Spool>>,
    /// How many bytes came, and whether that is all.
    progress: watch::Sender<(u64, bool)>,
}

#[derive(Debug)]
struct Kept {
    both: Stream,
    stdout: Stream,
    stderr: Stream,
    /// What is yet to be written to disk.
    pending: Vec<u8>,
    before_file: Option<u64>,
}

/// What is kept of an output, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown {
    /// How it begins.
    pub head: Vec<u8>,
    /// How it ends, as far as that is not in `head`.
    pub tail: Vec<u8>,
    /// How many bytes between the two are left out.
    pub omitted: u64,
    /// How many bytes there were.
    pub bytes: u64,
    /// How many line feeds there were.
    pub lines: u64,
    /// How many bytes went before those on disk: none means that the file holds all. Absent when
    /// nothing is on disk, be it because nothing was wanted, printed or could be written.
    pub before_file: Option<u64>,
}

impl Output {
    pub(crate) fn new(keep: Keep) -> Self {
        let stream = || Stream::new(keep.head, keep.tail);
        let (both, stdout, stderr) = (stream(), stream(), stream());
        let spool = keep.file.filter(|_| keep.quota > 1).map(|file| Mutex::new(Spool::new(file, keep.quota)));
        let kept = Mutex::new(Kept { both, stdout, stderr, pending: Vec::new(), before_file: None });
        Self { kept, spool, progress: watch::Sender::new((0, false)) }
    }

    pub(crate) fn has_file(&self) -> bool {
        self.spool.is_some()
    }

    /// Takes in what came, and gives how many bytes are yet to be written to disk.
    pub(crate) fn take(&self, source: Source, chunk: &[u8]) -> usize {
        let lines = memchr::memchr_iter(b'\n', chunk).count() as u64;
        let mut kept = lock(&self.kept);
        kept.both.take(chunk, lines);
        match source {
            Source::Stdout => kept.stdout.take(chunk, lines),
            Source::Stderr => kept.stderr.take(chunk, lines),
        }
        if self.has_file() {
            kept.pending.extend_from_slice(chunk);
        }
        let (bytes, pending) = (kept.both.bytes, kept.pending.len());
        drop(kept);
        self.progress.send_replace((bytes, false));
        pending
    }

    /// Writes to disk what is yet to be written. Only those who want to read from disk wait for it.
    pub(crate) fn flush(&self) {
        if let Some(spool) = &self.spool {
            self.flush_to(&mut lock(spool));
        }
    }

    fn flush_to(&self, spool: &mut Spool) {
        let mut pending = std::mem::take(&mut spool.spare);
        std::mem::swap(&mut lock(&self.kept).pending, &mut pending);
        spool.write(&pending);
        pending.clear();
        spool.spare = pending;
        lock(&self.kept).before_file = spool.begin();
    }

    /// Says that nothing more will come.
    pub(crate) fn close(&self) {
        self.progress.send_modify(|(_, closed)| *closed = true);
    }

    /// Both streams, in the order in which they came.
    pub fn snapshot(&self) -> Shown {
        let kept = lock(&self.kept);
        Shown { before_file: kept.before_file, ..kept.both.shown() }
    }

    /// Standard output alone.
    pub fn stdout(&self) -> Shown {
        lock(&self.kept).stdout.shown()
    }

    /// Standard error alone.
    pub fn stderr(&self) -> Shown {
        lock(&self.kept).stderr.shown()
    }

    /// How many bytes came so far.
    pub fn bytes(&self) -> u64 {
        self.progress.borrow().0
    }

    /// What came after the first `cursor` bytes, at most a mebibyte, and where to go on; and whether
    /// something in between is no longer kept anywhere.
    pub fn since(&self, cursor: u64) -> (Vec<u8>, u64, bool) {
        let in_memory = |cursor| {
            let kept = lock(&self.kept);
            let bytes = kept.both.since(cursor)?;
            let next = cursor + bytes.len() as u64;
            Some((bytes, next))
        };
        let cursor = cursor.min(self.bytes());
        if let Some((bytes, next)) = in_memory(cursor) {
            return (bytes, next, false);
        }
        if let Some(spool) = &self.spool {
            let mut spool = lock(spool);
            self.flush_to(&mut spool);
            if let Some(from) = spool.begin().map(|begin| begin.max(cursor))
                && let Some(bytes) = spool.read(from, LOOK)
            {
                let next = from + bytes.len() as u64;
                return (bytes, next, from > cursor);
            }
        }
        let oldest = { lock(&self.kept).both.oldest() };
        // Meanwhile that may be gone too; then the next look brings what is left.
        let (bytes, next) = in_memory(oldest).unwrap_or((Vec::new(), oldest));
        (bytes, next, true)
    }

    /// The last `count` lines, as far as they are in memory; an unfinished one counts.
    pub fn last_lines(&self, count: usize) -> Vec<u8> {
        let mut shown = lock(&self.kept).both.shown();
        let mut text = if shown.omitted == 0 {
            shown.head.append(&mut shown.tail);
            shown.head
        } else {
            shown.tail
        };
        let body = text.strip_suffix(b"\n").unwrap_or(&text);
        let start = match count.checked_sub(1) {
            Some(before) => memchr::memrchr_iter(b'\n', body).nth(before).map_or(0, |at| at + 1),
            None => text.len(),
        };
        text.drain(..start);
        text
    }

    /// Waits until more than `seen` bytes came, or until it is certain that no more will.
    pub async fn changed(&self, seen: u64) {
        self.progress.subscribe().wait_for(|(bytes, closed)| *bytes > seen || *closed).await.ok();
    }
}

/// The beginning and the end of a stream of bytes.
#[derive(Debug)]
struct Stream {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    most: (usize, usize),
    bytes: u64,
    lines: u64,
}

impl Stream {
    fn new(head: usize, tail: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), most: (head, tail), bytes: 0, lines: 0 }
    }

    fn take(&mut self, chunk: &[u8], lines: u64) {
        self.bytes += chunk.len() as u64;
        self.lines += lines;
        let (first, rest) = chunk.split_at(chunk.len().min(self.most.0 - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.most.1)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.most.1);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    fn omitted(&self) -> u64 {
        self.bytes - (self.head.len() + self.tail.len()) as u64
    }

    /// Where the kept end begins.
    fn oldest(&self) -> u64 {
        self.bytes - self.tail.len() as u64
    }

    fn shown(&self) -> Shown {
        Shown {
            head: self.head.clone(),
            tail: self.tail.iter().copied().collect(),
            omitted: self.omitted(),
            bytes: self.bytes,
            lines: self.lines,
            before_file: None,
        }
    }

    /// What came after the first `cursor` bytes, unless some of it is not kept.
    fn since(&self, cursor: u64) -> Option<Vec<u8>> {
        let after = self.bytes - cursor;
        let missing = usize::try_from(after).ok()?.saturating_sub(self.tail.len());
        if missing > 0 && self.omitted() > 0 {
            return None;
        }
        let head = &self.head[self.head.len() - missing..];
        let skip = self.tail.len().saturating_sub(usize::try_from(after).ok()?);
        Some(head.iter().chain(self.tail.range(skip..)).take(LOOK).copied().collect())
    }
}

#[cfg(test)]
mod tests;
