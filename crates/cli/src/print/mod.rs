//! `gripper -p`: an agent without a screen, for scripts and for programs that wrap it.

mod approver;
mod args;
mod around;
mod commands;
mod control;
mod lines;
mod out;
mod printer;
mod prompt;
mod signals;
mod start;

use std::{sync::Arc, time::Duration};

use gripper_agent::{
    message::Message,
    structured_output::Delivery,
    turn::{Agent, AgentEvent, End, Outcome},
};
use gripper_runtime::{
    Toolbox,
    environment::Environment,
    permissions::{Mode, Policy},
};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(crate) use args::Args;
use args::{InputFormat, OutputFormat};
use commands::Commands;
use control::{Incoming, Remote};
use lines::Lines;
use printer::Printer;
pub(crate) use printer::{account, show_event};
use signals::Signals;

use crate::{
    exit::{Exit, UsageError},
    last_line, show,
};

pub(crate) async fn run(args: Args, environment: Environment) -> anyhow::Result<Exit> {
    let outcome = work(args, environment).await;
    // Whoever reads JSON gets to know what went wrong there as well.
    if let Err(error) = &outcome {
        last_line(&format!("{error:#}"));
    }
    outcome
}

async fn work(args: Args, environment: Environment) -> anyhow::Result<Exit> {
    let streamed = args.form.input_format == InputFormat::StreamJson;
    if streamed && args.form.output_format != OutputFormat::StreamJson {
        let words =
            "--input-format stream-json needs --output-format stream-json, as answers come one by one";
        return Err(UsageError(words.to_owned()).into());
    }
    if let Some(second) = args.second_prompt() {
        let words = format!(
            "two prompts were given, the second is {second:?}: put what belongs together into quotes"
        );
        return Err(UsageError(words).into());
    }
    let mut signals = Signals::listen()?;
    let given = args.prompt().map(str::to_owned);
    let first = match streamed {
        true => None,
        false => {
            // Whoever writes to the pipe may never end.
            let reading = tokio::task::spawn_blocking(move || prompt::read(given.as_deref()));
            tokio::select! {
                read = reading => Some(read??),
                () = signals.wait() => return Ok(stopped(&signals)),
            }
        }
    };
    let started = tokio::select! {
        started = start::open(&args, &environment) => started?,
        () = signals.wait() => return Ok(stopped(&signals)),
    };
    let mut conversation = Conversation {
        incoming: streamed.then(control::listen),
        remote: started.remote,
        questions: started.questions,
        events: started.events,
        printer: started.printer,
        signals,
        delivery: started.delivery,
        toolbox: started.agent.toolbox.clone(),
        commands: started.commands,
        prompts: first.into_iter().collect(),
        stop: CancellationToken::new(),
    };
    conversation.printer.begin(started.facts).await;
    let mut agent = started.agent;
    let exit = conversation.hold(&mut agent).await;
    drop(agent);
    started.crew.close().await;
    // The host was lent to the agent, which is gone.
    if let Some(around) = Arc::into_inner(started.around) {
        around.into_session().finish().await;
    }
    let gone = conversation.printer.gone();
    conversation.printer.close(conversation.signals.wait()).await;
    if let Some(signal) = conversation.signals.came() {
        return exit.map(|_| signal);
    }
    // What was printed did not arrive.
    if gone.is_cancelled() { exit.map(|_| Exit::Failed) } else { exit }
}

const STOPPED: &str = "interrupted before the work began";

/// A signal came before the work began.
fn stopped(signals: &Signals) -> Exit {
    last_line(STOPPED);
    signals.came().unwrap_or(Exit::Interrupted)
}

/// The last line for whoever reads JSON, when there was no work to speak of. Looks at the arguments as they are, as
/// they may be what is wrong.
pub(crate) fn last_line_for(arguments: &[String], words: &str) {
    let wanted = |value: &str| matches!(value, "json" | "stream-json");
    let told = arguments.iter().enumerate().any(|(at, word)| match word.strip_prefix("--output-format") {
        Some("") => arguments.get(at + 1).is_some_and(|value| wanted(value)),
        Some(value) => value.strip_prefix('=').is_some_and(wanted),
        None => false,
    });
    if told {
        // Nobody may be there to read it.
        show::line(&Lines::new("", false, false).failed(words).to_string()).ok();
    }
}

/// A conversation with whoever is at standard input.
struct Conversation {
    incoming: Option<mpsc::Receiver<Incoming>>,
    remote: Option<Arc<Remote>>,
    questions: mpsc::UnboundedReceiver<Value>,
    events: mpsc::Receiver<AgentEvent>,
    printer: Printer,
    signals: Signals,
    delivery: Option<Delivery>,
    toolbox: Arc<Toolbox>,
    commands: Commands,
    prompts: std::collections::VecDeque<Message>,
    /// Stops the present piece of work.
    stop: CancellationToken,
}

/// What keeps a conversation going.
enum Next {
    Event(AgentEvent),
    Question(Value),
    Incoming(Option<Incoming>),
    Signal,
    Gone,
    Tick,
    Done(Box<Outcome>),
}

