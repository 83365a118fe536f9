//! Everything observable.

use std::{sync::Arc, time::Duration};

use gripper_permissions::Decision;
use serde::{Serialize, Serializer};
use serde_json::Value;

use crate::{files::ChangedFile, hooks::HookRun, pipeline::CallResult, tool::Progress};

/// Something that happened in a turn. Serialised, it is one line of the machine form.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// A call was submitted.
    Queued {
        /// The call.
        call_id: Arc<str>,
        /// Its tool, as the model wrote it.
        tool: Arc<str>,
    },
    /// A call began.
    Started {
        /// The call.
        call_id: Arc<str>,
        /// One line on what it does.
        summary: String,
    },
    /// A call reported progress.
    Progress {
        /// The call.
        call_id: Arc<str>,
        /// How far it is.
        #[serde(flatten)]
        progress: Progress,
    },
    /// A permission was decided.
    Decision {
        /// The call.
        call_id: Arc<str>,
        /// The tool.
        tool: Arc<str>,
        /// What was decided about. Kept for the account; too much for a stream.
        #[serde(skip)]
        input: Arc<Value>,
        /// The decision and what produced it.
        #[serde(flatten)]
        decision: Decision,
    },
    /// A hook ran.
    Hook {
        /// The call, if it was about one.
        #[serde(skip_serializing_if = "Option::is_none")]
        call_id: Option<Arc<str>>,
        /// The hook and what it did.
        #[serde(flatten)]
        run: HookRun,
    },
    /// A hook or an approver put another input in place of the model's.
    Rewrite {
        /// The call.
        call_id: Arc<str>,
        /// `hook` or `approver`.
        by: &'static str,
        /// The input before.
        before: Value,
        /// The input after.
        after: Value,
    },
    /// A call's outcome is settled, though its result may still wait for its turn.
    Finished {
        /// The call.
        call_id: Arc<str>,
        /// Whether it failed.
        is_error: bool,
        /// How long it took.
        #[serde(rename = "duration_ms", serialize_with = "milliseconds")]
        duration: Duration,
    },
    /// A result, in call order.
    Result(Arc<CallResult>),
    /// Others have changed files the model knows.
    ChangedFiles {
        /// The files and what happened to them.
        files: Vec<ChangedFile>,
    },
    /// A background task has ended, and nobody had asked.
    TaskFinished(FinishedTask),
    /// Every call submitted so far has its result out.
    TurnEnd {
        /// How many calls there were.
        calls: usize,
        /// How many of them failed.
        errors: usize,
    },
}

impl Event {
    /// The result, if it is one.
    pub(crate) fn into_result(self) -> Option<Arc<CallResult>> {
        match self {
            Event::Result(result) => Some(result),
            _ => None,
        }
    }
}

/// A background task that has ended, as it is announced.
#[derive(Debug, Clone, Serialize)]
pub struct FinishedTask {
    /// The task.
    pub task_id: String,
    /// What was run.
    pub command: String,
    /// What for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// `completed`, `failed` or `killed`.
    pub status: &'static str,
    /// How it ended, unless a signal ended it.
    pub exit_code: Option<i32>,
    /// The end of its output.
    pub last_lines: String,
}

/// Milliseconds with three decimals, as all machine forms give durations.
pub(crate) fn milliseconds<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64((duration.as_secs_f64() * 1_000_000.0).round() / 1_000.0)
}

/// Sees every event of a session at once, in order, on the thread where it happens. It is called
/// under the turn's lock: it must be quick, and must not call the turn.
pub trait Observer: Send + Sync {
    /// Called for each event of the turn with the id `turn`.
    fn observe(&self, turn: &str, event: &Event);
}
