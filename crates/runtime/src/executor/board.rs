//! The pure middle of the executor: no tasks, no waiting, and the time is what the rim says it is.
//!
//! Rule: **a call starts when no earlier unfinished call conflicts with it** and fewer than the
//! limit are running. Results come out in the order the calls went in.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use futures::future::AbortHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::slot::{Entry, Phase, Settled, Slot, Stop};
use crate::{
    access::{Access, Footprint},
    guard::Key,
    once::ResolveOnce,
    pipeline::Outcome,
    settings::SiblingCancel,
    tool::{ErrorCode, Interrupt, ToolError},
};

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
    /// Calls whose outcome was settled since the rim last asked.
    settled: Vec<usize>,
    /// The time, as the rim last said.
    now: Instant,
}

impl<J> Board<J> {
    pub(crate) fn new(limit: usize, siblings: SiblingCancel) -> Self {
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
            settled: Vec::new(),
            now: Instant::now(),
        }
    }

    /// Says what time it is.
    pub(crate) fn set_time(&mut self, now: Instant) {
        self.now = now;
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
            cancel: CancellationToken::new(),
            started: None,
            deadline: None,
            begun: false,
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
                let now = self.now;
                let slot = self.slot(number)?;
                slot.phase = Phase::Executing;
                slot.started = Some(now);
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
        if mine.footprint.writes()
            && open.any(|&other| self.takes_along(&self.at(other).entry.footprint, mine))
        {
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

    /// Says what an executing call touches after all. While it waits it takes no running place,
    /// or earlier calls might never get one.
    pub(crate) fn settle(&mut self, number: usize, access: &Access) -> Settled {
        let begun_later = self.slots.iter().skip((number + 1).saturating_sub(self.first));
        if begun_later
            .filter(|slot| slot.has_its_place())
            .any(|slot| slot.entry.footprint.conflicts(access.footprint()))
        {
            return Settled::TooLate;
        }
        let Some(slot) = self.slot(number) else { return Settled::Free };
        slot.entry.unsettled = false;
        slot.entry.touch(access);
        let waiting = slot.phase == Phase::Waiting;
        if self.held_back(number) || (waiting && self.running >= self.limit) {
            self.set_aside(number);
            return Settled::Wait;
        }
        if let Some(slot) = self.slot(number).filter(|_| waiting) {
            slot.phase = Phase::Executing;
            self.running += 1;
        }
        Settled::Free
    }

    /// Takes an executing call's place away while it cannot go on. It comes back by
    /// [`settle`](Self::settle).
    pub(crate) fn set_aside(&mut self, number: usize) {
        if let Some(slot) = self.slot(number).filter(|slot| slot.phase == Phase::Executing) {
            slot.phase = Phase::Waiting;
            self.running -= 1;
        }
    }

    /// How many places are taken.
    pub(crate) fn running(&self) -> usize {
        self.running
    }

    /// The tool begins, and must be done by then.
    pub(crate) fn begin(&mut self, number: usize, deadline: Option<Instant>) {
        if let Some(slot) = self.slot(number) {
            (slot.begun, slot.deadline) = (true, deadline);
        }
    }

    /// The tool is done; what still follows is not its time.
    pub(crate) fn end_of_work(&mut self, number: usize) {
        if let Some(slot) = self.slot(number) {
            slot.deadline = None;
        }
    }

    /// Lets `look` say again what each queued call touches: a call that ran alone may have moved
    /// the working directory, or links.
    pub(crate) fn review_queue(&mut self, mut look: impl FnMut(&mut J) -> Option<Access>) {
        for &number in &self.queued {
            let slot = &mut self.slots[number - self.first];
            if let Some(access) = slot.job.as_mut().and_then(&mut look) {
                slot.entry.touch(&access);
                slot.entry.declared = access.footprint().clone();
            }
        }
    }

    /// Whether a call's outcome is still open.
    pub(crate) fn is_open(&self, number: usize) -> bool {
        number >= self.first && !self.at(number).outcome.is_settled()
    }

    /// The earliest moment at which a running call is out of time.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.active.iter().filter_map(|&number| self.at(number).due()).min()
    }

    /// Stops every call that is out of time.
    pub(crate) fn expire(&mut self) {
        let late: Vec<usize> = self
            .active
            .iter()
            .copied()
            .filter(|&number| self.at(number).due().is_some_and(|deadline| deadline <= self.now))
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
        if slot.outcome.resolve(outcome) {
            self.settled.push(number);
        }
        self.active.retain(|&other| other != number);
        self.running -= usize::from(was_running);
        self.spread_ready();
        self.drop_front();
    }

    /// Settles a call's outcome from outside and tells its task to stop. False when it was too late.
    fn stop(&mut self, number: usize, error: ToolError) -> bool {
        let now = self.now;
        let Some(slot) = self.slot(number) else { return false };
        let mut outcome = slot.synthetic(error);
        outcome.result.duration = slot.started.map_or(Duration::ZERO, |started| now - started);
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
        self.settled.push(number);
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
            SiblingCancel::Conflicting => entry.failure_spreads || entry.declared.conflicts(failed),
        }
    }

    /// Stops the whole turn. An interrupt leaves running calls alone that asked for it.
    pub(crate) fn stop_all(&mut self, stop: Stop) {
        // The first reason stays, except that an interrupt spares some calls, and a cancel or
        // discard after it means those too.
        let stop = match self.stopped {
            Some(before) if before != Stop::Interrupt => before,
            _ => stop,
        };
        self.stopped = Some(stop);
        for number in self.first..self.submitted() {
            let slot = self.at(number);
            let spared = stop == Stop::Interrupt && slot.entry.interrupt == Interrupt::Block && slot.begun;
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

    /// Outcomes settled since the last time, for those who want to know at once: the call, whether
    /// it failed, how long it took.
    pub(crate) fn take_settled(&mut self) -> Vec<(Arc<str>, bool, Duration)> {
        let settled = std::mem::take(&mut self.settled);
        let look = |number| {
            let slot = self.slots.get(usize::checked_sub(number, self.first)?)?;
            slot.outcome.peek(|outcome| {
                (slot.entry.call_id.clone(), outcome.result.is_error, outcome.result.duration)
            })
        };
        settled.into_iter().filter_map(look).collect()
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

fn sibling_error(call_id: &str, tool: &str) -> ToolError {
    ToolError::new(ErrorCode::SiblingFailed, format!("cancelled: parallel call {call_id} ({tool}) failed"))
}
