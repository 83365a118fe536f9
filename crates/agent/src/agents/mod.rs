//! Agents that agents start: what kinds there are, and who is at work ([`Crew`]).
//!
//! A kind is a prompt with a description, and what it may use. Files that describe kinds are Markdown with front
//! matter, in folders called `agents` beside settings files; `--agents` gives them as JSON. A file that is wrong is
//! reported and takes no other one down.

mod background;
mod crew;
mod files;
mod judge;
mod read;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::BTreeMap;

use gripper_runtime::{
    permissions::{Diagnostic, Mode, Rule, Scope, Source},
    settings::Sources,
};
use serde_json::Value;

pub(crate) use background::Standing;
pub(crate) use crew::Order;
pub use crew::{Crew, Member, Models, Outfit};
use read::Reader;

/// One kind of agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    /// What it is called.
    pub name: String,
    /// When to use it, for the model that may start one.
    pub description: String,
    /// What it reads before anything else.
    pub prompt: String,
    /// The tools it may use; all of them unless given.
    pub tools: Option<Vec<String>>,
    /// What it may not use.
    pub denied: Vec<Rule>,
    /// The model that answers.
    pub model: ModelChoice,
    /// The permission mode it works in, where that is no wider than that of whoever starts it.
    pub mode: Option<Mode>,
    /// Answers after which it ends.
    pub max_turns: Option<u32>,
    /// It always works in the background.
    pub background: bool,
    /// It only looks around: no tool that edits files, and no agents of its own.
    pub explores: bool,
    /// Where it was written; nothing for those that come with Gripper.
    pub source: Option<Source>,
}

/// Which model an agent works with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum ModelChoice {
    /// That of whoever starts it.
    #[default]
    Inherit,
    /// The one for small things.
    Fast,
    /// This one.
    Named(String),
}

impl From<&str> for ModelChoice {
    fn from(name: &str) -> Self {
        match name.trim() {
            "" | "inherit" => Self::Inherit,
            "fast" => Self::Fast,
            name => Self::Named(name.to_owned()),
        }
    }
}

impl Definition {
    /// One that says nothing but its name and its prompt.
    fn new(name: &str, prompt: String, source: Option<Source>) -> Self {
        Self {
            name: name.to_owned(),
            description: String::new(),
            prompt,
            tools: None,
            denied: Vec::new(),
            model: ModelChoice::Inherit,
            mode: None,
            max_turns: None,
            background: false,
            explores: false,
            source,
        }
    }
}

/// The kinds of agents of a session, by name.
#[derive(Debug, Clone)]
pub struct Kinds(BTreeMap<String, Definition>);

impl Kinds {
    /// Those that come with Gripper.
    pub fn built_in() -> Self {
        let kind = |name: &str, description: &str, prompt: &str| Definition {
            description: description.trim().to_owned(),
            ..Definition::new(name, prompt.trim().to_owned(), None)
        };
        // The mode holds the two to looking also where a tool could do more, such as commands.
        let looking = |kind: Definition| Definition { explores: true, mode: Some(Mode::Plan), ..kind };
        let commands = ["Bash", "BashOutput", "KillShell", "TaskOutput"].map(str::to_owned).to_vec();
        let all = [
            kind(
                "general-purpose",
                "Works on a task of several steps by itself, with every tool.",
                include_str!("prompts/general_purpose.md"),
            ),
            looking(kind(
                "Explore",
                "Finds things in the project and changes nothing. Say in the prompt how thorough it should be: quick, \
                 medium or very thorough.",
                include_str!("prompts/explore.md"),
            )),
            looking(kind(
                "Plan",
                "Studies the project and designs how a change should be made. Changes nothing.",
                include_str!("prompts/plan.md"),
            )),
            Definition {
                tools: Some(commands),
                ..kind("Bash", "Runs commands and tells what came of them.", include_str!("prompts/bash.md"))
            },
        ];
        Self(all.into_iter().map(|kind| (kind.name.clone(), kind)).collect())
    }

    /// Those there are: built in, of the person, of the project if it is trusted, and those `given` on the command
    /// line; of two with one name the later counts. With what is wrong with them.
    pub fn load(sources: &Sources, given: Option<&Value>) -> (Self, Vec<Diagnostic>) {
        let mut reader = Reader::new(Self::built_in().0);
        let trust = sources.trust().0;
        for (scope, folder) in sources.folders("agents") {
            reader.folder(scope, &folder, scope == Scope::User || trust.trusts(&folder));
        }
        if let Some(given) = given {
            reader.given(given);
        }
        (Self(reader.kinds), reader.found)
    }

    /// The kind with this name.
    pub fn get(&self, name: &str) -> Option<&Definition> {
        self.0.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Definition> {
        self.0.values()
    }
}
