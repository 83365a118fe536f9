//! The agent through the binary, with the scripted model server on the other side of real HTTP.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{
    collections::{BTreeMap, HashSet},
    fs,
    process::Stdio,
    time::{Duration, Instant},
};

use gripper_testkit::{
    Binary, Ran, Workspace,
    model_server::{Answer, Asked, Gate, ModelServer, Wire},
};
use rstest::rstest;
use serde_json::{Value, json};

fn gripper<'a>(workspace: &'a Workspace, server: &ModelServer, wire: Wire) -> Binary<'a> {
    let binary = Binary::new(env!("CARGO_BIN_EXE_gripper"), workspace);
    let kind = match wire {
        Wire::Anthropic => "anthropic",
        Wire::OpenAiChat => "openai",
        Wire::OpenAiResponses => "openai-responses",
    };
    let settings = json!({
        "model": "here/m", "providers": { "here": { "type": kind, "baseUrl": server.url() } },
    });
    binary.arg("--settings").arg(settings.to_string())
}

/// How many answers the conversation of a request has.
fn answers_in(asked: &Asked) -> usize {
    let items = asked.body.get("messages").or(asked.body.get("input")).and_then(Value::as_array);
    let (mut count, mut last) = (0, false);
    for item in items.into_iter().flatten() {
        let of_model = item["role"] == "assistant" || item["type"] == "function_call";
        count += usize::from(of_model && !last);
        last = of_model;
    }
    count
}

fn files(workspace: &Workspace) -> BTreeMap<String, String> {
    let entries = fs::read_dir(workspace.project()).unwrap().flatten();
    let file = |entry: fs::DirEntry| {
        Some((entry.file_name().into_string().ok()?, fs::read_to_string(entry.path()).ok()?))
    };
    entries.filter_map(file).collect()
}

/// Reads, searches, edits, runs the tests and says so.
fn story(workspace: &Workspace) -> Vec<Answer> {
    let path = |name: &str| workspace.path(name).to_string_lossy().into_owned();
    vec![
        Answer::says("I look.")
            .call("r1", "Read", json!({ "file_path": path("greet.sh") }))
            .call("r2", "Read", json!({ "file_path": path("test.sh") }))
            .call("r3", "Grep", json!({ "pattern": "helo", "path": path("") })),
        Answer::calls("Bash", json!({ "command": "sh test.sh" })),
        Answer::calls(
            "Edit",
            json!({ "file_path": path("greet.sh"), "old_string": "helo", "new_string": "hello" }),
        ),
        Answer::calls("Bash", json!({ "command": "sh test.sh" })).split(3),
        Answer::says("Mended: the test passes."),
    ]
}

fn told(ran: &Ran) -> Value {
    ran.json_lines().pop().unwrap_or_else(|| panic!("{}", ran.transcript()))
}

#[test]
fn a_session_ends_with_the_same_tree_on_every_wire() {
    let mut trees = Vec::new();
    for wire in [Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses] {
        let workspace = Workspace::new();
        workspace.write("greet.sh", "echo helo\n");
        workspace.write("test.sh", "test \"$(sh greet.sh)\" = hello && echo passed >> report.txt\n");
        let server = ModelServer::start(story(&workspace));
        let ran = gripper(&workspace, &server, wire)
            .args(["-p", "mend it", "--output-format=json", "--allow=Bash(sh test.sh)", "--allow=Edit"])
            .run();
        assert_eq!(ran.code, 0, "{}", ran.transcript());
        assert_eq!(told(&ran)["result"], "Mended: the test passes.");
        assert_eq!(told(&ran)["num_turns"], 5);
        trees.push(files(&workspace));
    }
    assert_eq!(trees[0]["greet.sh"], "echo hello\n");
    assert_eq!(trees[0]["report.txt"], "passed\n");
    assert!(trees.windows(2).all(|pair| pair[0] == pair[1]), "{trees:?}");
}

#[test]
fn requests_carry_what_the_model_should_know() {
    let workspace = Workspace::new();
    workspace.write("AGENTS.md", "Speak like a pirate. @more.md\n");
    workspace.write("more.md", "Every second line only.\n");
    let server = ModelServer::start([Answer::says("Aye.")]);
    let ran = gripper(&workspace, &server, Wire::Anthropic)
        .args(["-p", "hello", "--append-system-prompt", "Be short."])
        .run();
    assert_eq!(ran.stdout, "Aye.\n", "{}", ran.transcript());
    let body = server.asked()[0].body.clone();
    let system = body["system"].to_string();
    for words in ["You are Gripper", "Be short.", "pirate", "Every second line", "Working directory"] {
        assert!(system.contains(words), "{words} is missing in {system}");
    }
    let tools = body["tools"].as_array().unwrap();
    assert!(tools.iter().any(|tool| tool["name"] == "Read"));
    assert!(
        tools.last().unwrap()["cache_control"].is_object(),
        "the built-in tools are kept by the provider"
    );
}

