//! Redirections.

use super::command::literal;
use super::cursor::{Outcome, Parser, is_identifier, is_name};
use super::tree::{Descriptor, Redirect, RedirectOperator, RedirectTarget, Word};
use super::word::Style;

impl Parser<'_> {
    /// A redirection, if one stands here.
    pub(super) fn redirect(&mut self) -> Outcome<Option<Redirect>> {
        self.peek();
        let start = self.pos;
        let Some((descriptor, at)) = self.descriptor()? else { return Ok(None) };
        self.count_part()?;
        self.pos = at;
        let (operator, strip_tabs) = self.redirect_operator();
        let target = if operator == RedirectOperator::HereDocument {
            RedirectTarget::HereDocument(self.document(start, strip_tabs)?)
        } else {
            RedirectTarget::Word(self.redirect_word(operator)?)
        };
        Ok(Some(Redirect { descriptor, operator, target, span: self.span_from(start) }))
    }

    /// What stands before a redirection operator, and where the operator is. A digit or brace
    /// that does not touch the operator is a word.
    fn descriptor(&self) -> Outcome<Option<(Option<Descriptor>, usize)>> {
        let (mut at, mut text) = (self.pos, String::new());
        while let Some(byte) = self.byte(at).filter(|byte| is_name(*byte) || b"{}[".contains(byte)) {
            if text.len() > 256 {
                return Ok(None);
            }
            text.push(char::from(byte));
            at = self.past_continuations(at + 1);
        }
        let next = self.byte(self.past_continuations(at + 1));
        let operator = match self.byte(at) {
            Some(b'<' | b'>') => next != Some(b'('),
            Some(b'&') => next == Some(b'>') && text.is_empty(),
            Some(b']') if text.starts_with('{') => return self.element_descriptor(at),
            _ => false,
        };
        if !operator {
            return Ok(None);
        }
        if text.is_empty() {
            return Ok(Some((None, at)));
        }
        if let Some(number) = number(&text) {
            return Ok(Some((Some(Descriptor::Number(number)), at)));
        }
        let name = text.strip_prefix('{').and_then(|text| text.strip_suffix('}'));
        Ok(name
            .filter(|name| is_identifier(name))
            .map(|name| (Some(Descriptor::Variable(name.to_owned())), at)))
    }

    /// `{name[…]}>`: bash would store the descriptor in an element, which has no place in the tree.
    fn element_descriptor(&self, at: usize) -> Outcome<Option<(Option<Descriptor>, usize)>> {
        let brace = self.past_continuations(at + 1);
        let operator = self.past_continuations(brace + 1);
        if self.byte(brace) == Some(b'}') && matches!(self.byte(operator), Some(b'<' | b'>')) {
            return self.fail("a descriptor stored in an array");
        }
        Ok(None)
    }

    /// Consumes the operator; whether it is `<<-` too.
    fn redirect_operator(&mut self) -> (RedirectOperator, bool) {
        let first = self.peek();
        self.advance();
        if first == Some(b'&') {
            self.eat(b'>');
            let append = self.eat(b'>');
            return (if append { RedirectOperator::BothAppend } else { RedirectOperator::Both }, false);
        }
        let input = first == Some(b'<');
        let operator = match (input, self.peek()) {
            (true, Some(b'<')) => {
                self.advance();
                if self.eat(b'<') {
                    return (RedirectOperator::HereString, false);
                }
                return (RedirectOperator::HereDocument, self.eat(b'-'));
            }
            (true, Some(b'&')) => RedirectOperator::DuplicateIn,
            (true, Some(b'>')) => RedirectOperator::ReadWrite,
            (false, Some(b'>')) => RedirectOperator::Append,
            (false, Some(b'&')) => RedirectOperator::DuplicateOut,
            (false, Some(b'|')) => RedirectOperator::Clobber,
            (true, _) => return (RedirectOperator::Read, false),
            (false, _) => return (RedirectOperator::Write, false),
        };
        self.advance();
        (operator, false)
    }

    /// The word after an operator.
    fn redirect_word(&mut self, operator: RedirectOperator) -> Outcome<Word> {
        self.skip_blanks();
        if !self.at_word() {
            return self.unexpected();
        }
        let duplicates = matches!(operator, RedirectOperator::DuplicateIn | RedirectOperator::DuplicateOut);
        if duplicates && self.peek() == Some(b'-') {
            // The dash is a token of its own: what follows it is another word.
            let start = self.pos;
            let mut pieces = Vec::new();
            self.literal_char(&mut pieces);
            return Ok(Word { pieces, span: self.span_from(start) });
        }
        let word = self.word(Style::Plain)?;
        let touches = matches!(self.peek(), Some(b'<' | b'>'));
        if touches && literal(&word).is_some_and(|text| is_descriptor(text, duplicates)) {
            return self.unexpected();
        }
        Ok(word)
    }
}

/// The number a text of digits stands for, if a descriptor may have it.
fn number(text: &str) -> Option<u32> {
    let digits = text.bytes().all(|byte| byte.is_ascii_digit());
    if digits { text.parse::<i32>().ok().and_then(|number| u32::try_from(number).ok()) } else { None }
}

/// Whether bash takes a word for the descriptor of the redirection that follows it.
pub(super) fn is_descriptor(text: &str, number_allowed: bool) -> bool {
    (number(text).is_some() && !number_allowed) || (text.starts_with('{') && text.ends_with('}'))
}
