//! A file as plain text with `\n` line ends, and the way back from every character to its bytes.

use std::borrow::Cow;
use std::ops::Range;

use encoding_rs::{UTF_8, UTF_16BE};
use memchr::{memchr, memchr_iter, memrchr};
use thiserror::Error;

use super::decode::TextForm;
use super::encode::{self, CannotEncode, CharTable};
use super::sniff::sniff;

/// The file is not text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("this is not a text file but {kind}, which cannot be changed as text")]
pub struct NotText {
    /// What it is, in words.
    pub kind: String,
}

/// Why new text cannot be put in; nothing is changed then.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CannotSplice {
    /// The encoding of the file lacks a character.
    #[error(transparent)]
    Encode(#[from] CannotEncode),
    /// The change would cover or change the reading of bytes that are no characters.
    #[error(
        "line {line} has bytes that are no valid {encoding} (shown as \u{FFFD}) where the text is to change, and \
         they would be lost; change only text beside them, or mend the file with a command first"
    )]
    Undecodable {
        /// The line, counting from 1.
        line: usize,
        /// The encoding of the file.
        encoding: &'static str,
    },
}

/// A stretch in which the text and the file advance together, character by character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    /// Where it begins in the text.
    text: usize,
    /// Where it begins in the file.
    file: usize,
    /// The bytes a character takes in the text and in the file. Only the last may take more in the file, when
    /// it is a line end of two characters; the next piece says where that ends.
    widths: (u8, u8),
    /// The bytes are no characters and are shown as U+FFFD.
    gap: bool,
}

impl Piece {
    fn plain(text: usize, file: usize) -> Self {
        Self { text, file, widths: (1, 1), gap: false }
    }
}

/// The text of a file without its byte order mark, every line end shown as `\n`, with an exact map back to
/// the bytes.
///
/// A file in UTF-8 without carriage returns is not copied.
#[derive(Debug)]
pub struct View<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) form: TextForm,
    text: Cow<'a, str>,
    /// In order; the last one is empty and stands for the end.
    pieces: Vec<Piece>,
    has_gaps: bool,
}

impl<'a> View<'a> {
    /// The view of a whole file, in the encoding its beginning suggests.
    ///
    /// # Errors
    /// The file is not text.
    pub fn of(bytes: &'a [u8]) -> Result<Self, NotText> {
        let form = sniff(bytes).map_err(|kind| NotText { kind })?;
        Ok(Self::in_form(bytes, form))
    }

    /// The view of a file whose encoding is known.
    pub(super) fn in_form(bytes: &'a [u8], form: TextForm) -> Self {
        let body = &bytes[form.bom..];
        let mut builder = Builder::default();
        if form.encoding == UTF_8 {
            match std::str::from_utf8(body) {
                Ok(text) if memchr(b'\r', body).is_none() => {
                    let pieces = vec![Piece::plain(0, form.bom), Piece::plain(text.len(), bytes.len())];
                    return Self { bytes, form, text: Cow::Borrowed(text), pieces, has_gaps: false };
                }
                Ok(text) => {
                    builder.text.reserve(body.len());
                    builder.push_plain(text, form.bom);
                }
                Err(_) => builder.push_utf8(body, form.bom),
            }
        } else if form.unit() == 2 {
            builder.push_utf16(body, form);
        } else {
            builder.push_legacy(body, form);
        }
        builder.pieces.push(Piece::plain(builder.text.len(), bytes.len()));
        let has_gaps = builder.pieces.iter().any(|piece| piece.gap);
        Self { bytes, form, text: Cow::Owned(builder.text), pieces: builder.pieces, has_gaps }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The name of the encoding.
    pub fn encoding(&self) -> &'static str {
        self.form.encoding.name()
    }

    /// The bytes of the file that a range of the text stands for.
    pub fn bytes_at(&self, range: Range<usize>) -> Range<usize> {
        self.file_offset(range.start)..self.file_offset(range.end)
    }

    fn file_offset(&self, offset: usize) -> usize {
        let piece = self.pieces[self.pieces.partition_point(|piece| piece.text <= offset).saturating_sub(1)];
        piece.file + (offset - piece.text) / usize::from(piece.widths.0) * usize::from(piece.widths.1)
    }

    /// The number of the line that the offset in the text is on, counting from 1.
    pub fn line_of(&self, offset: usize) -> usize {
        memchr_iter(b'\n', &self.text.as_bytes()[..offset]).count() + 1
    }

