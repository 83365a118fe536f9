//! Agents that work while the call that started them goes on.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio_util::sync::CancellationToken;

use super::watch::Activity;
use crate::turn::Outcome;

/// The agents in the background, by id.
#[derive(Default)]
pub(crate) struct Background(Mutex<BTreeMap<String, Work>>);

struct Work {
    label: String,
    activity: Activity,
    began: Instant,
    /// Set when it has ended.
    over: CancellationToken,
    outcome: Option<Outcome>,
    /// Calls that wait for its end, and so hear of it without being told.
    waiting: usize,
}

/// How an agent in the background stands.
pub(crate) struct Standing {
    pub(crate) label: String,
    /// Calls that were made, and what the last one does.
    pub(crate) activity: (u64, String),
    pub(crate) took: Duration,
    /// Nothing while it works.
    pub(crate) outcome: Option<Outcome>,
}

impl Background {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Work>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn begins(&self, id: &str, label: &str, activity: Activity) {
        let work = Work {
            label: label.to_owned(),
            activity,
            began: Instant::now(),
            over: CancellationToken::new(),
            outcome: None,
            waiting: 0,
        };
        self.lock().insert(id.to_owned(), work);
    }

    /// Keeps what came of it. Gives the words that announce it, unless somebody waits for it anyway.
    pub(super) fn ended(&self, id: &str, outcome: Outcome) -> Option<String> {
        let mut all = self.lock();
        let work = all.get_mut(id)?;
        let words = format!(
            "The agent {id} ({}), which works in the background, has ended: AgentOutputTool gives what it says.",
            work.label
        );
        work.outcome = Some(outcome);
        work.over.cancel();
        (work.waiting == 0).then_some(words)
    }

    /// Waits for the end of an agent, at most so long, and gives how it stands. An error lists those there are.
    pub(crate) async fn wait(&self, id: &str, limit: Duration) -> Result<Standing, String> {
        let over = {
            let mut all = self.lock();
            let known: Vec<&str> = all.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let work = all.get_mut(id);
            let work =
                work.ok_or_else(|| format!("no agent {id} works in the background: there is {known}"))?;
            work.waiting += 1;
            work.over.clone()
        };
        let _waiting = Waiting(self, id);
        tokio::time::timeout(limit, over.cancelled()).await.ok();
        let all = self.lock();
        let work = all.get(id).ok_or("it is gone")?;
        let (label, outcome) = (work.label.clone(), work.outcome.clone());
        let took = outcome.as_ref().map_or_else(|| work.began.elapsed(), |outcome| outcome.took.0);
        Ok(Standing { label, activity: work.activity.now(), took, outcome })
    }
}

/// A call that waits, also if it is cut short.
struct Waiting<'a>(&'a Background, &'a str);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(work) = self.0.lock().get_mut(self.1) {
            work.waiting -= 1;
        }
    }
}
