//! The Messages API.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use serde::{Serialize, Serializer, ser::SerializeSeq};
use serde_json::{Value, json};

use super::{
    ModelError, Request, StopReason, ToolDefinition, Usage,
    answer::{Answer, Decode, Kind, Open, cut_off, text},
    http::provider_error,
};
use crate::message::{Content, Input, Message, Role};

/// The smallest budget for thinking that the provider takes.
const LEAST_THINKING: u32 = 1_024;
/// User messages, from the end, up to which the conversation is kept for next time. Two, so that the one before
/// still fits when the last is new. With the tools and the system prompt these are the four that are allowed.
const MARKED_MESSAGES: usize = 2;

/// The body of a request. Serialised straight from the conversation, pictures are not copied once more.
#[derive(Serialize)]
pub(super) struct Body<'a> {
    model: &'a str,
    max_tokens: u32,
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    system: Vec<Marked<SystemText<'a>>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Marked<Tool<'a>>>,
    messages: Vec<Said<'a>>,
}

/// Something with a breakpoint behind it, or without.
#[derive(Serialize)]
struct Marked<T> {
    #[serde(flatten)]
    inner: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<Value>,
}

#[derive(Serialize)]
struct SystemText<'a> {
    r#type: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    description: &'a str,
    input_schema: &'a Value,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    defer_loading: bool,
}

#[derive(Serialize)]
struct Said<'a> {
    role: Role,
    #[serde(serialize_with = "blocks")]
    content: (Vec<&'a Content>, bool),
}

impl<'a> Body<'a> {
    pub(super) fn of(request: &'a Request) -> Self {
        let system: Vec<&str> =
            request.system.iter().map(|part| &**part).filter(|part| !is_blank(part)).collect();
        let mut messages: Vec<Said<'a>> = request.messages.iter().filter_map(said).collect();
        let users = messages.iter_mut().rev().filter(|message| message.role == Role::User);
        users.take(MARKED_MESSAGES).for_each(|message| message.content.1 = true);
        let last_tool = request.tools.iter().rposition(|tool| tool.built_in && !tool.deferred);
        let last_part = system.len().saturating_sub(1);
        let budget = request.thinking.map(|budget| budget.min(request.max_tokens.saturating_sub(1)));
        Self {
            model: &request.model,
            max_tokens: request.max_tokens,
            stream: request.streamed,
            thinking: budget
                .filter(|budget| *budget >= LEAST_THINKING)
                .map(|budget| json!({"type": "enabled", "budget_tokens": budget})),
            system: system
                .into_iter()
                .enumerate()
                .map(|(at, text)| marked(SystemText { r#type: "text", text }, at == last_part))
                .collect(),
            tools: request
                .tools
                .iter()
                .enumerate()
                .map(|(at, tool)| marked(Tool::of(tool), Some(at) == last_tool))
                .collect(),
            messages,
        }
    }
}

impl<'a> Tool<'a> {
    fn of(tool: &'a ToolDefinition) -> Self {
        let ToolDefinition { name, description, schema, deferred, .. } = tool;
        Self { name, description, input_schema: schema, defer_loading: *deferred }
    }
}

fn marked<T>(inner: T, mark: bool) -> Marked<T> {
    Marked { inner, cache_control: mark.then(|| json!({"type": "ephemeral"})) }
}

fn is_blank(text: &str) -> bool {
    text.trim().is_empty()
}

/// A message without the blocks that the provider would refuse: text that says nothing, thoughts of another
/// provider.
fn said(message: &Arc<Message>) -> Option<Said<'_>> {
    let content: Vec<&Content> = message.content.iter().filter(|block| is_taken(block)).collect();
    (!content.is_empty()).then_some(Said { role: message.role, content: (content, false) })
}

fn is_taken(block: &Content) -> bool {
    match block {
        Content::Text { text } => !is_blank(text),
        Content::Thinking { signature, .. } => !signature.is_empty(),
        Content::Other(value) => value.is_object() && !super::openai_responses::is_item(value),
        _ => true,
    }
}

fn blocks<S: Serializer>((content, mark): &(Vec<&Content>, bool), serializer: S) -> Result<S::Ok, S::Error> {
    let mut sequence = serializer.serialize_seq(Some(content.len()))?;
    for (at, block) in content.iter().enumerate() {
        let inner = Taken(block);
        match *mark && at + 1 == content.len() {
            true => sequence.serialize_element(&marked(inner, true))?,
            false => sequence.serialize_element(&inner)?,
        }
    }
    sequence.end()
}

/// A block whose inner blocks are filtered as well.
struct Taken<'a>(&'a Content);

impl Serialize for Taken<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct ToolResult<'a> {
            r#type: &'static str,
            tool_use_id: &'a str,
            content: Vec<&'a Content>,
            #[serde(skip_serializing_if = "std::ops::Not::not")]
            is_error: bool,
        }
        #[derive(Serialize)]
        struct ToolUse<'a> {
            r#type: &'static str,
            id: &'a str,
            name: &'a str,
            input: &'a Input,
        }
        match self.0 {
            Content::ToolResult { tool_use_id, content, is_error } => {
                let content = content.iter().filter(|block| is_taken(block)).collect();
                let (r#type, tool_use_id) = ("tool_result", &*plain(tool_use_id));
                ToolResult { r#type, tool_use_id, content, is_error: *is_error }.serialize(serializer)
            }
            Content::ToolUse { id, name, input } => {
                ToolUse { r#type: "tool_use", id: &plain(id), name, input }.serialize(serializer)
            }
            other => other.serialize(serializer),
        }
    }
}

/// An id as the provider takes it. Others give ids with dots and colons in them, and a conversation may have begun
/// with one of them.
fn plain(id: &str) -> Cow<'_, str> {
    let other = |c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if id.contains(other) { id.replace(other, "_").into() } else { id.into() }
}

