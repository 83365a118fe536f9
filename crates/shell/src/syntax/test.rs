//! `[[ … ]]`

use super::command::literal;
use super::cursor::{Outcome, Parser};
use super::redirect::is_descriptor;
use super::tree::{CommandKind, Test, Word};
use super::word::Style;

/// The letters of the operators with one operand.
const UNARY: &str = "abcdefghknoprstuvwxzGLNORS";

/// The operators with two operands that are words.
const BINARY: [&str; 12] = ["=", "==", "!=", "-ef", "-nt", "-ot", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"];

impl Parser<'_> {
    /// `[[ … ]]`, from the first bracket on.
    pub(super) fn test_command(&mut self) -> Outcome<CommandKind> {
        self.take_plain();
        let test = self.test_or()?;
        self.skip_blanks();
        if !self.at_test_end() {
            return self.unexpected();
        }
        self.take_plain();
        Ok(CommandKind::Test(test))
    }

    /// Whether `]]` stands here.
    fn at_test_end(&mut self) -> bool {
        self.peek_plain(2).as_deref() == Some("]]")
    }

    /// Terms joined by `||`.
    fn test_or(&mut self) -> Outcome<Test> {
        let left = self.test_and()?;
        self.skip_blanks();
        if self.peek() == Some(b'|') && self.peek_second() == Some(b'|') {
            self.advance();
            self.eat(b'|');
            let right = self.nested(Self::test_or)?;
            return Ok(Test::Or(Box::new(left), Box::new(right)));
        }
        Ok(left)
    }

    /// Terms joined by `&&`.
    fn test_and(&mut self) -> Outcome<Test> {
        let left = self.test_term()?;
        self.skip_blanks();
        if self.peek() == Some(b'&') && self.peek_second() == Some(b'&') {
            self.advance();
            self.eat(b'&');
            let right = self.nested(Self::test_and)?;
            return Ok(Test::And(Box::new(left), Box::new(right)));
        }
        Ok(left)
    }

    /// One term, with the ends of lines after it where bash allows them.
    fn test_term(&mut self) -> Outcome<Test> {
        self.skip_newlines()?;
        if self.eat(b'(') {
            let inside = self.nested(Self::test_or)?;
            self.skip_blanks();
            if !self.eat(b')') {
                return self.unexpected();
            }
            self.skip_newlines()?;
            return Ok(Test::Group(Box::new(inside)));
        }
        let operator = self.peek_plain(2).unwrap_or_default();
        if operator == "!" {
            self.take_plain();
            let inside = self.nested(Self::test_term)?;
            return Ok(Test::Not(Box::new(inside)));
        }
        let unary =
            operator.strip_prefix('-').is_some_and(|letter| letter.len() == 1 && UNARY.contains(letter));
        if unary {
            self.take_plain();
            self.skip_blanks();
            let operand = self.test_word(Style::Plain)?;
            self.skip_newlines()?;
            return Ok(Test::Unary { operator, operand });
        }
        let left = self.test_word(Style::Plain)?;
        self.skip_blanks();
        let Some((operator, style)) = self.test_operator()? else { return Ok(Test::Word(left)) };
        self.skip_blanks();
        let right = self.test_word(style)?;
        self.skip_newlines()?;
        Ok(Test::Binary { left, operator, right })
    }

    /// The operator after a word, if one follows.
    fn test_operator(&mut self) -> Outcome<Option<(String, Style)>> {
        match (self.peek(), self.peek_second()) {
            (Some(b'&'), Some(b'&')) | (Some(b'|'), Some(b'|')) | (Some(b')'), _) => return Ok(None),
            (Some(byte @ (b'<' | b'>')), second)
                if !matches!(second, Some(b'<' | b'>' | b'&' | b'|' | b'(')) =>
            {
                self.advance();
                return Ok(Some((char::from(byte).to_string(), Style::Plain)));
            }
            _ => {}
        }
        if self.at_test_end() {
            return Ok(None);
        }
        let operator = self.peek_plain(3).unwrap_or_default();
        let style = match operator.as_str() {
            "=~" => Style::Regex,
            "=" | "==" | "!=" => Style::Pattern,
            other if BINARY.contains(&other) => Style::Plain,
            _ => return self.unexpected(),
        };
        self.take_plain();
        if matches!(self.peek(), Some(b'<' | b'>')) && self.peek_second() == Some(b'(') {
            return self.unexpected();
        }
        Ok(Some((operator, style)))
    }

    /// A word that is not the end.
    fn test_word(&mut self, style: Style) -> Outcome<Word> {
        if self.at_test_end() || !(style == Style::Regex || self.at_word()) {
            return self.unexpected();
        }
        let word = self.word(style)?;
        let touches = matches!(self.peek(), Some(b'<' | b'>'));
        if touches && literal(&word).is_some_and(|text| is_descriptor(text, false)) {
            return self.unexpected();
        }
        Ok(word)
    }
}
