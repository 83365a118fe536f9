//! Whoever answers: the trait, what is asked and what comes back.

mod answer;
mod anthropic;
pub mod config;
#[cfg(test)]
mod config_tests;
mod fields;
mod http;
mod key;
mod openai_chat;
mod openai_responses;
mod price;
mod remote;
pub mod scripted;
#[cfg(test)]
mod tests;

use std::{sync::Arc, time::Duration};

use futures::stream::BoxStream;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::message::{Content, Message};

pub use key::Key;
pub use price::Price;
pub use remote::{Endpoint, Remote, Wire, decode};

/// Answers requests. Knows how to speak to a provider, and nothing of tools or sessions.
pub trait Model: Send + Sync {
    /// Asks. The stream ends after [`ModelEvent::Stop`] or the first error; dropping it cancels the request.
    fn stream(&self, request: Request) -> BoxStream<'static, Result<ModelEvent, ModelError>>;

    /// How many tokens the model can look at.
    fn window(&self) -> u64;
}

/// What is asked. What stays the same from request to request comes first, so that providers can reuse it.
#[derive(Debug, Clone)]
pub struct Request {
    /// The model's name, as the provider knows it.
    pub model: String,
    /// The system prompt in parts, the most lasting first.
    pub system: Vec<Arc<str>>,
    /// The tools, built-in ones first.
    pub tools: Arc<[ToolDefinition]>,
    /// The conversation.
    pub messages: Vec<Arc<Message>>,
    /// Longest answer.
    pub max_tokens: u32,
    /// Tokens for thinking, if any.
    pub thinking: Option<u32>,
    /// Whether the answer should come as it is made. When not, it comes as one, with the same events.
    pub streamed: bool,
}

/// A tool as the model is told of it.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON Schema of its input.
    pub schema: Value,
    /// Comes with Gripper, so it stays the same from request to request.
    pub built_in: bool,
    /// Its schema is held back until the tool is searched for.
    pub deferred: bool,
}

/// Something of an answer. `index` counts the blocks of the answer from 0.
#[derive(Debug, Clone, PartialEq)]
pub enum ModelEvent {
    /// The answer begins.
    Start {
        /// The provider's id of the answer.
        id: String,
        /// The model that answers.
        model: String,
    },
    /// More text.
    Text {
        /// Which block.
        index: usize,
        /// The piece.
        text: String,
    },
    /// More of a thought.
    Thinking {
        /// Which block.
        index: usize,
        /// The piece.
        text: String,
    },
    /// A call begins.
    CallStart {
        /// Which block.
        index: usize,
        /// The call.
        id: String,
        /// Its tool.
        name: String,
    },
    /// More of a call's input, as JSON text.
    CallInput {
        /// Which block.
        index: usize,
        /// The piece.
        json: String,
    },
    /// A block is complete: this is what the conversation keeps.
    Block {
        /// Which block.
        index: usize,
        /// The whole block. A call whose input was no JSON object has an empty one here.
        content: Content,
        /// Why the input of a call could not be read, with what came.
        broken: Option<String>,
    },
    /// What the answer has cost so far.
    Usage(Usage),
    /// The answer is complete.
    Stop(StopReason),
}

/// Why an answer ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The model has said what it had to say.
    EndTurn,
    /// It waits for the results of its calls.
    ToolUse,
    /// The answer grew too long.
    MaxTokens,
    /// A text it was told to stop at came.
    StopSequence,
    /// It paused a long answer and would go on.
    PauseTurn,
    /// It will not answer.
    Refusal,
    /// Another reason, in the provider's words.
    #[serde(untagged)]
    Other(String),
}

/// Tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usage {
    /// Read anew.
    pub input_tokens: u64,
    /// Written.
    pub output_tokens: u64,
    /// Read and kept for next time.
    pub cache_creation_input_tokens: u64,
    /// Known from an earlier request.
    pub cache_read_input_tokens: u64,
}

impl Usage {
    /// How much of the model's window the request and its answer fill.
    pub fn window(&self) -> u64 {
        [self.output_tokens, self.cache_creation_input_tokens, self.cache_read_input_tokens]
            .into_iter()
            .fold(self.input_tokens, u64::saturating_add)
    }
}

impl std::ops::AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        // Providers may say anything.
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut self.input_tokens, other.input_tokens);
        add(&mut self.output_tokens, other.output_tokens);
        add(&mut self.cache_creation_input_tokens, other.cache_creation_input_tokens);
        add(&mut self.cache_read_input_tokens, other.cache_read_input_tokens);
    }
}

/// Why there is no answer, or no more of it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ModelError {
    /// What kind of trouble.
    pub kind: Trouble,
    /// What, why and what to do, for a person.
    pub message: String,
    /// How long the provider wants us to wait.
    pub retry_after: Option<Duration>,
}

/// Kinds of trouble with a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trouble {
    /// Nobody answers at the address, or the connection was lost before the answer began.
    Unreachable,
    /// Too many requests.
    RateLimited,
    /// The provider has too much to do, or a fault.
    Overloaded,
    /// The answer broke off, or nothing came for too long.
    Broken,
    /// The conversation does not fit into the model's window.
    TooLong,
    /// The key is missing, wrong or not enough.
    Unauthorized,
    /// The request was refused for another reason.
    Refused,
}

impl Trouble {
    /// Whether asking again may help.
    pub fn passes(self) -> bool {
        matches!(self, Trouble::Unreachable | Trouble::RateLimited | Trouble::Overloaded | Trouble::Broken)
    }
}

impl ModelError {
    /// Trouble, in words.
    pub fn new(kind: Trouble, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), retry_after: None }
    }
}
