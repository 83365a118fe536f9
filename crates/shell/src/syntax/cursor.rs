//! The place in the text, and what may be asked of it.

use std::borrow::Cow;

use super::SyntaxError;
use super::heredoc::Pending;
use super::tree::{Piece, PieceKind, Word};
use crate::span::Span;

/// How deep constructs may nest. A level takes about ten calls, so this also bounds the stack.
const MAX_DEPTH: usize = 64;

/// How many words, pieces and commands a text may have.
const MAX_PARTS: usize = 20_000;

/// The result of parsing something.
pub(super) type Outcome<T> = Result<T, SyntaxError>;

/// How places in the text being parsed relate to the text the caller gave.
#[derive(Debug, Clone, Copy)]
pub(super) enum Origin {
    /// The same text, from this offset on.
    Offset(usize),
    /// Decoded text: everything stands where the whole of it stands.
    Whole(Span),
}

/// A parser at some place of a text.
#[derive(Debug)]
pub(super) struct Parser<'a> {
    /// The text.
    pub(super) text: &'a str,
    /// The next byte.
    pub(super) pos: usize,
    /// The end of what was consumed last: `pos` may already be past line continuations.
    pub(super) last: usize,
    /// How deep constructs nest here.
    pub(super) depth: usize,
    /// How many parts there are so far.
    pub(super) parts: usize,
    /// Where the text is from.
    pub(super) origin: Origin,
    /// Here-documents whose body follows after the end of the line.
    pub(super) pending: Vec<Pending>,
    /// Bodies read so far, in the order of their operators; none where not read yet.
    pub(super) bodies: Vec<Option<Word>>,
    /// Inside `$( )`, `<( )` or `>( )` of this very text.
    pub(super) in_substitution: bool,
    /// The last token was one after which a reserved word is recognised.
    pub(super) after_keyword: bool,
    /// Inside the compound command of a coprocess.
    pub(super) in_coprocess: bool,
    /// Where the substitutions with parentheses are, those inside of others left out.
    pub(super) substitutions: Vec<(usize, usize)>,
    /// Where comments stand in the text itself.
    pub(super) comments: Vec<Span>,
}

impl<'a> Parser<'a> {
    /// At the start of a text.
    pub(super) fn new(text: &'a str) -> Self {
        Self {
            text,
            pos: 0,
            last: 0,
            depth: 0,
            parts: 0,
            origin: Origin::Offset(0),
            pending: Vec::new(),
            bodies: Vec::new(),
            in_substitution: false,
            after_keyword: false,
            in_coprocess: false,
            substitutions: Vec::new(),
            comments: Vec::new(),
        }
    }

