//! The immutable snapshot a decision is made from.

use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::{Mode, Rule, RuleList, Source};

/// A rule and where it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourcedRule {
    /// The rule.
    pub rule: Rule,
    /// Where it was written.
    pub source: Source,
}

/// The three lists. Inside a list order never matters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Rules {
    allow: Vec<SourcedRule>,
    ask: Vec<SourcedRule>,
    deny: Vec<SourcedRule>,
}

impl Rules {
    /// Adds a rule.
    pub fn add(&mut self, list: RuleList, rule: Rule, source: Source) {
        let rules = match list {
            RuleList::Allow => &mut self.allow,
            RuleList::Ask => &mut self.ask,
            RuleList::Deny => &mut self.deny,
        };
        rules.push(SourcedRule { rule, source });
    }

    /// The rule of `list` that covers the tool `name`. Of several, the one from the strongest
    /// source speaks, so the answer does not depend on the order of the list.
    pub fn covering(&self, list: RuleList, name: &str) -> Option<&SourcedRule> {
        self.list(list)
            .iter()
            .filter(|sourced| sourced.rule.covers(name))
            .min_by_key(|sourced| (sourced.source.scope, sourced.rule.text().len(), sourced.rule.text()))
    }

    fn list(&self, list: RuleList) -> &[SourcedRule] {
        match list {
            RuleList::Allow => &self.allow,
            RuleList::Ask => &self.ask,
            RuleList::Deny => &self.deny,
        }
    }
}

/// Facts about this run that narrow what may be decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Flags {
    /// Managed policy, or being root outside a sandbox, took the bypass mode away.
    pub bypass_unavailable: bool,
    /// Commands that only read run where sensitive files are hidden from them.
    pub confined: bool,
    /// What becomes of commands whose text deceives.
    pub deceptive: Deceptive,
}

/// What becomes of commands whose text hides what they do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Deceptive {
    /// Refused, with the advice to write them plainly.
    #[default]
    Deny,
    /// Put to the approver.
    Ask,
}

/// Mode, rules and directories. A change makes a new snapshot; a call keeps the one it started with.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Policy {
    /// The mode in force.
    pub mode: Mode,
    /// The mode to return to when plan mode ends.
    pub mode_before_plan: Option<Mode>,
    /// Allow, ask and deny rules.
    pub rules: Rules,
    /// The directories calls may work in; the first is the one the session started in.
    pub directories: Vec<PathBuf>,
    /// The project's own folder: where rules that begin with `/` start.
    pub root: PathBuf,
    /// The person's home: where rules that begin with `~/` start.
    pub home: PathBuf,
    /// Whether the person vouches for the folder. If not, its allow rules do not count.
    pub trusted: bool,
    /// Facts about this run.
    pub flags: Flags,
}

impl Policy {
    /// A policy without rules, in default mode, for one working directory.
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        let directory = directory.into();
        Self {
            root: directory.clone(),
            home: PathBuf::from("/"),
            trusted: true,
            mode: Mode::Default,
            mode_before_plan: None,
            rules: Rules::default(),
            directories: vec![directory],
            flags: Flags::default(),
        }
    }

    /// The same policy in another mode. Entering plan remembers where to go back to; leaving forgets it.
    #[must_use]
    pub fn with_mode(&self, mode: Mode) -> Self {
        let mode_before_plan = match (self.mode, mode) {
            (Mode::Plan, Mode::Plan) => self.mode_before_plan,
            (before, Mode::Plan) => Some(before),
            _ => None,
        };
        Self { mode, mode_before_plan, ..self.clone() }
    }

    /// Whether `path` lies in one of the working directories. The path must be absolute and
    /// free of `..`; the comparison is by whole components.
    pub fn holds(&self, path: &Path) -> bool {
        self.directories.iter().any(|directory| path.starts_with(directory))
    }

    /// The deny rule that takes a tool away altogether.
    pub fn blanket_deny(&self, name: &str) -> Option<&SourcedRule> {
        self.rules.covering(RuleList::Deny, name)
    }
}
