//! Commands that run in the background, as long as their session lives.

pub mod board;

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use gripper_process::{Status, live::Live};
use gripper_runtime::{Call, ErrorCode, FinishedTask, ToolError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::bash::{GRACE, cage, plain};
use board::{Board, Posted};

/// The most characters of new output that one call gets.
const MOST: usize = 30_000;
/// Of a task that is announced, so many lines and characters are shown.
const LAST: (usize, usize) = (5, 1_000);
/// How often it is looked whether another process wants a task to end.
const LOOK: Duration = Duration::from_millis(200);

/// The tasks of a session. The last one who drops them ends what still runs.
#[derive(Clone, Default)]
pub struct Tasks(Arc<Mutex<Table>>);

#[derive(Default)]
struct Table {
    tasks: BTreeMap<u32, Task>,
    last: u32,
    board: Option<Board>,
}

/// A command that goes on in the background.
#[derive(Clone)]
pub(crate) struct Kept {
    pub(crate) live: Arc<Live>,
    pub(crate) command: String,
    pub(crate) description: Option<String>,
    /// What stands behind this at the end of its output is not shown.
    pub(crate) mark: String,
    /// Where its output goes.
    pub(crate) file: Option<PathBuf>,
}

struct Task {
    kept: Kept,
    started: u64,
    /// How far its output has been asked for.
    cursor: u64,
    /// It has ended, and what it changed is written down.
    settled: CancellationToken,
    /// Somebody knows that it has ended.
    told: bool,
    attended: AbortHandle,
}

impl Drop for Task {
    fn drop(&mut self) {
        // Who attends to it holds it too, and would keep it running.
        self.attended.abort();
    }
}

impl Task {
    fn state(&self) -> (State, Option<i32>) {
        match self.kept.live.status() {
            None => (State::Running, None),
            Some(Status::Exited(0)) => (State::Completed, Some(0)),
            Some(Status::Exited(code)) => (State::Failed, Some(code)),
            Some(Status::Signalled(_)) => (State::Failed, None),
            Some(Status::Cancelled | Status::TimedOut) => (State::Killed, None),
        }
    }
}

/// How a task stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// What its cage kept it from so far.
    pub denied: Vec<String>,
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
        let denied: String =
            self.denied.iter().map(|denied| format!("\n(the cage refused {denied})")).collect();
        format!("{new}{denied}\n({} {state}{cut})", self.task_id)
    }
}

impl Tasks {
    /// Lets other processes see the tasks, in a folder that is this session's own.
    pub fn publish(&self, folder: PathBuf, root: PathBuf) {
        self.lock().board = Some(Board::new(folder, root));
    }

    /// Takes in a command that runs; gives its name. `after` is done when it has ended.
    pub(crate) fn add(&self, kept: Kept, after: impl Future<Output = ()> + Send + 'static) -> String {
        let mut table = self.lock();
        table.last += 1;
        let number = table.last;
        let settled = CancellationToken::new();
        let attend = attend(Arc::downgrade(&self.0), number, kept.live.clone(), after, settled.clone());
        let started = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let attended = tokio::spawn(attend).abort_handle();
        table.tasks.insert(number, Task { kept, started, cursor: 0, settled, told: false, attended });
        table.post();
        name(number)
    }

    /// Waits for a task to end, at most so long.
    pub(crate) async fn wait(&self, id: &str, limit: Duration, call: &Call) -> Result<(), ToolError> {
        let settled = self.with(id, |task| task.settled.clone())?;
        tokio::select! {
            biased;
            () = call.cancel.cancelled() => Err(ToolError::new(ErrorCode::Cancelled, "the wait was cut short")),
            () = settled.cancelled() => Ok(()),
            () = tokio::time::sleep(limit) => Ok(()),
        }
    }

    /// A task, and how far its output has been asked for.
    pub(crate) fn unread(&self, id: &str) -> Result<(Kept, u64), ToolError> {
        self.with(id, |task| (task.kept.clone(), task.cursor))
    }

