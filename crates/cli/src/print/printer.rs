//! What is printed, in each of the three forms.

use std::{io::IsTerminal, sync::Arc};

use gripper_agent::{
    message::Content,
    model::StopReason,
    session::Entry,
    turn::{AgentEvent, End, Outcome},
};
use gripper_runtime::Event;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::{
    args::OutputFormat,
    lines::{Lines, verdict},
    out::Out,
};
use crate::{
    live::{Screen, Stage},
    show::{self, BOLD, DIM},
};

/// Where a session is shown.
pub(super) enum Printer {
    /// For people: everything on a terminal, else only the last answer.
    Text(Option<Box<Screen>>),
    /// One object at the end.
    Json(Lines, Out),
    /// Lines as it happens.
    Stream(Lines, Out),
}

impl Printer {
    pub(super) fn new(format: OutputFormat, lines: Lines, stage: Arc<Stage>) -> Self {
        match format {
            OutputFormat::Text => {
                let live = std::io::stdout().is_terminal();
                Printer::Text(live.then(|| Box::new(Screen::new(true, stage))))
            }
            OutputFormat::Json => Printer::Json(lines, Out::start()),
            OutputFormat::StreamJson => Printer::Stream(lines, Out::start()),
        }
    }

    /// Set when nobody reads any more.
    pub(super) fn gone(&self) -> CancellationToken {
        match self {
            Printer::Text(_) => CancellationToken::new(),
            Printer::Json(_, out) | Printer::Stream(_, out) => out.gone.clone(),
        }
    }

    /// A line that is not about the model, with stream-json.
    pub(super) async fn line(&mut self, value: &Value) {
        if let Printer::Stream(_, out) = self {
            out.line(value).await;
        }
    }

    /// What the session begins with.
    pub(super) async fn begin(&mut self, facts: Value) {
        if let Printer::Stream(lines, out) = self {
            out.line(&lines.system("init", facts)).await;
        }
    }

    pub(super) async fn event(&mut self, event: AgentEvent) -> anyhow::Result<()> {
        match self {
            Printer::Stream(lines, out) => {
                for line in lines.of(event) {
                    out.line(&line).await;
                }
            }
            Printer::Json(..) => {}
            Printer::Text(Some(screen)) => show_event(screen, &event, &[])?,
            Printer::Text(None) => match event {
                AgentEvent::Warning(words) => show::warn(&words),
                AgentEvent::Retrying { error, .. } => show::warn(&format!("{error}; trying again")),
                AgentEvent::Call(Event::Hook { run, .. }) => show::hook(&run),
                _ => {}
            },
        }
        Ok(())
    }

    pub(super) fn is_live(&self) -> bool {
        matches!(self, Printer::Text(Some(_)))
    }

    pub(super) fn tick(&mut self) -> anyhow::Result<()> {
        match self {
            Printer::Text(Some(screen)) => screen.tick(),
            _ => Ok(()),
        }
    }

    /// The end of a piece of work.
    pub(super) async fn result(
        &mut self,
        outcome: &Outcome,
        structured: Option<Value>,
    ) -> anyhow::Result<()> {
        let (_, wrong) = verdict(&outcome.end);
        match self {
            Printer::Json(lines, out) | Printer::Stream(lines, out) => {
                out.line(&lines.result(outcome, structured)).await;
            }
            Printer::Text(screen) => {
                if let Some(screen) = screen {
                    screen.finish()?;
                    screen.say(account(outcome))?;
                } else if let Some(value) = &structured {
                    show::line(&value.to_string())?;
                } else if wrong.is_none() {
                    show::line(&show::safe(&outcome.text))?;
                }
                if let Some(words) = wrong {
                    show::error(&words);
                } else if outcome.end == End::Done(StopReason::MaxTokens) {
                    show::warn("the answer is cut off: it grew longer than the model may answer (maxTokens)");
                }
            }
        }
        Ok(())
    }

    /// The end, when there was no work to speak of.
    pub(super) async fn failed(&mut self, words: &str) {
        if let Printer::Json(lines, out) | Printer::Stream(lines, out) = self {
            out.line(&lines.failed(words)).await;
        }
    }

    /// Waits until everything is written.
    pub(super) async fn close(self, stopped: impl Future<Output = ()>) {
        match self {
            Printer::Text(_) => {}
            Printer::Json(_, out) | Printer::Stream(_, out) => out.close(stopped).await,
        }
    }
}

/// Shows an event to a person. `stand_ins` replace parts of texts.
pub(crate) fn show_event(
    screen: &mut Screen,
    event: &AgentEvent,
    stand_ins: &[(&str, &str)],
) -> anyhow::Result<()> {
    match event {
        AgentEvent::Call(Event::TurnEnd { .. }) => Ok(()),
        AgentEvent::Call(event) => screen.event_with(event, stand_ins),
        AgentEvent::Recorded(Entry::Block { content: Content::Text { text }, .. }) => {
            screen.say(format!("{BOLD}●{BOLD:#} {}", show::safe(text.trim())))
        }
        AgentEvent::Recorded(Entry::Block { content: Content::Thinking { thinking, .. }, .. }) => {
            screen.say(format!("{DIM}… {}{DIM:#}", show::one_line(thinking, 160)))
        }
        AgentEvent::Retrying { error, delay, attempt, of } => {
            let wait = show::duration(*delay);
            screen.finish()?;
            show::warn(&format!("{error}; trying again in {wait} ({attempt} of {of})"));
            Ok(())
        }
        AgentEvent::Warning(words) => {
            screen.finish()?;
            show::warn(words);
            Ok(())
        }
        AgentEvent::Recorded(_) | AgentEvent::Model(_) | AgentEvent::Below { .. } => Ok(()),
    }
}

/// What a piece of work came to.
pub(crate) fn account(outcome: &Outcome) -> String {
    let answers = show::count(outcome.turns, "answer");
    let tokens = outcome.usage.window();
    let cost = if outcome.cost > 0.0 { format!(" · ${:.4}", outcome.cost) } else { String::new() };
    let took = show::duration(outcome.took.0);
    format!("{DIM}{answers} · {tokens} tokens{cost} · {took}{DIM:#}")
}
