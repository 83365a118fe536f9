//! Chat Completions, as many servers speak it, each a little differently.

use std::{collections::BTreeMap, mem::discriminant};

use serde::de::IgnoredAny;
use serde_json::{Value, json};

use super::{
    ModelError, Request, StopReason, Usage,
    answer::{Answer, Decode, Kind, Open, cut_off, text},
    http::provider_error,
};
use crate::message::{Content, Role, Source};

/// The body of a request. `newer` servers want the longest answer under another name.
pub(super) fn body(request: &Request, newer: bool) -> Value {
    let mut messages = Vec::new();
    let system = system(request);
    if !system.is_empty() {
        messages.push(json!({"role": "system", "content": system}));
    }
    for message in &request.messages {
        match message.role {
            Role::User => user(&message.content, &mut messages),
            Role::Assistant => messages.extend(assistant(&message.content)),
        }
    }
    let longest = if newer { "max_completion_tokens" } else { "max_tokens" };
    let mut body = json!({
        "model": request.model, longest: request.max_tokens, "stream": request.streamed, "messages": messages,
    });
    if request.streamed {
        body["stream_options"] = json!({"include_usage": true});
    }
    if let Some(budget) = request.thinking {
        body["reasoning_effort"] = json!(effort(budget));
    }
    let tools: Vec<Value> =
        functions(request).map(|function| json!({"type": "function", "function": function})).collect();
    if !tools.is_empty() {
        body["tools"] = Value::Array(tools);
    }
    body
}

/// The system prompt as one text.
pub(super) fn system(request: &Request) -> String {
    request
        .system
        .iter()
        .map(|part| part.trim())
        .filter(|part| !part.is_empty())
        .collect::<Vec<_>>()
        .join("\n\n")
}

/// The tools that are not held back: these wires know no way to announce the others.
pub(super) fn functions(request: &Request) -> impl Iterator<Item = Value> {
    request
        .tools
        .iter()
        .filter(|tool| !tool.deferred)
        .map(|tool| json!({"name": tool.name, "description": tool.description, "parameters": tool.schema}))
}

/// These wires name efforts instead of counting tokens.
pub(super) fn effort(budget: u32) -> &'static str {
    match budget {
        0..4_096 => "low",
        4_096..16_384 => "medium",
        _ => "high",
    }
}

