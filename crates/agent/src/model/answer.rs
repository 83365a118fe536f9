//! Puts an answer together out of what a wire delivers: numbers the blocks, keeps the ids of calls unique, reads
//! their inputs.

use std::collections::{HashSet, VecDeque};

use gripper_runtime::schema::deeper_than;
use serde_json::{Map, Value};

use super::{ModelError, ModelEvent, StopReason, Trouble, Usage};
use crate::message::Content;

/// Characters of an unreadable input that are quoted.
const QUOTED: usize = 400;
/// Characters of a tool's name.
const LONGEST_NAME: usize = 64;
/// What a call of no tool is called. It is answered like one of a tool that is not there.
const NO_NAME: &str = "unknown";
/// Levels of an input. One more would not be read again from a transcript, which adds some of its own.
const DEEPEST: usize = 100;

/// Reads one wire's form of an answer.
pub(super) trait Decode: Send {
    /// One event of a stream.
    fn event(&mut self, data: Value, answer: &mut Answer) -> Result<(), ModelError>;

    /// An answer that came as one.
    fn whole(&mut self, body: Value, answer: &mut Answer) -> Result<(), ModelError>;

    /// The stream is over; `told` if the provider said so.
    fn end(&mut self, told: bool, answer: &mut Answer) -> Result<(), ModelError>;
}

/// An answer that is being put together.
#[derive(Default)]
pub(super) struct Answer {
    /// What is to be handed on.
    pub(super) events: VecDeque<ModelEvent>,
    /// The answer is complete.
    pub(super) stopped: bool,
    started: bool,
    called: bool,
    blocks: usize,
    ids: HashSet<String>,
    usage: Usage,
}

/// A block that is not complete yet.
pub(super) struct Open {
    index: usize,
    kind: Kind,
    text: String,
}

/// What a block is.
pub(super) enum Kind {
    Text,
    Thinking { signature: String },
    Call { id: String, name: String },
    Other(Value),
}

impl Answer {
    /// An answer in a conversation where these ids are taken.
    pub(super) fn new(ids: HashSet<String>) -> Self {
        Self { ids, ..Self::default() }
    }

    /// The answer begins. Only the first time counts.
    pub(super) fn start(&mut self, message: &Value) {
        if !std::mem::replace(&mut self.started, true) {
            let (id, model) = (text(message, "id").to_owned(), text(message, "model").to_owned());
            self.events.push_back(ModelEvent::Start { id, model });
        }
    }

    pub(super) fn open(&mut self, kind: Kind) -> Open {
        let index = self.blocks;
        self.blocks += 1;
        let kind = match kind {
            Kind::Call { id, name } => {
                let (id, name) = (self.unique(id), plain(&name));
                self.called = true;
                self.events.push_back(ModelEvent::CallStart { index, id: id.clone(), name: name.clone() });
                Kind::Call { id, name }
            }
            kind => kind,
        };
        Open { index, kind, text: String::new() }
    }

    /// Results are paired with calls by id, so there may be no two alike, and none may be missing.
    fn unique(&mut self, id: String) -> String {
        let first = if id.is_empty() { format!("call_{}", uuid::Uuid::new_v4().simple()) } else { id };
        let mut id = first.clone();
        let mut count = 1;
        while !self.ids.insert(id.clone()) {
            count += 1;
            id = format!("{first}_{count}");
        }
        id
    }

    /// More of a block. Of a block that is not known here, what it says is shown as a thought and not kept.
    pub(super) fn push(&mut self, open: &mut Open, piece: &str) {
        if piece.is_empty() {
            return;
        }
        let (index, text) = (open.index, piece.to_owned());
        self.events.push_back(match open.kind {
            Kind::Text => ModelEvent::Text { index, text },
            Kind::Call { .. } => ModelEvent::CallInput { index, json: text },
            Kind::Thinking { .. } | Kind::Other(_) => ModelEvent::Thinking { index, text },
        });
        open.add(piece);
    }

    pub(super) fn close(&mut self, open: Open) {
        let (index, mut broken) = (open.index, None);
        let content = match open.kind {
            Kind::Text => Content::Text { text: open.text },
            Kind::Thinking { signature } => Content::Thinking { thinking: open.text, signature },
            Kind::Call { id, name } => {
                let input = input(&open.text).unwrap_or_else(|why| {
                    broken = Some(why);
                    Map::new()
                });
                Content::ToolUse { id, name, input: Value::Object(input).into() }
            }
            Kind::Other(value) => Content::Other(value),
        };
        self.events.push_back(ModelEvent::Block { index, content, broken });
    }

    /// What the answer has cost so far, as the wire's keys say it; a key that is missing keeps what was known.
    pub(super) fn usage(&mut self, change: impl FnOnce(&mut Usage)) {
        let before = self.usage;
        change(&mut self.usage);
        if before != self.usage {
            self.events.push_back(ModelEvent::Usage(self.usage));
        }
    }

    pub(super) fn stop(&mut self, reason: Option<StopReason>) {
        if !std::mem::replace(&mut self.stopped, true) {
            // Some servers say that the turn has ended although they wait for results.
            let reason = match reason {
                None | Some(StopReason::EndTurn | StopReason::ToolUse) if !self.called => StopReason::EndTurn,
                None | Some(StopReason::EndTurn) => StopReason::ToolUse,
                Some(reason) => reason,
            };
            self.events.push_back(ModelEvent::Stop(reason));
        }
    }
}

impl Open {
    /// Keeps a piece without handing it on.
    pub(super) fn add(&mut self, piece: &str) {
        self.text.push_str(piece);
    }

    pub(super) fn kind(&mut self) -> &mut Kind {
        &mut self.kind
    }

    /// Whether it is of a kind that is not known here.
    pub(super) fn is_other(&self) -> bool {
        matches!(self.kind, Kind::Other(_))
    }

    /// What came so far.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// A name that providers take back. Those of tools are all so; for one that a model made up, they would refuse the
/// whole conversation from then on.
fn plain(name: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' };
    if name.is_empty() { NO_NAME.to_owned() } else { name.chars().take(LONGEST_NAME).map(letter).collect() }
}

/// The input of a call, which must be an object; models that want none may send nothing.
pub(super) fn input(json: &str) -> Result<Map<String, Value>, String> {
    let why = match serde_json::from_str(json) {
        _ if json.trim().is_empty() => return Ok(Map::new()),
        Ok(Value::Object(input)) if input.values().any(|value| deeper_than(value, DEEPEST)) => {
            format!("it is nested more than {DEEPEST} deep")
        }
        Ok(Value::Object(input)) => return Ok(input),
        Ok(Value::Null) => return Ok(Map::new()),
        Ok(_) => "it is no JSON object".to_owned(),
        Err(error) => format!("it is no valid JSON: {error}"),
    };
    let quoted: String = json.chars().take(QUOTED).collect();
    let more = if quoted.len() < json.len() { "…" } else { "" };
    Err(format!("the input of the call could not be read, {why}; what came was: {quoted}{more}"))
}

/// The text under a key, empty if there is none.
pub(super) fn text<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

/// The stream ended too early.
pub(super) fn cut_off() -> ModelError {
    ModelError::new(Trouble::Broken, "the model's answer broke off before it was complete")
}
