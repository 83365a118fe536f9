//! What an agent does, as whoever started it sees it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use gripper_runtime::{
    Event, Pool,
    tool::{Audience, Progress, ProgressSender},
};

use crate::turn::AgentEvent;

/// Longest line of progress, in characters.
const LINE: usize = 200;

/// How much an agent has done so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Activity(Arc<Mutex<(u64, String)>>);

impl Activity {
    /// Calls that were made, and what the last one does.
    pub(crate) fn now(&self) -> (u64, String) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Turns the calls of an agent into progress of the call that started it.
pub(super) struct Watch {
    label: String,
    pool: Arc<Pool>,
    progress: Option<ProgressSender>,
    activity: Activity,
    /// The tools of calls that have not ended.
    tools: HashMap<Arc<str>, Arc<str>>,
}

impl Watch {
    pub(super) fn new(
        label: String,
        pool: Arc<Pool>,
        progress: Option<ProgressSender>,
        activity: Activity,
    ) -> Self {
        Self { label, pool, progress, activity, tools: HashMap::new() }
    }

    pub(super) fn take(&mut self, event: &AgentEvent) {
        match event {
            AgentEvent::Call(Event::Queued { call_id, tool }) => {
                self.tools.insert(call_id.clone(), tool.clone());
                self.activity.0.lock().unwrap_or_else(PoisonError::into_inner).0 += 1;
            }
            AgentEvent::Call(Event::Started { call_id, summary }) => {
                let tool = self.tools.get(call_id).map_or("", |tool| tool);
                self.say(&format!("{tool} {summary}"));
            }
            // What agents further below do is theirs, and told as it is.
            AgentEvent::Call(Event::Progress { call_id, progress }) if self.delegates(call_id) => {
                self.say(&progress.message);
            }
            AgentEvent::Call(Event::Result(result)) => {
                self.tools.remove(&result.call_id);
            }
            AgentEvent::Warning(words) => self.say(words),
            AgentEvent::Retrying { error, .. } => self.say(&format!("asks the model again: {error}")),
            _ => {}
        }
    }

    fn delegates(&self, call: &str) -> bool {
        let tool = self.tools.get(call).and_then(|tool| self.pool.get(tool));
        tool.is_some_and(|tool| tool.spec().facts.audience == Audience::Delegating)
    }

    fn say(&self, words: &str) {
        let line: String = words.lines().next().unwrap_or_default().chars().take(LINE).collect();
        self.activity.0.lock().unwrap_or_else(PoisonError::into_inner).1.clone_from(&line);
        if let Some(progress) = &self.progress {
            progress.report(Progress { message: format!("{}: {line}", self.label), ..Progress::default() });
        }
    }
}
