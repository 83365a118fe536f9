//! Servers of others through the binary: honest ones, lying ones, and many at once.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    path::Path,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use gripper_testkit::{Binary, Ran, Workspace, mcp_peer};
use rstest::rstest;
use serde_json::{Value, json};

const GRIPPER: &str = env!("CARGO_BIN_EXE_gripper");

/// The peer as a stdio server.
fn peer(habits: &[&str]) -> Value {
    let mut args = vec![mcp_peer().to_string_lossy().into_owned(), "stdio".into()];
    args.extend(habits.iter().map(|habit| (*habit).to_owned()));
    json!({ "command": "python3", "args": args, "timeout": 60 })
}

/// A project whose person has these servers.
fn with_servers(servers: Value) -> Workspace {
    let workspace = Workspace::new();
    settings(&workspace, json!({ "mcpServers": servers }));
    workspace
}

fn settings(workspace: &Workspace, settings: Value) {
    fs::create_dir_all(workspace.home().join(".gripper")).unwrap();
    fs::write(workspace.home().join(".gripper/settings.json"), settings.to_string()).unwrap();
}

fn gripper(workspace: &Workspace, args: &[&str]) -> Ran {
    Binary::new(GRIPPER, workspace).args(args).run()
}

fn call(workspace: &Workspace, tool: &str, input: Value) -> Ran {
    gripper(workspace, &["tool", "--yes", tool, &input.to_string()])
}

/// What the calls of one turn gave, `error CODE: ` before those that failed.
fn turn(workspace: &Workspace, calls: &[(&str, Value)]) -> Vec<String> {
    let line = |(tool, input): &(&str, Value)| json!({ "name": tool, "input": input }).to_string() + "\n";
    let lines: String = calls.iter().map(line).collect();
    let ran = Binary::new(GRIPPER, workspace).args(["run", "--json", "--yes", "-"]).input(lines).run();
    let text = |result: Value| {
        let blocks = result["content"].as_array().unwrap_or_else(|| panic!("{}", ran.transcript()));
        let text: Vec<&str> =
            blocks.iter().map(|block| block["text"].as_str().unwrap_or("(picture)")).collect();
        let code = result["error_code"].as_str().map(|code| format!("error {code}: ")).unwrap_or_default();
        format!("{code}{}", text.join("|"))
    };
    ran.results().into_iter().map(text).collect()
}

fn assert_all(results: &[String], expected: &[&str]) {
    assert_eq!(results.len(), expected.len(), "{results:?}");
    for (result, expected) in results.iter().zip(expected) {
        assert!(result.contains(expected), "{expected:?} is not in {result:?}");
    }
}

