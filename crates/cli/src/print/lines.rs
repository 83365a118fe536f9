//! What happens, as the lines that wrappers of agents read: `system`, `assistant`, `user`, `stream_event`, `result`.

use std::{collections::HashMap, sync::Arc};

use gripper_agent::{
    message::{Content, Message},
    model::{ModelEvent, StopReason, Usage},
    session::{Entry, Origin},
    turn::{AgentEvent, End, Outcome},
};
use gripper_runtime::Event;
use serde_json::{Value, json};

/// Makes lines of events.
pub(super) struct Lines {
    session: String,
    partial: bool,
    echo: bool,
    answer: (String, String),
    usage: Usage,
    /// The block that is being told in pieces.
    open: Option<usize>,
    /// Structured results of calls, until their line comes.
    structured: HashMap<Arc<str>, Value>,
    /// The call that started the agent these lines are of; the main agent's are of none.
    parent: Option<Arc<str>>,
    /// Lines of agents below, by the calls that started them.
    below: HashMap<Arc<str>, Lines>,
}

impl Lines {
    pub(super) fn new(session: &str, partial: bool, echo: bool) -> Self {
        Self {
            session: session.to_owned(),
            partial,
            echo,
            answer: Default::default(),
            usage: Usage::default(),
            open: None,
            structured: HashMap::new(),
            parent: None,
            below: HashMap::new(),
        }
    }

    fn below(&mut self, call: Arc<str>) -> &mut Lines {
        let fresh = || Lines { parent: Some(call.clone()), ..Lines::new(&self.session, false, true) };
        self.below.entry(call.clone()).or_insert_with(fresh)
    }

    fn line(&self, kind: &str, mut fields: Value) -> Value {
        let mut line = json!({ "type": kind });
        if let (Some(line), Some(fields)) = (line.as_object_mut(), fields.as_object_mut()) {
            line.append(fields);
            line.insert("session_id".to_owned(), self.session.clone().into());
            line.insert("uuid".to_owned(), uuid::Uuid::new_v4().to_string().into());
        }
        line
    }

    pub(super) fn system(&self, subtype: &str, mut fields: Value) -> Value {
        fields["subtype"] = subtype.into();
        self.line("system", fields)
    }

    /// The lines of an event.
    pub(super) fn of(&mut self, event: AgentEvent) -> Vec<Value> {
        match event {
            AgentEvent::Model(event) => self.model(event),
            AgentEvent::Call(Event::Result(result)) => {
                let kept = result.structured.clone().map(|value| (result.call_id.clone(), value));
                self.structured.extend(kept);
                Vec::new()
            }
            AgentEvent::Call(Event::Hook { run, .. }) if run.failed || run.message.is_some() => {
                vec![self.system("hook_response", serde_json::to_value(run).unwrap_or_default())]
            }
            AgentEvent::Call(_) => Vec::new(),
            AgentEvent::Recorded(entry) => self.entry(entry).into_iter().collect(),
            AgentEvent::Retrying { delay, attempt, of, error } => {
                let told = json!({
                    "attempt": attempt, "max_retries": of, "retry_delay_ms": delay.as_millis() as u64,
                    "error": error.message,
                });
                vec![self.system("api_retry", told)]
            }
            AgentEvent::Below { call, event } => self.below(call).of(*event),
            AgentEvent::Warning(words) => vec![self.system("warning", json!({ "message": words }))],
        }
    }

    fn entry(&mut self, entry: Entry) -> Option<Value> {
        match entry {
            Entry::Block { mut content, .. } => {
                // Readers expect a signature with every thought.
                let mut block = serde_json::to_value(&mut content).unwrap_or_default();
                if block["type"] == "thinking" && block.get("signature").is_none() {
                    block["signature"] = "".into();
                }
                let message = json!({
                    "id": self.answer.0, "type": "message", "role": "assistant", "model": self.answer.1,
                    "content": [block], "stop_reason": null, "stop_sequence": null, "usage": self.usage,
                });
                Some(self.line("assistant", json!({ "message": message, "parent_tool_use_id": self.parent })))
            }
            Entry::Result { content } => {
                let structured = match &content {
                    Content::ToolResult { tool_use_id, .. } => self.structured.remove(tool_use_id.as_str()),
                    _ => None,
                };
                let mut told = self.user_message(vec![content]);
                if let Some(structured) = structured {
                    told["tool_use_result"] = structured;
                }
                Some(self.line("user", told))
            }
            Entry::User { message, origin } => {
                let shown = matches!(origin, Origin::Hook) || self.echo && matches!(origin, Origin::Prompt);
                shown.then(|| self.line("user", self.user_message(message.content)))
            }
            // Wrappers take these to be about the main agent.
            _ if self.parent.is_some() => None,
            Entry::Discarded { answer } => Some(self.system("discarded", json!({ "message_id": answer }))),
            Entry::Compacted { .. } => {
                Some(self.system("compact_boundary", json!({ "compact_metadata": { "trigger": "auto" } })))
            }
            _ => None,
        }
    }