/// Each answer adds one line; what line it is follows from how many answers came before.
fn growing(workspace: &Workspace, lines: usize) -> ModelServer {
    let path = workspace.path("log.txt").to_string_lossy().into_owned();
    ModelServer::choosing(move |asked, _| {
        let done = answers_in(asked);
        Some(match done {
            0 => Answer::calls("Read", json!({ "file_path": path })),
            n if n <= lines => Answer::new().text("next").call(
                &format!("edit-{n}"),
                "Edit",
                json!({ "file_path": path, "old_string": "end\n", "new_string": format!("{n}\nend\n") }),
            ),
            _ => Answer::says("all there"),
        })
    })
}

#[rstest]
fn killed_at_any_moment_a_session_goes_on_and_no_edit_is_made_twice(#[values(1, 2, 3, 4)] part: u64) {
    const LINES: usize = 6;
    let args = |first: bool| {
        let mut args = vec!["-p", "go on", "--allow=Edit", "--max-turns=40"];
        if !first {
            args.push("--continue");
        }
        args
    };
    let mut seed = part;
    let mut whole = Duration::from_millis(400);
    for round in 0..26 {
        let workspace = Workspace::new();
        workspace.write("log.txt", "end\n");
        let server = growing(&workspace, LINES);
        if round == 0 {
            let begin = Instant::now();
            let ran = gripper(&workspace, &server, Wire::Anthropic).args(args(true)).run();
            assert_eq!(ran.stdout, "all there\n", "{}", ran.transcript());
            whole = begin.elapsed();
            continue;
        }
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut command = gripper(&workspace, &server, Wire::Anthropic).args(args(true)).into_command();
        let silent = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = silent.spawn().unwrap();
        std::thread::sleep(whole.mul_f64((seed >> 33) as f64 / f64::from(u32::MAX >> 1)));
        child.kill().unwrap();
        child.wait().unwrap();
        let mut ran = gripper(&workspace, &server, Wire::Anthropic).args(args(false)).run();
        if ran.stderr.contains("there is no session") {
            ran = gripper(&workspace, &server, Wire::Anthropic).args(args(true)).run();
        }
        assert_eq!(ran.stdout, "all there\n", "{}", ran.transcript());
        let log = fs::read_to_string(workspace.path("log.txt")).unwrap();
        let lines: Vec<&str> = log.lines().collect();
        let once: HashSet<&&str> = lines.iter().collect();
        assert_eq!(once.len(), lines.len(), "a line is there twice: {log}");
        assert_eq!(lines.last(), Some(&"end"), "{log}");
    }
}

#[test]
fn a_conversation_that_grows_too_long_is_made_shorter_and_goes_on() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "many words in a row\n".repeat(500));
    let read = json!({ "file_path": workspace.path("a.txt") });
    let server = ModelServer::choosing(move |asked, at| {
        // A summary is asked for without tools.
        let summary = asked.body["tools"].as_array().is_none_or(Vec::is_empty);
        Some(match at {
            _ if summary => Answer::says("So far a.txt was read."),
            0 => Answer::calls("Read", read.clone()),
            1 => Answer::too_long(),
            _ => Answer::says("done"),
        })
    });
    let ran =
        gripper(&workspace, &server, Wire::Anthropic).args(["-p", "go", "--output-format=stream-json"]).run();
    assert_eq!(told(&ran)["result"], "done", "{}", ran.transcript());
    assert!(ran.json_lines().iter().any(|line| line["subtype"] == "compact_boundary"));
    let asked = server.asked();
    let last = asked.last().unwrap().body["messages"].to_string();
    assert!(
        last.contains("So far a.txt was read.") && last.len() < asked[1].body["messages"].to_string().len()
    );
    let next = gripper(&workspace, &server, Wire::Anthropic).args(["-p", "and?", "--continue"]).run();
    assert_eq!(next.stdout, "done\n", "{}", next.transcript());
}

