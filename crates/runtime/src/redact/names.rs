//! Names that say their value is secret, and words that look random.

/// How sure a name makes us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Secrecy {
    /// The value is secret whatever it looks like.
    Sure(&'static str),
    /// The value is secret if it looks random.
    Maybe(&'static str),
}

/// Literals that occur in every name the tables know, in the usual spellings. The search looks for these.
#[rustfmt::skip]
pub(super) const STEMS: &[&str] = &[
    "pass", "Pass", "PASS", "pwd", "Pwd", "PWD", "ecret", "ECRET", "oken", "OKEN", "key", "Key", "KEY",
    "auth", "Auth", "AUTH", "redential", "REDENTIAL", "ookie", "OOKIE",
];

/// Ends of names, without separators and in lower case, whose values are secret.
const SURE: &[(&str, &str)] = &[
    ("accesskey", "access key"),
    ("accountkey", "account key"),
    ("apikey", "api key"),
    ("authkey", "key"),
    ("authorization", "authorization"),
    ("encryptionkey", "key"),
    ("masterkey", "key"),
    ("passphrase", "passphrase"),
    ("passwd", "password"),
    ("password", "password"),
    ("privatekey", "private key"),
    ("secret", "secret"),
    ("secretkey", "secret key"),
    ("secretkeybase", "secret key"),
    ("sharedkey", "key"),
    ("signingkey", "key"),
    ("subscriptionkey", "key"),
    ("token", "token"),
];

/// Last words that are sure only behind another word: `DB_PASS`, not `pass` or `PWD`.
const SURE_BEHIND_A_WORD: &[(&str, &str)] = &[("pass", "password"), ("pwd", "password")];

/// Words that make a name worth a look at its value.
const MAYBE: &[(&str, &str)] = &[
    ("apikey", "api key"),
    ("auth", "secret"),
    ("cookie", "cookie"),
    ("credential", "secret"),
    ("credentials", "secret"),
    ("key", "key"),
    ("pass", "password"),
    ("password", "password"),
    ("pwd", "password"),
    ("secret", "secret"),
    ("token", "token"),
];

/// Words that say the opposite.
const PUBLIC: &[&str] = &["hash", "integrity", "pub", "public", "publishable", "sha256", "fingerprint"];

/// Judges a name such as `DB_PASSWORD`, `apiKey` or `x-auth-token`.
pub(super) fn secrecy(name: &str) -> Option<Secrecy> {
    let words = words(name);
    if words.iter().any(|word| PUBLIC.contains(&word.as_str())) {
        return None;
    }
    let joined = words.concat();
    let last = words.last()?;
    let sure = |table: &[(&str, &'static str)], fits: &dyn Fn(&str) -> bool| {
        table.iter().find(|(end, _)| fits(end)).map(|(_, kind)| Secrecy::Sure(kind))
    };
    sure(SURE, &|end| joined.ends_with(end))
        .or_else(|| sure(SURE_BEHIND_A_WORD, &|end| words.len() > 1 && last == end))
        .or_else(|| {
            let known = MAYBE.iter().find(|(known, _)| words.iter().any(|word| word == known));
            known.map(|(_, kind)| Secrecy::Maybe(kind))
        })
}

/// Splits at separators and at the humps of camel case, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut before = '_';
    for c in name.chars() {
        if !c.is_ascii_alphanumeric() {
            before = '_';
            continue;
        }
        let hump = c.is_ascii_uppercase() && !before.is_ascii_uppercase();
        match words.last_mut() {
            Some(word) if before != '_' && !hump => word.push(c.to_ascii_lowercase()),
            _ => words.push(c.to_ascii_lowercase().to_string()),
        }
        before = c;
    }
    words
}

/// Fewest letters and digits in a row that can look random.
const RANDOM_RUN: usize = 16;

/// Whether a word has a long run of letters and digits that change class as often as chance makes them. Plain
/// hexadecimal never counts: it is far more often a commit, a file hash or a UUID than a secret.
pub(super) fn looks_random(word: &str) -> bool {
    word.split(|c: char| !c.is_ascii_alphanumeric()).any(|run| run.len() >= RANDOM_RUN && run_is_random(run))
}

fn run_is_random(run: &str) -> bool {
    let is_hex = |lower: bool| {
        run.bytes().all(|byte| {
            byte.is_ascii_digit()
                || if lower { matches!(byte, b'a'..=b'f') } else { matches!(byte, b'A'..=b'F') }
        })
    };
    if is_hex(true) || is_hex(false) {
        return false;
    }
    let class = |byte: u8| if byte.is_ascii_digit() { 0 } else { 1 + u8::from(byte.is_ascii_uppercase()) };
    let mut switches = 0;
    let mut digit_runs = 0;
    let mut before = None;
    let mut seen = [false; 128];
    for byte in run.bytes() {
        let now = class(byte);
        if before != Some(now) {
            switches += usize::from(before.is_some());
            digit_runs += usize::from(now == 0);
        }
        before = Some(now);
        seen[usize::from(byte & 127)] = true;
    }
    let distinct = seen.iter().filter(|seen| **seen).count();
    digit_runs >= 2 && switches * 4 >= run.len() && distinct * 2 >= run.len().min(24)
}
