//! Commands that run in the background, as long as their session lives.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use gripper_process::{Status, live::Live};
use gripper_runtime::{Call, ErrorCode, ToolError};
use schemars::JsonSchema;
use serde::Serialize;

use crate::bash::plain;

/// The most characters of new output that one call gets.
const MOST: usize = 30_000;

/// The tasks of a session. The last one who drops them ends what still runs.
#[derive(Clone, Default)]
pub struct Tasks(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    tasks: BTreeMap<u32, Task>,
    last: u32,
}

struct Task {
    live: Arc<Live>,
    command: String,
    /// How far its output has been asked for.
    cursor: u64,
}

/// How a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It runs.
    Running,
    /// It ended by itself, well.
    Completed,
    /// It ended by itself, with a failure.
    Failed,
    /// It was ended.
    Killed,
}

/// A task as it is reported.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The task.
    pub task_id: String,
    /// How it stands.
    pub status: State,
    /// The command line.
    pub command: String,
    /// How it ended.
    pub exit_code: Option<i32>,
    /// What it printed since somebody asked last.
    pub output: String,
    /// Some of that is no longer kept, or was too much for one answer.
    pub truncated: bool,
    /// How long it has run.
    pub seconds: u64,
}

impl Report {
    /// The report in words.
    pub(crate) fn words(&self) -> String {
        let state = match (self.status, self.exit_code) {
            (State::Running, _) => format!("still runs after {} s", self.seconds),
            (State::Killed, _) => "was ended".to_owned(),
            (_, Some(code)) => format!("has ended with exit code {code}"),
            (_, None) => "was ended by a signal".to_owned(),
        };
        let cut = if self.truncated { "; older output is left out" } else { "" };
        let new = if self.output.is_empty() { "no new output" } else { self.output.trim_end() };
        format!("{new}\n({} {state}{cut})", self.task_id)
    }
}

impl Tasks {
    /// Takes in a command that runs; gives its name.
    pub(crate) fn add(&self, live: Arc<Live>, command: &str) -> String {
        let mut table = self.lock();
        table.last += 1;
        let number = table.last;
        table.tasks.insert(number, Task { live, command: command.to_owned(), cursor: 0 });
        format!("bash_{number}")
    }

    /// Waits for a task to end, at most so long.
    pub(crate) async fn wait(&self, id: &str, limit: Duration, call: &Call) -> Result<(), ToolError> {
        let live = self.find(id)?;
        tokio::select! {
            biased;
            () = call.cancel.cancelled() => Err(ToolError::new(ErrorCode::Cancelled, "the wait was cut short")),
            _ = live.wait() => Ok(()),
            () = tokio::time::sleep(limit) => Ok(()),
        }
    }

    /// How a task stands, with what it printed since the last report.
    pub(crate) fn report(&self, id: &str) -> Result<Report, ToolError> {
        let live = self.find(id)?;
        let mut table = self.lock();
        let task =
            number(id).and_then(|number| table.tasks.get_mut(&number)).ok_or_else(|| unknown(id, &[]))?;
        let status = live.status();
        let (bytes, cursor, lost) = live.output().since(task.cursor);
        task.cursor = cursor;
        let text = plain(&bytes, "");
        let skip = text.chars().count().saturating_sub(MOST);
        let output: String = text.chars().skip(skip).collect();
        let exit_code = match status {
            Some(Status::Exited(code)) => Some(code),
            _ => None,
        };
        let status = match status {
            None => State::Running,
            Some(Status::Exited(0)) => State::Completed,
            Some(Status::Exited(_) | Status::Signalled(_)) => State::Failed,
            Some(Status::Cancelled | Status::TimedOut) => State::Killed,
        };
        Ok(Report {
            task_id: id.to_owned(),
            status,
            command: task.command.clone(),
            exit_code,
            output,
            truncated: lost || skip > 0,
            seconds: live.elapsed().as_secs(),
        })
    }

    /// Ends a task with everything it started.
    pub(crate) async fn end(&self, id: &str) -> Result<(), ToolError> {
        let live = self.find(id)?;
        if live.status().is_some() {
            let words = format!("{id} has already ended: its output is had with TaskOutput");
            return Err(ToolError::new(ErrorCode::Failed, words));
        }
        live.end(crate::bash::GRACE).await;
        Ok(())
    }

    fn find(&self, id: &str) -> Result<Arc<Live>, ToolError> {
        let table = self.lock();
        let task = number(id).and_then(|number| table.tasks.get(&number));
        task.map(|task| task.live.clone()).ok_or_else(|| {
            let known: Vec<String> = table.tasks.keys().map(|number| format!("bash_{number}")).collect();
            unknown(id, &known)
        })
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn number(id: &str) -> Option<u32> {
    id.strip_prefix("bash_")?.parse().ok()
}

fn unknown(id: &str, known: &[String]) -> ToolError {
    let known =
        if known.is_empty() { "there is none".to_owned() } else { format!("there are {}", known.join(", ")) };
    ToolError::new(ErrorCode::NotFound, format!("there is no task called \"{id}\": {known}"))
}
