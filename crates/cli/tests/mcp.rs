//! `gripper mcp`, as clients use it that behave badly, and as it is installed.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, ChildStdin, Command, Stdio},
    sync::mpsc::{Receiver, channel},
    time::{Duration, Instant},
};

use gripper_testkit::{Binary, Workspace, mcp_peer};
use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(60);

fn gripper<'a>(workspace: &'a Workspace, args: &[&str]) -> Binary<'a> {
    Binary::new(env!("CARGO_BIN_EXE_gripper"), workspace).arg("mcp").args(args)
}

/// A client that sends what it likes.
struct Peer {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
}

impl Peer {
    fn start(workspace: &Workspace, args: &[&str]) -> Self {
        let mut command = gripper(workspace, args).into_command();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (sender, lines) = channel();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                sender.send(serde_json::from_str(&line).expect("every line is a message")).ok();
            }
        });
        Self { stdin: child.stdin.take(), child, lines }
    }

    /// One that has said hello, and cannot ask its person.
    fn greeted(workspace: &Workspace, args: &[&str]) -> Self {
        let mut peer = Self::start(workspace, args);
        peer.greet();
        peer
    }

    fn greet(&mut self) {
        let hello = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let told = self.ask(0, "initialize", hello);
        assert_eq!(told["result"]["serverInfo"]["name"], "gripper", "{told}");
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }

    fn send(&mut self, message: &Value) {
        self.send_line(&message.to_string());
    }

    fn send_line(&mut self, line: &str) {
        writeln!(self.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn heard(&self) -> Value {
        self.lines.recv_timeout(PATIENCE).expect("an answer")
    }

    fn ask(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        std::iter::repeat_with(|| self.heard()).find(|message| message["id"] == id).unwrap()
    }

    fn call(&mut self, id: u64, tool: &str, arguments: Value) -> Value {
        self.ask(id, "tools/call", json!({ "name": tool, "arguments": arguments }))
    }

    fn names(&mut self) -> Vec<String> {
        let told = self.ask(1, "tools/list", json!({}));
        let tools = told["result"]["tools"].as_array().expect("a list of tools").iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// Goes away, and says how the server ended.
    fn leave(&mut self) -> i32 {
        drop(self.stdin.take());
        let since = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap_or(-1);
            }
            assert!(since.elapsed() < PATIENCE, "the server outlives its client");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn text(answer: &Value) -> &str {
    answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"))
}

fn running(command: &str) -> bool {
    Command::new("pgrep").args(["-f", &format!("^{command}")]).output().unwrap().status.success()
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let since = Instant::now();
    while !done() {
        assert!(since.elapsed() < PATIENCE, "{what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn what_is_not_there_and_what_is_not_a_message_get_one_clear_error() {
    let workspace = Workspace::new();
    let mut peer = Peer::start(&workspace, &[]);
    peer.send(
        &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } }),
    );
    peer.send_line("");
    peer.greet();
    let unknown = peer.call(1, "Reed", json!({}));
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    assert!(unknown["error"]["message"].as_str().unwrap().contains("did you mean Read?"), "{unknown}");
    assert_eq!(peer.ask(2, "no/such", json!({}))["error"]["code"], -32601);
    assert_eq!(peer.ask(3, "prompts/get", json!({ "name": 7 }))["error"]["code"], -32602);
    assert_eq!(peer.ask(10, "completion/complete", json!({}))["error"]["code"], -32601);
    assert_eq!(
        peer.ask(4, "resources/read", json!({ "uri": "gripper://results/../x" }))["error"]["code"],
        -32002
    );
    assert!(peer.call(5, "Read", json!({ "file_path": 7 }))["result"]["isError"].as_bool().unwrap());
    peer.send_line("{\"jsonrpc\": \"2.0\", \"id\": 6, oops");
    assert_eq!(peer.heard()["error"]["code"], -32700);
    let huge = "x".repeat(17 * 1024 * 1024);
    peer.send(&json!({ "jsonrpc": "2.0", "id": 7, "method": "ping", "params": { "x": huge } }));
    assert_eq!(peer.heard()["error"]["code"], -32700);
    assert_eq!(peer.ask(8, "tools/call", json!({ "name": 7 }))["error"]["code"], -32602);
    assert!(peer.ask(9, "ping", json!({}))["result"].is_object(), "the session goes on");
    assert_eq!(peer.leave(), 0);
}

#[test]
fn a_client_that_goes_away_leaves_nothing_running() {
    let workspace = Workspace::new();
    let mut peer = Peer::greeted(&workspace, &["--yes"]);
    let call = json!({ "name": "Bash", "arguments": { "command": "sleep 47113", "description": "wait" } });
    peer.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call }));
    until("the command never started", || running("sleep 47113"));
    peer.leave();
    until("the command outlives its client", || !running("sleep 47113"));
}

