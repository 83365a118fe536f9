//! JSON Lines from standard input: prompts, control requests, and answers to ours.

use std::{
    collections::HashMap,
    io::BufReader,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gripper_agent::message::{Content, Message, Role};
use gripper_runtime::{
    approve::{Answer, Approver, Ask, Grant, Reply},
    permissions::Rule,
};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::lines::{Line, next_line};

/// Longest line; pictures come as base64.
const LONGEST_LINE: usize = 64 * 1024 * 1024;

/// Why a question is answered with no when standard input has ended.
const NOBODY: &str = "nobody can be asked: standard input has ended";

/// What came in.
#[derive(Debug)]
pub(super) enum Incoming {
    /// Something for the model.
    Prompt(Message),
    /// A request about the session. Its id is given back as it came.
    Request { id: Value, request: Value },
    /// An answer to one of our requests.
    Response(Value),
    /// A line that could not be used, and why.
    Skipped(String),
}

/// Reads on a thread of its own until the end of input.
pub(super) fn listen() -> mpsc::Receiver<Incoming> {
    let (sender, receiver) = mpsc::channel(64);
    std::thread::spawn(move || {
        let mut reader = BufReader::new(std::io::stdin());
        loop {
            let incoming = match next_line(&mut reader, LONGEST_LINE) {
                Ok(Some(Line::Text(text))) if text.trim().is_empty() => continue,
                Ok(Some(Line::Text(text))) => read(&text),
                Ok(Some(Line::TooLong)) => Err("it is too long".to_owned()),
                Ok(Some(Line::NotText)) => Err("it is not UTF-8 text".to_owned()),
                Ok(None) | Err(_) => return,
            };
            let skipped =
                |why| Some(Incoming::Skipped(format!("a line of standard input was skipped: {why}")));
            if let Some(incoming) = incoming.unwrap_or_else(skipped)
                && sender.blocking_send(incoming).is_err()
            {
                return;
            }
        }
    });
    receiver
}

/// Reads one line; nothing for lines that need no answer.
fn read(line: &str) -> Result<Option<Incoming>, String> {
    let mut value: Value = serde_json::from_str(line).map_err(|error| format!("it is not JSON: {error}"))?;
    match value["type"].as_str() {
        Some("user") => {
            let content = value["message"]["content"].take();
            Ok(Some(Incoming::Prompt(Message { role: Role::User, content: blocks(content)? })))
        }
        Some("control_request") => {
            let (id, request) = (value["request_id"].take(), value["request"].take());
            Ok(Some(Incoming::Request { id, request }))
        }
        Some("control_response") => Ok(Some(Incoming::Response(value["response"].take()))),
        Some("control_cancel_request" | "keep_alive") => Ok(None),
        Some(other) => Err(format!("there are no lines of type \"{other}\": use user or control_request")),
        None => Err("it has no \"type\": a prompt is {\"type\": \"user\", \"message\": {…}}".to_owned()),
    }
}

/// What a person says: a text, or blocks. A call or a result would break the conversation.
fn blocks(content: Value) -> Result<Vec<Content>, String> {
    let content = match content {
        Value::String(text) => vec![Content::text(text)],
        blocks => serde_json::from_value::<Vec<Content>>(blocks)
            .map_err(|error| format!("its content is neither a text nor a list of blocks: {error}"))?,
    };
    // Providers refuse a message of blanks.
    let is_blank = |block: &Content| matches!(block, Content::Text { text } if text.trim().is_empty());
    if content.iter().all(is_blank) {
        return Err("its content is empty".to_owned());
    }
    let speaks = |block: &Content| {
        matches!(block, Content::Text { .. } | Content::Image { .. } | Content::Document { .. })
    };
    match content.iter().all(speaks) {
        true => Ok(content),
        false => Err("a prompt is made of text, image and document blocks".to_owned()),
    }
}

/// The answer to a control request.
pub(super) fn response(id: &Value, outcome: Result<Value, String>) -> Value {
    let response = match outcome {
        Ok(response) => json!({ "subtype": "success", "request_id": id, "response": response }),
        Err(error) => json!({ "subtype": "error", "request_id": id, "error": error }),
    };
    json!({ "type": "control_response", "response": response })
}

/// Puts questions to whoever is at the other end of standard input and output.
pub(super) struct Remote {
    lines: mpsc::UnboundedSender<Value>,
    /// Questions that wait for an answer; nothing once nobody can answer any more.
    open: Mutex<Option<Questions>>,
}

type Questions = HashMap<String, (Value, Reply)>;

impl Remote {
    /// An approver, and the lines it wants written.
    pub(super) fn new() -> (Arc<Self>, mpsc::UnboundedReceiver<Value>) {
        // As many lines as there are open calls.
        let (lines, receiver) = mpsc::unbounded_channel();
        (Arc::new(Self { lines, open: Mutex::new(Some(Questions::new())) }), receiver)
    }

    fn open(&self) -> MutexGuard<'_, Option<Questions>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in an answer. True if the whole work is to be stopped.
    pub(super) fn answer(&self, response: &Value) -> bool {
        let id = response["request_id"].as_str().unwrap_or_default();
        let asked = self.open().as_mut().and_then(|open| open.remove(id));
        let Some((input, reply)) = asked else { return false };
        let said = &response["response"];
        let (answer, stop) = if response["subtype"] == "error" {
            let words = response["error"].as_str().unwrap_or("no reason was given");
            (Answer::deny(format!("whoever was asked failed: {words}")), false)
        } else {
            read_answer(said, &input)
        };
        reply.answer(answer);
        stop
    }

    /// Nobody is at the other end any more: what is asked, now or later, is answered with no.
    pub(super) fn hang_up(&self) {
        self.open().take();
    }
}

/// An answer to a question, and whether it stops the work.
pub(super) fn read_answer(said: &Value, input: &Value) -> (Answer, bool) {
    if said["behavior"] != "allow" {
        let words = said["message"].as_str().unwrap_or("the person said no");
        return (Answer::deny(words), said["interrupt"] == true);
    }
    let edited = said.get("updatedInput").filter(|new| !new.is_null() && *new != input).cloned();
    if edited.as_ref().is_some_and(|new| !new.is_object()) {
        return (Answer::deny("the input that came with the yes is not an object"), false);
    }
    let rules = said["updatedPermissions"].as_array().into_iter().flatten();
    let grant = rules.filter_map(granted).next();
    (Answer::Allow { grant, input: edited, reason: None }, false)
}

/// The rule that an answer adds, if it adds one for this session.
fn granted(update: &Value) -> Option<Grant> {
    if update["type"] != "addRules" || update["behavior"] != "allow" {
        return None;
    }
    let rule = update["rules"].as_array()?.first()?;
    let tool = rule["toolName"].as_str()?;
    let text = match rule["ruleContent"].as_str() {
        Some(content) => format!("{tool}({content})"),
        None => tool.to_owned(),
    };
    Rule::parse(&text).ok().map(Grant::of)
}

/// The question as others are told of it.
pub(super) fn question(ask: &Ask) -> Value {
    let suggestions: Vec<Value> = ask
        .decision
        .suggestions
        .iter()
        .map(|suggestion| {
            let text = suggestion.rule.to_string();
            let rule = match text.strip_suffix(')').and_then(|text| text.split_once('(')) {
                Some((tool, content)) => json!({ "toolName": tool, "ruleContent": content }),
                None => json!({ "toolName": text }),
            };
            json!({ "type": "addRules", "rules": [rule], "behavior": "allow", "destination": "session" })
        })
        .collect();
    json!({
        "tool_name": &*ask.tool, "input": ask.input, "tool_use_id": &*ask.call_id, "agent_id": &*ask.agent,
        "permission_suggestions": suggestions, "decision_reason": ask.decision.reason,
        "description": ask.summary,
    })
}

impl Approver for Remote {
    fn push(&self, ask: Ask, reply: Reply) {
        let id = ask.id.to_string();
        let mut request = question(&ask);
        request["subtype"] = "can_use_tool".into();
        match &mut *self.open() {
            Some(open) => open.insert(id.clone(), (ask.input, reply)),
            None => {
                reply.answer(Answer::deny(NOBODY));
                return;
            }
        };
        self.lines.send(json!({ "type": "control_request", "request_id": id, "request": request })).ok();
    }

    fn remove(&self, id: &str) {
        if self.open().as_mut().is_some_and(|open| open.remove(id).is_some()) {
            self.lines.send(json!({ "type": "control_cancel_request", "request_id": id })).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, Incoming, read, read_answer};
    use serde_json::json;

    #[test]
    fn prompts_are_texts_or_blocks_and_never_results() {
        let prompt = |content| json!({ "type": "user", "message": { "role": "user", "content": content } });
        let text = |line: serde_json::Value| match read(&line.to_string()) {
            Ok(Some(Incoming::Prompt(message))) => Ok(message.text()),
            other => Err(format!("{other:?}")),
        };
        assert_eq!(text(prompt(json!("hi"))).unwrap(), "hi");
        assert_eq!(text(prompt(json!([{ "type": "text", "text": "hi" }]))).unwrap(), "hi");
        let result = json!([{ "type": "tool_result", "tool_use_id": "a", "content": [] }]);
        let blank = json!([{ "type": "text", "text": " " }]);
        for wrong in [result, blank, json!(""), json!([]), json!(3), json!([{ "type": "new" }])] {
            assert!(text(prompt(wrong)).is_err());
        }
        assert!(read("{").is_err() && read("{}").is_err() && read("{\"type\":\"x\"}").is_err());
    }

    #[test]
    fn only_a_clear_yes_is_a_yes() {
        let input = json!({ "command": "ls" });
        let odd = json!({ "behavior": "allow", "updatedInput": ["x"] });
        for said in
            [odd, json!({}), json!(null), json!({ "behavior": "ALLOW" }), json!({ "behavior": "deny" })]
        {
            assert!(matches!(read_answer(&said, &input).0, Answer::Deny { .. }), "{said}");
        }
        let yes = json!({ "behavior": "allow", "updatedInput": input.clone() });
        assert_eq!(read_answer(&yes, &input).0, Answer::once());
        assert!(read_answer(&json!({ "behavior": "deny", "interrupt": true }), &input).1);
    }
}
