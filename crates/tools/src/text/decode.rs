//! Turning the bytes of a line into characters, in one piece or streamed, and finding where lines end.

use std::borrow::Cow;
use std::fmt::Write;

use encoding_rs::{CoderResult, Decoder, Encoding, UTF_16BE, UTF_16LE};
use memchr::{memchr, memchr_iter};

/// How the characters of a file are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TextForm {
    /// The encoding; in each of those we detect a line can be decoded without the lines before it.
    pub(crate) encoding: &'static Encoding,
    /// The length of the byte order mark in bytes, which is not part of the text.
    pub(crate) bom: usize,
}

impl TextForm {
    /// The bytes of the smallest piece a line end is made of.
    pub(crate) fn unit(self) -> usize {
        if self.newline().len() == 2 { 2 } else { 1 }
    }

    fn newline(self) -> &'static [u8] {
        self.break_units()[0]
    }

    /// The line feed and the carriage return in bytes.
    pub(crate) fn break_units(self) -> [&'static [u8]; 2] {
        // In every other encoding these bytes are never a part of another character.
        match self.encoding {
            encoding if encoding == UTF_16LE => [b"\n\0", b"\r\0"],
            encoding if encoding == UTF_16BE => [b"\0\n", b"\0\r"],
            _ => [b"\n", b"\r"],
        }
    }

    /// Where the first line feed in `bytes` begins; `bytes` must begin with a whole unit.
    pub(crate) fn find_newline(self, bytes: &[u8]) -> Option<usize> {
        if self.unit() == 1 { memchr(b'\n', bytes) } else { self.wide_newlines(bytes).next() }
    }

    /// Where the line feed number `n`, counted from zero, begins.
    pub(crate) fn nth_newline(self, bytes: &[u8], n: usize) -> Option<usize> {
        if self.unit() == 1 { memchr_iter(b'\n', bytes).nth(n) } else { self.wide_newlines(bytes).nth(n) }
    }

    /// How many line feeds there are in `bytes`.
    pub(crate) fn count_newlines(self, bytes: &[u8]) -> usize {
        if self.unit() == 1 { memchr_iter(b'\n', bytes).count() } else { self.wide_newlines(bytes).count() }
    }

    /// Whether the last whole unit is a line feed and nothing comes after it.
    pub(crate) fn ends_with_newline(self, bytes: &[u8]) -> bool {
        bytes.len().is_multiple_of(self.unit()) && bytes.ends_with(self.newline())
    }

    fn wide_newlines(self, bytes: &[u8]) -> impl Iterator<Item = usize> {
        let newline = self.newline();
        let before = usize::from(newline[0] == 0);
        // The byte 0x0A is half of many other units, so the position and the other half are checked too.
        memchr_iter(b'\n', bytes).filter_map(move |found| {
            let start = found.checked_sub(before)?;
            (start.is_multiple_of(2) && bytes[start..].starts_with(newline)).then_some(start)
        })
    }

    /// Appends the line in `bytes`, which has no line feed, and returns how many characters were left out.
    /// `ended` says that a line feed follows, so that a carriage return at the end belongs to it.
    pub(crate) fn push_line(self, out: &mut String, bytes: &[u8], ended: bool, most_chars: usize) -> u64 {
        let (text, _) = self.encoding.decode_without_bom_handling(bytes);
        let text: &str = match &text {
            Cow::Borrowed(text) => text,
            Cow::Owned(text) => text,
        };
        let text = if ended { text.strip_suffix('\r').unwrap_or(text) } else { text };
        // A string of so many bytes cannot have more characters, which spares nearly every line the count.
        if text.len() <= most_chars {
            out.push_str(text);
            return 0;
        }
        let Some((cut, _)) = text.char_indices().nth(most_chars) else {
            out.push_str(text);
            return 0;
        };
        out.push_str(&text[..cut]);
        push_mark(out, text[cut..].chars().count() as u64)
    }
}

/// A line that comes in pieces: its first characters are kept, the rest is only counted.
pub(crate) struct StreamedLine {
    decoder: Decoder,
    piece: String,
    most_chars: usize,
    chars: u64,
    ends_with_return: bool,
}

impl StreamedLine {
    /// Enough to decode at full speed, small beside the chunk.
    const PIECE: usize = 16 * 1024;

    pub(crate) fn new(form: TextForm, most_chars: usize) -> Self {
        Self {
            decoder: form.encoding.new_decoder_without_bom_handling(),
            piece: String::with_capacity(Self::PIECE),
            most_chars,
            chars: 0,
            ends_with_return: false,
        }
    }

    /// Takes the next bytes of the line.
    pub(crate) fn feed(&mut self, out: &mut String, bytes: &[u8]) {
        self.decode(out, bytes, false);
    }

    /// Ends the line and returns how many characters were left out; `ended` is as for
    /// [`TextForm::push_line`].
    pub(crate) fn finish(mut self, out: &mut String, ended: bool) -> u64 {
        self.decode(out, &[], true);
        let most_chars = self.most_chars as u64;
        if ended && self.ends_with_return {
            self.chars -= 1;
            if self.chars < most_chars {
                out.pop();
            }
        }
        push_mark(out, self.chars.saturating_sub(most_chars))
    }

    fn decode(&mut self, out: &mut String, mut bytes: &[u8], last: bool) {
        loop {
            self.piece.clear();
            let (result, read, _) = self.decoder.decode_to_string(bytes, &mut self.piece, last);
            self.take_piece(out);
            bytes = &bytes[read..];
            if result == CoderResult::InputEmpty {
                return;
            }
        }
    }

    fn take_piece(&mut self, out: &mut String) {
        let Some(end) = self.piece.chars().next_back() else { return };
        self.ends_with_return = end == '\r';
        let room = (self.most_chars as u64).saturating_sub(self.chars);
        if room > 0 {
            let cut = usize::try_from(room).ok().and_then(|room| self.piece.char_indices().nth(room));
            out.push_str(&self.piece[..cut.map_or(self.piece.len(), |(cut, _)| cut)]);
        }
        self.chars += self.piece.chars().count() as u64;
    }
}

/// Says at the end of a line how much of it is missing; nothing when nothing is.
fn push_mark(out: &mut String, left_out: u64) -> u64 {
    if left_out > 0 {
        // Writing to a string cannot fail.
        let _ = write!(out, "… [characters left out: {left_out}]");
    }
    left_out
}
