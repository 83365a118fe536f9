//! What tests need: a temporary workspace with a home of its own, the real binary, stand-in
//! tools, a scripted approver, filters that make output repeatable, and the tidy test.
//!
//! A dev-dependency only.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

mod approver;
pub mod bench;
mod binary;
pub mod cases;
pub mod filters;
pub mod model_server;
mod probe;
pub mod tidy;
mod workspace;

use std::sync::Arc;

use gripper_runtime::{
    CallRequest, CallResult, DynTool, Event, Registry, Settings, Toolbox, ToolboxBuilder, Turn,
    files::{
        Stamp,
        ledger::{Content, Evidence, Seen as FileShown},
    },
    permissions::Policy,
    tool::SessionEffect,
};

pub use approver::{RecordingApprover, Seen};
pub use binary::{Binary, Ran};
pub use probe::{Probe, World, text};
pub use workspace::{Workspace, mcp_peer, registry_sources};

/// A toolbox of these tools, being prepared, for a project at `/project`.
pub fn toolbox_of(tools: impl IntoIterator<Item = Arc<dyn DynTool>>) -> ToolboxBuilder {
    let mut registry = Registry::default();
    for tool in tools {
        registry.register(tool).expect("tools with different names");
    }
    Toolbox::builder(registry, Policy::new("/project"))
}

/// The usual settings, with one thing changed.
pub fn settings(change: impl FnOnce(&mut Settings)) -> Settings {
    let mut settings = Settings::default();
    change(&mut settings);
    settings
}

/// Runs calls as one turn to its end and gives the results in the order they came out.
pub async fn run_all(
    toolbox: &Arc<Toolbox>,
    calls: impl IntoIterator<Item = CallRequest>,
) -> Vec<Arc<CallResult>> {
    let turn = toolbox.turn();
    for call in calls {
        turn.submit(call);
    }
    turn.close();
    results_of(&turn).await
}

/// The effect of having been shown a whole file.
pub fn file_seen(path: &str) -> SessionEffect {
    SessionEffect::FileSeen(Box::new(FileShown {
        path: path.into(),
        stamp: Stamp::default(),
        content: Content::Unknown,
        lines: None,
        evidence: Evidence::Read,
    }))
}

/// Waits for the turn to end and gives its results in the order they came out.
pub async fn results_of(turn: &Turn) -> Vec<Arc<CallResult>> {
    let mut results = Vec::new();
    while let Some(event) = turn.next().await {
        if let Event::Result(result) = event {
            results.push(result);
        }
    }
    results
}
