//! What goes wrong on the way, in words: statuses, error bodies, lost connections.

use std::time::Duration;

use chrono::{DateTime, Utc};
use gripper_runtime::redact::redact;
use reqwest::{StatusCode, header::HeaderMap};
use serde_json::Value;

use super::{ModelError, Trouble};

/// Characters of a provider's words that are shown.
const SHOWN: usize = 300;
/// A provider that wants us to wait for longer than this is not waited for.
const LONGEST_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

/// How providers and local servers say that a conversation is too long, in small letters.
const TOO_LONG: [&str; 12] = [
    "context length",
    "context limit",
    "context size",
    "context window",
    "context_length_exceeded",
    "exceed_context_size",
    "input is too long",
    "input token count",
    "prompt is too long",
    "prompt too long",
    "request_too_large",
    "too many input tokens",
];

/// Kinds of trouble by what errors are called.
const KINDS: [(&str, Trouble); 13] = [
    ("insufficient_quota", Trouble::Refused),
    ("billing", Trouble::Refused),
    ("overloaded", Trouble::Overloaded),
    ("unavailable", Trouble::Overloaded),
    ("server_error", Trouble::Overloaded),
    ("internal", Trouble::Overloaded),
    ("api_error", Trouble::Overloaded),
    ("timeout", Trouble::Overloaded),
    ("rate_limit", Trouble::RateLimited),
    ("authentication", Trouble::Unauthorized),
    ("permission", Trouble::Unauthorized),
    ("invalid", Trouble::Refused),
    ("not_found", Trouble::Refused),
];

/// Who refused, and what.
pub(super) struct Asked<'a> {
    pub(super) provider: &'a str,
    pub(super) address: &'a str,
    pub(super) model: &'a str,
    /// Where its key is set.
    pub(super) key: &'a str,
}

/// An error that came instead of an answer.
pub(super) fn refusal(asked: &Asked<'_>, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> ModelError {
    let Asked { provider, address, model, key } = asked;
    let code = status.as_u16();
    let parsed: Value = serde_json::from_slice(body).unwrap_or_default();
    // Some wrap it into a list.
    let parsed = parsed.get(0).unwrap_or(&parsed);
    let (name, mut said) = words(if parsed["error"].is_null() { parsed } else { &parsed["error"] });
    if said.is_empty() && name.is_empty() {
        said = String::from_utf8_lossy(body).into_owned();
    }
    let kind = match code {
        401 | 403 => Trouble::Unauthorized,
        429 if named(&name) == Some(Trouble::Refused) => Trouble::Refused,
        429 => Trouble::RateLimited,
        _ if code == 413 || is_too_long(&name, &said) => Trouble::TooLong,
        408 | 500.. => Trouble::Overloaded,
        _ => Trouble::Refused,
    };
    let said = shown(&said);
    let why = if said.is_empty() { format!("HTTP {code}") } else { format!("HTTP {code}: {said}") };
    let message = match kind {
        Trouble::TooLong => too_long(model, &why),
        Trouble::Unauthorized => format!("{provider} does not accept the key ({why}); check {key}"),
        Trouble::RateLimited => {
            format!("{provider} takes no more requests for now ({why}); wait a while or use another model")
        }
        Trouble::Overloaded => {
            format!("{provider} has too much to do, or a fault ({why}); try again later or use another model")
        }
        _ if code == 404 => format!(
            "{provider} has no model \"{model}\", or nothing at {address} ({why}); check the model's name and \
             the provider's base URL"
        ),
        _ if status.is_redirection() => format!(
            "{address} points elsewhere ({why}), which is not followed, as the key would go along; set the \
             provider's base URL to where it lives now"
        ),
        _ => format!("{provider} refused the request to {address} ({why})"),
    };
    ModelError { kind, message, retry_after: retry_after(headers, Utc::now()) }
}