#[test]
fn a_thousand_calls_at_once_are_all_answered() {
    let workspace = Workspace::new();
    let file = workspace.write("notes.txt", "one\n");
    let mut peer = Peer::greeted(&workspace, &[]);
    let call = json!({ "name": "Read", "arguments": { "file_path": file } });
    for id in 1..=1_000 {
        peer.send(&json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call }));
    }
    let mut left: std::collections::BTreeSet<u64> = (1..=1_000).collect();
    while !left.is_empty() {
        let answer = peer.heard();
        assert!(left.remove(&answer["id"].as_u64().unwrap()), "twice: {answer}");
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
}

#[test]
fn profiles_and_names_choose_what_is_served() {
    let workspace = Workspace::new();
    let names = Peer::greeted(&workspace, &["--profile", "read-only"]).names();
    assert!(names.contains(&"Read".to_owned()) && !names.iter().any(|name| name == "Bash" || name == "Edit"));
    let names = Peer::greeted(&workspace, &["--profile", "edit"]).names();
    assert!(names.contains(&"Edit".to_owned()) && !names.contains(&"Bash".to_owned()), "{names:?}");
    let mut peer = Peer::greeted(&workspace, &["--tools", "Read,Glob"]);
    assert_eq!(peer.names(), ["Glob", "Read"]);
    assert_eq!(peer.call(2, "Bash", json!({ "command": "true" }))["error"]["code"], -32602);
    let wrong = gripper(&workspace, &["--tools", "Nothing"]).run();
    assert!(wrong.code == 2 && wrong.stderr.contains("there is no tool called Nothing"), "{}", wrong.stderr);
}

fn serve_from(workspace: &Workspace, server: &str) {
    let peer = json!({ "command": "python3", "args": [mcp_peer(), "stdio"] });
    let settings = json!({ "mcpServers": { server: peer } }).to_string();
    std::fs::create_dir_all(workspace.home().join(".gripper")).unwrap();
    std::fs::write(workspace.home().join(".gripper/settings.json"), settings).unwrap();
}

#[test]
fn clients_hear_of_tools_that_come_and_go() {
    let workspace = Workspace::new();
    let mut peer = Peer::greeted(&workspace, &[]);
    let before = peer.names();
    serve_from(&workspace, "late");
    // Settings are looked at with the next request.
    until("the server is not there", || {
        peer.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {} }));
        peer.heard()["method"] == "notifications/tools/list_changed"
    });
    until("the tools are not there", || peer.names().contains(&"mcp__late__echo".to_owned()));
    assert!(before.iter().all(|name| !name.starts_with("mcp__")), "{before:?}");

    let mut alone = Peer::start(&workspace, &[]);
    let list = |alone: &mut Peer, id| alone.ask(id, "tools/list", standing_alone("", &json!({}), json!({})));
    until("the tools are not there", || list(&mut alone, 1).to_string().contains("mcp__late__echo"));
    let wanted = standing_alone("", &json!({}), json!({ "notifications": { "toolsListChanged": true } }));
    alone.send(&json!({ "jsonrpc": "2.0", "id": 5, "method": "subscriptions/listen", "params": wanted }));
    assert_eq!(alone.heard()["method"], "notifications/subscriptions/acknowledged");
    // What a list said before the subscription stood is no news, so there is one change after another.
    until("it is not told", || {
        alone.send(&json!({ "jsonrpc": "2.0", "id": 6, "method": "tools/list",
            "params": standing_alone("", &json!({}), json!({})) }));
        let heard = alone.heard();
        if heard["id"] == 6 && heard.to_string().contains("mcp__late__echo") {
            std::fs::remove_file(workspace.home().join(".gripper/settings.json")).ok();
        } else if heard["id"] == 6 {
            serve_from(&workspace, "late");
        }
        heard["method"] == "notifications/tools/list_changed"
    });
}

