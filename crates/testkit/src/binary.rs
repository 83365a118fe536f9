//! Runs the real binary in a workspace, cut off from the person's own files and settings.

use std::{
    ffi::OsStr,
    io::Write,
    path::Path,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

use crate::{Workspace, filters};

/// A run of a binary under test, being prepared.
pub struct Binary<'a> {
    command: Command,
    workspace: &'a Workspace,
    input: Vec<u8>,
}

/// How it went.
#[must_use = "a run that nobody looks at proves nothing"]
pub struct Ran {
    /// The exit code; -1 if it was killed.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl<'a> Binary<'a> {
    /// The program at `path`, in the workspace's project and with its home. Nothing else of the
    /// environment gets through but the search path.
    pub fn new(path: impl AsRef<Path>, workspace: &'a Workspace) -> Self {
        let mut command = Command::new(path.as_ref());
        command.current_dir(workspace.project()).env_clear().env("HOME", workspace.home());
        if let Some(search) = std::env::var_os("PATH") {
            command.env("PATH", search);
        }
        Self { command, workspace, input: Vec::new() }
    }

    /// One argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.command.arg(arg);
        self
    }

    /// Arguments.
    #[must_use]
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.command.args(args);
        self
    }

    /// An environment variable.
    #[must_use]
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// What it reads from standard input.
    #[must_use]
    pub fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    /// The command, for tests that need the running process.
    pub fn into_command(self) -> Command {
        self.command
    }

    /// Runs it to its end. Paths of the workspace and durations are made the same for every run.
    pub fn run(mut self) -> Ran {
        let mut child = self
            .command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut pipe = child.stdin.take().expect("a pipe to it");
        let input = std::mem::take(&mut self.input);
        // A program that does not read its input may close the pipe first; that is its right.
        let writer = std::thread::spawn(move || pipe.write_all(&input).ok());
        let Output { status, stdout, stderr } = child.wait_with_output().expect("the binary ends");
        writer.join().ok();
        let clean = |bytes: Vec<u8>| filters::stable(&String::from_utf8_lossy(&bytes), self.workspace);
        Ran { code: status.code().unwrap_or(-1), stdout: clean(stdout), stderr: clean(stderr) }
    }
}

impl Ran {
    /// Standard output as JSON Lines.
    pub fn json_lines(&self) -> Vec<Value> {
        self.stdout
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line}")))
            .collect()
    }

    /// The results among the JSON Lines, in order.
    pub fn results(&self) -> Vec<Value> {
        self.json_lines().into_iter().filter(|line| line["event"] == "result").collect()
    }

    /// Everything in one text, for snapshots.
    pub fn transcript(&self) -> String {
        format!("exit {}\n--- stdout\n{}--- stderr\n{}", self.code, self.stdout, self.stderr)
    }
}