/// Something that is no answer came where one should, with the status of one.
pub(super) fn not_the_provider(asked: &Asked<'_>, what: &str) -> ModelError {
    let Asked { provider, address, .. } = asked;
    let message = format!(
        "{address} answers with {what} and not as a model does; check that {provider} is what answers there, and the \
         provider's base URL"
    );
    ModelError::new(Trouble::Refused, message)
}

fn too_long(model: &str, why: &str) -> String {
    format!("the conversation is too long for {model} ({why}); compact it or begin a new one")
}

/// An error in the middle of an answer.
pub(super) fn provider_error(error: &Value) -> ModelError {
    let (name, said) = words(error);
    let why = shown(&format!("{name}: {said}"));
    if is_too_long(&name, &said) {
        return ModelError::new(Trouble::TooLong, too_long("the model", &why));
    }
    let kind = named(&name).unwrap_or(Trouble::Broken);
    ModelError::new(kind, format!("the provider broke off its answer ({why})"))
}

/// What an error is called, and what it says.
fn words(error: &Value) -> (String, String) {
    let find = |keys: &[&str]| keys.iter().find_map(|key| error[*key].as_str()).unwrap_or_default();
    let name = format!("{} {}", find(&["type"]), find(&["code"]));
    match error {
        Value::String(said) => (String::new(), said.clone()),
        _ => (name.trim().to_owned(), find(&["message", "detail", "error"]).to_owned()),
    }
}

fn named(name: &str) -> Option<Trouble> {
    KINDS.iter().find(|(part, _)| name.contains(part)).map(|(_, kind)| *kind)
}

fn is_too_long(name: &str, said: &str) -> bool {
    let text = format!("{name} {said}").to_lowercase();
    TOO_LONG.iter().any(|part| text.contains(part))
}

/// A provider's words on one line, short, and without secrets: some repeat the key that they refuse.
pub(super) fn shown(said: &str) -> String {
    let start: String = said.chars().take(2 * SHOWN).collect();
    let line = start.split(|c: char| c.is_whitespace() || c.is_control()).collect::<Vec<_>>().join(" ");
    let line = redact(line.trim());
    match line.char_indices().nth(SHOWN) {
        Some((at, _)) => format!("{}…", &line[..at]),
        None => line.into_owned(),
    }
}

/// How long the provider wants us to wait, in any of the three forms in use.
pub(super) fn retry_after(headers: &HeaderMap, now: DateTime<Utc>) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let milliseconds = text("retry-after-ms").and_then(|text| text.parse::<f64>().ok());
    let seconds = milliseconds.map(|count| count / 1000.0).or_else(|| {
        let text = text("retry-after")?;
        let date = |text| DateTime::parse_from_rfc2822(text).ok();
        let until = |date: DateTime<_>| date.signed_duration_since(now).num_milliseconds().max(0) as f64;
        text.parse::<f64>().ok().or_else(|| date(text).map(|date| until(date) / 1000.0))
    });
    Duration::try_from_secs_f64(seconds?).ok().map(|wait| wait.min(LONGEST_WAIT))
}

/// Why a request did not get through. The address is ours to name: the error's own may hold more than it should.
pub(super) fn unreachable(asked: &Asked<'_>, error: reqwest::Error, limit: Duration) -> ModelError {
    let Asked { provider, address, .. } = asked;
    let connecting = error.is_connect();
    let late = error.is_timeout();
    let why = causes(error);
    let message = match (connecting, late) {
        (true, true) => format!(
            "{provider} could not be reached at {address}: no connection within {} seconds; check the network \
             and the provider's base URL",
            limit.as_secs_f64()
        ),
        (true, false) => format!(
            "{provider} could not be reached at {address}: {why}; check that it runs there, the network, and \
             the provider's base URL"
        ),
        (false, _) => format!("the connection to {provider} at {address} was lost before it answered: {why}"),
    };
    ModelError::new(Trouble::Unreachable, message)
}

/// The last of the reasons, which is the one that helps.
fn causes(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut last: &dyn std::error::Error = &error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    shown(&last.to_string())
}
