//! The pure middle of the executor: no tasks, no clock, no tokio but the cancellation token.
//!
//! Rule: **a call starts when no earlier unfinished call conflicts with it** and fewer than the
//! limit are running. Results come out in the order the calls went in.

use std::{collections::VecDeque, sync::Arc};

use futures::future::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    access::Footprint,
    guard::Key,
    once::ResolveOnce,
    pipeline::{Outcome, synthetic},
    settings::SiblingCancel,
    tool::{ErrorCode, Interrupt, ToolError},
};

/// What the board needs to know of a call.
pub(crate) struct Entry {
    pub(crate) call_id: Arc<str>,
    pub(crate) tool: Arc<str>,
    /// What it touches.
    pub(crate) footprint: Footprint,
    /// Hooks may still change what it touches: later calls wait until they have run.
    pub(crate) unsettled: bool,
    pub(crate) read_only: bool,
    pub(crate) interrupt: Interrupt,
    pub(crate) failure_spreads: bool,
    /// For the loop guard.
    pub(crate) key: Key,
    /// Repeats an earlier change whose result is not out: starts only when every earlier result
    /// is, or the loop guard would count by luck.
    pub(crate) twin: bool,
}

/// One call on the board, `J` being what it takes to run it.
pub(crate) struct Slot<J> {
    pub(crate) entry: Entry,
    job: Option<J>,
    phase: Phase,
    outcome: ResolveOnce<Outcome>,
    pub(crate) cancel: CancellationToken,
    deadline: Option<Instant>,
    pub(crate) abort: Option<AbortHandle>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Queued,
    Executing,
    /// Executing, but set aside until earlier calls are done with what it now touches.
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

/// A failure whose followers are pointless, remembered for calls still to come.
struct SpreadingFailure {
    call_id: Arc<str>,
    tool: Arc<str>,
    footprint: Footprint,
}

/// All calls of a turn that are not over.
pub(crate) struct Board<J> {
    slots: VecDeque<Slot<J>>,
    /// The number of the slot at the front; numbers never repeat.
    first: usize,
    /// The number of the next result to come out.
    next_result: usize,
    queued: VecDeque<usize>,
    active: Vec<usize>,
    running: usize,
    limit: usize,
    siblings: SiblingCancel,
    /// Calls whose failure takes others along and whose fate is open, in order.
    spreaders: VecDeque<usize>,
    failures: Vec<SpreadingFailure>,
    stopped: Option<Stop>,
    /// Running calls that were told to stop since the rim last asked.
    told: Vec<usize>,
    parent: CancellationToken,
}

impl<J> Board<J> {
    pub(crate) fn new(limit: usize, siblings: SiblingCancel, parent: CancellationToken) -> Self {
        Self {
            slots: VecDeque::new(),
            first: 0,
            next_result: 0,
            queued: VecDeque::new(),
            active: Vec::new(),
            running: 0,
            limit: limit.max(1),
            siblings,
            spreaders: VecDeque::new(),
            failures: Vec::new(),
            stopped: None,
            told: Vec::new(),
            parent,
        }
    }

    /// Takes a call in and gives it its number.
    pub(crate) fn push(&mut self, entry: Entry, job: J) -> usize {
        let number = self.first + self.slots.len();
        let sibling = self.failures.iter().find(|failure| self.takes_along(&failure.footprint, &entry));
        let error = match self.stopped {
            Some(stop) => Some(stop.error()),
            // Whether a call was submitted before or after the failure must make no difference.
            None => sibling.map(|failure| sibling_error(&failure.call_id, &failure.tool)),
        };
        if entry.failure_spreads {
            self.spreaders.push_back(number);
        }
        self.slots.push_back(Slot {
            entry,
            job: Some(job),
            phase: Phase::Queued,
            outcome: ResolveOnce::new(),
            cancel: self.parent.child_token(),
            deadline: None,
            abort: None,
        });
        self.queued.push_back(number);
        if let Some(error) = error {
            self.stop(number, error);
            self.spread_ready();
        }
        number
    }

    pub(crate) fn slot(&mut self, number: usize) -> Option<&mut Slot<J>> {
        self.slots.get_mut(number.checked_sub(self.first)?)
    }

    fn at(&self, number: usize) -> &Slot<J> {
        &self.slots[number - self.first]
    }

    /// How many calls have come in.
    pub(crate) fn submitted(&self) -> usize {
        self.first + self.slots.len()
    }

