//! Which servers there are: settings and `.mcp.json` as values.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    time::Duration,
};

use gripper_runtime::{
    permissions::{Diagnostic, Scope, Source},
    settings::Node,
};
use reqwest::header::{HeaderName, HeaderValue};
use serde::Deserialize;

pub use super::sign_in::OAuth;

/// How long a call may stay without a word, unless its server says otherwise.
const CALL_LIMIT: Duration = Duration::from_secs(120);
/// From here on a time limit is meant in milliseconds: both units are in use, and nobody waits so long.
const MILLISECONDS: f64 = 1_000.0;
/// Nobody waits longer than a day.
const LONGEST: f64 = 86_400.0;

/// One server as configured, variables filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerConfig {
    /// Its name, as written.
    pub name: String,
    /// Where it is configured.
    pub source: Source,
    /// How it is reached.
    pub endpoint: Endpoint,
    /// How long a call may stay without a word.
    pub call_limit: Duration,
    /// Its tools are never held back.
    pub always_load: bool,
    /// What it says about its tools is believed.
    pub trusted: bool,
}

/// How a server is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum Endpoint {
    /// A program that talks on its standard input and output.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables beside the few that every server gets.
        env: BTreeMap<String, String>,
    },
    /// An address.
    Http {
        /// The address.
        url: String,
        /// Headers of every request.
        headers: BTreeMap<String, String>,
        /// Only the older form, with a stream of events for the answers, is spoken.
        older: bool,
        /// How to sign in, if it asks for that. Nothing where the headers say who calls.
        oauth: Option<OAuth>,
    },
}

impl Endpoint {
    /// One line on it; headers and variables may hold secrets and are left out.
    pub fn words(&self) -> String {
        match self {
            Endpoint::Stdio { command, args, .. } => {
                std::iter::once(command).chain(args).map(String::as_str).collect::<Vec<_>>().join(" ")
            }
            Endpoint::Http { url, .. } => url.split(['?', '#']).next().unwrap_or_default().to_owned(),
        }
    }

    /// The type as settings call it.
    pub fn kind(&self) -> &'static str {
        match self {
            Endpoint::Stdio { .. } => "stdio",
            Endpoint::Http { older: false, .. } => "http",
            Endpoint::Http { older: true, .. } => "sse",
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    r#type: Option<String>,
    command: Option<String>,
    args: Option<Vec<String>>,
    env: Option<BTreeMap<String, String>>,
    url: Option<String>,
    headers: Option<BTreeMap<String, String>>,
    oauth: Option<OAuth>,
    timeout: Option<f64>,
    always_load: Option<bool>,
    trusted: Option<bool>,
    disabled: Option<bool>,
}

/// The servers of all files, weakest file first, and what is wrong with them. A bad entry leaves the others
/// alone; it does not give way to a weaker one of its name either.
pub fn read(files: &[Node], env: &[(OsString, OsString)]) -> (Vec<ServerConfig>, Vec<Diagnostic>) {
    let mut strongest = BTreeMap::new();
    for (name, node) in files.iter().flat_map(Node::entries) {
        strongest.insert(name.as_str(), node);
    }
    let (mut servers, mut wrong) = (Vec::new(), Vec::new());
    for (name, node) in strongest {
        match server(name, node, env) {
            Ok(server) => servers.extend(server),
            Err(why) => {
                let what = format!("the server \"{name}\" does not count: {why}");
                wrong.push(Diagnostic::error(node.source.clone(), what));
            }
        }
    }
    (servers, wrong)
}

fn server(name: &str, node: &Node, env: &[(OsString, OsString)]) -> Result<Option<ServerConfig>, String> {
    let raw = Raw::deserialize(node.value()).map_err(|error| error.to_string())?;
    if raw.disabled == Some(true) {
        return Ok(None);
    }
    if name.trim().is_empty() {
        return Err("it needs a name".to_owned());
    }
    let fill = |text: &str| expand(text, env);
    let fill_all = |map: Option<BTreeMap<String, String>>| -> Result<BTreeMap<String, String>, String> {
        map.unwrap_or_default().into_iter().map(|(name, value)| Ok((name, fill(&value)?))).collect()
    };
    let kind = raw.r#type.as_deref().unwrap_or(if raw.url.is_some() { "http" } else { "stdio" });
    let endpoint = match kind {
        "stdio" => {
            let command = fill(raw.command.as_deref().unwrap_or_default())?;
            if command.is_empty() {
                return Err("a stdio server needs a \"command\"".to_owned());
            }
            let args = raw.args.unwrap_or_default().iter().map(|arg| fill(arg)).collect::<Result<_, _>>()?;
            Endpoint::Stdio { command, args, env: fill_all(raw.env)? }
        }
        "http" | "streamable-http" | "sse" => {
            let url = fill(raw.url.as_deref().unwrap_or_default())?;
            let scheme = reqwest::Url::parse(&url).map(|url| url.scheme().to_owned());
            if !scheme.is_ok_and(|scheme| scheme == "http" || scheme == "https") {
                return Err(format!(
                    "a server of type {kind} needs a \"url\" that begins with http:// or https://"
                ));
            }
            let headers = fill_all(raw.headers)?;
            for (name, value) in &headers {
                if HeaderName::try_from(name).is_err() || HeaderValue::try_from(value).is_err() {
                    return Err(format!("\"{name}\" cannot be sent as a header"));
                }
            }
            let named = headers.keys().any(|name| name.eq_ignore_ascii_case("authorization"));
            let mut oauth = raw.oauth.unwrap_or_default();
            for text in [&mut oauth.client_id, &mut oauth.client_secret].into_iter().flatten() {
                *text = fill(text)?;
            }
            if oauth.client_secret.is_some() && oauth.client_id.is_none() {
                return Err("\"clientSecret\" needs a \"clientId\"".to_owned());
            }
            Endpoint::Http { url, headers, older: kind == "sse", oauth: (!named).then_some(oauth) }
        }
        other => return Err(format!("there is no type \"{other}\": use stdio, http or sse")),
    };
    let limit = raw.timeout.filter(|limit| *limit > 0.0).map(|limit| {
        let seconds = if limit >= MILLISECONDS { limit / 1_000.0 } else { limit };
        Duration::from_secs_f64(seconds.min(LONGEST))
    });
    // A file that comes with a project cannot vouch for what the project brings along.
    let trusted = raw.trusted == Some(true) && node.source.scope != Scope::Project;
    Ok(Some(ServerConfig {
        name: name.to_owned(),
        source: node.source.clone(),
        endpoint,
        call_limit: limit.unwrap_or(CALL_LIMIT),
        always_load: raw.always_load == Some(true),
        trusted,
    }))
}

/// The text with `${NAME}` and `${NAME:-default}` replaced; an empty variable takes the default too.
fn expand(text: &str, env: &[(OsString, OsString)]) -> Result<String, String> {
    let (mut done, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once("${") {
        let Some((inside, after)) = behind.split_once('}') else { break };
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        done.push_str(before);
        let value = env.iter().find(|(known, _)| known == OsStr::new(name)).map(|(_, value)| value);
        match (value.map(|value| value.to_string_lossy()), default) {
            (Some(value), None) => done.push_str(&value),
            (Some(value), Some(_)) if !value.is_empty() => done.push_str(&value),
            (_, Some(default)) => done.push_str(default),
            (None, None) => {
                return Err(format!("the variable {name} is not set: set it, or write ${{{name}:-default}}"));
            }
        }
        rest = after;
    }
    Ok(done + rest)
}

#[cfg(test)]
#[path = "config_tests.rs"]
mod tests;
