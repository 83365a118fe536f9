//! What runs around calls and at the turning points of a session.
//!
//! The pipeline knows only the [`Hooks`] trait. [`HookRunner`] is the one behind settings files: it
//! runs commands, posts to addresses, calls tools of servers and asks models, by the contract in `docs/hooks.md`. [`HookSet`] holds
//! hooks written in Rust.

pub mod config;
mod contract;
mod health;
mod http;
mod live;
mod model_hook;
mod runner;
mod set;
mod tool_hook;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use gripper_permissions::{HookOpinion, Policy, Request};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{pipeline::CallResult, place::Place, tool::Agent};

pub(crate) use contract::{call_fields, fields};
pub use health::ailment;
pub use live::LiveHooks;
pub use model_hook::{Judge, Judgement, Question};
pub use runner::{CallTool, HookRunner, Rehearsal, Surroundings};
pub use set::{Answer, HookSet};

/// A moment at which hooks run. Firing another one takes a line here, a line in [`FIRED`](Self::FIRED)
/// and a call of `Toolbox::fire`, `notify` or `turning_point` where it happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookEvent(&'static str);

impl HookEvent {
    /// Before the permission of a call is decided.
    pub const PRE_TOOL_USE: Self = Self("PreToolUse");
    /// A question is about to go to the approver.
    pub const PERMISSION_REQUEST: Self = Self("PermissionRequest");
    /// A call was not permitted.
    pub const PERMISSION_DENIED: Self = Self("PermissionDenied");
    /// After a call that worked.
    pub const POST_TOOL_USE: Self = Self("PostToolUse");
    /// After a call that failed.
    pub const POST_TOOL_USE_FAILURE: Self = Self("PostToolUseFailure");
    /// Every call of a turn has its result.
    pub const POST_TOOL_BATCH: Self = Self("PostToolBatch");
    /// A session begins.
    pub const SESSION_START: Self = Self("SessionStart");
    /// A session ends.
    pub const SESSION_END: Self = Self("SessionEnd");
    /// A person is waited for.
    pub const NOTIFICATION: Self = Self("Notification");
    /// Another policy is in force.
    pub const CONFIG_CHANGE: Self = Self("ConfigChange");
    /// Calls work in another directory now.
    pub const CWD_CHANGED: Self = Self("CwdChanged");
    /// A person has said something to the model.
    pub const USER_PROMPT_SUBMIT: Self = Self("UserPromptSubmit");
    /// The model believes that its work is done.
    pub const STOP: Self = Self("Stop");
    /// The work ended because the model could not be asked.
    pub const STOP_FAILURE: Self = Self("StopFailure");
    /// An agent starts another.
    pub const SUBAGENT_START: Self = Self("SubagentStart");
    /// An agent that another started believes that its work is done.
    pub const SUBAGENT_STOP: Self = Self("SubagentStop");
    /// A conversation is about to be made shorter.
    pub const PRE_COMPACT: Self = Self("PreCompact");
    /// A conversation was made shorter.
    pub const POST_COMPACT: Self = Self("PostCompact");
    /// Instructions of files were put before the model.
    pub const INSTRUCTIONS_LOADED: Self = Self("InstructionsLoaded");

    /// Every event that is fired.
    pub const FIRED: [Self; 19] = [
        Self::PRE_TOOL_USE,
        Self::PERMISSION_REQUEST,
        Self::PERMISSION_DENIED,
        Self::POST_TOOL_USE,
        Self::POST_TOOL_USE_FAILURE,
        Self::POST_TOOL_BATCH,
        Self::SESSION_START,
        Self::SESSION_END,
        Self::NOTIFICATION,
        Self::CONFIG_CHANGE,
        Self::CWD_CHANGED,
        Self::USER_PROMPT_SUBMIT,
        Self::STOP,
        Self::STOP_FAILURE,
        Self::SUBAGENT_START,
        Self::SUBAGENT_STOP,
        Self::PRE_COMPACT,
        Self::POST_COMPACT,
        Self::INSTRUCTIONS_LOADED,
    ];

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        self.0
    }

    /// The event that settings call `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::FIRED.into_iter().find(|event| event.0 == name)
    }
}

/// Where and for whom something happens.
#[derive(Debug, Clone, Copy)]
pub struct Scene<'a> {
    /// The session's id.
    pub session: &'a str,
    /// Which agent.
    pub agent: &'a Agent,
    /// The working directory.
    pub place: &'a Place,
    /// The policy in force.
    pub policy: &'a Policy,
}