fn put(workspace: &Workspace, name: &str, text: &str) {
    let file = workspace.home().join(name);
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, text).unwrap();
}

impl Peer {
    fn prompts(&mut self, id: u64) -> Vec<String> {
        let told = self.ask(id, "prompts/list", json!({}));
        let prompts = told["result"]["prompts"].as_array().unwrap_or_else(|| panic!("{told}")).iter();
        prompts.map(|prompt| prompt["name"].as_str().unwrap().to_owned()).collect()
    }

    fn prompt(&mut self, name: &str, arguments: Value) -> Result<String, (i64, String)> {
        let told = self.ask(1, "prompts/get", json!({ "name": name, "arguments": arguments }));
        match told["error"].as_object() {
            Some(error) => {
                Err((error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned()))
            }
            None => Ok(told["result"]["messages"][0]["content"]["text"].as_str().unwrap().to_owned()),
        }
    }
}

#[test]
fn skills_and_commands_are_prompts_for_clients() {
    let workspace = Workspace::new();
    put(
        &workspace,
        ".claude/commands/git/fix.md",
        "---\nargument-hint: <issue> [branch]\n---\nFix $issue on $2.",
    );
    put(
        &workspace,
        ".gripper/skills/tidy/SKILL.md",
        "---\ndescription: Tidies: all\n---\nTidy @notes.md up, !`ls`.",
    );
    workspace.write(".claude/commands/theirs.md", "Theirs: $ARGUMENTS");
    let mut peer = Peer::start(&workspace, &[]);
    peer.greet();
    let told = peer.ask(1, "prompts/list", json!({}));
    let fix = &told["result"]["prompts"][0];
    assert_eq!(
        (&fix["name"], &fix["description"]),
        (&json!("git:fix"), &json!("Fix $issue on $2.")),
        "{told}"
    );
    let arguments = json!([{ "name": "issue", "required": true }, { "name": "branch", "required": false }]);
    assert_eq!(fix["arguments"], arguments, "{told}");
    assert_eq!(peer.prompts(2), ["git:fix", "tidy"], "nobody trusts the project");
    let fixed = peer.prompt("git:fix", json!({ "issue": "12", "branch": "main" }));
    assert_eq!(fixed.as_deref(), Ok("Fix 12 on main."));
    let tidied = peer.prompt("tidy", json!({ "arguments": "now" })).unwrap();
    assert_eq!(tidied, "Tidy @notes.md up, !`ls`.\n\nArguments: now", "nothing is run");
    for (name, arguments, words) in [
        ("tidi", json!({}), "there is no prompt called \"tidi\": did you mean tidy?"),
        ("theirs", json!({}), "there is no prompt called \"theirs\""),
        ("git:fix", json!({}), "git:fix needs issue"),
        ("git:fix", json!({ "issue": "1", "colour": "red" }), "takes no argument \"colour\""),
        ("git:fix", json!({ "issue": 12 }), "must be a text"),
    ] {
        let (code, said) = peer.prompt(name, arguments).unwrap_err();
        assert!(code == -32602 && said.contains(words), "{said}");
    }
    let trust = gripper_testkit::Binary::new(env!("CARGO_BIN_EXE_gripper"), &workspace).arg("trust").run();
    assert_eq!(trust.code, 0, "{}", trust.transcript());
    assert_eq!(peer.prompts(3), ["git:fix", "theirs", "tidy"]);
}

