//! Settings: found in files of several scopes, laid over each other, and turned into a policy and limits.
//!
//! A value keeps the file and line it came from all the way. A bad entry is left out and reported, a bad file
//! never takes the others down, and a folder that nobody vouches for can only make things stricter.

mod edit;
mod effect;
mod files;
pub mod keys;
mod limits;
mod node;
mod read;
#[cfg(test)]
mod tests;
mod trust;
mod watch;
mod write;

use std::{
    collections::{BTreeMap, HashMap},
    ffi::OsStr,
    path::{Path, PathBuf},
};

use gripper_permissions::{Diagnostic, Policy, Scope, Source};
use serde_json::Value;

use crate::results::StoreLimits;

pub use edit::{Change, check_edit};
pub use files::{Given, Sources};
pub use limits::{Settings, SiblingCancel};
pub use node::{Broken, Node, Tree};
pub use trust::{TrustError, TrustStore};
pub(crate) use watch::Stamps;
pub use watch::Watch;
pub use write::{WriteError, add_rule};

/// The kinds of settings files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// All keys.
    Settings,
    /// What stands under `permissions`, alone.
    Permissions,
    /// What stands under `hooks`, alone.
    Hooks,
    /// What stands under `mcpServers`, alone.
    Servers,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 4] = [Kind::Settings, Kind::Permissions, Kind::Hooks, Kind::Servers];

    /// By the name of the file.
    pub fn of_name(name: &OsStr) -> Self {
        match name.to_str() {
            Some("permissions.json") => Kind::Permissions,
            Some("hooks.json") => Kind::Hooks,
            Some(".mcp.json" | "mcp.json") => Kind::Servers,
            _ => Kind::Settings,
        }
    }

    /// The name of its schema.
    pub fn name(self) -> &'static str {
        self.key().unwrap_or("settings")
    }

    fn key(self) -> Option<&'static str> {
        match self {
            Kind::Settings => None,
            Kind::Permissions => Some("permissions"),
            Kind::Hooks => Some("hooks"),
            Kind::Servers => Some("mcpServers"),
        }
    }
}

/// What all settings together come to.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// Mode, rules, directories, sensitive paths and flags.
    pub policy: Policy,
    /// Limits of the pipeline and the executor.
    pub limits: Settings,
    /// Limits of the store of results.
    pub store: StoreLimits,
    /// Hooks by event, one entry a file with the lines they stand in: managed ones first, then user,
    /// project, local, command line.
    pub hooks: Vec<(Node, Value)>,
    /// Servers of further tools by name, one entry a file; the last that names a server counts.
    pub servers: Vec<Node>,
    /// Environment variables for commands.
    pub env: BTreeMap<String, String>,
    /// Managed policy could not be read, so nothing weaker may allow anything.
    pub locked: bool,
    /// Every value in force, with the place it came from.
    pub effective: Node,
    /// What is wrong with the files.
    pub diagnostics: Vec<Diagnostic>,
}

/// Reads every source once.
pub fn load(sources: &Sources) -> Loaded {
    Reader::default().load(sources)
}

/// Reads files, and remembers what each last held while it could be read.
#[derive(Debug, Default)]
struct Reader {
    good: HashMap<PathBuf, Node>,
}

/// What one file, or the command line, contributes.
struct Layer {
    scope: Scope,
    node: Node,
}

impl Layer {
    /// Whether it is the list of servers that a project shares.
    fn is_mcp_json(&self) -> bool {
        let name = self.node.source.file.as_deref().and_then(Path::file_name);
        self.scope == Scope::Project && name.is_some_and(|name| Kind::of_name(name) == Kind::Servers)
    }
}

impl Reader {
    fn load(&mut self, sources: &Sources) -> Loaded {
        let (candidates, mut found) = sources.candidates();
        let mut locked = !found.is_empty();
        let mut layers = Vec::new();
        self.good.retain(|path, _| candidates.iter().any(|candidate| candidate.path == *path));
        for files::Candidate { scope, kind, path } in candidates {
            let source = Source { file: Some(path.clone()), ..Source::of(scope) };
            match read::file(&path, kind, &source, &mut found) {
                Ok(Some(node)) => {
                    self.good.insert(path, node.clone());
                    layers.push(Layer { scope, node });
                }
                Ok(None) => {
                    self.good.remove(&path);
                    // Whoever names a file means it.
                    if scope == Scope::CommandLine {
                        found.push(Diagnostic::error(source, "there is no such file"));
                    }
                }
                Err(broken) => {
                    let kept = self.good.get(&path);
                    locked |= scope == Scope::Managed && kept.is_none();
                    found.push(complaint(source, &broken, kept.is_some()));
                    layers.extend(kept.map(|node| Layer { scope, node: node.clone() }));
                }
            }
        }
        for (kind, text) in sources.given_texts() {
            let source = Source::command_line();
            match read::tree(text, kind, &source, &mut found) {
                Ok(node) => layers.push(Layer { scope: Scope::CommandLine, node }),
                Err(broken) => found.push(complaint(source, &broken, false)),
            }
        }
        // Stable, so files of one scope stay in their order; the strongest scope comes last.
        layers.sort_by_key(|layer| std::cmp::Reverse(layer.scope));
        effect::build(sources, layers, locked, found)
    }
}

fn complaint(source: Source, broken: &Broken, kept: bool) -> Diagnostic {
    let follows = match (source.scope, kept) {
        (_, true) => "what it held before stays in force",
        (Scope::Managed, _) => {
            "until it can be read, no other file can allow anything and there is no bypass"
        }
        _ => "nothing in it counts",
    };
    let source = Source { line: Some(broken.line), ..source };
    Diagnostic::error(source, format!("column {}: {}; {follows}", broken.column, broken.what))
        .fix("correct the file")
}
