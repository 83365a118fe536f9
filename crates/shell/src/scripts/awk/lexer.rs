//! The tokens of awk. The one hard question is whether a slash divides or opens a regular
//! expression; where awks could answer differently the program is refused.

use std::ops::Range;

use super::super::{Cursor, Step, continues_name, starts_name};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Name,
    /// A name with a parenthesis right behind it.
    Call,
    Keyword,
    Number,
    Text,
    Regex,
    Newline,
    Symbol,
}

#[derive(Debug, Clone)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    pub(super) at: Range<usize>,
}

impl Token<'_> {
    pub(super) fn is(&self, symbol: &str) -> bool {
        self.kind == Kind::Symbol && self.text == symbol
    }

    pub(super) fn is_word(&self, word: &str) -> bool {
        self.kind == Kind::Keyword && self.text == word
    }
}

const KEYWORDS: &[&str] = &[
    "BEGIN",
    "BEGINFILE",
    "END",
    "ENDFILE",
    "break",
    "case",
    "continue",
    "default",
    "delete",
    "do",
    "else",
    "exit",
    "for",
    "func",
    "function",
    "getline",
    "if",
    "in",
    "next",
    "nextfile",
    "print",
    "printf",
    "return",
    "switch",
    "while",
];

/// Longest first, so that the first that fits is the right one.
const SYMBOLS: &[&str] = &[
    "**=", "**", "++", "--", "+=", "-=", "*=", "/=", "%=", "^=", "==", "!=", "<=", ">=", "!~", "&&", "||",
    "|&", ">>", "{", "}", "(", ")", "[", "]", ";", ",", "+", "-", "*", "/", "%", "^", "!", "<", ">", "|",
    "?", ":", "~", "$", "=", "@",
];

/// What became of a program.
pub(super) struct Lexed<'a> {
    pub(super) tokens: Vec<Token<'a>>,
    /// Why the rest from the given byte on was not understood.
    pub(super) problem: Option<(usize, &'static str)>,
    /// A slash stood inside brackets of a regular expression, where some awks end it.
    pub(super) slash_in_brackets: bool,
}

/// Splits a program. `brackets` tells whether a slash inside brackets belongs to the regular
/// expression, as it does in gawk and mawk but not in all awks.
pub(super) fn lex(program: &str, brackets: bool) -> Lexed<'_> {
    let lexed = Lexed { tokens: Vec::new(), problem: None, slash_in_brackets: false };
    let mut lexer =
        Lexer { cursor: Cursor::new(program), brackets, lexed, groups: Vec::new(), after_header: false };
    if let Err(why) = lexer.run() {
        lexer.lexed.problem = Some((lexer.cursor.at, why));
    }
    lexer.lexed
}

struct Lexer<'a> {
    cursor: Cursor<'a>,
    brackets: bool,
    lexed: Lexed<'a>,
    /// Open parentheses: whether each belongs to the head of an `if`, `for`, `while` or `switch`.
    groups: Vec<bool>,
    /// The last token closed such a head.
    after_header: bool,
}

impl<'a> Lexer<'a> {
    fn run(&mut self) -> Step {
        while let Some(byte) = self.cursor.peek() {
            let start = self.cursor.at;
            match byte {
                b' ' | b'\t' => self.cursor.at += 1,
                b'#' => self.cursor.skip_while(|byte| byte != b'\n'),
                b'\\' => self.continuation()?,
                b'\n' => {
                    self.cursor.at += 1;
                    self.push(Kind::Newline, start);
                }
                b'"' => self.text(start)?,
                b'0'..=b'9' | b'.' => self.number(start)?,
                b'/' if self.opens_regex()? => self.regex(start)?,
                b'/' if self.cursor.peek_at(1) == Some(b'=') => self.divide_into(start)?,
                _ if starts_name(byte) => self.word(start),
                _ => self.symbol(start)?,
            }
        }
        Ok(())
    }

    fn push(&mut self, kind: Kind, start: usize) {
        self.after_header = false;
        let text = self.cursor.since(start);
        self.lexed.tokens.push(Token { kind, text, at: start..self.cursor.at });
    }

    /// A backslash joins two lines. It must not join two halves of a word, because an awk that
    /// glued them would see another word than this lexer does.
    fn continuation(&mut self) -> Step {
        let glued = self.cursor.at.checked_sub(1).and_then(|at| self.cursor.text.as_bytes().get(at).copied());
        if !self.cursor.eat("\\\n") {
            return Err("a stray backslash");
        }
        if glued.is_some_and(continues_name) && self.cursor.peek().is_some_and(continues_name) {
            return Err("a word that is split over two lines");
        }
        Ok(())
    }

    fn text(&mut self, start: usize) -> Step {
        self.cursor.at += 1;
        loop {
            match self.cursor.bump() {
                None | Some(b'\n') => return Err("a string is not closed"),
                Some(b'"') => break,
                Some(b'\\') => {
                    self.cursor.bump();
                }
                Some(_) => {}
            }
        }
        self.push(Kind::Text, start);
        Ok(())
    }

