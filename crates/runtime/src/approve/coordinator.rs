//! Automated checks first, then the person.

use std::{
    collections::HashMap,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use gripper_permissions::{By, Check, Mode};
use tokio::task::AbortHandle;

use super::{Answer, Approver, Ask, Reply};
use crate::sync::{Mutex, lock};

/// Denials by the classifier after which the person is asked instead.
const DENIALS_IN_A_ROW: u32 = 3;
const DENIALS_IN_ALL: u32 = 20;

/// A model's view of a call that static analysis could not clear.
pub trait Classifier: Send + Sync {
    /// Judges. An opinion counts only in mode `auto`, and only about asks that no rule, hook or
    /// named check stands behind.
    fn judge<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Opinion>;
}

/// What a classifier thinks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Opinion {
    /// Harmless, and why.
    Allow(String),
    /// The person should see it.
    Ask,
    /// Harmful, and why.
    Deny(String),
    /// It could not judge, and why: the person is asked.
    Failed(String),
}

/// Whoever may answer in the person's stead before a dialog opens: the place of hooks on
/// permission requests. `None` leaves the question to the next one.
pub trait FirstWord: Send + Sync {
    /// Answers, or passes.
    fn answer<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Option<Answer>>;
}

/// The automated checks, and how the dialog goes with them.
#[derive(Clone)]
pub struct Checks {
    /// Asked first.
    pub first: Option<Arc<dyn FirstWord>>,
    /// Asked in mode `auto` about what is left.
    pub classifier: Option<Arc<dyn Classifier>>,
    /// Whether the dialog waits for the checks. If not it opens at once, and the first answer counts.
    pub wait: bool,
    /// How long each check may take; later it counts as failed.
    pub limit: Duration,
}

impl Default for Checks {
    fn default() -> Self {
        Self { first: None, classifier: None, wait: true, limit: Duration::from_secs(60) }
    }
}

/// An approver that lets automated checks settle what they may, and puts the rest to the person.
pub struct Coordinator(Arc<Inner>);

struct Inner {
    person: Arc<dyn Approver>,
    checks: Checks,
    /// Questions with checks under way or done. Held while the person's queue is changed, so that
    /// a question cannot be taken off it before it was put on.
    open: Mutex<HashMap<Arc<str>, Open>>,
    /// By agent.
    tallies: Mutex<HashMap<Arc<str>, Tally>>,
}

struct Open {
    ask: Ask,
    reply: Reply,
    shown: bool,
    task: AbortHandle,
}

impl Drop for Open {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// How often the classifier said no since the last approval.
#[derive(Default)]
struct Tally {
    in_a_row: u32,
    in_all: u32,
}

impl Coordinator {
    /// Puts to `person` what `checks` leave open.
    pub fn new(person: Arc<dyn Approver>, checks: Checks) -> Self {
        Self(Arc::new(Inner { person, checks, open: Mutex::default(), tallies: Mutex::default() }))
    }
}

impl Approver for Coordinator {
    fn push(&self, ask: Ask, reply: Reply) {
        let inner = &self.0;
        if inner.checks.first.is_none() && inner.classifier(&ask).is_none() {
            return inner.show(ask, &reply);
        }
        let mut open = lock(&inner.open);
        let shown = !inner.checks.wait;
        if shown {
            inner.show(ask.clone(), &reply);
        }
        let task = tokio::spawn(inner.clone().check(ask.clone())).abort_handle();
        open.insert(ask.id.clone(), Open { ask, reply, shown, task });
    }

    fn update(&self, ask: &Ask) {
        let mut open = lock(&self.0.open);
        let entry = open.get_mut(&ask.id);
        let shown = entry.as_ref().is_none_or(|entry| entry.shown);
        if let Some(entry) = entry {
            entry.ask = ask.clone();
        }
        if shown {
            self.0.person.update(ask);
        }
    }

    fn tell(&self, id: &str, words: &str) {
        self.0.person.tell(id, words);
    }

