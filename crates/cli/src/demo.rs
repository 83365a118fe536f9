//! `gripper demo`: one scripted turn on a temporary project. No key, no network.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufWriter, Write},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use gripper_runtime::{
    CallRequest, Event, audit,
    environment::Environment,
    hooks::{Answer, BeforeCall, HookSet},
};
use serde_json::{Value, json};

use crate::{
    basis::{Basis, PolicyFlags},
    exit::Exit,
    session,
    show::{self, BAD, BOLD, DIM, GOOD, NOTE},
};

/// Lines of each generated log: enough that reading near the end takes a visible moment.
const LOG_LINES: usize = 400_000;
/// Columns of the timeline.
const TIMELINE: usize = 48;

#[derive(clap::Args)]
pub(crate) struct Args {}

pub(crate) async fn run(_args: Args, environment: Environment) -> anyhow::Result<Exit> {
    let folder = tempfile::Builder::new()
        .prefix("gripper-demo-")
        .tempdir()
        .context("cannot make a temporary folder")?;
    let root = folder.path().canonicalize()?;
    let project = root.join("project");
    lay_out(&project)?;
    show::line(&format!(
        "{BOLD}gripper demo{BOLD:#} {DIM}a turn of ten calls on a temporary project{DIM:#}\n"
    ))?;

    // The person's own settings would change the story.
    let environment = Environment {
        config_dir: Some(root.join("home")),
        claude_dir: None,
        cwd: Some(project.clone()),
        ..environment
    };
    let basis = Basis::read(&PolicyFlags::default(), &environment)?;
    let hooks = HookSet::new().before("keep-private", &["Read"], keep_private);
    let session = session::open(&environment, basis, |builder| builder.hooks(Arc::new(hooks))).await?;

    let start = Instant::now();
    let turn = session.toolbox.turn();
    for call in script(&project) {
        turn.submit(call);
    }
    turn.close();
    let mut spans: BTreeMap<usize, Span> = BTreeMap::new();
    let mut order: Vec<Arc<str>> = Vec::new();
    let mut summaries: BTreeMap<Arc<str>, String> = BTreeMap::new();
    while let Some(event) = turn.next().await {
        let position = |order: &[Arc<str>], id: &Arc<str>| order.iter().position(|known| known == id);
        match &event {
            Event::Queued { call_id, .. } => order.push(call_id.clone()),
            Event::Started { call_id, summary } => {
                summaries.insert(call_id.clone(), summary.clone());
                if let Some(at) = position(&order, call_id) {
                    let now = start.elapsed();
                    spans.insert(at, Span { call_id: call_id.clone(), from: now, to: now });
                }
            }
            Event::Finished { call_id, duration, .. } => {
                if let Some(span) = position(&order, call_id).and_then(|at| spans.get_mut(&at)) {
                    // Events are seen a little late; the duration was measured where it happened.
                    span.to = start.elapsed();
                    span.from = span.to.saturating_sub(*duration);
                }
            }
            Event::Result(result) => {
                let shown = show::result(result, summaries.get(&result.call_id).map(String::as_str));
                show::line(&shown.replace(&*root.to_string_lossy(), "~demo"))?;
            }
            _ => {}
        }
    }
    timeline(&spans)?;
    session.finish().await;
    account(&root)?;
    Ok(Exit::Ok)
}

/// When a call ran.
struct Span {
    call_id: Arc<str>,
    from: Duration,
    to: Duration,
}

/// A small project with two long logs.
fn lay_out(project: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(project.join("src"))?;
    fs::create_dir_all(project.join("notes"))?;
    fs::write(project.join("README.md"), "# Greeter\n\nSays hello.\n")?;
    fs::write(project.join("src/main.rs"), "fn main() {\n    println!(\"hello\");\n}\n")?;
    fs::write(project.join("notes/private.txt"), "not for models\n")?;
    for name in ["server.log", "worker.log"] {
        let mut file = BufWriter::new(fs::File::create(project.join(name))?);
        for line in 1..=LOG_LINES {
            writeln!(
                file,
                "{line:>8} info request served without trouble, nothing to see, please move along"
            )?;
        }
        file.flush()?;
    }
    Ok(())
}

