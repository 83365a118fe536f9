//! `gripper replay`: the calls of a recorded session once more, against the files as they are now.

use std::{collections::HashMap, sync::Arc};

use gripper_agent::{
    message::{Content, Message},
    model::scripted::Scripted,
    session::{self as sessions, Entry, Log, Origin},
    turn::{Agent, AgentEvent, Config, End, Limits, Till},
};
use gripper_runtime::{Deferral, environment::Environment};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::{
    ask::Terminal,
    basis::{Basis, PolicyFlags},
    exit::{Exit, UsageError},
    interrupt, session,
    show::{self, BAD, DIM, GOOD, NOTE},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The session: its id, or the beginning of it; `gripper sessions` lists them
    session: String,
    /// Print JSON Lines
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    policy: PolicyFlags,
}

/// What was recorded.
#[derive(Default)]
struct Recording {
    prompts: Vec<Message>,
    answers: Vec<(String, Vec<Content>)>,
    /// By call.
    results: HashMap<String, (String, bool)>,
}

impl Recording {
    fn of(log: Log) -> Self {
        let mut recording = Self::default();
        // Some servers give all their answers one id, or none.
        let mut ended = true;
        for dated in log.entries {
            ended = ended || ends_answer(&dated.entry);
            match dated.entry {
                Entry::User { message, origin: Origin::Prompt } => recording.prompts.push(message),
                Entry::Block { answer, content, .. } => {
                    let within = !std::mem::replace(&mut ended, false);
                    match recording.answers.last_mut() {
                        Some((last, blocks)) if within && *last == answer => blocks.push(content),
                        _ => recording.answers.push((answer, vec![content])),
                    }
                }
                Entry::Discarded { answer } => {
                    let at = recording.answers.iter().rposition(|(id, _)| *id == answer);
                    at.map(|at| recording.answers.remove(at));
                }
                Entry::Result { content: Content::ToolResult { tool_use_id, content, is_error } } => {
                    recording.results.insert(tool_use_id, (words(&content), is_error));
                }
                _ => {}
            }
        }
        recording
    }
}

fn ends_answer(entry: &Entry) -> bool {
    !matches!(entry, Entry::Block { .. } | Entry::Result { .. })
}

/// What the model read of a result.
fn words(content: &[Content]) -> String {
    content.iter().map(|block| serde_json::to_string(block).unwrap_or_default()).collect()
}

pub(crate) async fn run(args: Args, environment: Environment) -> anyhow::Result<Exit> {
    let none = || UsageError("HOME is not set, so there are no sessions".to_owned());
    let root = environment.config_dir.as_ref().ok_or_else(none)?.join("sessions");
    let log = sessions::read(&root, &args.session).map_err(|error| UsageError(error.to_string()))?;
    log.complaints.iter().for_each(|what| show::warn(what));
    let recording = Recording::of(log);
    let basis = Basis::read(&args.policy, &environment)?;
    let mut interrupt = interrupt::listen()?;
    let terminal = Terminal::open(&args.policy, &environment, false);
    let session = session::open(&environment, basis, |builder| {
        Terminal::wire(terminal.as_ref(), &args.policy, builder)
    })
    .await?;
    session.servers.start();
    let (sender, mut events) = mpsc::channel(256);
    let config = Config {
        model: "scripted".to_owned(),
        fallback: None,
        system: Vec::new(),
        max_tokens: 1,
        thinking: None,
        deferral: Deferral::Never,
        limits: Limits::default(),
        delivery: None,
        till: Till::default(),
    };
    let script = Scripted::of(recording.answers.into_iter().map(|(_, blocks)| blocks));
    let mut agent = Agent::new(session.toolbox.clone(), Arc::new(script), config, Vec::new(), sender);
    let mut report =
        Report { json: args.json, recorded: recording.results, names: HashMap::new(), differ: 0, calls: 0 };
    let stop = CancellationToken::new();
    let mut end = None;
    for prompt in recording.prompts {
        let work = agent.run(prompt, &stop);
        tokio::pin!(work);
        let outcome = loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => report.take(&event)?,
                Ok(()) = interrupt.changed() => stop.cancel(),
                outcome = &mut work => break outcome,
            }
        };
        while let Ok(event) = events.try_recv() {
            report.take(&event)?;
        }
        end = Some(outcome.end);
        if stop.is_cancelled() {
            break;
        }
    }
    session.finish().await;
    report.sum_up()?;
    Ok(match end {
        Some(End::Interrupted) => Exit::Interrupted,
        _ if report.differ > 0 => Exit::Failed,
        _ => Exit::Ok,
    })
}

