//! What a hook is told and what its answer means, by the contract that people's hooks already keep.

use gripper_permissions::HookOpinion;
use gripper_process::Status;
use serde_json::{Map, Value, json};

use super::{HookEvent, Scene};

/// How a hook's program or address came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Raw {
    pub(super) status: Status,
    pub(super) stdout: String,
    pub(super) stderr: String,
    /// Not all of standard output was kept.
    pub(super) cut: bool,
}

/// What a hook said.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Said {
    pub(super) block: Option<String>,
    pub(super) verdict: Option<Verdict>,
    pub(super) input: Option<Value>,
    pub(super) output: Option<Value>,
    pub(super) approved: bool,
    pub(super) context: Option<String>,
    pub(super) message: Option<String>,
    pub(super) stop: Option<String>,
}

/// A part in the decision, weakest first.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    Allow(String),
    Ask(String),
    Defer(String),
    Deny(String),
}

impl Verdict {
    pub(super) fn rank(&self) -> u8 {
        match self {
            Verdict::Allow(_) => 0,
            Verdict::Ask(_) => 1,
            Verdict::Defer(_) => 2,
            Verdict::Deny(_) => 3,
        }
    }

    pub(super) fn word(&self) -> &'static str {
        ["allow", "ask", "defer", "deny"][usize::from(self.rank())]
    }

    /// To defer means that it is not decided here: somebody must be asked.
    pub(super) fn opinion(self) -> HookOpinion {
        match self {
            Verdict::Allow(reason) => HookOpinion::Allow(reason),
            Verdict::Ask(reason) => HookOpinion::Ask(reason),
            Verdict::Defer(reason) => {
                HookOpinion::Ask(format!("{reason} (left for somebody else to decide)"))
            }
            Verdict::Deny(reason) => HookOpinion::Deny(reason),
        }
    }
}

impl Said {
    /// What it did with all that goes with it, for a person who tries it.
    pub(super) fn account(&self) -> String {
        let reason = self.verdict.clone().map(|verdict| match verdict.opinion() {
            HookOpinion::Allow(reason) | HookOpinion::Ask(reason) | HookOpinion::Deny(reason) => reason,
        });
        let shown = |value: &Option<Value>| value.as_ref().map(Value::to_string);
        let parts = [
            ("because", self.block.clone().or(reason)),
            ("input", shown(&self.input)),
            ("output", shown(&self.output)),
            ("for the model", self.context.clone()),
            ("for the person", self.message.clone()),
            ("ends the session", self.stop.clone()),
        ];
        let parts = parts.into_iter().filter_map(|(label, text)| Some(format!("; {label}: {}", text?)));
        format!("{}{}", self.word(), parts.collect::<String>())
    }

    /// What it did, in a word.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Said { block: Some(_), .. } => "block",
            Said { stop: Some(_), .. } => "stop",
            Said { verdict: Some(verdict), .. } => verdict.word(),
            Said { approved: true, .. } => "allow",
            Said { input: Some(_), .. } | Said { output: Some(_), .. } => "rewrite",
            Said { context: Some(_), .. } => "note",
            _ => "pass",
        }
    }
}

/// What every hook is told, and what is special to the event.
pub(super) fn payload(
    scene: Scene<'_>,
    transcript: &str,
    event: HookEvent,
    fields: Map<String, Value>,
) -> Map<String, Value> {
    let mut all = Map::new();
    let mut put = |name: &str, value: Value| all.insert(name.to_owned(), value);
    put("session_id", scene.session.into());
    put("transcript_path", transcript.into());
    put("cwd", scene.place.cwd.to_string_lossy().into());
    put("permission_mode", scene.policy.mode.name().into());
    put("hook_event_name", event.name().into());
    if scene.agent.depth > 0 {
        put("agent_id", (*scene.agent.id).into());
        put("agent_type", (*scene.agent.kind).into());
    }
    all.extend(fields);
    all
}

/// The fields of an event about a call.
pub(crate) fn call_fields(call_id: &str, tool: &str, input: &Value) -> Map<String, Value> {
    fields(json!({ "tool_name": tool, "tool_input": input, "tool_use_id": call_id }))
}

