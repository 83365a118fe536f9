//! Whole-call scenarios as folders, no code per case.
//!
//! `cases/NAME/` holds `before/` (the project, may be left out), `call.json` (the tool's input;
//! `[project]` stands for the project's path), `after/` (what the project must look like, if it
//! changes) and `result.md` (what the model reads). `UPDATE=1` rewrites `result.md`.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use gripper_runtime::{CallRequest, DynTool, Registry, Toolbox, permissions::Policy};

use crate::{Workspace, filters, run_all};

/// Runs every case below `folder`, the folder of one tool. Gives how many there were.
pub fn run_folder(folder: &Path, tool: &Arc<dyn DynTool>) -> usize {
    let Ok(entries) = fs::read_dir(folder.join("cases")) else { return 0 };
    let mut cases: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    cases.sort();
    for case in &cases {
        run_case(case, tool);
    }
    cases.len()
}

fn run_case(case: &Path, tool: &Arc<dyn DynTool>) {
    let workspace = Workspace::new();
    let before = files(&case.join("before"));
    for (name, content) in &before {
        workspace.write(name, content);
    }
    let project = workspace.project();
    let call = fs::read_to_string(case.join("call.json"))
        .unwrap_or_else(|error| panic!("{}: {error}", case.join("call.json").display()))
        .replace("[project]", &project.to_string_lossy());
    let input = serde_json::from_str(&call).unwrap_or_else(|error| panic!("{}: {error}", case.display()));
    let mut registry = Registry::default();
    registry.register(tool.clone()).expect("one tool");
    let toolbox = Toolbox::builder(registry, Policy::new(project)).build();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let results = runtime.block_on(run_all(&toolbox, [CallRequest::new("c1", &tool.spec().name, input)]));
    let mut shown = filters::stable(&results[0].to_string(), &workspace);
    if let Some(code) = results[0].error_code {
        shown = format!("error {code}\n\n{shown}");
    }
    check_text(&case.join("result.md"), &(shown + "\n"));
    let expected = if case.join("after").exists() { files(&case.join("after")) } else { before };
    assert_eq!(files(&workspace.project()), expected, "{}: the project after the call", case.display());
}

/// Compares a text with a committed file; `UPDATE=1` rewrites the file instead.
pub fn check_text(file: &Path, actual: &str) {
    if std::env::var_os("UPDATE").is_some() {
        fs::write(file, actual).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        return;
    }
    let expected = fs::read_to_string(file).unwrap_or_default();
    assert!(
        expected == actual,
        "{} is not up to date; run with UPDATE=1 and look at the change\n--- expected\n{expected}\n--- actual\n{actual}",
        file.display()
    );
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(current) = folders.pop() {
        for entry in fs::read_dir(&current).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).expect("a file below").to_string_lossy().into_owned();
                found.insert(name, fs::read(&path).expect("a readable file"));
            }
        }
    }
    found
}
