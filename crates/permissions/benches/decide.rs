//! What a decision costs with many rules in force. `cargo bench -p gripper-permissions`; `-- --json` for machines.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

// By path: the crate it lives in builds upon this one, and would be built again with every change here.
#[path = "../../testkit/src/bench.rs"]
#[allow(unreachable_pub, reason = "it is a module of another crate")]
mod bench;

use std::{path::PathBuf, time::Duration};

use bench::{Report, percentile, timed};
use gripper_permissions::{Behavior, CommandPlace, Policy, Request, Rule, RuleList, Scope, Source, decide};
use serde_json::{Value, json};

const ROUNDS: usize = 3_000;
const CWD: &str = "/home/dev/project";
/// The most that a decision may take, in microseconds.
const LIMIT: f64 = 30.0;

fn main() {
    let mut report = Report::new("decide");
    let calls = [
        ("a command", "Bash", json!({"command": "cargo build --release && git status | head -5"})),
        ("a path", "Edit", json!({"file_path": "src/deep/inside/main.rs"})),
        ("a URL", "WebFetch", json!({"url": "https://docs.example.com/guide"})),
    ];
    let policies = [0, 100, 1_000].map(|count| (count, policy(count)));
    let bare = &policies[0].1;
    let micros = |duration: Duration| duration.as_secs_f64() * 1e6;
    for (what, tool, input) in &calls {
        for (count, policy) in &policies {
            let request = request(policy, tool, input);
            let mut once = || decide(policy, &request);
            assert_eq!(once().behavior, Behavior::Ask, "no rule is about it");
            let mut samples: Vec<Duration> = (0..ROUNDS).map(|_| timed(&mut once)).collect();
            let (median, most) = (percentile(&mut samples, 50), percentile(&mut samples, 99));
            report.absolute(&format!("{what}, {count} rules, median (µs)"), micros(median), LIMIT);
            report.absolute(&format!("{what}, {count} rules, 99th percentile (µs)"), micros(most), LIMIT);
            let without = || decide(bare, &request);
            report.ratio(&format!("{what}, {count} rules"), ROUNDS, 10.0, once, "no rules", without);
        }
    }
    report.print();
}

/// Rules of every kind in all three lists, none of them about the calls, so that all are looked at.
fn policy(count: usize) -> Policy {
    let mut policy = Policy::new(CWD);
    policy.home = PathBuf::from("/home/dev");
    for n in 0..count {
        let list = [RuleList::Allow, RuleList::Deny, RuleList::Ask][n / 5 % 3];
        let text = match n % 5 {
            0 => format!("Bash({} task{n} *)", ["cargo", "git", "npm", "make"][n / 5 % 4]),
            1 => format!("Read(/area{n}/**/*.txt)"),
            2 => format!("Edit(~/work{n}/**)"),
            3 => format!("WebFetch(domain:*.host{n}.example.com)"),
            _ => format!("mcp__server{n}__tool"),
        };
        policy.rules.add(list, Rule::parse(&text).expect("a rule"), Source::of(Scope::User));
    }
    policy
}

/// The call, taken apart beforehand: what is measured is the decision alone.
fn request<'a>(policy: &Policy, tool: &'a str, input: &'a Value) -> Request<'a> {
    let real = |path: &str| PathBuf::from(path);
    let place = CommandPlace { cwd: CWD, home: "/home/dev", real: &real };
    Request::from_input(tool, input, policy, place).expect("a call")
}
