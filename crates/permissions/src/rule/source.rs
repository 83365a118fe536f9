//! Where rules come from and which list they stand in.

use std::{fmt, path::PathBuf};

use serde::Serialize;

/// Which list a rule stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleList {
    /// Never.
    Deny,
    /// Only with a yes.
    Ask,
    /// Go ahead.
    Allow,
}

impl RuleList {
    /// All three, the strictest first.
    pub const ALL: [RuleList; 3] = [RuleList::Deny, RuleList::Ask, RuleList::Allow];

    /// The word used in messages.
    pub fn name(self) -> &'static str {
        match self {
            RuleList::Deny => "deny",
            RuleList::Ask => "ask",
            RuleList::Allow => "allow",
        }
    }
}

/// How far a source of rules reaches, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// Set by whoever runs the machine.
    Managed,
    /// A flag of this run.
    CommandLine,
    /// Granted in this session.
    Session,
    /// This checkout only.
    Local,
    /// The project, shared.
    Project,
    /// The person's own settings.
    User,
}

impl Scope {
    /// From the name used in settings and batches.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "managed" => Scope::Managed,
            "cli" | "commandLine" => Scope::CommandLine,
            "session" => Scope::Session,
            "local" => Scope::Local,
            "project" => Scope::Project,
            "user" => Scope::User,
            _ => return None,
        })
    }

    /// The words used in messages.
    pub fn words(self) -> &'static str {
        match self {
            Scope::Managed => "managed policy",
            Scope::CommandLine => "command line",
            Scope::Session => "this session",
            Scope::Local => "local settings",
            Scope::Project => "project settings",
            Scope::User => "user settings",
        }
    }
}

/// Where a rule was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    /// How far it reaches.
    pub scope: Scope,
    /// The file, when there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The line in that file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl Source {
    /// A source without a file.
    pub fn of(scope: Scope) -> Self {
        Self { scope, file: None, line: None }
    }

    /// A flag of this run.
    pub fn command_line() -> Self {
        Self::of(Scope::CommandLine)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scope.words())?;
        if let Some(file) = &self.file {
            write!(f, ", {}", file.display())?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
            }
        }
        Ok(())
    }
}
