//! What a dollar sign or a backtick starts.

use std::borrow::Cow;

use super::cursor::{Outcome, Parser, is_name, is_name_start};
use super::list::Stop;
use super::scan::Scan;
use super::tree::{List, Parameter, Piece, PieceKind, Substitution};

/// Where an expansion stands, as far as that changes what the characters in it mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Context {
    /// Outside of quotes.
    Bare,
    /// Between double quotes.
    Double,
    /// In a here-document.
    Here,
    /// In an expression.
    Arithmetic,
    /// In the word of `${ }` between double quotes.
    BraceDouble,
    /// In the word of `${ }` in a here-document or an expression.
    BraceStrict,
}

impl Parser<'_> {
    /// An expansion, or a dollar sign that means nothing.
    pub(super) fn dollar(&mut self, context: Context, pieces: &mut Vec<Piece>) -> Outcome<()> {
        let start = self.pos;
        self.count_part()?;
        self.advance();
        let kind = match self.peek() {
            Some(b'(') => {
                let inside = self.substitutions.len();
                let kind = self.parenthesis_expansion(start)?;
                self.substitutions.truncate(inside);
                self.substitutions.push((start, self.pos));
                kind
            }
            Some(b'{') => {
                self.advance();
                let parameter = self.nested(|parser| parser.braces(context))?;
                PieceKind::Parameter(Box::new(parameter))
            }
            Some(b'[') => PieceKind::Arithmetic(self.nested(Self::bracket_arithmetic)?),
            Some(b'\'') if context == Context::Bare => {
                let piece = self.ansi_c(start)?;
                pieces.push(piece);
                return Ok(());
            }
            Some(b'"') if context == Context::Bare => PieceKind::Locale(self.double_outer()?),
            Some(b'\'' | b'"') if !matches!(context, Context::Double | Context::Here) => {
                return self.unexpected();
            }
            Some(byte) if is_name_start(byte) => {
                let mut name = String::new();
                while let Some(byte) = self.peek().filter(|byte| is_name(*byte)) {
                    name.push(char::from(byte));
                    self.advance();
                }
                PieceKind::Parameter(Box::new(plain_parameter(name)))
            }
            Some(byte) if byte.is_ascii_digit() || b"@*#?-$!".contains(&byte) => {
                self.advance();
                PieceKind::Parameter(Box::new(plain_parameter(char::from(byte).to_string())))
            }
            _ => {
                self.plain("$", start, pieces);
                return Ok(());
            }
        };
        pieces.push(Piece { kind, span: self.span_from(start) });
        Ok(())
    }

    /// `$( … )` or `$(( … ))`, from the parenthesis on.
    fn parenthesis_expansion(&mut self, start: usize) -> Outcome<PieceKind> {
        if self.peek_second() != Some(b'(') {
            self.advance();
            let list = self.nested(Self::substituted_list)?;
            return Ok(PieceKind::Command(Box::new(Substitution { backticks: false, list })));
        }
        let inside = self.past_continuations(self.pos + 1);
        let scanned = match self.closing(inside + 1, b'(', b')') {
            Scan::Found(end) => {
                let next = self.past_continuations(end + 1);
                if self.byte(next) == Some(b')') {
                    Ok((end, next))
                } else {
                    Err(self.closing(next, b'(', b')'))
                }
            }
            other => Err(other),
        };
        let outer = match scanned {
            Ok((_, outer)) | Err(Scan::Found(outer)) => outer,
            Err(Scan::Open) => return self.fail_at("`$((` is never closed", start, inside + 1),
            Err(Scan::Unclear(at)) => return self.fail_at("quotes too deep in `$((`", at, at + 1),
        };
        if self.may_hold_comment(inside + 1, outer) {
            return self.fail_at("`#` inside of `$((`", inside + 1, outer);
        }
        let kind = if let Ok((end, _)) = scanned {
            self.pos = inside + 1;
            let expression = self.nested(|parser| parser.arithmetic_until(end))?;
            self.pos = outer;
            self.advance();
            PieceKind::Arithmetic(expression)
        } else {
            self.advance();
            let list = self.nested(Self::substituted_list)?;
            PieceKind::Command(Box::new(Substitution { backticks: false, list }))
        };
        if self.pos == outer + 1 { Ok(kind) } else { self.fail_at("unclear end of `$((`", start, outer) }
    }

    /// The commands of a substitution, from behind its parenthesis to behind the closing one.
    pub(super) fn substituted_list(&mut self) -> Outcome<List> {
        let pending = std::mem::take(&mut self.pending);
        let inside = std::mem::replace(&mut self.in_substitution, true);
        // Right here bash takes `time` for a word at first and for a reserved one later.
        self.skip_blanks();
        if self.reserved() == Some("time") {
            return self.unexpected();
        }
        let list = self.list(Stop::Parenthesis)?;
        self.no_pending()?;
        self.advance();
        self.pending = pending;
        self.in_substitution = inside;
        self.after_keyword = false;
        Ok(list)
    }

    /// `` `…` ``
    pub(super) fn backticks(&mut self, context: Context) -> Outcome<Piece> {
        let start = self.pos;
        self.count_part()?;
        let mut at = start + 1;
        loop {
            match self.byte(at) {
                None => return self.fail_at("backtick is never closed", start, start + 1),
                Some(b'`') => break,
                Some(b'\\') => at += 2,
                Some(_) => at += 1,
            }
        }
        let raw = self.text.get(start + 1..at).unwrap_or_default();
        if raw.contains("\\\"") && !matches!(context, Context::Bare | Context::Double | Context::Here) {
            return self.fail_at("escaped quotes in nested backticks", start, at);
        }
        let text = unescape(raw, context == Context::Double);
        let origin = self.origin_of(start + 1, at, matches!(text, Cow::Borrowed(_)));
        let list = self.nested(|parser| {
            let mut inner = parser.inner(&text, origin);
            let (mut list, error) = inner.program();
            inner.fill_documents(&mut list);
            parser.parts = inner.parts;
            error.map_or(Ok(list), Err)
        })?;
        self.pos = at;
        self.advance();
        let kind = PieceKind::Command(Box::new(Substitution { backticks: true, list }));
        Ok(Piece { kind, span: self.span_from(start) })
    }
}

/// The text between backticks after their own escapes, borrowed where there were none.
fn unescape(raw: &str, double: bool) -> Cow<'_, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    let mut text = String::new();
    let mut characters = raw.chars();
    let mut changed = false;
    while let Some(character) = characters.next() {
        if character != '\\' {
            text.push(character);
            continue;
        }
        match characters.next() {
            Some('\n') => changed = true,
            Some(next @ ('\\' | '`' | '$')) => {
                changed = true;
                text.push(next);
            }
            Some('"') if double => {
                changed = true;
                text.push('"');
            }
            next => {
                text.push('\\');
                text.extend(next);
            }
        }
    }
    if changed { Cow::Owned(text) } else { Cow::Borrowed(raw) }
}

/// `$name`
fn plain_parameter(name: String) -> Parameter {
    Parameter { name, length: false, indirect: false, subscript: None, operation: None }
}
