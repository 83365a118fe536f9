//! The real binary, as a person or a script uses it.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use gripper_testkit::{Binary, Ran, Workspace};
use serde_json::{Value, json};

fn gripper<'a>(workspace: &'a Workspace, args: &[&str]) -> Binary<'a> {
    Binary::new(env!("CARGO_BIN_EXE_gripper"), workspace).args(args)
}

fn run(workspace: &Workspace, args: &[&str]) -> Ran {
    gripper(workspace, args).run()
}

fn result(ran: &Ran) -> Value {
    serde_json::from_str(&ran.stdout).unwrap_or_else(|error| panic!("{error}: {}", ran.transcript()))
}

#[test]
fn version_and_help() {
    let workspace = Workspace::new();
    let version = run(&workspace, &["--version"]);
    assert_eq!((version.code, &*version.stdout), (0, concat!("gripper ", env!("CARGO_PKG_VERSION"), "\n")));
    let help = run(&workspace, &["--help"]);
    for command in ["tools", "tool", "run", "hooks", "audit", "demo", "completions"] {
        assert!(help.stdout.contains(&format!("  {command} ")), "{command} is missing in {}", help.stdout);
    }
    for (words, near) in [(&["nonsense"][..], ""), (&["sesions", "list"], ": did you mean gripper sessions?")]
    {
        let wrong = run(&workspace, words);
        let expected = format!("error: there is no command {:?}{near}\n", words[0]);
        assert!(wrong.code == 2 && wrong.stderr.starts_with(&expected), "{}", wrong.transcript());
    }
    for words in [&["--mode", "plan", "tools"][..], &["--yes", "tool", "Read"]] {
        let wrong = run(&workspace, words);
        assert!(
            wrong.code == 2 && wrong.stderr.contains("is a command, and its options"),
            "{}",
            wrong.transcript()
        );
    }
    let two = run(&workspace, &["-p", "mend", "it"]);
    assert!(two.code == 2 && two.stderr.contains("two prompts were given"), "{}", two.transcript());
}

const ALL: [&str; 16] = [
    "Bash",
    "BashOutput",
    "Edit",
    "Glob",
    "Grep",
    "KillShell",
    "Monitor",
    "MultiEdit",
    "NotebookEdit",
    "Read",
    "Sleep",
    "TaskOutput",
    "TodoWrite",
    "ToolSearch",
    "Write",
    "apply_patch",
];

#[test]
fn tools_are_listed_with_their_schemas() {
    let workspace = Workspace::new();
    let tools: Value = serde_json::from_str(&run(&workspace, &["tools", "--json"]).stdout).unwrap();
    let names: Vec<&str> =
        tools.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ALL);
    assert_eq!(tools[0]["input_schema"]["required"], json!(["command"]));
    assert!(tools.as_array().unwrap().iter().all(|tool| tool["deferred"] == false));
    let always: Value =
        serde_json::from_str(&run(&workspace, &["tools", "--json", "--tool-search", "always"]).stdout)
            .unwrap();
    let sleep = always.as_array().unwrap().iter().find(|tool| tool["name"] == "Sleep").unwrap();
    assert_eq!(sleep["deferred"], true);
    assert!(run(&workspace, &["tools", "--tool-search", "always"]).stdout.contains("(deferred)"));
}

