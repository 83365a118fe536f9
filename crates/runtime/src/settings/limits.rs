//! What can be set about running calls.

use std::time::Duration;

use crate::{guard::GuardLimits, hooks::RewriteTrust};

/// Limits and choices of the pipeline and the executor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How many calls run at once.
    pub max_concurrency: usize,
    /// Which calls a failing command takes with it.
    pub sibling_cancel: SiblingCancel,
    /// Who may rewrite input.
    pub rewrite_trust: RewriteTrust,
    /// When the loop guard speaks.
    pub guard: GuardLimits,
    /// How long an approver has to answer.
    pub approval_limit: Duration,
    /// How long the hooks around one call have together.
    pub hook_limit: Duration,
    /// How long a stopped tool has to wind down before it is dropped.
    pub stop_grace: Duration,
    /// Largest input of a call, in bytes of JSON.
    pub input_limit: usize,
    /// Characters that the results of one turn may have together.
    pub turn_budget: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            max_concurrency: 10,
            sibling_cancel: SiblingCancel::default(),
            rewrite_trust: RewriteTrust::default(),
            guard: GuardLimits::default(),
            approval_limit: Duration::from_secs(30 * 60),
            hook_limit: Duration::from_secs(10 * 60),
            stop_grace: Duration::from_secs(2),
            input_limit: 4 * 1024 * 1024,
            turn_budget: 200_000,
        }
    }
}

/// Which calls of a turn a failing command takes with it, of those behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SiblingCancel {
    /// Those that conflict with it, and other commands.
    #[default]
    Conflicting,
    /// All.
    All,
    /// None.
    Never,
}
