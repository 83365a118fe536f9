//! Which agents get which tools. Enforced here, from facts the tools declare, not by prompts.

use std::collections::BTreeSet;

use crate::tool::{Audience, Background, Facts};

/// The agent a pool is made for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Viewer {
    /// The one a person talks to.
    Main,
    /// One that another agent started.
    Sub(SubAgent),
}

/// What matters about a sub-agent for choosing its tools.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubAgent {
    /// Defined by a person, not built in.
    pub custom: bool,
    /// Runs while nobody watches.
    pub background: bool,
    /// Only looks around: keeps no tool that edits files or starts agents.
    pub explores: bool,
    /// May start further agents (its depth is below the limit).
    pub may_delegate: bool,
    /// The tools its definition names, or `mcp__server` for all of a server; `None` means it did not say.
    pub granted: Option<BTreeSet<String>>,
}

impl Viewer {
    /// Why this viewer does not get a tool; `None` when it does.
    pub(super) fn objection(&self, name: &str, external: bool, facts: &Facts) -> Option<&'static str> {
        let Viewer::Sub(agent) = self else { return None };
        let whole_server = |entry: &String| {
            let server = entry.strip_suffix("__*").unwrap_or(entry);
            external && name.strip_prefix(server).is_some_and(|tool| tool.starts_with("__"))
        };
        let named = |granted: &BTreeSet<String>| granted.contains(name) || granted.iter().any(whole_server);
        let named = agent.granted.as_ref().map(named);
        if named == Some(false) {
            return Some("the agent's definition does not name it");
        }
        match facts.audience {
            Audience::MainAgent => return Some("it is for the main agent only"),
            Audience::Delegating if agent.explores || !agent.may_delegate => {
                return Some("this agent may not start others");
            }
            Audience::BuiltinAgents if agent.custom => return Some("it is for built-in agents only"),
            Audience::Everyone | Audience::Delegating | Audience::BuiltinAgents => {}
        }
        if agent.explores && facts.edits_files {
            return Some("this agent only looks around");
        }
        // Tools of a server follow the definition alone.
        let unwatched = agent.background && !external;
        match facts.background {
            Background::Never if unwatched => Some("it is not for agents in the background"),
            Background::WhenGranted if unwatched && named.is_none() => {
                Some("an agent in the background needs it named in its definition")
            }
            _ => None,
        }
    }
}
