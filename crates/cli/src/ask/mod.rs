//! The person at the terminal as approver: questions one after the other, on a thread of their own.

mod dialog;
#[cfg(test)]
mod tests;
mod words;

use std::{
    collections::VecDeque,
    fs::File,
    io::{IsTerminal, Read, Write, stderr, stdin},
    os::unix::net::UnixStream,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anstream::{AutoStream, ColorChoice, adapter::strip_str};
use gripper_runtime::{
    Place, ToolboxBuilder,
    approve::{Answer, Approver, Ask, Checks, Coordinator, Headless, Reply},
    environment::Environment,
};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    process::getpgrp,
    termios::{QueueSelector, tcflush, tcgetpgrp},
};

use crate::{
    basis::PolicyFlags,
    live::Stage,
    show::{self, DIM, NOTE},
};
use dialog::{Person, Stop};

/// Longest line that is taken from the terminal, which itself cuts at about this.
const LONGEST_LINE: usize = 4_096;
/// After an answer other questions may settle themselves; they should not flash by.
const BREATH: Duration = Duration::from_millis(60);

/// The queue in front of the person.
pub(crate) struct Terminal {
    tty: File,
    /// A byte on it wakes the thread that talks to the person.
    wake: UnixStream,
    queue: Mutex<VecDeque<Question>>,
    stage: Arc<Stage>,
    place: Place,
}

#[derive(Clone)]
struct Question {
    ask: Ask,
    reply: Reply,
    /// Counts the changes of the reason.
    version: u32,
}

impl Terminal {
    /// The terminal of this process, if a person is at it who can be asked: standard input or error
    /// leads there, we are in its foreground, and calls are not read from it (`reads_stdin`).
    pub(crate) fn open(
        flags: &PolicyFlags,
        environment: &Environment,
        reads_stdin: bool,
    ) -> Option<Arc<Self>> {
        let attended = stdin().is_terminal() || stderr().is_terminal();
        if flags.yes || !attended || reads_stdin && stdin().is_terminal() {
            return None;
        }
        let tty = File::options().read(true).write(true).open("/dev/tty").ok().filter(in_foreground)?;
        let (wake, asleep) = UnixStream::pair().ok()?;
        wake.set_nonblocking(true).ok()?;
        asleep.set_nonblocking(true).ok()?;
        let place = Place { cwd: environment.cwd.clone()? };
        let terminal = Arc::new(Self { tty, wake, queue: Mutex::default(), stage: Arc::default(), place });
        let attending = terminal.clone();
        // Nobody waits for this thread: the process may end in the middle of a question.
        std::thread::Builder::new().spawn(move || attending.attend(&asleep)).ok()?;
        Some(terminal)
    }

    /// Makes the terminal, or nobody, the one whom calls are put to.
    pub(crate) fn wire(
        terminal: Option<&Arc<Self>>,
        flags: &PolicyFlags,
        builder: ToolboxBuilder,
    ) -> ToolboxBuilder {
        let person: Arc<dyn Approver> = match terminal {
            Some(terminal) => terminal.clone(),
            None if flags.yes => return builder,
            None => Arc::new(Headless),
        };
        builder.approver(Arc::new(Coordinator::new(person, Checks::default())))
    }

    /// What the live rows share with the questions.
    pub(crate) fn stage(terminal: Option<&Arc<Self>>) -> Arc<Stage> {
        terminal.map(|terminal| terminal.stage.clone()).unwrap_or_default()
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Question>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wake(&self) {
        // A full pipe has woken the thread already.
        (&self.wake).write_all(&[0]).ok();
    }

    fn say(&self, text: &str) {
        self.write(&format!("{text}\n"));
    }

    fn write(&self, text: &str) {
        let plain = AutoStream::choice(&self.tty) == ColorChoice::Never;
        let text = if plain { strip_str(text).to_string() } else { text.to_owned() };
        (&self.tty).write_all(text.as_bytes()).ok();
    }

    /// Puts the questions to the person for as long as the process lives.
    fn attend(&self, asleep: &UnixStream) {
        loop {
            let Some(question) = self.queue().front().cloned() else {
                self.stage.give_back();
                wait(None, asleep, None);
                continue;
            };
            self.stage.take(&self.tty);
            let mut exchange = Exchange { terminal: self, asleep, question: &question };
            let answer = if in_foreground(&self.tty) {
                // What was typed before the question was there is no answer to it.
                tcflush(&self.tty, QueueSelector::IFlush).ok();
                dialog::hold(&question.ask, &self.place, &mut exchange)
            } else {
                Ok(Answer::deny(
                    "gripper runs in the background, where nobody can be asked; bring it to the front",
                ))
            };
            let answer = match answer {
                Ok(answer) => answer,
                Err(Stop::End) => Answer::Deny { feedback: None },
                Err(Stop::Changed) => {
                    self.say(&format!("\n{NOTE}the question has changed{NOTE:#}"));
                    continue;
                }
                Err(Stop::Gone) => {
                    self.say(&format!("\n{NOTE}this question has settled itself{NOTE:#}\n"));
                    continue;
                }
            };
            if !question.reply.answer(answer) {
                self.say(&format!("{NOTE}too late: this question has settled itself{NOTE:#}"));
            }
            // The next one only when all is said about this one.
            while exchange.stands() {
                wait(None, asleep, None);
            }
            while wait(None, asleep, Some(BREATH)) == Noticed::Call {}
            self.say("");
        }
    }
}

impl Approver for Terminal {
    fn push(&self, ask: Ask, reply: Reply) {
        self.queue().push_back(Question { ask, reply, version: 0 });
        self.wake();
    }

