//! Every tool folder is checked the same way: its schema file is up to date and its cases hold.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{path::PathBuf, sync::Arc};

use gripper_runtime::DynTool;
use gripper_testkit::cases;
use gripper_tools::{Services, all};

/// `TodoWrite` lives in `todo_write`.
fn folder_of(tool: &Arc<dyn DynTool>) -> PathBuf {
    let mut name = String::new();
    let mut small = false;
    for character in tool.spec().name.chars() {
        // `REPL` is one word.
        if character.is_uppercase() && small {
            name.push('_');
        }
        small = character.is_lowercase();
        name.extend(character.to_lowercase());
    }
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("src").join(name)
}

#[test]
fn tools_are_listed_by_name() {
    let names: Vec<String> =
        all(&Services::default()).iter().map(|tool| tool.spec().name.to_string()).collect();
    assert!(names.is_sorted(), "{names:?}");
}

#[test]
fn schema_files_are_up_to_date() {
    for tool in all(&Services::default()) {
        let schema = serde_json::to_string_pretty(tool.spec().input.value()).unwrap() + "\n";
        cases::check_text(&folder_of(&tool).join("schema.json"), &schema);
    }
}

#[test]
fn cases_hold() {
    let tools = all(&Services::default());
    let count: usize = tools.iter().map(|tool| cases::run_folder(&folder_of(tool), tool, &tools)).sum();
    assert!(count >= 60, "only {count} cases were found: the folders have moved");
}

#[test]
fn schemas_compile_and_examples_fit_them() {
    for tool in all(&Services::default()) {
        tool.spec().input.verify().unwrap_or_else(|error| panic!("{}: {error}", tool.spec().name));
        for example in &tool.spec().examples {
            tool.spec()
                .input
                .check(example)
                .unwrap_or_else(|problems| panic!("{}: {problems:?}", tool.spec().name));
        }
    }
}
