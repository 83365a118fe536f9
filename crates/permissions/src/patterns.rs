//! Whether two glob patterns can mean the same path.

use crate::glob::{self, Token};

/// How many letters a pattern must spell out before it is taken to aim at something.
const FEWEST_LETTERS: usize = 3;
/// Deeper paths are not compared; they count as meeting.
const MOST_PARTS: usize = 24;

/// Whether `pattern`, an absolute path with wildcards, aims at what one of `secrets` names.
pub(crate) fn reaches(pattern: &str, secrets: &[String]) -> bool {
    let pattern = pattern.to_lowercase();
    let parts: Vec<&str> = pattern.split('/').filter(|part| !part.is_empty()).collect();
    secrets.iter().any(|secret| {
        let anchored = !secret.starts_with("**/");
        let secret: Vec<&str> = secret.split('/').filter(|part| !part.is_empty() && *part != "**").collect();
        // Every secret pattern is a run of names, open at the front and perhaps at the end.
        let runs = parts.windows(secret.len().max(1)).enumerate();
        runs.into_iter().any(|(at, run)| {
            (!anchored || at == 0) && secret.iter().zip(run).all(|(secret, part)| aims(part, secret))
        })
    })
}

/// Whether a path with wildcards and a rule, both absolute, can mean the same file. A rule about a
/// folder is about all that is in it.
pub(crate) fn meet(pattern: &str, rule: &str) -> bool {
    let split = |text: &str| -> Vec<String> {
        text.split('/').filter(|part| !part.is_empty()).map(|part| part.replace('\\', "")).collect()
    };
    let (pattern, rule) = (split(pattern), split(rule));
    pattern.len().max(rule.len()) > MOST_PARTS || parts_meet(&pattern, &rule)
}

fn parts_meet(pattern: &[String], rule: &[String]) -> bool {
    match (pattern.split_first(), rule.split_first()) {
        (_, None) => true,
        (_, Some((first, rest))) if first == "**" => {
            parts_meet(pattern, rest)
                || pattern.split_first().is_some_and(|(_, below)| parts_meet(below, rule))
        }
        (Some((first, below)), Some(_)) if first == "**" => {
            parts_meet(below, rule) || rule.split_first().is_some_and(|(_, rest)| parts_meet(pattern, rest))
        }
        (None, Some(_)) => false,
        (Some((name, below)), Some((wanted, rest))) => {
            // A wildcard in front passes hidden files by.
            let hidden = wanted.starts_with('.') && name.starts_with(['*', '?', '[']);
            !hidden && meets(name, wanted) && parts_meet(below, rest)
        }
    }
}

/// Whether one name with wildcards aims at another.
fn aims(part: &str, secret: &str) -> bool {
    let wild = |text: &str| text.contains(['*', '?', '[']);
    if !wild(part) {
        return meets(part, secret);
    }
    let letters = part.chars().filter(|c| !matches!(c, '*' | '?' | '[' | ']')).count();
    let hidden = part.starts_with('.');
    if (letters < FEWEST_LETTERS && !hidden) || letters == 0 {
        // `*` and `s*` match secrets as they match everything: hiding those is the cage's work.
        return part.starts_with('*') && secret.starts_with('*') && letters > 1 && meets(part, secret);
    }
    // A star in front reaches no hidden file, and `*.json` is no search for `credentials.json`.
    if part.starts_with('*') && !secret.starts_with('*') {
        return false;
    }
    if let (Some(known), Some(suffix)) = (part.strip_suffix('*'), secret.strip_prefix('*'))
        && !part.starts_with('*')
    {
        // `prod.pe*` aims at `*.pem`, `readme*` does not.
        let suffix = suffix.trim_end_matches('*');
        return (2..=suffix.len())
            .any(|taken| suffix.get(..taken).is_some_and(|start| known.ends_with(start)));
    }
    meets(part, secret)
}

/// Whether some name fits both. Brackets stand for any one character.
fn meets(left: &str, right: &str) -> bool {
    glob::tokens_meet(&tokens(left), &tokens(right))
}

/// The tokens of a name as the shell matches it, every bracket expression as any one character.
fn tokens(pattern: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = pattern.chars();
    while let Some(first) = rest.next() {
        let close = (first == '[').then(|| rest.as_str().find(']')).flatten();
        tokens.push(match (first, close) {
            ('*', _) => Token::Star,
            ('?', _) => Token::One,
            ('[', Some(close)) => {
                rest = rest.as_str().get(close + 1..).unwrap_or_default().chars();
                Token::One
            }
            _ => Token::Letter(first),
        });
    }
    tokens
}