#[test]
fn clients_hear_of_prompts_that_come_and_go() {
    let workspace = Workspace::new();
    let mut peer = Peer::start(&workspace, &[]);
    let capabilities = peer.ask(0, "initialize", json!({
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" },
    }))["result"]["capabilities"].clone();
    assert_eq!(capabilities["prompts"]["listChanged"], true, "{capabilities}");
    peer.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    assert!(peer.prompts(1).is_empty());
    put(&workspace, ".gripper/commands/new.md", "New.");
    // Files are looked at with the next requests, whatever these are about.
    until("it is not told", || {
        peer.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {} }));
        peer.heard()["method"] == "notifications/prompts/list_changed"
    });
    assert_eq!(peer.prompts(3), ["new"]);

    let mut alone = Peer::start(&workspace, &[]);
    let listen = json!({ "notifications": { "promptsListChanged": true } });
    let wanted = standing_alone("", &json!({}), listen);
    alone.send(&json!({ "jsonrpc": "2.0", "id": 5, "method": "subscriptions/listen", "params": wanted }));
    assert_eq!(alone.heard()["method"], "notifications/subscriptions/acknowledged");
    let mut count = 0;
    until("it is not told", || {
        count += 1;
        put(&workspace, &format!(".gripper/commands/new{count}.md"), "New.");
        alone.send(&json!({ "jsonrpc": "2.0", "id": 6, "method": "tools/list",
            "params": standing_alone("", &json!({}), json!({})) }));
        alone.heard()["method"] == "notifications/prompts/list_changed"
    });
}

#[test]
fn a_sound_of_a_server_reaches_clients_as_one() {
    let workspace = Workspace::new();
    serve_from(&workspace, "peer");
    let mut peer = Peer::greeted(&workspace, &["--yes"]);
    until("the tools are not there", || peer.names().contains(&"mcp__peer__sound".to_owned()));
    let heard = peer.call(2, "mcp__peer__sound", json!({}));
    let sound = json!({ "type": "audio", "mimeType": "audio/wav", "data": "UklGRg==" });
    assert_eq!(heard["result"]["content"][0], sound, "{heard}");
}

#[test]
fn a_structured_result_keeps_the_promise_of_its_schema() {
    let workspace = Workspace::new();
    let mut peer = Peer::greeted(&workspace, &["--yes"]);
    let told = peer.ask(1, "tools/list", json!({}));
    let tools = told["result"]["tools"].as_array().unwrap();
    let bash = tools.iter().find(|tool| tool["name"] == "Bash").unwrap();
    let done = peer.call(2, "Bash", json!({ "command": "echo hello", "description": "greet" }));
    assert_eq!(text(&done).trim(), "hello");
    for field in bash["outputSchema"]["required"].as_array().expect("some are required") {
        assert!(
            done["result"]["structuredContent"].get(field.as_str().unwrap()).is_some(),
            "{field}: {done}"
        );
    }
}

/// A call in the revision without sessions, whose client can ask its person.
fn standing_alone(tool: &str, arguments: &Value, more: Value) -> Value {
    let mut call = json!({
        "name": tool, "arguments": arguments,
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
            "io.modelcontextprotocol/clientCapabilities": { "elicitation": { "form": {} } },
        },
    });
    call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    call
}

#[test]
fn a_question_in_an_answer_is_answered_by_calling_again() {
    let workspace = Workspace::new();
    let mut peer = Peer::start(&workspace, &[]);
    let touch = json!({ "command": "touch made", "description": "make a file" });
    let asked = peer.ask(1, "tools/call", standing_alone("Bash", &touch, json!({})));
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    let state = &asked["result"]["requestState"];
    let question = &asked["result"]["inputRequests"]["permission"]["params"]["message"];
    assert!(question.as_str().unwrap().contains("touch made") && !workspace.path("made").exists());
    // Meanwhile others go on, whatever it would touch.
    let beside = peer.ask(9, "tools/call", standing_alone("Glob", &json!({ "pattern": "*" }), json!({})));
    assert_eq!(beside["result"]["isError"], false, "{beside}");

    let yes = json!({ "permission": { "action": "accept", "content": { "decision": "allow once" } } });
    for (id, command, state) in [(2, "touch made", &json!("made up")), (3, "touch other", state)] {
        let retry = json!({ "inputResponses": yes, "requestState": state });
        let other = json!({ "command": command, "description": "make a file" });
        let refused = peer.ask(id, "tools/call", standing_alone("Bash", &other, retry));
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
    }
    assert!(!workspace.path("made").exists() && !workspace.path("other").exists());

    let asked = peer.ask(4, "tools/call", standing_alone("Bash", &touch, json!({})));
    let retry = json!({ "requestState": asked["result"]["requestState"] });
    let again = peer.ask(5, "tools/call", standing_alone("Bash", &touch, retry));
    assert_eq!(again["result"]["resultType"], "input_required", "no answer in it: {again}");
    let retry = json!({ "inputResponses": yes, "requestState": again["result"]["requestState"] });
    let done = peer.ask(6, "tools/call", standing_alone("Bash", &touch, retry.clone()));
    assert!(done["result"]["isError"] == false && workspace.path("made").exists(), "{done}");
    let twice = peer.ask(7, "tools/call", standing_alone("Bash", &touch, retry));
    assert_eq!(twice["error"]["code"], -32602, "an answer counts once: {twice}");
}

