//! Holding schemas back: when the deferrable tools would take too much of the context window,
//! they are announced by name and loaded by a search.

use std::{collections::BTreeSet, fmt, str::FromStr, sync::Arc};

use super::Pool;
use crate::tool::{DynTool, Loading};

/// When deferrable tools are held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deferral {
    /// When their schemas exceed so many per cent of the window.
    Auto(u8),
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Default for Deferral {
    fn default() -> Self {
        Deferral::Auto(10)
    }
}

/// A text that names no deferral.
#[derive(Debug, thiserror::Error)]
#[error("\"{0}\" is not a tool search setting: use auto, auto:N (1 to 100 per cent), always or never")]
pub struct BadDeferral(String);

impl FromStr for Deferral {
    type Err = BadDeferral;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bad = || BadDeferral(text.to_owned());
        match text {
            "auto" => Ok(Self::default()),
            "always" => Ok(Deferral::Always),
            "never" => Ok(Deferral::Never),
            _ => match text.strip_prefix("auto:").ok_or_else(bad)?.parse() {
                Ok(share @ 1..=100) => Ok(Deferral::Auto(share)),
                _ => Err(bad()),
            },
        }
    }
}

impl fmt::Display for Deferral {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Deferral::Auto(share) => write!(f, "auto:{share}"),
            Deferral::Always => f.write_str("always"),
            Deferral::Never => f.write_str("never"),
        }
    }
}

/// What the model is told about the tools.
pub struct Announcement<'a> {
    /// Sent with their schemas, in pool order.
    pub full: Vec<&'a Arc<dyn DynTool>>,
    /// Announced by name only.
    pub names: Vec<&'a str>,
}

impl Pool {
    /// Splits the pool by what is sent in full. Tools in `loaded` are: a search brought them in.
    pub fn announce(
        &self,
        deferral: Deferral,
        window_tokens: usize,
        loaded: &BTreeSet<String>,
    ) -> Announcement<'_> {
        let hold_back = match deferral {
            Deferral::Always => true,
            Deferral::Never => false,
            Deferral::Auto(share) => {
                let cost: usize = self.deferrable().map(|tool| tool.spec().token_estimate()).sum();
                cost > window_tokens / 100 * usize::from(share)
            }
        };
        let mut announcement = Announcement { full: Vec::new(), names: Vec::new() };
        for tool in self.tools() {
            let spec = tool.spec();
            let deferred = hold_back
                && spec.facts.loading == Loading::Deferrable
                && !loaded.contains(spec.name.as_ref());
            if deferred {
                announcement.names.push(&spec.name);
            } else {
                announcement.full.push(tool);
            }
        }
        announcement
    }
}
