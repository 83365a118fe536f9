//! Calls of one client side by side: each is a turn of its own, and still none starts beside an
//! earlier one that it conflicts with.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use gripper_runtime::Footprint;
use tokio::sync::oneshot;

/// Where calls wait until they may start.
pub(super) struct Gate {
    line: Mutex<Line>,
}

struct Line {
    /// In the order they came; those inside stand among them.
    calls: VecDeque<Standing>,
    inside: usize,
    limit: usize,
    next: u64,
}

struct Standing {
    number: u64,
    footprint: Footprint,
    /// How to let it in; `None` once it is.
    door: Option<oneshot::Sender<()>>,
}

/// A place in the line, and inside when its turn has come. Left by dropping it.
pub(super) struct Pass {
    gate: Arc<Gate>,
    number: u64,
}

impl Gate {
    /// Lets at most `limit` in at once.
    pub(super) fn new(limit: usize) -> Arc<Self> {
        let line = Line { calls: VecDeque::new(), inside: 0, limit: limit.max(1), next: 0 };
        Arc::new(Self { line: Mutex::new(line) })
    }

    /// Lets another number in from now on.
    pub(super) fn set_limit(&self, limit: usize) {
        let mut line = self.line();
        line.limit = limit.max(1);
        line.open();
    }

    /// Waits until nothing earlier stands in the way of a call that touches this.
    pub(super) async fn enter(self: &Arc<Self>, footprint: Footprint) -> Pass {
        let (door, opened) = oneshot::channel();
        let pass = {
            let mut line = self.line();
            let number = line.next;
            line.next += 1;
            line.calls.push_back(Standing { number, footprint, door: Some(door) });
            line.open();
            Pass { gate: self.clone(), number }
        };
        // The door is only dropped together with the line, which the pass keeps.
        opened.await.ok();
        pass
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    /// Lets in whoever may go.
    fn open(&mut self) {
        for at in 0..self.calls.len() {
            if self.inside >= self.limit {
                return;
            }
            let (earlier, rest) = self.calls.as_slices();
            let all = || earlier.iter().chain(rest);
            let Some(mine) = all().nth(at).filter(|call| call.door.is_some()) else { continue };
            if all().take(at).any(|other| other.footprint.conflicts(&mine.footprint)) {
                // Nothing passes one that wants to be alone.
                if mine.footprint.is_exclusive() {
                    return;
                }
                continue;
            }
            if let Some(door) = self.calls[at].door.take() {
                // Whoever does not wait any more leaves by itself.
                door.send(()).ok();
                self.inside += 1;
            }
        }
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        let mut line = self.gate.line();
        if let Some(at) = line.calls.iter().position(|call| call.number == self.number)
            && let Some(left) = line.calls.remove(at)
        {
            line.inside -= usize::from(left.door.is_none());
        }
        line.open();
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use gripper_runtime::{Access, Footprint};

    use super::Gate;

    #[test]
    fn readers_share_and_one_that_is_alone_keeps_its_place() {
        let gate = Gate::new(2);
        let reads = || Access::concurrency_safe().footprint().clone();
        let first = gate.enter(reads()).now_or_never().expect("nothing is before it");
        let mut alone = Box::pin(gate.enter(Footprint::exclusive()));
        assert!(alone.as_mut().now_or_never().is_none(), "the first is still inside");
        let mut behind = Box::pin(gate.enter(reads()));
        assert!(behind.as_mut().now_or_never().is_none(), "nothing overtakes one that wants to be alone");
        drop(first);
        let alone = alone.now_or_never().expect("now it is alone");
        assert!(behind.as_mut().now_or_never().is_none());
        drop(alone);
        let behind = behind.now_or_never().expect("its turn");
        let beside = gate.enter(reads()).now_or_never().expect("two fit");
        let mut third = Box::pin(gate.enter(reads()));
        assert!(third.as_mut().now_or_never().is_none(), "three do not");
        gate.set_limit(3);
        let third = third.now_or_never().expect("now they do");
        gate.set_limit(1);
        drop((behind, beside));
        let mut last = Box::pin(gate.enter(reads()));
        assert!(last.as_mut().now_or_never().is_none(), "one fits");
        drop(third);
        assert!(last.now_or_never().is_some());
    }

    #[test]
    fn one_that_gives_up_waiting_blocks_nobody() {
        let gate = Gate::new(8);
        let inside = gate.enter(Footprint::exclusive()).now_or_never().expect("it is the first");
        let mut waits = Box::pin(gate.enter(Footprint::exclusive()));
        assert!(waits.as_mut().now_or_never().is_none());
        drop(waits);
        drop(inside);
        assert!(gate.enter(Footprint::exclusive()).now_or_never().is_some());
    }
}