/// Reads answers.
#[derive(Default)]
pub(super) struct Decoder {
    open: BTreeMap<u64, Open>,
    reason: Option<StopReason>,
}

impl Decode for Decoder {
    fn event(&mut self, data: Value, answer: &mut Answer) -> Result<(), ModelError> {
        let at = data["index"].as_u64().unwrap_or_default();
        match text(&data, "type") {
            "message_start" => {
                answer.start(&data["message"]);
                answer.usage(|usage| add(usage, &data["message"]["usage"]));
            }
            "content_block_start" => {
                let block = begin(&data["content_block"], answer);
                if let Some(unfinished) = self.open.insert(at, block) {
                    answer.close(unfinished);
                }
            }
            "content_block_delta" => {
                let block = self.open.get_mut(&at).ok_or_else(cut_off)?;
                extend(block, &data["delta"], answer);
            }
            "content_block_stop" => {
                if let Some(block) = self.open.remove(&at) {
                    finish(block, answer);
                }
            }
            "message_delta" => {
                self.reason = reason(&data["delta"]).or(self.reason.take());
                answer.usage(|usage| add(usage, &data["usage"]));
            }
            "message_stop" => {
                std::mem::take(&mut self.open).into_values().for_each(|block| finish(block, answer));
                answer.stop(self.reason.take());
            }
            "error" => return Err(provider_error(&data["error"])),
            // A ping, or something newer than this.
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: Value, answer: &mut Answer) -> Result<(), ModelError> {
        if !body["error"].is_null() {
            return Err(provider_error(&body["error"]));
        }
        let blocks = body["content"].as_array().ok_or_else(cut_off)?;
        answer.start(&body);
        for block in blocks {
            let block = begin(block, answer);
            finish(block, answer);
        }
        answer.usage(|usage| add(usage, &body["usage"]));
        answer.stop(reason(&body));
        Ok(())
    }

    fn end(&mut self, _told: bool, answer: &mut Answer) -> Result<(), ModelError> {
        if answer.stopped { Ok(()) } else { Err(cut_off()) }
    }
}

/// Opens a block, with what it already holds.
fn begin(block: &Value, answer: &mut Answer) -> Open {
    let (kind, held) = match text(block, "type") {
        "text" => (Kind::Text, text(block, "text").to_owned()),
        "thinking" => {
            let signature = text(block, "signature").to_owned();
            (Kind::Thinking { signature }, text(block, "thinking").to_owned())
        }
        "tool_use" => {
            let held = match &block["input"] {
                Value::Object(input) if input.is_empty() => String::new(),
                Value::Null => String::new(),
                input => input.to_string(),
            };
            (Kind::Call { id: text(block, "id").to_owned(), name: text(block, "name").to_owned() }, held)
        }
        _ => (Kind::Other(block.clone()), String::new()),
    };
    let mut open = answer.open(kind);
    answer.push(&mut open, &held);
    open
}

fn extend(block: &mut Open, delta: &Value, answer: &mut Answer) {
    match (text(delta, "type"), block.kind()) {
        ("text_delta", Kind::Text) => answer.push(block, text(delta, "text")),
        ("thinking_delta", Kind::Thinking { .. }) => answer.push(block, text(delta, "thinking")),
        ("signature_delta", Kind::Thinking { signature }) => signature.push_str(text(delta, "signature")),
        ("input_json_delta", Kind::Call { .. }) => answer.push(block, text(delta, "partial_json")),
        ("input_json_delta", Kind::Other(_)) => block.add(text(delta, "partial_json")),
        _ => {}
    }
}

fn finish(mut block: Open, answer: &mut Answer) {
    let json = match block.kind() {
        Kind::Other(_) => serde_json::from_str::<Value>(block.text()).ok(),
        _ => None,
    };
    if let (Kind::Other(Value::Object(map)), Some(json)) = (block.kind(), json) {
        map.insert("input".to_owned(), json);
    }
    answer.close(block);
}

fn reason(message: &Value) -> Option<StopReason> {
    serde_json::from_value(message["stop_reason"].clone()).ok()
}

fn add(usage: &mut Usage, told: &Value) {
    let Usage { input_tokens, output_tokens, cache_creation_input_tokens, cache_read_input_tokens } = usage;
    for (key, count) in [
        ("input_tokens", input_tokens),
        ("output_tokens", output_tokens),
        ("cache_creation_input_tokens", cache_creation_input_tokens),
        ("cache_read_input_tokens", cache_read_input_tokens),
    ] {
        *count = told[key].as_u64().unwrap_or(*count);
    }
}
