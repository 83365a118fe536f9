//! REPL: code for an interpreter that stays, so that the next call finds its variables.

mod interpreter;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use gripper_runtime::{
    Access, Block, Call, ErrorCode, Facts, Place, Tool, ToolError,
    permissions::Opinion,
    tool::{Done, Loading, ResultBound},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::bash::{Settings, cage, journal::Journal, shown::shown};
use interpreter::{Interpreter, Printed};

/// Interpreters that may live at once.
const MOST: usize = 8;
/// How long interrupted code has to come to its end.
const PATIENCE: Duration = Duration::from_millis(1_500);

/// A place for an interpreter; empty before the first call, and after one that it did not survive.
type Seat = Arc<tokio::sync::Mutex<Option<Interpreter>>>;

/// The tool.
pub struct Repl {
    settings: Arc<Settings>,
    enabled: bool,
    seats: Mutex<BTreeMap<(Language, String), Seat>>,
}

impl Repl {
    /// The tool of a session, and whether it may be used in it.
    pub fn new(settings: Arc<Settings>, enabled: bool) -> Self {
        Self { settings, enabled, seats: Mutex::default() }
    }

    fn seat(&self, input: &Input) -> Result<Seat, ToolError> {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        // Seats that are empty and that nobody is about to take make room.
        seats.retain(|_, seat| {
            Arc::strong_count(seat) > 1 || seat.try_lock().is_ok_and(|interpreter| interpreter.is_some())
        });
        let key = (input.language, input.session().to_owned());
        if seats.len() >= MOST && !seats.contains_key(&key) {
            let names: Vec<&str> = seats.keys().map(|(_, name)| name.as_str()).collect();
            let words = format!("there are {MOST} interpreters already: use one of {}", names.join(", "));
            return Err(ToolError::new(ErrorCode::Failed, words));
        }
        Ok(seats.entry(key).or_default().clone())
    }
}

/// What an interpreter speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// python3.
    Python,
    /// node.
    Javascript,
}

/// What a call carries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The interpreter.
    pub language: Language,
    /// The code. The value of its last expression is part of the result.
    #[schemars(length(min = 1, max = 1_000_000))]
    pub code: String,
    /// Which interpreter of that language, by a name of your choice; each has variables of its own.
    #[schemars(length(min = 1, max = 64))]
    pub session: Option<String>,
    /// How long it may take, in milliseconds; 120000 unless given, at most 600000.
    #[schemars(range(min = 1, max = 600_000))]
    pub timeout: Option<u64>,
}

impl Input {
    fn session(&self) -> &str {
        self.session.as_deref().unwrap_or("main")
    }
}

/// The structured result.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// What was printed.
    pub stdout: String,
    /// The value of the last expression, as the language writes it.
    pub value: Option<String>,
    /// The exception that ended the code.
    pub error: Option<String>,
    /// Characters of the output that are not shown.
    pub omitted_chars: usize,
    /// What the model should know besides.
    pub notes: Vec<String>,
}

impl Tool for Repl {
    const NAME: &'static str = "REPL";
    const DESCRIPTION: &'static str = include_str!("description.md");
    const FACTS: Facts = Facts {
        title: "Run code",
        search_hint: "run python javascript code interpreter session",
        bound: ResultBound::SelfBounded,
        loading: Loading::Deferrable,
        ..Facts::DEFAULT
    };

    type Input = Input;
    type Output = Output;

    fn examples() -> Vec<Value> {
        vec![json!({"language": "python", "code": "import statistics\nstatistics.mean([1, 2, 6])"})]
    }

    fn available(&self) -> Result<(), String> {
        self.enabled.then_some(()).ok_or_else(|| "it needs the setting repl.enabled".to_owned())
    }

    fn access(&self, _input: &Input, _place: &Place) -> Access {
        Access::code()
    }

