//! Agents that agents start, through the binary, with a model that plays a script.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{fs, process::Stdio, time::Duration};

use gripper_testkit::{Binary, Ran, Workspace};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

fn gripper(workspace: &Workspace) -> Binary<'_> {
    Binary::new(env!("CARGO_BIN_EXE_gripper"), workspace)
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn use_of(name: &str, input: Value) -> Value {
    json!({ "type": "tool_use", "name": name, "input": input })
}

fn task(kind: &str, prompt: &str, more: Value) -> Value {
    let mut input = json!({ "description": "a task", "prompt": prompt, "subagent_type": kind });
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    use_of("Task", input)
}

/// An answer of the main agent.
fn main(blocks: Vec<Value>) -> Value {
    json!({ "content": blocks })
}

/// An answer of the agent whose prompt has `who` in it.
fn of(who: &str, blocks: Vec<Value>) -> Value {
    json!({ "content": blocks, "for": who })
}

fn command<'a>(workspace: &'a Workspace, answers: &[Value], flags: &[&str]) -> Binary<'a> {
    let lines: String = answers.iter().map(|answer| format!("{answer}\n")).collect();
    let path = workspace.root().join("script.jsonl");
    fs::write(&path, lines).unwrap();
    let model = format!("--model=scripted:{}", path.display());
    gripper(workspace).args(["-p", "begin", &model, "--output-format", "stream-json"]).args(flags)
}

fn run(workspace: &Workspace, answers: &[Value], flags: &[&str]) -> Ran {
    command(workspace, answers, flags).run()
}

/// The results that the main agent got, as text and whether they are errors.
fn results(ran: &Ran) -> Vec<(String, bool)> {
    let blocks = ran
        .json_lines()
        .into_iter()
        .filter(|line| line["type"] == "user" && line["parent_tool_use_id"].is_null())
        .flat_map(|line| line["message"]["content"].as_array().cloned().unwrap_or_default());
    let results = blocks.filter(|block| block["type"] == "tool_result");
    results
        .map(|block| {
            let texts = block["content"].as_array().unwrap().iter().filter_map(|part| part["text"].as_str());
            (texts.collect(), block["is_error"] == true)
        })
        .collect()
}

/// The only session's folder, and what was written of it.
fn session(workspace: &Workspace) -> std::path::PathBuf {
    let mut all: Vec<_> =
        fs::read_dir(workspace.home().join(".gripper/sessions")).unwrap().flatten().collect();
    assert_eq!(all.len(), 1);
    all.remove(0).path()
}

fn transcript(workspace: &Workspace) -> String {
    fs::read_to_string(session(workspace).join("transcript.jsonl")).unwrap()
}

/// The id in what Task says.
fn agent_id(said: &str) -> String {
    let from = said.rfind("(agentId ").unwrap_or_else(|| panic!("no id in {said}")) + "(agentId ".len();
    said[from..].split(':').next().unwrap().to_owned()
}

#[test]
fn several_agents_work_side_by_side_and_say_what_they_found() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "needle\n");
    let ran = run(
        &workspace,
        &[
            main(vec![
                task("Explore", "find ONE", json!({})),
                task("general-purpose", "find TWO", json!({ "name": "second" })),
                task("Explore", "find THREE", json!({})),
            ]),
            of("ONE", vec![use_of("Grep", json!({ "pattern": "needle" }))]),
            of("TWO", vec![text("two is here")]),
            of("THREE", vec![text("three is here")]),
            of("ONE", vec![text("one is in a.txt")]),
            main(vec![text("all found")]),
        ],
        &[],
    );
    let results = results(&ran);
    assert_eq!(results.len(), 3, "{}", ran.transcript());
    for ((said, failed), words) in results.iter().zip(["one is in a.txt", "two is here", "three is here"]) {
        assert!(said.starts_with(words) && !failed, "{said}");
    }
    assert!(results[0].0.contains("1 call,") && results[1].0.contains("0 calls,"), "{results:?}");
    assert_eq!(ran.json_lines().pop().unwrap()["result"], "all found");
}

#[test]
fn what_an_agent_below_says_and_does_is_told_under_the_call_that_started_it() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "needle\n");
    let answers = [
        main(vec![task("Explore", "find ONE", json!({}))]),
        of("ONE", vec![text("I look."), use_of("Grep", json!({ "pattern": "needle" }))]),
        of("ONE", vec![text("one is in a.txt")]),
        main(vec![text("found")]),
    ];
    let lines = run(&workspace, &answers, &["--include-partial-messages"]).json_lines();
    let blocks = |line: &Value| line["message"]["content"].as_array().cloned().unwrap_or_default();
    let calls: Vec<Value> = lines.iter().flat_map(blocks).filter(|block| block["name"] == "Task").collect();
    let below: Vec<_> = lines.iter().filter(|line| line["parent_tool_use_id"] == calls[0]["id"]).collect();
    let told: Vec<String> = below
        .iter()
        .flat_map(|line| blocks(line).into_iter().map(|block| format!("{} {}", line["type"], block["type"])))
        .collect();
    let expected = "user text, assistant text, assistant tool_use, user tool_result, assistant text";
    assert_eq!(told.join(", ").replace('"', ""), expected);
    assert!(below[1]["message"]["model"].is_string() && below[3]["tool_use_result"].is_object(), "{below:?}");
    assert_eq!(lines.last().unwrap()["result"], "found");
}