    /// How a task stands, with what it printed since the last report.
    pub(crate) fn report(&self, id: &str) -> Result<Report, ToolError> {
        self.with(id, |task| {
            let (status, exit_code) = task.state();
            task.told |= status != State::Running;
            let (bytes, cursor, lost) = task.kept.live.output().since(task.cursor);
            task.cursor = cursor;
            let text = plain(&bytes, &task.kept.mark);
            let skip = text.chars().count().saturating_sub(MOST);
            Report {
                task_id: id.to_owned(),
                status,
                command: task.kept.command.clone(),
                exit_code,
                output: text.chars().skip(skip).collect(),
                truncated: lost || skip > 0,
                seconds: task.kept.live.elapsed().as_secs(),
                denied: cage::denied(&task.kept.live),
            }
        })
    }

    /// The tasks that ended and of which nobody was told so far. Each is given once.
    pub fn finished(&self) -> Vec<FinishedTask> {
        let mut table = self.lock();
        let ended = table.tasks.iter_mut().filter(|(_, task)| !task.told && task.settled.is_cancelled());
        let announced = ended.map(|(number, task)| {
            task.told = true;
            let (state, exit_code) = task.state();
            let last = plain(&task.kept.live.output().last_lines(LAST.0), &task.kept.mark);
            let skip = last.chars().count().saturating_sub(LAST.1);
            FinishedTask {
                task_id: name(*number),
                command: task.kept.command.clone(),
                description: task.kept.description.clone(),
                status: state.name(),
                exit_code,
                last_lines: last.trim_end().chars().skip(skip).collect(),
            }
        });
        announced.collect()
    }

    /// Ends a task with everything it started.
    pub(crate) async fn end(&self, id: &str) -> Result<(), ToolError> {
        let (live, settled) = self.with(id, |task| (task.kept.live.clone(), task.settled.clone()))?;
        if live.status().is_some() {
            let words = format!("{id} has already ended: its output is had with TaskOutput");
            return Err(ToolError::new(ErrorCode::Failed, words));
        }
        live.end(GRACE).await;
        settled.cancelled().await;
        // Whoever ended it knows.
        self.with(id, |task| task.told = true)
    }

    fn with<T>(&self, id: &str, look: impl FnOnce(&mut Task) -> T) -> Result<T, ToolError> {
        let mut table = self.lock();
        if let Some(task) = number(id).and_then(|number| table.tasks.get_mut(&number)) {
            return Ok(look(task));
        }
        let known: Vec<String> = table.tasks.keys().map(|number| name(*number)).collect();
        let known = match known.is_empty() {
            true => "there is none".to_owned(),
            false => format!("there are {}", known.join(", ")),
        };
        Err(ToolError::new(ErrorCode::NotFound, format!("there is no task called \"{id}\": {known}")))
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        lock(&self.0)
    }
}

impl Table {
    fn post(&mut self) {
        let Self { tasks, board: Some(board), .. } = self else { return };
        let posted = tasks.iter().map(|(number, task)| {
            let (status, exit_code) = task.state();
            Posted {
                id: name(*number),
                command: task.kept.command.clone(),
                description: task.kept.description.clone(),
                status,
                exit_code,
                started: task.started,
                output: task.kept.file.clone(),
            }
        });
        board.post(posted.collect());
    }
}

impl State {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            State::Running => "running",
            State::Completed => "completed",
            State::Failed => "failed",
            State::Killed => "killed",
        }
    }
}

/// Waits for the end of a task, or for the wish of another process that it ends, and settles it.
async fn attend(
    table: Weak<Mutex<Table>>,
    number: u32,
    live: Arc<Live>,
    after: impl Future<Output = ()>,
    settled: CancellationToken,
) {
    let unwanted = || {
        let table = table.upgrade()?;
        let table = lock(&table);
        table.board.as_ref().map(|board| board.asks_to_stop(&name(number)))
    };
    while live.status().is_none() {
        tokio::select! {
            _ = live.wait() => {}
            () = tokio::time::sleep(LOOK) => {
                if unwanted() == Some(true) {
                    live.end(GRACE).await;
                }
            }
        }
    }
    after.await;
    settled.cancel();
    if let Some(table) = table.upgrade() {
        lock(&table).post();
    }
}

fn lock(table: &Mutex<Table>) -> MutexGuard<'_, Table> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

fn name(number: u32) -> String {
    format!("bash_{number}")
}

fn number(id: &str) -> Option<u32> {
    id.strip_prefix("bash_")?.parse().ok()
}
