//! `gripper sessions`: what was said and done, and what is kept of it.

use std::path::Path;

use chrono::{DateTime, Local};
use clap::Subcommand;
use gripper_agent::{
    message::Content,
    session::{self, Dated, Entry, Origin, SessionError, Summary},
};
use gripper_runtime::environment::Environment;
use serde_json::{Value, json};

use crate::{
    basis::{self, PolicyFlags},
    exit::{Exit, UsageError},
    show::{self, BAD, BOLD, DIM, GOOD, NOTE},
};

/// Lines of a result and characters of an input that are shown.
const RESULT_LINES: usize = 8;
const INPUT_CHARS: usize = 200;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Also those of other projects and of sub-agents
    #[arg(long, global = true)]
    all: bool,
    /// JSON; show gives one object a line
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Action {
    /// List them, which is also done without a word
    List,
    /// Show what was said and done in a session
    Show {
        /// Its id, or as much of the beginning as makes it the only one
        id: String,
    },
    /// Remove sessions with everything stored for them
    Delete {
        /// Their ids, or as much of the beginning of each as makes it the only one
        #[arg(required = true)]
        ids: Vec<String>,
    },
}

pub(crate) fn run(args: &Args, environment: &Environment) -> anyhow::Result<Exit> {
    let config = environment
        .config_dir
        .as_ref()
        .ok_or_else(|| UsageError("HOME is not set, so it is not known where sessions are kept".into()))?;
    let root = config.join("sessions");
    match &args.action {
        None | Some(Action::List) => {
            let project = basis::sources(&PolicyFlags::default(), environment)?.root;
            let mut found = session::list(&root);
            let ours =
                |one: &Summary| one.header.cwd.starts_with(&project) && one.header.agent_type.is_none();
            found.retain(|one| args.all || ours(one));
            list(&found, args, &project)
        }
        Some(Action::Show { id }) => tell(&root, id, args.json),
        Some(Action::Delete { ids }) => {
            // One wrong id, and nothing is removed.
            let ids = ids
                .iter()
                .map(|id| session::find(&root, id))
                .collect::<Result<Vec<_>, _>>()
                .map_err(usage)?;
            for id in &ids {
                session::delete(&root, id).map_err(usage)?;
                if !args.json {
                    show::line(&format!("deleted {id}"))?;
                }
            }
            if args.json {
                show::line(&json!({ "deleted": ids }).to_string())?;
            }
            Ok(Exit::Ok)
        }
    }
}

fn usage(error: SessionError) -> anyhow::Error {
    match error {
        SessionError::Io { .. } => error.into(),
        _ => UsageError(error.to_string()).into(),
    }
}

fn list(found: &[Summary], args: &Args, project: &Path) -> anyhow::Result<Exit> {
    if args.json {
        let sessions = found.iter().map(|one| {
            let mut one_as_json = serde_json::to_value(one)?;
            one_as_json["changed"] = DateTime::<chrono::Utc>::from(one.changed).to_rfc3339().into();
            Ok(one_as_json)
        });
        let sessions: Vec<Value> = sessions.collect::<serde_json::Result<_>>()?;
        show::line(&json!({ "sessions": sessions }).to_string())?;
        return Ok(Exit::Ok);
    }
    if found.is_empty() {
        show::line(&format!(
            "no session in {}; --all lists all there are",
            show::safe(&project.to_string_lossy())
        ))?;
    }
    for one in found {
        let changed = DateTime::<Local>::from(one.changed).format("%Y-%m-%d %H:%M");
        let totals = &one.totals;
        let mut facts = vec![show::count(totals.turns, "turn"), show::count(totals.calls, "call")];
        facts.extend(totals.cost.map(|cost| format!("${cost:.2}")));
        facts.extend(one.header.agent_type.as_ref().map(|kind| format!("sub-agent {kind}")));
        facts.extend(one.header.parent.as_ref().map(|parent| format!("from {}", parent.id)));
        if args.all {
            facts.push(one.header.cwd.to_string_lossy().into_owned());
        }
        let (id, facts) = (show::one_line(&one.header.id, 60), show::one_line(&facts.join(", "), 300));
        show::line(&format!("{BOLD}{id}{BOLD:#} {changed} {DIM}{facts}{DIM:#}"))?;
        show::line(&format!("  {}", show::one_line(&one.title, 100)))?;
    }
    Ok(Exit::Ok)
}

