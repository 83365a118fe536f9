//! Writes decisions, rewrites and finished calls to the audit log.

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
    fn observe(&self, _session: &str, event: &Event) {
        let kind = match event {
            Event::Decision { .. } => "decision",
            Event::Rewrite { .. } => "rewrite",
            Event::Result(_) => "finished",
            _ => return,
        };
        // What the model read is not part of the account; that it ran and how it ended is.
        if let Ok(Value::Object(mut body)) = serde_json::to_value(event) {
            body.shift_remove("event");
            body.shift_remove("structured");
            if let Event::Result(result) = event {
                body.shift_remove("content");
                body.insert("characters".to_owned(), result.chars().into());
                if let Some(error) = result.error_text() {
                    body.insert("error".to_owned(), error.into());
                }
            }
            self.log.record(kind, body);
        } else {
            self.log.record(kind, Map::new());
        }
    }
}
