//! Assignments and arrays.

use super::command::literal;
use super::cursor::{Outcome, Parser, is_break, is_name, is_name_start, push_literal};
use super::tree::{AssignedValue, Assignment, Piece, PieceKind, Word};
use super::word::Style;

/// What is left of the `=` of an assignment.
struct Target {
    /// The variable.
    name: String,
    /// Where the assignment starts.
    start: usize,
}

impl Parser<'_> {
    /// An assignment, or else the word that stands here. `loose`: brackets and parentheses would
    /// not be taken as part of an assignment here.
    pub(super) fn assignment_or_word(&mut self, loose: bool) -> Outcome<Result<Assignment, Word>> {
        self.peek();
        let place = (self.pos, self.last);
        let target = Target { name: self.name(), start: place.0 };
        if !target.name.is_empty() {
            match (self.peek(), self.peek_second()) {
                (Some(b'='), _) | (Some(b'+'), Some(b'=')) => {
                    return self.assigned(target, None, loose).map(Ok);
                }
                (Some(b'['), _) => return self.assignment_to_element(target, loose),
                _ => {}
            }
        }
        (self.pos, self.last) = place;
        self.word(Style::Plain).map(Err)
    }

    /// A name, consumed, or nothing.
    fn name(&mut self) -> String {
        let mut name = String::new();
        while let Some(byte) = self.peek() {
            if !(is_name(byte) && (is_name_start(byte) || !name.is_empty())) {
                break;
            }
            name.push(char::from(byte));
            self.advance();
        }
        name
    }

    /// `name[…]=…`, or a word that starts like it. At the start of a command bash always looks
    /// for the end of the brackets, blanks or not.
    fn assignment_to_element(&mut self, target: Target, loose: bool) -> Outcome<Result<Assignment, Word>> {
        let name_end = self.last;
        self.advance();
        let subscript = self.nested(|parser| parser.subscript(false, false))?;
        let close = self.span(self.last - 1, self.last);
        if loose && has_break(&subscript.pieces) {
            return self.fail_at("blanks in the brackets of a word", target.start, self.last);
        }
        if matches!((self.peek(), self.peek_second()), (Some(b'='), _) | (Some(b'+'), Some(b'='))) {
            return self.assigned(target, Some(subscript), false).map(Ok);
        }
        if has_break(&subscript.pieces) {
            return self.fail_at("blanks in the brackets of a word", target.start, self.last);
        }
        self.count_part()?;
        let mut pieces = Vec::new();
        push_literal(&mut pieces, &format!("{}[", target.name), self.span(target.start, name_end + 1));
        for piece in subscript.pieces {
            match piece.kind {
                PieceKind::Literal(text) => push_literal(&mut pieces, &text, piece.span),
                _ => pieces.push(piece),
            }
        }
        push_literal(&mut pieces, "]", close);
        self.word_pieces(&mut pieces, Style::Plain)?;
        Ok(Err(Word { pieces, span: self.span_from(target.start) }))
    }

    /// From the `=` or `+=` on.
    fn assigned(
        &mut self,
        target: Target,
        subscript: Option<super::tree::Arithmetic>,
        loose: bool,
    ) -> Outcome<Assignment> {
        self.count_part()?;
        let append = self.eat(b'+');
        self.advance();
        let value = if self.peek() == Some(b'(') {
            if loose || subscript.is_some() {
                return self.unexpected();
            }
            AssignedValue::Array(self.nested(Self::array)?)
        } else {
            let start = self.pos;
            let mut pieces = Vec::new();
            self.word_pieces(&mut pieces, Style::Plain)?;
            AssignedValue::Scalar(Word { pieces, span: self.span(start, self.last) })
        };
        let Target { name, start } = target;
        Ok(Assignment { name, subscript, append, value, span: self.span_from(start) })
    }

    /// An argument of `declare` and its like, which may assign an array.
    pub(super) fn declared_word(&mut self) -> Outcome<Word> {
        self.peek();
        let (start, last) = (self.pos, self.last);
        let name = self.name();
        let append = !name.is_empty() && self.peek() == Some(b'+') && self.peek_second() == Some(b'=');
        if append {
            self.advance();
        }
        if !name.is_empty() && self.peek() == Some(b'=') && self.peek_second() == Some(b'(') {
            self.advance();
            self.count_part()?;
            let text = format!("{name}{}=", if append { "+" } else { "" });
            let head = Piece { kind: PieceKind::Literal(text), span: self.span_from(start) };
            self.peek();
            let array_start = self.pos;
            let words = self.nested(Self::array)?;
            let array = Piece { kind: PieceKind::Array(words), span: self.span_from(array_start) };
            return Ok(Word { pieces: vec![head, array], span: self.span_from(start) });
        }
        (self.pos, self.last) = (start, last);
        self.word(Style::Plain)
    }

    /// `( … )`, from the parenthesis on.
    fn array(&mut self) -> Outcome<Vec<Word>> {
        self.advance();
        let mut words = Vec::new();
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(b')') => break,
                // Bash would read the body of a here-document in the middle of the array.
                Some(b'\n') if self.pending.is_empty() => self.advance(),
                _ if self.at_word() => words.push(self.element()?),
                _ => return self.unexpected(),
            }
        }
        self.advance();
        match self.peek() {
            None => Ok(words),
            Some(byte) if is_break(byte) => Ok(words),
            _ => self.unexpected(),
        }
    }

    /// An element of an array. After a bracket at its start bash looks for the closing one,
    /// whatever stands between; only where that makes no difference is it allowed here.
    fn element(&mut self) -> Outcome<Word> {
        self.peek();
        let start = self.pos;
        // Right after the start of a coprocess bash sees reserved words even here.
        if self.in_coprocess && self.reserved().is_some() {
            return self.unexpected();
        }
        let word = self.word(Style::Plain)?;
        let bracketed = match word.pieces.first().map(|piece| &piece.kind) {
            Some(PieceKind::Literal(text)) => text.starts_with('['),
            _ => false,
        };
        if bracketed && !brackets_close(&word) {
            return self.fail_at("unclosed bracket in an array", start, self.last);
        }
        // Bash forgets such a backslash when it writes the substitution down to run it later.
        let escapes = word.pieces.iter().any(|piece| matches!(piece.kind, PieceKind::Escaped(_)));
        if escapes && self.in_substitution {
            return self.fail_at("backslash in an array of a substitution", start, self.last);
        }
        // A number or `{name}` before a redirection operator would not be a word.
        if matches!(self.peek(), Some(b'<' | b'>')) && literal(&word).is_some() {
            return self.unexpected();
        }
        Ok(word)
    }
}

/// Whether plain text among the pieces would end a word.
fn has_break(pieces: &[Piece]) -> bool {
    pieces.iter().any(|piece| match &piece.kind {
        PieceKind::Literal(text) => text.bytes().any(is_break),
        _ => false,
    })
}

/// Whether the bracket a word starts with is closed in it.
fn brackets_close(word: &Word) -> bool {
    let mut depth = 0_usize;
    for piece in &word.pieces {
        let PieceKind::Literal(text) = &piece.kind else { continue };
        for byte in text.bytes() {
            match byte {
                b'[' => depth += 1,
                b']' if depth <= 1 => return true,
                b']' => depth -= 1,
                _ => {}
            }
        }
    }
    false
}