    fn update(&self, ask: &Ask) {
        if let Some(question) = self.queue().iter_mut().find(|question| question.ask.id == ask.id) {
            question.ask = ask.clone();
            question.version += 1;
        }
        self.wake();
    }

    fn tell(&self, _id: &str, words: &str) {
        // At once, not through the thread: the process may be about to end.
        self.say(&format!("{DIM}note:{DIM:#} {}", show::one_line(words, 500)));
    }

    fn remove(&self, id: &str) {
        self.queue().retain(|question| &*question.ask.id != id);
        self.wake();
    }
}

/// One question and the person.
struct Exchange<'a> {
    terminal: &'a Terminal,
    asleep: &'a UnixStream,
    question: &'a Question,
}

impl Exchange<'_> {
    fn version(&self) -> Option<u32> {
        let queue = self.terminal.queue();
        queue.iter().find(|other| other.ask.id == self.question.ask.id).map(|other| other.version)
    }

    fn stands(&self) -> bool {
        self.version().is_some()
    }
}

impl Person for Exchange<'_> {
    fn say(&mut self, text: &str) {
        self.terminal.say(text);
    }

    fn hear(&mut self, prompt: &str) -> Result<String, Stop> {
        let mut tty = &self.terminal.tty;
        self.terminal.write(prompt);
        let mut line = Vec::new();
        loop {
            match self.version() {
                None => return Err(Stop::Gone),
                Some(version) if version != self.question.version => return Err(Stop::Changed),
                Some(_) => {}
            }
            if wait(Some(tty), self.asleep, None) != Noticed::Typed {
                continue;
            }
            let mut bytes = [0; LONGEST_LINE];
            match tty.read(&mut bytes) {
                Ok(0) => return Err(Stop::End),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => return Err(Stop::End),
                Ok(count) => line.extend_from_slice(&bytes[..count]),
            }
            if line.ends_with(b"\n") || line.len() >= LONGEST_LINE {
                return Ok(String::from_utf8_lossy(&line).trim().to_owned());
            }
        }
    }
}

/// Waits for something to read on `tty`, if given, or a wake-up call, which is then taken.
fn wait(tty: Option<&File>, asleep: &UnixStream, limit: Option<Duration>) -> Noticed {
    let mut fds = vec![PollFd::new(asleep, PollFlags::IN)];
    fds.extend(tty.map(|tty| PollFd::new(tty, PollFlags::IN)));
    let limit = limit.and_then(|limit| Timespec::try_from(limit).ok());
    if poll(&mut fds, limit.as_ref()).is_err() {
        // A signal came in between: whoever waits looks again.
        return Noticed::Call;
    }
    let typed = fds.get(1).is_some_and(|tty| !tty.revents().is_empty());
    let mut calls = [0; 64];
    let mut called = false;
    while { asleep }.read(&mut calls).is_ok_and(|count| count > 0) {
        called = true;
    }
    match (called, typed) {
        (true, _) => Noticed::Call,
        (false, true) => Noticed::Typed,
        (false, false) => Noticed::Nothing,
    }
}

/// How a wait ended.
#[derive(PartialEq, Eq)]
enum Noticed {
    Call,
    Typed,
    Nothing,
}

/// Whether the terminal's input is ours: from the background, reading it would stop the process.
fn in_foreground(tty: &File) -> bool {
    tcgetpgrp(tty).is_ok_and(|group| group == getpgrp())
}
