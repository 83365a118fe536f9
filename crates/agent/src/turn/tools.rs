//! The tools as the model is told of them.

use std::{collections::BTreeSet, sync::Arc};

use gripper_runtime::{Deferral, Toolbox};

use crate::model::ToolDefinition;

/// Names that are announced; of more, only how many.
const MOST_NAMES: usize = 500;

/// What was advertised last. Made anew only when the pool, or what searches loaded from it, has changed.
#[derive(Default)]
pub(super) struct Advertised {
    generation: u64,
    loaded: BTreeSet<String>,
    tools: Option<Arc<[ToolDefinition]>>,
    /// Held back, and told to the model by name.
    names: Vec<String>,
    told: Vec<String>,
}

impl Advertised {
    /// The tools to send with the next request.
    pub(super) fn now(
        &mut self,
        toolbox: &Toolbox,
        deferral: Deferral,
        window: u64,
    ) -> Arc<[ToolDefinition]> {
        let (pool, loaded) = (toolbox.pool(), toolbox.loaded_tools());
        if let Some(tools) = &self.tools
            && pool.generation() == self.generation
            && loaded == self.loaded
        {
            return tools.clone();
        }
        let announcement = pool.announce(deferral, usize::try_from(window).unwrap_or(usize::MAX), &loaded);
        let defined = announcement.full.iter().map(|tool| {
            let spec = tool.spec();
            ToolDefinition {
                name: spec.name.to_string(),
                description: spec.description.to_string(),
                schema: spec.input.value().clone(),
                built_in: spec.server.is_none(),
                deferred: false,
            }
        });
        let tools: Arc<[ToolDefinition]> = defined.collect();
        self.names = announcement.names.iter().map(|name| (*name).to_owned()).collect();
        (self.generation, self.loaded, self.tools) = (pool.generation(), loaded, Some(tools.clone()));
        tools
    }

    /// Words about the tools that are held back, when they are others than the model was told of.
    pub(super) fn news(&mut self, toolbox: &Toolbox, deferral: Deferral, window: u64) -> Option<String> {
        self.now(toolbox, deferral, window);
        if self.names == self.told || self.names.iter().all(|name| self.told.contains(name)) {
            return None;
        }
        self.told.clone_from(&self.names);
        let listed = self.names.iter().take(MOST_NAMES).cloned().collect::<Vec<_>>().join(", ");
        let more = self.names.len().saturating_sub(MOST_NAMES);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Some(format!(
            "These tools exist and are loaded by searching for them with ToolSearch: {listed}{more}."
        ))
    }
}
