//! `gripper -p` with a model that plays a script: what is printed, how it ends, and how it goes on.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    process::{Child, Stdio},
};

use gripper_testkit::{Binary, Ran, Workspace};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

fn gripper(workspace: &Workspace) -> Binary<'_> {
    Binary::new(env!("CARGO_BIN_EXE_gripper"), workspace)
}

fn say(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn call(name: &str, input: Value) -> Value {
    json!({ "content": [{ "type": "tool_use", "name": name, "input": input }] })
}

/// Puts the script where the flag says.
fn scripted(workspace: &Workspace, answers: &[Value]) -> String {
    let lines: String = answers.iter().map(|answer| format!("{answer}\n")).collect();
    let path = workspace.root().join("script.jsonl");
    fs::write(&path, lines).unwrap();
    format!("--model=scripted:{}", path.display())
}

fn print(workspace: &Workspace, answers: &[Value], flags: &[&str]) -> Ran {
    gripper(workspace).args(["-p", "go on", &scripted(workspace, answers)]).args(flags).run()
}

fn last(ran: &Ran) -> Value {
    ran.json_lines().pop().unwrap_or_else(|| panic!("nothing was printed: {}", ran.transcript()))
}

#[test]
fn an_answer_is_printed_as_text_as_json_and_as_lines() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "hello\n");
    let read = call("Read", json!({ "file_path": workspace.path("a.txt") }));
    let answers = [read, say("It says hello.")];
    let text = print(&workspace, &answers, &[]);
    assert_eq!((text.code, text.stdout.as_str()), (0, "It says hello.\n"), "{}", text.transcript());
    let one = print(&workspace, &answers, &["--output-format", "json"]);
    assert_eq!(one.json_lines().len(), 1);
    assert_eq!((&last(&one)["result"], &last(&one)["num_turns"]), (&json!("It says hello."), &json!(2)));
    let lines = print(&workspace, &answers, &["--output-format", "stream-json"]).json_lines();
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line["type"].as_str()).collect();
    assert_eq!(kinds, ["system", "assistant", "user", "assistant", "result"]);
    assert_eq!(lines[1]["message"]["content"][0]["id"], lines[2]["message"]["content"][0]["tool_use_id"]);
    assert_eq!(lines[4]["subtype"], "success");
    let cut = json!({ "content": [{ "type": "text", "text": "It sa" }], "stop_reason": "max_tokens" });
    let cut = print(&workspace, &[cut], &[]);
    assert!(cut.stdout == "It sa\n" && cut.stderr.contains("cut off"), "{}", cut.transcript());
    let pieces = print(&workspace, &answers, &["--output-format=stream-json", "--include-partial-messages"]);
    let pieces: Vec<Value> = pieces.json_lines().iter().map(|line| line["event"]["type"].clone()).collect();
    assert!(pieces.contains(&json!("content_block_delta")) && pieces.contains(&json!("message_stop")));
}

#[test]
fn what_goes_wrong_is_the_last_line_whatever_it_is() {
    let workspace = Workspace::new();
    let lines = ["--output-format", "stream-json"];
    let failed = print(&workspace, &[json!({ "error": "no such luck" })], &lines);
    assert_eq!((failed.code, &last(&failed)["is_error"]), (1, &json!(true)), "{}", failed.transcript());
    assert!(last(&failed)["result"].as_str().unwrap().contains("no such luck"));
    let turns = print(
        &workspace,
        &[call("Glob", json!({ "pattern": "*" })), say("x")],
        &["--max-turns=1", lines[0], lines[1]],
    );
    assert_eq!(last(&turns)["subtype"], "error_max_turns", "{}", turns.transcript());
    let model =
        gripper(&workspace).args(["-p", "x", "--model=scripted:/no/such/file", lines[0], lines[1]]).run();
    assert_eq!((model.code, &last(&model)["type"]), (2, &json!("result")), "{}", model.transcript());
    let nothing =
        gripper(&workspace).args(["-p", " ", &scripted(&workspace, &[say("x")]), lines[0], lines[1]]).run();
    assert!(
        last(&nothing)["result"].as_str().unwrap().contains("there is no prompt"),
        "{}",
        nothing.transcript()
    );
}

