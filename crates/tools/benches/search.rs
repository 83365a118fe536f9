//! Grep against `rg` and Glob against `fdfind`, over the unpacked sources of our own dependencies: a small, a
//! medium and a large tree. The rivals are processes, as someone without these tools would start them. Ends with
//! a table of ratios.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};

use gripper_runtime::{CallRequest, CallResult, Located, Registry, Toolbox, erase, permissions::Policy};
use gripper_testkit::{bench::Report, registry_sources, run_all};
use gripper_tools::{
    glob::{Glob, Settings},
    grep::{Found, Grep, Input, Wanted, search_all},
    walk::Root,
};
use serde_json::{Value, json};

const MODES: [(&str, &str); 3] = [("files_with_matches", "-l"), ("count", "-c"), ("content", "-n")];
/// Rare enough that all results fit one call, common enough that there are some.
const RARE: &str = r"fn with_capacity_and\w*\(";
/// In nearly every file.
const COMMON: &str = "return";

fn main() {
    let large = registry_sources();
    let mut crates: Vec<PathBuf> =
        std::fs::read_dir(&large).unwrap().map(|entry| entry.unwrap().path()).collect();
    crates.sort_by_key(|folder| fd(folder, "*").lines().count());
    let trees =
        [("small", &crates[crates.len() / 2]), ("medium", &crates[crates.len() - 1]), ("large", &large)];
    // A word on the command line chooses one of the trees.
    let chosen = |size: &str| std::env::args().any(|word| word == size);
    let all_sizes = !["small", "medium", "large"].into_iter().any(chosen);
    for (size, tree) in trees.into_iter().filter(|(size, _)| all_sizes || chosen(size)) {
        let mut report = Report::new("search");
        let toolbox = toolbox(tree);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let call = |tool: &str, input: Value| {
            runtime.block_on(run_all(&toolbox, [CallRequest::new("c1", tool, input)])).remove(0)
        };
        let rounds = if size == "large" { 5 } else { 21 };
        for (mode, flag) in MODES {
            let input = json!({"pattern": RARE, "output_mode": mode});
            same(&call("Grep", input.clone()), &rg(tree, flag, RARE), size);
            let name = format!("Grep {mode}, {size}, rare");
            report.ratio(&name, rounds, 1.0, || call("Grep", input.clone()), "rg", || rg(tree, flag, RARE));
            let name = format!("Grep {mode}, {size}, all of a common word");
            report.ratio(&name, rounds, 1.0, || all(tree, mode), "rg", || rg(tree, flag, COMMON));
        }
        let input = json!({"pattern": "**/*.rs"});
        let found = call("Glob", input.clone()).structured.as_ref().unwrap()["totalMatches"].clone();
        assert_eq!(found, json!(fd(tree, "**/*.rs").lines().count()), "{size}");
        let name = format!("Glob **/*.rs, {size}");
        report.ratio(&name, rounds, 1.0, || call("Glob", input.clone()), "fdfind", || fd(tree, "**/*.rs"));
        report.print();
    }
    let mut report = Report::new("search");
    first_page(&mut report, &crates, &large);
    report.print();
}

/// The first page costs the same however much follows it: what is left of the difference is the longer list of
/// folders at the top, with more than ten times as many files below.
fn first_page(report: &mut Report, crates: &[PathBuf], large: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (few, many) = (toolbox(&crates[crates.len() - 1]), toolbox(large));
    let page = |toolbox: &Arc<Toolbox>| {
        let input = json!({"pattern": COMMON, "output_mode": "content", "head_limit": 20});
        runtime.block_on(run_all(toolbox, [CallRequest::new("c1", "Grep", input)])).remove(0)
    };
    report.ratio("first 20 lines, large tree", 41, 5.0, || page(&many), "medium tree", || page(&few));
}

fn toolbox(tree: &Path) -> Arc<Toolbox> {
    let mut registry = Registry::default();
    registry.register(erase(Grep::default())).unwrap();
    registry.register(erase(Glob::new(Settings::default()))).unwrap();
    Toolbox::builder(registry, Policy::new(tree)).build()
}

/// The search without the bound of a call.
fn all(tree: &Path, mode: &str) -> Found {
    let input: Input = serde_json::from_value(json!({"pattern": COMMON, "output_mode": mode})).unwrap();
    let root = Root { at: Located { written: tree.to_owned(), real: tree.to_owned() }, cwd: tree.to_owned() };
    search_all(&root, &input, Wanted::ALL, Instant::now() + Duration::from_secs(100)).unwrap()
}

fn same(result: &CallResult, theirs: &str, size: &str) {
    let structured = result.structured.as_ref().unwrap();
    let ours = match structured["content"].as_str() {
        Some(content) => content.lines().map(str::to_owned).collect::<Vec<_>>(),
        None => serde_json::from_value(structured["filenames"].clone()).unwrap(),
    };
    let mut ours: Vec<&str> = ours.iter().map(String::as_str).collect();
    let mut theirs: Vec<&str> = theirs.lines().map(str::trim_end).collect();
    ours.sort_unstable();
    theirs.sort_unstable();
    assert_eq!(ours.len(), theirs.len(), "{size}: as many results");
}

fn rg(tree: &Path, mode: &str, pattern: &str) -> String {
    let arguments = ["--no-config", "--hidden", "-g", "!.git", "-H", mode, "--", pattern];
    run(Command::new("rg").args(arguments).arg(".").current_dir(tree))
}

fn fd(tree: &Path, pattern: &str) -> String {
    let arguments = ["--no-ignore", "--hidden", "-E", ".git", "-t", "f", "-g", pattern];
    run(Command::new("fdfind").args(arguments).current_dir(tree))
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("rg and fdfind, from the packages ripgrep and fd-find");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
