//! Hooks that are tools of servers.

use std::{sync::Arc, time::Duration};

use gripper_process::Status;
use serde_json::{Map, Value};

use super::{contract::Raw, runner::CallTool};

/// Calls the tool; its text counts as what a command prints.
pub(super) async fn ask(
    tools: Arc<dyn CallTool>,
    server: &str,
    tool: &str,
    input: Option<Map<String, Value>>,
    event: &str,
    limit: Duration,
) -> Result<Raw, String> {
    let event: Value = serde_json::from_str(event).map_err(|error| error.to_string())?;
    let input = match input {
        Some(input) => input.into_iter().map(|(name, value)| (name, filled(value, &event))).collect(),
        None => event.as_object().cloned().unwrap_or_default(),
    };
    let raw = |status, stdout| Raw { status, stdout, stderr: String::new(), cut: false };
    match tokio::time::timeout(limit, tools.call(server, tool, input)).await {
        Err(_) => Ok(raw(Status::TimedOut, String::new())),
        Ok(answer) => answer.map(|text| raw(Status::Exited(0), text)),
    }
}

/// The value with every `${part.name}` in its texts replaced by that part of the event. A text that is nothing
/// but one such part becomes the part itself, whatever its type.
fn filled(value: Value, event: &Value) -> Value {
    match value {
        Value::String(text) => filled_text(&text, event),
        Value::Array(items) => items.into_iter().map(|item| filled(item, event)).collect(),
        Value::Object(map) => map.into_iter().map(|(name, value)| (name, filled(value, event))).collect(),
        other => other,
    }
}

fn filled_text(text: &str, event: &Value) -> Value {
    let part = |path: &str| path.split('.').try_fold(event, |value, name| value.get(name)).cloned();
    let whole = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    if let Some(path) = whole.filter(|path| !path.contains(['{', '}'])) {
        return part(path).unwrap_or_default();
    }
    let (mut done, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once("${") {
        let Some((path, after)) = behind.split_once('}') else { break };
        done.push_str(before);
        match part(path).unwrap_or_default() {
            Value::String(text) => done.push_str(&text),
            Value::Null => {}
            other => done.push_str(&other.to_string()),
        }
        rest = after;
    }
    Value::String(done + rest)
}

#[cfg(test)]
mod tests {
    use super::filled;
    use serde_json::{Value, json};

    #[test]
    fn parts_of_the_event_are_filled_in() {
        let event = json!({"tool_name": "Edit", "tool_input": {"file_path": "/a", "n": 3, "list": [1]}});
        let table: [(&str, Value); 6] = [
            ("${tool_input.n}", json!(3)),
            ("${tool_input.list}", json!([1])),
            ("${tool_input.none}", json!(null)),
            ("at ${tool_input.file_path}:${tool_input.n}", json!("at /a:3")),
            ("${tool_name", json!("${tool_name")),
            ("plain", json!("plain")),
        ];
        for (text, expected) in table {
            assert_eq!(filled(json!({"a": [text]}), &event), json!({"a": [expected]}), "{text}");
        }
    }
}
