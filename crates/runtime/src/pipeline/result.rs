//! A call as it comes in and as it goes out.

use std::{fmt, sync::Arc, time::Duration};

use serde::Serialize;
use serde_json::Value;

use crate::{
    event::milliseconds,
    tool::{Block, ErrorCode, ToolError},
};

/// A request to run a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct CallRequest {
    /// Unique in its turn.
    pub id: Arc<str>,
    /// The tool's name or an alias.
    pub name: Arc<str>,
    /// Not checked yet.
    pub input: Value,
}

/// Why a JSON value is no call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotACall {
    /// It must be an object.
    #[error(
        "a call is a JSON object such as {{\"id\": \"c1\", \"name\": \"Read\", \"input\": {{}}}}, this is {0}"
    )]
    NotAnObject(&'static str),
    /// The name is missing.
    #[error("a call needs a \"name\" that is a string: the tool to run")]
    NoName,
    /// The id has the wrong type.
    #[error("the \"id\" of a call must be a string")]
    BadId,
}

impl CallRequest {
    /// A request.
    pub fn new(id: &str, name: &str, input: Value) -> Self {
        Self { id: id.into(), name: name.into(), input }
    }

    /// From `{"id", "name", "input"}`, with or without `"type": "tool_use"`. Without an id it gets
    /// `fallback_id`; without an input, an empty one.
    pub fn from_json(value: Value, fallback_id: &str) -> Result<Self, NotACall> {
        let Value::Object(mut fields) = value else { return Err(NotACall::NotAnObject(kind_of(&value))) };
        let id = match fields.shift_remove("id") {
            None | Some(Value::Null) => fallback_id.into(),
            Some(Value::String(id)) => id.into(),
            Some(_) => return Err(NotACall::BadId),
        };
        let Some(Value::String(name)) = fields.shift_remove("name") else { return Err(NotACall::NoName) };
        let input = fields.shift_remove("input").unwrap_or_else(|| Value::Object(serde_json::Map::new()));
        Ok(Self { id, name: name.into(), input })
    }
}

/// What a JSON value is, in words.
fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The one result of a call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallResult {
    /// The call it answers.
    pub call_id: Arc<str>,
    /// The tool, as the model wrote it.
    pub tool: Arc<str>,
    /// Whether it failed.
    pub is_error: bool,
    /// How it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<ErrorCode>,
    /// What the model reads.
    pub content: Vec<Block>,
    /// The structured form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured: Option<Value>,
    /// From start to end, waiting for its turn not counted.
    #[serde(rename = "duration_ms", serialize_with = "milliseconds")]
    pub duration: Duration,
}

impl CallResult {
    /// A good result of one text.
    pub fn plain(call_id: Arc<str>, tool: Arc<str>, text: impl Into<String>) -> Self {
        Self {
            call_id,
            tool,
            is_error: false,
            error_code: None,
            content: vec![Block::text(text)],
            structured: None,
            duration: Duration::ZERO,
        }
    }

    /// A failure.
    pub fn failed(call_id: Arc<str>, tool: Arc<str>, error: ToolError) -> Self {
        Self {
            call_id,
            tool,
            is_error: true,
            error_code: Some(error.code),
            content: vec![Block::text(error.message)],
            structured: error.structured,
            duration: Duration::ZERO,
        }
    }

    /// Turns it into a failure of the same call.
    pub(crate) fn fail_instead(&mut self, error: ToolError) {
        let failed = Self::failed(self.call_id.clone(), self.tool.clone(), error);
        *self = Self { duration: self.duration, ..failed };
    }

    /// How many characters the model reads.
    pub fn chars(&self) -> usize {
        self.content.iter().map(Block::chars).sum()
    }

    /// The words of a failure.
    pub fn error_text(&self) -> Option<String> {
        self.is_error.then(|| self.to_string())
    }

    /// Adds a paragraph at the end, where it leaves earlier context untouched.
    pub(crate) fn add_note(&mut self, note: &str) {
        match self.content.last_mut() {
            Some(Block::Text { text }) => {
                text.push_str("\n\n");
                text.push_str(note);
            }
            _ => self.content.push(Block::text(note)),
        }
    }
}

impl fmt::Display for CallResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, block) in self.content.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            block.fmt(f)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Block, CallResult};

    #[test]
    fn a_picture_is_one_line_for_people_and_a_note_stands_beside_it() {
        let mut result = CallResult::plain("c1".into(), "Probe".into(), "seen");
        result.content.push(Block::image("image/png", "AAAA".repeat(1024), Some((640, 480))));
        result.add_note("once");
        result.add_note("twice");
        assert_eq!(result.to_string(), "seen\n[image: png 640×480, 3 KiB]\nonce\n\ntwice");
        assert_eq!(result.chars(), "seen".len() + "once\n\ntwice".len());
        let source = serde_json::to_value(&result.content[1]).unwrap()["source"].take();
        assert_eq!((&source["type"], &source["media_type"]), (&"base64".into(), &"image/png".into()));
    }
}
