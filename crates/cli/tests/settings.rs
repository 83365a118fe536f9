//! Settings files, trust and changes while running, through the real binary.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    process::Stdio,
};

use gripper_testkit::{Binary, Ran, Workspace};
use serde_json::{Value, json};

const READ: [&str; 3] = ["tool", "Read", r#"{"file_path": "a.txt"}"#];
const PROJECT: &str = ".claude/settings.json";

fn gripper<'a>(workspace: &'a Workspace, args: &[&str]) -> Binary<'a> {
    Binary::new(env!("CARGO_BIN_EXE_gripper"), workspace).args(args)
}

fn run(workspace: &Workspace, args: &[&str]) -> Ran {
    gripper(workspace, args).run()
}

fn project(settings: &Value) -> Workspace {
    let workspace = Workspace::new();
    workspace.write("a.txt", "one\n");
    workspace.write(PROJECT, format!("{settings:#}"));
    workspace
}

#[track_caller]
fn expect(ran: &Ran, code: i32, words: &str) {
    assert_eq!(ran.code, code, "{}", ran.transcript());
    assert!(ran.transcript().contains(words), "{words} is missing in\n{}", ran.transcript());
}

#[test]
fn rules_of_files_decide_and_say_where_they_stand() {
    let workspace = project(&json!({"permissions": {"deny": ["Read"], "ask": ["Bash"]}}));
    expect(
        &run(&workspace, &READ),
        3,
        "deny rule Read (project settings, [root]/project/.claude/settings.json:4)",
    );
    expect(
        &run(&workspace, &["explain", "ls"]),
        1,
        "ask rule Bash (project settings, [root]/project/.claude/settings.json:7)",
    );
    assert!(!run(&workspace, &["tools"]).stdout.contains("Read "));
    fs::create_dir_all(workspace.path("deep/er")).unwrap();
    let mut below = gripper(&workspace, &["explain", "ls"]).into_command();
    assert_eq!(
        below.current_dir(workspace.path("deep/er")).stdout(Stdio::null()).status().unwrap().code(),
        Some(1),
        "found upwards"
    );
}

