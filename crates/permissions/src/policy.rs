//! The immutable snapshot a decision is made from.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use serde::Serialize;

use crate::{
    Mode, Rule, RuleList, Scope, Source,
    index::Index,
    rule::{Anchors, Pattern},
    sensitive::SensitivePaths,
};

/// A rule and where it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourcedRule {
    /// The rule.
    pub rule: Rule,
    /// Where it was written.
    pub source: Source,
    /// What it was written for, checked when it is loaded.
    #[serde(skip_serializing_if = "Examples::is_empty")]
    pub examples: Examples,
}

/// Calls that a rule must fit, and calls it must not.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Examples {
    /// These it must.
    #[serde(rename = "match")]
    pub fits: Vec<String>,
    /// These it must not.
    pub not_match: Vec<String>,
}

impl Examples {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.fits.is_empty() && self.not_match.is_empty()
    }
}

/// The three lists. Inside a list order never matters.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Rules {
    allow: Vec<SourcedRule>,
    ask: Vec<SourcedRule>,
    deny: Vec<SourcedRule>,
    #[serde(skip)]
    prepared: Prepared,
}

/// The matchers, made when they are first needed. They follow from the rest, so they are no part
/// of what makes two policies equal.
#[derive(Debug, Clone, Default)]
struct Prepared(OnceLock<Arc<Index>>);

impl PartialEq for Prepared {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Prepared {}

impl Rules {
    /// Adds a rule.
    pub fn add(&mut self, list: RuleList, rule: Rule, source: Source) {
        self.add_with_examples(list, rule, source, Examples::default());
    }

    /// Adds a rule and what it was written for.
    pub fn add_with_examples(&mut self, list: RuleList, rule: Rule, source: Source, examples: Examples) {
        self.prepared = Prepared::default();
        self.list_mut(list).push(SourcedRule { rule, source, examples });
    }

    /// Keeps the rules that `keep` wants.
    pub fn retain(&mut self, keep: impl Fn(RuleList, &SourcedRule) -> bool) {
        self.prepared = Prepared::default();
        for list in RuleList::ALL {
            self.list_mut(list).retain(|rule| keep(list, rule));
        }
    }

    /// The rules of one list, as they were added.
    pub fn list(&self, list: RuleList) -> &[SourcedRule] {
        match list {
            RuleList::Allow => &self.allow,
            RuleList::Ask => &self.ask,
            RuleList::Deny => &self.deny,
        }
    }

    fn list_mut(&mut self, list: RuleList) -> &mut Vec<SourcedRule> {
        match list {
            RuleList::Allow => &mut self.allow,
            RuleList::Ask => &mut self.ask,
            RuleList::Deny => &mut self.deny,
        }
    }
}

/// Facts about this run that narrow or widen what may be decided.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Flags {
    /// Managed policy, or being root outside a sandbox, took the bypass mode away.
    pub bypass_unavailable: bool,
    /// Commands that only read run where sensitive files are hidden from them.
    pub confined: bool,
    /// What becomes of commands whose text deceives.
    pub deceptive: Deceptive,
    /// Commands that only query the network are allowed (`permissions.networkReads`).
    pub network_reads: bool,
    /// Names that differ in case only are one file here.
    pub fold_case: bool,
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
    /// What the person adds to the secret paths, or takes from them.
    pub sensitive: SensitivePaths,
    /// Folders that hold our own records, which nothing may write.
    pub protected: Vec<PathBuf>,
    /// Facts about this run.
    pub flags: Flags,
}

/// The tool by whose name commands are known to rules and hooks, whichever tool runs them.
pub const COMMAND_TOOL: &str = "Bash";

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
            sensitive: SensitivePaths::default(),
            protected: Vec::new(),
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
    pub fn blanket_deny(&self, name: &str, server: Option<&str>) -> Option<&SourcedRule> {
        let whole = |sourced: &&SourcedRule| match &*sourced.rule.pattern {
            Pattern::AnyTool => true,
            Pattern::Tool(tool) => tool == name,
            Pattern::Command(command) => command.is_any() && name == COMMAND_TOOL,
            Pattern::Path { edit, pattern: None, .. } => name == if *edit { "Edit" } else { "Read" },
            pattern => pattern.fits_mcp(name, server),
        };
        strongest(self.rules.deny.iter().filter(whole))
    }

    /// Whether a rule counts at all.
    pub fn counts(&self, list: RuleList, sourced: &SourcedRule) -> bool {
        self.set_aside(list, sourced).is_none()
    }

    /// Why a rule does not count, if it does not: those of a folder that nobody vouches for cannot
    /// allow, and neither can one that would leave nothing to judge.
    pub fn set_aside(&self, list: RuleList, sourced: &SourcedRule) -> Option<&'static str> {
        if list != RuleList::Allow {
            return None;
        }
        let empty = match &*sourced.rule.pattern {
            Pattern::AnyTool | Pattern::Param { .. } => true,
            Pattern::Mcp { server, .. } => server.contains('*'),
            Pattern::Path { misnamed, .. } => *misnamed,
            _ => false,
        };
        if !self.trusted && matches!(sourced.source.scope, Scope::Project | Scope::Local) {
            Some("the folder is not trusted (gripper trust)")
        } else if self.mode == Mode::Auto && sourced.rule.is_broad() {
            Some("the mode auto sets broad allow rules aside")
        } else {
            empty.then_some("it grants nothing (gripper rules lint says why)")
        }
    }

    /// The matchers for this policy. Rules that do not count are left out.
    pub(crate) fn index(&self) -> Arc<Index> {
        let index = self.rules.prepared.0.get_or_init(|| Arc::new(Index::new(self, IndexKey::of(self))));
        // Fields are public: someone may have changed one since the matchers were made.
        if index.key().is_of(self) { index.clone() } else { Arc::new(Index::new(self, IndexKey::of(self))) }
    }
}

/// What the matchers depend on besides the rules.
#[derive(Debug)]
pub(crate) struct IndexKey {
    pub anchors: Anchors,
    trusted: bool,
    auto: bool,
    pub sensitive: SensitivePaths,
}

impl IndexKey {
    fn of(policy: &Policy) -> Self {
        Self {
            anchors: Anchors {
                root: policy.root.clone(),
                home: policy.home.clone(),
                directories: policy.directories.clone(),
                fold_case: policy.flags.fold_case,
            },
            trusted: policy.trusted,
            auto: policy.mode == Mode::Auto,
            sensitive: policy.sensitive.clone(),
        }
    }

    fn is_of(&self, policy: &Policy) -> bool {
        self.anchors.root == policy.root
            && self.anchors.home == policy.home
            && self.anchors.directories == policy.directories
            && self.anchors.fold_case == policy.flags.fold_case
            && self.trusted == policy.trusted
            && self.auto == (policy.mode == Mode::Auto)
            && self.sensitive == policy.sensitive
    }
}

/// Of several rules the one from the strongest source speaks, so that order does not matter.
pub(crate) fn strongest<'r>(rules: impl Iterator<Item = &'r SourcedRule>) -> Option<&'r SourcedRule> {
    rules.min_by_key(|rule| rank(rule))
}

/// Small for strong sources and short rules.
pub(crate) fn rank(rule: &SourcedRule) -> (Scope, usize, &str, &Option<PathBuf>, Option<u32>) {
    let text = rule.rule.text();
    (rule.source.scope, text.len(), text, &rule.source.file, rule.source.line)
}