#[test]
fn a_call_that_nobody_allows_is_denied_and_named() {
    let workspace = Workspace::new();
    let write = call("Write", json!({ "file_path": workspace.path("new.txt"), "content": "x" }));
    let answers = [write, say("I may not.")];
    let ran = print(&workspace, &answers, &["--output-format", "json"]);
    let denials = &last(&ran)["permission_denials"];
    assert_eq!(
        (&denials[0]["tool_name"], &denials[0]["tool_input"]["content"]),
        (&json!("Write"), &json!("x"))
    );
    assert!(!workspace.path("new.txt").exists());
    let ran = print(&workspace, &answers, &["--allowedTools", "Write Edit"]);
    assert_eq!((ran.code, fs::read_to_string(workspace.path("new.txt")).unwrap().as_str()), (0, "x"));
}

#[test]
fn a_result_satisfies_the_schema_or_the_work_has_failed() {
    let workspace = Workspace::new();
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let schema = format!("--json-schema={schema}");
    let deliver = |n: Value| call("StructuredOutput", json!({ "n": n }));
    let flags = ["--output-format=json", &schema];
    let right = print(&workspace, &[deliver(json!("three")), say("done?"), deliver(json!(3))], &flags);
    assert_eq!(last(&right)["structured_output"], json!({ "n": 3 }), "{}", right.transcript());
    let never: Vec<Value> = (0..9).map(|_| say("no")).collect();
    let never = print(&workspace, &never, &flags);
    assert_eq!((never.code, &last(&never)["subtype"]), (1, &json!("error_max_structured_output_retries")));
}

#[test]
fn sessions_go_on_fork_and_can_be_replayed() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "hello\n");
    let read = call("Read", json!({ "file_path": workspace.path("a.txt") }));
    let id = "0199aaaa-0000-7000-8000-000000000001";
    let transcript = workspace.home().join(".gripper/sessions").join(id).join("transcript.jsonl");
    let first = print(&workspace, &[read, say("one")], &["--session-id", id]);
    assert_eq!(first.code, 0, "{}", first.transcript());
    let next = print(&workspace, &[say("two")], &["--continue"]);
    assert_eq!(next.stdout, "two\n", "{}", next.transcript());
    let fork = print(&workspace, &[say("three")], &["--resume", &id[..8], "--fork-session"]);
    assert_eq!(fork.stdout, "three\n", "{}", fork.transcript());
    let unkept = print(&workspace, &[say("three")], &["--resume", id, "--no-session-persistence"]);
    assert_eq!(unkept.stdout, "three\n", "{}", unkept.transcript());
    let kept = fs::read_to_string(transcript).unwrap();
    assert!(kept.contains("two") && !kept.contains("three"), "{kept}");
    assert_eq!(fs::read_dir(workspace.home().join(".gripper/sessions")).unwrap().count(), 2);
    let again = print(&workspace, &[say("x")], &["--session-id", id]);
    assert!(again.code == 2 && again.stderr.contains("already"), "{}", again.transcript());
    let none = print(&workspace, &[say("x")], &["--resume", "nobody"]);
    assert!(none.code == 2 && none.stderr.contains("nobody"), "{}", none.transcript());
    let same = gripper(&workspace).args(["replay", id]).run();
    assert!(same.code == 0 && same.stdout.contains("same"), "{}", same.transcript());
    workspace.write("a.txt", "bye\n");
    let other = gripper(&workspace).args(["replay", id, "--json"]).run();
    assert_eq!((other.code, &other.json_lines()[0]["verdict"]), (1, &json!("differs")));
}

/// A running conversation over standard input and output.
struct Wire {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Wire {
    fn open(workspace: &Workspace, answers: &[Value], flags: &[&str]) -> Self {
        let mut command = gripper(workspace)
            .args([
                "--input-format=stream-json",
                "--output-format=stream-json",
                &scripted(workspace, answers),
            ])
            .args(flags)
            .into_command();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines }
    }

    fn send(&mut self, line: &Value) {
        writeln!(self.child.stdin.as_ref().unwrap(), "{line}").unwrap();
    }

    fn prompt(&mut self) {
        self.send(&json!({ "type": "user", "message": { "role": "user", "content": "go" } }));
    }

