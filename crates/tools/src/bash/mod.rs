//! Bash: runs a command line, in a cage that leaves open what was decided and nothing else.

pub(crate) mod cage;
mod environment;
mod hardened;
mod in_place;
pub(crate) mod journal;
mod mentioned;
mod seen;
pub(crate) mod shown;
mod start_up;

use std::{
    collections::HashMap,
    ffi::OsString,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use gripper_process::{
    Spec, StartError, Status,
    live::{Keep, Live},
};
use gripper_runtime::{
    Access, Block, Call, ErrorCode, Facts, Place, Tool, ToolError,
    permissions::Opinion,
    schema::Problem,
    tool::{Background, Done, Progress, ResultBound, SessionEffect},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    editing::Changed,
    tasks::{Kept, Tasks},
};
use in_place::Trial;
use journal::Journal;
pub use mentioned::Finder;

pub use cage::protected_below;
pub use environment::Settings;
use environment::Variables;
pub(crate) use shown::plain;
pub use start_up::StartUp;

/// Between being asked and being made to end.
pub(crate) const GRACE: Duration = Duration::from_millis(500);
/// How often a running command is reported about.
const TICK: Duration = Duration::from_millis(100);
/// The most bytes of a command line; the system takes no longer argument.
const LONGEST: usize = 128 * 1024 - 1024;
/// Bytes of the beginning and of the end that are kept to be shown.
const KEPT: usize = 256 * 1024;
/// What a call may take beyond the time its command has.
const SLACK: Duration = Duration::from_secs(10);

/// A call of a session: its turn and its id.
type CallKey = (Arc<str>, Arc<str>);

/// The tool.
pub struct Bash {
    settings: Arc<Settings>,
    tasks: Tasks,
    /// Another shell in place of bash, with the arguments before the text.
    shell: Option<&'static [&'static str]>,
    /// What questions about edits in place have shown, by turn and call.
    trials: Mutex<HashMap<CallKey, Trial>>,
    /// Finds more names of files in an output.
    finder: Option<Finder>,
}

impl Bash {
    /// The tool of a session.
    pub fn new(settings: Arc<Settings>, tasks: Tasks) -> Self {
        Self { settings, tasks, shell: None, trials: Mutex::default(), finder: None }
    }

    /// The same with somebody who finds names of files in what commands print.
    pub fn with_finder(self, finder: Option<Finder>) -> Self {
        Self { finder, ..self }
    }

    /// The same with another shell: its name, and the arguments before the text.
    pub(crate) fn with_shell(self, shell: &'static [&'static str]) -> Self {
        Self { shell: Some(shell), ..self }
    }
}

/// What a call carries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The command line.
    #[schemars(length(min = 1))]
    pub command: String,
    /// What it does, in five to ten words, for the person.
    pub description: Option<String>,
    /// How long it may take, in milliseconds; 120000 unless given, at most 600000.
    #[schemars(range(min = 1, max = 600_000))]
    pub timeout: Option<u64>,
    /// Whether to return at once and let it run: its output is had with TaskOutput.
    pub run_in_background: Option<bool>,
    /// Whether to run it without a cage. A person must agree each time.
    pub dangerously_disable_sandbox: Option<bool>,
}

/// The structured result.
#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// What was printed, as far as it is shown.
    pub stdout: String,
    /// What was printed on standard error.
    pub stderr: String,
    /// How it ended; nothing while it runs or when a signal ended it.
    pub exit_code: Option<i32>,
    /// Somebody stopped it.
    pub interrupted: bool,
    /// What was printed is a picture.
    pub is_image: bool,
    /// The task that it goes on as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background_task_id: Option<String>,
    /// What the exit code means where it is no failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub return_code_interpretation: Option<String>,
    /// Where all of the output is, if only part of it is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub raw_output_path: Option<PathBuf>,
    /// Characters of the output that are not shown.
    pub omitted_chars: usize,
    /// Where the next command starts.
    pub cwd: PathBuf,
    /// What it was confined to.
    pub confinement: String,
    /// What the cage kept it from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub denied: Vec<String>,
    /// The files of an edit in place that was made as an edit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated_edit: Option<Vec<Changed>>,
    /// What the model should know besides.
    pub notes: Vec<String>,
    /// Both outputs as they came, for the model.
    #[serde(skip)]
    pub text: String,
}

