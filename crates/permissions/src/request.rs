//! What a decision is asked about.

use std::{borrow::Cow, path::PathBuf};

use serde::Serialize;
use serde_json::Value;

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
    /// It may be a folder that is removed or replaced with all that is in it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub whole_folder: bool,
    /// The wildcards that stand for the files, of which the path is the folder where they begin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pattern: Option<String>,
}

impl PathUse {
    /// A file that is read or written as a whole.
    pub fn new(written: impl Into<PathBuf>, real: impl Into<PathBuf>, write: bool) -> Self {
        Self {
            written: written.into(),
            real: real.into(),
            write,
            names_only: false,
            whole_folder: false,
            pattern: None,
        }
    }

    /// Whether this is the use of a path or pattern that a command spells so.
    pub(crate) fn spells(&self, text: &str) -> bool {
        match &self.pattern {
            Some(pattern) => pattern == text,
            None => self.written.as_os_str() == text,
        }
    }

    /// Both identities.
    pub(crate) fn both(&self) -> [&PathBuf; 2] {
        [&self.written, &self.real]
    }
}

/// What rules and checks look at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// A file or folder.
    Path(PathUse),
    /// A command line.
    Command(CommandUse),
    /// A page on the network.
    Url(String),
    /// The kind of a sub-agent, or the name of a skill.
    Name(String),
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
    /// The MCP server it belongs to.
    pub server: Option<&'a str>,
    /// Further names of a server's tool, by which rules may mean it.
    pub also: &'a [Cow<'static, str>],
    /// The input, for rules about single values.
    pub input: Option<&'a Value>,
    /// Everything the call would touch.
    pub subjects: Vec<Subject>,
    /// Nothing outside the session would change.
    pub read_only: bool,
    /// It runs code that nobody takes apart, so that no rule about commands or files can be held against it.
    pub opaque: bool,
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
    /// The files and folders among the subjects.
    pub fn paths(&self) -> impl Iterator<Item = &PathUse> {
        self.subjects.iter().filter_map(|subject| match subject {
            Subject::Path(path) => Some(path),
            _ => None,
        })
    }

    /// A request nothing is known about: not read-only, no subjects, no opinion.
    pub fn new(tool: &'a str) -> Self {
        Self {
            tool,
            server: None,
            also: &[],
            input: None,
            subjects: Vec::new(),
            read_only: false,
            opaque: false,
            needs_person: false,
            edits_files: false,
            opinion: Opinion::None,
            hook: None,
        }
    }
}
