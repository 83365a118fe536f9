//! An approver that plays a script and remembers what it was asked.

use std::sync::{Mutex, PoisonError};

use gripper_runtime::approve::{Answer, Approver, Ask, Reply};

/// What happened to a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen {
    /// It came in, with its reason.
    Pushed(String, String),
    /// Its reason changed.
    Updated(String, String),
    /// Something was said about it.
    Told(String, String),
    /// It was taken off the queue.
    Removed(String),
}

/// Answers each question with the next answer of its script; `None`, or an empty script, leaves
/// the question open until [`answer`](RecordingApprover::answer) is called.
#[derive(Default)]
pub struct RecordingApprover {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    script: Vec<Option<Answer>>,
    seen: Vec<Seen>,
    open: Vec<(String, Reply)>,
}

impl RecordingApprover {
    /// Plays these answers, in order.
    pub fn new(mut script: Vec<Option<Answer>>) -> Self {
        script.reverse();
        Self { state: Mutex::new(State { script, ..State::default() }) }
    }

    /// What happened so far.
    pub fn seen(&self) -> Vec<Seen> {
        self.lock().seen.clone()
    }

    /// Calls whose questions are open.
    pub fn open(&self) -> Vec<String> {
        self.lock().open.iter().map(|(call_id, _)| call_id.clone()).collect()
    }

    /// Answers an open question. False when it is not open or somebody was quicker.
    pub fn answer(&self, call_id: &str, answer: Answer) -> bool {
        let reply = self.lock().open.iter().find(|(open, _)| open == call_id).map(|(_, reply)| reply.clone());
        reply.is_some_and(|reply| reply.answer(answer))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Approver for RecordingApprover {
    fn push(&self, ask: Ask, reply: Reply) {
        let mut state = self.lock();
        state.seen.push(Seen::Pushed(ask.call_id.to_string(), ask.decision.reason.to_string()));
        match state.script.pop().flatten() {
            Some(answer) => {
                reply.answer(answer);
            }
            None => state.open.push((ask.call_id.to_string(), reply)),
        }
    }

    fn update(&self, ask: &Ask) {
        self.lock().seen.push(Seen::Updated(ask.call_id.to_string(), ask.decision.reason.to_string()));
    }

    fn tell(&self, id: &str, words: &str) {
        self.lock().seen.push(Seen::Told(call_of(id), words.to_owned()));
    }

    fn remove(&self, id: &str) {
        let call_id = call_of(id);
        let mut state = self.lock();
        state.open.retain(|(open, _)| *open != call_id);
        state.seen.push(Seen::Removed(call_id));
    }
}

/// The call in the id of a question.
fn call_of(id: &str) -> String {
    id.rsplit(':').next().unwrap_or(id).to_owned()
}