#[test]
fn trust_makes_allow_rules_count() {
    let outside = json!({"file_path": "../outside.txt"}).to_string();
    let read = ["tool", "Read", &*outside];
    let workspace = project(&json!({"permissions": {"allow": ["Read"], "additionalDirectories": [".."]}}));
    fs::write(workspace.root().join("outside.txt"), "out\n").unwrap();
    let warning = "warning: project settings, [root]/project/.claude/settings.json: the folder is not trusted: of its settings \
                   only deny and ask rules count, not additionalDirectories, allow rules; if you trust what is in it, run: \
                   gripper trust [root]/project\n";
    expect(&run(&workspace, &read), 3, warning);
    expect(&run(&workspace, &["settings"]), 0, "permissions.allow[0] = Read set aside");
    expect(&run(&workspace, &["trust"]), 0, "[root]/project is trusted now");
    expect(&run(&workspace, &["trust", "--list"]), 0, "[root]/project\n");
    let ran = run(&workspace, &read);
    assert_eq!((ran.code, &*ran.stderr), (0, ""), "{}", ran.transcript());
    let home = workspace.home().to_string_lossy().into_owned();
    expect(&run(&workspace, &["trust", &home]), 2, "--force");
    expect(&run(&workspace, &["trust", "--remove", "--json"]), 0, r#""changed":true"#);
    assert_eq!(run(&workspace, &read).code, 3);
}

#[test]
fn settings_are_listed_with_their_origin() {
    let workspace = project(&json!({"model": "small", "permissions": {"deny": ["Grep"]}}));
    fs::create_dir(workspace.home().join(".claude")).unwrap();
    let own = r#"{"model": "large", "env": {"API_TOKEN": "hunter2hunter2"}, "modle": 1}"#;
    fs::write(workspace.home().join(PROJECT), own).unwrap();
    assert_eq!(run(&workspace, &["trust"]).code, 0);
    let ran = run(&workspace, &["settings"]);
    expect(&ran, 0, "model = small  project settings, [root]/project/.claude/settings.json:2\n");
    expect(&ran, 0, "env.API_TOKEN = [redacted");
    expect(&ran, 0, "did you mean \"model\"?");
    let json = run(&workspace, &["settings", "--json", "--origin", "permissions.deny"]);
    let json: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(json["settings"].as_array().unwrap().len(), 1);
    assert_eq!(json["settings"][0]["source"]["line"], 5);
    let managed = workspace.root().join("managed");
    fs::create_dir(&managed).unwrap();
    fs::write(managed.join("managed-settings.json"), r#"{"permissions": {"deny": ["Read"]}}"#).unwrap();
    let ran = gripper(&workspace, &READ).env("GRIPPER_MANAGED_DIR", &managed).run();
    expect(&ran, 3, "deny rule Read (managed policy, [root]/managed/managed-settings.json:1)");
}

#[test]
fn the_command_line_adds_settings() {
    let workspace = project(&json!({}));
    let given = |given: &str| run(&workspace, &[&READ[..], &["--settings", given]].concat());
    expect(&given(r#"{"permissions": {"deny": ["Read"]}}"#), 3, "deny rule Read (command line)");
    workspace.write("more.json", "{\"permissions\": {\"ask\":\n[\"Read\"]}}");
    expect(&given("more.json"), 3, "ask rule Read (command line, [root]/project/more.json:2)");
    expect(
        &given("none.json"),
        2,
        "error: --settings: command line, [root]/project/none.json: there is no such file",
    );
    expect(&given("{\"permissions\": "), 2, "error: --settings: command line: column");
    let mode =
        r#"{"permissions": {"defaultMode": "bypassPermissions", "disableBypassPermissionsMode": "disable"}}"#;
    expect(&given(mode), 0, "bypassPermissions is refused: the settings took it away");
}

#[test]
fn files_are_checked_and_changed() {
    let workspace = project(&json!({"permissions": {"allow": [5], "defaultMode": "wild"}}));
    let ran = run(&workspace, &["settings", "check", PROJECT]);
    expect(&ran, 1, "/permissions/allow/0: expected");
    expect(&ran, 1, "/permissions/defaultMode: expected one of \"default\"");
    workspace.write(PROJECT, "{}");
    expect(&run(&workspace, &["settings", "check", PROJECT]), 0, "fits the schema");
    let check = ["settings", "check", PROJECT, "--with", "-"];
    let ran = gripper(&workspace, &check).input(r#"{"permissions": {"allow": ["Bash(npm *)"]}}"#).run();
    expect(&ran, 0, "settings.json: adds allow Bash(npm *)\n");
    expect(&run(&workspace, &["settings", "schema", "hooks"]), 0, "updatedInput");
    let add = |rule: &str| {
        let mut command =
            gripper(&workspace, &["settings", "add", "deny", rule, "--to", "project"]).into_command();
        command.stdout(Stdio::null()).spawn().unwrap()
    };
    // Eight processes at once, and nobody's rule is lost.
    let children: Vec<_> = (0..8).map(|n| add(&format!("mcp__server__tool{n}"))).collect();
    assert!(children.into_iter().all(|mut child| child.wait().unwrap().success()));
    let text = fs::read_to_string(workspace.path(PROJECT)).unwrap();
    assert!((0..8).all(|n| text.contains(&format!("mcp__server__tool{n}"))), "{text}");
}

#[test]
fn what_is_changed_between_two_calls_takes_effect() {
    let workspace = project(&json!({}));
    assert_eq!(gripper(&workspace, &["trust"]).run().code, 0);
    let mut command = gripper(&workspace, &["run", "-", "--json"]).into_command();
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (mut calls, mut events) =
        (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
    let mut read = |id: &str| -> Value {
        writeln!(calls, "{}", json!({"id": id, "name": "Read", "input": {"file_path": "a.txt"}})).unwrap();
        let lines = events.by_ref().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
        lines.into_iter().find(|line| line["event"] == "result").unwrap()["error_code"].clone()
    };
    assert_eq!(read("c1"), Value::Null);
    workspace.write(".gripper/settings.local.json", r#"{"permissions": {"deny": ["Read"]}}"#);
    assert_eq!(read("c2"), "denied");
    workspace.write(".gripper/settings.local.json", r#"{"permissions": {"deny": ["Re"#);
    assert_eq!(read("c3"), "denied", "a file that breaks keeps what it held");
    workspace.write(".gripper/settings.local.json", "{}");
    assert_eq!(read("c4"), Value::Null);
    let hooks =
        json!({"PreToolUse": [{"matcher": "Read", "hooks": [{"type": "command", "command": "exit 2"}]}]});
    workspace.write(".gripper/settings.local.json", json!({ "hooks": hooks }).to_string());
    assert_eq!(read("c5"), "hook_blocked", "hooks change with the settings");
    drop(calls);
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(said.matches("what it held before stays in force").count(), 1, "{said}");
}
