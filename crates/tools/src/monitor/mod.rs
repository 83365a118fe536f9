//! Monitor: watches the output of a command or a task until a line fits, it ends, or time is up.

use std::time::{Duration, Instant};

use gripper_runtime::{
    Access, Block, Call, ErrorCode, Facts, Place, Resource, Tool, ToolError, Use,
    permissions::Opinion,
    schema::Problem,
    tool::{Background, Done, Progress, ResultBound},
};
use regex::Regex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    bash::{self, Bash, plain},
    tasks::{Kept, Report, Tasks},
};

/// So many lines that fit are shown, and so many characters of each.
const MOST: (usize, usize) = (20, 500);
/// A line that is longer is taken apart.
const LONGEST_LINE: usize = 64 * 1024;
/// Progress is reported at most so often.
const TICK: Duration = Duration::from_millis(100);
/// A line that is not finished after so long may be all there is of it.
const PAUSE: Duration = Duration::from_millis(400);

/// The tool.
pub struct Monitor {
    bash: Bash,
    tasks: Tasks,
}

impl Monitor {
    /// The tool of a session; `bash` is how commands are run in it.
    pub fn new(bash: Bash, tasks: Tasks) -> Self {
        Self { bash, tasks }
    }
}

/// What a call carries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// A command line to run and watch. Either this or `task_id`.
    #[schemars(length(min = 1))]
    pub command: Option<String>,
    /// A background task to watch.
    pub task_id: Option<String>,
    /// What is waited for, in five to ten words, for the person.
    pub description: Option<String>,
    /// A regular expression: the call returns when a line fits it.
    pub until: Option<String>,
    /// The longest wait in milliseconds; 300000 unless given.
    #[schemars(range(min = 1, max = 3_600_000))]
    pub timeout_ms: Option<u64>,
    /// Whether `command` goes on as a background task when the call has returned; without it, it is ended then.
    pub persistent: Option<bool>,
}

impl Input {
    fn limit(&self) -> Duration {
        Duration::from_millis(self.timeout_ms.unwrap_or(300_000))
    }

    /// The command as Bash would run it in the background.
    fn bash(&self) -> Option<bash::Input> {
        Some(bash::Input {
            command: self.command.clone()?,
            description: self.description.clone(),
            timeout: None,
            run_in_background: Some(true),
            dangerously_disable_sandbox: None,
        })
    }

    fn pattern(&self) -> Result<Option<Regex>, regex::Error> {
        self.until.as_deref().map(Regex::new).transpose()
    }
}

/// Why a watch came to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// A line fitted.
    Match,
    /// The command ended.
    Exit,
    /// Time was up.
    Time,
}

/// The structured result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// Why the watch came to its end.
    pub reason: Reason,
    /// The lines that fit.
    pub matches: Vec<String>,
    /// Lines were looked for.
    #[serde(skip)]
    pub until: bool,
    /// The task, with all of its output that nobody had been given.
    #[serde(flatten)]
    pub report: Report,
}

impl Tool for Monitor {
    const NAME: &'static str = "Monitor";
    const DESCRIPTION: &'static str = include_str!("description.md");
    const FACTS: Facts = Facts {
        title: "Watch output",
        search_hint: "watch wait output line pattern background task log",
        bound: ResultBound::SelfBounded,
        background: Background::Always,
        ..Facts::DEFAULT
    };

    type Input = Input;
    type Output = Output;

    fn examples() -> Vec<Value> {
        vec![
            json!({"command": "npm run dev", "until": "listening on", "timeout_ms": 60_000, "persistent": true}),
            json!({"task_id": "bash_1", "until": "(?i)error|finished"}),
        ]
    }

    fn check(&self, input: &Input) -> Vec<Problem> {
        let mut problems = match (input.bash(), &input.task_id) {
            (Some(command), None) => self.bash.check(&command),
            (None, Some(_)) if input.persistent == Some(true) => {
                let found = "persistent with task_id, which goes on anyway";
                vec![Problem::found("/persistent", "not_both", "persistent with command only", found)]
            }
            (None, Some(_)) => Vec::new(),
            (both, _) => {
                let found = if both.is_some() { "both" } else { "neither" };
                vec![Problem::found("/command", "one_of_two", "either command or task_id", found)]
            }
        };
        if let Err(error) = input.pattern() {
            let found = error.to_string();
            problems.push(Problem::found("/until", "bad_regex", "a regular expression", &found));
        }
        problems
    }

    fn access(&self, input: &Input, place: &Place) -> Access {
        match (input.bash(), &input.task_id) {
            (Some(command), _) => self.bash.access(&command, place),
            (None, Some(id)) => Access::nothing().uses(Resource::Session(id.clone().into()), Use::Write),
            (None, None) => Access::unknown(),
        }
    }

    fn opinion(&self, input: &Input) -> Opinion {
        input.bash().map_or(Opinion::None, |command| self.bash.opinion(&command))
    }

