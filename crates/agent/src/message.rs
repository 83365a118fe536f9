//! A conversation: messages of ordered blocks, shaped as the Messages API shapes them. What a model sent that is
//! not known here is kept as it came and sent back untouched.

use std::{fmt, sync::Arc};

use gripper_runtime::Block;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{
    Value,
    value::{RawValue, to_raw_value},
};

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The person, and results of calls.
    User,
    /// The model.
    Assistant,
}

/// One message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// What is said, in order.
    pub content: Vec<Content>,
}

/// One block of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Content {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// What the model thought before it spoke. Goes back as it came, signature included.
    Thinking {
        /// The thought.
        thinking: String,
        /// Proves to the provider that the thought is its own.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        signature: String,
    },
    /// A call.
    ToolUse {
        /// Unique in the conversation.
        id: String,
        /// The tool.
        name: String,
        /// Its input, always an object.
        input: Input,
    },
    /// The one result of a call.
    ToolResult {
        /// The call it answers.
        tool_use_id: String,
        /// Text and pictures.
        content: Vec<Content>,
        /// Whether the call failed.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_error: bool,
    },
    /// A picture.
    Image {
        /// Where it comes from.
        source: Source,
    },
    /// A document, such as a PDF.
    Document {
        /// Where it comes from.
        source: Source,
    },
    /// A block of a kind that is not known here.
    #[serde(untagged)]
    Other(Value),
}

/// The input of a call, kept as text: a conversation has many, and values take several times the room.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub struct Input(Arc<RawValue>);

impl Input {
    /// What it says.
    pub fn value(&self) -> Value {
        serde_json::from_str(self.0.get()).unwrap_or_default()
    }

    /// Whether it is what an input should be.
    pub fn is_object(&self) -> bool {
        self.0.get().starts_with('{')
    }

    /// Its text.
    pub fn text(&self) -> &str {
        self.0.get()
    }
}

impl From<Value> for Input {
    fn from(value: Value) -> Self {
        // A value can always be written; nothing would be refused as an input.
        Self(to_raw_value(&value).unwrap_or_else(|_| RawValue::NULL.to_owned()).into())
    }
}

impl<'de> Deserialize<'de> for Input {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Self::from)
    }
}

impl PartialEq for Input {
    /// Whatever the order of their keys.
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text() || self.value() == other.value()
    }
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

/// Where a picture or document comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Source {
    /// Part of the message.
    Base64 {
        /// Such as `image/png`.
        media_type: String,
        /// The file in base64. Shared, as messages are copied and pictures are large.
        data: Arc<str>,
    },
    /// Somewhere on the web.
    Url {
        /// The address.
        url: String,
    },
}

impl Content {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Content::Text { text: text.into() }
    }

    /// Whether it is what the model thought, in the form of any provider. They refuse one that nothing follows.
    pub fn is_thought(&self) -> bool {
        match self {
            Content::Thinking { .. } => true,
            Content::Other(value) => value["type"] == "redacted_thinking" || value["type"] == "reasoning",
            _ => false,
        }
    }

    /// The block of a tool's result as a message carries it. Of a sound models are told that there is one.
    pub fn of_block(block: &Block) -> Self {
        match block {
            Block::Text { text } => Content::text(text.clone()),
            Block::Image { source } => Content::Image {
                source: Source::Base64 { media_type: source.media_type.clone(), data: source.data.clone() },
            },
            Block::Audio { .. } => Content::text(block.to_string()),
        }
    }
}

impl Message {
    /// What a person says.
    pub fn user(text: impl Into<String>) -> Self {
        Self { role: Role::User, content: vec![Content::text(text)] }
    }

    /// The calls of an answer: id, name and input of each, in order.
    pub fn calls(&self) -> impl Iterator<Item = (&str, &str, &Input)> {
        self.content.iter().filter_map(|block| match block {
            Content::ToolUse { id, name, input } => Some((id.as_str(), name.as_str(), input)),
            _ => None,
        })
    }

    /// All its text, blocks one after the other.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(|block| match block {
            Content::Text { text } => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }
}
