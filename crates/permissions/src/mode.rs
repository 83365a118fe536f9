//! Permission modes.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// How calls that no rule settles are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// Ask for everything but reads inside the working directories.
    #[default]
    Default,
    /// Look, think, write a plan; change nothing.
    Plan,
    /// As default, and edits inside the working directories are allowed.
    AcceptEdits,
    /// Never ask: what is not allowed is denied.
    DontAsk,
    /// Allow everything that no deny, check or ask rule stops.
    BypassPermissions,
    /// Let a classifier answer in place of the person where it can.
    Auto,
}

impl Mode {
    /// Every mode, in the order help texts list them.
    pub const ALL: [Mode; 6] =
        [Mode::Default, Mode::Plan, Mode::AcceptEdits, Mode::DontAsk, Mode::BypassPermissions, Mode::Auto];

    /// The name used in settings and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Mode::Default => "default",
            Mode::Plan => "plan",
            Mode::AcceptEdits => "acceptEdits",
            Mode::DontAsk => "dontAsk",
            Mode::BypassPermissions => "bypassPermissions",
            Mode::Auto => "auto",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A mode name that does not exist.
#[derive(Debug, thiserror::Error)]
#[error(
    "there is no permission mode \"{0}\": use default, plan, acceptEdits, dontAsk, bypassPermissions or auto"
)]
pub struct UnknownMode(String);

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Mode::ALL.into_iter().find(|mode| mode.name() == name).ok_or_else(|| UnknownMode(name.to_owned()))
    }
}
