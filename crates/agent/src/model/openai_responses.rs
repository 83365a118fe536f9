//! The Responses API. Nothing is stored with the provider; its thoughts come sealed and go back so.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::{
    ModelError, Request, StopReason,
    answer::{Answer, Decode, Kind, Open, cut_off, text},
    http::provider_error,
    openai_chat::{address, counted, effort, functions, result_text, system},
};
use crate::message::{Content, Role};

/// Whether a block that is not known here is an item of this wire.
pub(super) fn is_item(block: &Value) -> bool {
    let kind = text(block, "type");
    kind == "reasoning" || kind.ends_with("_call")
}

/// The body of a request.
pub(super) fn body(request: &Request) -> Value {
    let mut input = Vec::new();
    for message in &request.messages {
        items(message.role, &message.content, &mut input);
    }
    let mut body = json!({
        "model": request.model, "max_output_tokens": request.max_tokens, "stream": request.streamed,
        "store": false, "include": ["reasoning.encrypted_content"],
        "instructions": system(request), "input": input,
    });
    if let Some(budget) = request.thinking {
        body["reasoning"] = json!({"effort": effort(budget), "summary": "auto"});
    }
    let tools: Vec<Value> = functions(request)
        .map(|mut function| {
            function["type"] = json!("function");
            function["strict"] = json!(false);
            function
        })
        .collect();
    if !tools.is_empty() {
        body["tools"] = Value::Array(tools);
    }
    body
}

/// The items of a message. What stands side by side in a message of a person stays one message.
fn items(role: Role, content: &[Content], input: &mut Vec<Value>) {
    let mut parts = Vec::new();
    for block in content {
        match block {
            Content::Text { text } if role == Role::Assistant && !text.is_empty() => {
                let content = json!([{"type": "output_text", "text": text}]);
                input.push(json!({"role": "assistant", "content": content}));
            }
            Content::ToolUse { id, name, input: given } => input.push(json!({
                "type": "function_call", "call_id": id, "name": name, "arguments": given.to_string(),
            })),
            Content::ToolResult { tool_use_id, content, is_error } => {
                let text = result_text(content, *is_error);
                let mut shown: Vec<Value> = content.iter().filter_map(picture).collect();
                let output = match shown.is_empty() {
                    true => json!(text),
                    false => {
                        shown.insert(0, json!({"type": "input_text", "text": text}));
                        Value::Array(shown)
                    }
                };
                input.push(json!({"type": "function_call_output", "call_id": tool_use_id, "output": output}));
            }
            Content::Other(item) if is_item(item) => input.push(item.clone()),
            Content::Text { text } if !text.is_empty() => {
                parts.push(json!({"type": "input_text", "text": text}));
            }
            block => parts.extend(picture(block)),
        }
    }
    if !parts.is_empty() {
        input.push(json!({"role": "user", "content": parts}));
    }
}

fn picture(block: &Content) -> Option<Value> {
    match block {
        Content::Image { source } => Some(json!({"type": "input_image", "image_url": address(source)})),
        Content::Document { source } => {
            Some(json!({"type": "input_file", "filename": "document.pdf", "file_data": address(source)}))
        }
        _ => None,
    }
}

/// Reads answers.
#[derive(Default)]
pub(super) struct Decoder {
    open: BTreeMap<u64, Open>,
}

impl Decode for Decoder {
    fn event(&mut self, data: Value, answer: &mut Answer) -> Result<(), ModelError> {
        let at = data["output_index"].as_u64().unwrap_or_default();
        match text(&data, "type") {
            "response.created" => answer.start(&data["response"]),
            "response.output_item.added" => {
                let open = begin(&data["item"], answer);
                if let Some(before) = self.open.insert(at, open) {
                    answer.close(before);
                }
            }
            "response.output_text.delta"
            | "response.refusal.delta"
            | "response.reasoning_text.delta"
            | "response.reasoning_summary_text.delta"
            | "response.function_call_arguments.delta" => {
                let open = self.open.get_mut(&at).ok_or_else(cut_off)?;
                answer.push(open, text(&data, "delta"));
            }
            "response.output_item.done" => {
                let open = self.open.remove(&at);
                finish(open, &data["item"], answer);
            }
            "response.completed" | "response.incomplete" => self.over(&data["response"], answer),
            "response.failed" => return Err(provider_error(&data["response"]["error"])),
            "error" => {
                return Err(provider_error(if data["error"].is_object() { &data["error"] } else { &data }));
            }
            _ => {}
        }
        Ok(())
    }

    fn whole(&mut self, body: Value, answer: &mut Answer) -> Result<(), ModelError> {
        if !body["error"].is_null() {
            return Err(provider_error(&body["error"]));
        }
        let items = body["output"].as_array().ok_or_else(cut_off)?;
        answer.start(&body);
        items.iter().for_each(|item| finish(None, item, answer));
        self.over(&body, answer);
        Ok(())
    }

    fn end(&mut self, _told: bool, answer: &mut Answer) -> Result<(), ModelError> {
        if answer.stopped { Ok(()) } else { Err(cut_off()) }
    }
}

impl Decoder {
    fn over(&mut self, response: &Value, answer: &mut Answer) {
        answer.start(response);
        std::mem::take(&mut self.open).into_values().for_each(|open| answer.close(open));
        counted(&response["usage"], ["input_tokens", "output_tokens", "input_tokens_details"], answer);
        answer.stop(match text(&response["incomplete_details"], "reason") {
            "" => None,
            "max_output_tokens" => Some(StopReason::MaxTokens),
            "content_filter" => Some(StopReason::Refusal),
            other => Some(StopReason::Other(other.to_owned())),
        });
    }
}

fn begin(item: &Value, answer: &mut Answer) -> Open {
    answer.open(match text(item, "type") {
        "message" => Kind::Text,
        "function_call" => {
            Kind::Call { id: text(item, "call_id").to_owned(), name: text(item, "name").to_owned() }
        }
        _ => Kind::Other(item.clone()),
    })
}

/// Completes a block. The finished item holds all of it, also what no piece has told.
fn finish(open: Option<Open>, item: &Value, answer: &mut Answer) {
    // A server that mixes up its numbers must not make a call that nobody runs.
    let known = matches!(text(item, "type"), "message" | "function_call");
    let open = open.filter(|open| !(known && open.is_other()));
    let mut open = open.unwrap_or_else(|| begin(item, answer));
    let told = match open.kind() {
        Kind::Other(kept) => {
            kept.clone_from(item);
            String::new()
        }
        Kind::Call { .. } => text(item, "arguments").to_owned(),
        _ => {
            let parts = item["content"].as_array().into_iter().flatten();
            parts.map(|part| format!("{}{}", text(part, "text"), text(part, "refusal"))).collect()
        }
    };
    let missing = told.strip_prefix(open.text()).unwrap_or_default().to_owned();
    answer.push(&mut open, &missing);
    answer.close(open);
}