#[test]
fn agents_get_the_tools_meant_for_them() {
    let workspace = Workspace::new();
    let names = |args: &[&str]| {
        let ran = run(&workspace, args);
        ran.stdout.lines().map(|line| line.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        names(&["tools", "--for", "background"]),
        ["Bash", "BashOutput", "Glob", "Grep", "KillShell", "Monitor", "Read", "TaskOutput", "TodoWrite"]
    );
    assert_eq!(
        names(&["tools", "--for", "explore"]),
        [
            "Bash",
            "BashOutput",
            "Glob",
            "Grep",
            "KillShell",
            "Monitor",
            "Read",
            "Sleep",
            "TaskOutput",
            "TodoWrite",
            "ToolSearch"
        ]
    );
    let without_sleep: Vec<&str> = ALL.into_iter().filter(|name| *name != "Sleep").collect();
    assert_eq!(names(&["tools", "--deny", "Sleep"]), without_sleep);
}

#[test]
fn one_call_prints_one_result() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "one\ntwo\n");
    let plain = run(&workspace, &["tool", "Read", r#"{"file_path": "a.txt"}"#]);
    assert_eq!(plain.code, 0, "{}", plain.transcript());
    assert!(plain.stdout.starts_with("     1\tone\n     2\ttwo\n"), "{}", plain.stdout);
    let ran = run(&workspace, &["tool", "Read", r#"{"file_path": "a.txt"}"#, "--json"]);
    let line = result(&ran);
    assert_eq!(
        (&line["event"], &line["call_id"], &line["tool"]),
        (&json!("result"), &json!("c1"), &json!("Read"))
    );
    assert_eq!(line["is_error"], false);
    assert_eq!(line["content"][0]["type"], "text");
    assert_eq!(line["structured"]["totalLines"], 2);
    assert!(line["duration_ms"].is_number());
    let stdin =
        gripper(&workspace, &["tool", "Read", "-", "--json"]).input(r#"{"file_path": "a.txt"}"#).run();
    assert_eq!(result(&stdin)["structured"]["totalLines"], 2);
    // To a schema that is an integer.
    let float = run(&workspace, &["tool", "Read", r#"{"file_path": "a.txt", "offset": 2.0}"#]);
    assert!(float.stdout.starts_with("     2\ttwo\n"), "{}", float.transcript());
    let half = run(&workspace, &["tool", "Read", r#"{"file_path": "a.txt", "offset": 1.5}"#]);
    assert_eq!(half.code, 2, "{}", half.transcript());
}

#[test]
fn exit_codes_tell_what_happened() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "one\n");
    let outside = workspace.root().join("outside.txt");
    std::fs::write(&outside, "out\n").unwrap();
    let outside = json!({ "file_path": outside }).to_string();
    let root = workspace.root().to_string_lossy().into_owned();
    let inside = r#"{"file_path": "a.txt"}"#;
    let table: &[(&[&str], i32, &str)] = &[
        (&["tool", "Read", inside], 0, ""),
        (&["tool", "Read", r#"{"file_path": "none.txt"}"#], 1, "error: not_found: no file at"),
        (&["tool", "Read", "{}"], 2, "error: invalid_input: the input for Read"),
        (&["tool", "Raed", inside], 2, "did you mean Read?"),
        (&["tool", "Read", "not json"], 2, "error: the input is not JSON"),
        (&["tool", "Read", "[]"], 2, "error: invalid_input"),
        (&["tool", "Read", &outside], 3, "the allow rule Read(/[root]/outside.txt) would settle it"),
        (&["tool", "Read", &outside, "--yes"], 0, ""),
        (&["tool", "Read", &outside, "--allow", "Read"], 0, ""),
        (&["tool", "Read", &outside, "--add-dir", &root], 0, ""),
        (&["tool", "Read", &outside, "--yes", "--mode", "dontAsk"], 3, "the mode is dontAsk"),
        (
            &["tool", "Read", inside, "--deny", "Read"],
            3,
            "error: denied: Read is not available: deny rule Read (command line)",
        ),
        (&["tool", "Read", inside, "--ask", "Read"], 3, "ask rule Read (command line)"),
        (&["tool", "Read", inside, "--mode", "plan"], 0, ""),
        (&["tool", "Read", inside, "--mode", "wild"], 2, "there is no permission mode"),
        (
            &["tool", "Read", inside, "--allow", "Bash(git *"],
            2,
            "--allow: \"Bash(git *\" has an opening bracket without a closing one",
        ),
        (&["tool", "Read", inside, "--add-dir", "nowhere"], 2, "--add-dir: nowhere is not a directory"),
    ];
    for (args, code, words) in table {
        let ran = run(&workspace, args);
        assert_eq!(ran.code, *code, "{args:?}\n{}", ran.transcript());
        assert!(ran.stderr.contains(words), "{args:?}\n{}", ran.transcript());
    }
}

#[test]
fn a_link_out_of_the_project_does_not_get_through() {
    let workspace = Workspace::new();
    std::fs::write(workspace.root().join("secret.txt"), "secret\n").unwrap();
    std::os::unix::fs::symlink(workspace.root().join("secret.txt"), workspace.path("link.txt")).unwrap();
    let ran = run(&workspace, &["tool", "Read", r#"{"file_path": "link.txt"}"#]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("(which leads to [root]/secret.txt)"), "{}", ran.stderr);
    // Spelled so that following links and taking out `..` would lead to different places.
    std::fs::create_dir_all(workspace.path("a")).unwrap();
    std::fs::create_dir_all(workspace.path("b/c")).unwrap();
    std::os::unix::fs::symlink("../b/c", workspace.path("a/link")).unwrap();
    std::os::unix::fs::symlink(workspace.root().join("secret.txt"), workspace.path("a/y")).unwrap();
    for path in ["a/y", "a/link/../y", &format!("{}a/y", "n/../".repeat(1_000)), "./a//./y"] {
        let ran = run(&workspace, &["tool", "Read", &json!({ "file_path": path }).to_string()]);
        assert_eq!(ran.code, 3, "{}", ran.transcript());
    }
}

#[test]
fn ids_cannot_forge_lines() {
    let workspace = Workspace::new();
    let call =
        json!({"id": format!("x\n✓ c9 Read · forged{}", "y".repeat(1_000)), "name": "Read", "input": {}});
    let ran = gripper(&workspace, &["run", "-", "--human"]).input(call.to_string()).run();
    assert!(ran.stdout.lines().all(|line| !line.starts_with("✓ c9")), "{}", ran.stdout);
    assert!(ran.stdout.lines().all(|line| line.len() < 400), "{}", ran.stdout);
}

#[test]
fn hidden_characters_cannot_play_tricks_on_the_terminal() {
    let workspace = Workspace::new();
    for (input, words) in [
        (r#"{"file_path": "/etc/\u001b[2J\u202ex"}"#, "the path hides a control character at byte 5"),
        (r#"{"\u001b[2J\u202ex": 1}"#, r#"unknown field "\u{1b}[2J\u{202e}x""#),
    ] {
        let ran = run(&workspace, &["tool", "Read", input]);
        assert!(!ran.stderr.contains('\u{1b}') && !ran.stderr.contains('\u{202e}'), "{:?}", ran.stderr);
        assert!(ran.stderr.contains(words), "{}", ran.stderr);
    }
}

#[test]
fn a_turn_of_calls_prints_events_and_ordered_results() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "one\n");
    let calls = [
        r#"{"id": "c1", "name": "Read", "input": {"file_path": "a.txt"}}"#,
        r#"{"type": "tool_use", "id": "c2", "name": "TodoWrite", "input": {"todos": []}}"#,
        "",
        r#"{"name": "Read", "input": {"file_path": "b.txt"}}"#,
        "this is no call",
        r#"["neither", "is", "this"]"#,
        r#"{"id": "c7", "name": "Raed", "input": {}}"#,
    ];
    let ran = gripper(&workspace, &["run", "-"]).input(calls.join("\n")).run();
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    let results: Vec<(String, String)> = ran
        .results()
        .iter()
        .map(|line| {
            let code = line.get("error_code").map_or("ok", |code| code.as_str().unwrap());
            (line["call_id"].as_str().unwrap().to_owned(), code.to_owned())
        })
        .collect();
    let expected = [
        ("c1", "ok"),
        ("c2", "ok"),
        ("line-4", "not_found"),
        ("line-5", "invalid_input"),
        ("line-6", "invalid_input"),
        ("c7", "unknown_tool"),
    ];
    assert_eq!(results, expected.map(|(id, code)| (id.to_owned(), code.to_owned())));
    let last = ran.json_lines().pop().unwrap();
    assert_eq!(last, json!({"event": "turn_end", "calls": 6, "errors": 4}));
    // Calls are judged side by side, in any order.
    let decided = |line: &Value| line["event"] == "decision" && line["call_id"] == "c1";
    let decision = ran.json_lines().into_iter().find(decided).unwrap();
    assert_eq!(decision["behavior"], "allow");
    assert_eq!(decision["reason"], "only reads, inside the working directories");
}

#[test]
fn the_machine_form_is_stable() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "one\n");
    let call = r#"{"id": "c1", "name": "Read", "input": {"file_path": "a.txt", "limit": "5"}}"#;
    insta::assert_snapshot!(gripper(&workspace, &["run", "-"]).input(call).run().transcript());
}

#[test]
fn the_human_form_reads_well() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "one\ntwo\nthree\nfour\nfive\nsix\n");
    let calls = [
        r#"{"id": "c1", "name": "Read", "input": {"file_path": "a.txt"}}"#,
        r#"{"id": "c2", "name": "Read", "input": {"file_path": "/etc/hostname"}}"#,
        r#"{"id": "c3", "name": "Sleep", "input": {"seconds": -1, "minutes": 5}}"#,
    ];
    insta::assert_snapshot!(
        gripper(&workspace, &["run", "-", "--human"]).input(calls.join("\n")).run().transcript()
    );
}

#[test]
fn a_file_that_cannot_be_read_is_one_clear_error() {
    let workspace = Workspace::new();
    for file in ["missing.jsonl", "."] {
        let ran = run(&workspace, &["run", file]);
        assert_eq!((ran.code, &*ran.stdout), (2, ""), "{}", ran.transcript());
        assert!(ran.stderr.contains("give a file of calls"), "{}", ran.stderr);
    }
}

#[test]
fn a_huge_line_costs_only_itself() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "one\n");
    let big =
        format!(r#"{{"id": "big", "name": "Read", "input": {{"file_path": "{}"}}}}"#, "x".repeat(10_000_000));
    let bigger = "y".repeat(17 * 1024 * 1024);
    let good = r#"{"id": "good", "name": "Read", "input": {"file_path": "a.txt"}}"#;
    let ran = gripper(&workspace, &["run", "-"]).input([&*big, &*bigger, good].join("\n")).run();
    let codes: Vec<Value> = ran.results().iter().map(|line| line["error_code"].clone()).collect();
    assert_eq!(codes, [json!("too_large"), json!("invalid_input"), Value::Null]);
}

#[test]
fn the_concurrency_limit_comes_from_the_environment() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "one\n");
    let read = ["tool", "Read", r#"{"file_path": "a.txt"}"#];
    let ran = gripper(&workspace, &read).env("GRIPPER_MAX_TOOL_CONCURRENCY", "lots").run();
    assert_eq!(ran.code, 0);
    assert!(ran.stderr.contains("GRIPPER_MAX_TOOL_CONCURRENCY is \"lots\""), "{}", ran.stderr);
}

#[test]
fn identical_failures_are_noted_then_refused() {
    let workspace = Workspace::new();
    let calls: Vec<String> = (1..=6)
        .map(|n| {
            json!({"id": format!("c{n}"), "name": "Read", "input": {"file_path": "none.txt"}}).to_string()
        })
        .collect();
    let ran = gripper(&workspace, &["run", "-"]).input(calls.join("\n")).run();
    let codes: Vec<Value> = ran.results().iter().map(|line| line["error_code"].clone()).collect();
    assert_eq!(codes, ["not_found", "not_found", "not_found", "not_found", "repeated", "repeated"]);
    assert!(ran.results()[1]["content"][0]["text"].as_str().unwrap().contains("has failed 2 times"));
}

#[test]
fn identical_reads_are_noted() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "one\n");
    let calls: Vec<String> = (1..=3)
        .map(|n| json!({"id": format!("c{n}"), "name": "Read", "input": {"file_path": "a.txt"}}).to_string())
        .collect();
    let ran = gripper(&workspace, &["run", "-"]).input(calls.join("\n")).run();
    let noted: Vec<bool> = ran
        .results()
        .iter()
        .map(|line| line["content"][0]["text"].as_str().unwrap().contains("this same result 3 times"))
        .collect();
    assert_eq!(noted, [false, false, true]);
}

#[test]
fn oversized_results_are_kept_in_the_session_folder() {
    let workspace = Workspace::new();
    let todos: Vec<Value> =
        (0..5_000).map(|n| json!({"content": format!("Task number {n}"), "status": "pending"})).collect();
    let call = json!({"id": "c1", "name": "TodoWrite", "input": {"todos": todos}}).to_string();
    let ran = gripper(&workspace, &["run", "-"]).input(call).run();
    let words = ran.results()[0]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(words.chars().count() < 32_000, "{}", words.chars().count());
    let sessions = workspace.home().join(".gripper/sessions");
    let stored = std::fs::read_dir(sessions).unwrap().next().unwrap().unwrap().path().join("results");
    let file = std::fs::read_dir(stored).unwrap().next().unwrap().unwrap().path();
    assert!(std::fs::read_to_string(file).unwrap().contains("Task number 2500"));
    assert!(
        words.contains("Task number 0")
            && words.contains("Task number 4999")
            && !words.contains("Task number 2500")
    );
}

#[test]
fn nowhere_to_write_stops_nothing() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "one\n");
    workspace.write("blocked", "a file where a folder should be");
    let config = workspace.path("blocked").join("config");
    let read = ["tool", "Read", r#"{"file_path": "a.txt"}"#];
    let ran = gripper(&workspace, &read).env("GRIPPER_CONFIG_DIR", config).run();
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    assert!(ran.stderr.contains("warning: "), "{}", ran.stderr);
    let ran = gripper(&workspace, &read).env("HOME", "").run();
    assert_eq!(ran.code, 0, "{}", ran.transcript());
}

#[test]
fn the_audit_log_finds_any_changed_byte() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "one\n");
    for _ in 0..2 {
        assert_eq!(run(&workspace, &["tool", "Read", r#"{"file_path": "a.txt"}"#]).code, 0);
    }
    let intact = run(&workspace, &["audit", "verify"]);
    assert_eq!((intact.code, &*intact.stdout), (0, "intact: 4 lines in 1 file\n"), "{}", intact.transcript());
    let log = workspace.home().join(".gripper/audit/audit.jsonl");
    let whole = std::fs::read(&log).unwrap();
    let places = (0..whole.len()).step_by(97).chain([whole.len() - 2, whole.len() - 1]);
    for at in places {
        let mut changed = whole.clone();
        changed[at] = if changed[at] == b'7' { b'8' } else { b'7' };
        std::fs::write(&log, &changed).unwrap();
        let ran = run(&workspace, &["audit", "verify"]);
        assert_eq!(ran.code, 1, "byte {at} of {} was changed and not found", whole.len());
        assert!(ran.stderr.starts_with("error: "), "{}", ran.stderr);
    }
    std::fs::write(&log, &whole).unwrap();
    let json = run(&workspace, &["audit", "verify", "--json"]);
    assert_eq!(serde_json::from_str::<Value>(&json.stdout).unwrap()["intact"], true);
    assert_eq!(run(&Workspace::new(), &["audit", "verify"]).code, 2);
    assert_eq!(run(&workspace, &["audit", "verify", "."]).code, 2, "a folder without a log is not intact");
}

#[test]
fn secrets_do_not_reach_the_audit_log() {
    let workspace = Workspace::new();
    let token = format!("ghp_{}", "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8");
    let ran = run(&workspace, &["tool", "Read", &json!({ "file_path": format!("/x/{token}") }).to_string()]);
    assert_eq!(ran.code, 3);
    let log = std::fs::read_to_string(workspace.home().join(".gripper/audit/audit.jsonl")).unwrap();
    assert!(!log.contains(&token) && log.contains("[redacted"), "{log}");
}

#[test]
fn the_demo_shows_what_it_promises() {
    let workspace = Workspace::new();
    let ran = run(&workspace, &["demo"]);
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    for words in [
        "✓ a2 Read",
        "? sh test.sh no rule allows it",
        "yes, says the person, and to Bash(sh test.sh)",
        "✗ b1 Bash",
        "✓ c1 Edit",
        "ok greet",
        "✗ d1 Bash denied",
        "deny rule Bash(git push *)",
        "5 answers",
        "who ran beside whom",
        "intact",
    ] {
        assert!(ran.stdout.contains(words), "{words} is missing in\n{}", ran.stdout);
    }
    assert!(!workspace.home().join(".gripper").exists(), "the demo leaves nothing behind");
}

#[test]
fn completions_for_each_shell() {
    let workspace = Workspace::new();
    for shell in ["bash", "zsh", "fish"] {
        let ran = run(&workspace, &["completions", shell]);
        assert_eq!(ran.code, 0);
        assert!(ran.stdout.contains("gripper") && ran.stdout.contains("audit"), "{shell}");
    }
}

#[test]
fn a_closed_pipe_is_no_error() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "a line that is rather long, so that it does not fit the pipe\n".repeat(1_500));
    let calls: Vec<String> = (0..200)
        .map(|n| {
            json!({"id": format!("c{n}"), "name": "Read", "input": {"file_path": "a.txt", "limit": 1000 + n}})
                .to_string()
        })
        .collect();
    workspace.write("calls.jsonl", calls.join("\n"));
    let mut command = gripper(&workspace, &["run", "calls.jsonl"]).into_command();
    let mut child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&ended.stderr), "");
    assert_eq!(ended.status.code(), Some(0));
}
