//! The rule language, as far as whole tools go: `Tool`, `Tool(*)`, `mcp__server`,
//! `mcp__server__*`, `mcp__server__tool`.

use std::{fmt, path::PathBuf};

use serde::Serialize;

/// One parsed rule. Keeps its text, so that writing it back loses nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub struct Rule {
    text: String,
    pattern: Pattern,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Pattern {
    Tool(String),
    /// Every tool of one server: the stored prefix ends in `__`.
    Server {
        prefix: String,
    },
}

/// Why a text is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// Nothing there.
    #[error("a rule is empty: write a tool name such as Read")]
    Empty,
    /// Not a tool name.
    #[error("\"{0}\" is not a tool name: names have letters, digits, _ and - only")]
    BadName(String),
    /// A bracket without its partner.
    #[error("\"{0}\" has an opening bracket without a closing one at its end: write Tool or Tool(*)")]
    Unclosed(String),
    /// A specifier, which this version cannot judge and must not ignore.
    #[error(
        "\"{rule}\": only whole-tool rules are understood, \"{specifier}\" would narrow it: write {tool} or {tool}(*)"
    )]
    Specifier {
        /// The whole text.
        rule: String,
        /// The tool part.
        tool: String,
        /// What stands in brackets.
        specifier: String,
    },
}

impl Rule {
    /// Parses one rule.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
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
        if let Some(specifier) = specifier.filter(|specifier| *specifier != "*") {
            return Err(RuleError::Specifier {
                rule: text.to_owned(),
                tool: name.to_owned(),
                specifier: specifier.to_owned(),
            });
        }
        Ok(Self { text: text.to_owned(), pattern: Pattern::parse(name)? })
    }

    /// The rule as it was written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the rule covers the tool called `name`.
    pub fn covers(&self, name: &str) -> bool {
        match &self.pattern {
            Pattern::Tool(tool) => tool == name,
            Pattern::Server { prefix } => name.starts_with(prefix.as_str()),
        }
    }
}

impl Pattern {
    fn parse(name: &str) -> Result<Self, RuleError> {
        let (literal, wildcard) = match name.strip_suffix("__*") {
            Some(server) => (server, true),
            None => (name, false),
        };
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
        if literal.is_empty() || !literal.chars().all(plain) {
            return Err(RuleError::BadName(name.to_owned()));
        }
        // `mcp__server` without a tool part means the whole server.
        let server_only = literal.strip_prefix("mcp__").is_some_and(|server| !server.contains("__"));
        if server_only {
            return Ok(Pattern::Server { prefix: format!("{literal}__") });
        }
        if wildcard {
            return Err(RuleError::BadName(name.to_owned()));
        }
        Ok(Pattern::Tool(literal.to_owned()))
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

/// Which list a rule stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleList {
    /// Never.
    Deny,
    /// Only with a yes.
    Ask,
    /// Go ahead.
    Allow,
}

impl RuleList {
    /// The word used in messages.
    pub fn name(self) -> &'static str {
        match self {
            RuleList::Deny => "deny",
            RuleList::Ask => "ask",
            RuleList::Allow => "allow",
        }
    }
}

/// How far a source of rules reaches, strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// Set by whoever runs the machine.
    Managed,
    /// A flag of this run.
    CommandLine,
    /// Granted in this session.
    Session,
    /// This checkout only.
    Local,
    /// The project, shared.
    Project,
    /// The person's own settings.
    User,
}

impl Scope {
    fn words(self) -> &'static str {
        match self {
            Scope::Managed => "managed policy",
            Scope::CommandLine => "command line",
            Scope::Session => "this session",
            Scope::Local => "local settings",
            Scope::Project => "project settings",
            Scope::User => "user settings",
        }
    }
}

/// Where a rule was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    /// How far it reaches.
    pub scope: Scope,
    /// The file, when there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The line in that file, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl Source {
    /// A source without a file.
    pub fn of(scope: Scope) -> Self {
        Self { scope, file: None, line: None }
    }

    /// A flag of this run.
    pub fn command_line() -> Self {
        Self::of(Scope::CommandLine)
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.scope.words())?;
        if let Some(file) = &self.file {
            write!(f, ", {}", file.display())?;
            if let Some(line) = self.line {
                write!(f, ":{line}")?;
            }
        }
        Ok(())
    }
}