    fn time_limit(&self, input: &Input) -> Duration {
        input.limit() + Duration::from_secs(20)
    }

    fn summary(&self, input: &Input) -> String {
        let what = input.command.as_ref().or(input.task_id.as_ref()).map_or("", String::as_str);
        format!("watch {what}")
    }

    async fn run(&self, input: &Input, call: &Call) -> Result<Done<Output>, ToolError> {
        let until = input.pattern().map_err(|error| {
            ToolError::new(ErrorCode::InvalidInput, format!("until is not a regular expression: {error}"))
        })?;
        let id = match input.bash() {
            Some(command) => self.bash.run(&command, call).await?.value.background_task_id,
            None => input.task_id.clone(),
        }
        .unwrap_or_default();
        let (kept, cursor) = self.tasks.unread(&id)?;
        let mut watch = Watch { until, kept, cursor, rest: Vec::new(), matches: Vec::new() };
        let reason = tokio::select! {
            biased;
            () = call.cancel.cancelled() => None,
            reason = watch.look(call) => Some(reason),
            () = tokio::time::sleep(input.limit()) => Some(Reason::Time),
        };
        let goes_on = input.task_id.is_some() || input.persistent == Some(true) && reason.is_some();
        if !goes_on && watch.kept.live.status().is_none() {
            // It may have ended by itself in the meantime, which is as good.
            self.tasks.end(&id).await.ok();
        }
        let Some(reason) = reason else {
            return Err(ToolError::new(ErrorCode::Cancelled, "the watch was cut short"));
        };
        if reason == Reason::Exit {
            self.tasks.wait(&id, bash::GRACE, call).await?;
        }
        let report = self.tasks.report(&id)?;
        Ok(Output { reason, matches: watch.matches, until: watch.until.is_some(), report }.into())
    }

    fn map(&self, output: &Output) -> Vec<Block> {
        let (id, seconds) = (&output.report.task_id, output.report.seconds);
        let head = match (output.reason, output.until) {
            (Reason::Match, _) => format!("these lines of {id} fit:\n{}\n", output.matches.join("\n")),
            (Reason::Exit, true) => format!("{id} ended before a line was found\n"),
            (Reason::Exit, false) => format!("{id} ended\n"),
            (Reason::Time, true) => {
                format!("time was up and no line was found, {seconds} s after {id} began\n")
            }
            (Reason::Time, false) => format!("time was up, {seconds} s after {id} began\n"),
        };
        vec![Block::text(format!("{head}\nall that is new:\n{}", output.report.words()))]
    }
}

/// A look at output as it comes.
struct Watch {
    until: Option<Regex>,
    kept: Kept,
    cursor: u64,
    /// The beginning of a line.
    rest: Vec<u8>,
    matches: Vec<String>,
}

impl Watch {
    /// Reads on until lines fit or the command has ended.
    async fn look(&mut self, call: &Call) -> Reason {
        let live = self.kept.live.clone();
        let mut told = Instant::now();
        loop {
            // Asked first: what was printed before the end is seen after it.
            let ended = live.status().is_some();
            let (bytes, next, _) = live.output().since(self.cursor);
            let more = next > self.cursor;
            self.cursor = next;
            self.take(&bytes, ended && !more);
            if !self.matches.is_empty() {
                return Reason::Match;
            }
            if more {
                if told.elapsed() > TICK {
                    told = Instant::now();
                    let message = format!("{} lines seen", live.output().snapshot().lines);
                    call.progress.report(Progress { message, ..Progress::default() });
                }
                tokio::task::yield_now().await;
            } else if ended {
                return Reason::Exit;
            } else {
                tokio::select! {
                    () = live.output().changed(self.cursor) => {}
                    _ = live.wait() => {}
                    // A prompt stays an unfinished line; one that is only slow is soon a longer one.
                    () = tokio::time::sleep(PAUSE), if !self.rest.is_empty() => self.find(&self.rest.clone()),
                }
            }
        }
    }

    /// Looks at the whole lines, and at the unfinished one if it is the last.
    fn take(&mut self, bytes: &[u8], last: bool) {
        self.rest.extend_from_slice(bytes);
        let whole = last || self.rest.len() > LONGEST_LINE;
        let end = match memchr::memrchr(b'\n', &self.rest) {
            Some(at) if !whole => at + 1,
            None if !whole => 0,
            _ => self.rest.len(),
        };
        let lines: Vec<u8> = self.rest.drain(..end).collect();
        self.find(&lines);
    }

    fn find(&mut self, bytes: &[u8]) {
        let lines = plain(bytes, &self.kept.mark);
        let Some(until) = &self.until else { return };
        let fitting = lines.lines().filter(|line| until.is_match(line));
        let room = MOST.0 - self.matches.len();
        self.matches.extend(fitting.take(room).map(|line| line.chars().take(MOST.1).collect::<String>()));
    }
}

#[cfg(test)]
mod tests;