    fn number(&mut self, start: usize) -> Step {
        if self.cursor.eat("0x") || self.cursor.eat("0X") {
            self.cursor.skip_while(|byte| byte.is_ascii_hexdigit());
        } else {
            self.cursor.skip_while(|byte| byte.is_ascii_digit());
            self.cursor.eat(".");
            self.cursor.skip_while(|byte| byte.is_ascii_digit());
            let sign = usize::from(matches!(self.cursor.peek_at(1), Some(b'+' | b'-')));
            let exponent = matches!(self.cursor.peek(), Some(b'e' | b'E'));
            if exponent && self.cursor.peek_at(1 + sign).is_some_and(|byte| byte.is_ascii_digit()) {
                self.cursor.at += 1 + sign;
                self.cursor.skip_while(|byte| byte.is_ascii_digit());
            }
        }
        if self.cursor.since(start) == "."
            || self.cursor.peek().is_some_and(|byte| starts_name(byte) || byte == b'.')
        {
            return Err("an odd number");
        }
        self.push(Kind::Number, start);
        Ok(())
    }

    fn word(&mut self, start: usize) {
        self.cursor.skip_while(continues_name);
        let kind = if KEYWORDS.contains(&self.cursor.since(start)) {
            Kind::Keyword
        } else if self.cursor.peek() == Some(b'(') {
            Kind::Call
        } else {
            Kind::Name
        };
        self.push(kind, start);
    }

    fn symbol(&mut self, start: usize) -> Step {
        let symbol = SYMBOLS.iter().find(|&&symbol| self.cursor.eat(symbol));
        let mut closes_header = false;
        match symbol {
            None => return Err("an unexpected character"),
            Some(&":") if self.cursor.peek() == Some(b':') => return Err("a namespace"),
            Some(&"(") => {
                let header = self.lexed.tokens.last().is_some_and(|last| {
                    last.kind == Kind::Keyword && matches!(last.text, "if" | "for" | "while" | "switch")
                });
                self.groups.push(header);
            }
            Some(&")") => closes_header = self.groups.pop().unwrap_or(false),
            Some(_) => {}
        }
        self.push(Kind::Symbol, start);
        self.after_header = closes_header;
        Ok(())
    }

    /// `/=` after an operand. Where no value can be assigned, gawk takes even this for the start
    /// of a regular expression, which needs a second slash in the line.
    fn divide_into(&mut self, start: usize) -> Step {
        let mut rest = self.cursor.text.as_bytes().iter().skip(start + 1).take_while(|&&byte| byte != b'\n');
        if rest.any(|&byte| byte == b'/') {
            return Err("a slash that may divide or open a regular expression");
        }
        self.symbol(start)
    }

    /// Whether a slash here opens a regular expression: it does where an operand must follow.
    fn opens_regex(&self) -> Step<bool> {
        const EITHER: Step<bool> = Err("a slash that may divide or open a regular expression");
        let mut before = self.lexed.tokens.iter().rev();
        let Some(last) = before.next() else { return Ok(true) };
        match (last.kind, last.text) {
            (Kind::Name, "length") | (Kind::Keyword, "getline") | (Kind::Regex, _) => EITHER,
            (Kind::Name | Kind::Call | Kind::Number | Kind::Text, _) | (Kind::Symbol, "]") => Ok(false),
            (Kind::Symbol, ")") if self.after_header => EITHER,
            (Kind::Symbol, ")") => Ok(false),
            (Kind::Symbol, "++" | "--") => match before.next() {
                Some(token) if token.kind == Kind::Name || token.is("]") => Ok(false),
                _ => EITHER,
            },
            _ => Ok(true),
        }
    }

    fn regex(&mut self, start: usize) -> Step {
        self.cursor.at += 1;
        // What brackets of this expression were like: awks agree on plain ones only.
        let (mut slashes, mut odd) = (false, false);
        loop {
            match self.cursor.bump() {
                None | Some(b'\n') => return Err("a regular expression is not closed"),
                Some(b'/') => break,
                Some(b'\\') => match self.cursor.bump() {
                    None | Some(b'\n') => return Err("a regular expression over two lines"),
                    Some(_) => {}
                },
                Some(b'[') if self.brackets => self.bracket(&mut slashes, &mut odd)?,
                Some(b']') => odd = true,
                Some(_) => {}
            }
        }
        if slashes && odd {
            return Err("brackets that awks read differently");
        }
        self.lexed.slash_in_brackets |= slashes;
        self.push(Kind::Regex, start);
        Ok(())
    }

    fn bracket(&mut self, slashes: &mut bool, odd: &mut bool) -> Step {
        self.cursor.eat("^");
        *odd |= self.cursor.eat("]");
        loop {
            match self.cursor.bump() {
                None | Some(b'\n') => return Err("a regular expression is not closed"),
                Some(b']') => return Ok(()),
                Some(b'/') => *slashes = true,
                Some(b'\\') => match self.cursor.bump() {
                    None | Some(b'\n') => return Err("a regular expression over two lines"),
                    // An escaped slash ends the expression in no awk.
                    Some(b'/') => {}
                    Some(_) => *odd = true,
                },
                Some(b'[') => {
                    *odd = true;
                    if self.cursor.eat(":") {
                        self.cursor.skip_while(|byte| byte.is_ascii_alphabetic());
                        if !self.cursor.eat(":]") {
                            return Err("an odd bracket in a regular expression");
                        }
                    }
                }
                Some(_) => {}
            }
        }
    }
}
