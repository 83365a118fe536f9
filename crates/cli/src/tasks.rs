//! `gripper tasks`: the background tasks of sessions that run now, seen from another terminal.
//!
//! Tasks end with their session, so this is never a history: sessions post what they run, and what a dead one
//! left behind is removed.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::Path,
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use anyhow::Context;
use clap::Subcommand;
use gripper_runtime::environment::Environment;
use gripper_tools::tasks::{
    State,
    board::{Posted, Posting, postings},
};
use serde_json::json;

use crate::{
    basis::{self, PolicyFlags},
    exit::{Exit, UsageError},
    show::{self, BAD, BOLD, DIM, GOOD, NOTE},
};

/// So much of the end of an output is shown.
const SHOWN: u64 = 64 * 1024;
/// So long an owner has to end a task that it was asked to end.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Also those of other projects
    #[arg(long, global = true)]
    all: bool,
    /// One JSON object
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Action {
    /// List them, which is also done without a word
    List,
    /// Show the end of a task's output
    Show {
        /// Its name, such as bash_1, or 4711/bash_1 where several sessions have one
        id: String,
    },
    /// Ask the session that owns a task to end it
    Stop {
        /// Its name, such as bash_1, or 4711/bash_1 where several sessions have one
        id: String,
    },
}

pub(crate) fn run(args: Args, environment: &Environment) -> anyhow::Result<Exit> {
    let root = basis::sources(&PolicyFlags::default(), environment)?.root;
    let config = environment.config_dir.as_ref().ok_or_else(|| {
        UsageError("HOME is not set, so it is not known where sessions post their tasks".into())
    })?;
    let look = || {
        let mut found = postings(&config.join("sessions"));
        found.retain(|posting| args.all || posting.root == root);
        found
    };
    match args.action {
        None | Some(Action::List) => list(&look(), args.json),
        Some(Action::Show { id }) => output(find(&look(), &id)?.1, args.json),
        Some(Action::Stop { id }) => stop(look, &id, args.json),
    }
}

/// All tasks with who owns them.
fn all(postings: &[Posting]) -> impl Iterator<Item = (&Posting, &Posted)> {
    postings.iter().flat_map(|posting| posting.tasks.iter().map(move |task| (posting, task)))
}

fn full_name((posting, task): (&Posting, &Posted)) -> String {
    format!("{}/{}", posting.pid, task.id)
}

fn find<'p>(postings: &'p [Posting], id: &str) -> anyhow::Result<(&'p Posting, &'p Posted)> {
    let named = |found: &(&Posting, &Posted)| found.1.id == id || full_name(*found) == id;
    let found: Vec<_> = all(postings).filter(named).collect();
    match found.as_slice() {
        [one] => Ok(*one),
        [] => {
            Err(UsageError(format!("no running session has a task {id}: `gripper tasks` lists them")).into())
        }
        several => {
            let names: Vec<String> = several.iter().map(|found| full_name(*found)).collect();
            Err(UsageError(format!("several sessions have a task {id}: say which, {}", names.join(" or ")))
                .into())
        }
    }
}

fn list(postings: &[Posting], as_json: bool) -> anyhow::Result<Exit> {
    if as_json {
        let tasks: Vec<_> = all(postings)
            .map(|(posting, task)| json!({"owner": posting.pid, "project": posting.root, "task": task}))
            .collect();
        show::line(&json!({ "tasks": tasks }).to_string())?;
        return Ok(Exit::Ok);
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    for found in all(postings) {
        let task = found.1;
        let style = match task.status {
            State::Running => NOTE,
            State::Completed => GOOD,
            State::Failed | State::Killed => BAD,
        };
        let state = match task.exit_code {
            Some(code @ 1..) => format!("{} ({code})", task.status.name()),
            _ => task.status.name().to_owned(),
        };
        let ago = show::duration(Duration::from_secs(now.saturating_sub(task.started)));
        let what = show::one_line(&task.command, 80);
        let name = full_name(found);
        show::line(&format!(
            "{BOLD}{name}{BOLD:#}  {style}{state}{style:#}  {DIM}begun {ago} ago{DIM:#}  {what}"
        ))?;
    }
    if all(postings).next().is_none() {
        show::line("no running session has background tasks here")?;
    }
    Ok(Exit::Ok)
}

fn output(task: &Posted, as_json: bool) -> anyhow::Result<Exit> {
    let text = match &task.output {
        Some(file) if file.exists() => {
            end_of(file).with_context(|| format!("cannot read {}", file.display()))?
        }
        _ => String::new(),
    };
    if as_json {
        show::line(&json!({ "task": task, "output": text }).to_string())?;
        return Ok(Exit::Ok);
    }
    show::line(&show::safe(if text.is_empty() { "no output yet" } else { text.trim_end() }))?;
    if let Some(file) = task.output.as_ref().filter(|file| file.exists()) {
        show::line(&format!("{DIM}({}, all of it in {}){DIM:#}", task.status.name(), file.display()))?;
    }
    Ok(Exit::Ok)
}

fn end_of(path: &Path) -> std::io::Result<String> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(SHOWN)))?;
    let mut bytes = Vec::new();
    file.take(SHOWN).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The owner ends it, as only that knows all that belongs to it.
fn stop(look: impl Fn() -> Vec<Posting>, id: &str, as_json: bool) -> anyhow::Result<Exit> {
    let postings = look();
    let found = find(&postings, id)?;
    let (name, state) = (full_name(found), found.1.status);
    if state != State::Running {
        return Err(UsageError(format!("{name} has already ended: it is {}", state.name())).into());
    }
    found.0.ask_to_stop(&found.1.id).with_context(|| format!("the owner of {name} cannot be asked"))?;
    let begin = Instant::now();
    loop {
        // An owner that is gone has taken its tasks along.
        let now = look();
        let state = find(&now, &name).map_or(State::Killed, |(_, task)| task.status);
        if state != State::Running {
            show::line(&match as_json {
                true => json!({ "task": name, "status": state }).to_string(),
                false => format!("{name} was stopped"),
            })?;
            return Ok(Exit::Ok);
        }
        if begin.elapsed() > PATIENCE {
            show::error(&format!("{name} still runs: its session has not answered within {PATIENCE:?}"));
            return Ok(Exit::Failed);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}