    fn user_message(&self, content: Vec<Content>) -> Value {
        let message = Message { role: gripper_agent::message::Role::User, content };
        json!({ "message": message, "parent_tool_use_id": self.parent })
    }

    fn model(&mut self, event: ModelEvent) -> Vec<Value> {
        match &event {
            ModelEvent::Start { id, model } => {
                (self.answer, self.usage) = ((id.clone(), model.clone()), Usage::default());
            }
            ModelEvent::Usage(usage) => self.usage = *usage,
            _ => {}
        }
        if !self.partial {
            return Vec::new();
        }
        let pieces = self.pieces(&event);
        pieces
            .into_iter()
            .map(|event| {
                self.line("stream_event", json!({ "event": event, "parent_tool_use_id": self.parent }))
            })
            .collect()
    }

    /// The event as the Messages API streams it, whoever the model is.
    fn pieces(&mut self, event: &ModelEvent) -> Vec<Value> {
        let mut pieces = Vec::new();
        let mut open = |this: &mut Self, index: usize, block: Value| {
            if this.open != Some(index) {
                this.open = Some(index);
                pieces.push(json!({ "type": "content_block_start", "index": index, "content_block": block }));
            }
        };
        let delta = |index: usize, delta: Value| json!({ "type": "content_block_delta", "index": index, "delta": delta });
        match event {
            ModelEvent::Start { id, model } => pieces.push(json!({ "type": "message_start", "message": {
                "id": id, "type": "message", "role": "assistant", "model": model, "content": [],
                "stop_reason": null, "stop_sequence": null, "usage": self.usage,
            } })),
            ModelEvent::Text { index, text } => {
                open(self, *index, json!({ "type": "text", "text": "" }));
                pieces.push(delta(*index, json!({ "type": "text_delta", "text": text })));
            }
            ModelEvent::Thinking { index, text } => {
                open(self, *index, json!({ "type": "thinking", "thinking": "", "signature": "" }));
                pieces.push(delta(*index, json!({ "type": "thinking_delta", "thinking": text })));
            }
            ModelEvent::CallStart { index, id, name } => {
                open(self, *index, json!({ "type": "tool_use", "id": id, "name": name, "input": {} }));
            }
            ModelEvent::CallInput { index, json: piece } => {
                pieces.push(delta(*index, json!({ "type": "input_json_delta", "partial_json": piece })));
            }
            ModelEvent::Block { index, .. } => {
                if self.open.take() == Some(*index) {
                    pieces.push(json!({ "type": "content_block_stop", "index": index }));
                }
            }
            ModelEvent::Usage(_) => {}
            ModelEvent::Stop(reason) => pieces.extend([
                json!({ "type": "message_delta", "delta": { "stop_reason": reason, "stop_sequence": null },
                        "usage": self.usage }),
                json!({ "type": "message_stop" }),
            ]),
        }
        pieces
    }

    /// The last line of a piece of work.
    pub(super) fn result(&self, outcome: &Outcome, structured: Option<Value>) -> Value {
        let (subtype, words) = verdict(&outcome.end);
        let mut told = json!({
            "subtype": subtype,
            "is_error": words.is_some(),
            "duration_ms": outcome.took.0.as_millis() as u64,
            "duration_api_ms": outcome.took.1.as_millis() as u64,
            "num_turns": outcome.turns,
            "result": words.as_ref().unwrap_or(&outcome.text),
            "stop_reason": match &outcome.end { End::Done(reason) => Some(reason), _ => None::<&StopReason> },
            "total_cost_usd": outcome.cost,
            "usage": outcome.usage,
            "permission_denials": outcome.denials,
        });
        if let Some(words) = words {
            told["errors"] = json!([words]);
        }
        if let Some(structured) = structured {
            told["structured_output"] = structured;
        }
        self.line("result", told)
    }

    /// The last line when there was no work to speak of.
    pub(super) fn failed(&self, words: &str) -> Value {
        self.line(
            "result",
            json!({
                "subtype": "error_during_execution", "is_error": true, "duration_ms": 0, "duration_api_ms": 0,
                "num_turns": 0, "result": words, "errors": [words], "total_cost_usd": 0.0,
                "usage": Usage::default(), "permission_denials": [],
            }),
        )
    }
}

/// How work ended, as machines read it; words if it did not end well.
pub(super) fn verdict(end: &End) -> (&'static str, Option<String>) {
    let words = || Some(end.to_string());
    match end {
        End::Done(StopReason::Refusal) => ("error_during_execution", words()),
        End::Done(_) => ("success", None),
        End::MaxTurns(_) => ("error_max_turns", words()),
        End::Budget(_) => ("error_max_budget_usd", words()),
        End::NotDelivered(_) => ("error_max_structured_output_retries", words()),
        End::Interrupted | End::Halted(_) | End::Failed(_) => ("error_during_execution", words()),
    }
}
