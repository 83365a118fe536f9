//! What comes out of a tool.

use std::{fmt, path::PathBuf, sync::Arc};

use gripper_permissions::{Mode, Rule};
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::files::ledger::Seen;

/// One piece of a result, shaped like the content blocks models take.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Block {
    /// Plain text.
    Text {
        /// The text.
        text: String,
    },
    /// A picture.
    Image {
        /// Where it comes from.
        source: ImageSource,
    },
    /// A sound. Models get a line about it; whoever else called gets it as it is.
    Audio {
        /// Where it comes from.
        source: AudioSource,
    },
}

/// A picture that is part of the block.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "type", rename = "base64")]
pub struct ImageSource {
    /// Such as `image/png`.
    pub media_type: String,
    /// The file in base64. Shared, as results are copied on their way and pictures are large.
    pub data: Arc<str>,
    /// Width and height in pixels, where they are known; for people.
    #[serde(skip)]
    pub size: Option<(u32, u32)>,
}

/// A sound that is part of the block.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(tag = "type", rename = "base64")]
pub struct AudioSource {
    /// Such as `audio/wav`.
    pub media_type: String,
    /// The file in base64, shared as that of a picture is.
    pub data: Arc<str>,
}

impl Block {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Block::Text { text: text.into() }
    }

    /// A picture, its file in base64.
    pub fn image(media_type: impl Into<String>, data: impl Into<Arc<str>>, size: Option<(u32, u32)>) -> Self {
        Block::Image { source: ImageSource { media_type: media_type.into(), data: data.into(), size } }
    }

    /// A sound, its file in base64.
    pub fn audio(media_type: impl Into<String>, data: impl Into<Arc<str>>) -> Self {
        Block::Audio { source: AudioSource { media_type: media_type.into(), data: data.into() } }
    }

    /// How many characters the model would read. Pictures and sounds have bounds of their own: their tools keep them.
    pub fn chars(&self) -> usize {
        match self {
            Block::Text { text } => text.chars().count(),
            Block::Image { .. } | Block::Audio { .. } => 0,
        }
    }
}

/// The block as people read it: a picture or a sound is one line about it.
impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let data = match self {
            Block::Text { text } => return f.write_str(text),
            Block::Image { source: ImageSource { media_type, data, size } } => {
                write!(f, "[image: {}", media_type.strip_prefix("image/").unwrap_or(media_type))?;
                if let Some((width, height)) = size {
                    write!(f, " {width}×{height}")?;
                }
                data
            }
            Block::Audio { source: AudioSource { media_type, data } } => {
                write!(f, "[audio: {}", media_type.strip_prefix("audio/").unwrap_or(media_type))?;
                data
            }
        };
        write!(f, ", {} KiB]", (data.len() / 4 * 3).div_ceil(1024))
    }
}

/// A change to the session that a tool asks for. The executor applies it, in call order, at the
/// moment the result is emitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionEffect {
    /// The model has seen (part of) this file.
    FileSeen(Box<Seen>),
    /// Deferred tools were found and are loaded from now on.
    LoadTools(Vec<String>),
    /// An allow rule for the rest of the session.
    GrantPermission(Rule),
    /// Another permission mode.
    SetMode(Mode),
    /// Another working directory.
    SetCwd(PathBuf),
    /// Messages for the conversation.
    InjectMessages(Vec<String>),
    /// A command for the front end.
    QueueCommand(String),
}

impl SessionEffect {
    /// Whether it may come from a call that ran beside others: applying it in another order
    /// must make no difference.
    pub fn commutes(&self) -> bool {
        matches!(self, SessionEffect::FileSeen(_) | SessionEffect::LoadTools(_))
    }

    /// Its name in messages.
    pub fn name(&self) -> &'static str {
        match self {
            SessionEffect::FileSeen(_) => "FileSeen",
            SessionEffect::LoadTools(_) => "LoadTools",
            SessionEffect::GrantPermission(_) => "GrantPermission",
            SessionEffect::SetMode(_) => "SetMode",
            SessionEffect::SetCwd(_) => "SetCwd",
            SessionEffect::InjectMessages(_) => "InjectMessages",
            SessionEffect::QueueCommand(_) => "QueueCommand",
        }
    }
}