impl Tool for Bash {
    const NAME: &'static str = "Bash";
    const DESCRIPTION: &'static str = include_str!("description.md");
    const FACTS: Facts = Facts {
        title: "Run a command",
        aliases: &["BashTool"],
        search_hint: "run execute shell command terminal script",
        bound: ResultBound::SelfBounded,
        background: Background::Always,
        failure_spreads: true,
        ..Facts::DEFAULT
    };

    type Input = Input;
    type Output = Output;

    fn examples() -> Vec<Value> {
        vec![
            json!({"command": "cargo test -p parser", "description": "Run the parser's tests", "timeout": 300_000}),
            json!({"command": "npm run dev", "run_in_background": true}),
        ]
    }

    fn check(&self, input: &Input) -> Vec<Problem> {
        if input.command.contains('\0') {
            return vec![Problem::found("/command", "bad_command", "no NUL characters", "a NUL character")];
        }
        if input.command.len() > LONGEST {
            let found = format!("{} bytes", input.command.len());
            let expected = format!("at most {LONGEST} bytes: write a script with Write and run that");
            return vec![Problem::found("/command", "too_long", &expected, &found)];
        }
        Vec::new()
    }

    fn access(&self, input: &Input, _place: &Place) -> Access {
        Access::command(&input.command)
    }

    fn opinion(&self, input: &Input) -> Opinion {
        if input.dangerously_disable_sandbox == Some(true) {
            let reason = "it asks to run without a cage".into();
            return if self.settings.bare_forbidden {
                Opinion::Deny("running without a cage is forbidden here".into())
            } else {
                Opinion::Ask { reason, firm: true }
            };
        }
        match cage::missing() {
            Some(why) if self.settings.fail_if_unavailable => Opinion::Deny(cage::refusal(&why).into()),
            Some(why) => {
                let reason = format!("commands cannot be confined: {why}").into();
                // A rule that was made for commands in the sandbox is not one for bare ones.
                Opinion::Ask { reason, firm: self.settings.sandbox }
            }
            None => Opinion::None,
        }
    }

    fn time_limit(&self, input: &Input) -> Duration {
        self.limit(input) + SLACK
    }

    fn summary(&self, input: &Input) -> String {
        input.command.clone()
    }

    async fn preview(&self, input: &Input, call: &Call) -> Option<String> {
        self.preview_edit(input, call).await
    }

    async fn run(&self, input: &Input, call: &Call) -> Result<Done<Output>, ToolError> {
        if let Some(output) = self.edit(input, call).await? {
            return Ok(output.into());
        }
        let journal = Journal::begin(call).await;
        let env = self.settings.environment_of(call).await;
        let command = Running::start(self, input, call, env).await?;
        if input.run_in_background == Some(true) {
            let id = self.keep(&command, input, journal);
            let mut output = command.output("");
            output.notes.push(format!("runs in the background as {id}: its output is had with TaskOutput"));
            output.background_task_id = Some(id);
            return Ok(output.into());
        }
        let limit = tokio::time::sleep(self.limit(input));
        tokio::pin!(limit);
        let mut told = 0;
        loop {
            tokio::select! {
                biased;
                () = call.cancel.cancelled() => {
                    command.live.end(GRACE).await;
                    if let Some(journal) = journal {
                        journal.end().await;
                    }
                    return Err(ToolError::new(ErrorCode::Cancelled, command.text("the command was stopped")));
                }
                status = command.live.wait() => {
                    let mut done = command.done(status, call);
                    mentioned::read_ahead(call, &done.value.text, self.finder.as_ref());
                    done.value.notes.extend(self.settings.trouble());
                    if let Some(journal) = journal {
                        done.value.notes.extend(journal.end().await);
                    }
                    return Ok(done);
                }
                () = &mut limit => break,
                () = tokio::time::sleep(TICK) => {
                    let seen = command.live.output().bytes();
                    if seen != told {
                        told = seen;
                        call.progress.report(Progress { message: command.progress(), ..Progress::default() });
                    }
                }
            }
        }
        self.out_of_time(input, command, journal).await
    }

