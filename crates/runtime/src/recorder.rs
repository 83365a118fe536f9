//! Writes decisions, rewrites, failed hooks and finished calls to the audit log.

use serde_json::{Map, Value};

use crate::{
    audit::AuditLog,
    event::{Event, Observer},
};

/// The audit log as an observer.
pub struct Recorder {
    log: AuditLog,
}

impl Recorder {
    /// Records into `log`.
    pub fn new(log: AuditLog) -> Self {
        Self { log }
    }

    /// The log, to flush it or to ask what went wrong.
    pub fn log(&self) -> &AuditLog {
        &self.log
    }
}

impl Observer for Recorder {
    fn observe(&self, turn: &str, event: &Event) {
        let kind = match event {
            Event::Decision { .. } => "decision",
            Event::Rewrite { .. } => "rewrite",
            Event::Result(_) => "finished",
            Event::Hook { run, .. } if run.failed => "hook",
            _ => return,
        };
        let mut body = match serde_json::to_value(event) {
            Ok(Value::Object(body)) => body,
            _ => Map::new(),
        };
        body.shift_remove("event");
        body.insert("turn".to_owned(), turn.into());
        match event {
            Event::Decision { input, .. } => {
                body.insert("input".to_owned(), (**input).clone());
            }
            // What the model read is not part of the account; that it ran and how it ended is.
            Event::Result(result) => {
                body.shift_remove("structured");
                body.shift_remove("content");
                body.insert("characters".to_owned(), result.chars().into());
                if let Some(error) = result.error_text() {
                    body.insert("error".to_owned(), error.into());
                }
            }
            _ => {}
        }
        self.log.record(kind, body);
    }
}
