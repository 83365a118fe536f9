//! An agent below another: its questions are answered where the other's are.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::{Answer, Approver, Ask, Reply};

/// Forwards every question to its coordinator and decides nothing. A coordinator that is gone is a
/// no: an answer that never comes would hold the agent up for nothing.
pub struct Worker(mpsc::UnboundedSender<Message>);

/// The coordinator's end of a [`Worker`].
pub struct Inbox(mpsc::UnboundedReceiver<Message>);

enum Message {
    Push(Box<Ask>, Reply),
    Update(Box<Ask>),
    Tell(String, String),
    Remove(String),
}

impl Worker {
    /// A worker, and what its coordinator must serve.
    pub fn new() -> (Self, Inbox) {
        // As many messages as there are calls, which are held in memory anyway.
        let (sender, receiver) = mpsc::unbounded_channel();
        (Self(sender), Inbox(receiver))
    }
}

impl Inbox {
    /// Hands the worker's questions on until the worker is gone.
    pub async fn serve(mut self, to: Arc<dyn Approver>) {
        while let Some(message) = self.0.recv().await {
            match message {
                Message::Push(ask, reply) => to.push(*ask, reply),
                Message::Update(ask) => to.update(&ask),
                Message::Tell(id, words) => to.tell(&id, &words),
                Message::Remove(id) => to.remove(&id),
            }
        }
    }
}

impl Approver for Worker {
    fn push(&self, ask: Ask, reply: Reply) {
        if self.0.send(Message::Push(Box::new(ask), reply.clone())).is_err() {
            reply.answer(Answer::deny("the agent that answers for this one is gone"));
        }
    }

    fn update(&self, ask: &Ask) {
        self.0.send(Message::Update(Box::new(ask.clone()))).ok();
    }

    fn tell(&self, id: &str, words: &str) {
        self.0.send(Message::Tell(id.to_owned(), words.to_owned())).ok();
    }

    fn remove(&self, id: &str) {
        self.0.send(Message::Remove(id.to_owned())).ok();
    }
}
