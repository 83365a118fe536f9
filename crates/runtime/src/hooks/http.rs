//! Hooks behind an address.

use std::{collections::BTreeMap, ffi::OsString, sync::LazyLock, time::Duration};

use gripper_process::Status;
use regex::{Captures, Regex};
use reqwest::{Client, Url, header, redirect};

use super::contract::Raw;

/// Bytes of an answer; more is no answer.
const ANSWER_BYTES: usize = 1024 * 1024;

/// `$NAME` and `${NAME}`.
static VARIABLE: LazyLock<Result<Regex, regex::Error>> =
    LazyLock::new(|| Regex::new(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))"));

/// Made when the first hook needs it. Connections are not kept: the next call may be hours away.
static CLIENT: LazyLock<Result<Client, String>> = LazyLock::new(|| {
    let builder = Client::builder().redirect(redirect::Policy::none()).no_proxy().pool_max_idle_per_host(0);
    builder.build().map_err(describe)
});

/// Whether a hook like this could be sent at all.
pub(super) fn check(url: &str, headers: &BTreeMap<String, String>, allowed: &[String]) -> Result<(), String> {
    let scheme = Url::parse(url).map(|url| url.scheme().to_owned());
    if !scheme.is_ok_and(|scheme| scheme == "http" || scheme == "https") {
        return Err("an http hook needs a \"url\" that begins with http:// or https://".to_owned());
    }
    for (name, value) in headers {
        if header::HeaderName::try_from(name.as_str()).is_err() {
            return Err(format!("\"{name}\" is no name of a header"));
        }
        expand(value, |variable| {
            if allowed.iter().any(|name| name == variable) {
                return Ok(String::new());
            }
            Err(format!("the header {name} names ${variable}, which allowedEnvVars does not list"))
        })?;
    }
    Ok(())
}

/// The text with every variable replaced by what `value` gives for it.
fn expand(text: &str, value: impl Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let pattern = VARIABLE.as_ref().map_err(ToString::to_string)?;
    let mut trouble = None;
    let expanded = pattern.replace_all(text, |found: &Captures<'_>| {
        let name = found.get(1).or(found.get(2)).map_or("", |name| name.as_str());
        value(name).unwrap_or_else(|error| {
            trouble = Some(error);
            String::new()
        })
    });
    match trouble {
        Some(trouble) => Err(trouble),
        None => Ok(expanded.into_owned()),
    }
}

/// Posts `body` and reads the answer. A redirect is not followed: it would send the body elsewhere.
pub(super) async fn post(
    url: &str,
    headers: &BTreeMap<String, String>,
    env: &[(OsString, OsString)],
    body: Vec<u8>,
    limit: Duration,
) -> Result<Raw, String> {
    let exchange = async {
        let mut request =
            CLIENT.as_ref().map_err(Clone::clone)?.post(url).header(header::CONTENT_TYPE, "application/json");
        for (name, value) in headers {
            let find = |name: &str| {
                let value = env.iter().find(|(known, _)| known == name).map(|(_, value)| value);
                Ok(value.map(|value| value.to_string_lossy().into_owned()).unwrap_or_default())
            };
            request = request.header(name, expand(value, find)?);
        }
        let mut response = request.body(body).send().await.map_err(describe)?;
        let status = response.status();
        if !status.is_success() {
            let what =
                if status.is_redirection() { "a redirect, which is not followed" } else { "no success" };
            return Err(format!("the answer was {what} ({})", status.as_u16()));
        }
        let mut answer = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(describe)? {
            if answer.len() + chunk.len() > ANSWER_BYTES {
                return Err(format!("the answer has more than {ANSWER_BYTES} bytes"));
            }
            answer.extend_from_slice(&chunk);
        }
        Ok(String::from_utf8_lossy(&answer).into_owned())
    };
    let raw = |status, stdout| Raw { status, stdout, stderr: String::new(), cut: false };
    match tokio::time::timeout(limit, exchange).await {
        Err(_) => Ok(raw(Status::TimedOut, String::new())),
        Ok(answer) => answer.map(|text| raw(Status::Exited(0), text)),
    }
}

/// The whole chain of reasons, without the address: it may hold a secret.
fn describe(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut words = error.to_string();
    let mut cause = std::error::Error::source(&error);
    while let Some(error) = cause {
        words.push_str(&format!(": {error}"));
        cause = error.source();
    }
    words
}
