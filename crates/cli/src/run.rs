//! `gripper run`: a file of calls as one turn.

use std::{
    fs::File,
    io::{BufRead, BufReader, IsTerminal},
    path::PathBuf,
    pin::Pin,
    time::Duration,
};

use gripper_runtime::{CallRequest, Event, Turn, environment::Environment};
use tokio::sync::mpsc;

use crate::{
    ask::Terminal,
    basis::{Basis, PolicyFlags},
    exit::{Exit, UsageError},
    interrupt,
    lines::{Line, next_line},
    live::Screen,
    session, show,
};

/// Longest line; calls over their own limit but under this get a proper result.
const LONGEST_LINE: usize = 16 * 1024 * 1024;
/// Calls taken in before their results are out. Keeps memory flat however long the file is.
const WINDOW: usize = 64;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// JSON Lines of calls {"id", "name", "input"}, or - for standard input
    file: PathBuf,
    /// Print JSON Lines of events, also on a terminal
    #[arg(long)]
    json: bool,
    /// Print for people, also into a file
    #[arg(long, conflicts_with = "json")]
    human: bool,
    #[command(flatten)]
    policy: PolicyFlags,
}

pub(crate) async fn run(args: Args, environment: Environment) -> anyhow::Result<Exit> {
    let human = args.human || (!args.json && std::io::stdout().is_terminal());
    let mut lines = open(&args.file)?;
    let basis = Basis::read(&args.policy, &environment)?;
    let mut interrupt = interrupt::listen()?;
    let terminal = Terminal::open(&args.policy, &environment, args.file.as_os_str() == "-");
    let opening = session::open(&environment, basis, |builder| {
        Terminal::wire(terminal.as_ref(), &args.policy, builder)
    });
    let Some(mut session) = interrupt::unless(&mut interrupt, opening).await.transpose()? else {
        return Ok(Exit::Interrupted);
    };
    session.servers.start();
    let turn = session.toolbox.turn();
    let mut next: Option<Next> = None;
    let mut screen = Screen::new(human, Terminal::stage(terminal.as_ref()));
    let mut tick = tokio::time::interval(Duration::from_millis(100));
    tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // Settings that change while a question is open may answer it.
    let mut look = tokio::time::interval(Duration::from_millis(500));
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let (mut reading, mut interrupted) = (true, false);
    let mut broken = None;
    let mut number = 0usize;
    loop {
        tokio::select! {
            biased;
            Ok(()) = interrupt.changed() => {
                (interrupted, reading, next) = (true, false, None);
                turn.interrupt();
                turn.close();
            }
            event = turn.next() => match event {
                Some(event) => screen.event(&event)?,
                None => break,
            },
            call = ready(&mut next), if next.is_some() => {
                next = None;
                session.refresh();
                turn.renew_tools();
                tell_changes(&session, &mut screen)?;
                submit(&turn, call);
            }
            line = lines.recv(), if reading && next.is_none() && turn.outstanding() < WINDOW => match line {
                Some(Ok(line)) => {
                    number += 1;
                    next = read_call(number, line).map(|call| await_tool(call, &session));
                }
                // What was read so far still gets its results.
                Some(Err(error)) => broken = Some(error),
                None => {
                    reading = false;
                    turn.close();
                }
            },
            _ = look.tick() => {
                session.refresh();
                tell_changes(&session, &mut screen)?;
            }
            _ = tick.tick(), if screen.is_live() => screen.tick()?,
        }
    }
    screen.finish()?;
    session.finish().await;
    if let Some(error) = broken {
        return Err(anyhow::Error::new(error).context("the calls could not be read to their end"));
    }
    Ok(match (interrupted, session.toolbox.halted()) {
        (true, _) => Exit::Interrupted,
        (false, Some(_)) => Exit::Denied,
        (false, None) => Exit::Ok,
    })
}

/// Shows what others have done to files that were read, and which background tasks have ended.
fn tell_changes(session: &session::Session, screen: &mut Screen) -> anyhow::Result<()> {
    let ended = session.tasks.finished().into_iter().map(Event::TaskFinished);
    session.toolbox.changed_files().into_iter().chain(ended).try_for_each(|event| screen.event(&event))
}

/// Reads on a thread of its own, so that a slow pipe never holds up a running call.
fn open(file: &PathBuf) -> anyhow::Result<mpsc::Receiver<std::io::Result<Line>>> {
    let mut reader: Box<dyn BufRead + Send> = if file.as_os_str() == "-" {
        Box::new(BufReader::new(std::io::stdin()))
    } else {
        let opened = File::open(file).and_then(|opened| {
            if opened.metadata()?.is_dir() {
                Err(std::io::ErrorKind::IsADirectory.into())
            } else {
                Ok(opened)
            }
        });
        let opened = opened.map_err(|error| {
            UsageError(format!(
                "cannot read {}: {error}; give a file of calls, one JSON object a line",
                file.display()
            ))
        })?;
        Box::new(BufReader::new(opened))
    };
    let (sender, receiver) = mpsc::channel(8);
    std::thread::spawn(move || {
        loop {
            match next_line(&mut reader, LONGEST_LINE) {
                Ok(None) => return,
                Ok(Some(line)) => {
                    if sender.blocking_send(Ok(line)).is_err() {
                        return;
                    }
                }
                Err(error) => {
                    sender.blocking_send(Err(error)).ok();
                    return;
                }
            }
        }
    });
    Ok(receiver)
}

/// A call, or the id and the trouble of what was meant to be one.
type Read = Result<CallRequest, (String, String)>;
/// A call whose tool may still have to be connected.
type Next = Pin<Box<dyn Future<Output = Read> + Send>>;

async fn ready(next: &mut Option<Next>) -> Read {
    match next {
        Some(next) => next.await,
        None => std::future::pending().await,
    }
}

/// Waits for the server that the tool comes from, if it comes from one. Calls stay in order meanwhile.
fn await_tool(call: Read, session: &session::Session) -> Next {
    let servers = session.servers.clone();
    Box::pin(async move {
        if let Ok(call) = &call
            && let Some(why) = servers.ready_for(&call.name).await
        {
            show::warn(&why);
        }
        call
    })
}

fn submit(turn: &Turn, call: Read) {
    match call {
        Ok(call) => turn.submit(call),
        Err((id, why)) => turn.submit_broken(&id, why),
    }
}

/// Every line but a blank one gets its result, also one that is no call.
fn read_call(number: usize, line: Line) -> Option<Read> {
    let id = format!("line-{number}");
    let broken = |why: String| Some(Err((format!("line-{number}"), why)));
    let text = match line {
        Line::Text(text) if text.trim().is_empty() => return None,
        // Some editors put a byte order mark at the start of a file.
        Line::Text(text) => text.trim_start_matches('\u{feff}').to_owned(),
        Line::TooLong => {
            let why =
                format!("line {number} is longer than {} MiB: split the call", LONGEST_LINE / (1024 * 1024));
            return broken(why);
        }
        Line::NotText => return broken(format!("line {number} is not UTF-8 text")),
    };
    let call =
        serde_json::from_str(&text).map_err(|error| format!("line {number} is not JSON: {error}")).and_then(
            |value| CallRequest::from_json(value, &id).map_err(|error| format!("line {number}: {error}")),
        );
    Some(call.map_err(|why| (id, why)))
}
