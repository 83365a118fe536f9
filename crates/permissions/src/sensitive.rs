//! Paths that hold secrets or steer other programs, from a table.

use std::sync::LazyLock;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::{Deserialize, Serialize};

use crate::patterns;

const TABLE: &str = include_str!("../data/sensitive.toml");

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    secret: Vec<String>,
    harmless: Vec<String>,
    steering: Vec<String>,
    protected: Vec<String>,
    streams: Vec<String>,
    words: Vec<String>,
    decoders: Vec<String>,
}

struct Compiled {
    secret: GlobSet,
    harmless: GlobSet,
    steering: GlobSet,
    protected: GlobSet,
    streams: GlobSet,
    /// The secret patterns in small letters, to be compared with the patterns of commands.
    patterns: Vec<String>,
    words: Vec<String>,
    decoders: Vec<String>,
    /// The table could not be read: everything counts as sensitive, so that nothing slips through.
    broken: bool,
}

static COMPILED: LazyLock<Compiled> = LazyLock::new(|| {
    let table: Result<Table, _> = toml::from_str(TABLE);
    let broken = table.is_err();
    let table = table.unwrap_or_default();
    let lists = [&table.secret, &table.harmless, &table.steering, &table.protected, &table.streams];
    let sets = lists.map(|patterns| set(patterns));
    let broken = broken || sets.iter().any(Option::is_none);
    let [secret, harmless, steering, protected, streams] = sets.map(Option::unwrap_or_default);
    let patterns = table.secret.iter().map(|pattern| pattern.to_lowercase()).collect();
    let (words, decoders) = (table.words, table.decoders);
    Compiled { secret, harmless, steering, protected, streams, patterns, words, decoders, broken }
});

/// Prepares what the first decision would otherwise wait for: some milliseconds.
pub fn prepare() {
    LazyLock::force(&COMPILED);
}

fn set(patterns: &[String]) -> Option<GlobSet> {
    let mut builder = GlobSetBuilder::new();
    for pattern in patterns {
        builder.add(GlobBuilder::new(pattern).case_insensitive(true).literal_separator(true).build().ok()?);
    }
    builder.build().ok()
}

/// What a person adds to the table of secret paths, and takes from it. Patterns as in the table;
/// one without a slash means that name anywhere.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct SensitivePaths {
    /// Further secret paths.
    pub add: Vec<String>,
    /// Paths that are not secret here.
    pub remove: Vec<String>,
}

/// The additions, prepared.
#[derive(Debug, Default)]
pub(crate) struct Own {
    add: GlobSet,
    remove: GlobSet,
}

impl Own {
    pub(crate) fn new(paths: &SensitivePaths) -> Self {
        let prepare = |patterns: &[String]| {
            let anywhere = |pattern: &String| {
                if pattern.starts_with('/') || pattern.starts_with("**/") {
                    pattern.clone()
                } else {
                    format!("**/{pattern}")
                }
            };
            let sound = |pattern: &String| set(std::slice::from_ref(pattern)).is_some();
            let patterns: Vec<String> = patterns.iter().map(anywhere).filter(sound).collect();
            set(&patterns).unwrap_or_default()
        };
        Self { add: prepare(&paths.add), remove: prepare(&paths.remove) }
    }

    /// Whether a path, absolute and tidy, holds secrets here.
    pub(crate) fn is_secret(&self, path: &str) -> bool {
        self.add.is_match(path) || (is_secret(path) && !self.remove.is_match(path))
    }
}

/// Whether a path, absolute and tidy, holds secrets.
pub fn is_secret(path: &str) -> bool {
    let table = &*COMPILED;
    table.broken || (table.secret.is_match(path) && !table.harmless.is_match(path))
}

/// Whether a path decides what other programs do later.
pub fn is_steering(path: &str) -> bool {
    let table = &*COMPILED;
    table.broken || table.steering.is_match(path)
}

/// Whether nothing may ever write a path, absolute and tidy.
pub fn is_protected(path: &str) -> bool {
    let table = &*COMPILED;
    table.broken || (table.protected.is_match(path) && !table.streams.is_match(path))
}

/// Whether a glob pattern could reach something secret, other than by matching nearly everything.
pub(crate) fn pattern_is_secret(pattern: &str) -> bool {
    let table = &*COMPILED;
    table.broken || patterns::reaches(pattern, &table.patterns)
}

/// Whether a word names a secret file, in whole or by a pattern, alone or behind `=` or `:`.
pub(crate) fn names_secret(word: &str) -> bool {
    word.split(|c: char| c.is_whitespace() || matches!(c, '=' | ':' | ','))
        .filter(|name| !name.is_empty())
        .any(|name| {
            // `process.env` is code, not a file.
            let last = name.rsplit('/').next().unwrap_or(name);
            let code = last.len() > ".env".len() && last.ends_with(".env");
            // Scripts and regular expressions are no patterns of files.
            let pattern = name.contains(['*', '?', '['])
                && !name.contains(['|', '(', ')', '"', '\'', '$', '^', '\\', '{'])
                && !name.contains("[]");
            let path = format!("/{}", name.trim_start_matches('/'));
            !code && (is_secret(&path) || (pattern && pattern_is_secret(&path)))
        })
}

/// Whether a word shows that secrets are looked for: it says so, is a piece of `.env`, or decodes.
pub(crate) fn word_is_secret(word: &str) -> bool {
    let table = &*COMPILED;
    let bare = word.trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
    if bare.len() > 1 && (".env".contains(bare) || names_secret(&format!(".{bare}")))
        || table.decoders.iter().any(|decoder| decoder == word)
    {
        return true;
    }
    let part = |c: char| c.is_alphanumeric() || c == '_';
    word.split(|c: char| !part(c)).any(|token| {
        let token = token.to_lowercase();
        table.words.contains(&token)
    })
}

#[cfg(test)]
#[path = "sensitive_tests.rs"]
mod tests;
