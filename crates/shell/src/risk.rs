//! Named dangers, each pointing at the words that cause it.

use std::fmt;

use serde::Serialize;

use crate::span::Span;

/// When a risk matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// The text deceives: it should be written plainly before anybody judges it.
    Allow,
    /// The text is plain, what it does needs a person.
    Ask,
}

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// A nuisance.
    Low,
    /// Worth a look.
    Medium,
    /// Real damage.
    High,
    /// Loss of control.
    Critical,
}

/// The risks that are looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub enum RiskKind {
    /// jq leaves its filter: files by flag, modules, the environment.
    JqDanger,
    /// A flag or command name is hidden by its spelling.
    ObfuscatedFlags,
    /// Data is pasted into code of an inner shell.
    ShellMetacharacters,
    /// An unknown variable is the command itself or a redirection's target.
    DangerousVariables,
    /// A command is hidden behind a newline, carriage return or comment.
    NewlineInjection,
    /// `IFS` is changed or used to split words.
    IfsInjection,
    /// The environment of a process is read through `/proc`.
    ProcEnvironAccess,
    /// A substitution does more than read.
    DangerousSubstitution,
    /// The text does not parse.
    MalformedTokens,
    /// A redirection leads to a sensitive or outside path.
    SensitiveRedirect,
    /// Data is sent out.
    NetworkExfiltration,
    /// Rights are gained.
    PrivilegeEscalation,
    /// Files are destroyed or overwritten in bulk.
    FileSystemTampering,
    /// Code runs that was not analysed.
    CodeExecution,
}

impl RiskKind {
    /// Every kind.
    pub const ALL: [Self; 14] = [
        Self::JqDanger,
        Self::ObfuscatedFlags,
        Self::ShellMetacharacters,
        Self::DangerousVariables,
        Self::NewlineInjection,
        Self::IfsInjection,
        Self::ProcEnvironAccess,
        Self::DangerousSubstitution,
        Self::MalformedTokens,
        Self::SensitiveRedirect,
        Self::NetworkExfiltration,
        Self::PrivilegeEscalation,
        Self::FileSystemTampering,
        Self::CodeExecution,
    ];

    /// When it matters.
    pub fn phase(self) -> Phase {
        match self {
            Self::JqDanger
            | Self::ObfuscatedFlags
            | Self::ShellMetacharacters
            | Self::DangerousVariables
            | Self::NewlineInjection
            | Self::IfsInjection
            | Self::ProcEnvironAccess => Phase::Allow,
            _ => Phase::Ask,
        }
    }

    /// How bad it is.
    pub fn severity(self) -> Severity {
        match self {
            Self::MalformedTokens => Severity::Low,
            Self::ObfuscatedFlags
            | Self::ShellMetacharacters
            | Self::DangerousVariables
            | Self::DangerousSubstitution => Severity::Medium,
            Self::JqDanger
            | Self::NewlineInjection
            | Self::IfsInjection
            | Self::ProcEnvironAccess
            | Self::SensitiveRedirect
            | Self::FileSystemTampering => Severity::High,
            Self::NetworkExfiltration | Self::PrivilegeEscalation | Self::CodeExecution => Severity::Critical,
        }
    }

    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::JqDanger => "JqDanger",
            Self::ObfuscatedFlags => "ObfuscatedFlags",
            Self::ShellMetacharacters => "ShellMetacharacters",
            Self::DangerousVariables => "DangerousVariables",
            Self::NewlineInjection => "NewlineInjection",
            Self::IfsInjection => "IfsInjection",
            Self::ProcEnvironAccess => "ProcEnvironAccess",
            Self::DangerousSubstitution => "DangerousSubstitution",
            Self::MalformedTokens => "MalformedTokens",
            Self::SensitiveRedirect => "SensitiveRedirect",
            Self::NetworkExfiltration => "NetworkExfiltration",
            Self::PrivilegeEscalation => "PrivilegeEscalation",
            Self::FileSystemTampering => "FileSystemTampering",
            Self::CodeExecution => "CodeExecution",
        }
    }

    /// What to do about it, for those whose text should be written plainly.
    pub fn advice(self) -> &'static str {
        match self {
            Self::JqDanger => "give jq its files as operands and leave env, modules and file flags out",
            Self::ObfuscatedFlags => {
                "write the command name and its flags plainly, without split quotes or expansions"
            }
            Self::ShellMetacharacters => {
                "pass the data as an argument ($1) instead of pasting it into the code"
            }
            Self::DangerousVariables => "name the command or the file itself instead of a variable",
            Self::NewlineInjection => "write one command per line and no command behind a comment",
            Self::IfsInjection => "separate words with plain blanks and leave IFS alone",
            Self::ProcEnvironAccess => "do not read the environment of processes",
            _ => "a person has to look at it",
        }
    }
}

impl fmt::Display for RiskKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A risk that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Risk {
    /// Which.
    pub kind: RiskKind,
    /// What exactly, in a few words.
    pub detail: String,
    /// The words that cause it.
    pub span: Span,
}
