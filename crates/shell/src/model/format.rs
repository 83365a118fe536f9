//! The shape of a command model as it is written in `models/*.toml`. The build script reads the
//! files through these types, so a misspelt field or a malformed option fails the build.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// One program or subcommand.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Entry {
    /// Further names of the same program.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub names: Vec<String>,
    /// How its arguments are read.
    #[serde(flatten)]
    pub syntax: Syntax,
    /// What it does.
    #[serde(flatten)]
    pub conduct: Conduct,
    /// How it runs other commands.
    #[serde(flatten)]
    pub nesting: Nesting,
    /// What an exit code means where it is no failure.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub exits: BTreeMap<String, String>,
    /// Subcommands with models of their own.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sub: BTreeMap<String, Entry>,
    /// Subcommands by their effects, arguments not modelled.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub changes: BTreeMap<String, String>,
    /// Command lines that only read.
    #[serde(skip_serializing)]
    pub allow: Vec<String>,
    /// Command lines that do not.
    #[serde(skip_serializing)]
    pub refuse: Vec<String>,
    /// What no field is called.
    #[serde(flatten, skip_serializing)]
    pub unknown: BTreeMap<String, serde::de::IgnoredAny>,
}

/// How arguments are read.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Syntax {
    /// Option tokens.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub options: String,
    /// Option groups of the same file.
    #[serde(rename = "use", skip_serializing)]
    pub groups: Vec<String>,
    /// Options may follow operands; the default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permute: Option<bool>,
    /// Unique prefixes of long options count.
    #[serde(skip_serializing_if = "is_false")]
    pub abbrev: bool,
    /// Options are whole words with one dash.
    #[serde(skip_serializing_if = "is_false")]
    pub words: bool,
    /// `-x` and `--x` are the same.
    #[serde(skip_serializing_if = "is_false")]
    pub either: bool,
    /// What is no known option is an operand, as `echo` has it.
    #[serde(skip_serializing_if = "is_false")]
    pub lax: bool,
    /// A required value is taken whatever it looks like.
    #[serde(skip_serializing_if = "is_false")]
    pub greedy: bool,
    /// Options that mean something else when given together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub conflicts: Vec<String>,
    /// A word that starts with `@` names a file with further arguments.
    #[serde(skip_serializing_if = "is_false")]
    pub response: bool,
    /// Letters allowed in a first operand without a dash.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub bundled: String,
    /// Operand words without meaning of their own.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub literals: String,
}

/// What a program does.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Conduct {
    /// Kinds of operands by position.
    #[serde(skip_serializing_if = "Operands::is_none")]
    pub operands: Operands,
    /// Effects whenever it runs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub effects: String,
    /// Options that turn `effects` off.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub listing: String,
    /// Arguments that, alone, only print.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub info: String,
    /// Effects without operand and subcommand.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub bare: String,
    /// Arguments are not modelled.
    #[serde(skip_serializing_if = "is_false")]
    pub opaque: bool,
    /// `safe`: no option can do harm.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub data: String,
    /// Read-only only in its hardened form.
    #[serde(skip_serializing_if = "is_false")]
    pub hardened: bool,
    /// Obeys the configuration of the repository it stands in.
    #[serde(skip_serializing_if = "is_false")]
    pub repository: bool,
    /// Arguments with any of which it prints one plain word, or `always`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub plain: String,
    /// The same for any number of plain words.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub ids: String,
    /// The same for one number.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub number: String,
    /// The same for any number of numbers.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub numbers: String,
    /// The same for one word of any text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub single: String,
    /// An option and the value with which a request only asks, and the options that then send no more.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub asks: String,
    /// Subcommands, or else arguments, with any of which it must not be cut short.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub finish: String,
}

/// How a program runs other commands.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(default)]
pub(crate) struct Nesting {
    /// Marks data in the nested command.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub placeholder: String,
    /// Data is appended to the nested command.
    #[serde(skip_serializing_if = "is_false")]
    pub appends: bool,
    /// Options whose value is the placeholder.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub replace: String,
}

/// `operands`: one kind or a list.
#[derive(Debug, Clone, Default, Deserialize, Serialize)]
#[serde(untagged)]
pub(crate) enum Operands {
    /// None allowed.
    #[default]
    None,
    /// One kind.
    One(String),
    /// By position.
    List(Vec<String>),
}

impl Operands {
    fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// The kinds as written.
    pub(crate) fn kinds(&self) -> Vec<&str> {
        match self {
            Self::None => Vec::new(),
            Self::One(kind) => vec![kind.as_str()],
            Self::List(kinds) => kinds.iter().map(String::as_str).collect(),
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}
