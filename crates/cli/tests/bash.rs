//! Commands through the binary: what they may do, what is left of them, and how they are taken back.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{collections::BTreeMap, fs, path::Path};

use gripper_testkit::{Binary, Ran, Workspace};
use rstest::rstest;
use serde_json::json;

fn gripper(workspace: &Workspace) -> Binary<'_> {
    Binary::new(env!("CARGO_BIN_EXE_gripper"), workspace)
}

/// Runs command lines as one turn, each approved.
fn approved(workspace: &Workspace, commands: &[&str]) -> Ran {
    let line = |command: &&str| json!({"name": "Bash", "input": {"command": command}}).to_string();
    let lines: Vec<String> = commands.iter().map(line).collect();
    gripper(workspace).args(["run", "-", "--yes"]).input(lines.join("\n")).run()
}

/// Every file below a folder with its content.
fn tree(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(current) = folders.pop() {
        for entry in fs::read_dir(&current).unwrap().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
            if entry.file_type().unwrap().is_dir() {
                found.insert(name + "/", Vec::new());
                folders.push(path);
            } else {
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[rstest]
#[case::in_place("sed -i s/one/two/ a.txt")]
#[case::moved("mv a.txt b.txt")]
#[case::moved_folder("mv src other")]
#[case::removed("rm a.txt")]
#[case::removed_folder("rm -r src")]
#[case::made("mkdir -p new/deep && echo x > new/deep/file")]
#[case::script("sh build.sh")]
#[case::removed_empty_folder("rmdir src/empty/inner src/empty")]
#[case::removed_with_empty_folders("rm -r src")]
#[case::moved_empty_folder("mv src/empty src/other")]
#[case::made_empty_folders("mkdir -p new/deep new/other")]
#[case::emptied("python3 -c 'import os; os.rmdir(\"src/empty/inner\"); os.mkdir(\"left\")'")]
fn undo_takes_back_what_a_command_changed(#[case] command: &str) {
    let workspace = Workspace::new();
    workspace.write("a.txt", "one\n");
    workspace.write("src/lib.rs", "fn main() {}\n");
    workspace.write("src/deep/mod.rs", "mod deep;\n");
    workspace.write(
        "build.sh",
        "echo built > out.txt; rm -r src/deep; echo more >> a.txt; mkdir -p gen; echo g > gen/g\n",
    );
    fs::create_dir_all(workspace.project().join("src/empty/inner")).unwrap();
    let before = tree(&workspace.project());
    let ran = approved(&workspace, &[command]);
    assert_ne!(tree(&workspace.project()), before, "{}", ran.transcript());
    let undone = gripper(&workspace).args(["undo"]).run();
    assert_eq!(tree(&workspace.project()), before, "{}", undone.transcript());
    let again = gripper(&workspace).args(["undo"]).run();
    assert!(again.transcript().contains("there is nothing to undo"), "{}", again.transcript());
}

#[test]
fn what_only_reads_runs_unasked_and_changes_nothing() {
    let workspace = Workspace::new();
    workspace.write("notes.md", "# Notes\nalpha\n");
    workspace.write(".env", "PASSWORD=hunter2\n");
    let commands = [
        ("cat notes.md | wc -l", "2"),
        ("grep -h alpha ./*", "alpha"),
        ("ls -a | sort | head -4", ".\n..\n.env\nnotes.md"),
        ("for f in *.md; do echo \"$f\"; done", "notes.md"),
        ("git --version | cut -d' ' -f1", "git"),
    ];
    for (command, printed) in commands {
        let ran =
            gripper(&workspace).args(["tool", "Bash", &json!({ "command": command }).to_string()]).run();
        assert_eq!(ran.stdout.trim_end(), printed, "{}", ran.transcript());
    }
    // What the pattern comes upon and may not be read stays hidden.
    workspace.write("server.pem", "hunter2\n");
    let before = tree(&workspace.project());
    for command in ["cat $(ls -a | grep env) *", "cat *", "head -5 s*", "grep -r hunter .", "cat ./* | sort"]
    {
        let input = json!({ "command": command }).to_string();
        let ran = gripper(&workspace).args(["tool", "Bash", &input]).run();
        assert!(!ran.transcript().contains("hunter2"), "{command}: {}", ran.transcript());
    }
    assert_eq!(tree(&workspace.project()), before);
}

#[test]
fn the_sandbox_keeps_what_it_should() {
    let workspace = Workspace::new();
    workspace.write("in/file", "old\n");
    workspace.write("secret", "hunter2\n");
    let script = "echo new > in/file; echo x > out; mkdir -p in/.git/hooks; echo x > in/.git/hooks/pre-commit; \
                  echo x > in/.mcp.json; cat secret; exit 3";
    let args = ["sandbox", "--write", "in", "--hide", "secret", "--", "sh", "-c", script];
    let ran = gripper(&workspace).args(args).run();
    assert!(ran.code == 3 && !ran.stdout.contains("hunter2"), "{}", ran.transcript());
    let left = tree(&workspace.project());
    assert_eq!(left["in/file"], b"new\n");
    for refused in ["out", "in/.git/hooks/pre-commit", "in/.mcp.json"] {
        assert!(!left.contains_key(refused), "{refused}: {}", ran.transcript());
    }
    let silent = "import socket, contextlib\nwith contextlib.suppress(OSError): \
                  socket.create_connection(('192.0.2.7', 80))";
    let told = gripper(&workspace).args(["sandbox", "--", "python3", "-c", silent]).run();
    assert_eq!(told.stderr, "warning: refused: to reach 192.0.2.7:80\n");
    let ended = gripper(&workspace).args(["sandbox", "--", "sh", "-c", "exit 7"]).run();
    assert_eq!(ended.code, 7);
}

#[test]
fn the_doctor_names_every_layer() {
    let workspace = Workspace::new();
    let ran = gripper(&workspace).args(["doctor", "--json"]).run();
    let told: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap();
    let names: Vec<&str> =
        told["findings"].as_array().unwrap().iter().filter_map(|f| f["name"].as_str()).collect();
    for layer in ["bubblewrap", "landlock", "seccomp", "refusals", "bash"] {
        assert!(names.contains(&layer), "{names:?}");
    }
}

/// Processes whose environment has the mark.
fn alive(mark: &str) -> Vec<String> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let environ = |entry: &fs::DirEntry| fs::read(entry.path().join("environ")).unwrap_or_default();
    let marked = |entry: &fs::DirEntry| {
        environ(entry).windows(mark.len()).any(|window| window == mark.as_bytes())
            && !fs::read(entry.path().join("cmdline")).unwrap_or_default().is_empty()
    };
    processes.filter(marked).map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn nothing_survives_a_kill() {
    let workspace = Workspace::new();
    let mark = format!("GRIPPER_TEST_MARK={}", uuid::Uuid::now_v7());
    let (name, value) = mark.split_once('=').unwrap();
    let commands =
        ["sleep 1000", "setsid sleep 1000", "(setsid sh -c 'sleep 1000 & sleep 1000' &) ; sleep 1000"];
    let line = |command: &str| {
        json!({"name": "Bash", "input": {"command": command, "run_in_background": true}}).to_string()
    };
    let mut lines: Vec<String> = commands.iter().cycle().take(20).map(|command| line(command)).collect();
    lines.push(json!({"name": "Bash", "input": {"command": "sleep 500; true"}}).to_string());
    let command = gripper(&workspace).args(["run", "-", "--yes"]).env(name, value).into_command();
    let mut command = command;
    let mut child =
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::null()).spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), lines.join("\n").as_bytes()).unwrap();
    while alive(&mark).len() < 30 {
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let begin = std::time::Instant::now();
    while !alive(&mark).is_empty() {
        assert!(begin.elapsed().as_secs() < 20, "left: {:?}", alive(&mark));
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}
