//! What a command does, beyond computing and printing.

use std::fmt;

use serde::Serialize;

use crate::span::Span;

/// A file or folder an effect is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// This path, absolute, dots taken out, links not followed.
    Path(String),
    /// Whatever this absolute glob pattern matches.
    Pattern(String),
    /// Somewhere: the name is made while the command runs.
    Unknown,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) | Self::Pattern(path) => f.write_str(path),
            Self::Unknown => f.write_str("files not known beforehand"),
        }
    }
}

/// What a command does.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EffectKind {
    /// Shows names and sizes, no content.
    List(Target),
    /// Reads a file or folder.
    Read(Target),
    /// Creates, overwrites or changes a file.
    Write(Target),
    /// Deletes.
    Delete(Target),
    /// Talks to another machine or a service.
    Network {
        /// To whom, if it is known.
        host: Option<String>,
        /// Whether local data goes out.
        sends: bool,
    },
    /// Opens a port.
    Listen,
    /// Runs code that is not analysed.
    Execute(String),
    /// Prints or sets environment variables or credentials.
    Environment(String),
    /// Gains rights.
    Privilege,
    /// Signals or controls processes.
    Process,
    /// Changes the machine: accounts, clock, services, kernel.
    System,
    /// Destroys in bulk.
    Tamper,
    /// Not known, and why.
    Unknown(String),
}

/// An effect and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Effect {
    /// What happens.
    #[serde(flatten)]
    pub kind: EffectKind,
    /// The words that cause it.
    pub span: Span,
    /// What kind of words those are.
    #[serde(skip_serializing_if = "Cause::is_program")]
    pub cause: Cause,
}

/// What brings an effect about. A rule that trusts a program does not trust what stands around it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The program, or the operands it is there for.
    #[default]
    Program,
    /// An option that makes it do more.
    Option,
    /// The expansion of a word.
    Expansion,
    /// A redirection.
    Redirection,
    /// A variable set for it.
    Setting,
    /// The folder it works in.
    Place,
}

impl Cause {
    fn is_program(&self) -> bool {
        *self == Cause::Program
    }
}

impl EffectKind {
    /// Whether nothing but reading happens.
    pub fn is_read(&self) -> bool {
        matches!(self, Self::Read(_) | Self::List(_))
    }
}

impl fmt::Display for EffectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::List(target) => write!(f, "lists {target}"),
            Self::Read(target) => write!(f, "reads {target}"),
            Self::Write(target) => write!(f, "writes {target}"),
            Self::Delete(target) => write!(f, "deletes {target}"),
            Self::Network { host, sends } => {
                f.write_str(if *sends { "sends data to " } else { "contacts " })?;
                f.write_str(host.as_deref().unwrap_or("the network or a service"))
            }
            Self::Listen => f.write_str("opens a port"),
            Self::Execute(what) => write!(f, "runs {what}"),
            Self::Environment(what) => write!(f, "{what}"),
            Self::Privilege => f.write_str("gains rights"),
            Self::Process => f.write_str("controls processes"),
            Self::System => f.write_str("changes the machine"),
            Self::Tamper => f.write_str("destroys or overwrites in bulk"),
            Self::Unknown(why) => write!(f, "unknown: {why}"),
        }
    }
}
