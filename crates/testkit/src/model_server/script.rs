//! What the model says, whichever provider it plays.

use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;
use tokio::sync::Semaphore;

/// One answer. As a line of a script it reads as those that `--model scripted:FILE` plays, with a few keys more:
/// `{"content": [{"type": "text", "text": "…"}, {"type": "tool_use", "name": "Read", "input": {…}}]}`.
#[derive(Debug, Clone, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Answer {
    /// What it says, in order.
    #[serde(rename = "content")]
    pub parts: Vec<Part>,
    /// What it cost.
    pub usage: Tokens,
    /// Why it ended, in the words of the Messages API; without it, as follows from the parts.
    #[serde(rename = "stop_reason")]
    pub stop: Option<String>,
    /// Bytes of each piece it is sent in; without it, one event at a time.
    pub split: Option<usize>,
    /// The status; anything but 200 is an error with `body`, or with usual words.
    pub status: u16,
    /// Further headers.
    pub headers: Vec<(String, String)>,
    /// The body, instead of what follows from the parts.
    pub body: Option<String>,
    /// The connection is closed without a word.
    pub refuse: bool,
}

/// A part of an answer.
#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Part {
    /// Text.
    Text {
        /// The text.
        text: String,
    },
    /// A thought.
    Thinking {
        /// The thought.
        thinking: String,
    },
    /// A call.
    #[serde(rename = "tool_use")]
    Call {
        /// Its id; without one, it gets one of its own.
        #[serde(default)]
        id: String,
        /// The tool.
        name: String,
        /// The input. A text is sent as it is, to play a model that writes no JSON.
        input: Value,
    },
    /// The rest comes after a while.
    Delay {
        /// How long it takes.
        ms: u64,
    },
    /// The rest comes when the gate is open.
    #[serde(skip)]
    Wait(Gate),
    /// The rest never comes.
    Hang,
    /// The connection breaks.
    Cut,
}

/// Tokens.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(default)]
pub struct Tokens {
    /// Read anew.
    #[serde(rename = "input_tokens")]
    pub input: u64,
    /// Written.
    #[serde(rename = "output_tokens")]
    pub output: u64,
    /// Known from before.
    #[serde(rename = "cache_read_input_tokens")]
    pub cached: u64,
}

impl Default for Tokens {
    fn default() -> Self {
        Self { input: 10, output: 5, cached: 0 }
    }
}

/// Holds an answer back until a test opens it.
#[derive(Debug, Clone)]
pub struct Gate(Arc<Semaphore>);

impl Default for Gate {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }
}

impl Gate {
    /// Lets everything through from now on.
    pub fn open(&self) {
        self.0.close();
    }

    pub(super) async fn passed(&self) {
        // There are no permits, so this ends when the gate is opened.
        self.0.acquire().await.ok();
    }
}

impl Default for Answer {
    fn default() -> Self {
        Self {
            parts: Vec::new(),
            usage: Tokens::default(),
            stop: None,
            split: None,
            status: 200,
            headers: Vec::new(),
            body: None,
            refuse: false,
        }
    }
}

impl Answer {
    /// An answer that says nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// An answer of one text.
    pub fn says(text: &str) -> Self {
        Self::new().text(text)
    }

    /// An answer of one call.
    pub fn calls(name: &str, input: Value) -> Self {
        Self::new().call("", name, input)
    }

    /// An error with this status and usual words.
    pub fn status(status: u16) -> Self {
        Self { status, ..Self::new() }
    }

    /// The error of a conversation that is too long.
    pub fn too_long() -> Self {
        let said = "prompt is too long: 210000 tokens > 200000 maximum";
        let error = serde_json::json!({"error": {"type": "invalid_request_error", "message": said}});
        Self::status(400).body(error.to_string())
    }

    /// A connection that is closed without a word.
    pub fn refused() -> Self {
        Self { refuse: true, ..Self::new() }
    }

    /// One more part.
    #[must_use]
    pub fn part(mut self, part: Part) -> Self {
        self.parts.push(part);
        self
    }

    /// More text.
    #[must_use]
    pub fn text(self, text: &str) -> Self {
        self.part(Part::Text { text: text.to_owned() })
    }

    /// A thought.
    #[must_use]
    pub fn thinking(self, text: &str) -> Self {
        self.part(Part::Thinking { thinking: text.to_owned() })
    }

    /// A call. An empty id gets one of its own.
    #[must_use]
    pub fn call(self, id: &str, name: &str, input: Value) -> Self {
        self.part(Part::Call { id: id.to_owned(), name: name.to_owned(), input })
    }

    /// Holds the rest back until the gate is open.
    #[must_use]
    pub fn wait(self, gate: &Gate) -> Self {
        self.part(Part::Wait(gate.clone()))
    }

    /// Why it ended.
    #[must_use]
    pub fn stop(self, reason: &str) -> Self {
        Self { stop: Some(reason.to_owned()), ..self }
    }

    /// What it cost.
    #[must_use]
    pub fn usage(self, usage: Tokens) -> Self {
        Self { usage, ..self }
    }

    /// A header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The body, instead of what follows from the parts.
    #[must_use]
    pub fn body(self, body: impl Into<String>) -> Self {
        Self { body: Some(body.into()), ..self }
    }

    /// Sends it in pieces of so many bytes.
    #[must_use]
    pub fn split(self, bytes: usize) -> Self {
        Self { split: Some(bytes), ..self }
    }

    /// Gives every call an id that no other has.
    pub(super) fn with_ids(mut self, request: usize) -> Self {
        for (at, part) in self.parts.iter_mut().enumerate() {
            if let Part::Call { id, .. } = part
                && id.is_empty()
            {
                *id = format!("call_{request}_{at}");
            }
        }
        self
    }

    /// Why it ended, in the words of the Messages API.
    pub(super) fn reason(&self) -> &str {
        let calls = self.parts.iter().any(|part| matches!(part, Part::Call { .. }));
        self.stop.as_deref().unwrap_or(if calls { "tool_use" } else { "end_turn" })
    }
}
