//! The law that every conversation keeps.

use std::{collections::HashSet, sync::Arc};

use crate::message::{Content, Message, Role};

/// Whether any provider would accept the conversation: it begins with the user, speakers alternate, nobody says
/// nothing or ends with a thought, and the message behind an answer begins with exactly the results of its calls, in
/// their order.
pub fn check(history: &[Arc<Message>]) -> Result<(), String> {
    let mut used: HashSet<&str> = HashSet::new();
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in history.iter().enumerate() {
        let wanted = if at % 2 == 0 { Role::User } else { Role::Assistant };
        if message.role != wanted {
            return Err(format!("message {at} should be of {wanted:?}"));
        }
        if message.content.is_empty() {
            return Err(format!("message {at} is empty"));
        }
        let results: Vec<&str> = message.content.iter().filter_map(result_of).collect();
        if results != open {
            return Err(format!("message {at} has the results {results:?} where {open:?} are due"));
        }
        if message.content.iter().skip(results.len()).any(|block| result_of(block).is_some()) {
            return Err(format!("message {at} has a result behind something else"));
        }
        open = message.calls().map(|(id, ..)| id).collect();
        if message.role == Role::User && !open.is_empty() {
            return Err(format!("message {at} has a call although the user speaks"));
        }
        if message.role == Role::Assistant && message.content.last().is_some_and(Content::is_thought) {
            return Err(format!("message {at} ends with a thought"));
        }
        if let Some(again) = open.iter().find(|id| !used.insert(id)) {
            return Err(format!("message {at} has the call {again}, and so has an earlier one"));
        }
        if message.calls().any(|(.., input)| !input.is_object()) {
            return Err(format!("message {at} has a call whose input is no object"));
        }
    }
    if open.is_empty() { Ok(()) } else { Err(format!("the calls {open:?} have no results")) }
}

pub(super) fn result_of(block: &Content) -> Option<&str> {
    match block {
        Content::ToolResult { tool_use_id, .. } => Some(tool_use_id),
        _ => None,
    }
}