/// The in-process hook of the demo.
fn keep_private(call: BeforeCall<'_>) -> Answer {
    match call.input["file_path"].as_str() {
        Some(path) if path.contains("/notes/private") => Answer::Block("private notes stay private".into()),
        _ => Answer::Pass,
    }
}

fn script(project: &Path) -> Vec<CallRequest> {
    let read = |name: &str| json!({ "file_path": project.join(name) });
    let tail = |name: &str| json!({ "file_path": project.join(name), "offset": LOG_LINES - 1, "limit": 2 });
    let todos: Value = json!({ "todos": [
        { "content": "Read the project", "status": "completed" },
        { "content": "Greet in two languages", "status": "in_progress", "activeForm": "Greeting in two languages" },
        { "content": "Run the tests", "status": "pending" },
    ]});
    vec![
        CallRequest::new("c1", "Read", tail("server.log")),
        CallRequest::new("c2", "Read", tail("worker.log")),
        CallRequest::new("c3", "Read", read("src/main.rs")),
        CallRequest::new("c4", "Read", read("README.md")),
        CallRequest::new("c5", "TodoWrite", todos),
        CallRequest::new("c6", "ToolSearch", json!({ "query": "wait a moment" })),
        CallRequest::new("c7", "Read", json!({ "file_path": "/etc/hostname" })),
        CallRequest::new("c8", "Read", read("notes/private.txt")),
        CallRequest::new("c9", "Read", json!({ "path": "src/main.rs", "offset": 0, "limit": "many" })),
        CallRequest::new("c10", "Raed", read("README.md")),
    ]
}

/// Who ran beside whom.
fn timeline(spans: &BTreeMap<usize, Span>) -> anyhow::Result<()> {
    let end = spans.values().map(|span| span.to).max().unwrap_or_default().as_secs_f64().max(1e-6);
    show::line(&format!("\n{BOLD}who ran beside whom{BOLD:#} {DIM}results came out in call order{DIM:#}"))?;
    for span in spans.values() {
        let column = |moment: Duration| ((moment.as_secs_f64() / end) * TIMELINE as f64) as usize;
        let from = column(span.from).min(TIMELINE - 1);
        let width = (column(span.to).max(from + 1) - from).min(TIMELINE - from);
        show::line(&format!(
            "{:>4} {}{GOOD}{}{GOOD:#}{} {DIM}{}{DIM:#}",
            span.call_id,
            " ".repeat(from),
            "█".repeat(width),
            " ".repeat(TIMELINE - from - width),
            show::duration(span.to.saturating_sub(span.from)),
        ))?;
    }
    Ok(())
}

/// What is left behind: the audit log.
fn account(root: &Path) -> anyhow::Result<()> {
    let folder = root.join("home").join("audit");
    show::line(&format!("\n{BOLD}what was decided{BOLD:#} {DIM}from the audit log{DIM:#}"))?;
    let log = fs::read_to_string(folder.join("audit.jsonl")).unwrap_or_default();
    for line in log.lines() {
        let record: Value = serde_json::from_str(line)?;
        if record["kind"] != "decision" {
            continue;
        }
        let behavior = record["behavior"].as_str().unwrap_or_default();
        let style = match behavior {
            "allow" => GOOD,
            "ask" => NOTE,
            _ => BAD,
        };
        show::line(&format!(
            "{:>4} {:<10} {style}{behavior:<5}{style:#} {}",
            record["call_id"].as_str().unwrap_or_default(),
            record["tool"].as_str().unwrap_or_default(),
            show::safe(record["reason"].as_str().unwrap_or_default())
                .replace(&*root.to_string_lossy(), "~demo"),
        ))?;
    }
    let report = audit::verify(&folder).map_err(|damage| anyhow::anyhow!("{damage}"))?;
    show::line(&format!(
        "     {GOOD}intact{GOOD:#} {DIM}{} lines, each sealed with the hash of the one before{DIM:#}",
        report.lines
    ))?;
    Ok(())
}