    /// The file with each range of the text replaced. The ranges are in order and do not overlap.
    ///
    /// Bytes outside the ranges are copied. New text gets the encoding of the file, and each of its line
    /// breaks, however written, the line end of that place: the n-th one keeps the n-th of what is replaced,
    /// further ones are like the last of these, else like the one before, else like the one after.
    ///
    /// # Errors
    /// A character is missing in the encoding, or bytes that are no characters would be lost.
    pub fn splice(&self, edits: &[(Range<usize>, &str)]) -> Result<Vec<u8>, CannotSplice> {
        for (range, _) in edits {
            if let Some(line) = self.gap_in(range) {
                return Err(CannotSplice::Undecodable { line, encoding: self.encoding() });
            }
        }
        let out = self.assemble(edits, None)?;
        self.confirm(edits, &out)?;
        Ok(out)
    }

    /// The line of the first bytes in the range that are no characters.
    fn gap_in(&self, range: &Range<usize>) -> Option<usize> {
        if !self.has_gaps || range.is_empty() {
            return None;
        }
        let first = self.pieces.partition_point(|piece| piece.text <= range.start).saturating_sub(1);
        let mut touched = self.pieces[first..].iter().take_while(|piece| piece.text < range.end);
        let gap = touched.find(|piece| piece.gap)?;
        Some(self.line_of(gap.text.max(range.start)))
    }

    /// Beside bytes that are no characters a change can give them a meaning: an orphaned lead byte takes the
    /// next letter for its own. Only looking at the result tells.
    pub(super) fn confirm(&self, edits: &[(Range<usize>, &str)], out: &[u8]) -> Result<(), CannotSplice> {
        if !self.has_gaps || View::in_form(out, self.form).text() == self.text_with(edits) {
            return Ok(());
        }
        let line = self.line_of(edits.first().map_or(0, |(range, _)| range.start));
        Err(CannotSplice::Undecodable { line, encoding: self.encoding() })
    }

    /// The text after the edits, which is quicker than decoding their result.
    pub(super) fn text_with(&self, edits: &[(Range<usize>, &str)]) -> String {
        let more: usize = edits.iter().map(|(_, new)| new.len()).sum();
        let mut text = String::with_capacity(self.text.len() + more);
        let mut done = 0;
        for (range, new) in edits {
            text.push_str(&self.text[done..range.start]);
            text.push_str(&normalised(new));
            done = range.end;
        }
        text.push_str(&self.text[done..]);
        text
    }

    /// Puts the result together; every new line break is `ending` where one is given.
    pub(super) fn assemble(
        &self,
        edits: &[(Range<usize>, &str)],
        ending: Option<&[u8]>,
    ) -> Result<Vec<u8>, CannotEncode> {
        let more: usize = edits.iter().map(|(_, new)| new.len() * self.form.unit()).sum();
        let mut out = Vec::with_capacity(self.bytes.len() + more);
        let mut done = 0;
        for (range, new) in edits {
            let place = self.bytes_at(range.clone());
            self.join(&mut out, &self.bytes[done..place.start]);
            let mut endings = Endings { view: self, place: range.clone(), next: range.start, last: None };
            for (number, line) in normalised(new).split('\n').enumerate() {
                if number > 0 {
                    self.join(&mut out, ending.unwrap_or_else(|| endings.next_ending()));
                }
                encode::push(self.form, line, &mut out)?;
            }
            done = place.end;
        }
        self.join(&mut out, &self.bytes[done..]);
        Ok(out)
    }

    /// Appends bytes so that a line end `\r` before them and a line end `\n` at their start stay two: the
    /// first is made `\r\n`.
    fn join(&self, out: &mut Vec<u8>, bytes: &[u8]) {
        let [feed, carriage] = self.form.break_units();
        if bytes.starts_with(feed) && out.ends_with(carriage) && out.len().is_multiple_of(self.form.unit()) {
            out.extend_from_slice(feed);
        }
        out.extend_from_slice(bytes);
    }

    /// The bytes of the line end at the offset of a `\n`.
    fn ending_at(&self, offset: usize) -> &'a [u8] {
        &self.bytes[self.bytes_at(offset..offset + 1)]
    }

    /// The most frequent line end; the plain line feed when there is none.
    pub(super) fn dominant_ending(&self) -> &'a [u8] {
        let mut counts: Vec<(&[u8], usize)> = Vec::new();
        for offset in memchr_iter(b'\n', self.text.as_bytes()) {
            let ending = self.ending_at(offset);
            match counts.iter_mut().find(|(known, _)| *known == ending) {
                Some((_, count)) => *count += 1,
                None => counts.push((ending, 1)),
            }
        }
        let most = counts.iter().rev().max_by_key(|(_, count)| count);
        most.map_or(self.form.break_units()[0], |(ending, _)| ending)
    }
}

/// The line ends that new text takes, one after the other.
struct Endings<'v, 'a> {
    view: &'v View<'a>,
    place: Range<usize>,
    next: usize,
    last: Option<&'a [u8]>,
}

