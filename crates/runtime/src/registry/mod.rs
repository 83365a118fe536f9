//! Which tools there are, and which of them an agent gets.

mod audience;
mod deferral;
mod pool;

use std::{collections::BTreeMap, sync::Arc};

use crate::tool::DynTool;

pub use audience::{SubAgent, Viewer, in_both};
pub use deferral::{Announcement, BadDeferral, Deferral};
pub use pool::{Absence, Pool, assemble_pool, near_names};

/// Longest name models reliably repeat.
const LONGEST_NAME: usize = 128;

/// Every tool known to this process.
#[derive(Default, Clone)]
pub struct Registry {
    tools: BTreeMap<String, Arc<dyn DynTool>>,
    /// Alias to name.
    aliases: BTreeMap<String, String>,
}

/// Why a tool was not registered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// The name is taken.
    #[error("there already is a tool called \"{name}\"{}: rename one of them", from_server(.server))]
    Duplicate {
        /// The name both want.
        name: String,
        /// Where the newcomer comes from.
        server: Option<String>,
    },
    /// The name cannot be used.
    #[error("\"{0}\" cannot be a tool name: use 1 to 128 letters, digits, _ and -")]
    BadName(String),
}

fn from_server(server: &Option<String>) -> String {
    server.as_ref().map(|server| format!(" (offered again by server {server})")).unwrap_or_default()
}

impl Registry {
    /// Adds a tool. A name or alias that is taken is refused: for a built-in that is a bug, for a
    /// server's tool something to report.
    pub fn register(&mut self, tool: Arc<dyn DynTool>) -> Result<(), RegistryError> {
        let spec = tool.spec();
        for name in spec.aliases.iter().chain([&spec.name]) {
            if self.get(name).is_some() {
                return Err(RegistryError::Duplicate { name: name.to_string(), server: spec.server.clone() });
            }
        }
        self.insert(tool)
    }

    /// Adds a tool in place of the one with its name, if there is one.
    pub fn replace(&mut self, tool: Arc<dyn DynTool>) -> Result<(), RegistryError> {
        if let Some(old) = self.tools.remove(tool.spec().name.as_ref()) {
            self.aliases.retain(|_, name| *name != old.spec().name);
        }
        self.register(tool)
    }

    /// By name or alias.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn DynTool>> {
        self.tools.get(name).or_else(|| self.tools.get(self.aliases.get(name)?))
    }

    /// In order of name.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<dyn DynTool>> {
        self.tools.values()
    }

    fn insert(&mut self, tool: Arc<dyn DynTool>) -> Result<(), RegistryError> {
        let spec = tool.spec();
        // A server's own word for its tool is never told to a model, so it may be any.
        let aliases = spec.aliases.iter().filter(|_| spec.server.is_none());
        for name in aliases.chain([&spec.name]) {
            let plain = name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'));
            if name.is_empty() || name.len() > LONGEST_NAME || !plain {
                return Err(RegistryError::BadName(name.chars().take(LONGEST_NAME).collect()));
            }
        }
        for alias in &spec.aliases {
            self.aliases.insert(alias.to_string(), spec.name.to_string());
        }
        self.tools.insert(spec.name.to_string(), tool);
        Ok(())
    }
}
