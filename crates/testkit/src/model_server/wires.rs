//! The forms that providers give to an answer.

use std::time::Duration;

use serde_json::{Value, json};

use super::{
    Asked,
    script::{Answer, Gate, Part},
};

/// Characters of text, and of a call's input, in one event.
const PIECE: usize = 12;

/// Whose form a request has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// `/v1/messages`
    Anthropic,
    /// `/v1/chat/completions`
    OpenAiChat,
    /// `/v1/responses`
    OpenAiResponses,
}

impl Wire {
    pub(super) fn of_path(path: &str) -> Option<Self> {
        match path {
            "/v1/messages" => Some(Wire::Anthropic),
            "/v1/chat/completions" => Some(Wire::OpenAiChat),
            "/v1/responses" => Some(Wire::OpenAiResponses),
            _ => None,
        }
    }
}

/// What the server does next.
pub(super) enum Step {
    Send(Vec<u8>),
    Delay(Duration),
    Wait(Gate),
    Hang,
    Cut,
}

impl Step {
    pub(super) fn split(self, size: Option<usize>) -> Vec<Step> {
        match (self, size) {
            (Step::Send(bytes), Some(size)) => {
                bytes.chunks(size.max(1)).map(|piece| Step::Send(piece.to_vec())).collect()
            }
            (step, _) => vec![step],
        }
    }
}

/// The body of an error.
pub(super) fn error(wire: Wire, status: u16, message: &str) -> String {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    let error = json!({"type": kind, "message": message});
    match wire {
        Wire::Anthropic => json!({"type": "error", "error": error}).to_string(),
        Wire::OpenAiChat | Wire::OpenAiResponses => json!({"error": error}).to_string(),
    }
}

/// The answer as a stream.
pub(super) fn steps(answer: &Answer, asked: &Asked) -> Vec<Step> {
    if let Some(body) = &answer.body {
        return vec![Step::Send(body.clone().into_bytes())];
    }
    let mut steps: Vec<Step> =
        begin(answer, asked).into_iter().map(|event| send(asked.wire, event)).collect();
    let mut index = 0;
    for part in &answer.parts {
        let events = match part {
            Part::Delay { .. } | Part::Wait(_) | Part::Hang | Part::Cut => {
                steps.push(step(part));
                if matches!(part, Part::Hang | Part::Cut) {
                    return steps;
                }
                continue;
            }
            part => match asked.wire {
                Wire::Anthropic => anthropic(part, index),
                Wire::OpenAiChat => chat(part, index),
                Wire::OpenAiResponses => responses(part, index),
            },
        };
        steps.extend(events.into_iter().map(|event| send(asked.wire, event)));
        index += 1;
    }
    steps.extend(end(answer, asked).into_iter().map(|event| send(asked.wire, event)));
    if asked.wire == Wire::OpenAiChat {
        steps.push(Step::Send(b"data: [DONE]\n\n".to_vec()));
    }
    steps
}

fn step(part: &Part) -> Step {
    match part {
        Part::Delay { ms } => Step::Delay(Duration::from_millis(*ms)),
        Part::Wait(gate) => Step::Wait(gate.clone()),
        Part::Cut => Step::Cut,
        _ => Step::Hang,
    }
}

fn send(wire: Wire, event: Value) -> Step {
    let name = match (wire, event["type"].as_str()) {
        (Wire::OpenAiChat, _) | (_, None) => String::new(),
        (_, Some(kind)) => format!("event: {kind}\n"),
    };
    Step::Send(format!("{name}data: {event}\n\n").into_bytes())
}

fn model(asked: &Asked) -> &Value {
    &asked.body["model"]
}

fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(PIECE).map(|piece| piece.iter().collect()).collect()
}

/// The text of a call's input.
fn json_text(input: &Value) -> String {
    input.as_str().map_or_else(|| input.to_string(), str::to_owned)
}

fn begin(answer: &Answer, asked: &Asked) -> Vec<Value> {
    match asked.wire {
        Wire::Anthropic => {
            let usage = json!({
                "input_tokens": answer.usage.input, "cache_read_input_tokens": answer.usage.cached,
                "output_tokens": 1,
            });
            let message = json!({
                "id": "msg_1", "type": "message", "role": "assistant", "model": model(asked),
                "content": [], "stop_reason": null, "usage": usage,
            });
            vec![json!({"type": "message_start", "message": message}), json!({"type": "ping"})]
        }
        Wire::OpenAiChat => vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)],
        Wire::OpenAiResponses => {
            let response = json!({"id": "resp_1", "model": model(asked), "status": "in_progress"});
            vec![json!({"type": "response.created", "response": response})]
        }
    }
}