/// The text of a result, which says itself whether the call failed: these wires have no mark for it.
pub(super) fn result_text(content: &[Content], is_error: bool) -> String {
    let texts = content.iter().filter_map(|block| match block {
        Content::Text { text } => Some(text.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    if is_error { format!("the call failed: {text}") } else { text }
}

/// The address of a picture or document, or the thing itself as one.
pub(super) fn address(source: &Source) -> String {
    match source {
        Source::Base64 { media_type, data } => format!("data:{media_type};base64,{data}"),
        Source::Url { url } => url.clone(),
    }
}

/// Results come first, each as a message, directly after the calls; what only a person may send follows.
fn user(content: &[Content], messages: &mut Vec<Value>) {
    let mut parts = Vec::new();
    for block in content {
        if let Content::ToolResult { tool_use_id, content, is_error } = block {
            let text = result_text(content, *is_error);
            messages.push(json!({"role": "tool", "tool_call_id": tool_use_id, "content": text}));
            parts.extend(
                content.iter().filter(|block| !matches!(block, Content::Text { .. })).filter_map(part),
            );
        }
    }
    parts.extend(content.iter().filter_map(part));
    match &parts[..] {
        [] => {}
        [only] if only["type"] == "text" => messages.push(json!({"role": "user", "content": only["text"]})),
        _ => messages.push(json!({"role": "user", "content": parts})),
    }
}

fn part(block: &Content) -> Option<Value> {
    match block {
        Content::Text { text } if !text.is_empty() => Some(json!({"type": "text", "text": text})),
        Content::Image { source } => {
            Some(json!({"type": "image_url", "image_url": {"url": address(source)}}))
        }
        Content::Document { source } => {
            Some(json!({"type": "file", "file": {"filename": "document.pdf", "file_data": address(source)}}))
        }
        _ => None,
    }
}

fn assistant(content: &[Content]) -> Option<Value> {
    let (mut said, mut calls) = (Vec::new(), Vec::new());
    for block in content {
        match block {
            Content::Text { text } if !text.is_empty() => said.push(text.as_str()),
            Content::ToolUse { id, name, input } => calls.push(json!({
                "id": id, "type": "function", "function": {"name": name, "arguments": input.to_string()},
            })),
            _ => {}
        }
    }
    if said.is_empty() && calls.is_empty() {
        return None;
    }
    let mut message = json!({"role": "assistant", "content": said.join("\n")});
    if said.is_empty() {
        message["content"] = Value::Null;
    }
    if !calls.is_empty() {
        message["tool_calls"] = Value::Array(calls);
    }
    Some(message)
}

/// Reads answers. One block is open at a time: the next one completes it, so that tools start early.
#[derive(Default)]
pub(super) struct Decoder {
    open: Option<Open>,
    call: Call,
    /// Calls of which more must come although others have begun, by their number.
    halves: BTreeMap<u64, (Call, Open)>,
    finished: Option<StopReason>,
}

/// The call that is being told.
#[derive(Default)]
struct Call {
    index: Option<u64>,
    id: String,
    /// It was announced; before that its name is not known.
    begun: bool,
    /// What came of its input before the name.
    early: String,
}

impl Decode for Decoder {
    fn event(&mut self, data: Value, answer: &mut Answer) -> Result<(), ModelError> {
        if !data["error"].is_null() {
            return Err(provider_error(&data["error"]));
        }
        answer.start(&data);
        let choice = &data["choices"][0];
        self.say(if choice["delta"].is_object() { &choice["delta"] } else { &choice["message"] }, answer);
        // Some servers give an empty reason with every piece.
        if let Some(reason) = choice["finish_reason"].as_str().filter(|reason| !reason.is_empty()) {
            self.close_all(answer);
            self.finished = Some(stop_reason(reason));
        }
        usage(&data["usage"], answer);
        Ok(())
    }

    fn whole(&mut self, body: Value, answer: &mut Answer) -> Result<(), ModelError> {
        self.event(body, answer)?;
        self.end(false, answer)
    }

    fn end(&mut self, told: bool, answer: &mut Answer) -> Result<(), ModelError> {
        if self.finished.is_none() && !told {
            return Err(cut_off());
        }
        self.close_all(answer);
        answer.stop(self.finished.take());
        Ok(())
    }
}

impl Decoder {
    fn say(&mut self, delta: &Value, answer: &mut Answer) {
        // Some servers tell a thought under both names.
        let thought = ["reasoning_content", "reasoning"].map(|key| text(delta, key));
        let thought = if thought[0].is_empty() { thought[1] } else { thought[0] };
        self.add(Kind::Thinking { signature: String::new() }, thought, answer);
        self.add(Kind::Text, text(delta, "content"), answer);
        // Some tell it in parts, thoughts among them.
        for part in delta["content"].as_array().into_iter().flatten() {
            let thoughts = part["thinking"].as_array().into_iter().flatten();
            let thought: String = thoughts.map(|part| text(part, "text")).collect();
            self.add(Kind::Thinking { signature: String::new() }, &thought, answer);
            self.add(Kind::Text, text(part, "text"), answer);
        }
        self.add(Kind::Text, text(delta, "refusal"), answer);
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.call(call, answer);
        }
    }

    fn add(&mut self, kind: Kind, piece: &str, answer: &mut Answer) {
        if piece.is_empty() {
            return;
        }
        if !self.open.as_mut().is_some_and(|open| discriminant(open.kind()) == discriminant(&kind)) {
            self.close(answer);
        }
        let open = self.open.get_or_insert_with(|| answer.open(kind));
        answer.push(open, piece);
    }

    /// A piece of a call. Servers tell the index, the id and the name once, late, or with every piece; those
    /// that send whole calls may give all of them the same index.
    fn call(&mut self, piece: &Value, answer: &mut Answer) {
        let (index, id) = (piece["index"].as_u64(), text(piece, "id"));
        let (name, arguments) = (text(&piece["function"], "name"), &piece["function"]["arguments"]);
        self.turn_to(index, answer);
        let in_call = self.open.as_mut().is_some_and(|open| matches!(open.kind(), Kind::Call { .. }));
        let (told, same) = (self.call.index.is_some(), index.is_none() || index == self.call.index);
        let other_id = !id.is_empty() && !self.call.id.is_empty() && id != self.call.id;
        let arguments = match arguments {
            Value::String(json) => json.clone(),
            Value::Null => String::new(),
            // Some send the object instead of its text.
            object => object.to_string(),
        };
        // Where there are no ids, a name begins a call if there is no number either, or if the one before is whole.
        let another = index.is_none() || arguments.trim_start().starts_with('{') && self.is_whole();
        let named = id.is_empty() && !name.is_empty() && in_call && another;
        if !(in_call || told) || !same || other_id || named {
            self.close(answer);
        }
        self.call.index = index.or(self.call.index).or(Some(0));
        if self.call.id.is_empty() {
            id.clone_into(&mut self.call.id);
        }
        if !self.call.begun && name.is_empty() {
            self.call.early.push_str(&arguments);
            return;
        }
        self.begin(name, answer);
        if let Some(open) = &mut self.open {
            answer.push(open, &arguments);
        }
    }

    /// The piece belongs to the call with this number: puts aside another one that is not whole, and takes up again
    /// what was put aside of this one.
    fn turn_to(&mut self, index: Option<u64>, answer: &mut Answer) {
        let Some(index) = index.filter(|index| self.call.index.is_some_and(|now| now != *index)) else {
            return;
        };
        if self.call.begun && !self.is_whole() {
            let call = std::mem::take(&mut self.call);
            self.halves.extend(call.index.zip(self.open.take()).map(|(now, open)| (now, (call, open))));
        }
        if let Some((call, open)) = self.halves.remove(&index) {
            self.close(answer);
            (self.call, self.open) = (call, Some(open));
        }
    }

    /// Whether what came of the input is all of an object.
    fn is_whole(&self) -> bool {
        let text = self.open.as_ref().map(Open::text).unwrap_or_default();
        text.trim_end().ends_with('}') && serde_json::from_str::<IgnoredAny>(text).is_ok()
    }

    fn begin(&mut self, name: &str, answer: &mut Answer) {
        if std::mem::replace(&mut self.call.begun, true) {
            return;
        }
        if let Some(before) = self.open.take() {
            answer.close(before);
        }
        let kind = Kind::Call { id: self.call.id.clone(), name: name.to_owned() };
        let mut open = answer.open(kind);
        answer.push(&mut open, &std::mem::take(&mut self.call.early));
        self.open = Some(open);
    }

    /// Completes everything, in the order in which it began.
    fn close_all(&mut self, answer: &mut Answer) {
        let last = self.call.index;
        while let Some(half) =
            self.halves.first_entry().filter(|half| last.is_none_or(|last| *half.key() < last))
        {
            answer.close(half.remove().1);
        }
        self.close(answer);
        std::mem::take(&mut self.halves).into_values().for_each(|(_, open)| answer.close(open));
    }

    /// Completes what is open.
    fn close(&mut self, answer: &mut Answer) {
        if self.call.index.is_some() && !self.call.begun {
            self.begin("", answer);
        }
        self.call = Call::default();
        if let Some(open) = self.open.take() {
            answer.close(open);
        }
    }
}

fn stop_reason(reason: &str) -> StopReason {
    match reason {
        "stop" => StopReason::EndTurn,
        "tool_calls" | "function_call" => StopReason::ToolUse,
        "length" => StopReason::MaxTokens,
        "content_filter" => StopReason::Refusal,
        other => StopReason::Other(other.to_owned()),
    }
}

/// What is read again counts as read here; it is taken out, as it costs less.
fn usage(told: &Value, answer: &mut Answer) {
    counted(told, ["prompt_tokens", "completion_tokens", "prompt_tokens_details"], answer);
}

pub(super) fn counted(told: &Value, [input, output, details]: [&str; 3], answer: &mut Answer) {
    if let Some(read) = told[input].as_u64() {
        let cached = told[details]["cached_tokens"].as_u64().unwrap_or_default();
        answer.usage(|usage| {
            *usage = Usage {
                input_tokens: read.saturating_sub(cached),
                output_tokens: told[output].as_u64().unwrap_or_default(),
                cache_read_input_tokens: cached,
                ..Usage::default()
            };
        });
    }
}
