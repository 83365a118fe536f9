//! The tidy test: house rules that the compiler and clippy do not know, checked by `cargo test`.
//!
//! [`check`] reads the repository once and runs every rule over it, so that one run names all violations,
//! each with its place and what to do about it. The rules, limits and tables are data at the top of each file
//! of this folder: `sizes` (functions, files, structs, inline tests), `arrows` (which crate may depend on
//! which), `reach` (pure crates, and paths reserved for one place), `leftovers` (unfinished or switched-off
//! code), `layout` (tool folders, required files, the index of decisions) and `links` (Markdown links).
//!
//! What cannot be put right at once is listed, with the reason, in `crates/testkit/tidy-exceptions.toml`.
//! An entry that no longer matches anything is itself a violation, so the list only shrinks.

mod arrows;
mod comments;
mod exceptions;
mod layout;
mod leftovers;
mod links;
mod mentions;
mod reach;
mod sizes;
#[cfg(test)]
mod tests;
mod tree;

use std::fmt;
use std::path::Path;

use anyhow::Result;

use self::tree::Tree;

/// One house rule. Its [`name`](Rule::name) is what reports print and what an exception refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A link in a Markdown file leads to something in the repository.
    DeadLink,
    /// A crate depends only on the crates the architecture draws an arrow to.
    DependencyArrow,
    /// A source file fits in a head.
    FileLength,
    /// A function fits on a screen or two.
    FunctionLength,
    /// Tests longer than a glance live in a sibling `tests.rs`.
    InlineTests,
    /// No unfinished, ignored or dead code stays behind.
    Leftover,
    /// The pure crates touch no files, clock, network, processes or environment.
    Purity,
    /// The documents every reader looks for exist.
    RequiredFile,
    /// Some paths of the standard library are used in one place only.
    ReservedPath,
    /// Every Rust file parses.
    RustSyntax,
    /// Every entry of the list of exceptions still excuses something.
    StaleException,
    /// A struct or variant has a bearable number of fields.
    StructFields,
    /// A built-in tool is one complete folder.
    ToolFolder,
    /// Every decision record is linked from the index of decisions.
    UnlinkedDecision,
}

impl Rule {
    /// Every rule, in the order of their names.
    pub const ALL: &'static [Self] = &[
        Self::DeadLink,
        Self::DependencyArrow,
        Self::FileLength,
        Self::FunctionLength,
        Self::InlineTests,
        Self::Leftover,
        Self::Purity,
        Self::RequiredFile,
        Self::ReservedPath,
        Self::RustSyntax,
        Self::StaleException,
        Self::StructFields,
        Self::ToolFolder,
        Self::UnlinkedDecision,
    ];

    /// The name used in reports and in the list of exceptions.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::DeadLink => "dead-link",
            Self::DependencyArrow => "dependency-arrow",
            Self::FileLength => "file-length",
            Self::FunctionLength => "function-length",
            Self::InlineTests => "inline-tests",
            Self::Leftover => "leftover",
            Self::Purity => "purity",
            Self::RequiredFile => "required-file",
            Self::ReservedPath => "reserved-path",
            Self::RustSyntax => "rust-syntax",
            Self::StaleException => "stale-exception",
            Self::StructFields => "struct-fields",
            Self::ToolFolder => "tool-folder",
            Self::UnlinkedDecision => "unlinked-decision",
        }
    }
}

/// One place where a rule is broken.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The file, relative to the root of the repository, with `/` between its parts.
    pub path: String,
    /// The line, counted from 1; the first line where the rule is about the file as a whole.
    pub line: usize,
    /// The rule that is broken.
    pub rule: Rule,
    /// What is wrong and what to do about it.
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: [{}] {}", self.path, self.line, self.rule.name(), self.message)
    }
}

type Check = fn(&Tree) -> Vec<Violation>;

const CHECKS: &[Check] =
    &[arrows::check, layout::check, leftovers::check, links::check, reach::check, sizes::check];

/// Runs every rule over the repository at `root` and returns what no exception excuses, in order of place.
///
/// # Errors
///
/// When a file cannot be read as text or the list of exceptions is malformed: then nothing can be said about
/// the rest.
pub fn check(root: &Path) -> Result<Vec<Violation>> {
    let tree = Tree::read(root)?;
    let mut found = tree.unparsed.clone();
    found.extend(CHECKS.iter().flat_map(|check| check(&tree)));
    let mut violations = exceptions::excuse(&tree, found)?;
    violations.sort();
    Ok(violations)
}

/// The text a failing test prints: one line for each violation, then how to go on.
#[must_use]
pub fn report(violations: &[Violation]) -> String {
    let lines: String = violations.iter().map(|violation| format!("{violation}\n")).collect();
    format!(
        "{} house rules are broken:\n\n{lines}\nPut them right. If one cannot be put right now, say why in {}.\n",
        violations.len(),
        exceptions::LIST
    )
}
