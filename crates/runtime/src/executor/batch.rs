//! What hooks are told when a turn has ended.

use serde_json::Value;

/// The event at the end of a turn.
#[derive(Default)]
pub(super) struct Batch {
    /// What hooks will be told; nothing is collected if none listens.
    pub(super) calls: Vec<Value>,
    pub(super) state: BatchState,
}

#[derive(Default, PartialEq)]
pub(super) enum BatchState {
    #[default]
    Open,
    Fired,
    Done,
}
