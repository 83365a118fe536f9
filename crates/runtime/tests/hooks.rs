//! Configured hooks around real calls: commands and addresses that answer, crash, hang, flood and hide.
#![cfg(not(feature = "shuttle"))]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{
    io::{Read, Write},
    net::TcpListener,
    path::Path,
    sync::Arc,
};

use gripper_runtime::{
    CallRequest, CallResult, Event, Toolbox,
    hooks::{
        HookRunner, Hooks, Surroundings,
        config::{Entry, HookConfig},
    },
    permissions::{Policy, Scope, Source},
    results::{ResultsStore, StoreLimits},
};
use gripper_testkit::{Probe, Workspace, results_of, toolbox_of};
use rstest::rstest;
use serde_json::{Value, json};

/// A tool that gives its input back as text; it is allowed unless somebody objects.
fn echo() -> Arc<dyn gripper_runtime::DynTool> {
    Probe::tool(
        "Echo",
        gripper_runtime::Facts::DEFAULT,
        |_| gripper_runtime::Access::nothing(),
        |input, _| {
            let words = input.to_string();
            Box::pin(async move { Ok(gripper_testkit::text(&words)) })
        },
    )
}

fn entries(scope: Scope, hooks: Value) -> Vec<Entry> {
    HookConfig::read(&hooks, &Source::of(scope)).0
}

fn pre(handlers: Value) -> Value {
    json!({"PreToolUse": [{"matcher": "Echo", "hooks": handlers}]})
}

fn command(line: impl Into<String>) -> Value {
    json!([{"type": "command", "command": line.into()}])
}

fn decide(word: &str) -> String {
    let answer =
        json!({"hookSpecificOutput": {"permissionDecision": word, "permissionDecisionReason": "said so"}});
    format!("echo '{answer}'")
}

fn runner(entries: Vec<Entry>) -> HookRunner {
    let env = vec![("PATH".into(), std::env::var_os("PATH").unwrap()), ("TOKEN".into(), "t0p".into())];
    HookRunner::new(entries, Surroundings { env, transcript: "/log".into(), tools: None, judge: None })
}

fn toolbox(workspace: &Workspace, hooks: HookRunner) -> Arc<Toolbox> {
    let mut registry = gripper_runtime::Registry::default();
    registry.register(echo()).unwrap();
    registry.register(Probe::external("far", "mcp__far__act", "", json!({"type": "object"}))).unwrap();
    Toolbox::builder(registry, Policy::new(workspace.project()))
        .hooks(Arc::new(hooks))
        .results(ResultsStore::new(workspace.home().join("results"), StoreLimits::default()))
        .build()
}

/// Runs one call; gives its result and the hooks that ran, failed ones marked.
async fn call_in(toolbox: &Arc<Toolbox>, tool: &str, input: Value) -> (Arc<CallResult>, Vec<String>) {
    let turn = toolbox.turn();
    turn.submit(CallRequest::new("c1", tool, input));
    turn.close();
    let (mut result, mut runs) = (None, Vec::new());
    while let Some(event) = turn.next().await {
        match event {
            Event::Result(found) => result = Some(found),
            Event::Hook { run, .. } => {
                runs.push(format!("{}{}", if run.failed { "failed: " } else { "" }, run.outcome));
            }
            _ => {}
        }
    }
    (result.unwrap(), runs)
}

async fn around(workspace: &Workspace, entries: Vec<Entry>) -> (String, Vec<String>) {
    let toolbox = toolbox(workspace, runner(entries));
    let (result, runs) = call_in(&toolbox, "Echo", json!({"n": 1})).await;
    toolbox.end().await;
    (result.to_string(), runs)
}

#[rstest]
#[case::pass("true", "{\"n\":1}", "pass")]
#[case::exit_two("echo not here >&2; exit 2", "a hook blocked this call: not here", "block")]
#[case::deny(decide("deny"), "said so", "deny")]
#[case::json_with_other_code(format!("{}; exit 5", decide("deny")), "said so", "deny")]
#[case::ask(decide("ask"), "nobody can be asked here", "ask")]
#[case::defer(decide("defer"), "left for somebody else", "defer")]
#[case::crash("kill -SEGV $$", "{\"n\":1}", "failed: it was killed by signal 11")]
#[case::error("exit 1", "{\"n\":1}", "failed: exit code 1")]
#[case::garbage("echo '{oops'", "{\"n\":1}", "failed: what it printed begins like JSON")]
#[case::flood("head -c 100000000 /dev/zero", "{\"n\":1}", "pass")]
#[case::flood_of_json("printf '{'; head -c 100000000 /dev/zero", "{\"n\":1}", "failed: it printed more")]
#[case::missing("./no-such-hook", "{\"n\":1}", "failed: exit code 127")]
#[tokio::test]
async fn commands(#[case] line: impl Into<String>, #[case] result: &str, #[case] run: &str) {
    let workspace = Workspace::new();
    let (text, runs) = around(&workspace, entries(Scope::User, pre(command(line)))).await;
    assert!(text.contains(result), "{text}");
    assert!(runs.len() == 1 && runs[0].starts_with(run), "{runs:?}");
}

