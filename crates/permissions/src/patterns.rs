//! Whether two glob patterns can mean the same path.

/// How many letters a pattern must spell out before it is taken to aim at something.
const FEWEST_LETTERS: usize = 3;

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

/// Whether one name with wildcards aims at another.
fn aims(part: &str, secret: &str) -> bool {
    let wild = |text: &str| text.contains(['*', '?', '[']);
    if !wild(part) {
        return meets(part.as_bytes(), secret.as_bytes());
    }
    let letters = part.chars().filter(|c| !matches!(c, '*' | '?' | '[' | ']')).count();
    let hidden = part.starts_with('.');
    if (letters < FEWEST_LETTERS && !hidden) || letters == 0 {
        // `*` and `s*` match secrets as they match everything: hiding those is the cage's work.
        return part.starts_with('*')
            && secret.starts_with('*')
            && letters > 1
            && meets(part.as_bytes(), secret.as_bytes());
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
    meets(part.as_bytes(), secret.as_bytes())
}

/// Whether some text matches both patterns. Brackets stand for any one character.
fn meets(left: &[u8], right: &[u8]) -> bool {
    let (left, right) = (tokens(left), tokens(right));
    let mut reach = vec![vec![false; right.len() + 1]; left.len() + 1];
    for i in (0..=left.len()).rev() {
        for j in (0..=right.len()).rev() {
            reach[i][j] = match (left.get(i), right.get(j)) {
                (None, None) => true,
                (Some(b'*'), _) if reach[i + 1][j] => true,
                (_, Some(b'*')) if reach[i][j + 1] => true,
                (Some(b'*'), Some(_)) if reach[i][j + 1] => true,
                (Some(_), Some(b'*')) if reach[i + 1][j] => true,
                (Some(a), Some(b)) => {
                    *a != b'*' && *b != b'*' && (a == b || *a == b'?' || *b == b'?') && reach[i + 1][j + 1]
                }
                _ => false,
            };
        }
    }
    reach[0][0]
}

/// The pattern with every bracket expression as `?`.
fn tokens(pattern: &[u8]) -> Vec<u8> {
    let mut tokens = Vec::with_capacity(pattern.len().min(256));
    let mut rest = pattern;
    while let Some((&first, after)) = rest.split_first() {
        rest = after;
        let close = after.iter().position(|&byte| byte == b']').filter(|_| first == b'[');
        match close {
            Some(close) => {
                tokens.push(b'?');
                rest = after.get(close + 1..).unwrap_or_default();
            }
            None => tokens.push(first),
        }
        if tokens.len() >= 256 {
            break;
        }
    }
    tokens
}
