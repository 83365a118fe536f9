//! Scripts in other languages that stand in a command line: sed, awk and jq.
//!
//! Each language has a small parser that knows what a harmless script may hold. The question is
//! only whether a script leaves its filter, that is, does anything beyond reading its input and
//! printing. Whatever a parser does not recognise is reported as [`FindingKind::Unknown`], so an
//! empty result is a promise and not a guess.

use std::ops::Range;

mod awk;
mod jq;
mod perl;
mod sed;
#[cfg(test)]
mod tests;

pub(crate) use perl::PerlEdit;

use crate::value::Argument;

/// What a script in another language does, as far as it leaves its filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ScriptEffects {
    /// Everything of note, in the order of the text; empty when the script only reads its input
    /// and prints.
    pub(crate) findings: Vec<Finding>,
}

impl ScriptEffects {
    /// Whether the script only reads its input and prints.
    #[cfg(test)]
    fn is_clean(&self) -> bool {
        self.findings.is_empty()
    }

    fn add(&mut self, kind: FindingKind, at: Range<usize>, what: &str) {
        self.findings.push(Finding { kind, at, what: what.to_owned() });
    }

    /// The rest of `text` was not understood. A parser may have stopped inside a character.
    fn give_up(&mut self, text: &str, at: usize, why: &str) {
        self.add(FindingKind::Unknown, text.floor_char_boundary(at)..text.len(), why);
    }
}

/// One thing a script does beyond filtering.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Finding {
    /// What sort of thing.
    pub(crate) kind: FindingKind,
    /// The bytes of the script that cause it.
    pub(crate) at: Range<usize>,
    /// A short phrase for a person, such as "runs a command".
    pub(crate) what: String,
}

/// The ways in which a script leaves its filter.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum FindingKind {
    /// Runs a program.
    Exec,
    /// Writes a file; its name when the script spells it out.
    Write(Option<String>),
    /// Reads a file that the script names.
    Read(String),
    /// Opens a connection.
    Network,
    /// Reads environment variables.
    Environment,
    /// Loads code or metadata from other files.
    Module,
    /// Not understood, so nothing may be assumed about it.
    Unknown,
}

/// What a sed script does. Fragments of several `-e` flags are joined by newlines beforehand.
///
/// GNU sed is the model, and the places where its versions or other seds would split a script
/// differently are refused. Extended regular expressions end where basic ones do, so the flag
/// for them makes no difference here.
pub(crate) fn sed(script: &str) -> ScriptEffects {
    sed::check(script)
}

/// What an awk program does, for POSIX awk with the extensions of gawk.
pub(crate) fn awk(program: &str) -> ScriptEffects {
    awk::check(program)
}

/// What a jq filter does.
pub(crate) fn jq(filter: &str) -> ScriptEffects {
    jq::check(filter)
}

/// What `perl` does to files, where that is to replace text in them and nothing else.
pub(crate) fn perl(arguments: &[Argument]) -> Option<PerlEdit<'_>> {
    perl::in_place(arguments)
}

/// Why a parser gave up.
type Step<T = ()> = Result<T, &'static str>;

/// A place in a script. All three languages are held together by ASCII, so single bytes will do:
/// no byte of a longer UTF-8 sequence can be mistaken for one of them.
struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn peek(&self) -> Option<u8> {
        self.peek_at(0)
    }

    fn peek_at(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn bump(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.at += 1;
        Some(byte)
    }

    fn eat(&mut self, text: &str) -> bool {
        let found = self.text.as_bytes().get(self.at..).is_some_and(|rest| rest.starts_with(text.as_bytes()));
        if found {
            self.at += text.len();
        }
        found
    }

    fn skip_while(&mut self, wanted: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&wanted) {
            self.at += 1;
        }
    }

    /// The text from `start` to here.
    fn since(&self, start: usize) -> &'a str {
        self.text.get(start..self.at).unwrap_or_default()
    }
}

fn starts_name(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

fn continues_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}
