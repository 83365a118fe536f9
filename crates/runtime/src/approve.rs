//! Whoever answers an ask.

use std::sync::Arc;

use gripper_permissions::Decision;
use serde_json::Value;

use crate::once::ResolveOnce;

/// One question: may this call run?
#[derive(Debug, Clone)]
pub struct Ask {
    /// Unique in the session.
    pub id: Arc<str>,
    /// The call.
    pub call_id: Arc<str>,
    /// Its tool.
    pub tool: Arc<str>,
    /// One line on what it would do.
    pub summary: String,
    /// The input, as it would run.
    pub input: Value,
    /// Why it is asked.
    pub decision: Decision,
}

/// What the approver says.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Run it.
    Allow {
        /// Also allow this tool for the rest of the session.
        for_session: bool,
        /// Run it with this input instead; it is checked like any other.
        input: Option<Value>,
    },
    /// Do not run it.
    Deny {
        /// Words for the model.
        feedback: Option<String>,
    },
}

impl Answer {
    /// Yes, this once.
    pub fn once() -> Self {
        Answer::Allow { for_session: false, input: None }
    }
}

/// The way back for an answer. Clones share it; the first answer counts.
#[derive(Clone)]
pub struct Reply(Arc<ResolveOnce<Answer>>);

impl Reply {
    pub(crate) fn new() -> Self {
        Self(Arc::new(ResolveOnce::new()))
    }

    /// Answers. False when somebody was quicker or the question is gone.
    pub fn answer(&self, answer: Answer) -> bool {
        self.0.resolve(answer)
    }

    /// Whether the answer is there.
    pub(crate) fn is_answered(&self) -> bool {
        self.0.is_settled()
    }

    pub(crate) async fn wait(&self) -> Answer {
        self.0.wait().await
    }

    /// Takes the question back, so that later answers are told they came too late. False when an
    /// answer was already given.
    pub(crate) fn withdraw(&self) -> bool {
        self.answer(Answer::Deny { feedback: None })
    }
}

/// A queue of questions with somebody at its end: a dialog, a web page, a parent agent.
pub trait Approver: Send + Sync {
    /// A new question. Must not block; the answer comes through `reply`, at any time.
    fn push(&self, ask: Ask, reply: Reply);

    /// The policy changed while the question was open, and with it the reason.
    fn update(&self, _ask: &Ask) {}

    /// The question is settled or moot.
    fn remove(&self, id: &str);
}

/// Nobody is there: denies, and says which rule would have allowed it.
#[derive(Debug, Default)]
pub struct Headless;

impl Approver for Headless {
    fn push(&self, ask: Ask, reply: Reply) {
        let mut feedback = String::from("nobody can be asked here");
        for suggestion in &ask.decision.suggestions {
            feedback.push_str(&format!(
                "; the {} rule {} would settle it",
                suggestion.list.name(),
                suggestion.rule
            ));
        }
        reply.answer(Answer::Deny { feedback: Some(feedback) });
    }

    fn remove(&self, _id: &str) {}
}

/// Says yes to everything it is asked, once: the person approved this run beforehand.
#[derive(Debug, Default)]
pub struct Preapproved;

impl Approver for Preapproved {
    fn push(&self, _ask: Ask, reply: Reply) {
        reply.answer(Answer::once());
    }

    fn remove(&self, _id: &str) {}
}
