//! Rules about files that must be there: documents, complete tool folders, the index of decisions.

use super::tree::Tree;
use super::{Rule, Violation, links};

const REQUIRED: &[(&str, &str)] = &[
    ("CHANGELOG.md", "say in it what changed for users"),
    ("README.md", "say in it what this is and how to try it"),
];

const TOOLS: &str = "crates/tools/src";
/// Folders beside the tools that hold what several of them use.
const NO_TOOLS: &[&str] = &["text"];
const TOOL_FILES: &[&str] = &["description.md", "mod.rs", "schema.json", "tests.rs"];

const DECISIONS: &str = "docs/decisions/";
const DECISION_INDEX: &str = "docs/decisions/README.md";

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    let mut found = required_files(tree);
    found.extend(tool_folders(tree));
    found.extend(unlinked_decisions(tree));
    found
}

fn required_files(tree: &Tree) -> Vec<Violation> {
    REQUIRED
        .iter()
        .filter(|(path, _)| !tree.has(path))
        .map(|(path, advice)| missing(Rule::RequiredFile, path, format!("the file is missing: {advice}")))
        .collect()
}

fn tool_folders(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for tool in tree.folders(TOOLS).into_iter().filter(|name| !NO_TOOLS.contains(&name.as_ref())) {
        for file in TOOL_FILES {
            let path = format!("{TOOLS}/{tool}/{file}");
            if !tree.has(&path) {
                let message = format!("the folder of a tool is complete: add {file}");
                found.push(missing(Rule::ToolFolder, &path, message));
            }
        }
    }
    found
}

fn unlinked_decisions(tree: &Tree) -> Vec<Violation> {
    let linked = links::targets(tree, DECISION_INDEX);
    tree.files
        .iter()
        .filter(|path| path.starts_with(DECISIONS) && path.ends_with(".md") && *path != DECISION_INDEX)
        .filter(|path| !linked.contains(path))
        .map(|path| {
            missing(Rule::UnlinkedDecision, path, format!("link this decision from {DECISION_INDEX}"))
        })
        .collect()
}

fn missing(rule: Rule, path: &str, message: String) -> Violation {
    Violation { path: path.to_owned(), line: 1, rule, message }
}