fn end(answer: &Answer, asked: &Asked) -> Vec<Value> {
    match asked.wire {
        Wire::Anthropic => vec![
            json!({
                "type": "message_delta", "delta": {"stop_reason": answer.reason()},
                "usage": {"output_tokens": answer.usage.output},
            }),
            json!({"type": "message_stop"}),
        ],
        Wire::OpenAiChat => {
            let mut events = vec![chunk(json!({}), json!(finish_reason(answer)))];
            if asked.body["stream_options"]["include_usage"] == true {
                events.push(json!({"id": "chat_1", "choices": [], "usage": chat_usage(answer)}));
            }
            events
        }
        Wire::OpenAiResponses => {
            let response = whole_response(answer, asked);
            let status = response["status"].as_str().unwrap_or_default();
            vec![json!({"type": format!("response.{status}"), "response": response})]
        }
    }
}

fn chunk(delta: Value, finish: Value) -> Value {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    json!({"id": "chat_1", "object": "chat.completion.chunk", "model": "scripted", "choices": [choice]})
}

fn anthropic(part: &Part, index: usize) -> Vec<Value> {
    let delta = |delta: Value| json!({"type": "content_block_delta", "index": index, "delta": delta});
    let (block, deltas) = match part {
        Part::Text { text } => {
            let say = |text| delta(json!({"type": "text_delta", "text": text}));
            (json!({"type": "text", "text": ""}), pieces(text).into_iter().map(say).collect::<Vec<_>>())
        }
        Part::Thinking { thinking: text } => {
            let think = |text| delta(json!({"type": "thinking_delta", "thinking": text}));
            let mut deltas: Vec<Value> = pieces(text).into_iter().map(think).collect();
            deltas.push(delta(json!({"type": "signature_delta", "signature": "signed"})));
            (json!({"type": "thinking", "thinking": "", "signature": ""}), deltas)
        }
        Part::Call { id, name, input } => {
            let add = |json| delta(json!({"type": "input_json_delta", "partial_json": json}));
            let block = json!({"type": "tool_use", "id": id, "name": name, "input": {}});
            (block, pieces(&json_text(input)).into_iter().map(add).collect())
        }
        _ => return Vec::new(),
    };
    let mut events = vec![json!({"type": "content_block_start", "index": index, "content_block": block})];
    events.extend(deltas);
    events.push(json!({"type": "content_block_stop", "index": index}));
    events
}

fn chat(part: &Part, index: usize) -> Vec<Value> {
    let say = |key: &str, text: &str| {
        pieces(text).into_iter().map(|text| chunk(json!({key: text}), Value::Null)).collect()
    };
    match part {
        Part::Text { text } => say("content", text),
        Part::Thinking { thinking: text } => say("reasoning_content", text),
        Part::Call { id, name, input } => {
            let call = |call: Value| chunk(json!({"tool_calls": [call]}), Value::Null);
            let function = json!({"name": name, "arguments": ""});
            let mut events =
                vec![call(json!({"index": index, "id": id, "type": "function", "function": function}))];
            let add = |text| call(json!({"index": index, "function": {"arguments": text}}));
            events.extend(pieces(&json_text(input)).into_iter().map(add));
            events
        }
        _ => Vec::new(),
    }
}