    /// Whether every result is out.
    pub(crate) fn all_out(&self) -> bool {
        self.next_result == self.submitted()
    }

    /// How many calls have no result out yet.
    pub(crate) fn outstanding(&self) -> usize {
        self.submitted() - self.next_result
    }

    /// The next call that may start now, marked as executing.
    pub(crate) fn start_next(&mut self) -> Option<(usize, J)> {
        if self.running >= self.limit {
            return None;
        }
        let mut position = 0;
        while let Some(&number) = self.queued.get(position) {
            if !self.held_back(number) {
                self.queued.remove(position);
                self.active.push(number);
                self.running += 1;
                let slot = self.slot(number)?;
                slot.phase = Phase::Executing;
                return slot.job.take().map(|job| (number, job));
            }
            if self.at(number).entry.footprint.is_exclusive() {
                return None;
            }
            position += 1;
        }
        None
    }

    /// Whether an earlier unfinished call conflicts with this one.
    fn held_back(&self, number: usize) -> bool {
        let mine = &self.at(number).entry;
        if mine.twin && self.next_result < number {
            return true;
        }
        // What an earlier failure would take along must not have changed anything by then.
        let mut open = self.spreaders.iter().filter(|&&other| other < number);
        if !mine.read_only && open.any(|&other| self.takes_along(&self.at(other).entry.footprint, mine)) {
            return true;
        }
        // The queue is in order, so what stands before this call is at its front.
        let queued = self.queued.iter().take_while(|&&other| other < number);
        let mut earlier = self.active.iter().filter(|&&other| other < number).chain(queued);
        earlier.any(|&other| {
            let other = &self.at(other).entry;
            other.unsettled || other.footprint.conflicts(&mine.footprint)
        })
    }

    /// Says what an executing call touches after all. False: it must wait, and try again
    /// whenever a call ends. While it waits it takes no running place, or earlier calls might
    /// never get one.
    pub(crate) fn settle(&mut self, number: usize, footprint: &Footprint) -> bool {
        let Some(slot) = self.slot(number) else { return true };
        slot.entry.unsettled = false;
        slot.entry.footprint = footprint.clone();
        let waiting = slot.phase == Phase::Waiting;
        let free = !self.held_back(number) && (!waiting || self.running < self.limit);
        match (waiting, free) {
            (false, false) => self.running -= 1,
            (true, true) => self.running += 1,
            _ => {}
        }
        if let Some(slot) = self.slot(number) {
            slot.phase = if free { Phase::Executing } else { Phase::Waiting };
        }
        free
    }

    pub(crate) fn set_deadline(&mut self, number: usize, deadline: Instant) {
        if let Some(slot) = self.slot(number) {
            slot.deadline = Some(deadline);
        }
    }

    /// The earliest moment at which a running call is out of time.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.active.iter().filter_map(|&number| self.at(number).due()).min()
    }

    /// Stops every call that is out of time.
    pub(crate) fn expire(&mut self, now: Instant) {
        let late: Vec<usize> = self
            .active
            .iter()
            .copied()
            .filter(|&number| self.at(number).due().is_some_and(|deadline| deadline <= now))
            .collect();
        for number in late {
            let tool = self.at(number).entry.tool.clone();
            let message = format!("{tool} was stopped: it did not answer within its time limit");
            self.stop(number, ToolError::new(ErrorCode::Timeout, message));
        }
        self.spread_ready();
    }

    /// The task of a call is over. Its outcome counts unless the call was stopped before.
    pub(crate) fn finish(&mut self, number: usize, outcome: Option<Outcome>) {
        let Some(slot) = self.slot(number) else { return };
        let was_running = slot.phase == Phase::Executing;
        slot.phase = Phase::Ended;
        let outcome = outcome.unwrap_or_else(|| slot.synthetic(Stop::Cancel.error()));
        slot.outcome.resolve(outcome);
        self.active.retain(|&other| other != number);
        self.running -= usize::from(was_running);
        self.spread_ready();
        self.drop_front();
    }

    /// Settles a call's outcome from outside and tells its task to stop. False when it was too late.
    fn stop(&mut self, number: usize, error: ToolError) -> bool {
        let Some(slot) = self.slot(number) else { return false };
        let outcome = slot.synthetic(error);
        if !slot.outcome.resolve(outcome) {
            return false;
        }
        slot.cancel.cancel();
        if slot.phase == Phase::Queued {
            slot.phase = Phase::Ended;
            slot.job = None;
            self.queued.retain(|&other| other != number);
        } else {
            self.told.push(number);
        }
        true
    }

