//! Quotes.

use super::cursor::{Outcome, Parser, push_literal};
use super::dollar::Context;
use super::tree::{Piece, PieceKind};

impl Parser<'_> {
    /// `'…'`
    pub(super) fn single(&mut self) -> Outcome<Piece> {
        let start = self.pos;
        let rest = self.text.get(start + 1..).unwrap_or_default();
        let Some(length) = rest.find('\'') else {
            return self.fail("`'` is never closed");
        };
        let text = rest.get(..length).unwrap_or_default().to_owned();
        self.pos = start + length + 2;
        self.last = self.pos;
        Ok(Piece { kind: PieceKind::Single(text), span: self.span_from(start) })
    }

    /// `"…"`
    pub(super) fn double(&mut self) -> Outcome<Piece> {
        let start = self.pos;
        let pieces = self.double_outer()?;
        Ok(Piece { kind: PieceKind::Double(pieces), span: self.span_from(start) })
    }

    /// `"…"` that is not inside of others. Bash expands braces before it knows how quotes nest:
    /// a brace that is quoted in truth but not for that simple reading is refused.
    pub(super) fn double_outer(&mut self) -> Outcome<Vec<Piece>> {
        let start = self.pos;
        let before = self.substitutions.len();
        let pieces = self.double_pieces()?;
        let inside = self.substitutions.get(before..).unwrap_or_default();
        if self.braces_are_hidden(start, self.pos, inside) {
            Ok(pieces)
        } else {
            self.fail_at("quotes inside of quotes around a brace", start, self.pos)
        }
    }

    /// What stands between double quotes, and the quotes.
    pub(super) fn double_pieces(&mut self) -> Outcome<Vec<Piece>> {
        self.count_part()?;
        let start = self.pos;
        self.advance();
        let mut pieces = Vec::new();
        loop {
            match self.peek() {
                None => return self.fail_at("`\"` is never closed", start, start + 1),
                Some(b'"') => break,
                _ => self.quoted_piece(Context::Double, &mut pieces)?,
            }
        }
        self.advance();
        Ok(pieces)
    }

    /// One piece inside of double quotes or a here-document.
    pub(super) fn quoted_piece(&mut self, context: Context, pieces: &mut Vec<Piece>) -> Outcome<()> {
        match self.peek() {
            Some(b'\\') => {
                let known = match self.byte(self.pos + 1) {
                    Some(b'$' | b'`' | b'\\') => true,
                    Some(b'"') => matches!(context, Context::Double | Context::BraceDouble),
                    Some(b'}') => matches!(context, Context::BraceDouble | Context::BraceStrict),
                    _ => false,
                };
                if known {
                    let piece = self.escape()?;
                    pieces.push(piece);
                } else {
                    self.literal_char(pieces);
                }
            }
            Some(b'$') => self.dollar(context, pieces)?,
            Some(b'`') => {
                let piece = self.backticks(context)?;
                pieces.push(piece);
            }
            _ => self.literal_char(pieces),
        }
        Ok(())
    }

    /// `$'…'`, from the quote on.
    pub(super) fn ansi_c(&mut self, start: usize) -> Outcome<Piece> {
        self.advance();
        let mut bytes = Vec::new();
        let mut ended = false;
        loop {
            let mut decoded = Vec::new();
            match self.take_char() {
                None => return self.fail_at("`$'` is never closed", start, start + 2),
                Some('\'') => break,
                Some('\\') => self.ansi_c_escape(&mut decoded)?,
                Some(character) => decoded.extend(character.encode_utf8(&mut [0; 4]).bytes()),
            }
            // Bash keeps the text up to the first null byte.
            ended |= decoded.contains(&0);
            if !ended {
                bytes.extend(decoded);
            }
        }
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Piece { kind: PieceKind::AnsiC(text), span: self.span_from(start) }),
            Err(_) => self.fail_at("bytes that are not UTF-8", start, self.pos),
        }
    }

    /// What an escape of `$'…'` stands for, from the character after the backslash on.
    fn ansi_c_escape(&mut self, decoded: &mut Vec<u8>) -> Outcome<()> {
        let start = self.pos;
        let Some(character) = self.take_char() else {
            return self.fail("`$'` is never closed");
        };
        match character {
            'a' => decoded.push(7),
            'b' => decoded.push(8),
            'e' | 'E' => decoded.push(0x1b),
            'f' => decoded.push(0x0c),
            'n' => decoded.push(b'\n'),
            'r' => decoded.push(b'\r'),
            't' => decoded.push(b'\t'),
            'v' => decoded.push(0x0b),
            '\\' | '\'' | '"' | '?' => decoded.extend(character.encode_utf8(&mut [0; 4]).bytes()),
            '0'..='7' => {
                self.pos = start;
                let (value, _) = self.digits(8, 3);
                decoded.push(low_byte(value));
            }
            'x' if self.byte(self.pos) == Some(b'{') => return self.fail("`\\x{` is not understood"),
            'x' => match self.digits(16, 2) {
                (_, 0) => decoded.extend(b"\\x"),
                (value, _) => decoded.push(low_byte(value)),
            },
            'u' | 'U' => match self.digits(16, if character == 'u' { 4 } else { 8 }) {
                (_, 0) => decoded.extend(format!("\\{character}").bytes()),
                (value, _) => match char::from_u32(value) {
                    Some(character) => decoded.extend(character.encode_utf8(&mut [0; 4]).bytes()),
                    None => return self.fail_at("not a character", start, self.pos),
                },
            },
            'c' => decoded.push(self.control()?),
            other => {
                decoded.push(b'\\');
                decoded.extend(other.encode_utf8(&mut [0; 4]).bytes());
            }
        }
        Ok(())
    }

    /// The character of `\cX`.
    fn control(&mut self) -> Outcome<u8> {
        let Some(byte) = self.byte(self.pos).filter(|byte| byte.is_ascii_graphic() && *byte != b'\'') else {
            return self.fail("`\\c` without a character");
        };
        self.take_char();
        if byte == b'\\' && self.take_char() != Some('\\') {
            return self.fail("`\\c\\` is not understood");
        }
        Ok(if byte == b'?' { 0x7f } else { byte.to_ascii_uppercase() & 0x1f })
    }

    /// The value of up to `most` digits, and how many there were.
    fn digits(&mut self, radix: u32, most: usize) -> (u32, usize) {
        let (mut value, mut count) = (0_u32, 0);
        while count < most {
            let Some(digit) = self.byte(self.pos).and_then(|byte| char::from(byte).to_digit(radix)) else {
                break;
            };
            value = value.wrapping_mul(radix).wrapping_add(digit);
            self.advance();
            count += 1;
        }
        (value, count)
    }

    /// Adds text that means nothing.
    pub(super) fn plain(&mut self, text: &str, start: usize, pieces: &mut Vec<Piece>) {
        push_literal(pieces, text, self.span_from(start));
    }
}

/// The lowest eight bits, as bash takes them.
fn low_byte(value: u32) -> u8 {
    value.to_le_bytes()[0]
}
