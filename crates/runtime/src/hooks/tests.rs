//! Tables: which hooks are read from settings, and what their answers mean.

use std::time::Duration;

use gripper_permissions::{Scope, Source};
use gripper_process::Status;
use rstest::rstest;
use serde_json::{Value, json};

use super::{
    HookEvent,
    config::{Action, Confine, Entry, HookConfig, OnFailure, Pace},
    contract::{Raw, Said, Verdict, read},
};

fn one(handler: Value, scope: Scope) -> (Entry, Vec<String>) {
    let value = json!({"PreToolUse": [{"matcher": "Edit", "hooks": [handler]}]});
    let (mut entries, found) = HookConfig::read(&value, &Source::of(scope));
    assert_eq!(entries.len(), 1);
    (entries.remove(0), found.into_iter().map(|(at, found)| format!("{at}: {}", found.what)).collect())
}

#[rstest]
#[case::nothing("", "Anything", true)]
#[case::star("*", "Anything", true)]
#[case::name("Edit", "Edit", true)]
#[case::a_name_is_whole("Edit", "NotebookEdit", false)]
#[case::bar("Edit|Write", "Write", true)]
#[case::comma("Edit, Write", "Write", true)]
#[case::not_in_the_list("Edit|Write", "Read", false)]
#[case::pattern("mcp__.*__write", "mcp__disk__write", true)]
#[case::pattern_says_no("^Note.*", "Edit", false)]
#[case::no_subject("Edit", "", true)]
fn matchers(#[case] matcher: &str, #[case] subject: &str, #[case] expected: bool) {
    let value = json!({"PreToolUse": [{"matcher": matcher, "hooks": [{"type": "command", "command": "a"}]}]});
    let (entries, found) = HookConfig::read(&value, &Source::of(Scope::User));
    assert_eq!((entries[0].fits.fits(subject), found.len()), (expected, 0));
}

#[test]
fn every_field_counts() {
    let (entry, found) = one(
        json!({"type": "command", "command": "lint", "args": ["-x"], "confine": "read-only", "async": true, "if": "Edit", "timeout": 1.5,
               "statusMessage": "linting", "once": true, "onFailure": "ask", "unknown": 1}),
        Scope::Project,
    );
    assert_eq!(found, Vec::<String>::new());
    assert_eq!(
        entry.action,
        Action::Command {
            command: "lint".into(),
            args: Some(vec!["-x".into()]),
            confine: Some(Confine::ReadOnly)
        }
    );
    assert_eq!((entry.pace, entry.once, entry.on_failure), (Pace::Detached, true, OnFailure::Ask));
    assert_eq!((entry.limit, entry.status.as_deref()), (Duration::from_millis(1500), Some("linting")));
    assert_eq!((entry.condition.unwrap().text(), &*entry.pointer), ("Edit", "/PreToolUse/0/hooks/0"));
}

#[rstest]
#[case::no_command(json!({"type": "command"}), "needs a \"command\"")]
#[case::no_type(json!({"command": "a"}), "missing field `type`")]
#[case::not_an_object(json!("a"), "cannot be read")]
#[case::model(json!({"type": "agent", "prompt": " "}), "type agent needs a \"prompt\"")]
#[case::confined_post(json!({"type": "http", "url": "https://a.example", "confine": "read-only"}), "for hooks of type command")]
#[case::odd_type(json!({"type": "smoke"}), "no hook type \"smoke\"")]
#[case::bad_time(json!({"type": "command", "command": "a", "timeout": -1}), "timeout must be")]
#[case::bad_rule(json!({"type": "command", "command": "a", "if": "("}), "if: ")]
#[case::bad_url(json!({"type": "http", "url": "file:///etc/passwd"}), "begins with http://")]
#[case::secret(json!({"type": "http", "url": "http://x", "headers": {"A": "${KEY}"}}), "names $KEY")]
fn a_bad_entry_stays_and_says_why(#[case] handler: Value, #[case] expected: &str) {
    for (scope, on_failure) in [(Scope::Managed, OnFailure::Block), (Scope::User, OnFailure::Allow)] {
        let (entry, found) = one(handler.clone(), scope);
        assert!(found[0].starts_with("/PreToolUse/0/hooks/0: "), "{found:?}");
        assert!(found[0].contains(expected), "{found:?}");
        assert!(entry.trouble.unwrap().contains(expected));
        assert_eq!(entry.on_failure, on_failure);
    }
}

