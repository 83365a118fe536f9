//! A permission question as a form that a client puts to its person.

use gripper_runtime::{
    approve::{Answer, Ask},
    permissions::visible,
};
use rmcp::model::{ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema};
use serde_json::{Value, json};

const ONCE: &str = "allow once";
const SESSION: &str = "allow for this session";
const DENY: &str = "deny";

/// Characters of the input, and of what it would do, that a question shows.
const MOST_CHARS: usize = 4_000;

/// The form. A schema that the protocol's types do not take is a bug, and then nobody is asked.
pub(super) fn form(ask: &Ask) -> Option<ElicitRequestParams> {
    let mut choices = vec![ONCE];
    let mut about = "May it run?".to_owned();
    if let Some(grant) = ask.offer() {
        choices.push(SESSION);
        let rules: Vec<String> = grant.rules().map(ToString::to_string).collect();
        about.push_str(&format!(" \"{SESSION}\" allows {} from now on.", rules.join(" and ")));
    }
    choices.push(DENY);
    let schema = json!({
        "type": "object",
        "properties": {
            "decision": {
                "type": "string", "title": "Decision", "description": visible(&about), "enum": choices,
            },
            "feedback": {
                "type": "string", "title": "Words for the model",
                "description": "With a no: why, or what to do instead.",
            },
        },
        "required": ["decision"],
    });
    let requested_schema: ElicitationSchema = serde_json::from_value(schema).ok()?;
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message: message(ask), requested_schema })
}

fn message(ask: &Ask) -> String {
    let input = serde_json::to_string_pretty(&ask.input).unwrap_or_default();
    let mut text = format!(
        "Gripper asks for permission to run {}: {}\n\nWhy you are asked: {}\n\nIts input:\n{}",
        ask.tool,
        ask.summary,
        ask.decision.reason,
        cut(&input)
    );
    if let Some(preview) = &ask.preview {
        text.push_str(&format!("\n\nWhat it would do:\n{}", cut(preview)));
    }
    // What is asked about must look like what it is, whatever characters it holds.
    visible(&text).into_owned()
}

fn cut(text: &str) -> String {
    let mut shown: String = text.chars().take(MOST_CHARS).collect();
    if shown.len() < text.len() {
        shown.push_str("\n… cut here: it is longer than a question can show");
    }
    shown
}

/// What the person said. Whatever is not a clear yes is a no.
pub(super) fn answer(ask: &Ask, result: &ElicitResult) -> Answer {
    if result.action != ElicitationAction::Accept {
        return Answer::deny("the person declined");
    }
    let said = |field: &str| result.content.as_ref()?.get(field)?.as_str();
    match said("decision") {
        Some(ONCE) => Answer::once(),
        Some(SESSION) => match ask.offer() {
            Some(grant) => Answer::granting(Some(grant)),
            None => Answer::deny("the answer granted a rule that was not offered"),
        },
        Some(DENY) => {
            let words = said("feedback").map(str::trim).filter(|words| !words.is_empty());
            Answer::Deny { feedback: words.map(|words| words.chars().take(2_000).collect()) }
        }
        _ => Answer::deny("the client's answer was not one of those offered"),
    }
}

/// The same from JSON, as a client gives it when it calls again.
pub(super) fn answer_of_json(ask: &Ask, result: &Value) -> Answer {
    match serde_json::from_value::<ElicitResult>(result.clone()) {
        Ok(result) => answer(ask, &result),
        Err(_) => Answer::deny("the client's answer was not the result of an elicitation"),
    }
}
