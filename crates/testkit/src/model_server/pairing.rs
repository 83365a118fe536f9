//! Whether every call of a conversation has its one result, in order, directly after, and whatever else providers refuse.

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
    odd_parts(asked)?;
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

/// Names of tools with other characters than providers take, and thoughts that nothing follows.
fn odd_parts(asked: &Asked) -> Result<(), String> {
    let messages = list(&asked.body["messages"]);
    let blocks = || messages.iter().flat_map(|message| list(&message["content"]));
    let names: Vec<&str> = match asked.wire {
        Wire::Anthropic => {
            blocks().filter(|block| block["type"] == "tool_use").map(|block| text(block, "name")).collect()
        }
        Wire::OpenAiChat => {
            let calls = messages.iter().flat_map(|message| list(&message["tool_calls"]));
            calls.map(|call| text(&call["function"], "name")).collect()
        }
        Wire::OpenAiResponses => {
            let items = list(&asked.body["input"]).iter();
            items.filter(|item| item["type"] == "function_call").map(|item| text(item, "name")).collect()
        }
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if let Some(name) = names.iter().find(|name| name.is_empty() || !name.chars().all(plain)) {
        return Err(format!("no provider takes {name:?} for the name of a tool"));
    }
    let thought =
        |message: &&Value| list(&message["content"]).last().is_some_and(|last| last["type"] == "thinking");
    let mut answers = messages.iter().filter(|message| message["role"] == "assistant");
    match answers.find(thought) {
        Some(_) if asked.wire == Wire::Anthropic => Err("an answer ends with a thought".to_owned()),
        _ => Ok(()),
    }
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

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::{Asked, Wire, check};

    fn checked(wire: Wire, body: Value) -> String {
        let asked = Asked { wire, headers: Default::default(), body };
        check(&asked).err().unwrap_or_default()
    }

    /// `c` is a call, `r` its result, `u` words of the person, `a` of the model, `t` a thought, `x` a call of an odd
    /// name; `|` begins a message.
    #[rstest]
    #[case::paired("u|a c1 c2|r1 r2 u|a", "")]
    #[case::missing("u|a c1|u", "the call 1 has no result")]
    #[case::missing_at_the_end("u|c1 c2|r1", "the call 2 has no result")]
    #[case::wrong_order("u|c1 c2|r2 r1", "the result of 2 stands where that of 1 belongs")]
    #[case::not_directly("u|c1|u r1", "the call 1 has no result")]
    #[case::twice("u|c1|r1 r1", "the result of 1 follows no call")]
    #[case::one_id("u|c1|r1|c1|r1", "two calls have the id 1")]
    #[case::early("u|c1 c2|r1|c3|r2 r3", "the call 3 comes before the result of 2")]
    #[case::thought("u|t a|u", "")]
    #[case::thought_of_nothing("u|a t|u", "an answer ends with a thought")]
    #[case::odd_name("u|x1|r1", "no provider takes \"a b\" for the name of a tool")]
    #[case::goes_on("u|c1 c2|r1|a", "the model goes on although the call 2 has no result")]
    fn messages(#[case] conversation: &str, #[case] fault: &str) {
        let block = |word: &str| match word.split_at(1) {
            ("c", id) => json!({"type": "tool_use", "id": id, "name": "T"}),
            ("t", _) => json!({"type": "thinking"}),
            ("x", id) => json!({"type": "tool_use", "id": id, "name": "a b"}),
            ("r", id) => json!({"type": "tool_result", "tool_use_id": id}),
            _ => json!({"type": "text"}),
        };
        let message = |words: &str| {
            let role = if words.starts_with(['a', 'c', 't', 'x']) { "assistant" } else { "user" };
            json!({"role": role, "content": words.split(' ').map(block).collect::<Vec<_>>()})
        };
        let messages: Vec<Value> = conversation.split('|').map(message).collect();
        assert_eq!(checked(Wire::Anthropic, json!({"messages": messages})), fault);
    }

    #[test]
    fn other_wires() {
        let calls = json!({"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "T"}}]});
        let chat = |next: Value| checked(Wire::OpenAiChat, json!({"messages": [calls, next]}));
        assert_eq!(chat(json!({"role": "tool", "tool_call_id": "1"})), "");
        assert_eq!(chat(json!({"role": "user"})), "the call 1 has no result");
        let call = json!({"type": "function_call", "call_id": "1", "name": "T"});
        let responses = |next: Value| checked(Wire::OpenAiResponses, json!({"input": [call, next]}));
        assert_eq!(responses(json!({"type": "function_call_output", "call_id": "1"})), "");
        assert_eq!(responses(json!({"role": "user"})), "the call 1 has no result");
    }
}
