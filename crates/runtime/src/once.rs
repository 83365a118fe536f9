//! The resolve-once cell: many may try to settle an outcome, exactly one does.
//!
//! Completion races cancel, a person races a classifier, an answer races an abort. Each side must
//! [`claim`](ResolveOnce::claim) first; whoever comes second gets nothing and drops what it had.

use std::{
    future::poll_fn,
    task::{Poll, Waker},
};

use crate::sync::{Mutex, lock};

/// An outcome that is settled at most once.
pub struct ResolveOnce<T> {
    state: Mutex<State<T>>,
}

enum State<T> {
    Open(Option<Waker>),
    Claimed(Option<Waker>),
    Settled(T),
    Taken,
}

/// The right to settle. Dropped unused (its holder failed), the cell opens again for others.
#[must_use = "a claim that is not resolved reopens the cell"]
pub struct Claim<'a, T> {
    cell: &'a ResolveOnce<T>,
    used: bool,
}

impl<T> Default for ResolveOnce<T> {
    fn default() -> Self {
        Self { state: Mutex::new(State::Open(None)) }
    }
}

impl<T> ResolveOnce<T> {
    /// An open cell.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the right to settle, unless someone has it or has used it.
    pub fn claim(&self) -> Option<Claim<'_, T>> {
        let mut state = lock(&self.state);
        match &mut *state {
            State::Open(waker) => {
                *state = State::Claimed(waker.take());
                Some(Claim { cell: self, used: false })
            }
            State::Claimed(_) | State::Settled(_) | State::Taken => None,
        }
    }

    /// Claims and settles in one step. False when it was too late.
    pub fn resolve(&self, value: T) -> bool {
        match self.claim() {
            Some(claim) => {
                claim.resolve(value);
                true
            }
            None => false,
        }
    }

    /// Whether the outcome stands.
    pub fn is_settled(&self) -> bool {
        matches!(*lock(&self.state), State::Settled(_) | State::Taken)
    }

    /// Looks at the outcome, if it stands and was not taken.
    pub fn peek<R>(&self, look: impl FnOnce(&T) -> R) -> Option<R> {
        match &*lock(&self.state) {
            State::Settled(value) => Some(look(value)),
            State::Open(_) | State::Claimed(_) | State::Taken => None,
        }
    }

    /// Takes the outcome out, if it stands and was not taken before.
    pub fn take(&self) -> Option<T> {
        let mut state = lock(&self.state);
        match std::mem::replace(&mut *state, State::Taken) {
            State::Settled(value) => Some(value),
            other => {
                *state = other;
                None
            }
        }
    }

    /// Waits for the outcome and takes it. Meant for one waiter.
    pub async fn wait(&self) -> T {
        poll_fn(|context| {
            if let Some(value) = self.take() {
                return Poll::Ready(value);
            }
            let mut state = lock(&self.state);
            match &mut *state {
                State::Open(waker) | State::Claimed(waker) => *waker = Some(context.waker().clone()),
                // Settled between the two locks: come again at once.
                State::Settled(_) => context.waker().wake_by_ref(),
                State::Taken => {}
            }
            Poll::Pending
        })
        .await
    }
}

impl<T> Claim<'_, T> {
    /// Settles the outcome and wakes the waiter.
    pub fn resolve(mut self, value: T) {
        self.used = true;
        let mut state = lock(&self.cell.state);
        if let State::Claimed(Some(waker)) = std::mem::replace(&mut *state, State::Settled(value)) {
            drop(state);
            waker.wake();
        }
    }
}

impl<T> Drop for Claim<'_, T> {
    fn drop(&mut self) {
        if self.used {
            return;
        }
        let mut state = lock(&self.cell.state);
        if let State::Claimed(waker) = &mut *state {
            *state = State::Open(waker.take());
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::ResolveOnce;

    #[test]
    fn the_second_claim_gets_nothing() {
        let cell = ResolveOnce::new();
        let first = cell.claim().unwrap();
        assert!(cell.claim().is_none());
        first.resolve(1);
        assert!(!cell.resolve(2));
        assert_eq!(cell.take(), Some(1));
        assert_eq!(cell.take(), None);
        assert!(cell.is_settled());
    }

    #[test]
    fn a_dropped_claim_reopens() {
        let cell = ResolveOnce::new();
        drop(cell.claim());
        assert!(cell.resolve(3));
    }

    #[tokio::test]
    async fn waiting_wakes_up() {
        let cell = std::sync::Arc::new(ResolveOnce::new());
        let other = cell.clone();
        let waiter = tokio::spawn(async move { other.wait().await });
        tokio::task::yield_now().await;
        assert!(cell.resolve(7));
        assert_eq!(waiter.await.unwrap(), 7);
    }
}
