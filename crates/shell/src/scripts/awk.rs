//! awk: a lexer and just enough of the grammar to know in which statement an operator stands.
//!
//! A pipe is always a command. A greater-than sign is a comparison unless it stands in a `print`
//! or `printf` outside all parentheses, and a less-than sign is one unless it follows `getline`.

use std::collections::HashSet;

use self::lexer::{Kind, Lexed, Token, lex};
use super::{FindingKind, ScriptEffects};

mod lexer;

/// Functions that compute, or that only close or flush what is open already.
const FUNCTIONS: &[&str] = &[
    "and", "asort", "asorti", "atan2", "close", "compl", "cos", "exp", "fflush", "gensub", "gsub", "index",
    "int", "isarray", "length", "log", "lshift", "match", "mkbool", "mktime", "or", "patsplit", "rand",
    "rshift", "sin", "split", "sprintf", "sqrt", "srand", "strftime", "strtonum", "sub", "substr", "systime",
    "tolower", "toupper", "typeof", "xor",
];

const ASSIGNMENTS: &[&str] = &["=", "+=", "-=", "*=", "/=", "%=", "^=", "**=", "++", "--"];

pub(super) fn check(program: &str) -> ScriptEffects {
    let lexed = lex(program, true);
    let mut effects = read(&lexed, program).effects;
    if lexed.slash_in_brackets {
        // Where the other reading makes no sense an awk that reads so refuses the program, and
        // what this parser does not understand in it proves nothing.
        let other = lex(program, false);
        let other = read(&other, program);
        if !other.stray_closer {
            let known = other.effects.findings.into_iter().filter(|found| found.kind != FindingKind::Unknown);
            effects.findings.extend(known);
        }
    }
    effects
}

fn read<'t, 'a>(lexed: &'t Lexed<'a>, program: &str) -> Checker<'t, 'a> {
    let mut checker = Checker::new(lexed);
    checker.run();
    if let Some((at, why)) = lexed.problem {
        checker.effects.give_up(program, at, why);
    } else if checker.braces > 0 || !checker.levels.is_empty() {
        checker.effects.give_up(program, program.len(), "a bracket is not closed");
    }
    checker
}

/// An open parenthesis or bracket, or the statement itself.
#[derive(Default)]
struct Level {
    closer: &'static str,
    /// A `getline` stands before, so a less-than sign would name its file.
    getline: bool,
}

struct Checker<'t, 'a> {
    tokens: &'t [Token<'a>],
    defined: HashSet<&'a str>,
    effects: ScriptEffects,
    /// What is open inside the current statement.
    levels: Vec<Level>,
    /// The statement itself.
    base: Level,
    braces: usize,
    in_print: bool,
    /// Something was closed that was not open, which no awk accepts.
    stray_closer: bool,
}

impl<'t, 'a> Checker<'t, 'a> {
    fn new(lexed: &'t Lexed<'a>) -> Self {
        let tokens = lexed.tokens.as_slice();
        let pairs = tokens.iter().zip(tokens.iter().skip(1));
        let defined = pairs
            .filter(|(word, _)| word.is_word("function") || word.is_word("func"))
            .map(|(_, name)| name.text)
            .collect();
        Self {
            tokens,
            defined,
            effects: ScriptEffects::default(),
            levels: Vec::new(),
            base: Level::default(),
            braces: 0,
            in_print: false,
            stray_closer: false,
        }
    }

    fn run(&mut self) {
        for (index, token) in self.tokens.iter().enumerate() {
            match token.kind {
                Kind::Symbol => self.symbol(index, token),
                Kind::Keyword => self.keyword(token),
                Kind::Name | Kind::Call => self.name(index, token),
                Kind::Newline if self.ends_statement(index) => self.end_statement(),
                Kind::Text if token.text.contains("/inet") => {
                    self.add(FindingKind::Network, token, "names a network connection");
                }
                Kind::Newline | Kind::Text | Kind::Number | Kind::Regex => {}
            }
        }
    }

    fn add(&mut self, kind: FindingKind, token: &Token<'a>, what: &str) {
        self.effects.add(kind, token.at.clone(), what);
    }

    fn near(&self, index: usize, offset: isize) -> Option<&'t Token<'a>> {
        self.tokens.get(index.checked_add_signed(offset)?)
    }

    fn level(&mut self) -> &mut Level {
        self.levels.last_mut().unwrap_or(&mut self.base)
    }