#[rstest]
#[case::crash(json!([{"type": "command", "command": "kill -SEGV $$"}]))]
#[case::hang(json!([{"type": "command", "command": "sleep 600", "timeout": 0.2}]))]
#[case::missing(json!([{"type": "command", "command": "./gone", "args": []}]))]
#[case::garbage(json!([{"type": "command", "command": "echo '{oops'"}]))]
#[case::no_model(json!([{"type": "prompt", "prompt": "is it fine?"}]))]
#[case::nobody_there(json!([{"type": "http", "url": "http://127.0.0.1:1/"}]))]
#[tokio::test]
async fn managed_hooks_fail_closed_and_others_as_they_say(#[case] mut handler: Value) {
    let workspace = Workspace::new();
    let (text, _) = around(&workspace, entries(Scope::Managed, pre(handler.clone()))).await;
    assert!(text.starts_with("a hook blocked this call: the hook "), "{text}");
    let (text, _) = around(&workspace, entries(Scope::User, pre(handler.clone()))).await;
    assert_eq!(text, "{\"n\":1}");
    handler[0]["onFailure"] = "ask".into();
    let (text, _) = around(&workspace, entries(Scope::User, pre(handler))).await;
    assert!(text.contains("failed") && text.contains("nobody can be asked"), "{text}");
}

#[tokio::test]
async fn what_a_command_is_told() {
    let workspace = Workspace::new();
    let line =
        "cat > told.json; echo \"$CLAUDECODE $GRIPPER_PROJECT_DIR $CLAUDE_PROJECT_DIR $TOKEN\" > env.txt";
    let toolbox = toolbox(&workspace, runner(entries(Scope::User, pre(command(line)))));
    call_in(&toolbox, "Echo", json!({"n": 1})).await;
    let project = workspace.project().display().to_string();
    let told: Value =
        serde_json::from_str(&std::fs::read_to_string(workspace.path("told.json")).unwrap()).unwrap();
    let expected = json!({
        "session_id": toolbox.session(), "transcript_path": "/log", "cwd": project, "permission_mode": "default",
        "hook_event_name": "PreToolUse", "tool_name": "Echo", "tool_input": {"n": 1}, "tool_use_id": "c1",
    });
    assert_eq!(told, expected);
    let env = std::fs::read_to_string(workspace.path("env.txt")).unwrap();
    assert_eq!(env, format!("1 {project} {project} t0p\n"));
}

#[tokio::test]
async fn what_stays_behind_is_gone() {
    let workspace = Workspace::new();
    let line = "setsid sh -c 'echo $$ > pid; exec sleep 600' >/dev/null 2>&1 & while ! [ -s pid ]; do sleep 0.01; done";
    let (text, _) = around(&workspace, entries(Scope::User, pre(command(line)))).await;
    assert_eq!(text, "{\"n\":1}");
    let pid = std::fs::read_to_string(workspace.path("pid")).unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).exists());
}

/// Adds a letter to `n`; the order of letters is the order of hooks.
fn adds(letter: &str) -> Value {
    let line = format!(
        r#"in=$(cat); n=$(expr "$in" : '.*"n":"\([a-z]*\)"'); echo "{{\"hookSpecificOutput\": {{\"updatedInput\": {{\"n\":\"${{n}}{letter}\"}}}}}}""#
    );
    json!([{"type": "command", "command": line}])
}

#[tokio::test]
async fn rewrites_are_a_chain_in_the_order_of_sources() {
    let workspace = Workspace::new();
    let mut all = entries(Scope::Local, pre(adds("d")));
    all.extend(entries(Scope::Project, pre(adds("c"))));
    all.extend(entries(Scope::User, pre(adds("b"))));
    all.extend(entries(Scope::Managed, pre(adds("a"))));
    let mut beside = adds("x");
    beside[0]["parallel"] = true.into();
    all.extend(entries(Scope::User, pre(beside)));
    let toolbox = toolbox(&workspace, runner(all));
    let (result, runs) = call_in(&toolbox, "Echo", json!({"n": ""})).await;
    assert_eq!(result.to_string(), "{\"n\":\"abcd\"}");
    assert_eq!(runs.iter().filter(|run| *run == "rewrite").count(), 4);
    assert!(runs.iter().any(|run| run.starts_with("failed: it rewrote the input")), "{runs:?}");
}