/// An object's fields.
pub(crate) fn fields(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

/// What the answer means, or why it means nothing.
pub(super) fn read(event: HookEvent, raw: &Raw) -> Result<Said, String> {
    let printed = raw.stdout.trim();
    match raw.status {
        Status::TimedOut => Err("it did not end in time".to_owned()),
        Status::Cancelled => Err("it was stopped".to_owned()),
        Status::Signalled(signal) => Err(format!("it was killed by signal {signal}")),
        Status::Exited(2) => {
            let words = raw.stderr.trim();
            let reason = if words.is_empty() { "it gave no reason" } else { words };
            Ok(Said { block: Some(reason.to_owned()), ..Said::default() })
        }
        Status::Exited(0) if printed.starts_with('{') => answer(event, raw, printed),
        // At the start of a session plain text is for the model; elsewhere it is for nobody.
        Status::Exited(0) if event == HookEvent::SESSION_START && !printed.is_empty() => {
            Ok(Said { context: Some(printed.to_owned()), ..Said::default() })
        }
        Status::Exited(0) => Ok(Said::default()),
        Status::Exited(code) => match answer(event, raw, printed) {
            Ok(said) => Ok(said),
            Err(_) => {
                let first = raw.stderr.trim().lines().next().unwrap_or_default();
                let first: String = first.chars().take(500).collect();
                Err(format!("exit code {code}{}{first}", if first.is_empty() { "" } else { ": " }))
            }
        },
    }
}

fn answer(event: HookEvent, raw: &Raw, printed: &str) -> Result<Said, String> {
    if raw.cut {
        return Err("it printed more than an answer may have".to_owned());
    }
    let value: Value = serde_json::from_str(printed)
        .map_err(|error| format!("what it printed begins like JSON and is none: {error}"))?;
    let Value::Object(value) = value else { return Err("its answer is no JSON object".to_owned()) };
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut said = Said { message: text("systemMessage"), ..Said::default() };
    if value.get("continue") == Some(&Value::Bool(false)) {
        said.stop = Some(text("stopReason").unwrap_or_else(|| "a hook ended the session".to_owned()));
    }
    let reason = || text("reason").unwrap_or_else(|| "it gave no reason".to_owned());
    match text("decision").as_deref() {
        Some("block") => said.block = Some(reason()),
        Some("approve") if event == HookEvent::PRE_TOOL_USE => said.verdict = Some(Verdict::Allow(reason())),
        _ => {}
    }
    if let Some(specific) = value.get("hookSpecificOutput") {
        special(event, specific, &mut said)?;
    }
    Ok(said)
}

/// The part of an answer that is particular to its event.
fn special(event: HookEvent, value: &Value, said: &mut Said) -> Result<(), String> {
    let text = |key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    if let Some(other) = text("hookEventName").filter(|name| name != event.name()) {
        return Err(format!("it answered for {other}, not for {}", event.name()));
    }
    said.context = text("additionalContext").filter(|context| !context.is_empty());
    if event == HookEvent::PRE_TOOL_USE {
        let reason = text("permissionDecisionReason").unwrap_or_else(|| "it gave no reason".to_owned());
        match text("permissionDecision").as_deref() {
            None => {}
            Some("allow") => said.verdict = Some(Verdict::Allow(reason)),
            Some("ask") => said.verdict = Some(Verdict::Ask(reason)),
            Some("defer") => said.verdict = Some(Verdict::Defer(reason)),
            Some("deny") => said.verdict = Some(Verdict::Deny(reason)),
            // What is not understood is asked about.
            Some(other) => said.verdict = Some(Verdict::Ask(format!("it decided \"{other}\": {reason}"))),
        }
        said.input = value.get("updatedInput").filter(|input| !input.is_null()).cloned();
        if said.input.as_ref().is_some_and(|input| !input.is_object()) {
            return Err("its updatedInput is no object".to_owned());
        }
    }
    if event == HookEvent::POST_TOOL_USE {
        said.output = value.get("updatedToolOutput").filter(|output| !output.is_null()).cloned();
    }
    if event == HookEvent::PERMISSION_REQUEST
        && let Some(decision) = value.get("decision")
    {
        match decision.get("behavior").and_then(Value::as_str) {
            _ if decision.get("updatedInput").is_some_and(|input| !input.is_null()) => {
                return Err("an answer to a question cannot change the input; a PreToolUse hook can".into());
            }
            Some("allow") => said.approved = true,
            Some("deny") => {
                let message = decision.get("message").and_then(Value::as_str);
                said.block = Some(message.unwrap_or("it gave no reason").to_owned());
            }
            _ => {}
        }
    }
    Ok(())
}
