//! What a decision is asked about.

use std::{borrow::Cow, path::PathBuf};

use serde::Serialize;

use crate::CommandUse;

/// A path a call would touch, as written and as it resolves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathUse {
    /// Absolute, `.` and `..` taken out, links not followed.
    pub written: PathBuf,
    /// Where it really leads, links followed as far as the path exists.
    pub real: PathBuf,
    /// Whether it would be changed.
    pub write: bool,
    /// Whether only names and sizes are shown, no content.
    pub names_only: bool,
}

/// What rules and checks look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A file or folder.
    Path(PathUse),
    /// A command line.
    Command(CommandUse),
    /// A host on the network.
    Host(String),
}

/// What the tool itself thinks of the call. Never lowers what rules and checks say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Opinion {
    /// Nothing to say; the default.
    #[default]
    None,
    /// Harmless by construction, with the reason.
    Allow(Cow<'static, str>),
    /// A person must see it; `firm` asks cannot be lifted by allow rules or bypass.
    Ask {
        /// Why.
        reason: Cow<'static, str>,
        /// Whether nothing can lift it.
        firm: bool,
    },
    /// Must not be done, with the reason.
    Deny(Cow<'static, str>),
}

/// What the hooks before the call said, strictest answer first merged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HookOpinion {
    /// Go ahead, with the reason.
    Allow(String),
    /// Ask a person.
    Ask(String),
    /// Do not.
    Deny(String),
}

/// One call, as the decision sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request<'a> {
    /// The tool's name; aliases are resolved before.
    pub tool: &'a str,
    /// Everything the call would touch.
    pub subjects: Vec<Subject>,
    /// Nothing outside the session would change.
    pub read_only: bool,
    /// The call is a conversation with the person and needs one.
    pub needs_person: bool,
    /// The call only changes files, so that `acceptEdits` may wave it through.
    pub edits_files: bool,
    /// What the tool thinks.
    pub opinion: Opinion,
    /// What hooks said.
    pub hook: Option<HookOpinion>,
}

impl<'a> Request<'a> {
    /// A request nothing is known about: not read-only, no subjects, no opinion.
    pub fn new(tool: &'a str) -> Self {
        Self {
            tool,
            subjects: Vec::new(),
            read_only: false,
            needs_person: false,
            edits_files: false,
            opinion: Opinion::None,
            hook: None,
        }
    }
}
