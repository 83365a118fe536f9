//! Secrets that are recognised by their own shape, wherever they stand.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::names::looks_random;

/// One kind of secret. To add one: a line in [`SHAPES`] and a case in the tests.
pub(super) struct Shape {
    /// Named in the replacement.
    kind: &'static str,
    /// Literal beginnings; the search looks for these and only then tries the pattern. Few and long enough to be
    /// rare: see `MOST_TRIGGERS` in the parent.
    pub(super) starts: &'static [&'static str],
    /// What follows the beginning. A group, where there is one, is the part to hide; else all of it is.
    /// Every repetition before a point of failure is bounded, which keeps the whole search linear.
    rest: &'static str,
    /// Whether the hidden part must also look random, because the shape alone says too little.
    random: bool,
}

const fn shape(kind: &'static str, starts: &'static [&'static str], rest: &'static str) -> Shape {
    Shape { kind, starts, rest, random: false }
}

const fn if_random(kind: &'static str, starts: &'static [&'static str], rest: &'static str) -> Shape {
    Shape { kind, starts, rest, random: true }
}

/// A user name or password in a URL: no delimiter of URLs, and nothing a shell would run.
const PASSWORD_IN_URL: &str =
    r#"[^\s/?#@:"'<>\\$`(),;|&]{0,200}:([^\s/?#@"'<>\\$`(){*,;|&\[][^\s/?#"'<>\\$`(),;|&]{0,255})@"#;

/// A PEM block needs lines of key material, so that searching for the words of its first line stays visible;
/// and takes no other lines, so that no command can hide in it.
const PEM_REST: &str = concat!(
    r"[A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----",
    r"(?:[ \t\r\n]{0,4}(?:\\+[rn])*(?:Proc-Type|DEK-Info|Version|Comment): [A-Za-z0-9 .,:()/-]{0,80})*",
    r"(?:[ \t\r\n]{0,80}(?:\\+[rn])*[A-Za-z0-9+/=]{40,200})+",
    r"(?:(?:[ \t\r\n]{0,80}(?:\\+[rn])*[A-Za-z0-9+/=]{1,80}){0,2}[ \t\r\n]{0,80}(?:\\+[rn])*-----END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----)?",
);

/// All shapes, sorted by kind; of two that begin alike the more specific one stands first.
pub(super) const SHAPES: &[Shape] = &[
    shape("age secret key", &["AGE-SECRET-KEY-1"], r"[0-9A-Z]{58}"),
    shape("anthropic key", &["sk-"], r"ant-[A-Za-z0-9_-]{20,}"),
    shape("atlassian token", &["ATATT3"], r"[A-Za-z0-9_=-]{40,}"),
    shape("aws access key", &["AKIA", "ASIA"], r"[A-Z2-7]{16}"),
    if_random("bearer token", &["Bearer ", "bearer "], r"([A-Za-z0-9._~+/=-]{16,})"),
    shape("databricks token", &["dapi"], r"[0-9a-f]{32}"),
    shape("digitalocean token", &["dop_v1_"], r"[0-9a-f]{64}"),
    shape("docker token", &["dckr_"], r"[po]at_[A-Za-z0-9_-]{20,}"),
    shape("github token", &["ghp_", "gho_", "ghu_", "ghs_", "ghr_"], r"[A-Za-z0-9]{36,}"),
    shape("github token", &["github_pat_"], r"[A-Za-z0-9_]{22,}"),
    shape(
        "gitlab token",
        &["glpat-", "gldt-", "glrt-", "glcbt-", "glptt-"],
        r"[A-Za-z0-9_-]{20,}(?:\.[A-Za-z0-9_-]{2,}){0,3}",
    ),
    shape("google api key", &["AIza"], r"[A-Za-z0-9_-]{35}"),
    shape("google oauth secret", &["GOCSPX-"], r"[A-Za-z0-9_-]{28}"),
    shape("google oauth token", &["ya29."], r"[A-Za-z0-9_-]{20,}"),
    shape("groq key", &["gsk_"], r"[A-Za-z0-9]{40,}"),
    shape("hugging face token", &["hf_"], r"[A-Za-z0-9]{34,}"),
    shape("json web token", &["eyJ"], r"[A-Za-z0-9_-]{8,512}\.eyJ[A-Za-z0-9_-]{4,}(?:\.[A-Za-z0-9_-]*)?"),
    shape("npm token", &["npm_"], r"[A-Za-z0-9]{36,}"),
    shape("openai key", &["sk-"], r"(?:proj|svcacct|admin)-[A-Za-z0-9_-]{20,}"),
    shape("api key", &["sk-"], r"(?:or-v1-)?[A-Za-z0-9]{32,}"),
    shape("private key", &["-----BEGIN "], PEM_REST),
    shape("pypi token", &["pypi-"], r"[A-Za-z0-9_-]{50,}"),
    shape("sendgrid key", &["SG."], r"[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}"),
    shape("shopify token", &["shp"], r"(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"),
    shape("slack token", &["xox"], r"[abeoprs](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}"),
    shape("slack token", &["xapp-"], r"[0-9]-[A-Za-z0-9-]{20,}"),
    shape(
        "slack webhook",
        &["hooks.slack.com/services/"],
        r"([A-Za-z0-9]{6,20}/[A-Za-z0-9]{6,20}/[A-Za-z0-9]{16,})",
    ),
    shape("stripe key", &["sk_live_", "sk_test_", "rk_live_", "whsec_"], r"[A-Za-z0-9]{10,}"),
    shape("password in url", &["://"], PASSWORD_IN_URL),
    if_random("token in url", &["://"], r"([A-Za-z0-9_.~%+-]{20,200})@"),
    shape("vault token", &["hvs."], r"[A-Za-z0-9_-]{24,}"),
    shape("password", &["sshpass -p"], r"[ =]?'?([^\[\s'$`;|&-][^\s'$`;|&]{0,200})"),
];

static PATTERNS: LazyLock<Vec<Option<Regex>>> = LazyLock::new(|| {
    SHAPES
        .iter()
        .map(|shape| {
            let starts: Vec<String> = shape.starts.iter().map(|start| regex::escape(start)).collect();
            // A pattern that does not compile is left out here and found by a test.
            Regex::new(&format!(r"\A(?:{})(?:{})", starts.join("|"), shape.rest)).ok()
        })
        .collect()
});

/// The secret that begins at `at` by its shape: what to hide, and its kind.
pub(super) fn find(text: &str, at: usize) -> Option<(Range<usize>, &'static str)> {
    let rest = text.get(at..)?;
    let inside_word = text[..at].bytes().next_back().is_some_and(|byte| byte.is_ascii_alphanumeric());
    SHAPES.iter().zip(PATTERNS.iter()).find_map(|(shape, pattern)| {
        let start = shape.starts.iter().find(|start| rest.starts_with(**start))?;
        if inside_word && start.starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return None;
        }
        let captures = pattern.as_ref()?.captures(rest)?;
        let hidden = captures.get(1).or_else(|| captures.get(0))?;
        // A longer word than the shape allows is something else.
        let goes_on = rest[hidden.end()..].starts_with(|c: char| c.is_ascii_alphanumeric());
        if goes_on || (shape.random && !looks_random(hidden.as_str())) {
            return None;
        }
        Some((at + hidden.start()..at + hidden.end(), shape.kind))
    })
}

#[cfg(test)]
pub(super) fn all_patterns_compile() -> bool {
    PATTERNS.iter().all(Option::is_some)
}
