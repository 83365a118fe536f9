//! Secrets that are recognised by the name before them: `PASSWORD=…`, `token: …`, `"api_key": "…"`,
//! `--password …`.
//!
//! The value of a secret name is hidden only when it can be the secret itself. Variables, commands, paths, URLs,
//! types and calls stay, because the log must show what was run and where it went.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::names::{Secrecy, looks_random, secrecy};
use super::shapes;

/// How far a name is followed to each side.
const NAME_BYTES: usize = 64;

/// How far the end of a value is searched before it is taken for granted.
const VALUE_BYTES: usize = 512;

/// What may stand between a name and its value: a closing quote and bracket, a type annotation, the sign itself. A
/// bracket alone would make names of the words in `[redacted: token]`.
static SEPARATOR: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let sign = r"(?::[ \t]?[&A-Za-z_<>\[\]?]{1,30}[ \t]{0,4}=|=>|:=|!?={1,3}|:)";
    Regex::new(&format!(r#"\A(?:\\{{0,4}}["']\]?)?[ \t]{{0,8}}{sign}[ \t]{{0,8}}"#)).ok()
});

/// The word before the secret in an `Authorization` header, which is also found behind other names. It stays.
static SCHEME: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\A(?i:bearer|basic|token|digest|negotiate|apikey|api-key|bot)[ \t]{1,4}").ok()
});

/// Values that say something about a secret, or are the type of one.
const NOT_SECRETS: &str = "any bool bytes changed denied empty env expired false file incorrect input int invalid missing nil \
    no none null number object ok optional password prompt required secret set stdin str string text \
    token true undefined unset unknown valid wrong yes";

/// The secret whose name contains the byte at `at`: what to hide, and its kind.
pub(super) fn find(text: &str, at: usize) -> Option<(Range<usize>, &'static str)> {
    let name = name_around(text, at)?;
    if !may_have_value(text, &name) {
        return None;
    }
    let secrecy = secrecy(&text[name.clone()])?;
    let (start, context) = value_start(text, &name)?;
    let (mut start, quote) = opening_quote(text, start);
    start += SCHEME.as_ref()?.find(&text[start..]).map_or(0, |scheme| scheme.len());
    let end = value_end(text, start, quote)?;
    let value = &text[start..end];
    if let Some(found) = shapes::find(text, start) {
        return Some(found);
    }
    let hide = match secrecy {
        Secrecy::Sure(kind) => {
            can_be_secret(value, kind) && (quote.is_some() || context.trusts(text, &name, start..end, kind))
        }
        Secrecy::Maybe(_) => looks_random(value) && can_be_secret(value, "key"),
    };
    let (Secrecy::Sure(kind) | Secrecy::Maybe(kind)) = secrecy;
    hide.then(|| (start..whole_end(text, end), kind))
}

/// Whether a value that stands behind a secret name can be the secret, going by the value alone.
pub(super) fn can_be_secret(value: &str, kind: &str) -> bool {
    let is_password = matches!(kind, "password" | "passphrase");
    let has_space = value.contains([' ', '\t', '\n']);
    let enough = if is_password { 1 } else { 4 };
    value.len() >= enough
        && value.contains(|c: char| c.is_alphanumeric())
        // Blanks at the edges are what stands between two quoted words: grep "password=" "file".
        && value.trim() == value
        && !value.starts_with(['$', '<', '{', '%'])
        && !value.starts_with("[redacted: ")
        && !value.contains("$(")
        && !value.contains('`')
        && !value.contains("://")
        && !is_path(value)
        && !(has_space && (!is_password || value.contains(['|', ';', '&', '<', '>', '$'])))
        && !NOT_SECRETS.split(' ').any(|word| word.eq_ignore_ascii_case(value))
}

fn is_path(value: &str) -> bool {
    value.starts_with(['/', '~', '.']) && value.contains('/') && !looks_random(value)
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.')
}

/// The whole name around a position, or nothing when it is too long to be one.
fn name_around(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let before = bytes[..at].iter().rev().take(NAME_BYTES).take_while(|byte| is_name_byte(**byte)).count();
    let after = bytes[at..].iter().take(NAME_BYTES).take_while(|byte| is_name_byte(**byte)).count();
    (after < NAME_BYTES).then_some(at - before..at + after)
}

/// A quick look behind the name, because most words like `key` stand in prose.
fn may_have_value(text: &str, name: &Range<usize>) -> bool {
    let rest = text.as_bytes()[name.end..].iter().take(16);
    let mut rest = rest.skip_while(|byte| matches!(byte, b' ' | b'\t' | b'"' | b'\'' | b'\\' | b']'));
    matches!(rest.next(), Some(b':' | b'=' | b'!')) || text[name.clone()].starts_with("--")
}

