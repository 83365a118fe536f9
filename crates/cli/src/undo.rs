//! `gripper undo`: takes back what calls changed, and nothing else.

use std::path::Path;

use chrono::{DateTime, Local};
use gripper_runtime::{
    environment::Environment,
    files::{
        Undone,
        history::{Back, PastTurn, Target},
    },
};
use gripper_tools::text;
use serde_json::{Value, json};

use crate::{
    basis::{self, PolicyFlags},
    exit::{Exit, UsageError},
    session,
    show::{self, BAD, BOLD, DIM, GOOD, NOTE},
};

/// Lines of a difference that are shown.
const DIFF_LINES: usize = 40;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Back to how things were before this turn, all later ones included
    #[arg(long, value_name = "TURN")]
    to: Option<String>,
    /// List the turns that changed files here
    #[arg(long, conflicts_with = "to")]
    list: bool,
    /// Say what would happen and change nothing
    #[arg(long)]
    dry_run: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, environment: &Environment) -> anyhow::Result<Exit> {
    let sources = basis::sources(&PolicyFlags::default(), environment)?;
    let root = sources.root.clone();
    let config = environment.config_dir.as_ref().ok_or_else(|| {
        UsageError("HOME is not set, so there is no history: set it as it was for the calls".into())
    })?;
    let id = uuid::Uuid::now_v7().to_string();
    let files = session::files(config, &id, sources);
    let Some(history) = files.history() else { return Ok(Exit::Ok) };
    if args.list {
        return list(&history.turns(), args.json, &root);
    }
    let target = args.to.clone().map_or(Target::Newest, Target::Before);
    let plan = history.plan(&target).map_err(UsageError)?;
    let turns: Vec<PastTurn> = plan.turns.clone();
    let undone = if args.dry_run {
        plan.steps
            .into_iter()
            .map(|step| Undone { path: step.path, back: step.back, failure: None })
            .collect()
    } else {
        files.undo(plan)
    };
    if args.json {
        let files: Vec<Value> = undone.iter().map(|undone| as_json(undone, &root)).collect();
        let turns: Vec<&str> = turns.iter().map(|past| &*past.turn).collect();
        show::line(&json!({ "turns": turns, "files": files, "dry_run": args.dry_run }).to_string())?;
    } else {
        tell(&turns, &undone, args.dry_run, &root)?;
    }
    let whole = undone.iter().all(|undone| matches!(outcome(undone).0, "restored" | "removed" | "unchanged"));
    Ok(if whole { Exit::Ok } else { Exit::Failed })
}

fn list(turns: &[PastTurn], json: bool, root: &Path) -> anyhow::Result<Exit> {
    if json {
        let turns: Vec<Value> = turns
            .iter()
            .map(|past| {
                json!({
                    "turn": past.turn, "session": past.session, "at": past.at, "is_undo": past.is_undo,
                    "undone": past.undone, "files": past.paths,
                })
            })
            .collect();
        show::line(&json!({ "turns": turns }).to_string())?;
        return Ok(Exit::Ok);
    }
    if turns.is_empty() {
        show::line("no turn has changed files in this project")?;
    }
    for past in turns {
        let state = match (past.is_undo, past.undone) {
            (_, true) => " (taken back)",
            (true, false) => " (an undo)",
            (false, false) => "",
        };
        show::line(&format!("{BOLD}{}{BOLD:#} {DIM}{}{state}{DIM:#}", past.turn, when(past.at)))?;
        for path in &past.paths {
            show::line(&format!("  {}", shown(path, root)))?;
        }
    }
    Ok(Exit::Ok)
}

fn tell(turns: &[PastTurn], undone: &[Undone], dry_run: bool, root: &Path) -> anyhow::Result<()> {
    let what = show::count(turns.len(), "turn");
    let done = undone.iter().any(|file| matches!(outcome(file).0, "restored" | "removed"));
    let verb = match (dry_run, done) {
        (true, _) => "would take back",
        (false, true) => "took back",
        (false, false) => "changed nothing for",
    };
    let from = turns.last().map(|past| when(past.at)).unwrap_or_default();
    show::line(&format!("{verb} {what} since {from}"))?;
    for file in undone {
        let (word, why) = outcome(file);
        let style = match word {
            "restored" | "removed" => GOOD,
            "unchanged" => DIM,
            _ => BAD,
        };
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        show::line(&format!("  {style}{word:<10}{style:#} {}{}", shown(&file.path, root), show::safe(&why)))?;
        if let Back::Conflict { left: Some(left), now: Some(now) } = &file.back {
            for line in text::unified_bytes(left, now, DIFF_LINES).lines() {
                show::line(&format!("    {NOTE}{}{NOTE:#}", show::safe(line)))?;
            }
        }
    }
    Ok(())
}

/// What became of a file in one word, and more words where they are needed.
fn outcome(undone: &Undone) -> (&'static str, Option<String>) {
    if let Some(failure) = &undone.failure {
        return ("failed", Some(failure.to_string()));
    }
    let words = |text: &str| Some(text.to_owned());
    match &undone.back {
        Back::Restore { .. } | Back::MakeFolder => ("restored", None),
        Back::Remove { .. } | Back::RemoveFolder => ("removed", None),
        Back::Nothing => ("unchanged", None),
        Back::Conflict { now: None, .. } => ("conflict", words("someone else has removed it since")),
        Back::Conflict { left: None, .. } => {
            ("conflict", words("someone else has made or changed it since; left as it is"))
        }
        Back::Conflict { .. } => ("conflict", words("someone else has changed it since; left as it is")),
        Back::Lost => ("lost", words("the old content is not in the history any more")),
        Back::Unreadable(why) => ("unreadable", Some(why.clone())),
    }
}

fn as_json(undone: &Undone, root: &Path) -> Value {
    let (outcome, why) = outcome(undone);
    json!({ "path": shown(&undone.path, root), "outcome": outcome, "why": why })
}

fn shown(path: &Path, root: &Path) -> String {
    let path = path.strip_prefix(root).unwrap_or(path);
    show::safe(&path.to_string_lossy()).into_owned()
}

fn when(milliseconds: u64) -> String {
    let time = i64::try_from(milliseconds).ok().and_then(DateTime::from_timestamp_millis);
    time.map(|time| time.with_timezone(&Local).format("%Y-%m-%d %H:%M:%S").to_string()).unwrap_or_default()
}
