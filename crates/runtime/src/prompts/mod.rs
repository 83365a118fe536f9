//! Prompts that people keep in files and call by name: skills, which are folders with a `SKILL.md`, and commands,
//! which are Markdown files.
//!
//! Nothing in such a file is run or read here, also not `@file` and `` !`command` ``: what comes out is text with the
//! arguments filled in. A file that is wrong is reported and takes no other one down.

mod arguments;
mod read;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, path::PathBuf, sync::Arc};

use gripper_permissions::{Diagnostic, Source};
use serde_json::{Map, Value};

use crate::{
    near_names,
    settings::{Sources, Stamps},
};

pub use arguments::{Argument, assign};
use arguments::{Given, words};

/// Longest text of arguments, and of what a prompt comes to with them.
const LONGEST: usize = 1024 * 1024;
/// What a prompt that says nothing of arguments takes.
const WHOLE: &str = "arguments";

/// A prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// What it is called, without a `/`.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// Where it was written.
    pub source: Source,
    /// The arguments it names; without any it takes one text.
    declared: Vec<Argument>,
    hint: Option<String>,
    text: String,
    /// Where the further files of a skill are, if it has any.
    folder: Option<PathBuf>,
}

impl Prompt {
    /// What it takes.
    pub fn arguments(&self) -> Vec<Argument> {
        match self.declared.as_slice() {
            [] => vec![Argument { description: self.hint.clone(), ..Argument::new(WHOLE) }],
            declared => declared.to_vec(),
        }
    }

    /// What it takes, in words for people.
    pub fn hint(&self) -> String {
        let usual = || {
            let one = |argument: &Argument| match argument.required {
                true => format!("<{}>", argument.name),
                false => format!("[{}]", argument.name),
            };
            self.declared.iter().map(one).collect::<Vec<_>>().join(" ")
        };
        self.hint.clone().unwrap_or_else(usual)
    }

    /// Its text with arguments by name.
    pub fn filled(&self, given: &Map<String, Value>) -> Result<String, String> {
        let known = self.arguments();
        for (name, value) in given {
            if !known.iter().any(|argument| argument.name == *name) {
                let names: Vec<&str> = known.iter().map(|argument| argument.name.as_str()).collect();
                let name: String = name.chars().take(64).collect();
                return Err(format!(
                    "{} takes no argument {name:?}: it takes {}",
                    self.name,
                    names.join(", ")
                ));
            }
            if !value.is_string() {
                return Err(format!("the argument {name} of {} must be a text", self.name));
            }
        }
        let value = |argument: &Argument| given.get(&argument.name).and_then(Value::as_str);
        let missing = known.iter().filter(|argument| argument.required && value(argument).is_none());
        let missing: Vec<&str> = missing.map(|argument| argument.name.as_str()).collect();
        if !missing.is_empty() {
            return Err(format!("{} needs {}", self.name, missing.join(", ")));
        }
        if self.declared.is_empty() {
            return self.with(Given::line(known.first().and_then(value).unwrap_or_default()));
        }
        let named = known.iter().map(|argument| {
            let value = value(argument).unwrap_or_default();
            (argument.name.clone(), value.to_owned())
        });
        self.with(Given::named(named.collect()))
    }

    /// Its text with what a person wrote behind its name.
    pub fn filled_from(&self, line: &str) -> Result<String, String> {
        let line = line.trim();
        if self.declared.is_empty() {
            return self.with(Given::line(line));
        }
        let wrong = |why: String| format!("/{} {why}: /{} {}", self.name, self.name, self.hint());
        let assigned = assign(&self.declared, line).map_err(wrong)?;
        let value = |argument: &Argument| {
            let found = assigned.iter().find(|(name, _)| *name == argument.name);
            (argument.name.clone(), found.map(|(_, value)| value.clone()).unwrap_or_default())
        };
        let named = self.declared.iter().map(value).collect();
        let by_name = arguments::is_by_name(&self.declared, &words(line));
        self.with(if by_name { Given::named(named) } else { Given { named, ..Given::line(line) } })
    }

    fn with(&self, given: Given) -> Result<String, String> {
        let too_long = || format!("{} would have more than {} KiB", self.name, LONGEST / 1024);
        let filled = given.fill(&self.text, LONGEST).ok_or_else(too_long)?;
        Ok(match &self.folder {
            Some(folder) => format!("(The files of this skill are in {}.)\n\n{filled}", folder.display()),
            None => filled,
        })
    }
}

/// The prompts there are, by name.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Prompts {
    all: BTreeMap<String, Prompt>,
    /// What is wrong with them.
    pub diagnostics: Vec<Diagnostic>,
}

impl Prompts {
    /// Those of the person, and of the project if it is trusted. Of two with one name the nearer counts, and a skill
    /// before a command beside it.
    pub fn load(sources: &Sources) -> Self {
        read::all(read::find(sources))
    }

    /// The one with this name.
    pub fn get(&self, name: &str) -> Option<&Prompt> {
        self.all.get(name)
    }

    /// All of them, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Prompt> {
        self.all.values()
    }

    /// Up to three names that look like `name`.
    pub fn near(&self, name: &str) -> Vec<&str> {
        near_names(self.all.keys().map(String::as_str), name)
    }

    /// Whether a list of them tells the same, whatever their texts are.
    pub fn list_alike(&self, other: &Self) -> bool {
        let told = |prompt: &Prompt| (prompt.name.clone(), prompt.description.clone(), prompt.arguments());
        self.iter().map(told).eq(other.iter().map(told))
    }
}

/// Looks at the files of prompts, and reads them again when one has changed, came or went.
#[derive(Debug)]
pub struct PromptWatch {
    sources: Sources,
    seen: Stamps,
    prompts: Arc<Prompts>,
}

impl PromptWatch {
    /// Reads the prompts for the first time.
    pub fn start(sources: Sources) -> Self {
        let mut watch = Self { sources, seen: Stamps::default(), prompts: Arc::default() };
        watch.look();
        watch
    }

    /// The prompts as they were at the last look.
    pub fn known(&self) -> &Arc<Prompts> {
        &self.prompts
    }

    /// The prompts as they are now.
    pub fn look(&mut self) -> &Arc<Prompts> {
        let found = read::find(&self.sources);
        let paths = || found.files().chain(self.sources.trust_file().map(ToOwned::to_owned));
        if !self.seen.still_hold(paths()) {
            // Looked at first: a change while reading is seen at the next look.
            self.seen = Stamps::of(paths());
            let read = read::all(found);
            if read != *self.prompts {
                self.prompts = Arc::new(read);
            }
        }
        &self.prompts
    }
}
