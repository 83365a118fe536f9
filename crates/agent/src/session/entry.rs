//! The lines of a transcript.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use chrono::{SecondsFormat, Utc};
use serde::{Deserialize, Serialize, Serializer};

use crate::{
    message::{Content, Message},
    model::{StopReason, Usage},
};

/// What a session is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Header {
    /// Its id.
    pub id: String,
    /// Where it works.
    #[serde(serialize_with = "lossy")]
    pub cwd: PathBuf,
    /// The model it began with.
    pub model: String,
    /// The session it goes on from, if it is a fork or belongs to a sub-agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
    /// The kind of sub-agent, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    /// When it began, as RFC 3339 writes it.
    pub started: String,
    /// The version of Gripper that began it.
    pub version: String,
}

/// Where a session comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Parent {
    /// The other session.
    pub id: String,
    /// How many entries of its transcript there were then.
    pub entries: u64,
}

impl Header {
    /// A session that begins now.
    pub fn new(id: impl Into<String>, cwd: &Path, model: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            cwd: cwd.to_owned(),
            model: model.into(),
            parent: None,
            agent_type: None,
            started: now(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        }
    }
}

/// Who put a user message into the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A person, or whoever runs the session.
    Prompt,
    /// Gripper: instructions of the project, reminders.
    Context,
    /// A hook.
    Hook,
}

/// One line of a transcript.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Entry {
    /// The session begins. The first line.
    Session(Header),
    /// Something was said to the model.
    User {
        /// What.
        message: Message,
        /// By whom.
        origin: Origin,
    },
    /// A block of an answer is complete. Written before a call in it is run.
    Block {
        /// The answer.
        answer: String,
        /// The block.
        content: Content,
        /// Why the input of a call could not be read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        broken: Option<String>,
    },
    /// An answer is complete.
    AnswerEnd {
        /// The answer.
        answer: String,
        /// Who gave it.
        model: String,
        /// Why it ended.
        stop_reason: StopReason,
        /// Its tokens.
        usage: Usage,
        /// Its price in US dollars, if prices are known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cost: Option<f64>,
    },
    /// An answer broke off, and what came of it does not count.
    Discarded {
        /// The answer.
        answer: String,
    },
    /// The result of a call.
    Result {
        /// A [`Content::ToolResult`].
        content: Content,
    },
    /// The conversation was made shorter: it is these messages from here on.
    Compacted {
        /// Whether part of it became a summary, and not only old results stubs.
        summary: bool,
        /// The conversation.
        messages: Vec<Arc<Message>>,
    },
    /// The process that worked on the session went its way in good order.
    Ended {
        /// Why.
        reason: String,
    },
    /// A line of a newer version. Read, never written.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// A line: an entry, when it was written, and what the session has come to with it, so that the last line tells
/// that of the whole file.
#[derive(Serialize, Deserialize)]
pub(super) struct Line<E> {
    #[serde(default)]
    pub(super) at: String,
    #[serde(default)]
    pub(super) totals: Totals,
    #[serde(flatten)]
    pub(super) entry: E,
}

/// What a session has come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Complete answers.
    pub turns: u64,
    /// Calls in answers.
    pub calls: u64,
    /// US dollars, as far as prices are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

impl Totals {
    pub(super) fn count(&mut self, entry: &Entry) {
        match entry {
            Entry::Block { content: Content::ToolUse { .. }, .. } => self.calls += 1,
            Entry::AnswerEnd { cost, .. } => {
                self.turns += 1;
                self.cost = cost.map(|cost| cost + self.cost.unwrap_or_default()).or(self.cost);
            }
            _ => {}
        }
    }
}

/// A folder whose name is no Unicode is still worth a session.
fn lossy<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

pub(super) fn now() -> String {
    Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true)
}
