//! A model that finds files in what commands print.

use std::{path::PathBuf, time::Duration};

use super::{Crew, judge::say};

/// Later, nobody needs it any more.
const PATIENCE: Duration = Duration::from_secs(20);
/// No name of a file is longer.
const LONGEST: usize = 4_096;

impl Crew {
    /// The files that an output names, as the fast model sees it: nothing if it cannot be asked, or if nothing may be
    /// spent any more.
    pub async fn files_in(&self, output: String) -> Vec<PathBuf> {
        let Some(lead) = self.state().members.get("main").cloned() else { return Vec::new() };
        let spent = lead.budget.is_some_and(|budget| lead.till.total() >= budget);
        let Some(model) = self.models().fast().filter(|_| !spent) else { return Vec::new() };
        let said = say(&lead, model, include_str!("prompts/files.md"), output);
        let said = tokio::time::timeout(PATIENCE, said).await;
        let said = said.ok().and_then(Result::ok).unwrap_or_default();
        let lines = said.lines().map(str::trim).filter(|line| !line.is_empty() && line.len() <= LONGEST);
        lines.map(PathBuf::from).collect()
    }
}