#[test]
fn one_bad_thing_takes_nothing_down() {
    let good = json!({"hooks": [{"type": "command", "command": "a"}]});
    let value = json!({
        "PreToolUse": [{"matcher": "("}, {"matcher": "(", "hooks": [{"type": "command", "command": "b"}]}, good],
        "PostToolUze": [good], "Elicitation": [good], "Stop": 3,
    });
    let (entries, found) = HookConfig::read(&value, &Source::of(Scope::User));
    assert_eq!(entries.iter().filter(|entry| entry.trouble.is_none()).count(), 3);
    let found: Vec<String> = found.iter().map(|(at, found)| format!("{at} {found}")).collect();
    for part in
        ["/PreToolUse/0 ", "no regular expression", "did you mean PostToolUse?", "not fired yet", "/Stop "]
    {
        assert!(found.iter().any(|found| found.contains(part)), "{part}: {found:?}");
    }
    assert!(HookConfig::read(&json!([]), &Source::of(Scope::User)).1[0].1.what.contains("must be an object"));
}

fn heard(event: HookEvent, status: Status, stdout: &str, stderr: &str) -> Result<Said, String> {
    read(event, &Raw { status, stdout: stdout.into(), stderr: stderr.into(), cut: false })
}

fn specific(event: HookEvent, more: Value) -> Result<Said, String> {
    let mut inner = json!({"hookEventName": event.name()});
    inner.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    heard(event, Status::Exited(0), &json!({"hookSpecificOutput": inner}).to_string(), "")
}

#[rstest]
#[case::quiet(0, "", "", Ok("pass"))]
#[case::chatter(0, "all fine", "", Ok("pass"))]
#[case::block(2, "", "no!", Ok("block"))]
#[case::block_beats_json(2, r#"{"decision": "approve"}"#, "", Ok("block"))]
#[case::old_block(0, r#"{"decision": "block", "reason": "r"}"#, "", Ok("block"))]
#[case::json_counts_with_other_codes(7, r#"{"decision": "block", "reason": "r"}"#, "", Ok("block"))]
#[case::error(1, "oops", "first\nsecond", Err("exit code 1: first"))]
#[case::garbage(0, "{nonsense", "", Err("begins like JSON"))]
#[case::stop(0, r#"{"continue": false, "stopReason": "enough"}"#, "", Ok("stop"))]
#[case::other_event(0, r#"{"hookSpecificOutput": {"hookEventName": "Stop"}}"#, "", Err("answered for Stop"))]
fn endings(#[case] code: i32, #[case] out: &str, #[case] err: &str, #[case] expected: Result<&str, &str>) {
    let heard = heard(HookEvent::PRE_TOOL_USE, Status::Exited(code), out, err);
    match expected {
        Ok(word) => assert_eq!(heard.unwrap().word(), word),
        Err(part) => assert!(heard.as_ref().unwrap_err().contains(part), "{heard:?}"),
    }
}

#[rstest]
#[case::allow("allow", Verdict::Allow("r".into()))]
#[case::deny("deny", Verdict::Deny("r".into()))]
#[case::ask("ask", Verdict::Ask("r".into()))]
#[case::defer("defer", Verdict::Defer("r".into()))]
#[case::unknown_is_asked("perhaps", Verdict::Ask("it decided \"perhaps\": r".into()))]
fn decisions(#[case] word: &str, #[case] expected: Verdict) {
    let more = json!({"permissionDecision": word, "permissionDecisionReason": "r"});
    assert_eq!(specific(HookEvent::PRE_TOOL_USE, more).unwrap().verdict, Some(expected));
}

#[test]
fn what_else_an_answer_may_hold() {
    let rewrite =
        specific(HookEvent::PRE_TOOL_USE, json!({"updatedInput": {"a": 1}, "additionalContext": "c"}));
    let rewrite = rewrite.unwrap();
    assert_eq!((rewrite.input, rewrite.context.as_deref()), (Some(json!({"a": 1})), Some("c")));
    assert!(specific(HookEvent::PRE_TOOL_USE, json!({"updatedInput": 3})).is_err());
    let output = specific(HookEvent::POST_TOOL_USE, json!({"updatedToolOutput": "short"})).unwrap();
    assert_eq!(output.output, Some(json!("short")));
    assert!(specific(HookEvent::POST_TOOL_USE, json!({"updatedInput": {}})).unwrap().input.is_none());
    let yes = specific(HookEvent::PERMISSION_REQUEST, json!({"decision": {"behavior": "allow"}})).unwrap();
    assert_eq!(yes.word(), "allow");
    let start = heard(HookEvent::SESSION_START, Status::Exited(0), "hello\n", "").unwrap();
    assert_eq!(start.context.as_deref(), Some("hello"));
    let shown = heard(HookEvent::SESSION_END, Status::Exited(0), r#"{"systemMessage": "m"}"#, "").unwrap();
    assert_eq!(shown.message.as_deref(), Some("m"));
}