#[tokio::test]
async fn the_strictest_answer_counts_and_identical_hooks_run_once() {
    let workspace = Workspace::new();
    let mut all = entries(Scope::Managed, pre(command(decide("allow"))));
    all.extend(entries(Scope::User, pre(command("echo ran >> count; true"))));
    all.extend(entries(Scope::Project, pre(command("echo ran >> count; true"))));
    all.extend(entries(Scope::Local, pre(command(decide("deny")))));
    let (text, runs) = around(&workspace, all).await;
    assert!(text.contains("said so"), "{text}");
    assert_eq!(runs, ["allow", "pass", "deny"]);
    assert_eq!(std::fs::read_to_string(workspace.path("count")).unwrap(), "ran\n");
}

#[tokio::test]
async fn once_is_once_a_session_and_if_narrows() {
    let workspace = Workspace::new();
    let hooks = pre(json!([
        {"type": "command", "command": "exit 2", "once": true},
        {"type": "command", "command": "exit 2 # other", "if": "Write"},
    ]));
    let toolbox = toolbox(&workspace, runner(entries(Scope::User, hooks)));
    assert!(call_in(&toolbox, "Echo", json!({})).await.0.is_error);
    assert!(!call_in(&toolbox, "Echo", json!({"n": 2})).await.0.is_error);
}

#[tokio::test]
async fn after_a_call_output_may_change_and_long_text_goes_to_a_file() {
    let workspace = Workspace::new();
    let answer = r#"{"hookSpecificOutput": {"updatedToolOutput": "other", "additionalContext": "'$(head -c 20000 /dev/zero | tr '\0' x)'"}}"#;
    let hooks = json!({
        "PostToolUse": [{"hooks": [{"type": "command", "command": format!("cat > told; echo '{answer}'")}]}],
        "PostToolUseFailure": [{"hooks": command("cat > failed; echo seen >&2; exit 2")}],
    });
    let toolbox = toolbox(&workspace, runner(entries(Scope::User, hooks)));
    let (result, runs) = call_in(&toolbox, "Echo", json!({"n": 1})).await;
    let text = result.to_string();
    assert!(text.starts_with("other\n\nxxx") && text.len() < 12_000, "{runs:?} {}", text.len());
    assert!(text.contains("results/hook-c1"), "{}", &text[text.len() - 300..]);
    let told: Value =
        serde_json::from_str(&std::fs::read_to_string(workspace.path("told")).unwrap()).unwrap();
    assert_eq!((&told["tool_response"], told["duration_ms"].is_u64()), (&json!("{\"n\":1}"), true));
}

#[tokio::test]
async fn a_question_may_be_answered_by_a_hook_but_no_rule_lifted() {
    let yes = r#"echo '{"hookSpecificOutput": {"decision": {"behavior": "allow"}}}'"#;
    let hooks = json!({
        "PermissionRequest": [{"matcher": "mcp__.*", "hooks": command(yes)}],
        "PermissionDenied": [{"hooks": command("cat > denied")}],
    });
    let workspace = Workspace::new();
    let toolbox = toolbox(&workspace, runner(entries(Scope::User, hooks)));
    assert!(!call_in(&toolbox, "mcp__far__act", json!({})).await.0.is_error);
    let mut policy = (*toolbox.policy()).clone();
    let rule = gripper_runtime::permissions::Rule::parse("mcp__far").unwrap();
    policy.rules.add(gripper_runtime::permissions::RuleList::Ask, rule, Source::of(Scope::User));
    toolbox.set_policy(policy);
    let (result, _) = call_in(&toolbox, "mcp__far__act", json!({"n": 2})).await;
    assert!(result.to_string().contains("nobody can be asked"), "{result}");
    assert!(
        std::fs::read_to_string(workspace.path("denied")).unwrap().contains("\"reason\":\"not permitted")
    );
}