    fn remove(&self, id: &str) {
        let mut open = lock(&self.0.open);
        if open.remove(id).is_none_or(|entry| entry.shown) {
            self.0.person.remove(id);
        }
    }
}

impl Inner {
    /// The classifier, if it may settle this ask and has not been wrong too often.
    fn classifier(&self, ask: &Ask) -> Option<&Arc<dyn Classifier>> {
        let trusted = lock(&self.tallies)
            .get(&ask.agent)
            .is_none_or(|tally| tally.in_a_row < DENIALS_IN_A_ROW && tally.in_all < DENIALS_IN_ALL);
        self.checks.classifier.as_ref().filter(|_| trusted && is_open_to_classifier(ask))
    }

    /// Puts a question to the person. Their yes shows that the classifier was too strict.
    fn show(self: &Arc<Self>, ask: Ask, reply: &Reply) {
        let (inner, agent) = (self.clone(), ask.agent.clone());
        let watched = reply.heard_by(move |answer| {
            if matches!(answer, Answer::Allow { .. }) {
                lock(&inner.tallies).remove(&agent);
            }
        });
        // Behind the checks nobody would notice the panic, and the call would wait for an answer.
        if catch_unwind(AssertUnwindSafe(|| self.person.push(ask, watched))).is_err() {
            reply.answer(Answer::deny("the approver has a bug and stopped"));
        }
    }

    async fn check(self: Arc<Self>, ask: Ask) {
        let answer = match &self.checks.first {
            Some(first) => self.bounded(first.answer(&ask)).await.ok().flatten(),
            None => None,
        };
        if let Some(answer) = answer {
            if let Some(entry) = lock(&self.open).get(&ask.id) {
                entry.reply.answer(answer);
            }
            return;
        }
        let opinion = match self.classifier(&ask) {
            Some(classifier) => self.bounded(classifier.judge(&ask)).await.unwrap_or_else(Opinion::Failed),
            None => Opinion::Ask,
        };
        self.settle(&ask.id, opinion);
    }

    /// A check that panics or takes too long has failed.
    async fn bounded<T>(&self, check: BoxFuture<'_, T>) -> Result<T, String> {
        match tokio::time::timeout(self.checks.limit, AssertUnwindSafe(check).catch_unwind()).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(_)) => Err("it has a bug and stopped".to_owned()),
            Err(_) => Err(format!("no answer within {} s", self.checks.limit.as_secs())),
        }
    }

    fn settle(self: &Arc<Self>, id: &Arc<str>, opinion: Opinion) {
        let mut open = lock(&self.open);
        let Some(entry) = open.get_mut(id) else { return };
        let agent = entry.ask.agent.clone();
        match opinion {
            // The policy may have changed meanwhile: what counts is the question as it is now.
            Opinion::Allow(why) if is_open_to_classifier(&entry.ask) => {
                if entry.reply.answer(Answer::because(format!("cleared by the classifier: {why}")))
                    && let Some(tally) = lock(&self.tallies).get_mut(&agent)
                {
                    tally.in_a_row = 0;
                }
                return;
            }
            Opinion::Deny(why) => {
                if entry.reply.answer(Answer::deny(format!("the classifier refused it: {why}"))) {
                    let mut tallies = lock(&self.tallies);
                    let tally = tallies.entry(agent).or_default();
                    tally.in_a_row += 1;
                    tally.in_all += 1;
                }
                return;
            }
            Opinion::Failed(why) => {
                self.person.tell(id, &format!("the classifier failed ({why}), so you are asked"));
            }
            Opinion::Allow(_) | Opinion::Ask => {}
        }
        if !entry.shown {
            entry.shown = true;
            self.show(entry.ask.clone(), &entry.reply);
        }
    }
}

/// Only what nothing settled: an ask rule, a hook or a named check wants a person.
fn is_open_to_classifier(ask: &Ask) -> bool {
    ask.mode == Mode::Auto && matches!(ask.decision.by, By::Check(Check::Unsettled))
}
