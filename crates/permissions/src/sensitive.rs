//! Paths that hold secrets or steer other programs, from a table.

use std::sync::LazyLock;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use serde::Deserialize;

use crate::patterns;

const TABLE: &str = include_str!("../data/sensitive.toml");

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    secret: Vec<String>,
    harmless: Vec<String>,
    steering: Vec<String>,
    words: Vec<String>,
    decoders: Vec<String>,
}

struct Compiled {
    secret: GlobSet,
    harmless: GlobSet,
    steering: GlobSet,
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
    let sets = [&table.secret, &table.harmless, &table.steering].map(|patterns| set(patterns));
    let broken = broken || sets.iter().any(Option::is_none);
    let [secret, harmless, steering] = sets.map(Option::unwrap_or_default);
    let patterns = table.secret.iter().map(|pattern| pattern.to_lowercase()).collect();
    Compiled { patterns, secret, harmless, steering, words: table.words, decoders: table.decoders, broken }
});

fn set(patterns: &[String]) -> Option<GlobSet> {
    let mut builder = GlobSetBuilder::new();
    for pattern in patterns {
        builder.add(GlobBuilder::new(pattern).case_insensitive(true).literal_separator(true).build().ok()?);
    }
    builder.build().ok()
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
mod tests {
    use rstest::rstest;

    use super::{TABLE, Table, is_secret, is_steering, pattern_is_secret, word_is_secret};

    #[test]
    fn lists_are_sorted_and_every_pattern_compiles() {
        let table: Table = toml::from_str(TABLE).unwrap();
        for list in [&table.secret, &table.harmless, &table.steering, &table.words, &table.decoders] {
            assert!(list.is_sorted(), "out of order: {:?}", list.windows(2).find(|pair| pair[0] > pair[1]));
        }
        assert!(!super::COMPILED.broken);
    }

    #[rstest]
    #[case("/p/.env", true)]
    #[case("/p/.ENV", true)]
    #[case("/p/.env.production", true)]
    #[case("/p/.env.example", false)]
    #[case("/home/dev/.ssh/id_rsa", true)]
    #[case("/home/dev/.ssh", true)]
    #[case("/p/certs/server.key", true)]
    #[case("/p/deploy/prod.env", true)]
    #[case("/p/keys.rs", false)]
    #[case("/p/src/environment.rs", false)]
    fn secrets_are_told_by_their_path(#[case] path: &str, #[case] secret: bool) {
        assert_eq!(is_secret(path), secret);
    }

    #[rstest]
    #[case("/p/.e*", true)]
    #[case("/p/.*", true)]
    #[case("/p/*.pem", true)]
    #[case("/p/prod.pe*", true)]
    #[case("/p/cred*", true)]
    #[case("/p/secre?s/prod.yml", true)]
    #[case("/p/.aw*/config", true)]
    #[case("/p/*_hist*", true)]
    #[case("/p/README*", false)]
    #[case("/p/src/**/*.rs", false)]
    #[case("/p/s*", false)]
    #[case("/p/test_*.py", false)]
    #[case("/p/*.json", false)]
    #[case("/p/*", false)]
    #[case("/home/dev/.ssh/*", true)]
    fn patterns_are_told_by_what_they_reach(#[case] pattern: &str, #[case] secret: bool) {
        assert_eq!(pattern_is_secret(pattern), secret);
    }

    #[rstest]
    #[case(".env", true)]
    #[case("--file=.env", true)]
    #[case("HEAD:.ssh/id_rsa", true)]
    #[case("/.netrc", true)]
    #[case(".e*", true)]
    #[case("process.env", false)]
    #[case("src/main.rs", false)]
    #[case("*.rs", false)]
    fn words_that_name_secrets(#[case] word: &str, #[case] secret: bool) {
        assert_eq!(super::names_secret(word), secret);
    }

    #[test]
    fn words_and_steering_files() {
        assert!(word_is_secret("*.env"));
        assert!(!word_is_secret("environment"));
        assert!(is_steering("/p/.git/hooks/pre-commit"));
        assert!(!is_steering("/p/src/main.rs"));
    }
}
