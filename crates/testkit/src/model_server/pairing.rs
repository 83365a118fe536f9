//! Whether every call of a conversation has its one result, in order, directly after.

use std::collections::{BTreeSet, VecDeque};

use serde_json::Value;

use super::{Asked, Wire};

/// What a conversation is made of, as far as calls are concerned.
enum Item<'a> {
    Call(&'a str),
    Result(&'a str),
    /// Something else of the model.
    Model,
    /// Something else of the person.
    Person,
}

pub(super) fn check(asked: &Asked) -> Result<(), String> {
    let items = match asked.wire {
        Wire::Anthropic => anthropic(&asked.body),
        Wire::OpenAiChat => chat(&asked.body),
        Wire::OpenAiResponses => responses(&asked.body),
    };
    let mut open: VecDeque<&str> = VecDeque::new();
    let mut seen = BTreeSet::new();
    let mut answering = false;
    for item in items {
        match item {
            Item::Call(id) if answering && !open.is_empty() => {
                return Err(format!("the call {id} comes before the result of {}", open[0]));
            }
            Item::Call(id) if !seen.insert(id) => return Err(format!("two calls have the id {id}")),
            Item::Call(id) => {
                answering = false;
                open.push_back(id);
            }
            Item::Result(id) => match open.pop_front() {
                Some(call) if call == id => answering = true,
                Some(call) => return Err(format!("the result of {id} stands where that of {call} belongs")),
                None => return Err(format!("the result of {id} follows no call")),
            },
            Item::Person if !open.is_empty() => return Err(format!("the call {} has no result", open[0])),
            Item::Model if answering && !open.is_empty() => {
                return Err(format!("the model goes on although the call {} has no result", open[0]));
            }
            Item::Person | Item::Model => {}
        }
    }
    open.front().map_or(Ok(()), |id| Err(format!("the call {id} has no result")))
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn other(role: &str) -> Item<'static> {
    if role == "assistant" { Item::Model } else { Item::Person }
}

fn anthropic(body: &Value) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    for message in list(&body["messages"]) {
        items.extend(list(&message["content"]).iter().map(|block| match text(block, "type") {
            "tool_use" => Item::Call(text(block, "id")),
            "tool_result" => Item::Result(text(block, "tool_use_id")),
            _ => other(text(message, "role")),
        }));
        if message["content"].is_string() {
            items.push(other(text(message, "role")));
        }
    }
    items
}

fn chat(body: &Value) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    for message in list(&body["messages"]) {
        match text(message, "role") {
            "tool" => items.push(Item::Result(text(message, "tool_call_id"))),
            role => items.push(other(role)),
        }
        items.extend(list(&message["tool_calls"]).iter().map(|call| Item::Call(text(call, "id"))));
    }
    items
}

fn responses(body: &Value) -> Vec<Item<'_>> {
    let items = list(&body["input"]).iter().map(|item| match text(item, "type") {
        "function_call" => Item::Call(text(item, "call_id")),
        "function_call_output" => Item::Result(text(item, "call_id")),
        "reasoning" => Item::Model,
        _ => other(text(item, "role")),
    });
    items.collect()
}
