//! What happens around calls, for clients that want to read along.
#![expect(deprecated, reason = "the newest revision drops log messages; clients of earlier ones show them")]

use std::sync::atomic::{AtomicU8, Ordering};

use gripper_runtime::Event;
use rmcp::{
    RoleServer,
    model::{LoggingLevel, LoggingMessageNotificationParam},
    service::RequestContext,
};
use serde_json::{Value, json};

use super::client::stateless;

/// The least weight that a client wants to hear of: at first, what went wrong.
pub(super) struct Log(AtomicU8);

impl Default for Log {
    fn default() -> Self {
        Self(AtomicU8::new(weight(LoggingLevel::Warning)))
    }
}

impl Log {
    pub(super) fn listen(&self, least: LoggingLevel) {
        self.0.store(weight(least), Ordering::Relaxed);
    }

    /// Tells of an event, if the client wants to hear of such.
    pub(super) async fn tell(&self, event: &Event, context: &RequestContext<RoleServer>) {
        let (level, data) = match event {
            Event::Decision { tool, decision, .. } => {
                (LoggingLevel::Info, json!({ "tool": tool, "decision": decision }))
            }
            Event::Hook { run, .. } if run.failed => (LoggingLevel::Warning, json!({ "hook": run })),
            Event::Hook { run, .. } => (LoggingLevel::Debug, json!({ "hook": run })),
            _ => return,
        };
        if weight(level) >= self.0.load(Ordering::Relaxed) && !stateless(context) {
            send(level, data, context).await;
        }
    }
}

async fn send(level: LoggingLevel, data: Value, context: &RequestContext<RoleServer>) {
    let message = LoggingMessageNotificationParam::new(level, data).with_logger("gripper");
    context.peer.notify_logging_message(message).await.ok();
}

fn weight(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        LoggingLevel::Emergency => 7,
    }
}
