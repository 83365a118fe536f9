//! How is a child run, bounded and ended?
//!
//! [`run`] starts a program in a session of its own, feeds it, keeps the beginning of what it
//! prints, and comes back when it has ended, its time is up or somebody cancelled. Nothing that it
//! started is left then: not a background job, not a daemon in another session, and not when the
//! future is dropped half way. It knows no tools, no policy and no settings.
//!
//! [`live::Live`] is the same for a child that others look at while it runs. And when we ourselves are
//! killed, the [`watchdog`] ends what is left.
//!
//! How descendants are found is told in `tree`. One kind gets away: a process that has left its
//! parents, its session *and* its environment behind, all before the program itself ended.

#![allow(
    unsafe_code,
    reason = "some system calls have no safe form: between fork and exec, about leases and interfaces"
)]

mod capture;
pub mod confine;
mod find;
mod lease;
pub mod limits;
pub mod live;
pub mod output;
pub mod proxy;
mod tree;
pub mod watchdog;

#[cfg(test)]
mod tests;

use std::{ffi::OsString, io, path::PathBuf, process::Stdio, time::Duration};

use tokio::process::Command;
use tokio_util::sync::CancellationToken;

pub use capture::Captured;
pub use find::{NotFound, find_program};
pub use lease::{Lease, NoLease};
pub use tree::end_all;

use confine::{Cage, Held};
use live::{Keep, Live};
use tree::Tree;

/// Starts a program of the person's, such as a browser, that is theirs to end. Nothing is heard of it.
pub fn launch(program: &str, argument: &str) -> io::Result<()> {
    let mut command = std::process::Command::new(program);
    command.arg(argument).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    std::thread::spawn(move || child.wait());
    Ok(())
}

/// What to run, and its limits.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The program: a path, or a name to be looked up in the `PATH` of `env`.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Where it runs.
    pub cwd: PathBuf,
    /// Its whole environment; nothing else is handed down but a mark by which it is found again.
    pub env: Vec<(OsString, OsString)>,
    /// What it reads from standard input.
    pub stdin: Vec<u8>,
    /// Bytes kept of each output; the rest is counted and dropped.
    pub keep: usize,
    /// How long it may take.
    pub limit: Duration,
    /// How long it has to tidy up, between being asked and being made to end.
    pub grace: Duration,
    /// What it may do; without one, what we may.
    pub cage: Option<confine::Profile>,
    /// How much it may use.
    pub limits: limits::Limits,
}

impl Spec {
    /// A program without a shell, in `cwd`, with the usual limits.
    pub fn exec(program: impl Into<OsString>, args: Vec<OsString>, cwd: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args,
            cwd: cwd.into(),
            env: Vec::new(),
            stdin: Vec::new(),
            keep: 1024 * 1024,
            limit: Duration::from_secs(60),
            grace: Duration::from_millis(500),
            cage: None,
            limits: limits::Limits::default(),
        }
    }

    /// A command line for bash, or for sh where there is no bash.
    pub fn shell(line: impl Into<OsString>, cwd: impl Into<PathBuf>, env: Vec<(OsString, OsString)>) -> Self {
        let cwd = cwd.into();
        let bash = find_program("bash".as_ref(), &cwd, &env).is_ok();
        let shell = if bash { "bash" } else { "sh" };
        // The last is what the shell calls itself in its messages.
        let args = vec!["-c".into(), line.into(), shell.into()];
        Self { env, ..Self::exec(shell, args, cwd) }
    }
}

/// How a child ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal, which was not ours.
    Signalled(i32),
    /// Its time was up.
    TimedOut,
    /// Somebody cancelled.
    Cancelled,
}

/// A child that is gone, and everything it started with it.
#[derive(Debug)]
pub struct Ended {
    /// How it ended.
    pub status: Status,
    /// What it printed.
    pub stdout: Captured,
    /// What it printed on standard error.
    pub stderr: Captured,
    /// How it was confined, if it was to be.
    pub confined: Option<confine::Confined>,
}

/// Why a child did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The program cannot be run.
    #[error(transparent)]
    Program(#[from] NotFound),
    /// The system refused.
    #[error("{program} could not be started: {why}")]
    System {
        /// The program.
        program: String,
        /// The system's reason.
        why: io::Error,
    },
    /// It was to be confined, and that cannot be done; so it was not run.
    #[error("{program} was not run, because it cannot be confined here: {why}")]
    Unconfined {
        /// The program.
        program: String,
        /// What is missing.
        why: String,
    },
}

/// Runs a child to its end.
pub async fn run(spec: Spec, cancel: &CancellationToken) -> Result<Ended, StartError> {
    let (limit, grace) = (spec.limit, spec.grace);
    let keep = Keep { head: spec.keep, tail: 0, file: None, quota: 0 };
    let live = Live::start(spec, keep)?;
    let status = tokio::select! {
        biased;
        () = cancel.cancelled() => Status::Cancelled,
        status = live.wait() => status,
        () = tokio::time::sleep(limit) => Status::TimedOut,
    };
    live.end(grace).await;
    let [stdout, stderr] = [live.output().stdout(), live.output().stderr()]
        .map(|shown| Captured { bytes: shown.head, dropped: shown.omitted });
    Ok(Ended { status, stdout, stderr, confined: live.confined() })
}

/// What has to stay until the tree of a child has ended.
struct Kept {
    cage: Option<Held>,
    group: Option<limits::Group>,
}

/// Starts a child.
fn start(spec: &Spec, input: Stdio) -> Result<(Kept, Tree), StartError> {
    let program = find_program(&spec.program, &spec.cwd, &spec.env)?;
    let name = || program.display().to_string();
    let unconfined = |why| StartError::Unconfined { program: name(), why };
    let cage = spec.cage.as_ref().map(|profile| Cage::prepare(profile, &spec.cwd));
    let cage = cage.transpose().map_err(unconfined)?;
    let mut command = cage.as_ref().map_or_else(|| Command::new(&program), |cage| cage.command(&program));
    command
        .args(&spec.args)
        .env_clear()
        .envs(spec.env.iter().map(|(name, value)| (name, value)))
        .current_dir(&spec.cwd)
        .stdin(input)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    // A parent-death signal is not asked for: it comes when the *thread* that started the child ends,
    // which threads of a pool do long before the process. The watchdog does that work.
    // SAFETY: setsid is one system call; it allocates nothing and takes no lock. A session of its
    // own keeps the child away from our terminal.
    unsafe { command.pre_exec(|| rustix::process::setsid().map(drop).map_err(io::Error::from)) };
    let group = spec.limits.apply(&mut command);
    let group = group.map_err(|why| StartError::System { program: name(), why })?;
    let mut held = cage.map(|cage| cage.enter(&mut command));
    let tree = Tree::start(command).map_err(|why| match held {
        Some(_) => unconfined(why.to_string()),
        None => StartError::System { program: name(), why },
    })?;
    held.as_mut().map_or(Ok(()), Held::started).map_err(unconfined)?;
    Ok((Kept { cage: held, group }, tree))
}