    fn map(&self, output: &Output) -> Vec<Block> {
        shown::blocks(output)
    }
}

impl Bash {
    fn limit(&self, input: &Input) -> Duration {
        let (usual, most) = self.settings.limits;
        input.timeout.map_or(usual, Duration::from_millis).min(most)
    }

    /// Lets a command go on as a task; what it changed is written down when it ends.
    fn keep(&self, command: &Running, input: &Input, journal: Option<Journal>) -> String {
        let kept = Kept {
            live: command.live.clone(),
            command: input.command.clone(),
            description: input.description.clone(),
            mark: command.mark.clone().unwrap_or_default(),
            file: command.file.clone(),
        };
        self.tasks.add(kept, async {
            if let Some(journal) = journal {
                journal.end().await;
            }
        })
    }

    /// What takes longer than it may goes on in the background, unless it only waits.
    async fn out_of_time(
        &self,
        input: &Input,
        command: Running,
        journal: Option<Journal>,
    ) -> Result<Done<Output>, ToolError> {
        let seconds = self.limit(input).as_secs_f64();
        let waits = input.command.trim_start().starts_with("sleep");
        let question = gripper_process::live::looks_like_prompt(&command.live.output().last_lines(1));
        if self.settings.kill_on_time_out || waits || question.is_some() {
            command.live.end(GRACE).await;
            if let Some(journal) = journal {
                journal.end().await;
            }
            let why = match question {
                Some(question) => format!(
                    "it waits for an answer that nobody can give ({question}): use a flag that answers, or feed it input"
                ),
                None => "it was ended; give it a longer timeout, or run it in the background".to_owned(),
            };
            let words = command.text(&format!("the command was not done after {seconds} s: {why}"));
            return Err(ToolError::new(ErrorCode::Timeout, words));
        }
        let id = self.keep(&command, input, journal);
        let mut output = command.output("");
        output.notes.push(format!(
            "not done after {seconds} s, so it goes on in the background as {id}: its output is had with \
             TaskOutput, and KillShell ends it"
        ));
        output.background_task_id = Some(id);
        Ok(output.into())
    }
}

/// A command that was started.
struct Running {
    live: Arc<Live>,
    /// Stands before the folder that the shell ends in, if it may be another.
    mark: Option<String>,
    cage: cage::Cage,
    start: PathBuf,
    /// Where all of its output goes.
    file: Option<PathBuf>,
}

impl Running {
    async fn start(bash: &Bash, input: &Input, call: &Call, env: Variables) -> Result<Self, ToolError> {
        let bare = input.dangerously_disable_sandbox == Some(true);
        let cage = cage::Cage::of(bare, call, &bash.settings).await?;
        let start = call.cwd().to_owned();
        if !start.is_dir() {
            let words = format!("the working directory {} is gone: nothing can run there", start.display());
            return Err(ToolError::new(ErrorCode::NotFound, words));
        }
        let analysis = call.access.command_use().map(|command| &command.analysis);
        let stays = analysis.is_some_and(|analysis| analysis.cwd().map(Path::new) == Some(call.cwd()));
        let mark = (!stays && bash.shell.is_none()).then(|| uuid_mark(&call.id));
        let line = match &mark {
            Some(mark) => format!("trap 'printf \"\\n%s%s\" {mark} \"$PWD\"' EXIT; {}", input.command),
            None => input.command.clone(),
        };
        let mut spec = match bash.shell {
            // Not another shell in its place: the line was judged as one of bash.
            None => {
                let args = vec!["-c".into(), OsString::from(line), "bash".into()];
                Spec { env, ..Spec::exec("bash", args, &start) }
            }
            Some(words) => {
                let mut words = words.iter().map(OsString::from).chain([OsString::from(line)]);
                let program = words.next().unwrap_or_default();
                Spec { env, ..Spec::exec(program, words.collect(), &start) }
            }
        };
        spec.cage = cage.profile.clone();
        spec.limits = bash.settings.resources;
        let file = bash.settings.output_file(&call.session);
        let keep = Keep { head: KEPT, tail: KEPT, file: file.clone(), ..Keep::default() };
        let live = Live::start(spec, keep).map_err(|error| {
            let fix =
                if matches!(error, StartError::Program(_)) { ": install it, or put it on PATH" } else { "" };
            ToolError::new(ErrorCode::Failed, format!("the command was not started: {error}{fix}"))
        })?;
        Ok(Self { live, mark, cage, start, file })
    }