#[test]
fn an_honest_server_is_used_like_any_tool() {
    let workspace = with_servers(json!({ "peer": peer(&[]) }));
    let results = turn(
        &workspace,
        &[
            ("mcp__peer__echo", json!({"text": "hello"})),
            ("mcp__peer__add", json!({"a": "1", "b": 2})),
            ("mcp__peer__picture", json!({})),
            ("mcp__peer__sound", json!({})),
            ("mcp__peer__fail", json!({})),
            ("mcp__peer__refuse", json!({})),
            ("mcp__peer__echo", json!({})),
            ("mcp__peer__long", json!({})),
            ("mcp__peer__roots", json!({})),
            ("mcp__peer__sample", json!({})),
            ("mcp__peer__ask", json!({})),
            ("mcp__peer__page", json!({})),
            ("ListMcpResources", json!({})),
            ("ReadMcpResource", json!({"server": "peer", "uri": "peer://note"})),
            ("ToolSearch", json!({"query": "+peer picture"})),
            ("mcp__peer__nothing", json!({})),
        ],
    );
    let project = format!("file://{}", workspace.project().display());
    assert_all(
        &results,
        &[
            "hello",
            "3",
            "(picture)|[resource note at peer://note, ReadMcpResource reads it]",
            "(picture)",
            "error failed: it went wrong",
            "error failed: the server peer failed: not like this (code -32602)",
            "error invalid_input: ",
            "[left out: 100000 characters",
            &project.replace(&*workspace.root().to_string_lossy(), "[root]"),
            "no language model is configured for servers",
            r#"{"action": "accept", "content": {"colour": "blue"}}"#,
            // Nobody has looked at the page.
            r#"{"action": "cancel"}"#,
            "peer peer://note note (text/plain): a note",
            "[peer://note]\nwhat is noted",
            "mcp__peer__picture",
            "error unknown_tool: ",
        ],
    );
    let ran =
        gripper(&workspace, &["tool", "--json", "--allow", "mcp__peer", "mcp__peer__add", r#"{"a": 4}"#]);
    assert_eq!(ran.results()[0]["structured"], json!({"sum": 4}), "{}", ran.transcript());
}

#[test]
fn a_lying_server_is_one_error_each_and_the_others_are_unharmed() {
    let mut liar = peer(&["noise", "child"]);
    liar["timeout"] = json!(5);
    let workspace = with_servers(json!({ "liar": liar, "peer": peer(&[]) }));
    let results = turn(
        &workspace,
        &[
            ("mcp__peer__huge", json!({})),
            ("mcp__liar__hang", json!({})),
            ("mcp__liar__badjson", json!({})),
            ("mcp__liar__wrongid", json!({})),
            ("mcp__liar__slow", json!({})),
            ("mcp__liar__flood", json!({})),
            ("mcp__liar__die", json!({})),
            ("mcp__peer__echo", json!({"text": "unharmed"})),
            ("mcp__liar__echo", json!({"text": "started again"})),
        ],
    );
    assert_all(
        &results,
        &[
            "error failed: the server peer failed: the server's answer has more than 16 MiB",
            "error timeout: the server liar gave no answer within",
            "this is { not json",
            "error timeout: ",
            // Its three steps take longer than its limit, but none of them does.
            "at last",
            "flooded",
            "error io: the server liar was lost during the call: the server ended with exit code 3; it last said: ",
            "unharmed",
            "started again",
        ],
    );
    let pid = fs::read_to_string(workspace.path("child.pid")).unwrap();
    assert!(!Path::new("/proc").join(pid).exists(), "what a server starts ends with it");
}

#[test]
fn hostile_names_and_schemas_are_tamed() {
    let workspace = with_servers(json!({ "evil ä": peer(&["hostile"]) }));
    let ran = gripper(&workspace, &["tools", "--json", "--wait", "30"]);
    let tools: Vec<Value> = serde_json::from_str(&ran.stdout).unwrap();
    let server = |tool: &Value| tool["server"].as_str().unwrap_or_default().to_owned();
    let evil = tools.iter().map(server).find(|name| name.starts_with("evil_")).unwrap();
    // Nothing in it looks like the end of a server's name.
    assert!(evil.len() == "evil_".len() + 8 && !evil.contains("__"), "{evil}");
    let foreign: Vec<&Value> = tools.iter().filter(|tool| server(tool) == evil).collect();
    let names: Vec<&str> = foreign.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), 21 + 7, "{names:?}");
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
    assert!(names.iter().all(|name| name.len() <= 64 && name.chars().all(plain)), "{names:?}");
    assert!(
        names.contains(&&*format!("mcp__{evil}__a_b"))
            && names.iter().any(|name| name.starts_with(&format!("mcp__{evil}__a_b_")))
    );
    let many = foreign.iter().find(|tool| tool["name"] == format!("mcp__{evil}__many")).unwrap();
    assert_eq!(many["input_schema"], json!({"type": "object"}));
    assert!(many["description"].as_str().unwrap().len() <= 2048);
    for what in [
        "without a name is left out",
        "\"echo\" is offered twice",
        "\"many\": its inputs are not checked",
        "\"deep\": its",
        "\"self\": its",
    ] {
        assert_eq!(ran.stderr.matches(what).count(), 1, "{what}: {}", ran.stderr);
    }
    assert_eq!(call(&workspace, &format!("mcp__{evil}__many"), json!({"p": 1})).stdout, "many\n");
    assert_eq!(call(&workspace, &format!("mcp__{evil}__a_b"), json!({})).stdout, "a b\n");
}