impl<'a> Endings<'_, 'a> {
    fn next_ending(&mut self) -> &'a [u8] {
        let text = self.view.text.as_bytes();
        if let Some(found) = memchr(b'\n', &text[self.next..self.place.end]) {
            let offset = self.next + found;
            self.next = offset + 1;
            self.last = Some(self.view.ending_at(offset));
        }
        self.last.get_or_insert_with(|| {
            let before = memrchr(b'\n', &text[..self.place.start]);
            let near = before.or_else(|| Some(self.place.end + memchr(b'\n', &text[self.place.end..])?));
            near.map_or(self.view.form.break_units()[0], |offset| self.view.ending_at(offset))
        })
    }
}

/// Text with every line break written as `\n`.
pub(super) fn normalised(text: &str) -> Cow<'_, str> {
    if memchr(b'\r', text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("\r\n", "\n").replace('\r', "\n"))
}

/// Grows the text and the map, one character or run at a time.
#[derive(Default)]
struct Builder {
    text: String,
    pieces: Vec<Piece>,
    /// Where the file goes on after what was pushed last.
    end: usize,
    /// What was pushed last is a carriage return, so that a line feed now belongs to it.
    after_return: bool,
}

impl Builder {
    /// Notes that characters of these widths follow, which begin at `file`.
    fn open(&mut self, file: usize, widths: (u8, u8), gap: bool) {
        let goes_on = self.end == file
            && self.pieces.last().is_some_and(|piece| piece.widths == widths && piece.gap == gap);
        if !goes_on {
            self.pieces.push(Piece { text: self.text.len(), file, widths, gap });
        }
    }

    fn push(&mut self, character: char, file: usize, width: usize) {
        let follows_return = std::mem::replace(&mut self.after_return, character == '\r');
        if follows_return && character == '\n' {
            return;
        }
        let shown = if character == '\r' { '\n' } else { character };
        // No encoding has characters of more than four bytes.
        self.open(file, (shown.len_utf8() as u8, width as u8), false);
        self.text.push(shown);
        self.end = file + width;
    }

    fn push_gap(&mut self, file: usize, width: usize) {
        self.after_return = false;
        self.open(file, (3, width as u8), true);
        self.text.push(char::REPLACEMENT_CHARACTER);
        self.end = file + width;
    }

    /// Text that is stored just so.
    fn push_plain(&mut self, mut text: &str, mut file: usize) {
        if std::mem::take(&mut self.after_return) && text.starts_with('\n') {
            (text, file) = (&text[1..], file + 1);
        }
        loop {
            let found = memchr(b'\r', text.as_bytes());
            let line = &text[..found.unwrap_or(text.len())];
            if !text.is_empty() {
                self.open(file, (1, 1), false);
                self.text.push_str(line);
                self.end = file + line.len() + usize::from(found.is_some());
            }
            let Some(found) = found else { return };
            self.text.push('\n');
            let rest = &text[found + 1..];
            let skipped = usize::from(rest.starts_with('\n'));
            self.after_return = rest.is_empty();
            (text, file) = (&rest[skipped..], file + found + 1 + skipped);
        }
    }

    fn push_utf8(&mut self, body: &[u8], mut file: usize) {
        self.text.reserve(body.len());
        for chunk in body.utf8_chunks() {
            self.push_plain(chunk.valid(), file);
            file += chunk.valid().len();
            if !chunk.invalid().is_empty() {
                self.push_gap(file, chunk.invalid().len());
                file += chunk.invalid().len();
            }
        }
    }

    fn push_utf16(&mut self, body: &[u8], form: TextForm) {
        self.text.reserve(body.len() / 2);
        let big = form.encoding == UTF_16BE;
        let (pairs, odd) = body.as_chunks::<2>();
        let units =
            pairs.iter().map(|unit| if big { u16::from_be_bytes(*unit) } else { u16::from_le_bytes(*unit) });
        let mut file = form.bom;
        for decoded in char::decode_utf16(units) {
            match decoded {
                Ok(character) => {
                    let width = character.len_utf16() * 2;
                    self.push(character, file, width);
                    file += width;
                }
                Err(_) => {
                    self.push_gap(file, 2);
                    file += 2;
                }
            }
        }
        if !odd.is_empty() {
            self.push_gap(file, 1);
        }
    }

    fn push_legacy(&mut self, body: &[u8], form: TextForm) {
        self.text.reserve(body.len() + body.len() / 2);
        let mut table = CharTable::of(form.encoding);
        let mut at = 0;
        while at < body.len() {
            let plain = encoding_rs::Encoding::ascii_valid_up_to(&body[at..]);
            // The stretch is ASCII, so it always is a string.
            self.push_plain(std::str::from_utf8(&body[at..at + plain]).unwrap_or_default(), form.bom + at);
            at += plain;
            while at < body.len() && !body[at].is_ascii() {
                let width = match table.first(&body[at..]) {
                    Some((character, width)) => {
                        self.push(character, form.bom + at, width);
                        width
                    }
                    None => {
                        self.push_gap(form.bom + at, 1);
                        1
                    }
                };
                at += width;
            }
        }
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
