//! The tools that the rule language knows by name, from a table.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

const TABLE: &str = include_str!("../data/tools.toml");

/// What the specifier of a rule for a tool is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A command line.
    Command,
    /// A file that is read.
    Read,
    /// A file that is changed.
    Edit,
    /// The host of a URL.
    Domain,
    /// A kind of sub-agent.
    Agent,
    /// A skill.
    Skill,
    /// Nothing.
    Plain,
}

/// One line of the table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownTool {
    /// What its specifier is about.
    pub kind: Kind,
    /// The part of the input that is compared with the specifier.
    #[serde(default)]
    pub input: String,
    /// The part that says where in a folder to look.
    #[serde(default)]
    pub within: Option<String>,
    /// It talks to a person.
    #[serde(default)]
    pub person: bool,
    /// It changes nothing outside the session.
    #[serde(default)]
    pub session: bool,
    /// It runs code that nobody takes apart.
    #[serde(default)]
    pub opaque: bool,
}

static KNOWN: LazyLock<BTreeMap<String, KnownTool>> =
    LazyLock::new(|| toml::from_str(TABLE).unwrap_or_default());

/// What the rule language knows of a tool.
pub fn known(name: &str) -> Option<&'static KnownTool> {
    KNOWN.get(name)
}

/// The known tool, or one of `others`, whose name is nearly the same.
pub fn near<'n>(name: &str, others: &[&'n str]) -> Option<&'n str> {
    let far = |known: &str| strsim::damerau_levenshtein(&known.to_lowercase(), &name.to_lowercase());
    let all = KNOWN.keys().map(|known| -> &'n str { known }).chain(others.iter().copied());
    all.map(|known| (far(known), known)).min().filter(|(far, _)| *far <= 2).map(|(_, known)| known)
}
