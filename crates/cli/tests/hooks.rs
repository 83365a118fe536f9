//! Hooks through the binary: listed, tried by hand, and around a call.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use gripper_testkit::{Binary, Ran, Workspace};
use serde_json::{Value, json};

fn gripper(workspace: &Workspace, args: &[&str]) -> Ran {
    Binary::new(env!("CARGO_BIN_EXE_gripper"), workspace).args(args).run()
}

fn with_hooks(hooks: Value) -> Workspace {
    let workspace = Workspace::new();
    workspace.write("a.txt", "one\n");
    workspace.write("hooks.json", json!({ "hooks": hooks }).to_string());
    workspace
}

fn command(line: &str) -> Value {
    json!([{"matcher": "Read", "hooks": [{"type": "command", "command": line}]}])
}

#[test]
fn a_hook_blocks_a_call_and_the_session_has_a_beginning_and_an_end() {
    let workspace = with_hooks(json!({
        "SessionStart": [{"hooks": command("echo start >> log")[0]["hooks"]}],
        "PreToolUse": command("echo not today >&2; exit 2"),
        "SessionEnd": [{"hooks": command("echo end >> log; exit 1")[0]["hooks"]}],
    }));
    let ran = gripper(&workspace, &["tool", "--settings", "hooks.json", "Read", r#"{"file_path": "a.txt"}"#]);
    assert_eq!(ran.code, 3, "{}", ran.transcript());
    assert!(ran.stderr.contains("hook_blocked: a hook blocked this call: not today"), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("failed: exit code 1") && ran.stderr.contains("hooks failed 1 time;"),
        "{}",
        ran.stderr
    );
    assert_eq!(std::fs::read_to_string(workspace.path("log")).unwrap(), "start\nend\n");
    let audited = std::fs::read_to_string(workspace.home().join(".gripper/audit/audit.jsonl")).unwrap();
    assert!(audited.contains("\"hook\""), "{audited}");
}

#[test]
fn a_listing_says_what_is_wrong_and_where() {
    let workspace = with_hooks(json!({
        "PreToolUse": [{"matcher": "Read", "hooks": [
            {"type": "command", "command": "true"}, {"type": "command", "command": "\"$CLAUDE_PROJECT_DIR\"/gone.sh -x"},
            {"type": "command", "command": "./a.txt", "args": []}, {"type": "prompt"},
        ]}],
        "PreToolUze": command("true"),
    }));
    let ran = gripper(&workspace, &["hooks", "list", "--settings", "hooks.json"]);
    assert_eq!(ran.code, 1, "{}", ran.transcript());
    for part in [
        "PreToolUse Read true command line, [root]/project/hooks.json:1\n",
        "there is no program [root]/project/gone.sh",
        "./a.txt is not executable",
        "a hook of type prompt needs a",
    ] {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    assert!(ran.stderr.contains("did you mean PreToolUse?"), "{}", ran.stderr);
    let lines = gripper(&workspace, &["hooks", "list", "--json", "--settings", "hooks.json"]).json_lines();
    assert_eq!((&lines[0]["event"], &lines[0]["wrong"]), (&json!("PreToolUse"), &Value::Null));
    assert_eq!(gripper(&workspace, &["hooks", "list"]).stdout, "no hooks\n");
}

#[test]
fn a_hook_is_tried_by_hand() {
    let answer = r#"echo '{"hookSpecificOutput": {"permissionDecision": "deny", "permissionDecisionReason": "secret"}}'"#;
    let workspace = with_hooks(json!({"PreToolUse": command(answer)}));
    let fire =
        |args: &[&str]| gripper(&workspace, &[&["hooks", "test", "--settings", "hooks.json"], args].concat());
    let ran = fire(&["PreToolUse", "--tool", "Read", "--input", r#"{"file_path": "a.txt"}"#]);
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    for part in
        [r#""tool_input":{"file_path":"a.txt"}"#, "ended: exit code 0", "means: deny; because: secret"]
    {
        assert!(ran.stdout.contains(part), "{part}: {}", ran.stdout);
    }
    assert_eq!(fire(&["PreToolUse", "--tool", "Sleep"]).stdout, "no hook matches\n");
    assert_eq!(fire(&["Nonsense"]).code, 2);
}