#[test]
fn an_agent_may_do_less_than_whoever_starts_it_and_never_more() {
    let workspace = Workspace::new();
    let write = |name: &str| use_of("Write", json!({ "file_path": workspace.path(name), "content": "x" }));
    let shell = |line: &str| use_of("Bash", json!({ "command": line }));
    let agents = json!({
        "wide": { "description": "d", "prompt": "WIDE", "permissionMode": "acceptEdits" },
        "narrow": { "description": "d", "prompt": "NARROW", "tools": ["Write"], "permissionMode": "default" },
        "shell": { "description": "d", "prompt": "SHELL", "disallowedTools": ["Bash(touch *)"] },
    });
    let answers = [
        main(vec![
            task("Explore", "EXPLORE", json!({})),
            task("wide", "go", json!({})),
            task("narrow", "go", json!({})),
            task("shell", "go", json!({})),
            task("general-purpose", "FREE", json!({ "allowed_tools": ["Read"] })),
        ]),
        of("EXPLORE", vec![write("explored"), shell("touch explored-too")]),
        of("EXPLORE", vec![text("done")]),
        of("WIDE", vec![write("wide")]),
        of("WIDE", vec![text("done")]),
        of("NARROW", vec![write("narrow"), shell("touch narrow-too")]),
        of("NARROW", vec![text("done")]),
        of("SHELL", vec![shell("touch shell"), write("shell-write"), write("denied.txt")]),
        of("SHELL", vec![text("done")]),
        of("FREE", vec![write("free")]),
        of("FREE", vec![text("done")]),
        main(vec![text("over")]),
    ];
    let flags = ["--agents", &agents.to_string(), "--deny", "Edit(denied.txt)"];
    let modes = |mode: &str| {
        let ran = run(&workspace, &answers, &[&flags[..], &["--mode", mode]].concat());
        assert_eq!(results(&ran).len(), 5, "{}", ran.transcript());
        let all = [
            "explored",
            "explored-too",
            "wide",
            "narrow",
            "narrow-too",
            "shell",
            "shell-write",
            "denied.txt",
            "free",
        ];
        let made: Vec<&str> = all.into_iter().filter(|name| workspace.path(name).exists()).collect();
        made.iter().for_each(|name| fs::remove_file(workspace.path(name)).unwrap());
        made
    };
    // Nobody can be asked, so what must be asked is denied; only the main agent's mode opens more.
    assert_eq!(modes("default"), Vec::<&str>::new());
    assert_eq!(modes("acceptEdits"), ["wide", "shell-write"]);
    assert_eq!(modes("plan"), Vec::<&str>::new());
}

#[test]
fn a_type_that_a_rule_denies_is_not_started() {
    let workspace = Workspace::new();
    let both = vec![
        task("Explore", "x", json!({})),
        use_of("Agent", json!({ "description": "d", "prompt": "p", "subagent_type": "Plan" })),
        task("Nobody", "x", json!({})),
    ];
    let answers = [main(both), of("designs a change", vec![text("planned")]), main(vec![text("over")])];
    let ran = run(&workspace, &answers, &["--deny", "Task(Explore)"]);
    let results = results(&ran);
    assert!(results[0].1 && results[0].0.contains("Task(Explore)"), "{}", ran.transcript());
    assert!(!results[1].1 && results[1].0.starts_with("planned"), "{results:?}");
    assert!(results[2].1 && results[2].0.contains("there are Bash, Explore"), "{results:?}");
}

#[test]
fn an_agent_goes_on_also_in_a_session_that_was_ended_meanwhile() {
    let workspace = Workspace::new();
    let answers = [
        main(vec![task("Plan", "remember BLUE", json!({}))]),
        of("BLUE", vec![text("blue it is")]),
        main(vec![text("noted")]),
    ];
    let first = run(&workspace, &answers, &[]);
    let id = agent_id(&results(&first)[0].0);
    let session = session(&workspace).file_name().unwrap().to_str().unwrap().to_owned();
    let answers = [
        main(vec![task("Plan", "and now?", json!({ "resume": id }))]),
        main(vec![
            task("Explore", "and now?", json!({ "resume": id })),
            task("Plan", "and now?", json!({ "resume": "plan-00000000" })),
        ]),
        of("BLUE", vec![text("still blue")]),
        main(vec![text("over")]),
    ];
    let second = run(&workspace, &answers, &["--resume", &session]);
    let results = results(&second);
    assert!(results[0].0.starts_with("still blue") && results[0].0.contains(&id), "{}", second.transcript());
    assert!(results[1].1 && results[1].0.contains("of the type Plan"), "{results:?}");
    assert!(results[2].1 && results[2].0.contains("there is no agent plan-00000000"), "{results:?}");
}

