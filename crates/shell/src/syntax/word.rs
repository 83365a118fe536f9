//! Words and what they are made of.

use super::cursor::{Outcome, Parser, is_break, push_literal};
use super::dollar::Context;
use super::scan::Scan;
use super::tree::{Piece, PieceKind, Word};

/// Where a word stands, as far as that changes what belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    /// Anywhere.
    Plain,
    /// Right of `==` in `[[ ]]`: extended globs.
    Pattern,
    /// Right of `=~`: parentheses and bars belong to the expression.
    Regex,
}

impl Parser<'_> {
    /// A word, at least one character of it.
    pub(super) fn word(&mut self, style: Style) -> Outcome<Word> {
        self.count_part()?;
        self.peek();
        let start = self.pos;
        let mut pieces = Vec::new();
        self.word_pieces(&mut pieces, style)?;
        if pieces.is_empty() {
            return self.unexpected();
        }
        Ok(Word { pieces, span: self.span_from(start) })
    }

    /// The pieces up to the end of a word, added to those there are.
    pub(super) fn word_pieces(&mut self, pieces: &mut Vec<Piece>, style: Style) -> Outcome<()> {
        while let Some(byte) = self.peek() {
            match byte {
                b'<' | b'>' if self.peek_second() == Some(b'(') => {
                    if style == Style::Regex {
                        return self.unexpected();
                    }
                    let piece = self.process()?;
                    pieces.push(piece);
                }
                b'(' if style == Style::Regex => self.parentheses(pieces)?,
                b'|' if style == Style::Regex => self.literal_char(pieces),
                b'@' | b'*' | b'+' | b'?' | b'!'
                    if style == Style::Pattern && self.peek_second() == Some(b'(') =>
                {
                    self.literal_char(pieces);
                    self.peek();
                    self.parentheses(pieces)?;
                }
                _ if is_break(byte) => break,
                _ => self.unquoted(pieces)?,
            }
        }
        Ok(())
    }

    /// `( … )` inside of a pattern or regular expression: anything may stand in it.
    fn parentheses(&mut self, pieces: &mut Vec<Piece>) -> Outcome<()> {
        let end = match self.closing(self.pos + 1, b'(', b')') {
            Scan::Found(end) => end,
            Scan::Open => return self.fail("`(` is never closed"),
            Scan::Unclear(at) => return self.fail_at("quotes too deep in a pattern", at, at + 1),
        };
        let start = self.pos;
        while self.peek().is_some() && self.pos < end {
            if matches!(self.peek(), Some(b'<' | b'>')) && self.peek_second() == Some(b'(') {
                return self.unexpected();
            }
            self.unquoted(pieces)?;
        }
        if self.pos != end {
            return self.fail_at("unclear end of a pattern", start, end);
        }
        self.literal_char(pieces);
        Ok(())
    }

    /// One piece outside of quotes.
    pub(super) fn unquoted(&mut self, pieces: &mut Vec<Piece>) -> Outcome<()> {
        let piece = match self.peek() {
            Some(b'\\') => self.escape()?,
            Some(b'\'') => self.single()?,
            Some(b'"') => self.double()?,
            Some(b'`') => self.backticks(Context::Bare)?,
            Some(b'$') => return self.dollar(Context::Bare, pieces),
            _ => {
                self.literal_char(pieces);
                return Ok(());
            }
        };
        pieces.push(piece);
        Ok(())
    }

    /// The next character as plain text.
    pub(super) fn literal_char(&mut self, pieces: &mut Vec<Piece>) {
        let start = self.pos;
        if let Some(character) = self.take_char() {
            push_literal(pieces, character.encode_utf8(&mut [0; 4]), self.span_from(start));
        }
    }

    /// `\x`
    pub(super) fn escape(&mut self) -> Outcome<Piece> {
        let start = self.pos;
        self.advance();
        match self.take_char() {
            Some(character) => Ok(Piece { kind: PieceKind::Escaped(character), span: self.span_from(start) }),
            None => self.fail_at("backslash at the end of the text", start, start + 1),
        }
    }

    /// `<( … )`, `>( … )`
    fn process(&mut self) -> Outcome<Piece> {
        self.count_part()?;
        let start = self.pos;
        let output = self.peek() == Some(b'>');
        self.advance();
        self.eat(b'(');
        // Bash takes this for arithmetic at first.
        if self.peek() == Some(b'(') {
            return self.unexpected();
        }
        let list = self.nested(Self::substituted_list)?;
        Ok(Piece { kind: PieceKind::Process { output, list }, span: self.span_from(start) })
    }
}