fn responses(part: &Part, index: usize) -> Vec<Value> {
    let Some(item) = item(part, index) else { return Vec::new() };
    let (kind, text) = match part {
        Part::Text { text } => ("response.output_text.delta", text.clone()),
        Part::Thinking { thinking: text } => ("response.reasoning_summary_text.delta", text.clone()),
        Part::Call { input, .. } => ("response.function_call_arguments.delta", json_text(input)),
        _ => return Vec::new(),
    };
    let mut begun = item.clone();
    for (key, empty) in [("content", json!([])), ("arguments", json!("")), ("summary", json!([]))] {
        if let Some(value) = begun.get_mut(key) {
            *value = empty;
        }
    }
    let mut events =
        vec![json!({"type": "response.output_item.added", "output_index": index, "item": begun})];
    let add = |text| json!({"type": kind, "output_index": index, "delta": text});
    events.extend(pieces(&text).into_iter().map(add));
    events.push(json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    events
}

fn item(part: &Part, index: usize) -> Option<Value> {
    let id = format!("item_{index}");
    Some(match part {
        Part::Text { text } => {
            let content = json!([{"type": "output_text", "text": text}]);
            json!({"id": id, "type": "message", "role": "assistant", "content": content})
        }
        Part::Thinking { thinking: text } => {
            let summary = json!([{"type": "summary_text", "text": text}]);
            json!({"id": id, "type": "reasoning", "summary": summary, "encrypted_content": "sealed"})
        }
        Part::Call { id: call, name, input } => {
            let arguments = json_text(input);
            json!({"id": id, "type": "function_call", "call_id": call, "name": name, "arguments": arguments})
        }
        _ => return None,
    })
}

fn finish_reason(answer: &Answer) -> &str {
    match answer.reason() {
        "tool_use" => "tool_calls",
        "max_tokens" => "length",
        "refusal" => "content_filter",
        "end_turn" => "stop",
        other => other,
    }
}

fn chat_usage(answer: &Answer) -> Value {
    let (input, cached) = (answer.usage.input + answer.usage.cached, answer.usage.cached);
    json!({
        "prompt_tokens": input, "completion_tokens": answer.usage.output,
        "prompt_tokens_details": {"cached_tokens": cached},
    })
}

fn whole_response(answer: &Answer, asked: &Asked) -> Value {
    let output: Vec<Value> =
        answer.parts.iter().enumerate().filter_map(|(index, part)| item(part, index)).collect();
    let cut = match answer.reason() {
        "max_tokens" => json!({"reason": "max_output_tokens"}),
        "refusal" => json!({"reason": "content_filter"}),
        _ => Value::Null,
    };
    let (input, cached) = (answer.usage.input + answer.usage.cached, answer.usage.cached);
    let usage = json!({
        "input_tokens": input, "output_tokens": answer.usage.output,
        "input_tokens_details": {"cached_tokens": cached},
    });
    json!({
        "id": "resp_1", "model": model(asked), "output": output, "usage": usage,
        "status": if cut.is_null() { "completed" } else { "incomplete" }, "incomplete_details": cut,
    })
}

/// The answer as one body.
pub(super) fn whole(answer: &Answer, asked: &Asked) -> Vec<u8> {
    if let Some(body) = &answer.body {
        return body.clone().into_bytes();
    }
    if answer.status != 200 {
        let message = format!("the script says {}", answer.status);
        return error(asked.wire, answer.status, &message).into_bytes();
    }
    let body = match asked.wire {
        Wire::OpenAiResponses => whole_response(answer, asked),
        Wire::Anthropic => {
            let block = |part: &Part| match part {
                Part::Text { text } => Some(json!({"type": "text", "text": text})),
                Part::Thinking { thinking: text } => {
                    Some(json!({"type": "thinking", "thinking": text, "signature": "signed"}))
                }
                Part::Call { id, name, input } => {
                    Some(json!({"type": "tool_use", "id": id, "name": name, "input": input}))
                }
                _ => None,
            };
            let content: Vec<Value> = answer.parts.iter().filter_map(block).collect();
            json!({
                "id": "msg_1", "type": "message", "role": "assistant", "model": model(asked), "content": content,
                "stop_reason": answer.reason(),
                "usage": {
                    "input_tokens": answer.usage.input, "output_tokens": answer.usage.output,
                    "cache_read_input_tokens": answer.usage.cached,
                },
            })
        }
        Wire::OpenAiChat => {
            let mut message = json!({"role": "assistant", "content": null});
            let mut calls = Vec::new();
            for part in &answer.parts {
                match part {
                    Part::Text { text } => message["content"] = json!(text),
                    Part::Thinking { thinking: text } => message["reasoning_content"] = json!(text),
                    Part::Call { id, name, input } => calls.push(json!({
                        "id": id, "type": "function",
                        "function": {"name": name, "arguments": json_text(input)},
                    })),
                    _ => {}
                }
            }
            if !calls.is_empty() {
                message["tool_calls"] = Value::Array(calls);
            }
            let choice = json!({"index": 0, "message": message, "finish_reason": finish_reason(answer)});
            json!({"id": "chat_1", "model": "scripted", "choices": [choice], "usage": chat_usage(answer)})
        }
    };
    body.to_string().into_bytes()
}
