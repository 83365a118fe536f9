//! The `hooks` of a settings file.

use std::{collections::BTreeMap, time::Duration};

use gripper_permissions::{Diagnostic, Rule, Scope, Source};
use regex::{Regex, RegexBuilder};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::HookEvent;

/// How long a hook has when it does not say.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// Nobody waits longer than a day.
const LONGEST: f64 = 86_400.0;
/// A matcher that compiles to more than this is not meant for tool names.
const PATTERN_BYTES: usize = 256 * 1024;

/// Events of the contract that nothing fires yet; settings may hold hooks for them already.
const LATER: &[&str] = &[
    "Setup",
    "UserPromptExpansion",
    "TaskCreated",
    "TaskCompleted",
    "TeammateIdle",
    "FileChanged",
    "WorktreeCreate",
    "WorktreeRemove",
    "Elicitation",
    "ElicitationResult",
];

/// One hook as configured.
#[derive(Debug, Clone)]
pub struct Entry {
    /// When it runs, as written; not every name means something.
    pub event: String,
    /// The matcher as written.
    pub matcher: String,
    /// What it does.
    pub action: Action,
    /// Only for calls that this rule covers.
    pub condition: Option<Rule>,
    /// How long it may take.
    pub limit: Duration,
    /// Words for the person while it runs.
    pub status: Option<String>,
    /// When it runs, in relation to calls and to other hooks.
    pub pace: Pace,
    /// Only the first time in a session.
    pub once: bool,
    /// What its failure means.
    pub on_failure: OnFailure,
    /// Where it was written.
    pub source: Source,
    /// Its place in the `hooks` value, as a JSON pointer.
    pub pointer: String,
    /// Why it cannot run; it then counts as failed whenever it should have.
    pub trouble: Option<String>,
    pub(super) fits: Matcher,
}

/// What a hook does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Runs a command line in a shell or, with arguments, a program without one.
    Command {
        /// The line or the program.
        command: String,
        /// The arguments.
        args: Option<Vec<String>>,
        /// What it may do; without this, what we may.
        confine: Option<Confine>,
    },
    /// Posts to an address.
    Http {
        /// The address.
        url: String,
        /// Headers, in which `$NAME` and `${NAME}` stand for variables.
        headers: BTreeMap<String, String>,
        /// The variables that headers may name.
        allowed: Vec<String>,
    },
    /// Calls a tool of a configured server.
    McpTool {
        /// The server.
        server: String,
        /// The tool, by the name that the server gives it.
        tool: String,
        /// What it is given, in which `${part.name}` stands for parts of the event; the event without it.
        input: Option<Map<String, Value>>,
    },
    /// Asks a model.
    Model {
        /// What it should judge, in which `$ARGUMENTS` stands for the event.
        prompt: String,
        /// Which model.
        model: Option<String>,
        /// It looks around with tools before it answers.
        looks: bool,
    },
    /// Something that cannot be done here, by its type.
    Other(String),
}

/// What a confined command may do. In either case it reaches no network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Confine {
    /// Changes nothing but a temporary folder of its own.
    ReadOnly,
    /// Changes the working directories as well, but for what others run later unasked.
    Project,
}

impl Action {
    /// One line on what it does. Of two hooks alike in this, one runs.
    pub fn words(&self) -> String {
        match self {
            Action::Command { command, args: None, .. } => command.clone(),
            Action::Command { command, args: Some(args), .. } => {
                std::iter::once(command).chain(args).map(String::as_str).collect::<Vec<_>>().join(" ")
            }
            Action::Http { url, .. } => url.clone(),
            Action::McpTool { server, tool, .. } => format!("{tool} of the server {server}"),
            Action::Model { prompt, .. } => prompt.lines().next().unwrap_or_default().to_owned(),
            Action::Other(kind) => kind.clone(),
        }
    }
}

/// When a hook runs, in relation to calls and to other hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pace {
    /// Before a call one after another, in order; at other events beside the others.
    Usual,
    /// Beside the others also before a call; it may not rewrite.
    Parallel,
    /// Nobody waits for it, and what it says does not count.
    Detached,
}

/// What the failure of a hook means for the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnFailure {
    /// Nothing; it is only reported.
    Allow,
    /// A person must decide.
    Ask,
    /// The call does not run.
    Block,
}

/// Which subjects an entry is for.
#[derive(Debug, Clone)]
pub(super) enum Matcher {
    All,
    Names(Vec<String>),
    Pattern(Regex),
}