#[test]
fn agents_start_others_only_as_deep_as_settings_say() {
    let nested = vec![task("general-purpose", "INNER", json!({}))];
    let answers = [
        main(vec![task("general-purpose", "OUTER", json!({}))]),
        of("OUTER", nested),
        of("INNER", vec![text("deep")]),
        of("OUTER", vec![text("back")]),
        main(vec![text("over")]),
    ];
    let started = |flags: &[&str]| {
        let workspace = Workspace::new();
        let ran = run(&workspace, &answers, flags);
        assert!(results(&ran)[0].0.starts_with("back"), "{}", ran.transcript());
        fs::read_dir(session(&workspace).join("agents")).unwrap().count()
    };
    assert_eq!(started(&[]), 1, "the inner one never began");
    assert_eq!(started(&["--settings", r#"{"agents": {"maxDepth": 2}}"#]), 2);
}

#[test]
fn one_in_the_background_is_announced_or_waited_for() {
    let workspace = Workspace::new();
    let begin = main(vec![task("Explore", "LATER", json!({ "run_in_background": true }))]);
    let later = json!({ "content": [text("found later")], "for": "LATER", "delay_ms": 300 });
    let wait = "until grep -rq answer_end ~/.gripper/sessions/*/agents; do sleep 0.05; done; sleep 1";
    let pause = main(vec![use_of("Bash", json!({ "command": wait }))]);
    let ran = run(&workspace, &[begin.clone(), later.clone(), pause, main(vec![text("over")])], &["--yes"]);
    let said = results(&ran);
    assert!(said[0].0.contains("works in the background") && !said[0].1, "{}", ran.transcript());
    assert!(
        transcript(&workspace).contains("which works in the background, has ended"),
        "{}",
        ran.transcript()
    );
    // The id is made up when the agent begins, so a model that plays a script asks for the wrong one.
    let ask = main(vec![use_of("AgentOutputTool", json!({ "agentId": "explore-1" }))]);
    let ran = run(&workspace, &[begin, later, ask, main(vec![text("over")])], &[]);
    let said = results(&ran);
    assert!(said[1].1 && said[1].0.contains("there is explore-"), "{}", ran.transcript());
}

#[test]
fn an_interrupt_ends_agents_with_all_they_run() {
    let workspace = Workspace::new();
    let mark = workspace.path("began");
    let line = format!("touch {}; sleep 61; touch {}", mark.display(), workspace.path("ended").display());
    let answers = [
        main(vec![
            task("Bash", "RUN", json!({})),
            task("Bash", "BACK", json!({ "run_in_background": true })),
        ]),
        of("RUN", vec![use_of("Bash", json!({ "command": line }))]),
        of("BACK", vec![use_of("Bash", json!({ "command": "sleep 62" }))]),
    ];
    let mut command = command(&workspace, &answers, &["--yes"]).into_command();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    for _ in 0..1000 {
        if mark.exists() {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(mark.exists());
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let before = std::time::Instant::now();
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(130));
    assert!(before.elapsed() < Duration::from_secs(9));
    let left = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let line = fs::read(entry.path().join("cmdline")).unwrap_or_default();
        line == b"sleep\x0061\0" || line == b"sleep\x0062\0"
    });
    assert_eq!(left.count(), 0);
}

#[test]
fn hooks_may_ask_a_model() {
    let workspace = Workspace::new();
    let hook = |kind: &str, prompt: &str| json!({ "type": kind, "prompt": prompt, "onFailure": "block" });
    let settings = json!({ "hooks": { "PreToolUse": [
        { "matcher": "Write", "hooks": [hook("prompt", "Is QUICK fine? $ARGUMENTS")] },
        { "matcher": "Glob", "hooks": [hook("agent", "Is LOOK fine?")] },
    ] } });
    let write = |name: &str| use_of("Write", json!({ "file_path": workspace.path(name), "content": "x" }));
    let answers = [
        main(vec![write("a")]),
        of("QUICK", vec![text("Well: {\"ok\": false, \"reason\": \"not on a Friday\"}")]),
        main(vec![write("b")]),
        of("QUICK", vec![text("```json\n{\"ok\": true}\n```")]),
        main(vec![write("c")]),
        of("QUICK", vec![text("I like it.")]),
        main(vec![use_of("Glob", json!({ "pattern": "*" }))]),
        of("LOOK", vec![write("d"), use_of("Glob", json!({ "pattern": "b" }))]),
        of("LOOK", vec![use_of("StructuredOutput", json!({ "ok": false, "reason": "b is there" }))]),
        main(vec![text("over")]),
    ];
    let ran = run(&workspace, &answers, &["--mode", "acceptEdits", "--settings", &settings.to_string()]);
    let results = results(&ran);
    assert_eq!(results.len(), 4, "{}", ran.transcript());
    assert!(results[0].1 && results[0].0.contains("not on a Friday"), "{results:?}");
    assert!(!results[1].1, "{results:?}");
    assert!(results[2].1 && results[2].0.contains("did not say whether"), "{results:?}");
    assert!(results[3].1 && results[3].0.contains("b is there"), "{results:?}");
    let made = ["a", "b", "c", "d"].map(|name| workspace.path(name).exists());
    assert_eq!(made, [false, true, false, false]);
}