#[tokio::test]
async fn the_turning_points_of_a_session() {
    let workspace = Workspace::new();
    let log = |name: &str| json!([{"hooks": command(format!("echo {name} >> log; echo from {name}"))}]);
    let detached =
        json!([{"hooks": [{"type": "command", "command": "echo $$ > pid; sleep 600", "async": true}]}]);
    let hooks = json!({
        "SessionStart": log("start"), "SessionEnd": log("end"), "PostToolBatch": log("batch"), "PreToolUse": detached,
    });
    let toolbox = toolbox(&workspace, runner(entries(Scope::User, hooks)));
    toolbox.begin("startup").await;
    assert_eq!(toolbox.take_messages(), ["from start"]);
    let (_, runs) = call_in(&toolbox, "Echo", json!({})).await;
    assert_eq!(runs, ["started", "pass"]);
    while !std::fs::read_to_string(workspace.path("pid")).is_ok_and(|pid| pid.ends_with('\n')) {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    let late = toolbox.end().await;
    assert!(late.iter().any(|run| run.failed && run.outcome == "it was stopped"), "{late:?}");
    assert_eq!(std::fs::read_to_string(workspace.path("log")).unwrap(), "start\nbatch\nend\n");
    let pid = std::fs::read_to_string(workspace.path("pid")).unwrap();
    assert!(!Path::new("/proc").join(pid.trim()).exists());
}

#[tokio::test]
async fn a_hook_may_end_the_session() {
    let workspace = Workspace::new();
    let line = r#"echo '{"continue": false, "stopReason": "enough"}'"#;
    let hooks = json!({"PostToolUse": [{"hooks": command(line)}]});
    let toolbox = toolbox(&workspace, runner(entries(Scope::User, hooks)));
    assert!(!call_in(&toolbox, "Echo", json!({})).await.0.is_error);
    assert_eq!(toolbox.halted().as_deref(), Some("enough"));
    assert!(
        call_in(&toolbox, "Echo", json!({"n": 2})).await.0.to_string().contains("ended the session: enough")
    );
}

/// A server that takes one request and answers with these bytes; without any it never answers.
fn server(answer: Option<String>) -> (String, std::thread::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let serving = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
        // The body is one object, so its end can be told; a client that gave up ends it as well.
        while !seen.ends_with(b"}") {
            match stream.read(&mut buffer).unwrap() {
                0 => break,
                count => seen.extend_from_slice(&buffer[..count]),
            }
        }
        match answer {
            Some(answer) => stream.write_all(answer.as_bytes()).unwrap(),
            None => drop(stream.read(&mut buffer)),
        }
        String::from_utf8(seen).unwrap()
    });
    (url, serving)
}

fn response(status: &str, body: &str) -> Option<String> {
    Some(format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
}

#[rstest]
#[case::deny(response("200 OK", r#"{"hookSpecificOutput": {"permissionDecision": "deny"}}"#), "deny")]
#[case::nothing(response("204 No Content", ""), "pass")]
#[case::error(response("500 Oops", "x"), "failed: the answer was no success (500)")]
#[case::redirect(
    response("302 Found\r\nlocation: http://127.0.0.1:1/", ""),
    "failed: the answer was a redirect"
)]
#[case::never(None, "failed: it did not end in time")]
#[case::too_much(response("200 OK", &"x".repeat(2 << 20)), "failed: the answer has more than")]
#[tokio::test]
async fn addresses(#[case] answer: Option<String>, #[case] expected: &str) {
    let workspace = Workspace::new();
    let limit = if answer.is_some() { 60.0 } else { 0.3 };
    let (url, serving) = server(answer);
    let handler = json!([{"type": "http", "url": url, "timeout": limit,
        "headers": {"X-Token": "Bearer $TOKEN ${TOKEN}"}, "allowedEnvVars": ["TOKEN"]}]);
    let (_, runs) = around(&workspace, entries(Scope::User, pre(handler))).await;
    assert!(runs.len() == 1 && runs[0].starts_with(expected), "{runs:?}");
    if expected == "deny" {
        let request = serving.join().unwrap();
        assert!(
            request.starts_with("POST /hook ") && request.contains("x-token: Bearer t0p t0p"),
            "{request}"
        );
        assert!(request.contains("\"tool_name\":\"Echo\""), "{request}");
    }
}

#[tokio::test]
async fn without_hooks_nothing_is_started() {
    let workspace = Workspace::new();
    let other = json!({"PreToolUse": [{"matcher": "Write", "hooks": command("echo ran > ran")}]});
    let hooks = runner(entries(Scope::Managed, other));
    assert!(!hooks.interested("Echo") && hooks.interested("Write"));
    let toolbox = toolbox_of([echo()]).hooks(Arc::new(hooks)).build();
    let turn = toolbox.turn();
    turn.submit(CallRequest::new("c1", "Echo", json!({})));
    turn.close();
    assert_eq!(results_of(&turn).await.len(), 1);
    assert!(!workspace.path("ran").exists());
}
