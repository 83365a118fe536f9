//! What agents cost that an agent has started.

use std::sync::{Arc, Mutex, PoisonError};

/// Where the agents that an agent has started put down what they cost, until it counts that as its own.
#[derive(Debug, Clone, Default)]
pub struct Till(Arc<Mutex<Money>>);

#[derive(Debug, Default)]
struct Money {
    /// What the agent itself has cost when it last counted.
    counted: f64,
    /// What is not counted yet.
    open: f64,
}

impl Till {
    fn with<T>(&self, look: impl FnOnce(&mut Money) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Another agent has cost so much.
    pub(crate) fn put(&self, dollars: f64) {
        self.with(|money| money.open += dollars);
    }

    /// Takes out what is not counted yet, for an agent that has cost `dollars` without it.
    pub(crate) fn settle(&self, dollars: f64) -> f64 {
        self.with(|money| {
            money.counted = dollars + money.open;
            std::mem::take(&mut money.open)
        })
    }

    /// Everything that the agent and those it started have cost so far.
    pub(crate) fn total(&self) -> f64 {
        self.with(|money| money.counted + money.open)
    }
}
