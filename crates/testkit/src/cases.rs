//! Whole-call scenarios as folders, no code per case.
//!
//! `cases/NAME/` holds `before/` (the project, may be left out), `call.json` (the tool's input;
//! `[project]` stands for the project's path), `after/` (what the project must look like, if it
//! changes) and `result.md` (what the model reads). `call.json` may also be a list of inputs, run one
//! after the other; `{"tool": "Read", "input": {…}}` is a call of another tool, whose result does not
//! count. Edits are accepted. `UPDATE=1` rewrites `after` and `result.md`.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use gripper_runtime::{
    CallRequest, DynTool, Registry, Toolbox,
    permissions::{Mode, Policy},
};
use serde_json::Value;

use crate::{Workspace, filters, run_all};

/// Runs every case below `folder`, the folder of one tool among `all`. Gives how many there were.
pub fn run_folder(folder: &Path, tool: &Arc<dyn DynTool>, all: &[Arc<dyn DynTool>]) -> usize {
    let Ok(entries) = fs::read_dir(folder.join("cases")) else { return 0 };
    let mut cases: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    cases.sort();
    for case in &cases {
        run_case(case, tool, all);
    }
    cases.len()
}

fn run_case(case: &Path, tool: &Arc<dyn DynTool>, all: &[Arc<dyn DynTool>]) {
    let workspace = Workspace::new();
    let before = files(&case.join("before"));
    for (name, content) in &before {
        workspace.write(name, content);
    }
    let project = workspace.project();
    let calls = fs::read_to_string(case.join("call.json"))
        .unwrap_or_else(|error| panic!("{}: {error}", case.join("call.json").display()))
        .replace("[project]", &project.to_string_lossy());
    let calls = serde_json::from_str(&calls).unwrap_or_else(|error| panic!("{}: {error}", case.display()));
    let calls = match calls {
        Value::Array(calls) => calls,
        call => vec![call],
    };
    let mut registry = Registry::default();
    for tool in all {
        registry.register(tool.clone()).expect("tools with different names");
    }
    let policy = Policy::new(project).with_mode(Mode::AcceptEdits);
    let toolbox = Toolbox::builder(registry, policy).build();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut shown = String::new();
    for call in calls {
        let other = call["tool"].as_str().map(str::to_owned);
        let input = if other.is_some() { call["input"].clone() } else { call };
        let name = other.as_deref().unwrap_or(&tool.spec().name);
        let result = runtime.block_on(run_all(&toolbox, [CallRequest::new("c1", name, input)])).remove(0);
        if other.is_none() {
            if let Some(code) = result.error_code {
                shown.push_str(&format!("error {code}\n\n"));
            }
            shown.push_str(&format!("{}\n", filters::stable(&result.to_string(), &workspace)));
        }
    }
    check_text(&case.join("result.md"), &shown);
    let now = files(&workspace.project());
    if std::env::var_os("UPDATE").is_some() {
        put_after(&case.join("after"), &before, &now);
    }
    let expected = if case.join("after").exists() { files(&case.join("after")) } else { before };
    assert_eq!(now, expected, "{}: the project after the call", case.display());
}

/// Rewrites the folder with what a case comes to, if it changes anything.
fn put_after(folder: &Path, before: &BTreeMap<String, Vec<u8>>, now: &BTreeMap<String, Vec<u8>>) {
    fs::remove_dir_all(folder).ok();
    for (name, content) in now.iter().filter(|_| before != now) {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().expect("a folder above")).expect("its folders");
        fs::write(path, content).expect("the file");
    }
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