#[test]
fn a_client_that_cannot_ask_is_told_the_rule() {
    let workspace = Workspace::new();
    let mut peer = Peer::greeted(&workspace, &[]);
    let refused = peer.call(1, "Bash", json!({ "command": "touch made", "description": "make a file" }));
    assert!(refused["result"]["isError"] == true && text(&refused).contains("Bash(touch"), "{refused}");
    assert!(!workspace.path("made").exists());
}

#[test]
fn over_http_only_those_with_the_token_and_no_foreign_page_come_in() {
    let workspace = Workspace::new();
    let mut command =
        gripper(&workspace, &["--http", "127.0.0.1:0"]).env("GRIPPER_MCP_TOKEN", "secret").into_command();
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut told = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut told).unwrap();
    let address = told.split("http://").nth(1).unwrap().split('/').next().unwrap().to_owned();
    let post = |headers: &str| {
        let body = json!({
            "jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25", "capabilities": {},
                "clientInfo": { "name": "test", "version": "1" },
            },
        });
        let body = body.to_string();
        let mut stream = TcpStream::connect(&address).unwrap();
        write!(
            stream,
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nContent-Length: {}\r\n{headers}\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut status = [0; 12];
        stream.read_exact(&mut status).unwrap();
        String::from_utf8_lossy(&status[9..]).into_owned()
    };
    let good = "Authorization: Bearer secret\r\n";
    assert_eq!(post(""), "401");
    assert_eq!(post("Authorization: Bearer secre\r\n"), "401");
    assert_eq!(post(&format!("{good}Origin: http://evil.example\r\n")), "403");
    assert_eq!(post(good), "200");
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn an_installed_client_keeps_what_else_it_had() {
    let workspace = Workspace::new();
    let printed = gripper(&workspace, &["install", "cursor"]).run();
    let entry: Value = serde_json::from_str(&printed.stdout).unwrap();
    assert_eq!(entry["mcpServers"]["gripper"]["args"], json!(["mcp"]));
    assert!(printed.stderr.contains(".cursor/mcp.json") && !workspace.path(".cursor").exists());

    workspace.write(".cursor/mcp.json", r#"{"x": 1, "mcpServers": {"other": {"command": "y"}}}"#);
    assert_eq!(gripper(&workspace, &["install", "cursor", "--write"]).run().code, 0);
    let file = std::fs::read_to_string(workspace.path(".cursor/mcp.json")).unwrap();
    let written: Value = serde_json::from_str(&file).unwrap();
    assert_eq!(written["mcpServers"]["gripper"], entry["mcpServers"]["gripper"]);
    assert_eq!((&written["x"], &written["mcpServers"]["other"]["command"]), (&json!(1), &json!("y")));

    let commented = "{ // mine\n}\n";
    workspace.write(".cursor/mcp.json", commented);
    let refused = gripper(&workspace, &["install", "cursor", "--write"]).run();
    assert!(refused.code == 2 && refused.stderr.contains("is not plain JSON"), "{}", refused.stderr);
    assert_eq!(std::fs::read_to_string(workspace.path(".cursor/mcp.json")).unwrap(), commented);
    assert_eq!(gripper(&workspace, &["install", "nobody"]).run().code, 2);
}
