//! Path rules mean what the same line would mean in a `.gitignore` file: git itself is asked.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop at the first surprise"
)]

use std::{
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use gripper_permissions::{Behavior, PathUse, Policy, Request, Rule, RuleList, Source, Subject, decide};
use proptest::{
    prelude::Strategy,
    prop_oneof, sample,
    strategy::ValueTree,
    test_runner::{Config, TestRng, TestRunner},
};

/// Patterns that are compared.
const PATTERNS: usize = 120;

/// Names that patterns and paths are made of.
fn part() -> impl Strategy<Value = String> {
    let names = vec!["a", "b", "ab", "abc", ".x", "a.rs", "b.rs", "c d"];
    let globs = vec!["*", "a*", "*b", "?", "a?", "[ab]", "[!a]b", "*.rs", "**", "\\*", "[a-c]*"];
    prop_oneof![3 => sample::select(names), 2 => sample::select(globs)].prop_map(str::to_owned)
}

fn pattern() -> impl Strategy<Value = String> {
    let parts = proptest::collection::vec(part(), 1..4).prop_map(|parts| parts.join("/"));
    (sample::select(vec!["", "", "/", "**/"]), parts, sample::select(vec!["", "", "/", "/**"]))
        .prop_map(|(front, middle, end)| format!("{front}{middle}{end}"))
}

fn paths() -> Vec<String> {
    let names = ["a", "b", "ab", "abc", ".x", "a.rs", "c d", "*"];
    let mut paths: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    for outer in names {
        for inner in names {
            paths.push(format!("{outer}/{inner}"));
            paths.push(format!("b/{outer}/{inner}"));
            paths.push(format!("{outer}/ab/{inner}/a.rs"));
        }
    }
    paths
}

/// The paths that git would ignore.
fn ignored_by_git(repository: &Path, pattern: &str, paths: &[String]) -> Vec<String> {
    std::fs::write(repository.join(".gitignore"), format!("{pattern}\n")).unwrap();
    let mut git = Command::new("git")
        .args(["-c", "core.excludesFile=/dev/null", "check-ignore", "--no-index", "--stdin", "-z"])
        .current_dir(repository)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    git.stdin.take().unwrap().write_all(paths.join("\0").as_bytes()).unwrap();
    let output = git.wait_with_output().unwrap();
    assert!(output.status.code().is_some_and(|code| code < 2), "git failed on {pattern}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect()
}

fn matched_by_rule(repository: &Path, pattern: &str, paths: &[String]) -> Vec<String> {
    let rule = Rule::parse(&format!("Edit({pattern})")).unwrap();
    let mut policy = Policy::new(repository);
    policy.rules.add(RuleList::Allow, rule, Source::command_line());
    let fits = |path: &&String| {
        let path: PathBuf = repository.join(path.as_str());
        let subject = Subject::Path(PathUse::new(&path, &path, true));
        let request = Request { subjects: vec![subject], edits_files: true, ..Request::new("Edit") };
        decide(&policy, &request).behavior == Behavior::Allow
    };
    paths.iter().filter(fits).cloned().collect()
}

#[test]
fn rules_mean_what_git_would_make_of_them() {
    let folder = tempfile::tempdir().unwrap();
    let repository = folder.path().canonicalize().unwrap();
    let made = Command::new("git").args(["init", "-q"]).current_dir(&repository).status().unwrap();
    assert!(made.success());
    let rng = TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    let (strategy, paths) = (pattern(), paths());
    let mut hits = 0;
    for _ in 0..PATTERNS {
        let pattern = strategy.new_tree(&mut runner).unwrap().current();
        let expected = ignored_by_git(&repository, &pattern, &paths);
        hits += expected.len();
        assert_eq!(matched_by_rule(&repository, &pattern, &paths), expected, "{pattern}");
    }
    assert!(hits > PATTERNS, "the patterns hit too little to show anything");
}