/// A typed result, before it is mapped.
#[derive(Debug)]
pub struct Done<T> {
    /// The structured result.
    pub value: T,
    /// Changes to the session.
    pub effects: Vec<SessionEffect>,
    /// The tool worked, and what it reports is a failure.
    pub is_error: bool,
}

impl<T> Done<T> {
    /// A result that changes the session.
    pub fn with(value: T, effects: Vec<SessionEffect>) -> Self {
        Self { value, effects, is_error: false }
    }
}

impl<T> From<T> for Done<T> {
    fn from(value: T) -> Self {
        Self::with(value, Vec::new())
    }
}

/// A result, mapped for the model.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// What the model reads.
    pub content: Vec<Block>,
    /// The structured form.
    pub structured: Option<Value>,
    /// The tool worked, and what it reports is a failure.
    pub is_error: bool,
    /// Changes to the session.
    pub effects: Vec<SessionEffect>,
}

/// Why a call has no proper result. Stable names for machines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    /// No tool of that name.
    UnknownTool,
    /// The tool is not available here.
    Disabled,
    /// The input does not fit.
    InvalidInput,
    /// A hook stopped it.
    HookBlocked,
    /// Not permitted.
    Denied,
    /// The thing it names is not there.
    NotFound,
    /// It took too long.
    Timeout,
    /// The turn was cancelled.
    Cancelled,
    /// A call it depended on failed.
    SiblingFailed,
    /// The person interrupted.
    Interrupted,
    /// The model's stream failed and will be retried.
    Discarded,
    /// The tool has a bug.
    Panic,
    /// The system refused.
    Io,
    /// Larger than allowed.
    TooLarge,
    /// It cannot be done with this kind of thing.
    Unsupported,
    /// The same call failed too often.
    Repeated,
    /// The tool asked for a session change it may not ask for.
    EffectRefused,
    /// The tool failed in its own way.
    Failed,
}

impl ErrorCode {
    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            ErrorCode::UnknownTool => "unknown_tool",
            ErrorCode::Disabled => "disabled",
            ErrorCode::InvalidInput => "invalid_input",
            ErrorCode::HookBlocked => "hook_blocked",
            ErrorCode::Denied => "denied",
            ErrorCode::NotFound => "not_found",
            ErrorCode::Timeout => "timeout",
            ErrorCode::Cancelled => "cancelled",
            ErrorCode::SiblingFailed => "sibling_failed",
            ErrorCode::Interrupted => "interrupted",
            ErrorCode::Discarded => "discarded",
            ErrorCode::Panic => "panic",
            ErrorCode::Io => "io",
            ErrorCode::TooLarge => "too_large",
            ErrorCode::Unsupported => "unsupported",
            ErrorCode::Repeated => "repeated",
            ErrorCode::EffectRefused => "effect_refused",
            ErrorCode::Failed => "failed",
        }
    }
}

impl ErrorCode {
    /// Whether the failure says nothing about the call itself: it was stopped from outside, or
    /// not tried at all.
    pub(crate) fn is_not_its_own(self) -> bool {
        matches!(
            self,
            ErrorCode::Cancelled
                | ErrorCode::SiblingFailed
                | ErrorCode::Interrupted
                | ErrorCode::Discarded
                | ErrorCode::Repeated
        )
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// A failure, in words for the model: what happened, why, what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ToolError {
    /// The stable name.
    pub code: ErrorCode,
    /// The words.
    pub message: String,
    /// Details for machines.
    pub structured: Option<Value>,
}

impl ToolError {
    /// A failure with words only.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), structured: None }
    }

    /// With details for machines.
    #[must_use]
    pub fn with(mut self, structured: Value) -> Self {
        self.structured = Some(structured);
        self
    }
}
