//! The rule language: `Tool`, `Tool(specifier)`, parsed into structured rules and lossless back.

mod command;
mod domain;
mod path;
mod source;

use std::{fmt, sync::Arc};

use serde::Serialize;

pub(crate) use command::{CommandPattern, Fit, Spelling};
pub(crate) use domain::{DomainPattern, labels as domain_labels};
pub(crate) use path::{Anchors, PathPattern, PathSet};
pub use source::{RuleList, Scope, Source};

use crate::{
    glob,
    tools::{self, Kind},
};

/// Inputs of command tools besides the command, which rules can name.
const COMMAND_INPUTS: [&str; 5] = [
    "dangerouslyDisableSandbox",
    "dangerously_disable_sandbox",
    "description",
    "run_in_background",
    "timeout",
];
/// Longer rules are refused: nobody means them.
const LONGEST: usize = 4096;

/// One parsed rule. Keeps its text, so that writing it back loses nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub struct Rule {
    text: String,
    /// Shared: rules are copied into decisions and grants.
    pub(crate) pattern: Arc<Pattern>,
}

/// What a rule is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pattern {
    /// Every tool: `*`.
    AnyTool,
    /// A whole tool.
    Tool(String),
    /// Tools of MCP servers; both names may hold `*`. Without a tool, all of the server.
    Mcp { server: String, tool: Option<String> },
    /// Command lines.
    Command(CommandPattern),
    /// Files that are read or changed, whatever the tool. `misnamed`: written for a tool that
    /// shares the rules of another, such as `Write(…)`.
    Path { edit: bool, pattern: Option<PathPattern>, misnamed: bool },
    /// Hosts.
    Domain(DomainPattern),
    /// Sub-agents or skills by name.
    Name { kind: Kind, name: String },
    /// One scalar of the input.
    Param { tool: String, name: String, value: String },
}

/// Why a text is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Nothing there.
    #[error(
        "a rule is empty: write a tool name such as Read, or one with a specifier such as Bash(npm test *)"
    )]
    Empty,
    /// Not a tool name.
    #[error("\"{0}\" is not a tool name: names have letters, digits, _ and - only")]
    BadName(String),
    /// A bracket without its partner.
    #[error("\"{0}\" has an opening bracket without a closing one at its end: write Tool or Tool(specifier)")]
    Unclosed(String),
    /// A specifier that the tool has no use for.
    #[error(
        "\"{rule}\": {tool} takes no specifier but name:value, about one of its inputs: write {tool} or {tool}(name:value)"
    )]
    Specifier {
        /// The whole text.
        rule: String,
        /// The tool part.
        tool: String,
    },
    /// A specifier without meaning.
    #[error("\"{rule}\": {why}")]
    Meaningless {
        /// The whole text.
        rule: String,
        /// What is wrong and what to write.
        why: String,
    },
}

impl Rule {
    /// Parses one rule.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        if text.len() > LONGEST || text.contains(|c: char| c.is_control()) {
            let rule: String = text.chars().take(40).map(|c| if c.is_control() { '?' } else { c }).collect();
            let why = format!("a rule has at most {LONGEST} bytes and no control characters");
            return Err(RuleError::Meaningless { rule, why });
        }
        let (name, specifier) = match text.split_once('(') {
            None => (text, None),
            Some((name, rest)) => {
                let inner = rest.strip_suffix(')').ok_or_else(|| RuleError::Unclosed(text.to_owned()))?;
                (name, Some(inner))
            }
        };
        if name.is_empty() {
            return Err(RuleError::Empty);
        }
        let specifier = specifier.map(str::trim).filter(|specifier| *specifier != "*");
        let pattern = match name {
            "*" if specifier.is_none() => Pattern::AnyTool,
            _ => Pattern::parse(text, name, specifier)?,
        };
        Ok(Self { text: text.to_owned(), pattern: Arc::new(pattern) })
    }

    /// The rule as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether, as an allow rule, it would let nearly anything be done.
    pub fn is_broad(&self) -> bool {
        match &*self.pattern {
            Pattern::AnyTool => true,
            Pattern::Command(command) => {
                command.is_any()
                    || command.program().is_none()
                    || crate::suggest::is_too_broad(command.literal_words())
            }
            _ => false,
        }
    }
}