    /// A newline ends a statement unless an operator or comma before it waits for more.
    fn ends_statement(&self, index: usize) -> bool {
        let waits = |token: &Token<'_>| {
            token.kind == Kind::Symbol && !matches!(token.text, ")" | "]" | "++" | "--" | "{" | "}" | ";")
        };
        self.levels.is_empty() && !self.near(index, -1).is_some_and(waits)
    }

    fn end_statement(&mut self) {
        self.in_print = false;
        self.base.getline = false;
    }

    fn symbol(&mut self, index: usize, token: &Token<'a>) {
        match token.text {
            "(" => self.levels.push(Level { closer: ")", getline: false }),
            "[" => self.levels.push(Level { closer: "]", getline: false }),
            ")" | "]" => self.close(token),
            "{" | "}" => self.brace(token),
            ";" if self.levels.is_empty() => self.end_statement(),
            ";" | "," | "&&" | "||" => self.level().getline = false,
            "|" | "|&" => self.add(FindingKind::Exec, token, "runs a command"),
            ">" if self.in_print && self.levels.is_empty() => self.write(index, token),
            ">>" => self.write(index, token),
            "<" if self.level().getline => self.read(index, token),
            "@" => self.at_sign(index, token),
            _ => {}
        }
    }

    fn close(&mut self, token: &Token<'a>) {
        if self.levels.pop().is_none_or(|level| level.closer != token.text) {
            self.stray_closer = true;
            self.add(FindingKind::Unknown, token, "a bracket is closed that was not opened");
        }
    }

    fn brace(&mut self, token: &Token<'a>) {
        if !self.levels.is_empty() {
            self.add(FindingKind::Unknown, token, "a brace inside brackets");
        }
        if token.text == "{" {
            self.braces += 1;
        } else if let Some(left) = self.braces.checked_sub(1) {
            self.braces = left;
        } else {
            self.stray_closer = true;
            self.add(FindingKind::Unknown, token, "a brace is closed that was not opened");
        }
        self.end_statement();
    }

    fn keyword(&mut self, token: &Token<'a>) {
        match token.text {
            "print" | "printf" if self.levels.is_empty() => self.in_print = true,
            // The head of a `for` may hold a whole statement, so this is not always a mistake.
            "print" | "printf" => self.add(FindingKind::Unknown, token, "prints inside parentheses"),
            "getline" => self.level().getline = true,
            _ => {}
        }
    }

    fn name(&mut self, index: usize, token: &Token<'a>) {
        match token.text {
            "system" => self.add(FindingKind::Exec, token, "runs a command"),
            "ENVIRON" => self.add(FindingKind::Environment, token, "reads the environment"),
            "SYMTAB" | "FUNCTAB" => {
                self.add(FindingKind::Unknown, token, "reaches variables by computed name")
            }
            "ARGV" if !self.only_compared(index) => {
                self.add(FindingKind::Unknown, token, "may change which files are read");
            }
            "ARGC" if self.assigned(index, index + 1) => {
                self.add(FindingKind::Unknown, token, "changes which files are read");
            }
            "PROCINFO" if self.changes_settings(index) => {
                self.add(FindingKind::Unknown, token, "changes how awk itself works");
            }
            name if token.kind == Kind::Call
                && !FUNCTIONS.contains(&name)
                && !self.defined.contains(name) =>
            {
                self.add(FindingKind::Unknown, token, "calls an unknown function");
            }
            _ => {}
        }
    }

    /// Whether the variable from token `first` to before token `after` gets a value here.
    fn assigned(&self, first: usize, after: usize) -> bool {
        let changes = |token: &Token<'_>| token.kind == Kind::Symbol && ASSIGNMENTS.contains(&token.text);
        let takes = |token: &Token<'_>| matches!(token.text, "getline" | "++" | "--");
        self.tokens.get(after).is_some_and(changes) || self.near(first, -1).is_some_and(takes)
    }

    /// `FILENAME == ARGV[1]` is how programs tell their inputs apart; nothing else is let pass,
    /// because elements can also be changed through functions.
    fn only_compared(&self, index: usize) -> bool {
        let compares = |token: &Token<'_>| token.is("==") || token.is("!=");
        let simple = self.near(index, 1).is_some_and(|token| token.is("["))
            && self.near(index, 2).is_some_and(|token| matches!(token.kind, Kind::Name | Kind::Number))
            && self.near(index, 3).is_some_and(|token| token.is("]"));
        let compared =
            self.near(index, -1).is_some_and(compares) || self.near(index, 4).is_some_and(compares);
        simple && compared && !self.assigned(index, index + 4)
    }

    /// Everything but reading a plain element, and the order in which arrays are walked.
    fn changes_settings(&self, index: usize) -> bool {
        if self.near(index, -1).is_some_and(|token| token.is_word("in")) {
            return false;
        }
        let simple = self.near(index, 1).is_some_and(|token| token.is("["))
            && self.near(index, 2).is_some_and(|token| matches!(token.kind, Kind::Text | Kind::Name))
            && self.near(index, 3).is_some_and(|token| token.is("]"));
        let order = self.near(index, 2).is_some_and(|token| token.text == "\"sorted_in\"");
        !simple || (!order && self.assigned(index, index + 4))
    }

    fn write(&mut self, index: usize, token: &Token<'a>) {
        let ends = |after: &Token<'_>| after.kind == Kind::Newline || after.is(";") || after.is("}");
        match self.literal(index, ends) {
            Some("/dev/stdout" | "/dev/stderr") => {}
            name => self.add(FindingKind::Write(name.map(str::to_owned)), token, "writes a file"),
        }
    }

    fn read(&mut self, index: usize, token: &Token<'a>) {
        const ENDS: &[&str] = &[")", ";", "}", ",", "&&", "||", ">", ">=", "<=", "==", "!="];
        let ends =
            |after: &Token<'_>| after.kind == Kind::Newline || ENDS.iter().any(|&symbol| after.is(symbol));
        match self.literal(index, ends) {
            Some("-" | "/dev/stdin") => {}
            Some(name) => self.add(FindingKind::Read(name.to_owned()), token, "reads a file"),
            None => self.add(FindingKind::Unknown, token, "reads a file whose name is computed"),
        }
    }

    /// The file named after a redirection, if it is one plain string and nothing is appended.
    fn literal(&self, index: usize, ends: impl Fn(&Token<'a>) -> bool) -> Option<&'a str> {
        let target = self.near(index, 1).filter(|token| token.kind == Kind::Text)?;
        let plain = target.text.strip_prefix('"')?.strip_suffix('"')?;
        (!plain.contains('\\') && self.near(index, 2).is_none_or(ends)).then_some(plain)
    }

    fn at_sign(&mut self, index: usize, token: &Token<'a>) {
        match self.near(index, 1) {
            Some(next) if next.kind == Kind::Regex => {}
            Some(next) if matches!(next.text, "include" | "load") => {
                self.add(FindingKind::Module, token, "loads code from another file");
            }
            _ => self.add(FindingKind::Unknown, token, "calls a function by computed name"),
        }
    }
}
