//! What it costs to read settings, beside merely reading and parsing the same files.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{fs, path::PathBuf, time::Instant};

use gripper_runtime::{
    environment::Environment,
    permissions::RuleList,
    settings::{Sources, Watch, load},
};
use gripper_testkit::bench::{Report, percentile};
use serde_json::{Value, json};

fn main() {
    let mut report = Report::new("settings");
    let root = tempfile::tempdir().expect("a folder");
    let files = [".claude/settings.json", ".claude/settings.local.json", ".gripper/settings.json"]
        .map(|name| root.path().join("home/project").join(name))
        .into_iter()
        .chain([root.path().join("home/.claude/settings.json")])
        .collect::<Vec<PathBuf>>();
    let tools = ["Read", "Edit", "Write", "Grep", "Glob", "Sleep", "mcp__server__tool"];
    let rules = |from: usize| (from..from + 20).map(|n| tools[n % tools.len()]).collect::<Vec<_>>();
    for file in &files {
        fs::create_dir_all(file.parent().expect("a folder")).expect("its folder");
        let value = json!({
            "permissions": {"allow": rules(0), "ask": rules(3), "deny": rules(5), "defaultMode": "acceptEdits"},
            "env": {"LANG": "C", "CI": "1"}, "model": "large",
            "hooks": {"PreToolUse": [{"matcher": "Edit|Write", "hooks": [{"type": "command", "command": "./check"}]}]},
        });
        fs::write(file, format!("{value:#}")).expect("the file");
    }
    let home = root.path().join("home").to_string_lossy().into_owned();
    let environment = Environment::from_lookup(|name| (name == "HOME").then(|| home.clone()));
    let sources = Sources::discover(&environment, &root.path().join("home/project"), None);
    let start = Instant::now();
    assert!(load(&sources).policy.rules.list(RuleList::Deny).len() == 80, "every rule is read");
    report.absolute("first load, schema compiled (ms)", start.elapsed().as_secs_f64() * 1e3, 20.0);
    let parse_all = || {
        let values =
            files.iter().map(|file| serde_json::from_slice(&fs::read(file).expect("it")).expect("JSON"));
        values.collect::<Vec<Value>>()
    };
    report.ratio("four files of 60 rules", 300, 30.0, || load(&sources), "read and serde_json", parse_all);
    let mut samples: Vec<_> = (0..300)
        .map(|_| {
            let start = Instant::now();
            load(&sources);
            start.elapsed()
        })
        .collect();
    report.absolute("a load, median (ms)", percentile(&mut samples, 50).as_secs_f64() * 1e3, 5.0);
    // Past the time in which a stamp alone would not show a second change.
    std::thread::sleep(std::time::Duration::from_millis(200));
    let (mut watch, _) = Watch::start(sources);
    let mut samples: Vec<_> = (0..1_000)
        .map(|_| {
            let start = Instant::now();
            assert!(watch.changed().is_none());
            start.elapsed()
        })
        .collect();
    report.absolute(
        "a look whether anything changed, median (µs)",
        percentile(&mut samples, 50).as_secs_f64() * 1e6,
        200.0,
    );
    report.print();
}