impl Matcher {
    fn read(text: &str) -> Result<Self, String> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '|' | ',' | ' ');
        match text.trim() {
            "" | "*" => Ok(Matcher::All),
            names if names.chars().all(plain) => {
                let names = names.split(['|', ',']).map(str::trim).filter(|name| !name.is_empty());
                Ok(Matcher::Names(names.map(str::to_owned).collect()))
            }
            pattern => RegexBuilder::new(pattern)
                .size_limit(PATTERN_BYTES)
                .build()
                .map(Matcher::Pattern)
                .map_err(|error| format!("the matcher \"{text}\" is no regular expression: {error}")),
        }
    }

    pub(super) fn fits(&self, subject: &str) -> bool {
        match self {
            Matcher::All => true,
            _ if subject.is_empty() => true,
            Matcher::Names(names) => names.iter().any(|name| name == subject),
            Matcher::Pattern(pattern) => pattern.is_match(subject),
        }
    }
}

/// The fields of a handler; foreign ones are not ours to judge.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Raw {
    r#type: String,
    command: Option<String>,
    args: Option<Vec<String>>,
    confine: Option<Confine>,
    r#async: Option<bool>,
    parallel: Option<bool>,
    url: Option<String>,
    #[serde(flatten)]
    served: RawTool,
    #[serde(flatten)]
    asked: RawModel,
    headers: Option<BTreeMap<String, String>>,
    allowed_env_vars: Option<Vec<String>>,
    r#if: Option<String>,
    timeout: Option<f64>,
    status_message: Option<String>,
    once: Option<bool>,
}

#[derive(Deserialize)]
struct RawTool {
    server: Option<String>,
    tool: Option<String>,
    input: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
struct RawModel {
    prompt: Option<String>,
    model: Option<String>,
}

/// Reads the `hooks` of settings.
pub struct HookConfig;

impl HookConfig {
    /// The hooks in `value`, the `hooks` of one settings file, and what is wrong with them, each
    /// with its place as a JSON pointer into `value`. A bad entry never takes the others down.
    pub fn read(value: &Value, source: &Source) -> (Vec<Entry>, Vec<(String, Diagnostic)>) {
        let mut reader = Reader { source, entries: Vec::new(), found: Vec::new() };
        match value.as_object() {
            Some(events) => events.iter().for_each(|(event, groups)| reader.event(event, groups)),
            None => reader.error("", "hooks must be an object with events as keys".into()),
        }
        (reader.entries, reader.found)
    }
}

struct Reader<'a> {
    source: &'a Source,
    entries: Vec<Entry>,
    found: Vec<(String, Diagnostic)>,
}

impl Reader<'_> {
    fn error(&mut self, at: &str, what: String) {
        self.found.push((at.to_owned(), Diagnostic::error(self.source.clone(), what)));
    }

    fn warn(&mut self, at: &str, what: String, fix: Option<String>) {
        let found = Diagnostic::warning(self.source.clone(), what);
        self.found.push((at.to_owned(), Diagnostic { fix, ..found }));
    }

    fn event(&mut self, event: &str, groups: &Value) {
        let at = format!("/{}", event.replace('~', "~0").replace('/', "~1"));
        if LATER.contains(&event) {
            self.warn(&at, format!("{event} is not fired yet: its hooks do not run"), None);
        } else if HookEvent::named(event).is_none() {
            let names = HookEvent::FIRED.iter().map(|event| event.name()).chain(LATER.iter().copied());
            let near = names.map(|name| (strsim::damerau_levenshtein(name, event), name)).min();
            let fix = near.filter(|(far, _)| *far <= 3).map(|(_, name)| format!("did you mean {name}?"));
            self.warn(&at, format!("there is no event \"{event}\": its hooks never run"), fix);
        }
        let Some(groups) = groups.as_array() else {
            return self.error(&at, format!("{event} must be a list of objects with \"hooks\" in them"));
        };
        for (number, group) in groups.iter().enumerate() {
            let at = format!("{at}/{number}");
            let Some(handlers) = group.get("hooks").and_then(Value::as_array) else {
                self.error(&at, format!("this entry of {event} has no list \"hooks\""));
                continue;
            };
            let matcher = match group.get("matcher") {
                None | Some(Value::Null) => Ok(""),
                Some(Value::String(text)) => Ok(text.as_str()),
                Some(_) => Err("the matcher must be a string".to_owned()),
            };
            for (number, handler) in handlers.iter().enumerate() {
                self.handler(event, matcher.clone(), handler, format!("{at}/hooks/{number}"));
            }
        }
    }

    fn handler(&mut self, event: &str, matcher: Result<&str, String>, handler: &Value, pointer: String) {
        let written = matcher.as_ref().map_or("", |text| text).to_owned();
        let managed = self.source.scope == Scope::Managed;
        let mut entry = Entry {
            event: event.to_owned(),
            matcher: written,
            action: Action::Other("unreadable".to_owned()),
            condition: None,
            limit: TIME_LIMIT,
            status: None,
            pace: Pace::Usual,
            once: false,
            on_failure: if managed { OnFailure::Block } else { OnFailure::Allow },
            source: self.source.clone(),
            pointer,
            trouble: None,
            // Until it is known what it is for, it is for everything.
            fits: Matcher::All,
        };
        match handler.get("onFailure").map(OnFailure::deserialize) {
            Some(Ok(chosen)) => entry.on_failure = chosen,
            Some(Err(_)) => {
                let what = "onFailure must be allow, ask or block; the default counts".to_owned();
                self.warn(&format!("{}/onFailure", entry.pointer), what, None);
            }
            None => {}
        }
        let fits = matcher.and_then(Matcher::read).map(|fits| entry.fits = fits);
        let raw = Raw::deserialize(handler).map_err(|error| format!("this hook cannot be read: {error}"));
        let filled = raw.and_then(|raw| fill(&mut entry, raw));
        if let Err(trouble) = fits.and(filled) {
            self.error(&entry.pointer, trouble.clone());
            entry.trouble = Some(trouble);
        }
        self.entries.push(entry);
    }
}