    /// At the start of another text found inside this one.
    pub(super) fn inner<'b>(&self, text: &'b str, origin: Origin) -> Parser<'b> {
        Parser { depth: self.depth, parts: self.parts, origin, ..Parser::new(text) }
    }

    /// The origin of a text: the part of this one from `start` to `end`, or what it decodes to.
    pub(super) fn origin_of(&self, start: usize, end: usize, verbatim: bool) -> Origin {
        match self.origin {
            Origin::Offset(offset) if verbatim => Origin::Offset(offset + start),
            _ => Origin::Whole(self.span(start, end)),
        }
    }

    /// A place in the text the caller gave.
    pub(super) fn span(&self, start: usize, end: usize) -> Span {
        match self.origin {
            Origin::Offset(offset) => Span::new(offset + start, offset + end.max(start)),
            Origin::Whole(span) => span,
        }
    }

    /// From `start` to the end of what was consumed.
    pub(super) fn span_from(&self, start: usize) -> Span {
        self.span(start, self.last)
    }

    /// An error at the next character.
    pub(super) fn fail<T>(&self, message: impl Into<Cow<'static, str>>) -> Outcome<T> {
        let width = self.text.get(self.pos..).and_then(|rest| rest.chars().next()).map_or(0, char::len_utf8);
        self.fail_at(message, self.pos, self.pos + width)
    }

    /// An error at a given place.
    pub(super) fn fail_at<T>(
        &self,
        message: impl Into<Cow<'static, str>>,
        start: usize,
        end: usize,
    ) -> Outcome<T> {
        Err(SyntaxError { message: message.into(), span: self.span(start, end) })
    }

    /// An error at the next token, which is named.
    pub(super) fn unexpected<T>(&mut self) -> Outcome<T> {
        if let Some(word) = self.peek_plain(20).filter(|word| !word.is_empty()) {
            return self.fail_at(format!("unexpected `{word}`"), self.pos, self.pos + word.len());
        }
        match self.text.get(self.pos..).and_then(|rest| rest.chars().next()) {
            None => self.fail("unexpected end of the text"),
            Some('\n') => self.fail("unexpected end of the line"),
            Some(character) => self.fail(format!("unexpected `{character}`")),
        }
    }

    /// Counts one more part.
    pub(super) fn count_part(&mut self) -> Outcome<()> {
        self.parts += 1;
        if self.parts > MAX_PARTS { self.fail("too many words") } else { Ok(()) }
    }

    /// Parses something one level deeper.
    pub(super) fn nested<T>(&mut self, parse: impl FnOnce(&mut Self) -> Outcome<T>) -> Outcome<T> {
        if self.depth >= MAX_DEPTH {
            return self.fail("nested too deep");
        }
        self.depth += 1;
        let parsed = parse(self);
        self.depth -= 1;
        parsed
    }

    /// The byte at a place.
    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    /// The first place from `at` on that is not a line continuation.
    pub(super) fn past_continuations(&self, mut at: usize) -> usize {
        while self.byte(at) == Some(b'\\') && self.byte(at + 1) == Some(b'\n') {
            at += 2;
        }
        at
    }

    /// The next byte; line continuations before it are gone for good.
    pub(super) fn peek(&mut self) -> Option<u8> {
        self.pos = self.past_continuations(self.pos);
        self.byte(self.pos)
    }

    /// The byte after the next one. The next one must have been peeked at and be ASCII.
    pub(super) fn peek_second(&self) -> Option<u8> {
        self.byte(self.past_continuations(self.pos + 1))
    }

    /// Consumes the next byte, which must be ASCII, and the line continuations before it.
    pub(super) fn advance(&mut self) {
        self.pos = self.past_continuations(self.pos) + 1;
        self.last = self.pos;
    }

    /// Consumes the next byte if it is this one.
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.advance();
        }
        found
    }

    /// Consumes the next character as it stands, continuation or not.
    pub(super) fn take_char(&mut self) -> Option<char> {
        let character = self.text.get(self.pos..)?.chars().next()?;
        self.pos += character.len_utf8();
        self.last = self.pos;
        Some(character)
    }

    /// Skips what stands between two tokens of a line: blanks and a comment.
    pub(super) fn skip_blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.pos += 1;
        }
        if self.peek() == Some(b'#') {
            let rest = self.text.get(self.pos..).unwrap_or_default();
            let end = self.pos + rest.find('\n').unwrap_or(rest.len());
            self.comments.push(Span::new(self.pos, end));
            self.pos = end;
        }
    }

    /// Skips blanks, comments and the ends of lines.
    pub(super) fn skip_newlines(&mut self) -> Outcome<()> {
        self.skip_blanks();
        while self.peek() == Some(b'\n') {
            self.newline()?;
            self.skip_blanks();
        }
        Ok(())
    }

    /// Consumes the end of a line and the here-documents that follow.
    pub(super) fn newline(&mut self) -> Outcome<()> {
        self.advance();
        self.after_keyword = true;
        self.read_documents()
    }

    /// The plain text of the next word if it is at most `max` bytes long and has nothing but
    /// characters that mean nothing inside a word. Consumes nothing.
    pub(super) fn peek_plain(&mut self, max: usize) -> Option<String> {
        self.peek();
        let mut text = Vec::new();
        let mut at = self.pos;
        loop {
            at = self.past_continuations(at);
            match self.byte(at).filter(|byte| !is_break(*byte)) {
                None => return String::from_utf8(text).ok(),
                Some(b'\'' | b'"' | b'\\' | b'$' | b'`') => return None,
                Some(_) if text.len() == max => return None,
                Some(byte) => text.push(byte),
            }
            at += 1;
        }
    }

    /// Consumes the next word, whose plain text is known.
    pub(super) fn take_plain(&mut self) {
        while self.peek().is_some_and(|byte| !is_break(byte)) {
            self.advance();
        }
    }
}

/// Whether a byte ends an unquoted word.
pub(super) fn is_break(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b'(' | b')' | b'<' | b'>')
}

/// Whether a byte may start a name.
pub(super) fn is_name_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

/// Whether a byte may be part of a name.
pub(super) fn is_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a text is a name.
pub(super) fn is_identifier(text: &str) -> bool {
    text.bytes().next().is_some_and(is_name_start) && text.bytes().all(is_name)
}

/// Adds plain text to pieces, to the last of them where it is plain text too.
pub(super) fn push_literal(pieces: &mut Vec<Piece>, text: &str, span: Span) {
    if let Some(Piece { kind: PieceKind::Literal(last), span: place }) = pieces.last_mut() {
        last.push_str(text);
        *place = place.to(span);
    } else {
        pieces.push(Piece { kind: PieceKind::Literal(text.to_owned()), span });
    }
}
