//! The one list of exceptions to the rules.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use super::tree::Tree;
use super::{Rule, Violation};

/// Where the list is.
pub(super) const LIST: &str = "crates/testkit/tidy-exceptions.toml";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    exception: Vec<Exception>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Exception {
    rule: String,
    path: String,
    why: String,
}

impl Exception {
    fn excuses(&self, violation: &Violation) -> bool {
        self.rule == violation.rule.name() && self.path == violation.path
    }
}

/// Drops the violations that the list excuses, and adds one for each entry that excuses none.
pub(super) fn excuse(tree: &Tree, mut violations: Vec<Violation>) -> Result<Vec<Violation>> {
    if !tree.has(LIST) {
        return Ok(violations);
    }
    let list: List = toml::from_str(&tree.text(LIST)?).with_context(|| format!("cannot read {LIST}"))?;
    for entry in &list.exception {
        let known = Rule::ALL.iter().any(|rule| rule.name() == entry.rule);
        ensure!(
            known,
            "{LIST}: there is no rule `{}`; use a name that a report shows in brackets",
            entry.rule
        );
        ensure!(!entry.why.trim().is_empty(), "{LIST}: say why {} may break {}", entry.path, entry.rule);
    }
    let stale = list.exception.iter().filter(|entry| !violations.iter().any(|found| entry.excuses(found)));
    let stale: Vec<Violation> = stale.map(stale_entry).collect();
    violations.retain(|found| !list.exception.iter().any(|entry| entry.excuses(found)));
    violations.extend(stale);
    Ok(violations)
}

fn stale_entry(entry: &Exception) -> Violation {
    let message = format!("{} no longer breaks {}: remove the entry", entry.path, entry.rule);
    Violation { path: LIST.to_owned(), line: 1, rule: Rule::StaleException, message }
}