/// What the surroundings of a value without quotes say.
enum Context {
    /// `NAME=value`, as in shells, URLs and environment files.
    Tight,
    /// `--name value`.
    Flag,
    /// `name: value` or `name = value`, which is also how programs and prose look.
    Loose,
}

impl Context {
    /// Whether a value without quotes is a literal here rather than a piece of program or prose.
    fn trusts(&self, text: &str, name: &Range<usize>, value: Range<usize>, kind: &str) -> bool {
        let word = &text[value.clone()];
        let after = text[value.end..].bytes().next();
        if matches!(after, Some(b'(' | b'`')) || word.contains("::") {
            return false;
        }
        // A value that is itself the name of a secret is a variable.
        let names_a_secret =
            matches!(secrecy(word), Some(Secrecy::Sure(_))) && !word.contains(|c: char| c.is_ascii_digit());
        if names_a_secret {
            return false;
        }
        match self {
            Self::Tight => true,
            Self::Flag => !word.starts_with('-'),
            Self::Loose => {
                let plain =
                    word.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'.'));
                let strong = matches!(kind, "password" | "passphrase" | "authorization");
                looks_random(word) || ((strong || !plain) && stands_alone(text, name.start, after))
            }
        }
    }
}

/// Whether name and value fill their line, quoted string or JSON member.
fn stands_alone(text: &str, name_start: usize, after: Option<u8>) -> bool {
    let line = text[..name_start].bytes().rev().take(NAME_BYTES).take_while(|byte| *byte != b'\n');
    let quoted = text[..name_start].ends_with(['"', '\'']);
    let begins = quoted || !line.into_iter().any(|byte| byte.is_ascii_alphabetic());
    let ends = match after {
        None | Some(b'\n' | b'\r' | b'"' | b'\'' | b'\\') => true,
        Some(b',' | b'}') => quoted,
        _ => false,
    };
    begins && ends
}

/// Where the value of a name begins, and in which context.
fn value_start(text: &str, name: &Range<usize>) -> Option<(usize, Context)> {
    let rest = &text[name.end..];
    if let Some(separator) = SEPARATOR.as_ref()?.find(rest) {
        if separator.as_str() == ":" && rest[1..].starts_with("//") {
            // The name is the scheme of a URL, and what follows is a destination.
            return None;
        }
        let tight = separator.as_str().ends_with('=') && !separator.as_str().contains([' ', '\t', ':', '!']);
        return Some((name.end + separator.end(), if tight { Context::Tight } else { Context::Loose }));
    }
    let spaces = rest.bytes().take(8).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let is_flag = text[name.clone()].starts_with("--") && spaces > 0;
    is_flag.then_some((name.end + spaces, Context::Flag))
}

/// Steps over an opening quote, which may be escaped, and returns it.
fn opening_quote(text: &str, at: usize) -> (usize, Option<&str>) {
    let rest = &text[at..];
    let escapes = rest.bytes().take(4).take_while(|byte| *byte == b'\\').count();
    match rest.as_bytes().get(escapes) {
        Some(b'"' | b'\'') => (at + escapes + 1, Some(&rest[..=escapes])),
        _ => (at, None),
    }
}

/// Where a value ends: at its closing quote, at the first character that no plain word has, or where the search
/// is given up.
fn value_end(text: &str, start: usize, quote: Option<&str>) -> Option<usize> {
    let rest = &text[start..];
    let near = &rest[..rest.floor_char_boundary(VALUE_BYTES)];
    if let Some(quote) = quote {
        let line = near.split('\n').next().unwrap_or(near);
        if let Some(length) = closing_quote(line, quote) {
            return (length > 0).then_some(start + length);
        }
    }
    let length = near.as_bytes().iter().position(ends_word).unwrap_or(near.len());
    (length > 0).then_some(start + length)
}

/// The end of the word that goes on at `end`. Only asked for what will be hidden and thus passed over, because a
/// long word must not be walked once for each name in it.
fn whole_end(text: &str, end: usize) -> usize {
    text.as_bytes()[end..].iter().position(ends_word).map_or(text.len(), |more| end + more)
}

fn ends_word(byte: &u8) -> bool {
    byte.is_ascii_whitespace()
        || matches!(
            byte,
            b'"' | b'\''
                | b'`'
                | b'&'
                | b';'
                | b'|'
                | b'<'
                | b'>'
                | b'('
                | b')'
                | b'{'
                | b'}'
                | b'['
                | b']'
                | b','
                | b'\\'
        )
}

/// Position of the closing quote; one behind a backslash belongs to the value.
fn closing_quote(line: &str, quote: &str) -> Option<usize> {
    line.match_indices(quote).map(|(at, _)| at).find(|at| !line[..*at].ends_with('\\'))
}