#[test]
fn a_fast_model_finds_the_files_in_what_commands_print() {
    let workspace = Workspace::new();
    let gate = Gate::default();
    let found = gate.clone();
    let server = ModelServer::choosing(move |asked, _| {
        let answers = answers_in(asked);
        Some(match asked.body["model"].as_str() {
            Some("quick") => {
                found.open();
                Answer::says("NOTES")
            }
            _ if answers == 0 => Answer::calls("Bash", json!({ "command": "echo see NOTES" })),
            _ => Answer::new().wait(&gate).text("Seen."),
        })
    });
    settings(&workspace, &json!({ "models": { "fast": "here/quick" } }));
    let ran = gripper(&workspace, &server, Wire::Anthropic)
        .args(["-p", "look", "--output-format=json", "--allow=Bash(echo:*)"])
        .run();
    assert_eq!(told(&ran)["result"], "Seen.", "{}", ran.transcript());
    let asked = server.asked();
    let quick: Vec<_> = asked.iter().filter(|asked| asked.body["model"] == "quick").collect();
    assert_eq!(quick.len(), 1, "{asked:?}");
    assert!(quick[0].body["messages"].to_string().contains("see NOTES"), "{:?}", quick[0].body);
    assert!(quick[0].body["tools"].as_array().is_none_or(Vec::is_empty), "it only reads");
}

#[test]
fn an_input_that_a_transcript_cannot_hold_is_refused() {
    let workspace = Workspace::new();
    let nested = |levels: usize| {
        let inner = (0..levels).fold(json!("x"), |inner, _| json!([inner]));
        Answer::calls("TodoWrite", json!({ "todos": inner }))
    };
    let server = ModelServer::start([nested(99), nested(120), Answer::says("over"), Answer::says("on")]);
    let run =
        |flags: &[&str]| gripper(&workspace, &server, Wire::Anthropic).args(["-p", "x"]).args(flags).run();
    assert_eq!(run(&[]).stdout, "over\n");
    let asked = server.asked().pop().unwrap().body.to_string();
    assert!(asked.contains("it is nested more than 100 deep"), "{asked}");
    let again = run(&["--continue"]);
    assert_eq!((&*again.stdout, &*again.stderr), ("on\n", ""), "{}", again.transcript());
}

fn settings(workspace: &Workspace, settings: &Value) {
    fs::create_dir_all(workspace.home().join(".gripper")).unwrap();
    fs::write(workspace.home().join(".gripper/settings.json"), settings.to_string()).unwrap();
}

/// The server refuses what providers refuse, and fails the test for it.
#[rstest]
fn what_providers_refuse_is_not_sent_back(
    #[values(Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses)] wire: Wire,
) {
    let workspace = Workspace::new();
    let odd = Answer::new().call("a", "functions.Glob", json!({})).call("b", "", json!({}));
    let server = ModelServer::start([
        Answer::new().thinking("hm").stop("max_tokens"),
        odd,
        Answer::says("one").thinking("more").stop("max_tokens"),
        Answer::says("two"),
    ]);
    let prompt = json!({ "type": "user", "message": { "role": "user", "content": "go" } });
    let ran = gripper(&workspace, &server, wire)
        .args(["--input-format=stream-json", "--output-format=stream-json", "--max-thinking-tokens=2000"])
        .input(format!("{prompt}\n{prompt}\n{prompt}\n"))
        .run();
    let lines = ran.json_lines();
    let results: Vec<&Value> =
        lines.iter().filter(|line| line["type"] == "result").map(|line| &line["result"]).collect();
    assert_eq!(results, ["", "one", "two"], "{}", ran.transcript());
    let asked = server.asked().pop().unwrap().body.to_string();
    assert!(asked.contains("functions_Glob") && asked.contains("there is no tool called"), "{asked}");
    let thinks = ["\"budget_tokens\":2000", "\"reasoning_effort\":\"low\"", "\"effort\":\"low\""];
    assert!(thinks.iter().any(|words| asked.contains(words)), "{asked}");
}

#[test]
fn a_budget_ends_the_work_and_another_model_takes_over_from_a_busy_one() {
    let workspace = Workspace::new();
    settings(&workspace, &json!({ "prices": { "here/m": { "input": 1_000_000, "output": 0 } } }));
    let look = || Answer::calls("Glob", json!({ "pattern": "*" }));
    let server = ModelServer::start([look(), look()]);
    let ran = gripper(&workspace, &server, Wire::Anthropic)
        .args(["-p", "go", "--output-format=json", "--max-budget-usd=15"])
        .run();
    let told = told(&ran);
    assert_eq!((ran.code, &told["subtype"]), (1, &json!("error_max_budget_usd")), "{}", ran.transcript());
    assert_eq!((&told["total_cost_usd"], &told["num_turns"]), (&json!(20.0), &json!(2)));
    let server = ModelServer::choosing(|asked, _| match asked.body["model"].as_str() {
        Some("other") => Some(Answer::says("here I am")),
        _ => Some(Answer::status(529)),
    });
    let ran =
        gripper(&workspace, &server, Wire::Anthropic).args(["-p", "go", "--fallback-model=other"]).run();
    assert_eq!(ran.stdout, "here I am\n", "{}", ran.transcript());
    assert!(ran.stderr.contains("other takes over"), "{}", ran.transcript());
}