    /// The last line and how much there was, for who watches.
    fn progress(&self) -> String {
        let last = String::from_utf8_lossy(&self.live.output().last_lines(1)).trim().to_owned();
        format!(
            "{:.0} s, {} lines: {last}",
            self.live.elapsed().as_secs_f64(),
            self.live.output().snapshot().lines
        )
    }

    /// What there is so far behind some words.
    fn text(&self, words: &str) -> String {
        let text = self.output("").text;
        if text.is_empty() { words.to_owned() } else { format!("{words}\n{text}") }
    }

    fn output(&self, mark: &str) -> Output {
        let all = self.live.output();
        let whole = all.snapshot();
        let in_file = whole.before_file == Some(0);
        let between = shown::telling_between(all, &whole);
        let (shown, omitted) = shown::shown(whole, mark, &between);
        Output {
            stdout: shown::plain(&shown::bytes(all.stdout()), mark),
            stderr: shown::plain(&shown::bytes(all.stderr()), ""),
            raw_output_path: self.file.clone().filter(|_| omitted > 0 && in_file),
            omitted_chars: omitted,
            cwd: self.start.clone(),
            confinement: cage::told(&self.cage.words, &self.live),
            notes: self.cage.note.iter().cloned().collect(),
            text: shown,
            ..Output::default()
        }
    }

    fn done(self, status: Status, call: &Call) -> Done<Output> {
        let mark = self.mark.clone().unwrap_or_default();
        let mut output = self.output(&mark);
        output.exit_code = match status {
            Status::Exited(code) => Some(code),
            _ => None,
        };
        output.interrupted = matches!(status, Status::Cancelled | Status::TimedOut);
        if let Status::Signalled(signal) = status {
            output.notes.push(format!("signal {signal} ended it"));
        }
        let analysis = call.access.command_use().map(|command| &command.analysis);
        let meanings = analysis.map_or(&[][..], |analysis| analysis.exits());
        output.return_code_interpretation = meanings
            .iter()
            .find(|(code, _)| Some(*code) == output.exit_code)
            .map(|(_, meaning)| meaning.clone());
        output.denied = cage::denied(&self.live);
        output.notes.extend_from_slice(self.live.limits_hit());
        let mut effects = self.moved(call, &mark, &mut output);
        output.is_image = shown::picture(&output.stdout).is_some();
        if output.exit_code == Some(0) && output.omitted_chars == 0 && !output.is_image {
            let stdout = shown::bytes(self.live.output().stdout());
            let printed = shown::before(&stdout, &mark);
            // What was shown otherwise than it stands in the file is not known.
            if shown::plain(printed, "").as_bytes() == printed {
                effects.extend(seen::seen(call, printed));
            }
        }
        let failed = output.exit_code != Some(0) && output.return_code_interpretation.is_none();
        Done { value: output, effects, is_error: failed }
    }

    /// The next command starts where this one ended, if that is in a working directory.
    fn moved(&self, call: &Call, mark: &str, output: &mut Output) -> Vec<SessionEffect> {
        let Some(end) = shown::marked(&shown::bytes(self.live.output().stdout()), mark).map(PathBuf::from)
        else {
            return Vec::new();
        };
        if end == self.start {
            return Vec::new();
        }
        let real = end.canonicalize().unwrap_or_else(|_| end.clone());
        if !real.is_dir() || !call.policy.directories.iter().any(|root| real.starts_with(root)) {
            let (end, start) = (end.display(), self.start.display());
            output.notes.push(format!(
                "{end} is outside the working directories, so the next command starts in {start}"
            ));
            return Vec::new();
        }
        output.cwd.clone_from(&end);
        vec![SessionEffect::SetCwd(end)]
    }
}

/// A word that no output has by chance.
fn uuid_mark(call: &str) -> String {
    let tidy: String = call.chars().filter(char::is_ascii_alphanumeric).take(40).collect();
    format!("gripper-cwd-{tidy}-{:x}:", std::process::id())
}

#[cfg(test)]
pub(crate) mod tests;