impl Pattern {
    fn parse(text: &str, name: &str, specifier: Option<&str>) -> Result<Self, RuleError> {
        if let Some(behind) = name.strip_prefix("mcp__") {
            return Self::mcp(text, behind, specifier);
        }
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
        if !name.chars().all(plain) {
            return Err(RuleError::BadName(name.to_owned()));
        }
        let meaningless = |why: &str| RuleError::Meaningless { rule: text.to_owned(), why: why.to_owned() };
        let kind = tools::known(name).map_or(Kind::Plain, |known| known.kind);
        if specifier == Some("") {
            return Err(meaningless("the brackets are empty: leave them out, or say what the rule is about"));
        }
        Ok(match (kind, specifier) {
            (Kind::Command, specifier) => {
                // `run_in_background:true` is an input, `npm:run` would be a strange program.
                let input = specifier.filter(|specifier| {
                    let name = specifier.split(':').next().unwrap_or_default();
                    specifier.contains(':') && COMMAND_INPUTS.contains(&name)
                });
                match input.and_then(|specifier| Self::param(text, name, specifier).ok()) {
                    Some(param) => param,
                    None => Pattern::Command(CommandPattern::parse(specifier.unwrap_or("*"))),
                }
            }
            (Kind::Read | Kind::Edit, specifier) => {
                if specifier.is_some_and(|specifier| specifier.starts_with('!')) {
                    return Err(meaningless(
                        "a rule has no exceptions: write what it is about, without the !",
                    ));
                }
                let pattern = specifier.map(PathPattern::new);
                let misnamed = !matches!(name, "Read" | "Edit");
                if misnamed && pattern.is_none() {
                    return Ok(Pattern::Tool(name.to_owned()));
                }
                Pattern::Path { edit: kind == Kind::Edit, pattern, misnamed }
            }
            (_, None) => Pattern::Tool(name.to_owned()),
            (Kind::Domain, Some(specifier)) => {
                let Some(domain) = specifier.strip_prefix("domain:") else {
                    return Self::param(text, name, specifier).map_err(|_| {
                        meaningless("write the host behind domain:, such as WebFetch(domain:example.com)")
                    });
                };
                DomainPattern::parse(domain)
                    .map(Pattern::Domain)
                    .ok_or_else(|| meaningless("that is no host name: write example.com or *.example.com"))?
            }
            (Kind::Agent | Kind::Skill, Some(specifier)) => {
                if let Ok(param) = Self::param(text, name, specifier) {
                    return Ok(param);
                }
                Pattern::Name { kind, name: specifier.to_owned() }
            }
            (Kind::Plain, Some(specifier)) => Self::param(text, name, specifier).map_err(|error| {
                let near = tools::near(name, &[]).filter(|_| tools::known(name).is_none());
                near.map_or(error, |near| {
                    meaningless(&format!("there is no tool {name}: did you mean {near}({specifier})?"))
                })
            })?,
        })
    }

    fn param(text: &str, tool: &str, specifier: &str) -> Result<Self, RuleError> {
        let named = specifier.split_once(':').filter(|(name, value)| {
            let plain = |c: char| c.is_ascii_alphanumeric() || c == '_';
            !name.is_empty()
                && name.chars().all(plain)
                && !value.is_empty()
                && *value != "*"
                && !value.starts_with("//")
        });
        let (name, value) =
            named.ok_or_else(|| RuleError::Specifier { rule: text.to_owned(), tool: tool.to_owned() })?;
        let (tool, name, value) = (tool.to_owned(), name.to_owned(), value.trim().to_owned());
        Ok(Pattern::Param { tool, name, value })
    }

    /// `server`, `server__tool`, `*__tool`, with the prefix taken off.
    fn mcp(text: &str, behind: &str, specifier: Option<&str>) -> Result<Self, RuleError> {
        if let Some(specifier) = specifier {
            return Self::param(text, &format!("mcp__{behind}"), specifier);
        }
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':' | '/' | '*');
        if behind.is_empty() || behind.starts_with("__") || !behind.chars().all(plain) {
            return Err(RuleError::BadName(format!("mcp__{behind}")));
        }
        let (server, tool) = match behind.split_once("__") {
            None => (behind, None),
            Some((_, "")) => return Err(RuleError::BadName(format!("mcp__{behind}"))),
            Some((server, "*")) => (server, None),
            Some((server, tool)) => (server, Some(tool.to_owned())),
        };
        Ok(Pattern::Mcp { server: server.to_owned(), tool })
    }

    /// Whether it fits a tool of an MCP server. Server names are known, so that `__` inside a
    /// name misleads nobody.
    pub(crate) fn fits_mcp(&self, name: &str, server: Option<&str>) -> bool {
        let Pattern::Mcp { server: wanted, tool } = self else { return false };
        let Some(behind) = name.strip_prefix("mcp__") else { return false };
        let whole = match tool {
            Some(tool) => format!("{wanted}__{tool}"),
            None => wanted.clone(),
        };
        if let Some(server) = server {
            let Some(own) = behind.strip_prefix(server).and_then(|own| own.strip_prefix("__")) else {
                return false;
            };
            // `mcp__a__b` is the server `a__b` if that is its name, else the tool `b` of `a`.
            return glob::matches(&whole, server) && tool.is_none()
                || whole == server
                || tool.as_ref().is_some_and(|tool| {
                    glob::matches(wanted, server) && !own.is_empty() && glob::matches(tool, own)
                });
        }
        match (behind.split_once("__"), tool) {
            (Some((server, own)), Some(tool)) if !own.is_empty() => {
                glob::matches(wanted, server) && glob::matches(tool, own) || glob::matches(&whole, behind)
            }
            (Some((server, own)), None) => !own.is_empty() && glob::matches(wanted, server),
            _ => false,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<Rule> for String {
    fn from(rule: Rule) -> Self {
        rule.text
    }
}
