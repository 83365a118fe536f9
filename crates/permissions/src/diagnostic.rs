//! What is wrong with a settings file or a rule, in a form that people and editors can use.

use std::fmt;

use serde::Serialize;

use crate::Source;

/// How much a diagnostic matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Weight {
    /// The entry does not count; everything else still does.
    Error,
    /// The entry counts, though hardly as it was meant.
    Warning,
    /// Worth knowing.
    Note,
}

impl Weight {
    /// The word used in messages.
    pub fn name(self) -> &'static str {
        match self {
            Weight::Error => "error",
            Weight::Warning => "warning",
            Weight::Note => "note",
        }
    }
}

/// One finding: where, what, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// How much it matters.
    pub weight: Weight,
    /// The file and line it is about.
    pub source: Source,
    /// What is wrong and what follows from it.
    pub what: String,
    /// What to write instead.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl Diagnostic {
    /// An entry that does not count.
    pub fn error(source: Source, what: impl Into<String>) -> Self {
        Self { weight: Weight::Error, source, what: what.into(), fix: None }
    }

    /// An entry that counts, though hardly as it was meant.
    pub fn warning(source: Source, what: impl Into<String>) -> Self {
        Self { weight: Weight::Warning, ..Self::error(source, what) }
    }

    /// Adds what to do about it.
    #[must_use]
    pub fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.source, self.what)?;
        match &self.fix {
            Some(fix) => write!(f, "; {fix}"),
            None => Ok(()),
        }
    }
}