    fn opinion(&self, _input: &Input) -> Opinion {
        let runs = "it runs code, and what that would do is not known beforehand";
        match cage::missing() {
            Some(why) if self.settings.fail_if_unavailable => Opinion::Deny(cage::refusal(&why).into()),
            // A rule that was made for code in the sandbox is not one for bare code.
            Some(why) => Opinion::Ask {
                reason: format!("{runs}, and it cannot be confined: {why}").into(),
                firm: self.settings.sandbox,
            },
            None => Opinion::Ask { reason: runs.into(), firm: false },
        }
    }

    fn time_limit(&self, input: &Input) -> Duration {
        self.limit(input) + Duration::from_secs(20)
    }

    fn summary(&self, input: &Input) -> String {
        input.code.clone()
    }

    async fn run(&self, input: &Input, call: &Call) -> Result<Done<Output>, ToolError> {
        let seat = self.seat(input)?;
        let mut seat = seat.lock().await;
        let journal = Journal::begin(call).await;
        let mut interpreter = match seat.take() {
            Some(interpreter) => interpreter,
            None => Interpreter::start(input.language, call, &self.settings).await?,
        };
        let mut printed = Printed::default();
        let (mut answer, cut) = tokio::select! {
            biased;
            () = call.cancel.cancelled() => (None, Some(ErrorCode::Cancelled)),
            answer = interpreter.run(&input.code, &mut printed) => (answer, None),
            () = tokio::time::sleep(self.limit(input)) => (None, Some(ErrorCode::Timeout)),
        };
        if cut.is_some() {
            answer = interpreter.interrupt(PATIENCE, &mut printed).await;
        }
        let note = interpreter.note.clone();
        let gone = answer.is_none();
        if gone {
            interpreter.end().await;
        } else {
            *seat = Some(interpreter);
        }
        let mut notes: Vec<String> = note.into_iter().collect();
        if let Some(journal) = journal {
            notes.extend(journal.end().await);
        }
        let (stdout, omitted_chars) = shown(printed.shown(), "", "");
        let lost = "its variables are gone, and the next call starts a new one";
        let failed = match (cut, gone) {
            (None, false) => None,
            (None, true) => Some((ErrorCode::Failed, format!("the interpreter has ended: {lost}"))),
            (Some(code), false) => {
                Some((code, format!("{}: it was interrupted, its variables are kept", self.why(code, input))))
            }
            (Some(code), true) => {
                let why = self.why(code, input);
                Some((
                    code,
                    format!("{why} and could not be interrupted, so the interpreter was ended: {lost}"),
                ))
            }
        };
        if let Some((code, words)) = failed {
            notes.insert(0, words);
            let output = Output { stdout, value: None, error: None, omitted_chars, notes };
            return Err(ToolError::new(code, text(&output)));
        }
        let (value, error) = answer.map(|answer| (answer.value, answer.error)).unwrap_or_default();
        let is_error = error.is_some();
        let output = Output { stdout, value, error, omitted_chars, notes };
        Ok(Done { value: output, effects: Vec::new(), is_error })
    }

    fn map(&self, output: &Output) -> Vec<Block> {
        vec![Block::text(text(output))]
    }
}

impl Repl {
    fn limit(&self, input: &Input) -> Duration {
        let (usual, most) = self.settings.limits;
        input.timeout.map_or(usual, Duration::from_millis).min(most)
    }

    fn why(&self, code: ErrorCode, input: &Input) -> String {
        match code {
            ErrorCode::Timeout => {
                format!("the code was not done after {} s", self.limit(input).as_secs_f64())
            }
            _ => "the code was stopped".to_owned(),
        }
    }
}

/// What was printed, the value, the exception and the notes, each on lines of its own.
fn text(output: &Output) -> String {
    let mut parts: Vec<String> = Vec::new();
    parts.extend([&output.stdout].into_iter().filter(|text| !text.is_empty()).cloned());
    parts.extend(output.value.iter().map(|value| format!("=> {value}")));
    parts.extend(output.error.clone());
    parts.extend(output.notes.iter().map(|note| format!("({note})")));
    if parts.is_empty() {
        parts.push("(no output)".to_owned());
    }
    let parts: Vec<&str> = parts.iter().map(|part| part.trim_end()).collect();
    parts.join("\n")
}

#[cfg(test)]
mod tests;
