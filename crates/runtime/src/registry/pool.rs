//! The immutable snapshot of tools that one turn is advertised and run with.

use std::{
    collections::HashMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use gripper_permissions::Policy;

use super::{Registry, Viewer};
use crate::{
    search_index::{Document, Query, ToolIndex},
    tool::{DynTool, ErrorCode, Loading},
};

/// How alike a name must be to be offered in place of one that does not exist.
const NEAR: f64 = 0.75;

/// The tools of one agent at one moment.
pub struct Pool {
    generation: u64,
    tools: Vec<Arc<dyn DynTool>>,
    by_name: HashMap<String, usize>,
    absent: HashMap<String, Absence>,
    connecting: Vec<String>,
    deferrable: Vec<usize>,
    index: OnceLock<ToolIndex>,
}

/// A tool that exists but is not in this pool, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Absence {
    /// `denied` or `disabled`.
    pub code: ErrorCode,
    /// In words.
    pub reason: String,
}

/// Chooses the tools for `viewer`: what is unavailable, not meant for it or under a blanket deny
/// is left out; built-ins come first by name, then servers' tools by name, so that a server that
/// connects never moves a built-in (and never spoils a cached prompt).
pub fn assemble_pool(registry: &Registry, policy: &Policy, viewer: &Viewer, connecting: Vec<String>) -> Pool {
    static GENERATION: AtomicU64 = AtomicU64::new(1);
    let mut tools = Vec::new();
    let mut absent = HashMap::new();
    for tool in registry.iter() {
        match absence(tool.as_ref(), policy, viewer) {
            None => tools.push(tool.clone()),
            Some(absence) => {
                let spec = tool.spec();
                for name in spec.aliases.iter().chain([&spec.name]) {
                    absent.insert(name.to_string(), absence.clone());
                }
            }
        }
    }
    // The registry iterates by name and the sort is stable.
    tools.sort_by_key(|tool| tool.spec().server.is_some());
    let mut by_name = HashMap::new();
    for (position, tool) in tools.iter().enumerate() {
        let spec = tool.spec();
        for name in spec.aliases.iter().chain([&spec.name]) {
            by_name.insert(name.to_string(), position);
        }
    }
    let deferrable =
        (0..tools.len()).filter(|&at| tools[at].spec().facts.loading == Loading::Deferrable).collect();
    Pool {
        generation: GENERATION.fetch_add(1, Ordering::Relaxed),
        tools,
        by_name,
        absent,
        connecting,
        deferrable,
        index: OnceLock::new(),
    }
}

fn absence(tool: &dyn DynTool, policy: &Policy, viewer: &Viewer) -> Option<Absence> {
    let spec = tool.spec();
    let also = spec.aliases.iter().filter(|_| spec.server.is_some());
    let denied = policy.blanket_deny(&spec.name, spec.server.as_deref());
    if let Some(rule) = denied.or_else(|| also.into_iter().find_map(|name| policy.blanket_deny(name, None))) {
        let reason = format!("deny rule {} ({})", rule.rule, rule.source);
        return Some(Absence { code: ErrorCode::Denied, reason });
    }
    let reason = tool
        .available()
        .err()
        .or_else(|| viewer.objection(&spec.name, spec.server.is_some(), &spec.facts).map(str::to_owned))?;
    Some(Absence { code: ErrorCode::Disabled, reason })
}

impl Pool {
    /// Differs between any two pools of this process.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// In the order they are advertised.
    pub fn tools(&self) -> &[Arc<dyn DynTool>] {
        &self.tools
    }

    /// By name or alias.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn DynTool>> {
        self.by_name.get(name).map(|&at| &self.tools[at])
    }

    /// Why an existing tool is not here.
    pub fn absence(&self, name: &str) -> Option<&Absence> {
        self.absent.get(name)
    }

    /// Servers whose tools are still to come.
    pub fn connecting(&self) -> &[String] {
        &self.connecting
    }

    /// Tools whose schemas may be held back.
    pub fn deferrable(&self) -> impl ExactSizeIterator<Item = &Arc<dyn DynTool>> {
        self.deferrable.iter().map(|&at| &self.tools[at])
    }

    /// Tools found by a query: those of a `select:` in the order asked, deferrable or not; else
    /// the best deferrable ones first. Second, the names of a `select:` that do not exist. The
    /// index is built on the first query and lives as long as the pool.
    pub fn search(&self, query: &str, max: usize) -> (Vec<&Arc<dyn DynTool>>, Vec<String>) {
        let index = self.index.get_or_init(|| ToolIndex::build(self.tools.iter().map(document).collect()));
        let query = Query::parse(query);
        let (most, only_deferrable) = match &query {
            Query::Select(names) => (names.len(), false),
            // What is always loaded is dropped from the hits, so ask for that many more.
            Query::Words { .. } => (max + self.tools.len() - self.deferrable.len(), true),
        };
        let answer = index.answer(&query, most);
        let wanted =
            |tool: &&Arc<dyn DynTool>| !only_deferrable || tool.spec().facts.loading == Loading::Deferrable;
        let found = answer.hits.iter().map(|hit| &self.tools[hit.document]).filter(wanted);
        (found.take(if only_deferrable { max } else { most }).collect(), answer.missing)
    }

    /// Up to three existing names that look like `name`, nearest first.
    pub fn near(&self, name: &str) -> Vec<&str> {
        near_names(self.by_name.keys().map(String::as_str), name)
    }
}

/// Up to three of these names that look like `name`, nearest first.
pub fn near_names<'n>(known: impl Iterator<Item = &'n str>, name: &str) -> Vec<&'n str> {
    let wanted: String = name.chars().take(64).flat_map(char::to_lowercase).collect();
    let mut scored: Vec<(f64, &str)> = known
        .map(|known| (likeness(&wanted, &known.to_lowercase()), known))
        .filter(|(score, _)| *score >= NEAR)
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Alike by spelling, or one contains the other.
fn likeness(wanted: &str, known: &str) -> f64 {
    let contained = wanted.len() >= 3 && (known.contains(wanted) || wanted.contains(known));
    let spelling = strsim::jaro_winkler(wanted, known);
    if contained { spelling.max(0.9) } else { spelling }
}

fn document(tool: &Arc<dyn DynTool>) -> Document {
    let spec = tool.spec();
    Document {
        name: spec.name.to_string(),
        aliases: spec.aliases.iter().map(ToString::to_string).collect(),
        server: spec.server.clone(),
        hint: spec.search_hint.to_string(),
        description: spec.description.to_string(),
    }
}
