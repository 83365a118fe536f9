//! Commands: which kind it is, simple commands, functions and coprocesses.

use super::cursor::{Outcome, Parser, is_break, is_identifier};
use super::list::Before;
use super::tree::{Command, CommandKind, PieceKind, Redirect, Simple, Word};
use super::word::Style;

/// The reserved words that start a compound command.
const OPENERS: [&str; 8] = ["if", "while", "until", "for", "select", "case", "{", "[["];

/// The commands whose arguments may be array assignments.
const DECLARING: [&str; 5] = ["declare", "typeset", "local", "export", "readonly"];

/// The longest function name that is looked at.
const MAX_NAME: usize = 256;

impl Parser<'_> {
    /// One command with its redirections.
    pub(super) fn command(&mut self, before: Before) -> Outcome<Command> {
        self.skip_blanks();
        self.peek();
        self.count_part()?;
        let start = self.pos;
        let kind = match self.reserved() {
            Some("coproc") => Some(self.nested(Self::coprocess)?),
            Some("function") => Some(self.nested(Self::function_keyword)?),
            Some("time") if before == Before::Pipe => None,
            Some(word) if !OPENERS.contains(&word) => return self.unexpected(),
            _ => self.compound()?,
        };
        match kind {
            Some(kind @ (CommandKind::Coprocess { .. } | CommandKind::Function { .. })) => {
                Ok(Command { kind, redirects: Vec::new(), span: self.span_from(start) })
            }
            Some(kind) => self.with_redirects(kind, start),
            None => self.simple(start, false),
        }
    }

    /// A compound command with the redirections after it.
    fn with_redirects(&mut self, kind: CommandKind, start: usize) -> Outcome<Command> {
        self.after_keyword = true;
        let mut redirects = Vec::new();
        loop {
            self.skip_blanks();
            match self.redirect()? {
                Some(redirect) => redirects.push(redirect),
                None => return Ok(Command { kind, redirects, span: self.span_from(start) }),
            }
            self.after_keyword = false;
        }
    }

    /// Assignments, words and redirections, or a function definition that starts with its name.
    fn simple(&mut self, start: usize, coprocess: bool) -> Outcome<Command> {
        self.after_keyword = false;
        let mut simple = Simple::default();
        let mut redirects: Vec<Redirect> = Vec::new();
        let mut after_redirect = false;
        let mut declares = false;
        loop {
            self.skip_blanks();
            if let Some(redirect) = self.redirect()? {
                redirects.push(redirect);
                after_redirect = true;
                declares = false;
                continue;
            }
            if self.peek() == Some(b'(')
                && !coprocess
                && redirects.is_empty()
                && simple.assignments.is_empty()
            {
                return self.function_parentheses(&simple.words, start);
            }
            if !self.at_word() {
                break;
            }
            if coprocess && redirects.is_empty() && simple.assignments.is_empty() && simple.words.len() == 1 {
                self.refuse_reserved()?;
            }
            // Bash sees an assignment anywhere before the first word, but takes brackets and
            // parentheses as part of it only at the very start or right after another one.
            let loose = after_redirect && !simple.assignments.is_empty();
            if simple.words.is_empty() {
                match self.assignment_or_word(loose)? {
                    Ok(assignment) => simple.assignments.push(assignment),
                    Err(word) => {
                        declares = !loose && literal(&word).is_some_and(|name| DECLARING.contains(&name));
                        simple.words.push(word);
                    }
                }
            } else if declares {
                simple.words.push(self.declared_word()?);
            } else {
                simple.words.push(self.word(Style::Plain)?);
            }
            after_redirect = false;
        }
        if simple.assignments.is_empty() && simple.words.is_empty() && redirects.is_empty() {
            return self.unexpected();
        }
        Ok(Command { kind: CommandKind::Simple(simple), redirects, span: self.span_from(start) })
    }

    /// Whether a word starts here.
    pub(super) fn at_word(&mut self) -> bool {
        match self.peek() {
            None => false,
            Some(b'<' | b'>') => self.peek_second() == Some(b'('),
            Some(byte) => !is_break(byte),
        }
    }

    /// `name ( ) body`, from the parenthesis on.
    fn function_parentheses(&mut self, words: &[Word], start: usize) -> Outcome<Command> {
        let name = match words {
            [word] => literal(word).map(str::to_owned),
            _ => None,
        };
        let Some(name) = name.filter(|name| is_function_name(name)) else {
            return self.unexpected();
        };
        self.advance();
        self.skip_blanks();
        if !self.eat(b')') {
            return self.unexpected();
        }
        let kind = self.nested(|parser| parser.function_body(name))?;
        Ok(Command { kind, redirects: Vec::new(), span: self.span_from(start) })
    }

    /// `function name …`
    fn function_keyword(&mut self) -> Outcome<CommandKind> {
        self.take_plain();
        self.skip_blanks();
        let Some(name) = self.peek_plain(usize::MAX).filter(|name| is_function_name(name)) else {
            return self.unexpected();
        };
        self.take_plain();
        self.skip_blanks();
        if self.peek() == Some(b'(') {
            let place = (self.pos, self.last);
            self.advance();
            self.skip_blanks();
            if !self.eat(b')') {
                (self.pos, self.last) = place;
            }
        }
        self.function_body(name)
    }

    /// The body of a function, a compound command.
    fn function_body(&mut self, name: String) -> Outcome<CommandKind> {
        self.skip_newlines()?;
        self.peek();
        let start = self.pos;
        match self.compound()? {
            Some(kind) => {
                let body = Box::new(self.with_redirects(kind, start)?);
                Ok(CommandKind::Function { name, body })
            }
            None => self.unexpected(),
        }
    }

    /// `coproc …`
    fn coprocess(&mut self) -> Outcome<CommandKind> {
        self.take_plain();
        self.skip_blanks();
        self.peek();
        let mut start = self.pos;
        if let Some(kind) = self.coprocess_compound()? {
            let body = Box::new(self.with_redirects(kind, start)?);
            return Ok(CommandKind::Coprocess { name: None, body });
        }
        self.refuse_reserved()?;
        let name = self.peek_plain(MAX_NAME).filter(|name| is_identifier(name));
        if let Some(name) = name {
            let place = (self.pos, self.last);
            self.take_plain();
            self.skip_blanks();
            self.peek();
            start = self.pos;
            if let Some(kind) = self.coprocess_compound()? {
                let body = Box::new(self.with_redirects(kind, start)?);
                return Ok(CommandKind::Coprocess { name: Some(name), body });
            }
            (self.pos, self.last) = place;
            start = self.pos;
        }
        let body = Box::new(self.simple(start, true)?);
        Ok(CommandKind::Coprocess { name: None, body })
    }

    /// The compound command of a coprocess, if one starts here.
    fn coprocess_compound(&mut self) -> Outcome<Option<CommandKind>> {
        let inside = std::mem::replace(&mut self.in_coprocess, true);
        let kind = self.compound()?;
        self.in_coprocess = inside;
        Ok(kind)
    }

    /// An error where a reserved word stands that can only be one here.
    fn refuse_reserved(&mut self) -> Outcome<()> {
        match self.reserved() {
            None | Some("time") => Ok(()),
            Some(_) => self.unexpected(),
        }
    }
}

/// The text of a word that has nothing but plain text.
pub(super) fn literal(word: &Word) -> Option<&str> {
    match word.pieces.as_slice() {
        [piece] => match &piece.kind {
            PieceKind::Literal(text) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a function may have this name. Bash allows more, but nobody uses it.
fn is_function_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '+' | '@' | '/' | '%' | ','))
}
