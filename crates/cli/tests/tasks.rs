//! Background work through the binary: watched, announced, and seen from another terminal.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{
    fs,
    io::Write,
    os::unix::fs::PermissionsExt,
    process::{Child, ChildStdin, Stdio},
    time::Duration,
};

use gripper_testkit::{Binary, Ran, Workspace};
use serde_json::{Value, json};

fn gripper(workspace: &Workspace) -> Binary<'_> {
    Binary::new(env!("CARGO_BIN_EXE_gripper"), workspace)
}

fn call(name: &str, input: Value) -> String {
    json!({ "name": name, "input": input }).to_string() + "\n"
}

/// Runs calls as one turn, each approved.
fn turn(workspace: &Workspace, calls: &[String]) -> Ran {
    gripper(workspace).args(["run", "-", "--yes", "--json"]).input(calls.concat()).run()
}

/// A session that stays until its input ends.
struct Open(Child, Option<ChildStdin>);

impl Open {
    fn with(workspace: &Workspace, calls: &[String]) -> Self {
        let mut command = gripper(workspace).args(["run", "-", "--yes"]).into_command();
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        input.write_all(calls.concat().as_bytes()).unwrap();
        Self(child, Some(input))
    }

    fn end(mut self) {
        drop(self.1.take());
        self.0.wait().unwrap();
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn tasks(workspace: &Workspace) -> Vec<Value> {
    let ran = gripper(workspace).args(["tasks", "--json"]).run();
    let told: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{}", ran.transcript()));
    told["tasks"].as_array().unwrap().clone()
}

/// Looks until the tasks are as wanted.
fn tasks_until(workspace: &Workspace, wanted: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    for _ in 0..500 {
        let found = tasks(workspace);
        if wanted(&found) {
            return found;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("still {:?}", tasks(workspace));
}

#[test]
fn a_server_is_waited_for_and_goes_on() {
    let workspace = Workspace::new();
    let server = "echo starting; echo ready on 3000; while [ ! -e stop ]; do sleep 0.02; done; echo bye";
    let ran = turn(
        &workspace,
        &[
            call("Monitor", json!({"command": server, "until": "ready", "persistent": true})),
            call("TaskOutput", json!({"task_id": "bash_1", "block": false})),
            call("Bash", json!({"command": "touch stop"})),
            call("Monitor", json!({"task_id": "bash_1", "until": "nothing"})),
        ],
    );
    let results = ran.results();
    let field = |at: usize, name: &str| results[at]["structured"][name].clone();
    assert_eq!(field(0, "matches"), json!(["ready on 3000"]), "{}", ran.transcript());
    assert_eq!((field(0, "status"), field(1, "status")), (json!("running"), json!("running")));
    assert_eq!((field(3, "reason"), field(3, "output")), (json!("exit"), json!("bye\n")));
    // What it changed was journalled before the answer: the file that ended it is the newest change but one.
    let single = gripper(&workspace)
        .args(["tool", "Monitor", r#"{"command": "echo x > made; echo done", "until": "done"}"#, "--yes"])
        .run();
    assert!(single.stdout.contains("these lines of bash_1 fit:\ndone"), "{}", single.transcript());
    assert!(workspace.path("made").exists());
    let undone = gripper(&workspace).args(["undo"]).run();
    assert!(!workspace.path("made").exists(), "{}", undone.transcript());
}

#[test]
fn a_command_is_watched_under_the_rules_of_bash() {
    let workspace = Workspace::new();
    let watch = |command: &str, flags: &[&str]| {
        let input = json!({ "command": command, "until": "x" }).to_string();
        gripper(&workspace).args(["tool", "Monitor", &input]).args(flags).run()
    };
    assert_eq!(watch("echo x", &[]).code, 0);
    assert_eq!(watch("touch x", &[]).code, 3);
    assert_eq!(watch("touch x", &["--allow", "Monitor"]).code, 3);
    assert_eq!(watch("touch x", &["--allow", "Bash(touch *)"]).code, 0);
    assert_eq!(watch("echo x", &["--deny", "Bash(echo *)", "--yes"]).code, 3);
    let guard = json!({ "matcher": "Bash", "hooks": [{ "type": "command", "command": "exit 2" }] });
    let hooks = json!({ "hooks": { "PreToolUse": [guard] } }).to_string();
    assert_eq!(watch("echo x", &["--settings", &hooks]).code, 3, "what guards commands guards these");
}

#[test]
fn a_task_that_ended_is_announced_once() {
    let workspace = Workspace::new();
    let calls = [
        call(
            "Bash",
            json!({"command": "echo made; exit 4", "description": "Make it", "run_in_background": true}),
        ),
        call("Sleep", json!({"seconds": 2})),
        call("Sleep", json!({"seconds": 0.6})),
    ];
    let ran = turn(&workspace, &calls);
    let told: Vec<Value> =
        ran.json_lines().into_iter().filter(|line| line["event"] == "task_finished").collect();
    assert_eq!(told.len(), 1, "{}", ran.transcript());
    assert_eq!(
        told[0],
        json!({"event": "task_finished", "task_id": "bash_1", "command": "echo made; exit 4",
               "description": "Make it", "status": "failed", "exit_code": 4, "last_lines": "made"})
    );
}

#[test]
fn another_terminal_sees_tasks_and_stops_one() {
    let workspace = Workspace::new();
    let bash = |command: &str| call("Bash", json!({"command": command, "run_in_background": true}));
    let open = Open::with(
        &workspace,
        &[bash("echo begun; sleep 600"), call("Sleep", json!({"seconds": 0})), bash("exit 3")],
    );
    let found = tasks_until(&workspace, |found| found.len() == 2 && found[1]["task"]["status"] == "failed");
    let owner = found[0]["owner"].as_u64().unwrap();
    assert_eq!((owner, &found[1]["task"]["exit_code"]), (u64::from(open.0.id()), &json!(3)));
    let shown = loop {
        let shown = gripper(&workspace).args(["tasks", "show", "bash_1"]).run();
        if !shown.stdout.contains("no output yet") {
            break shown;
        }
    };
    assert!(shown.stdout.starts_with("begun\n(running, all of it in"), "{}", shown.transcript());
    let other = Open::with(&workspace, &[bash("sleep 600")]);
    tasks_until(&workspace, |found| found.len() == 3);
    let unclear = gripper(&workspace).args(["tasks", "stop", "bash_1"]).run();
    assert!(unclear.code == 2 && unclear.stderr.contains("say which"), "{}", unclear.transcript());
    let stopped = gripper(&workspace).args(["tasks", "stop", &format!("{owner}/bash_1")]).run();
    assert_eq!(stopped.code, 0, "{}", stopped.transcript());
    let listed = gripper(&workspace).args(["tasks"]).run();
    assert!(listed.stdout.contains(&format!("{owner}/bash_1  killed")), "{}", listed.transcript());
    let again = gripper(&workspace).args(["tasks", "stop", &format!("{owner}/bash_1")]).run();
    assert!(again.code == 2 && again.stderr.contains("already ended"), "{}", again.transcript());
    open.end();
    // One ends well, the other is killed: of both nothing is left.
    drop(other);
    assert_eq!(tasks(&workspace), Vec::<Value>::new());
    let posted = |entry: fs::DirEntry| entry.path().join("tasks").exists();
    assert!(!fs::read_dir(workspace.home().join(".gripper/sessions")).unwrap().flatten().any(posted));
    assert_eq!(gripper(&workspace).args(["tasks", "show", "bash_1"]).run().code, 2);
}

#[test]
fn powershell_is_there_where_pwsh_is_and_asks() {
    let workspace = Workspace::new();
    let input = r#"{"command": "echo \"$0 ran\"; touch made"}"#;
    let absent = gripper(&workspace).args(["tool", "PowerShell", input, "--yes"]).run();
    assert!(absent.code == 2 && absent.stderr.contains("no pwsh"), "{}", absent.transcript());
    let program = workspace.root().join("bin/pwsh");
    fs::create_dir(program.parent().unwrap()).unwrap();
    fs::write(&program, "#!/bin/bash\nexec bash -c \"${@: -1}\" stand-in\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
    let there = |args: &[&str]| gripper(&workspace).args(args).env("PATH", &path).run();
    assert!(there(&["tools"]).stdout.contains("\nPowerShell "));
    let unasked = |flags: &[&str]| there(&[&["tool", "PowerShell", input][..], flags].concat());
    for asks in [&[][..], &["--allow", "Bash"], &["--mode", "acceptEdits"], &["--allow", "Edit"]] {
        assert_eq!(unasked(asks).code, 3, "{asks:?}");
    }
    // What is forbidden elsewhere might be what the text does, so then not even its own rule is enough.
    let forbidden = ["--allow", "PowerShell", "--deny", "Bash(rm *)"];
    assert_eq!(unasked(&forbidden).code, 3);
    assert!(!workspace.path("made").exists());
    let ran = unasked(&["--allow", "PowerShell"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "stand-in ran\n"), "{}", ran.transcript());
    let undone = there(&["undo"]);
    assert!(!workspace.path("made").exists(), "{}", undone.transcript());
}

#[test]
fn code_is_run_where_the_setting_allows_it_and_asks() {
    let workspace = Workspace::new();
    let code = |code: &str| call("REPL", json!({"language": "python", "code": code}));
    let absent = turn(&workspace, &[code("1")]);
    assert!(absent.results()[0].to_string().contains("it needs the setting repl.enabled"));
    let settings = ["--settings", r#"{"repl": {"enabled": true}}"#];
    let run = |flags: &[&str], calls: &[String]| {
        let args = [&["run", "-", "--json"][..], &settings, flags].concat();
        gripper(&workspace).args(args).input(calls.concat()).run()
    };
    let calls = [code("x = 20"), code("open('made', 'w').write('y'); x + 1")];
    let forbidden =
        [["--deny", "Read(./secret)"], ["--deny", "WebFetch"], ["--ask", "WebFetch(domain:a.org)"]];
    let forbidden = forbidden.map(|rule| [&["--allow", "REPL"][..], &rule].concat());
    for asks in [&[][..], &["--allow", "Bash"]].into_iter().chain(forbidden.iter().map(Vec::as_slice)) {
        let ran = run(asks, &calls);
        assert!(ran.results().iter().all(|result| result["error_code"] == "denied"), "{}", ran.transcript());
    }
    let ran = run(&["--allow", "REPL"], &calls);
    assert_eq!(ran.results()[1]["structured"]["value"], "21", "{}", ran.transcript());
    let undone = gripper(&workspace).args(["undo"]).run();
    assert!(!workspace.path("made").exists(), "{}", undone.transcript());
    let elsewhere = "open('/etc/gripper-test', 'w')";
    let sandbox = r#"{"repl": {"enabled": true}, "sandbox": {"enabled": true}}"#;
    let input = json!({"language": "python", "code": elsewhere}).to_string();
    let args = ["tool", "REPL", &input, "--settings", sandbox, "--allow", "REPL"];
    let held = gripper(&workspace).args(args).run();
    assert!(held.transcript().contains("Read-only file system"), "{}", held.transcript());
    let input = r#"{"language": "python", "code": "1"}"#;
    let bare = gripper(&workspace).args(["tool", "REPL", input, "--settings", sandbox, "--yes"]);
    let bare = bare.env("GRIPPER_SANDBOX_BACKENDS", "none").run();
    assert!(bare.stdout.contains("nothing confined this command"), "{}", bare.transcript());
}
