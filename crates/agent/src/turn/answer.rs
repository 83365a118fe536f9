//! One answer of the model while it comes in, with the results of its calls.

use std::collections::{HashMap, HashSet};

use crate::{
    message::{Content, Input, Message, Role},
    model::Usage,
};

/// What has come of an answer so far.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) id: String,
    pub(super) model: String,
    pub(super) usage: Usage,
    blocks: Vec<Content>,
    /// By call.
    results: HashMap<String, Content>,
    /// Calls that were handed to the tools.
    pub(super) submitted: usize,
    /// Those of them that have begun.
    began: HashSet<String>,
}

/// A call that was made in an answer that broke off.
#[derive(Debug)]
pub(super) struct MadeBefore {
    name: String,
    input: Input,
    /// Nothing if it was cut off, so that nobody knows what it did.
    result: Option<Content>,
}

impl Answer {
    pub(super) fn new(id: String, model: String) -> Self {
        Self { id, model, ..Self::default() }
    }

    pub(super) fn push(&mut self, block: Content) {
        self.blocks.push(block);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    pub(super) fn has_calls(&self) -> bool {
        self.blocks.iter().any(|block| matches!(block, Content::ToolUse { .. }))
    }

    /// Keeps the result of a call of this answer. The first one counts; false for any other.
    pub(super) fn settle(&mut self, result: &Content) -> bool {
        let Content::ToolResult { tool_use_id, .. } = result else { return false };
        if self.results.contains_key(tool_use_id) || !self.calls().any(|(id, ..)| id == tool_use_id) {
            return false;
        }
        self.results.insert(tool_use_id.clone(), result.clone());
        true
    }

    fn calls(&self) -> impl Iterator<Item = (&String, &String, &Input)> {
        self.blocks.iter().filter_map(|block| match block {
            Content::ToolUse { id, name, input } => Some((id, name, input)),
            _ => None,
        })
    }

    /// Calls of which no result is known.
    pub(super) fn open_calls(&self) -> Vec<String> {
        self.calls().map(|(id, ..)| id).filter(|id| !self.results.contains_key(*id)).cloned().collect()
    }

    pub(super) fn begin(&mut self, id: String) {
        self.began.insert(id);
    }

    pub(super) fn ran(&self) -> bool {
        !self.began.is_empty()
    }

    /// Calls that went well, and those that had begun and are about to be cut off: to be recognised should the model
    /// make them again.
    pub(super) fn made(&self) -> Vec<MadeBefore> {
        let made = self.calls().filter_map(|(id, name, input)| {
            let result = match self.results.get(id) {
                Some(Content::ToolResult { is_error: true, .. }) => return None,
                None if !self.began.contains(id) => return None,
                result => result.cloned(),
            };
            Some(MadeBefore { name: name.clone(), input: input.clone(), result })
        });
        made.collect()
    }

    /// The answer and the message with its results, in the order of the calls. Thoughts at its end, which led to
    /// nothing before it broke off, are left out: providers refuse them. So it may say nothing.
    pub(super) fn into_messages(mut self) -> (Message, Option<Message>) {
        let is_blank = |block: &Content| matches!(block, Content::Text { text } if text.trim().is_empty());
        while self.blocks.last().is_some_and(|last| last.is_thought() || is_blank(last)) {
            self.blocks.pop();
        }
        let ids: Vec<String> = self.calls().map(|(id, ..)| id.clone()).collect();
        let results: Vec<Content> = ids.iter().filter_map(|id| self.results.remove(id)).collect();
        let answer = Message { role: Role::Assistant, content: self.blocks };
        (answer, (!results.is_empty()).then_some(Message { role: Role::User, content: results }))
    }
}

impl MadeBefore {
    pub(super) fn is(&self, name: &str, input: &Input) -> bool {
        self.name == name && self.input == *input
    }

    /// What is known of it, as the result of another call.
    pub(super) fn result_for(self, id: &str) -> Content {
        let is_error = self.result.is_none();
        let mut content = match self.result {
            Some(Content::ToolResult { content, .. }) => content,
            _ => Vec::new(),
        };
        content.push(Content::text(match is_error {
            false => "This call had already run when the connection broke, and was not run again: this is its result.",
            true => {
                "This call was cut off when the connection broke, and was not run again: it may have taken effect, \
                 wholly or in part. Look at what it did before you repeat it."
            }
        }));
        Content::ToolResult { tool_use_id: id.to_owned(), content, is_error }
    }
}
