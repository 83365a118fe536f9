//! `gripper demo`: a whole session of an agent on a temporary project. The model plays a script; tools, permissions,
//! the transcript and the audit log are real. No key, no network.

use std::{
    collections::BTreeMap,
    fs,
    io::{BufWriter, IsTerminal, Write},
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Context;
use gripper_agent::{
    message::Message,
    model::scripted::Scripted,
    session::{Header, Transcript},
    turn::{Agent, AgentEvent, Config, Limits, Till},
};
use gripper_runtime::{
    Deferral, Event,
    approve::{Answer, Approver, Ask, Reply},
    audit,
    environment::Environment,
};
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    basis::{Basis, PolicyFlags},
    exit::Exit,
    live::Screen,
    print, session,
    show::{self, BAD, BOLD, DIM, GOOD, NOTE},
};

/// What the model says.
const SCRIPT: &str = include_str!("script.jsonl");
const PROMPT: &str = "The greeting is wrong. Find out why, mend it, run the tests and publish it.";
/// Milliseconds before each block of an answer, where a person watches.
const PACE: u64 = 250;
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
    show::line(&format!("{BOLD}gripper demo{BOLD:#} {DIM}an agent at work in a temporary project{DIM:#}\n"))?;
    show::line(&format!("{BOLD}>{BOLD:#} {PROMPT}\n"))?;

    // The person's own settings would change the story.
    let environment = Environment {
        config_dir: Some(root.join("home")),
        claude_dir: None,
        cwd: Some(project.clone()),
        ..environment
    };
    let flags = PolicyFlags::ruled(["Edit"], ["Bash(git push *)"]);
    let basis = Basis::read(&flags, &environment)?;
    let session = session::open(&environment, basis, |builder| builder.approver(Arc::new(Nodding))).await?;
    let toolbox = session.toolbox.clone();
    let header = Header::new(toolbox.session(), &project, "scripted");
    let transcript = Transcript::create(&root.join("home/sessions"), &header)?;

    let mut view = View::new(&root);
    let (sender, mut events) = mpsc::channel(256);
    let pace = if std::io::stdout().is_terminal() { PACE } else { 0 };
    let script = SCRIPT.replace("$PROJECT", &project.to_string_lossy()).replace("$DELAY", &pace.to_string());
    let script = Scripted::parse(&script).map_err(anyhow::Error::msg)?;
    let mut agent =
        Agent::new(toolbox, Arc::new(script), config(), Vec::new(), sender).recorded(Some(transcript));
    let stop = CancellationToken::new();
    let work = agent.run(Message::user(PROMPT), &stop);
    tokio::pin!(work);
    let mut tick = tokio::time::interval(Duration::from_millis(100));
    let outcome = loop {
        tokio::select! {
            biased;
            Some(event) = events.recv() => view.take(event)?,
            outcome = &mut work => break outcome,
            _ = tick.tick(), if view.screen.is_live() => view.screen.tick()?,
        }
    };
    while let Ok(event) = events.try_recv() {
        view.take(event)?;
    }
    view.screen.finish()?;
    show::line(&format!("\n{}", print::account(&outcome)))?;
    view.timeline()?;
    session.finish().await;
    account(&root)?;
    Ok(Exit::Ok)
}

fn config() -> Config {
    Config {
        model: "scripted".to_owned(),
        fallback: None,
        system: Vec::new(),
        max_tokens: 1_024,
        thinking: None,
        deferral: Deferral::default(),
        limits: Limits::default(),
        delivery: None,
        till: Till::default(),
    }
}

/// A person who reads the question and says yes, also to the same command later.
struct Nodding;

impl Approver for Nodding {
    fn push(&self, ask: Ask, reply: Reply) {
        let offer = ask.offer();
        let rule = offer.as_ref().and_then(|grant| grant.rules().next()).map(ToString::to_string);
        let lasting = rule.map(|rule| format!(", and to {rule} for this session")).unwrap_or_default();
        let reason = show::safe(&ask.decision.reason).into_owned();
        show::line(&format!(
            "{NOTE}?{NOTE:#} {BOLD}{}{BOLD:#} {DIM}{reason}{DIM:#}",
            show::one_line(&ask.summary, 80)
        ))
        .ok();
        show::line(&format!("  {GOOD}yes{GOOD:#}{DIM}, says the person{lasting}{DIM:#}")).ok();
        reply.answer(Answer::granting(offer));
    }

    fn remove(&self, _id: &str) {}
}

/// When a call ran.
struct Span {
    from: Duration,
    to: Duration,
}

/// What is shown while it happens, and what is remembered for later.
struct View {
    screen: Screen,
    root: String,
    start: Instant,
    /// The calls of the first answer, in the order they were made.
    first: Vec<Arc<str>>,
    spans: BTreeMap<usize, Span>,
    ended: bool,
}

impl View {
    fn new(root: &Path) -> Self {
        Self {
            screen: Screen::new(true, Arc::default()),
            root: root.to_string_lossy().into_owned(),
            start: Instant::now(),
            first: Vec::new(),
            spans: BTreeMap::new(),
            ended: false,
        }
    }

    fn take(&mut self, event: AgentEvent) -> anyhow::Result<()> {
        if let AgentEvent::Call(event) = &event {
            self.note(event);
        }
        print::show_event(&mut self.screen, &event, &[(&self.root, "~demo")])
    }

    fn note(&mut self, event: &Event) {
        if self.ended {
            return;
        }
        let position = |id: &Arc<str>| self.first.iter().position(|known| known == id);
        match event {
            Event::Queued { call_id, .. } => self.first.push(call_id.clone()),
            Event::Finished { call_id, duration, .. } => {
                if let Some(at) = position(call_id) {
                    // Events are seen a little late; the duration was measured where it happened.
                    let to = self.start.elapsed();
                    self.spans.insert(at, Span { from: to.saturating_sub(*duration), to });
                }
            }
            Event::TurnEnd { .. } => self.ended = true,
            _ => {}
        }
    }

    /// Who ran beside whom.
    fn timeline(&self) -> anyhow::Result<()> {
        let begin = self.spans.values().map(|span| span.from).min().unwrap_or_default();
        let end = self.spans.values().map(|span| span.to).max().unwrap_or_default();
        let whole = (end - begin).as_secs_f64().max(1e-6);
        show::line(&format!(
            "\n{BOLD}who ran beside whom{BOLD:#} {DIM}in the first answer; results came out in call order{DIM:#}"
        ))?;
        for (at, span) in &self.spans {
            let column = |moment: Duration| {
                ((moment.saturating_sub(begin).as_secs_f64() / whole) * TIMELINE as f64) as usize
            };
            let from = column(span.from).min(TIMELINE - 1);
            let width = (column(span.to).max(from + 1) - from).min(TIMELINE - from);
            show::line(&format!(
                "{:>4} {}{GOOD}{}{GOOD:#}{} {DIM}{}{DIM:#}",
                self.first.get(*at).map_or("", |id| id),
                " ".repeat(from),
                "█".repeat(width),
                " ".repeat(TIMELINE - from - width),
                show::duration(span.to.saturating_sub(span.from)),
            ))?;
        }
        Ok(())
    }
}

/// A small project with two long logs.
fn lay_out(project: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(project)?;
    fs::write(project.join("greet.sh"), "#!/bin/sh\necho \"helo, $1\"\n")?;
    fs::write(
        project.join("test.sh"),
        "#!/bin/sh\n[ \"$(sh greet.sh Ada)\" = \"hello, Ada\" ] || { echo \"FAIL greet\"; exit 1; }\necho \"ok greet\"\n",
    )?;
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
