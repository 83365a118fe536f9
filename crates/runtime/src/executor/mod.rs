//! Runs the calls of a turn: at once where they do not get in each other's way, with results as
//! if they had run one by one.
//!
//! [`board`] is the pure middle: who may start, who must stop, whose result comes next. [`turn`]
//! is the rim: tasks, time, events.

mod batch;
mod board;
mod lane;
mod seal;
mod slot;
mod turn;

pub(crate) use lane::Lane;
pub use turn::Turn;

#[cfg(all(test, feature = "shuttle"))]
mod schedules;
