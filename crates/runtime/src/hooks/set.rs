//! Hooks written in Rust, for agents that embed Gripper.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use futures::future::BoxFuture;
use gripper_permissions::HookOpinion;
use serde_json::Value;

use super::{After, Before, BeforeCall, HookRun, Hooks, Rewrite};
use crate::pipeline::CallResult;

/// What one in-process hook answers.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// Nothing.
    Pass,
    /// Stop the call, with the reason.
    Block(String),
    /// Allow, ask or deny.
    Decide(HookOpinion),
    /// Use this input instead.
    Rewrite(Value),
    /// Add this text to the result.
    Note(String),
}

type BeforeFn = Box<dyn Fn(BeforeCall<'_>) -> Answer + Send + Sync>;
type AfterFn = Box<dyn Fn(BeforeCall<'_>, &CallResult) -> Option<String> + Send + Sync>;

enum Action {
    Before(BeforeFn),
    After(AfterFn),
}

struct Hook {
    name: Arc<str>,
    /// Empty means every tool.
    tools: Vec<String>,
    managed: bool,
    action: Action,
}

/// Hooks written in Rust. They run in the order they were added, each seeing the input the one
/// before left, so the outcome never depends on timing.
#[derive(Default)]
pub struct HookSet {
    hooks: Vec<Hook>,
}

impl HookSet {
    /// No hooks.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a hook before calls of `tools` (none means all).
    #[must_use]
    pub fn before(
        self,
        name: &str,
        tools: &[&str],
        hook: impl Fn(BeforeCall<'_>) -> Answer + Send + Sync + 'static,
    ) -> Self {
        self.add(name, tools, Action::Before(Box::new(hook)))
    }

    /// Adds a hook after calls of `tools` (none means all); it may return a note for the model.
    #[must_use]
    pub fn after(
        self,
        name: &str,
        tools: &[&str],
        hook: impl Fn(BeforeCall<'_>, &CallResult) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.add(name, tools, Action::After(Box::new(hook)))
    }

    /// Marks the last added hook as managed policy.
    #[must_use]
    pub fn managed(mut self) -> Self {
        if let Some(hook) = self.hooks.last_mut() {
            hook.managed = true;
        }
        self
    }

    fn add(mut self, name: &str, tools: &[&str], action: Action) -> Self {
        let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
        self.hooks.push(Hook { name: name.into(), tools, managed: false, action });
        self
    }

    fn matching<'a>(&'a self, tool: &'a str) -> impl Iterator<Item = &'a Hook> {
        self.hooks
            .iter()
            .filter(move |hook| hook.tools.is_empty() || hook.tools.iter().any(|name| name == tool))
    }

    fn run_before(&self, call: BeforeCall<'_>) -> Before {
        let mut merged = Before::default();
        let mut input = call.input.clone();
        for hook in self.matching(call.tool()) {
            let Action::Before(action) = &hook.action else { continue };
            let seen = BeforeCall { input: &input, ..call };
            // A hook that fails must not open a door: the call is asked about.
            let answer = catch_unwind(AssertUnwindSafe(|| action(seen)))
                .unwrap_or_else(|_| Answer::Decide(HookOpinion::Ask(format!("hook {} failed", hook.name))));
            merged.runs.push(HookRun::new(&hook.name, answer.word()));
            match answer {
                Answer::Pass => {}
                Answer::Block(reason) => {
                    merged.block = Some(reason);
                    return merged;
                }
                Answer::Decide(opinion) => merged.opinion = Some(strictest(merged.opinion, opinion)),
                Answer::Rewrite(new) => {
                    let managed = hook.managed && merged.input.as_ref().is_none_or(|before| before.managed);
                    input = new.clone();
                    merged.input = Some(Rewrite { input: new, managed });
                }
                Answer::Note(text) => merged.context.push(text),
            }
        }
        merged
    }

    fn run_after(&self, call: BeforeCall<'_>, result: &CallResult) -> After {
        let mut merged = After::default();
        for hook in self.matching(call.tool()) {
            let Action::After(action) = &hook.action else { continue };
            let outcome = match catch_unwind(AssertUnwindSafe(|| action(call, result))) {
                Ok(Some(note)) => {
                    merged.context.push(note);
                    "note"
                }
                Ok(None) => "pass",
                Err(_) => "failed",
            };
            merged.runs.push(HookRun::new(&hook.name, outcome));
        }
        merged
    }
}

impl Hooks for HookSet {
    fn interested(&self, tool: &str) -> bool {
        self.matching(tool).next().is_some()
    }

    fn before<'a>(&'a self, call: BeforeCall<'a>) -> BoxFuture<'a, Before> {
        Box::pin(async move { self.run_before(call) })
    }

    fn after<'a>(&'a self, call: BeforeCall<'a>, result: &'a CallResult) -> BoxFuture<'a, After> {
        Box::pin(async move { self.run_after(call, result) })
    }
}

impl Answer {
    fn word(&self) -> &'static str {
        match self {
            Answer::Pass => "pass",
            Answer::Block(_) => "block",
            Answer::Decide(HookOpinion::Allow(_)) => "allow",
            Answer::Decide(HookOpinion::Ask(_)) => "ask",
            Answer::Decide(HookOpinion::Deny(_)) => "deny",
            Answer::Rewrite(_) => "rewrite",
            Answer::Note(_) => "note",
        }
    }
}

/// The stricter of two opinions; of two alike, the earlier.
pub(super) fn strictest(before: Option<HookOpinion>, new: HookOpinion) -> HookOpinion {
    let rank = |opinion: &HookOpinion| match opinion {
        HookOpinion::Allow(_) => 0,
        HookOpinion::Ask(_) => 1,
        HookOpinion::Deny(_) => 2,
    };
    match before {
        Some(before) if rank(&before) >= rank(&new) => before,
        _ => new,
    }
}
