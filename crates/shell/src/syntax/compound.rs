//! Compound commands.

use super::cursor::{Outcome, Parser, is_identifier};
use super::list::Stop;
use super::scan::Scan;
use super::tree::{Arithmetic, Arm, ArmEnd, CommandKind, List, Piece, PieceKind, Word};
use super::word::Style;

/// The longest loop variable that is looked at.
const MAX_NAME: usize = 256;

impl Parser<'_> {
    /// A compound command, if one starts here.
    pub(super) fn compound(&mut self) -> Outcome<Option<CommandKind>> {
        if self.peek() == Some(b'(') {
            return self.nested(Self::parenthesis).map(Some);
        }
        let Some(word) = self.reserved() else { return Ok(None) };
        let parse = match word {
            "if" => Self::if_command,
            "while" | "until" => Self::while_command,
            "for" => Self::for_command,
            "select" => Self::select_command,
            "case" => Self::case_command,
            "{" => Self::group,
            "[[" => Self::test_command,
            _ => return Ok(None),
        };
        let kind = self.nested(parse)?;
        self.after_keyword = true;
        Ok(Some(kind))
    }

    /// `( … )` or `(( … ))`
    fn parenthesis(&mut self) -> Outcome<CommandKind> {
        if self.peek_second() != Some(b'(') {
            return self.subshell();
        }
        let second = self.past_continuations(self.pos + 1);
        match self.closing(second + 1, b'(', b')') {
            Scan::Found(end) if self.byte(end + 1) == Some(b')') => {
                self.pos = second + 1;
                let expression = self.arithmetic_until(end)?;
                self.pos = end + 2;
                self.last = self.pos;
                Ok(CommandKind::Arithmetic(expression))
            }
            Scan::Found(end) if !matches!(self.byte(end + 1), None | Some(b'\n' | b'\\')) => {
                // The scan counts brackets, of which `case` has some without a partner.
                if self.text.get(second..end).is_none_or(|inner| inner.contains("case")) {
                    return self.fail("`case` between `((`");
                }
                // Not an expression after all. Bash reads the text again, in a way that here-documents
                // do not survive.
                let documents = self.bodies.len();
                let kind = self.subshell()?;
                if self.bodies.len() == documents {
                    Ok(kind)
                } else {
                    self.fail("here-document between `((`")
                }
            }
            // Bash trips over a line that ends here.
            Scan::Found(end) => self.fail_at("`((` is closed by a single `)`", end, end + 1),
            Scan::Open => self.fail("`((` is never closed"),
            Scan::Unclear(at) => self.fail_at("quotes too deep between `((`", at, at + 1),
        }
    }

    /// `( … )`
    fn subshell(&mut self) -> Outcome<CommandKind> {
        self.advance();
        let list = self.filled_list(Stop::Parenthesis)?;
        self.advance();
        Ok(CommandKind::Subshell(list))
    }

    /// `{ …; }`
    fn group(&mut self) -> Outcome<CommandKind> {
        self.take_plain();
        Ok(CommandKind::Group(self.list_then("}", &["}"])?))
    }

    /// A list and the word that ends it.
    fn list_then(&mut self, word: &str, words: &'static [&'static str]) -> Outcome<List> {
        let list = self.filled_list(Stop::Words(words))?;
        self.expect_reserved(word)?;
        Ok(list)
    }

    /// `if …; then …; elif …; then …; else …; fi`
    fn if_command(&mut self) -> Outcome<CommandKind> {
        self.take_plain();
        let mut branches = Vec::new();
        loop {
            let condition = self.list_then("then", &["then"])?;
            let body = self.filled_list(Stop::Words(&["elif", "else", "fi"]))?;
            branches.push((condition, body));
            let word = self.reserved();
            self.take_plain();
            match word {
                Some("elif") => {}
                Some("else") => {
                    let otherwise = Some(self.list_then("fi", &["fi"])?);
                    return Ok(CommandKind::If { branches, otherwise });
                }
                _ => return Ok(CommandKind::If { branches, otherwise: None }),
            }
        }
    }

    /// `while …; do …; done`, `until …; do …; done`
    fn while_command(&mut self) -> Outcome<CommandKind> {
        let until = self.reserved() == Some("until");
        self.take_plain();
        let condition = self.list_then("do", &["do"])?;
        let body = self.list_then("done", &["done"])?;
        Ok(CommandKind::While { until, condition, body })
    }

    /// `for …`
    fn for_command(&mut self) -> Outcome<CommandKind> {
        self.take_plain();
        self.skip_blanks();
        if self.peek() == Some(b'(') && self.peek_second() == Some(b'(') {
            return self.for_arithmetic();
        }
        let (name, words, body) = self.loop_parts()?;
        Ok(CommandKind::For { name, words, body })
    }

    /// `select …`
    fn select_command(&mut self) -> Outcome<CommandKind> {
        self.take_plain();
        self.skip_blanks();
        let (name, words, body) = self.loop_parts()?;
        Ok(CommandKind::Select { name, words, body })
    }

    /// The variable, the words and the body of `for` and `select`.
    fn loop_parts(&mut self) -> Outcome<(String, Option<Vec<Word>>, List)> {
        let Some(name) = self.peek_plain(MAX_NAME).filter(|name| is_identifier(name)) else {
            return self.unexpected();
        };
        self.take_plain();
        self.skip_blanks();
        let direct = self.peek() != Some(b'\n');
        self.skip_newlines()?;
        let words = match self.peek_plain(2).as_deref() {
            Some("in") => Some(self.loop_words()?),
            Some("do") => None,
            Some("{") if !direct => None,
            _ if direct && self.peek() == Some(b';') => {
                self.advance();
                None
            }
            _ => return self.unexpected(),
        };
        Ok((name, words, self.loop_body()?))
    }

    /// `in …` up to the end of the words.
    fn loop_words(&mut self) -> Outcome<Vec<Word>> {
        self.take_plain();
        let mut words = Vec::new();
        loop {
            self.skip_blanks();
            match self.peek() {
                Some(b';') => {
                    self.advance();
                    return Ok(words);
                }
                Some(b'\n') => return Ok(words),
                _ if self.at_word() => words.push(self.word(Style::Plain)?),
                _ => return self.unexpected(),
            }
        }
    }

    /// `do …; done` or `{ …; }`
    fn loop_body(&mut self) -> Outcome<List> {
        self.skip_newlines()?;
        self.after_keyword = true;
        if self.reserved() == Some("{") {
            self.take_plain();
            return self.list_then("}", &["}"]);
        }
        self.expect_reserved("do")?;
        self.list_then("done", &["done"])
    }

    /// `for ((…; …; …)) …`
    fn for_arithmetic(&mut self) -> Outcome<CommandKind> {
        let start = self.past_continuations(self.pos + 1) + 1;
        let end = match self.closing(start, b'(', b')') {
            Scan::Found(end) if self.byte(end + 1) == Some(b')') => end,
            Scan::Found(end) | Scan::Unclear(end) => return self.fail_at("unclear `for ((`", end, end + 1),
            Scan::Open => return self.fail("`((` is never closed"),
        };
        self.pos = start;
        let expression = self.arithmetic_until(end)?;
        self.pos = end + 2;
        self.last = self.pos;
        let Some(header) = split_header(expression) else {
            return self.fail_at("`for ((` needs three expressions", start, end);
        };
        self.skip_blanks();
        if self.peek() == Some(b';') {
            self.advance();
        }
        let body = self.loop_body()?;
        Ok(CommandKind::ForArithmetic { header, body })
    }

    /// `case … in … esac`
    fn case_command(&mut self) -> Outcome<CommandKind> {
        self.take_plain();
        self.skip_blanks();
        if !self.at_word() {
            return self.unexpected();
        }
        let subject = self.word(Style::Plain)?;
        self.skip_newlines()?;
        if self.peek_plain(2).as_deref() != Some("in") {
            return self.unexpected();
        }
        self.take_plain();
        let mut arms = Vec::new();
        let documents = self.bodies.len();
        loop {
            self.skip_newlines()?;
            if self.reserved() == Some("esac") {
                // Bash writes a substitution out and reads it again, and loses its way here.
                if self.in_substitution && self.bodies.len() > documents {
                    return self.fail("here-document between `case` and `esac` in a substitution");
                }
                self.take_plain();
                return Ok(CommandKind::Case { subject, arms });
            }
            arms.push(self.arm()?);
        }
    }

    /// One arm with what ends it, if it is not `esac`.
    fn arm(&mut self) -> Outcome<Arm> {
        self.eat(b'(');
        let mut patterns = Vec::new();
        loop {
            self.skip_blanks();
            // A lone `}` would close a group around the `case`, wherever that one is.
            if !self.at_word() || self.reserved() == Some("}") {
                return self.unexpected();
            }
            patterns.push(self.word(Style::Plain)?);
            self.skip_blanks();
            match self.peek() {
                Some(b'|') => self.advance(),
                Some(b')') => break,
                _ => return self.unexpected(),
            }
        }
        self.advance();
        let body = self.list(Stop::Arm)?;
        if !self.eat(b';') {
            return Ok(Arm { patterns, body, end: ArmEnd::Break });
        }
        let twice = self.eat(b';');
        let end = match (twice, self.eat(b'&')) {
            (true, false) => ArmEnd::Break,
            (true, true) => ArmEnd::TestNext,
            (false, _) => ArmEnd::FallThrough,
        };
        self.after_keyword = true;
        Ok(Arm { patterns, body, end })
    }
}

/// Splits the header of an arithmetic loop at its semicolons. Bash does not look at parentheses
/// when it does so; a semicolon inside of some is refused.
fn split_header(expression: Arithmetic) -> Option<[Arithmetic; 3]> {
    let mut parts = vec![Arithmetic::of(Vec::new(), expression.span)];
    let mut depth = 0_i32;
    for piece in expression.pieces {
        let PieceKind::Literal(text) = piece.kind else {
            parts.last_mut()?.pieces.push(piece);
            continue;
        };
        for (index, part) in text.split(';').enumerate() {
            if index > 0 {
                if depth != 0 {
                    return None;
                }
                parts.push(Arithmetic::of(Vec::new(), expression.span));
            }
            for byte in part.bytes() {
                depth += i32::from(matches!(byte, b'(' | b'[')) - i32::from(matches!(byte, b')' | b']'));
            }
            if !part.is_empty() {
                let kind = PieceKind::Literal(part.to_owned());
                parts.last_mut()?.pieces.push(Piece { kind, span: piece.span });
            }
        }
    }
    parts.try_into().ok()
}