impl Conversation {
    /// Works on prompts until there are no more.
    async fn hold(&mut self, agent: &mut Agent) -> anyhow::Result<Exit> {
        let mut exit = None;
        loop {
            while self.prompts.is_empty() || self.signals.came().is_some() {
                if self.incoming.is_none() || self.signals.came().is_some() {
                    return match (exit, self.signals.came()) {
                        (Some(_), Some(signal)) => Ok(signal),
                        (Some(exit), None) => Ok(exit),
                        (None, Some(signal)) => {
                            self.printer.failed(STOPPED).await;
                            Ok(signal)
                        }
                        (None, None) => Err(UsageError("no prompt came on standard input".to_owned()).into()),
                    };
                }
                let gone = self.printer.gone();
                let next = tokio::select! {
                    incoming = next_incoming(&mut self.incoming) => Next::Incoming(incoming),
                    // Of agents in the background, or that one needs no answer any more.
                    Some(question) = self.questions.recv() => Next::Question(question),
                    () = self.signals.wait() => Next::Signal,
                    () = gone.cancelled() => return Ok(Exit::Failed),
                };
                self.take(next, None).await?;
            }
            let Some(prompt) = self.prompts.pop_front() else { continue };
            let meant = tokio::select! {
                meant = self.commands.meant(prompt) => meant,
                () = self.signals.wait() => continue,
            };
            let prompt = match meant {
                Ok(prompt) => prompt,
                // Whoever sends several prompts goes on with the next.
                Err((so, why)) => {
                    self.printer.failed(&why).await;
                    show::error(&why);
                    exit = Some(so);
                    continue;
                }
            };
            let outcome = self.work_on(agent, prompt).await?;
            let structured = self.delivery.as_ref().and_then(Delivery::value);
            self.printer.result(&outcome, structured).await?;
            exit = Some(exit_of(&outcome.end));
        }
    }

    async fn work_on(&mut self, agent: &mut Agent, prompt: Message) -> anyhow::Result<Outcome> {
        self.stop = CancellationToken::new();
        let stop = self.stop.clone();
        let gone = self.printer.gone();
        let mut tick = tokio::time::interval(Duration::from_millis(100));
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let work = agent.run(prompt, &stop);
        tokio::pin!(work);
        let (mut told, mut alone) = (false, false);
        loop {
            let next = tokio::select! {
                biased;
                Some(event) = self.events.recv() => Next::Event(event),
                Some(question) = self.questions.recv() => Next::Question(question),
                outcome = &mut work => Next::Done(Box::new(outcome)),
                () = self.signals.wait(), if !told => {
                    told = true;
                    Next::Signal
                }
                () = gone.cancelled(), if !alone => {
                    alone = true;
                    Next::Gone
                }
                incoming = next_incoming(&mut self.incoming) => Next::Incoming(incoming),
                _ = tick.tick(), if self.printer.is_live() => Next::Tick,
            };
            if let Next::Done(outcome) = next {
                while let Ok(event) = self.events.try_recv() {
                    self.printer.event(event).await?;
                }
                return Ok(*outcome);
            }
            self.take(next, Some(&stop)).await?;
        }
    }

    async fn take(&mut self, next: Next, stop: Option<&CancellationToken>) -> anyhow::Result<()> {
        match next {
            Next::Event(event) => self.printer.event(event).await?,
            Next::Question(question) => self.printer.line(&question).await,
            Next::Incoming(None) => {
                self.incoming = None;
                self.remote.iter().for_each(|remote| remote.hang_up());
            }
            Next::Incoming(Some(Incoming::Prompt(message))) => self.prompts.push_back(message),
            Next::Incoming(Some(Incoming::Request { id, request })) => {
                let outcome = self.request(&request);
                self.printer.line(&control::response(&id, outcome)).await;
            }
            Next::Incoming(Some(Incoming::Response(response))) => {
                if self.remote.as_ref().is_some_and(|remote| remote.answer(&response)) {
                    self.stop.cancel();
                }
            }
            Next::Incoming(Some(Incoming::Skipped(why))) => {
                // Whoever wrote it may wait for an answer, and reads only one of the two.
                show::warn(&why);
                self.printer.event(AgentEvent::Warning(why)).await?;
            }
            Next::Signal | Next::Gone => stop.into_iter().for_each(CancellationToken::cancel),
            Next::Tick => self.printer.tick()?,
            Next::Done(_) => {}
        }
        Ok(())
    }

    /// A request about the session.
    fn request(&mut self, request: &Value) -> Result<Value, String> {
        match request["subtype"].as_str().unwrap_or_default() {
            "initialize" => {
                // A guard that never runs is worse than none: whoever relies on it must know.
                if request["hooks"].as_object().is_some_and(|hooks| !hooks.is_empty()) {
                    return Err("hooks cannot be called back: put them into settings".to_owned());
                }
                Ok(json!({ "commands": self.commands.told(), "output_style": "default", "models": [] }))
            }
            "interrupt" => {
                self.stop.cancel();
                Ok(json!({}))
            }
            "set_permission_mode" => {
                let mode = request["mode"].as_str().unwrap_or_default();
                let mode: Mode = mode.parse().map_err(|error| format!("{error}"))?;
                if mode == Mode::BypassPermissions && self.toolbox.policy().flags.bypass_unavailable {
                    return Err("bypassPermissions is not available in this session".to_owned());
                }
                self.toolbox.update_policy(|policy: &Policy| policy.with_mode(mode));
                Ok(json!({ "mode": mode.to_string() }))
            }
            other => Err(format!(
                "there is no control request \"{other}\": use initialize, interrupt or set_permission_mode"
            )),
        }
    }
}

async fn next_incoming(incoming: &mut Option<mpsc::Receiver<Incoming>>) -> Option<Incoming> {
    match incoming {
        Some(incoming) => incoming.recv().await,
        None => std::future::pending().await,
    }
}

fn exit_of(end: &End) -> Exit {
    match end {
        End::Interrupted => Exit::Interrupted,
        End::Halted(_) => Exit::Denied,
        end if lines::verdict(end).1.is_some() => Exit::Failed,
        _ => Exit::Ok,
    }
}

/// Says something on standard error that is not an error.
fn complain(complaints: &[String]) {
    complaints.iter().for_each(|what| show::warn(what));
}
