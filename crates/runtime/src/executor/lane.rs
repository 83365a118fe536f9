//! What the pipeline sees of the executor: one call's own lane.

use std::{sync::Arc, time::Duration};

use tokio_util::sync::CancellationToken;

use super::{slot::Settled, turn::Core};
use crate::{
    access::Access,
    event::Event,
    guard::Key,
    registry::Pool,
    sync::lock,
    tool::{Progress, ProgressSink},
    toolbox::Toolbox,
};

/// A running call's way to its turn.
pub(crate) struct Lane(pub(super) Arc<Way>);

pub(super) struct Way {
    pub(super) core: Arc<Core>,
    pub(super) number: usize,
    pub(super) call_id: Arc<str>,
    pub(super) tool: Arc<str>,
    pub(super) key: Key,
    pub(super) cancel: CancellationToken,
}

impl Lane {
    pub(crate) fn toolbox(&self) -> &Toolbox {
        &self.0.core.toolbox
    }

    pub(crate) fn pool(&self) -> Arc<Pool> {
        self.0.core.pool()
    }

    pub(crate) fn turn_id(&self) -> &Arc<str> {
        &self.0.core.id
    }

    pub(crate) fn call_id(&self) -> &Arc<str> {
        &self.0.call_id
    }

    /// The tool's name as the model wrote it.
    pub(crate) fn tool(&self) -> &Arc<str> {
        &self.0.tool
    }

    /// Set when the call should stop. Its outcome is settled by then.
    pub(crate) fn cancel(&self) -> &CancellationToken {
        &self.0.cancel
    }

    /// How often this very call has failed, if that is reason not to try again.
    pub(crate) fn failed_too_often(&self) -> Option<u32> {
        lock(&self.0.core.toolbox.guard).refuses(self.0.key)
    }

    pub(crate) fn event(&self, event: Event) {
        self.0.core.post(event);
    }

    /// Where the tool's progress goes.
    pub(crate) fn reporter(&self) -> Arc<dyn ProgressSink> {
        self.0.clone()
    }

    /// The tool is about to run; its time counts from now.
    pub(crate) fn begin(&self, summary: String, limit: Duration) {
        let started = Event::Started { call_id: self.0.call_id.clone(), summary };
        self.0.core.begin(self.0.number, limit, started);
    }

    /// The tool is done; hooks and the rest are not its time.
    pub(crate) fn end_of_work(&self) {
        self.0.core.end_of_work(self.0.number);
    }

    /// Gives up the running place while an approver thinks; [`settle`](Self::settle) gets it back.
    pub(crate) fn set_aside(&self) {
        self.0.core.set_aside(self.0.number);
    }

    /// Says what the call touches after all, and waits until no earlier call is in the way. False
    /// when a later call has already begun with it, so that the order cannot be kept.
    pub(crate) async fn settle(&self, access: &Access) -> bool {
        loop {
            let ended = self.0.core.call_ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            match self.0.core.settle(self.0.number, access) {
                Settled::Free => return true,
                Settled::TooLate => return false,
                Settled::Wait => ended.await,
            }
        }
    }
}

impl ProgressSink for Way {
    fn take(&self, progress: Progress) {
        if !self.cancel.is_cancelled() {
            self.core.post(Event::Progress { call_id: self.call_id.clone(), progress });
        }
    }
}