/// A call before its permission is decided.
#[derive(Debug, Clone, Copy)]
pub struct BeforeCall<'a> {
    /// The call's id.
    pub call_id: &'a str,
    /// The input, repairs included.
    pub input: &'a Value,
    /// The call as rules see it.
    pub request: &'a Request<'a>,
    /// Where it happens.
    pub scene: Scene<'a>,
}

impl<'a> BeforeCall<'a> {
    /// The tool's name.
    pub fn tool(&self) -> &'a str {
        self.request.tool
    }
}

/// What hooks said before a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Before {
    /// Stop the call, with the message for the model.
    pub block: Option<String>,
    /// Their part in the decision.
    pub opinion: Option<HookOpinion>,
    /// Another input in place of the model's.
    pub input: Option<Rewrite>,
    /// Text added to the result.
    pub context: Vec<String>,
    /// Stop the whole session, with the reason for the person.
    pub stop: Option<String>,
    /// Which hooks ran.
    pub runs: Vec<HookRun>,
}

/// An input that a hook put in place of the model's.
#[derive(Debug, Clone, PartialEq)]
pub struct Rewrite {
    /// The new input.
    pub input: Value,
    /// Whether every hook that rewrote is managed policy.
    pub managed: bool,
}

/// What hooks said after a call, or when something else had happened.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct After {
    /// Why they object. A question is thereby answered with no.
    pub objections: Vec<String>,
    /// Whether one of them answered the question with yes.
    pub approved: bool,
    /// Text added to the result.
    pub context: Vec<String>,
    /// Another output in place of the tool's.
    pub output: Option<Value>,
    /// Stop the whole session, with the reason for the person.
    pub stop: Option<String>,
    /// Which hooks ran.
    pub runs: Vec<HookRun>,
}

/// Something that happened, other than a call itself.
#[derive(Debug, Clone)]
pub struct Occasion<'a> {
    /// What.
    pub event: HookEvent,
    /// What matchers look at; with nothing here, every matcher fits.
    pub subject: &'a str,
    /// What hooks are told beside the fields that all events have.
    pub fields: Map<String, Value>,
    /// The call it is about, if it is about one.
    pub request: Option<&'a Request<'a>>,
}

/// One hook that ran, for the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HookRun {
    /// Its name.
    pub name: Arc<str>,
    /// What it did, in a word or two; why it failed.
    pub outcome: String,
    /// Whether it failed: what it had to say is not known.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// Words for the person.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

impl HookRun {
    /// A run that went well.
    pub fn new(name: &Arc<str>, outcome: impl Into<String>) -> Self {
        Self { name: name.clone(), outcome: outcome.into(), failed: false, message: None }
    }
}

/// Whatever wants to see calls before and after.
pub trait Hooks: Send + Sync {
    /// Whether anything would run for this tool. A turn without hooks pays only for this.
    fn interested(&self, tool: &str) -> bool;
    /// Before the decision.
    fn before<'a>(&'a self, call: BeforeCall<'a>) -> BoxFuture<'a, Before>;
    /// After the call, whether it worked or not.
    fn after<'a>(&'a self, call: BeforeCall<'a>, result: &'a CallResult) -> BoxFuture<'a, After>;

    /// Whether anything would run at this event.
    fn listens(&self, _event: HookEvent) -> bool {
        false
    }

    /// Something happened, and what hooks say matters.
    fn fire<'a>(&'a self, _scene: Scene<'a>, _occasion: Occasion<'a>) -> BoxFuture<'a, After> {
        futures::future::ready(After::default()).boxed()
    }

    /// Something happened, and nobody waits for what hooks do about it.
    fn notify(&self, _scene: Scene<'_>, _occasion: Occasion<'_>) {}

    /// The session is over: ends what still runs, and tells how everything went that nobody waited for.
    fn close(&self) -> BoxFuture<'_, Vec<HookRun>> {
        futures::future::ready(Vec::new()).boxed()
    }
}

/// Who may put another input in place of the model's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RewriteTrust {
    /// Anyone; the new input is validated again.
    #[default]
    Revalidate,
    /// Managed hooks only; validated again too.
    PolicyOnly,
    /// Anyone, and the schema is not checked again.
    Trust,
}
