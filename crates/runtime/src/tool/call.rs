//! What a tool is given besides its input. Services come through its constructor instead.

use std::{path::Path, sync::Arc};

use gripper_permissions::Policy;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::{
    access::Access,
    files::Files,
    place::{Located, Place},
    registry::Pool,
};

/// The context of one call.
pub struct Call {
    /// The call's id, as the model gave it.
    pub id: Arc<str>,
    /// The turn it belongs to.
    pub turn: Arc<str>,
    /// The session it belongs to.
    pub session: Arc<str>,
    /// Whose call it is.
    pub agent: Agent,
    /// Where it works.
    pub place: Arc<Place>,
    /// What it was decided under.
    pub policy: Arc<Policy>,
    /// The tools it was advertised with.
    pub pool: Arc<Pool>,
    /// Where to report progress.
    pub progress: ProgressSender,
    /// What the session knows of files, and the way to change them.
    pub files: Arc<Files>,
    /// Set when the call should stop.
    pub cancel: CancellationToken,
    /// What it was permitted to touch, paths with where they led then.
    pub access: Access,
    /// Somebody was asked and said yes.
    pub approved: bool,
}

impl Call {
    /// The working directory.
    pub fn cwd(&self) -> &Path {
        &self.place.cwd
    }

    /// A path as it was when the call was permitted: links that came since do not count.
    pub fn located(&self, path: &Path) -> Located {
        let written = self.place.absolute(path);
        let judged = self.access.paths().iter().find(|judged| judged.written == written);
        // A path that nobody judged is taken by its spelling, in which no link is followed.
        judged.cloned().unwrap_or_else(|| Located { real: written.clone(), written })
    }
}

/// Which agent calls, and how deep below the main one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// The agent's id; the main agent's is `main`.
    pub id: Arc<str>,
    /// What kind of agent it is; the main agent's is `main`.
    pub kind: Arc<str>,
    /// 0 for the main agent.
    pub depth: u8,
}

impl Agent {
    /// The agent a person talks to.
    pub fn main() -> Self {
        Self { id: "main".into(), kind: "main".into(), depth: 0 }
    }
}

/// How far a call is.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Progress {
    /// One line.
    pub message: String,
    /// How much is done, in whatever `total` counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub done: Option<f64>,
    /// How much there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<f64>,
}

/// Takes progress from a call to whoever watches the turn.
#[derive(Clone)]
pub struct ProgressSender(Arc<dyn ProgressSink>);

/// The other end of a [`ProgressSender`].
pub(crate) trait ProgressSink: Send + Sync {
    fn take(&self, progress: Progress);
}

impl ProgressSender {
    pub(crate) fn new(sink: Arc<dyn ProgressSink>) -> Self {
        Self(sink)
    }

    /// Reports. Cheap; intermediate reports may be dropped when the watcher is slow.
    pub fn report(&self, progress: Progress) {
        self.0.take(progress);
    }
}
