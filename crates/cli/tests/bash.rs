//! Commands through the binary: what they may do, what is left of them, and how they are taken back.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{collections::BTreeMap, fs, path::Path};

use gripper_testkit::{Binary, Ran, Workspace};
use rstest::rstest;
use serde_json::json;

fn gripper(workspace: &Workspace) -> Binary<'_> {
    Binary::new(env!("CARGO_BIN_EXE_gripper"), workspace)
}

/// Runs command lines as one turn, each approved.
fn approved(workspace: &Workspace, commands: &[&str]) -> Ran {
    let line = |command: &&str| json!({"name": "Bash", "input": {"command": command}}).to_string();
    let lines: Vec<String> = commands.iter().map(line).collect();
    gripper(workspace).args(["run", "-", "--yes"]).input(lines.join("\n")).run()
}

/// Every file below a folder with its content.
fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(current) = folders.pop() {
        for entry in fs::read_dir(&current).unwrap().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
            if entry.file_type().unwrap().is_dir() {
                found.insert(name + "/", Vec::new());
                folders.push(path);
            } else {
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[rstest]
#[case::in_place("sed -i s/one/two/ a.txt")]
#[case::moved("mv a.txt b.txt")]
#[case::moved_folder("mv src other")]
#[case::removed("rm a.txt")]
#[case::removed_folder("rm -r src")]
#[case::made("mkdir -p new/deep && echo x > new/deep/file")]
#[case::script("sh build.sh")]
fn undo_takes_back_what_a_command_changed(#[case] command: &str) {
    let workspace = Workspace::new();
    workspace.write("a.txt", "one\n");
    workspace.write("src/lib.rs", "fn main() {}\n");
    workspace.write("src/deep/mod.rs", "mod deep;\n");
    workspace.write(
        "build.sh",
        "echo built > out.txt; rm -r src/deep; echo more >> a.txt; mkdir -p gen; echo g > gen/g\n",
    );
    let before = tree(&workspace.project());
    let ran = approved(&workspace, &[command]);
    assert_ne!(tree(&workspace.project()), before, "{}", ran.transcript());
    let undone = gripper(&workspace).args(["undo"]).run();
    assert_eq!(tree(&workspace.project()), before, "{}", undone.transcript());
}