    /// Lets failures take effect, in call order: whether a call counts as failed is only certain
    /// when no earlier failure can take it along.
    fn spread_ready(&mut self) {
        while let Some(&number) = self.spreaders.front() {
            let Some(failed) = self.at(number).outcome.peek(|outcome| outcome.spreads()) else { return };
            self.spreaders.pop_front();
            if failed {
                self.spread(number);
            }
        }
    }

    /// A command failed: the calls behind it that build on it are pointless.
    fn spread(&mut self, number: usize) {
        let entry = &self.at(number).entry;
        let failure = SpreadingFailure {
            call_id: entry.call_id.clone(),
            tool: entry.tool.clone(),
            footprint: entry.footprint.clone(),
        };
        for other in number + 1..self.submitted() {
            if !self.takes_along(&failure.footprint, &self.at(other).entry) {
                continue;
            }
            let error = sibling_error(&failure.call_id, &failure.tool);
            if !self.stop(other, error.clone())
                && let Some(slot) = self.slot(other)
            {
                slot.take_back(error);
            }
        }
        self.failures.push(failure);
    }

    fn takes_along(&self, failed: &Footprint, entry: &Entry) -> bool {
        match self.siblings {
            SiblingCancel::Never => false,
            SiblingCancel::All => true,
            SiblingCancel::Conflicting => entry.failure_spreads || entry.footprint.conflicts(failed),
        }
    }

    /// Stops the whole turn. An interrupt leaves running calls alone that asked for it.
    pub(crate) fn stop_all(&mut self, stop: Stop) {
        // The first reason stays: what was cancelled is not interrupted afterwards.
        let stop = *self.stopped.get_or_insert(stop);
        for number in self.first..self.submitted() {
            let slot = self.at(number);
            let spared = stop == Stop::Interrupt
                && slot.entry.interrupt == Interrupt::Block
                && slot.phase != Phase::Queued;
            if !spared {
                self.stop(number, stop.error());
            }
        }
        self.spread_ready();
    }

    /// Ways to drop the futures of running calls that were told to stop; each is given out once.
    pub(crate) fn take_told(&mut self) -> Vec<AbortHandle> {
        let told = std::mem::take(&mut self.told);
        told.into_iter().filter_map(|number| self.slot(number)?.abort.clone()).collect()
    }

    /// The next result in order, if it is there.
    pub(crate) fn next_outcome(&mut self) -> Option<(usize, Outcome)> {
        let number = self.next_result;
        let outcome = self.slot(number)?.outcome.take()?;
        self.next_result += 1;
        Some((number, outcome))
    }

    /// Forgets calls at the front that are over in every sense, so that a long turn stays small.
    pub(crate) fn drop_front(&mut self) {
        while self.first < self.next_result
            && self.slots.front().is_some_and(|slot| slot.phase == Phase::Ended)
        {
            self.slots.pop_front();
            self.first += 1;
        }
    }

    /// Whether an earlier call of this turn, whose result is not out, is the same call.
    pub(crate) fn repeats(&self, key: Key) -> bool {
        (self.next_result.max(self.first)..self.submitted()).any(|number| self.at(number).entry.key == key)
    }

    /// Sizes of the results that wait behind the next one, for sharing the turn's budget.
    pub(crate) fn waiting_sizes(&self) -> Vec<usize> {
        (self.next_result.max(self.first)..self.submitted())
            .filter_map(|number| self.at(number).outcome.peek(|outcome| outcome.result.chars()))
            .collect()
    }
}

impl<J> Slot<J> {
    fn synthetic(&self, error: ToolError) -> Outcome {
        synthetic(self.entry.call_id.clone(), self.entry.tool.clone(), error)
    }

    fn due(&self) -> Option<Instant> {
        if self.outcome.is_settled() { None } else { self.deadline }
    }

    /// Replaces a finished read's outcome: one by one, it would never have been started. What
    /// changed something keeps its result, which is the truth.
    fn take_back(&mut self, error: ToolError) {
        if self.entry.read_only && self.outcome.take().is_some() {
            self.outcome = ResolveOnce::new();
            let outcome = self.synthetic(error);
            self.outcome.resolve(outcome);
        }
    }
}

impl Stop {
    fn error(self) -> ToolError {
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

fn sibling_error(call_id: &str, tool: &str) -> ToolError {
    ToolError::new(ErrorCode::SiblingFailed, format!("cancelled: parallel call {call_id} ({tool}) failed"))
}