fn fill(entry: &mut Entry, raw: Raw) -> Result<(), String> {
    entry.status = raw.status_message;
    entry.once = raw.once.unwrap_or(false);
    entry.pace = match (raw.r#async, raw.parallel) {
        (Some(true), _) => Pace::Detached,
        (_, Some(true)) => Pace::Parallel,
        _ => Pace::Usual,
    };
    if raw.confine.is_some() && raw.r#type != "command" {
        return Err(format!("confine is for hooks of type command, and this one is of type {}", raw.r#type));
    }
    entry.action = match raw.r#type.as_str() {
        "command" => {
            let command = raw.command.clone().unwrap_or_default();
            Action::Command { command, args: raw.args, confine: raw.confine }
        }
        "http" => Action::Http {
            url: raw.url.clone().unwrap_or_default(),
            headers: raw.headers.unwrap_or_default(),
            allowed: raw.allowed_env_vars.unwrap_or_default(),
        },
        "mcp_tool" => Action::McpTool {
            server: raw.served.server.unwrap_or_default(),
            tool: raw.served.tool.unwrap_or_default(),
            input: raw.served.input,
        },
        kind @ ("prompt" | "agent") => {
            let prompt = raw.asked.prompt.unwrap_or_default();
            Action::Model { prompt, model: raw.asked.model, looks: kind == "agent" }
        }
        kind => Action::Other(kind.to_owned()),
    };
    match &entry.action {
        Action::Command { command, .. } if command.trim().is_empty() => {
            return Err("a command hook needs a \"command\"".to_owned());
        }
        Action::Http { url, headers, allowed } => super::http::check(url, headers, allowed)?,
        Action::McpTool { server, tool, .. } if server.is_empty() || tool.is_empty() => {
            return Err("an mcp_tool hook needs a \"server\" and a \"tool\"".to_owned());
        }
        Action::Model { prompt, .. } if prompt.trim().is_empty() => {
            return Err(format!("a hook of type {} needs a \"prompt\"", raw.r#type));
        }
        Action::Other(kind) => {
            return Err(format!(
                "there is no hook type \"{kind}\": use command, http, mcp_tool, prompt or agent"
            ));
        }
        Action::Command { .. } | Action::McpTool { .. } | Action::Model { .. } => {}
    }
    if let Some(seconds) = raw.timeout {
        if !(seconds > 0.0 && seconds <= LONGEST) {
            return Err(format!("timeout must be a number of seconds above 0 and up to {LONGEST}"));
        }
        entry.limit = Duration::from_secs_f64(seconds);
    }
    if let Some(rule) = raw.r#if {
        entry.condition = Some(Rule::parse(&rule).map_err(|error| format!("if: {error}"))?);
    }
    Ok(())
}