fn tell(root: &Path, id: &str, as_json: bool) -> anyhow::Result<Exit> {
    let log = session::read(root, id).map_err(usage)?;
    log.complaints.iter().for_each(|what| show::warn(what));
    for Dated { at, entry } in &log.entries {
        if as_json {
            let mut line = serde_json::to_value(entry)?;
            line["at"] = at.as_str().into();
            show::line(&line.to_string())?;
        } else if let Some(text) = told(entry) {
            show::line(&text)?;
        }
    }
    Ok(Exit::Ok)
}

/// An entry as a person reads it. Nothing in it can move the cursor.
fn told(entry: &Entry) -> Option<String> {
    let heading = |who: &str, text: String| format!("{BOLD}{who}{BOLD:#}\n{text}\n");
    Some(match entry {
        Entry::Session(header) => {
            let cwd = header.cwd.to_string_lossy();
            let words = format!("{} in {cwd}, {}, {}", header.id, header.model, header.started);
            format!("{DIM}{}{DIM:#}\n", show::one_line(&words, 500))
        }
        Entry::User { message, origin } => {
            let who = match origin {
                Origin::Prompt => "person",
                Origin::Context => "context",
                Origin::Hook => "hook",
            };
            heading(who, message.content.iter().map(block).collect::<Vec<_>>().join("\n"))
        }
        Entry::Block { content: Content::Text { text }, .. } => {
            heading("model", show::safe(text).into_owned())
        }
        Entry::Block { content, broken, .. } => {
            let broken =
                broken.as_ref().map(|why| format!(" {BAD}{}{BAD:#}", show::one_line(why, INPUT_CHARS)));
            block(content) + &broken.unwrap_or_default()
        }
        Entry::Result { content } => block(content) + "\n",
        Entry::Discarded { .. } => format!("{NOTE}the answer broke off and does not count{NOTE:#}\n"),
        Entry::Compacted { summary, messages } => {
            let how = if *summary { "a summary and the last messages" } else { "stubs for old results" };
            let count = show::count(messages.len(), "message");
            format!("{NOTE}the conversation was made shorter: {how}, {count}{NOTE:#}\n")
        }
        Entry::Ended { reason } => format!("{DIM}ended: {}{DIM:#}", show::one_line(reason, 200)),
        Entry::AnswerEnd { .. } | Entry::Unknown => return None,
    })
}

fn block(content: &Content) -> String {
    match content {
        Content::Text { text } => show::safe(text).into_owned(),
        Content::Thinking { thinking, .. } => format!("{DIM}{}{DIM:#}", show::safe(thinking)),
        Content::ToolUse { id, name, input } => {
            let (id, name) = (show::one_line(id, 40), show::one_line(name, 60));
            let input = show::one_line(input.text(), INPUT_CHARS);
            format!("{NOTE}{name}{NOTE:#} {input} {DIM}{id}{DIM:#}")
        }
        Content::ToolResult { tool_use_id, content, is_error } => {
            let (style, mark) = if *is_error { (BAD, '✗') } else { (GOOD, '✓') };
            let text = content.iter().map(block).collect::<Vec<_>>().join("\n");
            let mut lines: Vec<String> =
                text.lines().take(RESULT_LINES).map(|line| format!("    {line}")).collect();
            if let Some(more) = text.lines().count().checked_sub(RESULT_LINES).filter(|more| *more > 0) {
                lines.push(format!("    {DIM}… {}{DIM:#}", show::count(more, "more line")));
            }
            let id = show::one_line(tool_use_id, 40);
            format!("  {style}{mark}{style:#} {DIM}{id}{DIM:#}\n{}", lines.join("\n"))
        }
        Content::Image { .. } | Content::Document { .. } => format!("{DIM}[a picture or document]{DIM:#}"),
        Content::Other(value) => {
            let kind = value["type"].as_str().unwrap_or("unknown");
            format!("{DIM}[a block of the kind {}]{DIM:#}", show::one_line(kind, 60))
        }
    }
}