#[rstest]
#[case::nobody(&[], 3, "no rule allows mcp__peer__echo")]
#[case::server(&["--allow", "mcp__peer"], 0, "hi")]
#[case::all_of_it(&["--allow", "mcp__peer__*"], 0, "hi")]
#[case::tool(&["--allow", "mcp__peer__echo"], 0, "hi")]
#[case::other(&["--allow", "mcp__peer__add"], 3, "no rule allows")]
#[case::denied(&["--allow", "mcp__peer", "--deny", "mcp__peer__echo"], 3, "deny rule mcp__peer__echo")]
#[case::server_denied(&["--yes", "--deny", "mcp__peer"], 3, "deny rule mcp__peer")]
#[case::plan(&["--mode", "plan", "--allow", "mcp__peer"], 3, "plan mode")]
fn rules_are_about_servers_and_tools(#[case] flags: &[&str], #[case] code: i32, #[case] words: &str) {
    let workspace = with_servers(json!({ "peer": peer(&[]) }));
    let ran = gripper(&workspace, &[&["tool", "mcp__peer__echo", r#"{"text": "hi"}"#], flags].concat());
    assert_eq!(ran.code, code, "{}", ran.transcript());
    assert!(ran.transcript().contains(words), "{}", ran.transcript());
}

#[rstest]
#[case::as_shown("mcp__p_q__a_b", &["--allow", "mcp__p_q__a_b"], 0)]
#[case::as_the_server_says("mcp__p_q__a_b", &["--allow", "mcp__p.q__a/b"], 0)]
#[case::whole_server("mcp__p_q__a_b", &["--allow", "mcp__p.q"], 0)]
#[case::denied("mcp__p_q__a_b", &["--yes", "--deny", "mcp__p.q__a/b"], 3)]
#[case::other_of_that_look("mcp__p_q__c_d", &["--allow", "mcp__p.q__c.d"], 3)]
#[case::itself("mcp__p_q__c_d", &["--allow", "mcp__p_q__c_d"], 0)]
fn rules_know_tools_by_their_own_names(#[case] tool: &str, #[case] flags: &[&str], #[case] code: i32) {
    let workspace = with_servers(json!({ "p.q": peer(&["dotted"]) }));
    let ran = gripper(&workspace, &[&["tool", tool, "{}"], flags].concat());
    assert_eq!(ran.code, code, "{}", ran.transcript());
}

#[test]
fn a_project_brings_servers_only_if_it_is_trusted_or_they_are_approved() {
    let workspace = Workspace::new();
    let file = json!({ "mcpServers": { "peer": peer(&[]), "other": peer(&[]) } });
    workspace.write(".mcp.json", file.to_string());
    let echo = || call(&workspace, "mcp__peer__echo", json!({"text": "hi"}));
    let untrusted = echo();
    assert_eq!(untrusted.code, 2, "{}", untrusted.transcript());
    assert!(
        untrusted.stderr.contains("not mcpServers") && untrusted.stderr.contains("gripper trust"),
        "{}",
        untrusted.stderr
    );
    // What the project itself says about its servers does not count.
    workspace.write(
        ".gripper/settings.json",
        r#"{"enabledMcpjsonServers": ["peer"], "enableAllProjectMcpServers": true}"#,
    );
    assert_eq!(echo().code, 2);
    for words in [&["mcp", "list"][..], &["mcp", "test", "peer"]] {
        let told = gripper(&workspace, words).transcript();
        assert!(told.contains("are set aside until you trust it (gripper trust)"), "{told}");
    }
    settings(&workspace, json!({ "enabledMcpjsonServers": ["peer"] }));
    assert_eq!(echo().stdout, "hi\n");
    let listed = gripper(&workspace, &["mcp", "list", "--json", "--wait", "30"]);
    assert_eq!(listed.json_lines().iter().map(|line| &line["name"]).collect::<Vec<_>>(), ["peer"]);
    settings(&workspace, json!({}));
    assert_eq!(gripper(&workspace, &["trust"]).code, 0);
    assert_eq!(echo().stdout, "hi\n");
    settings(&workspace, json!({ "disabledMcpjsonServers": ["peer"] }));
    assert_eq!(echo().code, 2);
}

#[test]
fn children_get_a_minimal_environment_with_variables_filled_in() {
    let mut server = peer(&["${NAME:-none}", "${GIVEN}"]);
    server["env"] = json!({ "TOKEN": "x-${GIVEN}" });
    let workspace = with_servers(
        json!({ "peer": server, "broken": { "command": "${NOT_THERE}" }, "bad": { "args": 5 } }),
    );
    let ran = Binary::new(GRIPPER, &workspace)
        .args(["tool", "--yes", "mcp__peer__env"])
        .env("GIVEN", "sesame")
        .env("AWS_SECRET_ACCESS_KEY", "hush")
        .run();
    let told: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.transcript()));
    assert_eq!((&told["env"]["TOKEN"], &told["args"]), (&json!("x-sesame"), &json!(["none", "sesame"])));
    assert!(told["env"]["PATH"].is_string() && !ran.stdout.contains("hush"), "{}", ran.stdout);
    for what in [
        "the server \"broken\" does not count: the variable NOT_THERE is not set",
        "/mcpServers/bad/args does not count",
    ] {
        assert_eq!(ran.stderr.matches(what).count(), 1, "{}", ran.stderr);
    }
}

/// The peer behind an address, gone when dropped.
struct Listening(Child, String);

impl Listening {
    fn start(args: &[&str]) -> Self {
        let mut child = Command::new("python3")
            .arg(mcp_peer())
            .args(args)
            .stdout(Stdio::piped())
            .spawn()
            .expect("python3");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self(child, line.trim().to_owned())
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

#[rstest]
#[case::http("http", "http", &[])]
#[case::older("sse", "sse", &[])]
#[case::older_unasked("sse", "http", &[])]
#[case::with_a_token("http", "http", &["token"])]
fn servers_behind_an_address(#[case] way: &str, #[case] kind: &str, #[case] habits: &[&str]) {
    let server = Listening::start(&[&[way], habits].concat());
    let headers = json!({ "Authorization": "Bearer sesame" });
    let workspace =
        with_servers(json!({ "far": { "type": kind, "url": server.1, "headers": headers, "timeout": 10 } }));
    let results = turn(
        &workspace,
        &[
            ("mcp__far__echo", json!({"text": "hello"})),
            ("mcp__far__slow", json!({})),
            ("mcp__far__huge", json!({})),
            ("mcp__far__fail", json!({})),
            ("mcp__far__echo", json!({"text": "again"})),
        ],
    );
    let huge = if way == "sse" { "error " } else { "more than 16 MiB" };
    assert_all(&results[..2], &["hello", "at last"]);
    assert!(results[2].starts_with("error ") && results[2].contains(huge), "{results:?}");
    assert_all(&results[3..], &["error failed: it went wrong", "again"]);
}

/// Goes to a page as a browser does. Gives where it leads next, or its first line.
fn visit(url: &str) -> String {
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    let next = page.lines().find_map(|line| line.strip_prefix("Location: "));
    next.or(page.lines().next()).unwrap_or_default().to_owned()
}

/// Signs in with a person who goes where `lead` says, given where the server sends them.
fn log_in(workspace: &Workspace, lead: impl FnOnce(&str)) -> (i32, String) {
    let mut child = Command::new(GRIPPER)
        .args(["mcp", "login", "far"])
        .current_dir(workspace.project())
        .env_clear()
        .env("HOME", workspace.home())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    if let Some((_, url)) = line.split_once("to sign in to far, open ") {
        lead(&visit(url.trim()));
    }
    said.read_to_string(&mut line).unwrap();
    child.stdout.take().unwrap().read_to_string(&mut line).unwrap();
    (child.wait().unwrap().code().unwrap(), line)
}

#[test]
fn a_server_that_asks_for_it_is_signed_in_to() {
    let server = Listening::start(&["http", "oauth"]);
    let workspace = with_servers(json!({ "far": { "url": server.1 } }));
    let echo = || call(&workspace, "mcp__far__echo", json!({"text": "hello"}));
    let alone = echo();
    assert!(alone.stderr.contains("run `gripper mcp login far`"), "{}", alone.transcript());
    let (code, said) = log_in(&workspace, |back| {
        let forged = back.replace("state=", "state=x");
        assert!(visit(&forged).contains("400"), "only who was sent by us comes back");
        assert!(visit(back).contains("200"));
    });
    assert!(code == 0 && said.contains("signed in to far"), "{said}");
    let file = workspace.home().join(".gripper/mcp/tokens.json");
    assert!(fs::read_to_string(&file).unwrap().contains("secret1"));
    assert_eq!(echo().stdout.trim(), "hello");
    visit(&server.1.replace("/mcp", "/expire"));
    let renewed = echo();
    assert_eq!(renewed.stdout.trim(), "hello", "{}", renewed.transcript());
    assert!(fs::read_to_string(&file).unwrap().contains("secret2"), "it was renewed without anybody");
    for told in [said, alone.transcript(), renewed.transcript()] {
        assert!(!told.contains("secret") && !told.contains("hush"), "{told}");
    }
    let out = gripper(&workspace, &["mcp", "logout", "far"]);
    assert_eq!((out.code, out.stdout.trim()), (0, "signed out of far"), "{}", out.transcript());
    assert!(!fs::read_to_string(&file).unwrap().contains("secret"));
    assert!(echo().stderr.contains("needs to be signed in to"));
}

#[rstest]
#[case::declined(&["refuses"], "it was refused: access_denied")]
#[case::token_sent_in_the_open(&["leaky"], "it leads to http://192.0.2.1/token, which is not https")]
fn signing_in_that_fails_says_why(#[case] habits: &[&str], #[case] why: &str) {
    let server = Listening::start(&[&["http", "oauth"], habits].concat());
    let workspace = with_servers(json!({ "far": { "url": server.1 } }));
    let (code, said) = log_in(&workspace, |back| drop(visit(back)));
    assert!(code == 1 && said.contains(why), "{said}");
    assert!(!workspace.home().join(".gripper/mcp/tokens.json").exists());
}

#[test]
fn what_keeps_a_server_from_connecting_is_told() {
    let closed = Listening::start(&["http"]).1.clone();
    let secret = Listening::start(&["http", "token"]);
    let elsewhere = Listening::start(&["sse", "elsewhere"]);
    let workspace = with_servers(json!({
        "missing": { "command": "no-such-program" },
        "quits": peer(&["quits"]),
        "closed": { "url": closed },
        "secret": { "url": secret.1 },
        "elsewhere": { "type": "sse", "url": elsewhere.1 },
        "good": peer(&[]),
        "endless": peer(&["endless"]),
    }));
    let ran = gripper(&workspace, &["mcp", "list", "--json", "--wait", "60"]);
    assert_eq!(ran.code, 1, "{}", ran.transcript());
    let told = ran.json_lines();
    let of = |name: &str| told.iter().find(|line| line["name"] == name).unwrap_or_else(|| panic!("{name}"));
    for (name, why) in [
        ("missing", "no-such-program"),
        ("quits", "exit code 7; it last said: no licence found"),
        ("closed", "refused"),
        ("secret", "put a token into its headers"),
        ("elsewhere", "wants messages posted to another place"),
    ] {
        assert_eq!(of(name)["state"], "failed");
        assert!(of(name)["error"].as_str().unwrap().contains(why), "{}", of(name));
    }
    assert_eq!((&of("good")["state"], &of("good")["tools"]), (&json!("connected"), &json!(21)));
    assert!(of("endless")["complaints"][0].as_str().unwrap().contains("has no end"), "{}", of("endless"));
    let tested = gripper(&workspace, &["mcp", "test", "good"]);
    for part in [
        "peer 1.2.3, protocol 2025-11-25",
        "21 tools",
        "mcp__good__echo Echo",
        "4 prompts\n    /mcp__good__greet greets",
        "round trips",
    ] {
        assert!(tested.stdout.contains(part), "{part}: {}", tested.transcript());
    }
    assert_eq!(gripper(&workspace, &["mcp", "test", "quits"]).code, 1);
    assert!(gripper(&workspace, &["mcp", "test", "gone"]).stderr.contains("there is no server \"gone\""));
}

#[test]
fn tools_that_come_later_are_there_for_later_calls() {
    let workspace = with_servers(json!({ "peer": peer(&[]) }));
    let calls =
        [("mcp__peer__grow", json!({})), ("Sleep", json!({"seconds": 1})), ("mcp__peer__grown", json!({}))];
    // Each line is read when the call before it is done, as a person at a pipe would write them.
    let mut child = Binary::new(GRIPPER, &workspace).args(["run", "--json", "--yes", "-"]).into_command();
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let mut results =
        output.lines().map_while(Result::ok).filter(|line| line.contains("\"event\":\"result\""));
    let mut last = String::new();
    for (tool, given) in &calls {
        use std::io::Write;
        writeln!(input, "{}", json!({ "name": tool, "input": given })).unwrap();
        last = results.next().unwrap();
    }
    drop(input);
    child.wait().unwrap();
    assert!(last.contains("grown") && !last.contains("unknown_tool"), "{last}");
}

#[test]
fn a_cancel_reaches_the_server() {
    let workspace = with_servers(json!({ "peer": peer(&["child"]) }));
    let mut command =
        Binary::new(GRIPPER, &workspace).args(["tool", "--yes", "mcp__peer__cancelled"]).into_command();
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let until = |file: &str| {
        let begin = Instant::now();
        while !workspace.path(file).exists() && begin.elapsed() < Duration::from_secs(30) {
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    until("hanging");
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    until("cancelled");
    let told = fs::read_to_string(workspace.path("cancelled")).unwrap();
    assert!(told.contains("requestId"), "{told}");
}

#[test]
fn a_tool_of_a_server_is_a_hook() {
    let workspace = with_servers(json!({ "peer": peer(&[]) }));
    workspace.write("a.txt", "one\n");
    let no = json!({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": "not ${tool_input.file_path}"}});
    let read = |hook: Value| {
        let hooks = json!({ "hooks": { "PreToolUse": [{ "matcher": "Read", "hooks": [hook] }] } });
        workspace.write("hooks.json", hooks.to_string());
        gripper(&workspace, &["tool", "--settings", "hooks.json", "Read", r#"{"file_path": "a.txt"}"#])
    };
    let denied = read(
        json!({"type": "mcp_tool", "server": "peer", "tool": "echo", "input": {"text": no.to_string()}}),
    );
    assert_eq!(denied.code, 3, "{}", denied.transcript());
    assert!(
        denied.stderr.contains("a hook denied it: not ") && denied.stderr.contains("a.txt"),
        "{}",
        denied.stderr
    );
    let failed = read(json!({"type": "mcp_tool", "server": "peer", "tool": "fail", "onFailure": "block"}));
    assert!(failed.code == 3 && failed.stderr.contains("it went wrong"), "{}", failed.transcript());
    let unknown = read(json!({"type": "mcp_tool", "server": "nobody", "tool": "x"}));
    assert!(
        unknown.code == 0 && unknown.stderr.contains("there is no server \"nobody\""),
        "{}",
        unknown.transcript()
    );
}

/// A server that starts at once and has one tool.
const HONEST: &str = r#"while read -r line; do
    id=${line#*\"id\":}; id=${id%%[,\}]*}
    case $line in
    *'"initialize"'*) result='{"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}' ;;
    *'"tools/list"'*) result='{"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}' ;;
    *'"tools/call"'*) result='{"content": [{"type": "text", "text": "hello"}]}' ;;
    *) continue ;;
    esac
    echo "{\"jsonrpc\": \"2.0\", \"id\": $id, \"result\": $result}"
done
"#;

#[test]
fn servers_that_hang_hold_nobody_up_and_nothing_is_left_behind() {
    let workspace = Workspace::new();
    let mark = workspace.project().join("honest").to_string_lossy().into_owned();
    fs::write(&mark, HONEST).unwrap();
    let mut servers = json!({});
    for n in 0..100 {
        servers[format!("good{n}")] = json!({ "command": "sh", "args": [mark] });
        let hangs = ["-c", "read -r hello; read -r nothing; exit 1", &mark];
        servers[format!("hangs{n}")] = json!({ "command": "sh", "args": hangs });
    }
    settings(&workspace, json!({ "mcpServers": servers }));
    let begin = Instant::now();
    let peak = json!({ "command": "grep VmHWM /proc/$PPID/status", "description": "most memory so far" });
    let read = ("Read", json!({ "file_path": mark }));
    let results = turn(&workspace, &[read, ("mcp__good77__echo", json!({})), ("Bash", peak)]);
    assert_all(&results[..2], &["while read", "hello"]);
    let kilobytes: Vec<u64> = results[2].split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert!(kilobytes[0] < 200 * 1024, "{results:?}");
    let listed = gripper(&workspace, &["tools"]);
    assert!(listed.stderr.contains("still connecting, their tools are missing here: "), "{}", listed.stderr);
    assert!(begin.elapsed() < Duration::from_secs(25), "nobody waits for the limit of 30 seconds");
    let left = Command::new("pgrep").args(["-f", &mark]).output();
    assert!(left.is_ok_and(|left| left.stdout.is_empty()));
}
