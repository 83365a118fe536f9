//! Lists, chains and pipelines.

use super::SyntaxError;
use super::cursor::{Outcome, Parser};
use super::tree::{Chain, Connector, Item, List, Pipeline, Stage};

/// The words bash reserves where a command may start.
const RESERVED: [&str; 22] = [
    "if", "then", "else", "elif", "fi", "case", "esac", "for", "select", "while", "until", "do", "done",
    "in", "function", "time", "{", "}", "!", "[[", "]]", "coproc",
];

/// What ends a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// The end of the text.
    End,
    /// `)`
    Parenthesis,
    /// One of these reserved words.
    Words(&'static [&'static str]),
    /// `;;`, `;&`, `;;&` or `esac`.
    Arm,
}

/// What stands before a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// Something after which a pipeline starts.
    Start,
    /// `|` or `|&`: a later stage.
    Pipe,
}

impl Parser<'_> {
    /// The whole text: what was complete before an error, and the error.
    pub(super) fn program(&mut self) -> (List, Option<SyntaxError>) {
        let mut list = List::default();
        loop {
            let complete = list.items.len();
            match self.line(&mut list) {
                Ok(true) => {}
                Ok(false) => return (list, None),
                Err(error) => {
                    list.items.truncate(complete);
                    return (list, Some(error));
                }
            }
        }
    }

    /// One line, with what follows from it; whether there was one. Bash reads, then runs line by
    /// line, so that an error undoes the line and nothing before it.
    fn line(&mut self, list: &mut List) -> Outcome<bool> {
        self.skip_newlines()?;
        if self.peek().is_none() {
            return Ok(false);
        }
        loop {
            self.after_keyword = true;
            let chain = self.chain()?;
            let background = self.separator()?;
            list.items.push(Item { chain, background: background == Some(b'&') });
            self.skip_blanks();
            match (background, self.peek()) {
                (_, None) => {
                    self.no_pending()?;
                    return Ok(true);
                }
                (_, Some(b'\n')) => {
                    self.newline()?;
                    return Ok(true);
                }
                (Some(_), _) => {}
                (None, _) => return self.unexpected(),
            }
        }
    }

    /// `;` or `&`, if one stands here.
    fn separator(&mut self) -> Outcome<Option<u8>> {
        self.skip_blanks();
        match self.peek() {
            Some(b';') if matches!(self.peek_second(), Some(b';' | b'&')) => Ok(None),
            Some(byte @ (b';' | b'&')) => {
                self.advance();
                self.after_keyword = true;
                Ok(Some(byte))
            }
            _ => Ok(None),
        }
    }

    /// Commands up to what ends them, which is left where it stands.
    pub(super) fn list(&mut self, stop: Stop) -> Outcome<List> {
        let mut list = List::default();
        self.after_keyword = true;
        self.skip_newlines()?;
        while !self.at_stop(stop)? {
            let chain = self.chain()?;
            let separator = self.separator()?;
            list.items.push(Item { chain, background: separator == Some(b'&') });
            self.skip_blanks();
            if separator.is_none() && self.peek() != Some(b'\n') {
                if self.at_stop(stop)? {
                    break;
                }
                return self.unexpected();
            }
            self.skip_newlines()?;
        }
        Ok(list)
    }

    /// Commands, at least one.
    pub(super) fn filled_list(&mut self, stop: Stop) -> Outcome<List> {
        let list = self.list(stop)?;
        if list.items.is_empty() { self.unexpected() } else { Ok(list) }
    }

    /// Whether the list ends here. The end of the text inside of something is an error.
    fn at_stop(&mut self, stop: Stop) -> Outcome<bool> {
        let next = self.peek();
        if next.is_none() && stop != Stop::End {
            return self.fail("unexpected end of the text");
        }
        Ok(match stop {
            Stop::End => next.is_none(),
            Stop::Parenthesis => next == Some(b')'),
            Stop::Words(words) => {
                self.after_keyword && self.reserved().is_some_and(|word| words.contains(&word))
            }
            Stop::Arm => {
                (next == Some(b';') && matches!(self.peek_second(), Some(b';' | b'&')))
                    || (self.after_keyword && self.reserved() == Some("esac"))
            }
        })
    }

    /// The reserved word that stands here, if any.
    pub(super) fn reserved(&mut self) -> Option<&'static str> {
        let text = self.peek_plain(8)?;
        RESERVED.iter().find(|word| **word == text).copied()
    }

    /// Consumes a reserved word, which must stand here.
    pub(super) fn expect_reserved(&mut self, word: &str) -> Outcome<()> {
        if !self.after_keyword || self.reserved() != Some(word) {
            return match self.peek() {
                None => self.fail(format!("unexpected end of the text, `{word}` is missing")),
                _ => self.unexpected(),
            };
        }
        self.take_plain();
        self.after_keyword = true;
        Ok(())
    }

    /// Pipelines joined by `&&` and `||`.
    fn chain(&mut self) -> Outcome<Chain> {
        let first = self.pipeline()?;
        let mut rest = Vec::new();
        loop {
            self.skip_blanks();
            let connector = match (self.peek(), self.peek_second()) {
                (Some(b'&'), Some(b'&')) => Connector::And,
                (Some(b'|'), Some(b'|')) => Connector::Or,
                _ => return Ok(Chain { first, rest }),
            };
            if rest.last().map_or(&first, |(_, pipeline)| pipeline).stages.is_empty() {
                return self.unexpected();
            }
            self.advance();
            self.advance();
            self.after_keyword = true;
            self.skip_newlines()?;
            rest.push((connector, self.pipeline()?));
        }
    }

    /// One pipeline with its `!` and `time`.
    fn pipeline(&mut self) -> Outcome<Pipeline> {
        self.skip_blanks();
        self.peek();
        let start = self.pos;
        let (mut negated, mut timed) = (false, false);
        loop {
            match self.reserved() {
                Some("!") => negated = !negated,
                Some("time") => timed = true,
                _ => break,
            }
            let is_time = self.reserved() == Some("time");
            self.take_plain();
            self.skip_blanks();
            if is_time {
                self.time_options();
            }
        }
        let bare = self.last > start && self.pipeline_is_over();
        let stages = if bare { Vec::new() } else { self.stages()? };
        Ok(Pipeline { negated, timed, stages, span: self.span_from(start) })
    }

    /// What may follow `time` before its pipeline.
    fn time_options(&mut self) {
        for option in ["-p", "--"] {
            if self.peek_plain(2).as_deref() == Some(option) {
                self.take_plain();
                self.skip_blanks();
            }
        }
    }

    /// Whether nothing follows a `!` or `time`. Only these three may stand there.
    fn pipeline_is_over(&mut self) -> bool {
        match self.peek() {
            None | Some(b'\n') => true,
            Some(b';') => !matches!(self.peek_second(), Some(b';' | b'&')),
            _ => false,
        }
    }

    /// Commands joined by `|` and `|&`.
    fn stages(&mut self) -> Outcome<Vec<Stage>> {
        let mut stages = Vec::new();
        let mut before = Before::Start;
        loop {
            let command = self.command(before)?;
            self.skip_blanks();
            let piped = self.peek() == Some(b'|') && self.peek_second() != Some(b'|');
            let mut errors_too = false;
            if piped {
                self.advance();
                errors_too = self.eat(b'&');
                self.after_keyword = true;
            }
            stages.push(Stage { command, errors_too });
            if !piped {
                return Ok(stages);
            }
            before = Before::Pipe;
            self.lines_after_pipe(errors_too)?;
        }
    }

    /// The ends of lines after a pipe. There `time` is an ordinary word, but a reserved one again,
    /// and an error, where more newlines stand between than bash looks back.
    fn lines_after_pipe(&mut self, errors_too: bool) -> Outcome<()> {
        let mut lines = usize::from(errors_too);
        self.skip_blanks();
        while self.peek() == Some(b'\n') {
            self.newline()?;
            self.skip_blanks();
            lines += 1;
        }
        if lines > 1 && self.reserved() == Some("time") { self.unexpected() } else { Ok(()) }
    }
}