/// How the results compare.
struct Report {
    json: bool,
    recorded: HashMap<String, (String, bool)>,
    names: HashMap<String, String>,
    calls: usize,
    differ: usize,
}

impl Report {
    fn take(&mut self, event: &AgentEvent) -> anyhow::Result<()> {
        match event {
            AgentEvent::Recorded(Entry::Block { content: Content::ToolUse { id, name, .. }, .. }) => {
                self.names.insert(id.clone(), name.clone());
            }
            AgentEvent::Recorded(Entry::Result {
                content: Content::ToolResult { tool_use_id, content, is_error },
            }) => {
                let now = (words(content), *is_error);
                let verdict = match self.recorded.get(tool_use_id) {
                    None => "unrecorded",
                    Some(before) if *before == now => "same",
                    Some(_) => "differs",
                };
                self.calls += 1;
                self.differ += usize::from(verdict != "same");
                self.line(tool_use_id, verdict, content, *is_error)?;
            }
            AgentEvent::Warning(what) => show::warn(what),
            _ => {}
        }
        Ok(())
    }

    fn line(&self, id: &str, verdict: &str, content: &[Content], is_error: bool) -> anyhow::Result<()> {
        let name = self.names.get(id).map_or("", String::as_str);
        if self.json {
            let line = json!({
                "call_id": id, "tool": name, "verdict": verdict, "is_error": is_error, "content": content,
            });
            return Ok(show::line(&line.to_string())?);
        }
        let style = if verdict == "same" { GOOD } else { NOTE };
        let failed = if is_error { format!(" {BAD}failed{BAD:#}") } else { String::new() };
        let heading = format!("{style}{verdict:<10}{style:#} {DIM}{}{DIM:#}", show::one_line(id, 24));
        show::line(&format!("{heading} {}{failed}", show::safe(name)))?;
        if verdict != "same" {
            let text: String = content
                .iter()
                .filter_map(|block| match block {
                    Content::Text { text } => Some(text.as_str()),
                    _ => None,
                })
                .collect();
            show::line(&format!("    {DIM}{}{DIM:#}", show::one_line(&text, 140)))?;
        }
        Ok(())
    }

    fn sum_up(&self) -> anyhow::Result<()> {
        if !self.json {
            let calls = show::count(self.calls, "call");
            show::line(&format!("{DIM}{calls}, {} with another result than then{DIM:#}", self.differ))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use gripper_agent::{
        message::Content,
        model::{StopReason, Usage},
        session::{Dated, Entry, Log},
    };

    use super::Recording;

    #[test]
    fn answers_of_a_server_that_gives_no_ids_stay_apart() {
        let block = || Entry::Block { answer: String::new(), content: Content::text("x"), broken: None };
        let end = || Entry::AnswerEnd {
            answer: String::new(),
            model: String::new(),
            stop_reason: StopReason::EndTurn,
            usage: Usage::default(),
            cost: None,
        };
        let discarded = || Entry::Discarded { answer: String::new() };
        let entries = [block(), block(), end(), block(), discarded(), block(), end()];
        let mut log = Log::default();
        log.entries.extend(entries.map(|entry| Dated { at: String::new(), entry }));
        let sizes: Vec<usize> = Recording::of(log).answers.iter().map(|(_, blocks)| blocks.len()).collect();
        assert_eq!(sizes, [2, 1]);
    }
}
