//! Any rules and any call: no panic, rules keep their text, and a deny more never weakens an answer.
#![no_main]

use std::path::PathBuf;

use gripper_permissions::{Behavior, CommandPlace, Policy, Request, Rule, RuleList, Source, decide};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

fn judged(policy: &Policy, tool: &str, text: &str) -> Behavior {
    let real = |path: &str| PathBuf::from(path);
    let place = CommandPlace { cwd: "/home/dev/project", home: "/home/dev", real: &real };
    let input = json!({ "command": text, "file_path": text, "url": text, "subagent_type": text });
    let request = Request::from_input(tool, &input, policy, place);
    request.map_or(Behavior::Deny, |request| decide(policy, &request).behavior)
}

// The first line is the call; every other line is a rule, in each list by turns.
fuzz_target!(|text: &str| {
    let mut lines = text.lines();
    let call = lines.next().unwrap_or_default();
    let rules: Vec<Rule> = lines.take(12).filter_map(|line| Rule::parse(line).ok()).collect();
    let mut policy = Policy::new("/home/dev/project");
    policy.home = "/home/dev".into();
    for (rule, list) in rules.iter().zip(RuleList::ALL.iter().cycle()) {
        assert_eq!(&Rule::parse(rule.text()).expect("a rule is one again"), rule);
        policy.rules.add(*list, rule.clone(), Source::command_line());
    }
    for tool in ["Bash", "Read", "Edit", "WebFetch", "Task", "mcp__server__tool"] {
        let before = judged(&policy, tool, call);
        for rule in &rules {
            let mut stricter = policy.clone();
            stricter.rules.add(RuleList::Deny, rule.clone(), Source::command_line());
            assert!(judged(&stricter, tool, call) >= before, "{tool} {call:?} with deny {rule}");
        }
    }
});