    /// Reads up to the next line of this type.
    fn until(&mut self, kind: &str) -> Value {
        loop {
            let line = self.lines.next().unwrap_or_else(|| panic!("no line of type {kind} came")).unwrap();
            let line: Value = serde_json::from_str(&line).unwrap();
            if line["type"] == kind {
                return line;
            }
        }
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn permission_is_asked_over_the_wire_and_only_yes_is_yes() {
    for (answer, written) in [
        (json!({ "behavior": "allow" }), Some("x")),
        (
            json!({ "behavior": "allow", "updatedInput": { "file_path": "new.txt", "content": "y" } }),
            Some("y"),
        ),
        (json!({ "behavior": "deny", "message": "rather not" }), None),
        (json!({ "behavior": "allow", "updatedInput": "something else" }), None),
        (json!({}), None),
    ] {
        let workspace = Workspace::new();
        let write = call("Write", json!({ "file_path": workspace.path("new.txt"), "content": "x" }));
        let mut wire = Wire::open(&workspace, &[write, say("done")], &["--permission-prompt-tool=stdio"]);
        wire.prompt();
        let asked = wire.until("control_request");
        assert_eq!(
            (&asked["request"]["subtype"], &asked["request"]["tool_name"]),
            (&json!("can_use_tool"), &json!("Write"))
        );
        wire.send(&json!({ "type": "control_response", "response": {
            "subtype": "success", "request_id": asked["request_id"], "response": answer,
        } }));
        assert_eq!(wire.until("result")["subtype"], "success");
        assert_eq!(fs::read_to_string(workspace.path("new.txt")).ok().as_deref(), written, "{answer}");
    }
}

#[test]
fn a_question_that_nobody_can_answer_any_more_is_answered_with_no() {
    let workspace = Workspace::new();
    let write = |name: &str| call("Write", json!({ "file_path": workspace.path(name), "content": "x" }));
    let answers = [write("a.txt"), write("b.txt"), say("I may not.")];
    let mut wire = Wire::open(&workspace, &answers, &["--permission-prompt-tool=stdio"]);
    wire.prompt();
    wire.until("control_request");
    // The first is open by then; the second comes when nobody is there.
    drop(wire.child.stdin.take());
    let result = wire.until("result");
    assert_eq!(result["permission_denials"].as_array().map(Vec::len), Some(2), "{result}");
    assert!(!workspace.path("a.txt").exists() && !workspace.path("b.txt").exists());
    assert_eq!(wire.child.wait().unwrap().code(), Some(0));
}

#[test]
fn an_interrupt_takes_back_an_open_question() {
    let workspace = Workspace::new();
    let write = call("Write", json!({ "file_path": workspace.path("a.txt"), "content": "x" }));
    let mut wire = Wire::open(&workspace, &[write], &["--permission-prompt-tool=stdio"]);
    wire.prompt();
    let asked = wire.until("control_request");
    wire.send(
        &json!({ "type": "control_request", "request_id": "i", "request": { "subtype": "interrupt" } }),
    );
    // The call is taken back when it is gone, which may be after the work has ended.
    let (mut taken_back, mut ended) = (false, false);
    while !(taken_back && ended) {
        let line: Value = serde_json::from_str(&wire.lines.next().unwrap().unwrap()).unwrap();
        taken_back |= line["type"] == "control_cancel_request" && line["request_id"] == asked["request_id"];
        ended |= line["result"] == "interrupted";
    }
}

#[test]
fn an_agent_in_the_background_is_heard_also_while_no_prompt_is_worked_on() {
    let workspace = Workspace::new();
    let task = json!({
        "description": "d", "prompt": "in the background", "subagent_type": "general-purpose",
        "run_in_background": true,
    });
    let mut below = call("Bash", json!({ "command": "echo hello > a.txt" }));
    (below["for"], below["delay_ms"]) = (json!("in the background"), json!(300));
    let answers = [call("Task", task), say("done"), below];
    let mut wire = Wire::open(&workspace, &answers, &["--permission-prompt-tool=stdio"]);
    wire.prompt();
    let (mut asked, mut ended) = (None, false);
    while asked.is_none() || !ended {
        let line: Value = serde_json::from_str(&wire.lines.next().unwrap().unwrap()).unwrap();
        ended |= line["type"] == "result";
        asked = asked.or((line["type"] == "control_request").then_some(line));
    }
    let agent = asked.unwrap()["request"]["agent_id"].as_str().unwrap_or_default().to_owned();
    assert!(agent.starts_with("general-purpose-"), "{agent}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_folder_whose_name_is_no_text_is_a_place_like_any_other() {
    use std::os::unix::ffi::OsStrExt;
    let workspace = Workspace::new();
    let folder = workspace.project().join(std::ffi::OsStr::from_bytes(b"odd\xff"));
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("AGENTS.md"), "Be brief.\n").unwrap();
    let run = |flags: &[&str]| {
        let script = scripted(&workspace, &[say("here")]);
        let ran = gripper(&workspace).args(["-p", "x", "--output-format=stream-json", &script]).args(flags);
        let out = ran.into_command().current_dir(&folder).stdin(Stdio::null()).output().unwrap();
        (out.status.code(), String::from_utf8(out.stdout).unwrap())
    };
    for flags in [&[][..], &["--continue"]] {
        let (code, said) = run(flags);
        assert!(code == Some(0) && said.contains("\"here\""), "{code:?} {said}");
    }
}

#[test]
fn a_reader_that_goes_away_is_noticed_while_a_call_runs() {
    let workspace = Workspace::new();
    let script = scripted(&workspace, &[call("Bash", json!({ "command": "sleep 600" }))]);
    let mut command = gripper(&workspace)
        .args(["-p", "x", "--output-format=stream-json", "--allow=Bash", &script])
        .into_command();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let mut said = String::new();
    while !said.contains("sleep 600") {
        reader.read_line(&mut said).unwrap();
    }
    drop(reader);
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn control_requests_are_answered_and_prompts_follow_each_other() {
    let workspace = Workspace::new();
    let mut wire = Wire::open(&workspace, &[say("one"), say("two")], &[]);
    let request = |subtype: &str, more: Value| {
        let mut request = more;
        request["subtype"] = subtype.into();
        json!({ "type": "control_request", "request_id": subtype, "request": request })
    };
    for (line, outcome) in [
        (request("initialize", json!({})), "success"),
        (request("initialize", json!({ "hooks": { "PreToolUse": [] } })), "error"),
        (request("set_permission_mode", json!({ "mode": "plan" })), "success"),
        (request("set_permission_mode", json!({ "mode": "fly" })), "error"),
        (request("sing", json!({})), "error"),
    ] {
        wire.send(&line);
        assert_eq!(wire.until("control_response")["response"]["subtype"], outcome, "{line}");
    }
    wire.send(&json!("not a line of ours"));
    let warning = wire.until("system");
    let warning = if warning["subtype"] == "init" { wire.until("system") } else { warning };
    assert_eq!(warning["subtype"], "warning", "{warning}");
    wire.prompt();
    assert_eq!(wire.until("result")["result"], "one");
    wire.prompt();
    assert_eq!(wire.until("result")["result"], "two");
    drop(wire.child.stdin.take());
    assert_eq!(wire.child.wait().unwrap().code(), Some(0));
}

#[test]
fn an_interrupt_and_a_signal_end_the_work_with_a_last_line() {
    let sleep = || call("Bash", json!({ "command": "sleep 60" }));
    let workspace = Workspace::new();
    let mut wire = Wire::open(&workspace, &[sleep(), say("x")], &["--allow=Bash"]);
    wire.prompt();
    wire.until("assistant");
    wire.send(
        &json!({ "type": "control_request", "request_id": "i", "request": { "subtype": "interrupt" } }),
    );
    assert_eq!(wire.until("result")["is_error"], true);
    wire.prompt();
    assert_eq!(wire.until("result")["result"], "x", "the conversation goes on");
    drop(wire);
    for (signal, code) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let mut wire = Wire::open(&workspace, &[sleep()], &["--allow=Bash"]);
        wire.prompt();
        wire.until("assistant");
        kill_process(Pid::from_child(&wire.child), signal).unwrap();
        assert_eq!(wire.until("result")["is_error"], true);
        assert_eq!(wire.child.wait().unwrap().code(), Some(code));
    }
}

#[test]
fn there_is_a_last_line_also_when_nothing_began() {
    let workspace = Workspace::new();
    let lines = "--output-format=stream-json";
    for flags in [&["--nope"][..], &["--max-turns=0"], &["--fork-session"], &["--session-id=x"]] {
        let ran = gripper(&workspace).args(["-p", "x", lines]).args(flags).run();
        assert_eq!((ran.code, &last(&ran)["type"]), (2, &json!("result")), "{}", ran.transcript());
    }
    let ran = gripper(&workspace)
        .args(["--input-format=stream-json", lines, &scripted(&workspace, &[say("x")])])
        .input("rubbish\n")
        .run();
    assert_eq!((ran.code, &last(&ran)["is_error"]), (2, &json!(true)), "{}", ran.transcript());
    // A pipe that never ends must not keep anybody from ending it.
    let mut command = gripper(&workspace).args(["-p", lines]).into_command();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    let mut said = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
    assert_eq!((child.wait().unwrap().code(), said.contains("\"result\"")), (Some(143), true), "{said}");
}

#[test]
fn an_answer_without_words_has_none_of_the_one_before() {
    let workspace = Workspace::new();
    let mut wire = Wire::open(&workspace, &[say("one"), json!({ "content": [] })], &[]);
    wire.prompt();
    assert_eq!(wire.until("result")["result"], "one");
    wire.prompt();
    assert_eq!(wire.until("result")["result"], "");
}

#[test]
fn numbers_that_nobody_can_add_up_are_no_bug() {
    let workspace = Workspace::new();
    let usage = json!({ "input_tokens": u64::MAX, "output_tokens": u64::MAX });
    let answer = |text: &str| json!({ "content": [{ "type": "text", "text": text }], "usage": usage });
    let ran = print(&workspace, &[answer("one")], &[]);
    assert_eq!(ran.stdout, "one\n", "{}", ran.transcript());
    let ran = print(&workspace, &[answer("two")], &["--continue"]);
    assert_eq!(ran.stdout, "two\n", "{}", ran.transcript());
}

#[test]
fn a_reader_that_goes_away_ends_the_work_and_the_session_is_whole() {
    let workspace = Workspace::new();
    let mut answers: Vec<Value> = (0..50).map(|_| call("Glob", json!({ "pattern": "*" }))).collect();
    answers.push(call("Bash", json!({ "command": "sleep 60" })));
    let mut command = gripper(&workspace)
        .args(["-p", "x", "--output-format=stream-json", "--allow=Bash", &scripted(&workspace, &answers)])
        .into_command();
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    reader.read_line(&mut String::new()).unwrap();
    drop(reader);
    child.wait().unwrap();
    let next = print(&workspace, &[say("still here")], &["--continue"]);
    assert_eq!(next.stdout, "still here\n", "{}", next.transcript());
}

/// Tells more than a pipe holds, to a reader that does not read.
fn talkative(workspace: &Workspace, form: &str) -> Child {
    let model = scripted(workspace, &[say(&"word ".repeat(100_000))]);
    let mut command = gripper(workspace).args(["-p", "tell", &model, "--output-format", form]).into_command();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap()
}

#[test]
fn a_reader_that_pauses_gets_everything() {
    let workspace = Workspace::new();
    let children = ["json", "stream-json"].map(|form| talkative(&workspace, form));
    std::thread::sleep(std::time::Duration::from_secs(6));
    for mut child in children {
        let mut told = String::new();
        child.stdout.take().unwrap().read_to_string(&mut told).unwrap();
        let last: Value = serde_json::from_str(told.lines().last().unwrap()).unwrap();
        assert_eq!((&last["type"], child.wait().unwrap().code()), (&json!("result"), Some(0)));
    }
}

#[test]
fn a_signal_ends_it_although_nobody_reads() {
    let workspace = Workspace::new();
    let mut child = talkative(&workspace, "stream-json");
    // The first line is there; the rest does not fit into the pipe.
    let mut reader = BufReader::with_capacity(1, child.stdout.take().unwrap());
    reader.read_line(&mut String::new()).unwrap();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
}
