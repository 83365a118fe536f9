//! How is a call run?
//!
//! A [`Toolbox`] holds the tools, the policy and the state of a session; a [`Turn`] takes the
//! calls of one assistant message and gives back events at once and results in order. Every call
//! of every front end goes down the same [`pipeline`].
//!
//! ```
//! use gripper_permissions::Policy;
//! use gripper_runtime::{CallRequest, Event, Registry, Toolbox};
//! use serde_json::json;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! let toolbox = Toolbox::builder(Registry::default(), Policy::new("/project")).build();
//! let turn = toolbox.turn();
//! turn.submit(CallRequest::new("c1", "Raed", json!({"file_path": "/project/a.txt"})));
//! turn.close();
//! while let Some(event) = turn.next().await {
//!     if let Event::Result(result) = event {
//!         assert_eq!(result.error_code.unwrap().name(), "unknown_tool");
//!     }
//! }
//! # });
//! ```

mod access;
pub mod approve;
pub mod audit;
pub mod environment;
mod event;
mod executor;
pub mod files;
pub mod front_matter;
mod guard;
pub mod hooks;
mod once;
pub mod pipeline;
mod place;
pub mod prompts;
mod recorder;
pub mod redact;
mod registry;
pub mod results;
pub mod schema;
pub mod search_index;
pub mod settings;
mod sync;
pub mod tool;
mod toolbox;

pub use access::{Access, Footprint, Resource, Use};
/// The decision engine, for tools that have an opinion and hosts that make policies.
pub use gripper_permissions as permissions;

pub use event::{Event, FinishedTask, Observer};
pub use executor::Turn;
pub use guard::GuardLimits;
pub use once::{Claim, ResolveOnce};
pub use pipeline::{CallRequest, CallResult, preview};
pub use place::{Located, Place};
pub use recorder::Recorder;
pub use registry::{
    Absence, Announcement, BadDeferral, Deferral, Pool, Registry, RegistryError, SubAgent, Viewer,
    assemble_pool, in_both, near_names,
};
pub use settings::{Settings, SiblingCancel};
pub use tool::{Block, Call, DynTool, ErrorCode, Facts, Tool, ToolError, ToolOutput, erase};
pub use toolbox::{Child, Toolbox, ToolboxBuilder};
