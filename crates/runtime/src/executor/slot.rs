//! One call on the board.

use std::sync::Arc;

use futures::future::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    access::{Access, Footprint},
    guard::Key,
    once::ResolveOnce,
    pipeline::{Outcome, synthetic},
    tool::{ErrorCode, Interrupt, ToolError},
};

/// What the board needs to know of a call.
pub(crate) struct Entry {
    pub(crate) call_id: Arc<str>,
    pub(crate) tool: Arc<str>,
    /// What it touches.
    pub(crate) footprint: Footprint,
    /// What the model's own input said it would touch. Whether an earlier failure takes the call
    /// along is judged by this: hooks may not have run by then, and that must make no difference.
    pub(crate) declared: Footprint,
    /// Hooks may still change what it touches: later calls wait until they have run.
    pub(crate) unsettled: bool,
    pub(crate) read_only: bool,
    pub(crate) interrupt: Interrupt,
    pub(crate) failure_spreads: bool,
    /// For the loop guard.
    pub(crate) key: Key,
    /// Repeats a change that failed, or whose result is not out: starts only when every earlier
    /// result is, or what the loop guard says of it would be luck.
    pub(crate) twin: bool,
}

/// One call on the board, `J` being what it takes to run it.
pub(crate) struct Slot<J> {
    pub(crate) entry: Entry,
    pub(super) job: Option<J>,
    pub(super) phase: Phase,
    pub(super) outcome: ResolveOnce<Outcome>,
    pub(crate) cancel: CancellationToken,
    pub(super) started: Option<Instant>,
    pub(super) deadline: Option<Instant>,
    /// The tool itself has begun.
    pub(super) begun: bool,
    pub(crate) abort: Option<AbortHandle>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Queued,
    Executing,
    /// Executing, but set aside: an approver thinks, or earlier calls still use what it touches.
    Waiting,
    Ended,
}

/// Why the whole turn is being stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stop {
    Cancel,
    Interrupt,
    Discard,
}

/// What came of saying what a call touches after all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Settled {
    /// It may go on.
    Free,
    /// It must wait, and try again whenever a call ends.
    Wait,
    /// A later call has already begun with what it now wants to touch.
    TooLate,
}

impl Entry {
    pub(super) fn touch(&mut self, access: &Access) {
        self.footprint = access.footprint().clone();
        self.read_only = access.read_only();
        self.interrupt = access.interrupt(self.interrupt);
    }
}

impl<J> Slot<J> {
    pub(super) fn synthetic(&self, error: ToolError) -> Outcome {
        synthetic(self.entry.call_id.clone(), self.entry.tool.clone(), error)
    }

    pub(super) fn due(&self) -> Option<Instant> {
        if self.outcome.is_settled() { None } else { self.deadline }
    }

    /// Whether it works, or has worked, with what it touches, so that nothing can come before it.
    pub(super) fn has_its_place(&self) -> bool {
        self.begun || (self.phase == Phase::Executing && !self.entry.unsettled)
    }

    /// Replaces a finished read's outcome: one by one, it would never have been started. What
    /// changed something keeps its result, which is the truth.
    pub(super) fn take_back(&mut self, error: ToolError) {
        if !self.entry.footprint.writes() && self.outcome.take().is_some() {
            self.outcome = ResolveOnce::new();
            let outcome = self.synthetic(error);
            self.outcome.resolve(outcome);
        }
    }
}

impl Stop {
    pub(super) fn error(self) -> ToolError {
        let (code, message) = match self {
            Stop::Cancel => (ErrorCode::Cancelled, "the turn was stopped before this call finished"),
            Stop::Interrupt => (ErrorCode::Interrupted, "the user interrupted before this call finished"),
            Stop::Discard => {
                (ErrorCode::Discarded, "the model's answer broke off and will be asked for again")
            }
        };
        ToolError::new(code, message)
    }
}
