//! An interpreter that keeps what it was told between calls.

use std::{ffi::OsString, sync::Arc, time::Duration};

use gripper_process::{
    Spec, StartError,
    live::{Keep, Live},
    output::Shown,
};
use gripper_runtime::{Call, ErrorCode, ToolError};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use super::Language;
use crate::bash::{GRACE, Settings, cage::Cage};

/// Bytes of the beginning and of the end of an output that are kept. An answer is shorter.
const KEPT: usize = 256 * 1024;
/// What the code finds: nothing on standard input, both outputs as one so that they stay in order, and requests
/// where it does not look for them.
const PLUMBING: &str = "exec 3<&0 </dev/null 2>&1; exec \"$@\"";

/// How code ended.
#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    pub(super) value: Option<String>,
    pub(super) error: Option<String>,
}

pub(super) struct Interpreter {
    live: Arc<Live>,
    input: Box<dyn AsyncWrite + Send + Unpin>,
    output: Box<dyn AsyncRead + Send + Unpin>,
    mark: String,
    /// What has to be known of its cage.
    pub(super) note: Option<String>,
}

impl Interpreter {
    /// Starts one in the cage that a command would have that a person approved.
    pub(super) async fn start(
        language: Language,
        call: &Call,
        settings: &Settings,
    ) -> Result<Self, ToolError> {
        let mark = uuid::Uuid::now_v7().simple().to_string();
        let (program, flags, driver) = match language {
            Language::Python => ("python3", &["-u", "-c"][..], include_str!("driver.py")),
            Language::Javascript => ("node", &["-e"][..], include_str!("driver.js")),
        };
        let mut args: Vec<OsString> = ["-c", PLUMBING, "sh", program].map(OsString::from).into();
        args.extend(flags.iter().chain([&driver, &mark.as_str()]).map(OsString::from));
        let mut spec = Spec::exec("sh", args, call.cwd());
        spec.env = settings.environment();
        spec.limits = settings.resources;
        let cage = Cage::of(false, call, settings).await?;
        spec.cage = cage.profile;
        let found = gripper_process::find_program(program.as_ref(), call.cwd(), &spec.env);
        let started = found.map_err(StartError::from).and_then(|_| Live::converse(spec, Keep::default()));
        let (live, input, output) = started.map_err(|error| {
            ToolError::new(ErrorCode::Failed, format!("the interpreter was not started: {error}"))
        })?;
        Ok(Self { live, input: Box::new(input), output: Box::new(output), mark, note: cage.note })
    }

    /// Gives it code, and waits for the answer; nothing when it has died.
    pub(super) async fn run(&mut self, code: &str, printed: &mut Printed) -> Option<Answer> {
        self.send(&json!({ "code": code })).await?;
        self.answer(printed).await
    }

    /// Interrupts what runs; nothing when it does not answer.
    pub(super) async fn interrupt(&mut self, limit: Duration, printed: &mut Printed) -> Option<Answer> {
        let answered = async {
            self.send(&Value::Null).await?;
            self.answer(printed).await
        };
        tokio::time::timeout(limit, answered).await.ok().flatten()
    }

    pub(super) async fn end(self) {
        self.live.end(GRACE).await;
    }

    async fn send(&mut self, request: &Value) -> Option<()> {
        self.input.write_all(format!("{request}\n").as_bytes()).await.ok()?;
        self.input.flush().await.ok()
    }

    async fn answer(&mut self, printed: &mut Printed) -> Option<Answer> {
        let mark = format!("\u{1e}{}", self.mark);
        let mut buffer = vec![0; 64 * 1024];
        loop {
            let count = self.output.read(&mut buffer).await.ok().filter(|count| *count > 0)?;
            if let Some(answer) = printed.take(&buffer[..count], mark.as_bytes()) {
                return serde_json::from_slice(&answer).ok();
            }
        }
    }
}

/// What code has printed.
#[derive(Default)]
pub(super) struct Printed {
    bytes: Vec<u8>,
    omitted: u64,
}

impl Printed {
    /// Takes in more; gives the answer once it is there.
    fn take(&mut self, chunk: &[u8], mark: &[u8]) -> Option<Vec<u8>> {
        self.bytes.extend_from_slice(chunk);
        let from = self.bytes.len().saturating_sub(chunk.len() + KEPT);
        let Some(begin) = memchr::memmem::find(&self.bytes[from..], mark).map(|at| from + at) else {
            if self.bytes.len() > 4 * KEPT {
                self.shorten();
            }
            return None;
        };
        let end = begin + memchr::memchr(b'\n', &self.bytes[begin..])?;
        let answer = self.bytes[begin + mark.len()..end].to_vec();
        self.bytes.truncate(begin);
        Some(answer)
    }

    /// Lets go of the middle.
    fn shorten(&mut self) {
        if let Some(over) = self.bytes.len().checked_sub(2 * KEPT).filter(|over| *over > 0) {
            self.bytes.drain(KEPT..KEPT + over);
            self.omitted += over as u64;
        }
    }

    /// The beginning and the end of it.
    pub(super) fn shown(mut self) -> Shown {
        self.shorten();
        let tail = if self.omitted > 0 { self.bytes.split_off(KEPT) } else { Vec::new() };
        Shown { head: self.bytes, tail, omitted: self.omitted, ..Shown::default() }
    }
}
