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

impl SubAgent {
    /// What is left of it below an agent with these tools: nobody gives on what it has not.
    #[must_use]
    pub(crate) fn below(self, above: &Viewer) -> Self {
        let Viewer::Sub(above) = above else { return self };
        Self {
            custom: self.custom || above.custom,
            background: self.background || above.background,
            explores: self.explores || above.explores,
            may_delegate: self.may_delegate && above.may_delegate,
            granted: in_both(self.granted, above.granted.clone()),
        }
    }
}

/// The tools that two lists have in common, of which each may be missing and then holds all.
pub fn in_both(one: Option<BTreeSet<String>>, other: Option<BTreeSet<String>>) -> Option<BTreeSet<String>> {
    let (Some(one), Some(other)) = (&one, &other) else { return one.or(other) };
    let of = |some: &BTreeSet<String>, all: &BTreeSet<String>| -> Vec<String> {
        some.iter().filter(|name| all.iter().any(|entry| covers(entry, name))).cloned().collect()
    };
    Some(of(one, other).into_iter().chain(of(other, one)).collect())
}

/// Whether an entry is this tool, or the server that it comes from.
fn covers(entry: &str, name: &str) -> bool {
    let server = entry.strip_suffix("__*").unwrap_or(entry);
    let of_server = |server: &str| name.strip_prefix(server).is_some_and(|tool| tool.starts_with("__"));
    entry == name || (server.starts_with("mcp__") && of_server(server))
}

impl Viewer {
    /// Why this viewer does not get a tool; `None` when it does.
    pub(super) fn objection(&self, name: &str, external: bool, facts: &Facts) -> Option<&'static str> {
        let Viewer::Sub(agent) = self else { return None };
        let names = |granted: &BTreeSet<String>| granted.iter().any(|entry| covers(entry, name));
        let named = agent.granted.as_ref().map(names);
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
