//! Arithmetic and subscripts.

use super::cursor::{Outcome, Parser, push_literal};
use super::dollar::Context;
use super::scan::Scan;
use super::tree::{Arithmetic, Piece, PieceKind};

impl Parser<'_> {
    /// An expression whose end is known.
    pub(super) fn arithmetic_until(&mut self, end: usize) -> Outcome<Arithmetic> {
        let start = self.pos;
        let mut pieces = Vec::new();
        while self.peek().is_some() && self.pos < end {
            self.arithmetic_piece(&mut pieces)?;
        }
        if self.pos != end {
            return self.fail_at("unclear end of an expression", start, end);
        }
        Ok(Arithmetic::of(pieces, self.span(start, end)))
    }

    /// `$[ … ]`, from the bracket on.
    pub(super) fn bracket_arithmetic(&mut self) -> Outcome<Arithmetic> {
        self.advance();
        let start = self.pos;
        let end = match self.closing(start, b'[', b']') {
            Scan::Found(end) => end,
            Scan::Open => return self.fail("`$[` is never closed"),
            Scan::Unclear(at) => return self.fail_at("quotes inside of `$[`", at, at + 1),
        };
        // The old form has rules of its own for everything but numbers, names and operators.
        let balanced = self.byte(end).is_some() && {
            let inside = self.text.get(start..end).unwrap_or_default();
            !inside.contains(['\'', '"', '`', '\\', '#', '(', ')', '{', '}', '$'])
        };
        if !balanced {
            return self.fail_at("only plain expressions are understood inside of `$[`", start, end);
        }
        let expression = self.arithmetic_until(end)?;
        self.pos = end;
        self.advance();
        Ok(Arithmetic { brackets: true, ..expression })
    }

    /// The subscript after a `[`, with its `]`. `strict`: no quotes are understood here. `braces`:
    /// inside of `${ }`, which ends at the first `}` whatever the brackets say.
    pub(super) fn subscript(&mut self, strict: bool, braces: bool) -> Outcome<Arithmetic> {
        let start = self.pos;
        let mut pieces = Vec::new();
        let mut depth = 1_usize;
        loop {
            match self.peek() {
                None => return self.fail_at("`[` is never closed", start, start),
                Some(b']') if depth == 1 => break,
                Some(b']') => depth -= 1,
                Some(b'[') => depth += 1,
                Some(b'}') if braces => return self.unexpected(),
                Some(b'<' | b'>') if self.peek_second() == Some(b'(') => return self.unexpected(),
                Some(b'\'' | b'"' | b'\\') if strict => return self.unexpected(),
                Some(b'\'') => {
                    self.quoted_key(&mut pieces)?;
                    continue;
                }
                Some(b'\\') => {
                    let piece = self.escape()?;
                    pieces.push(piece);
                    continue;
                }
                _ => {}
            }
            self.arithmetic_piece(&mut pieces)?;
        }
        let span = self.span(start, self.pos);
        if pieces.is_empty() {
            return self.unexpected();
        }
        self.advance();
        Ok(Arithmetic::of(pieces, span))
    }

    /// `'…'` in a subscript. For an array with numbers bash does not see the quotes and expands
    /// what is inside, so there must be nothing to expand.
    fn quoted_key(&mut self, pieces: &mut Vec<Piece>) -> Outcome<()> {
        let piece = self.single()?;
        let plain = match &piece.kind {
            PieceKind::Single(text) => !text.contains(['$', '`', '\\', '"', '[', ']', '{', '}', '\n']),
            _ => false,
        };
        if !plain {
            return self.fail("quotes with special characters in a subscript");
        }
        pieces.push(piece);
        Ok(())
    }

    /// One piece of an expression.
    pub(super) fn arithmetic_piece(&mut self, pieces: &mut Vec<Piece>) -> Outcome<()> {
        let start = self.pos;
        match self.peek() {
            Some(b'"') => {
                let piece = self.double()?;
                pieces.push(piece);
            }
            Some(b'\'') => {
                let piece = self.single()?;
                let PieceKind::Single(text) = piece.kind else { return Ok(()) };
                if text.contains(['$', '`', '\\', '"', '[', ']', '{', '}', '(', ')', ';', ':', '\n']) {
                    return self.fail_at("quotes with special characters in an expression", start, self.pos);
                }
                push_literal(pieces, &format!("'{text}'"), piece.span);
            }
            Some(b'\\') => match self.byte(self.pos + 1) {
                Some(b'$' | b'`' | b'"' | b'\\') => {
                    let piece = self.escape()?;
                    pieces.push(piece);
                }
                _ => return self.unexpected(),
            },
            Some(b'$') => self.dollar(Context::Arithmetic, pieces)?,
            Some(b'`') => {
                let piece = self.backticks(Context::Arithmetic)?;
                pieces.push(piece);
            }
            _ => self.literal_char(pieces),
        }
        Ok(())
    }
}
