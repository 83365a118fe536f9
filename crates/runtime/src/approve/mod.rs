//! Whoever answers an ask.

mod coordinator;
mod grant;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
mod worker;

use std::sync::Arc;

use gripper_permissions::{Decision, Mode, Subject};
use serde_json::Value;

use crate::once::ResolveOnce;

pub use coordinator::{Checks, Classifier, Coordinator, FirstWord, Opinion};
pub(crate) use grant::Grants;
pub use grant::{Grant, SaveRule, SaveTo};
pub use worker::{Inbox, Worker};

/// One question: may this call run?
#[derive(Debug, Clone)]
pub struct Ask {
    /// Unique in the session.
    pub id: Arc<str>,
    /// The call.
    pub call_id: Arc<str>,
    /// Its tool.
    pub tool: Arc<str>,
    /// Whose call it is.
    pub agent: Arc<str>,
    /// The mode in force when it was asked.
    pub mode: Mode,
    /// One line on what it would do.
    pub summary: String,
    /// The input, as it would run.
    pub input: Value,
    /// Everything it would touch.
    pub subjects: Vec<Subject>,
    /// Why it is asked.
    pub decision: Decision,
    /// What it would do to files, as a difference, where that can be told beforehand.
    pub preview: Option<String>,
}

impl Ask {
    /// What "for this session" grants: the first rule suggested. `None` when no rule would settle
    /// such a call, so that a yes can only be for once.
    pub fn offer(&self) -> Option<Grant> {
        Grant::suggested(self.decision.suggestions.first()?)
    }
}

/// What the approver says.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Run it.
    Allow {
        /// Allow later calls as well.
        grant: Option<Grant>,
        /// Run it with this input instead; it is checked like any other.
        input: Option<Value>,
        /// Why, when it was not a person who said yes just now.
        reason: Option<String>,
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
        Answer::Allow { grant: None, input: None, reason: None }
    }

    /// Yes, and to later calls as far as the grant goes. Without one it is a yes for once.
    pub fn granting(grant: Option<Grant>) -> Self {
        Answer::Allow { grant, input: None, reason: None }
    }

    /// Yes, with another input.
    pub fn edited(input: Value) -> Self {
        Answer::Allow { grant: None, input: Some(input), reason: None }
    }

    /// Yes, this once, from somebody other than a person asked just now.
    pub fn because(reason: impl Into<String>) -> Self {
        Answer::Allow { grant: None, input: None, reason: Some(reason.into()) }
    }

    /// No, with words for the model.
    pub fn deny(feedback: impl Into<String>) -> Self {
        Answer::Deny { feedback: Some(feedback.into()) }
    }
}

/// The way back for an answer. Clones share it; the first answer counts. When the last clone is
/// dropped without one, whoever was asked is gone, and that is a no.
#[derive(Clone)]
pub struct Reply(Arc<Way>);

type Hear = dyn Fn(&Answer) + Send + Sync;

struct Way {
    cell: Arc<ResolveOnce<Answer>>,
    heard: Option<Box<Hear>>,
    /// The way this one stands in for, which is not given up as long as this one is there.
    _before: Option<Reply>,
}

/// The asking end of a [`Reply`].
pub struct Pending(Arc<ResolveOnce<Answer>>);

impl Reply {
    /// Both ends of a question.
    pub fn open() -> (Pending, Self) {
        let cell = Arc::new(ResolveOnce::new());
        (Pending(cell.clone()), Self(Arc::new(Way { cell, heard: None, _before: None })))
    }

    /// Answers. False when somebody was quicker or the question is gone.
    pub fn answer(&self, answer: Answer) -> bool {
        let Some(claim) = self.0.cell.claim() else { return false };
        if let Some(heard) = &self.0.heard {
            heard(&answer);
        }
        claim.resolve(answer);
        true
    }

    /// Another way back to the same question, on which `hear` learns of the answer that counted.
    pub(crate) fn heard_by(&self, hear: impl Fn(&Answer) + Send + Sync + 'static) -> Self {
        let cell = self.0.cell.clone();
        Self(Arc::new(Way { cell, heard: Some(Box::new(hear)), _before: Some(self.clone()) }))
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.cell.resolve(Answer::deny("whoever was asked went away without an answer"));
    }
}

impl Pending {
    /// Waits for the answer. Meant for one waiter.
    pub async fn wait(&self) -> Answer {
        self.0.wait().await
    }

    /// Whether the answer is there.
    pub(crate) fn is_answered(&self) -> bool {
        self.0.is_settled()
    }

    /// Takes the question back, so that later answers are told they came too late. False when an
    /// answer was already given.
    pub fn withdraw(&self) -> bool {
        self.0.resolve(Answer::Deny { feedback: None })
    }
}

/// A queue of questions with somebody at its end: a dialog, a web page, a parent agent.
pub trait Approver: Send + Sync {
    /// A new question. Must not block; the answer comes through `reply`, at any time.
    fn push(&self, ask: Ask, reply: Reply);

    /// The policy changed while the question was open, and with it the reason.
    fn update(&self, _ask: &Ask) {}

    /// Something about a question the person should know, such as why a rule was not saved.
    fn tell(&self, _id: &str, _words: &str) {}

    /// The question is settled or moot.
    fn remove(&self, id: &str);
}

/// Nobody is there: denies, and says which rule would have allowed it.
#[derive(Debug, Default)]
pub struct Headless;

impl Approver for Headless {
    fn push(&self, ask: Ask, reply: Reply) {
        let mut feedback = String::from("nobody can be asked here");
        if let Some(suggestion) = ask.decision.suggestions.first() {
            let list = suggestion.list.name();
            feedback.push_str(&format!("; the {list} rule {} would settle it", suggestion.rule));
            for other in &suggestion.also {
                feedback.push_str(&format!(" together with {other}"));
            }
        }
        reply.answer(Answer::deny(feedback));
    }

    fn remove(&self, _id: &str) {}
}

/// Says yes to everything it is asked, once: the person approved this run beforehand.
#[derive(Debug, Default)]
pub struct Preapproved;

impl Approver for Preapproved {
    fn push(&self, _ask: Ask, reply: Reply) {
        reply.answer(Answer::because("approved beforehand"));
    }

    fn remove(&self, _id: &str) {}
}
