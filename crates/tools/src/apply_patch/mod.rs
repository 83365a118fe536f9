//! apply_patch: several files added, changed, moved and deleted by one patch, all or nothing.

pub mod envelope;
pub mod place;

use schemars::JsonSchema;
use serde::Deserialize;

/// What a call carries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The patch, from `*** Begin Patch` to `*** End Patch`.
    #[serde(alias = "patch")]
    #[schemars(length(min = 1))]
    pub input: String,
}

#[cfg(test)]
mod tests;
