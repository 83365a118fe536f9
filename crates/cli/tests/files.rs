//! Files through the binary: edits that lose nothing, undo, and one clear error for everything that is not a
//! plain file.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{
    collections::BTreeMap,
    fs,
    io::{BufRead, BufReader, Write},
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Child, Stdio},
    time::Duration,
};

use gripper_testkit::{Binary, Ran, Workspace};
use rstest::rstest;
use serde_json::{Value, json};

fn gripper(workspace: &Workspace) -> Binary<'_> {
    Binary::new(env!("CARGO_BIN_EXE_gripper"), workspace)
}

/// Runs calls as one turn with edits accepted.
fn run(workspace: &Workspace, calls: &[(&str, Value)]) -> Ran {
    let lines: Vec<String> =
        calls.iter().map(|(name, input)| json!({ "name": name, "input": input }).to_string()).collect();
    gripper(workspace).args(["run", "-", "--mode", "acceptEdits"]).input(lines.join("\n")).run()
}

fn undo(workspace: &Workspace, args: &[&str]) -> Ran {
    gripper(workspace).args(["undo"]).args(args).run()
}

/// The id of the first turn that changed files; what [`Ran`] shows of ids is the same for every run.
fn first_turn(workspace: &Workspace) -> String {
    let output = gripper(workspace).args(["undo", "--list", "--json"]).into_command().output().unwrap();
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    listed["turns"].as_array().unwrap().last().unwrap()["turn"].as_str().unwrap().to_owned()
}

/// Every file below a folder with its content and mode.
fn tree(folder: &Path) -> BTreeMap<String, (Vec<u8>, u32)> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(current) = folders.pop() {
        for entry in fs::read_dir(&current).unwrap().flatten() {
            let path = entry.path();
            let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                found.insert(name + "/", (Vec::new(), 0));
                folders.push(path);
            } else if kind.is_symlink() {
                found.insert(name, (fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(), 0));
            } else {
                found
                    .insert(name, (fs::read(&path).unwrap(), entry.metadata().unwrap().permissions().mode()));
            }
        }
    }
    found
}

#[test]
fn a_session_of_mixed_edits_is_taken_back_to_the_last_byte() {
    let workspace = Workspace::new();
    let w = &workspace;
    w.write("crlf.txt", "one\r\ntwo\r\nthree");
    w.write("wide.txt", b"\xff\xfea\0\n\0b\0\n\0");
    w.write("run.sh", "#!/bin/sh\necho 1\n");
    fs::set_permissions(w.path("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    w.write("gone.txt", "to be deleted\n");
    w.write("old.txt", "x\n");
    w.write("n.ipynb", r#"{"cells":[{"cell_type":"code","metadata":{},"outputs":[],"execution_count":1,"source":"a"}],"metadata":{},"nbformat":4,"nbformat_minor":4}"#);
    symlink("run.sh", w.path("link.sh")).unwrap();
    let before = tree(&w.project());
    let file = |name: &str| w.path(name).to_string_lossy().into_owned();
    let patch = "*** Begin Patch\n*** Add File: added/deep/a.txt\n+new\n*** Delete File: gone.txt\n*** Update File: old.txt\n*** Move to: moved.txt\n@@\n-x\n+y\n*** End Patch\n";
    let ran = run(
        w,
        &[
            ("Read", json!({"file_path": file("crlf.txt")})),
            (
                "Edit",
                json!({"file_path": file("crlf.txt"), "old_string": "two\nthree", "new_string": "2\n3\n4"}),
            ),
            ("Read", json!({"file_path": file("wide.txt")})),
            (
                "MultiEdit",
                json!({"file_path": file("wide.txt"), "edits": [{"old_string": "a", "new_string": "ä"}, {"old_string": "b", "new_string": "β"}]}),
            ),
            ("Read", json!({"file_path": file("link.sh")})),
            ("Write", json!({"file_path": file("link.sh"), "content": "#!/bin/sh\necho 2\n"})),
            ("Write", json!({"file_path": file("made/here/w.txt"), "content": "w"})),
            ("Read", json!({"file_path": file("n.ipynb"), "offset": 1})),
            ("NotebookEdit", json!({"notebook_path": file("n.ipynb"), "cell_id": "0", "new_source": "b"})),
            ("apply_patch", json!({"input": patch})),
        ],
    );
    let results = ran.results();
    assert!(results.iter().all(|result| result["is_error"] == false), "{results:#?}");
    assert_eq!(fs::read(w.path("crlf.txt")).unwrap(), b"one\r\n2\r\n3\r\n4");
    assert_eq!(fs::read(w.path("wide.txt")).unwrap(), b"\xff\xfe\xe4\0\n\0\xb2\x03\n\0");
    assert!(fs::symlink_metadata(w.path("link.sh")).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(w.path("run.sh")).unwrap(), "#!/bin/sh\necho 2\n");
    assert_eq!(fs::metadata(w.path("run.sh")).unwrap().permissions().mode() & 0o777, 0o755);

    w.write("foreign.txt", "someone else's\n");
    let undone = undo(w, &[]);
    assert_eq!(undone.code, 0, "{}", undone.transcript());
    let mut after = tree(&w.project());
    assert_eq!(after.remove("foreign.txt").unwrap().0, b"someone else's\n");
    assert_eq!(after, before);
    let again = undo(w, &[]);
    assert!(again.code == 2 && again.stderr.contains("nothing to undo"), "{}", again.transcript());
}

#[test]
fn undo_shows_a_conflict_and_leaves_it_alone() {
    let workspace = Workspace::new();
    let w = &workspace;
    for name in ["a.txt", "b.txt"] {
        let file = w.write(name, "one\ntwo\n");
        let read = ("Read", json!({"file_path": file}));
        let edit = ("Edit", json!({"file_path": file, "old_string": "one", "new_string": "1"}));
        assert!(run(w, &[read, edit]).results().iter().all(|result| result["is_error"] == false));
    }
    w.write("a.txt", "1\ntwo\nthree, by hand\n");
    let first = first_turn(w);
    let dry = undo(w, &["--to", &first, "--dry-run"]);
    assert_eq!(fs::read_to_string(w.path("b.txt")).unwrap(), "1\ntwo\n");
    let ran = undo(w, &["--to", &first]);
    assert_eq!((dry.code, ran.code), (1, 1));
    assert_eq!(dry.stdout.replace("would take back", "took back"), ran.stdout);
    assert!(ran.stdout.contains("conflict   a.txt: someone else has changed it since"), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("+three, by hand") && ran.stdout.contains("restored   b.txt"),
        "{}",
        ran.stdout
    );
    assert_eq!(fs::read_to_string(w.path("a.txt")).unwrap(), "1\ntwo\nthree, by hand\n");
    assert_eq!(fs::read_to_string(w.path("b.txt")).unwrap(), "one\ntwo\n");
}

/// A turn that is being fed line by line.
struct Fed {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
    /// Whether changes by others have been told of.
    told: bool,
}

impl Fed {
    fn start(workspace: &Workspace) -> Self {
        let mut command =
            gripper(workspace).args(["run", "-", "--mode", "acceptEdits", "--json"]).into_command();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary starts");
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { child, lines, told: false }
    }

    fn send(&mut self, name: &str, input: &Value) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{}", json!({ "name": name, "input": input })).unwrap();
    }

    fn wait_for(&mut self, event: &str) -> Value {
        loop {
            let line = self.lines.next().expect("the turn goes on").unwrap();
            let value: Value = serde_json::from_str(&line).unwrap();
            self.told |= value["event"] == "changed_files";
            if value["event"] == event {
                return value;
            }
        }
    }
}

impl Drop for Fed {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

#[test]
fn changes_by_others_are_told_once_and_known_then() {
    let workspace = Workspace::new();
    let file = workspace.write("a.txt", "one\ntwo\n");
    let mut turn = Fed::start(&workspace);
    turn.send("Read", &json!({ "file_path": file }));
    turn.wait_for("result");
    workspace.write("unread.txt", "nobody asked\n");
    workspace.write("a.txt", "one\n2\n");
    let told = turn.wait_for("changed_files");
    let files = told["files"].as_array().unwrap();
    assert_eq!((files.len(), &files[0]["path"], &files[0]["change"]), (1, &json!(file), &json!("modified")));
    assert!(files[0]["diff"].as_str().unwrap().contains("-two\n+2"), "{told}");
    turn.send("Edit", &json!({ "file_path": file, "old_string": "2", "new_string": "3" }));
    let result = turn.wait_for("result");
    assert_eq!(
        (&result["is_error"], &result["structured"]["changedByOthers"]),
        (&json!(false), &json!(false))
    );
    fs::remove_file(&file).unwrap();
    let told = turn.wait_for("changed_files");
    assert_eq!(told["files"][0]["change"], "deleted", "our own edit is nobody else's change: {told}");
}

#[rstest]
#[case::elsewhere("one\ntwo\n3\n", "two", Ok("one\n2\n3\n"))]
#[case::right_there("one\nTWO\nthree\n", "two", Err("-two\n+TWO"))]
#[case::now_ambiguous("one\ntwo\ntwo\n", "two", Err("+two"))]
fn a_file_that_changed_since_it_was_read(
    #[case] now: &str,
    #[case] old: &str,
    #[case] expected: Result<&str, &str>,
) {
    let workspace = Workspace::new();
    let file = workspace.write("a.txt", "one\ntwo\nthree\n");
    let mut turn = Fed::start(&workspace);
    turn.send("Read", &json!({ "file_path": file }));
    turn.wait_for("result");
    workspace.write("a.txt", now);
    // At once: whether the change was told of first or not, the edit must come out the same.
    turn.send("Edit", &json!({ "file_path": file, "old_string": old, "new_string": "2" }));
    let result = turn.wait_for("result");
    let text = result["content"][0]["text"].as_str().unwrap();
    let content = fs::read_to_string(&file).unwrap();
    match expected {
        Ok(after) => {
            assert_eq!(content, after, "{text}");
            assert!(turn.told || text.contains("someone else has changed other parts"), "{text}");
        }
        Err(says) => {
            assert_eq!((content.as_str(), &result["is_error"]), (now, &json!(true)));
            assert!(turn.told || text.contains(says) && text.contains("read it again"), "{text}");
        }
    }
}

/// Killed at random moments, an edit leaves the old file or the new one, nothing else, and undo still works.
#[test]
fn kill_9_leaves_the_old_file_or_the_new_one() {
    let rounds: usize = std::env::var("GRIPPER_KILLS").ok().and_then(|text| text.parse().ok()).unwrap_or(25);
    let workspace = Workspace::new();
    let body = "line of text\n".repeat(2_000);
    let content = |number: usize| format!("version {number}\n{body}");
    let mut killed_midway = 0;
    let mut current = 0;
    let file = workspace.write("a.txt", content(0));
    for round in 0..rounds {
        let mut turn = Fed::start(&workspace);
        turn.send("Read", &json!({ "file_path": file, "limit": 1 }));
        turn.wait_for("result");
        for number in current..current + 40 {
            let (old, new) = (format!("version {number}\n"), format!("version {}\n", number + 1));
            turn.send("Edit", &json!({ "file_path": file, "old_string": old, "new_string": new }));
        }
        std::thread::sleep(Duration::from_micros((round as u64 * 7_919) % 60_000));
        drop(turn);
        let now = fs::read_to_string(&file).unwrap();
        let version = now.lines().next().unwrap().strip_prefix("version ").unwrap().parse().unwrap();
        assert_eq!(now, content(version), "round {round}: a torn file");
        assert!((current..=current + 40).contains(&version));
        killed_midway += usize::from(version > current && version < current + 40);
        current = version;
    }
    assert!(killed_midway > 0 || rounds < 20, "no round was killed in the middle");
    let first = first_turn(&workspace);
    let undone = undo(&workspace, &["--to", &first]);
    assert_eq!(undone.code, 0, "{}", undone.transcript());
    assert_eq!(fs::read_to_string(&file).unwrap(), content(0));
    assert_eq!(tree(&workspace.project()).len(), 1, "drafts were cleared away");
}

/// Another program and the agent change one file at the same time; every change of both is in it at the end,
/// or its maker was told.
#[test]
fn a_busy_neighbour_and_edits_lose_nothing_silently() {
    let workspace = Workspace::new();
    let file = workspace.write("a.txt", "count 0\n");
    let theirs = 60;
    let neighbour = std::thread::spawn({
        let file = file.clone();
        move || {
            for number in 0..theirs {
                let mut file = fs::OpenOptions::new().append(true).open(&file).unwrap();
                writeln!(file, "theirs {number}").unwrap();
                drop(file);
                std::thread::sleep(Duration::from_micros(number * 97 % 9_000));
            }
        }
    });
    let mut turn = Fed::start(&workspace);
    let mut ours = 0;
    for _ in 0..30 {
        turn.send("Read", &json!({ "file_path": file }));
        turn.wait_for("result");
        let (old, new) = (format!("count {ours}\n"), format!("count {}\n", ours + 1));
        turn.send("Edit", &json!({ "file_path": file, "old_string": old, "new_string": new }));
        ours += usize::from(turn.wait_for("result")["is_error"] == false);
    }
    neighbour.join().unwrap();
    let content = fs::read_to_string(&file).unwrap();
    assert!(content.starts_with(&format!("count {ours}\n")), "{ours} edits were reported as made: {content}");
    assert_eq!(content.lines().filter(|line| line.starts_with("theirs")).count() as u64, theirs);
}

#[rstest]
#[case::fifo("fifo", "is a named pipe")]
#[case::directory("folder", "is a directory")]
#[case::device("/dev/null", "is a character device")]
#[case::symlink_loop("loop", "Too many levels of symbolic links")]
#[case::dangling("dangling", "is a symbolic link to nowhere")]
#[case::sparse("sparse", "has 10737418240 bytes, more than")]
#[case::binary("binary", "")]
fn odd_files_get_one_clear_error(#[case] name: &str, #[case] says: &str) {
    let workspace = Workspace::new();
    let w = &workspace;
    std::process::Command::new("mkfifo").arg(w.path("fifo")).status().unwrap();
    fs::create_dir(w.path("folder")).unwrap();
    symlink("loop", w.path("loop")).unwrap();
    symlink("nowhere", w.path("dangling")).unwrap();
    fs::File::create(w.path("sparse")).unwrap().set_len(10 * 1024 * 1024 * 1024).unwrap();
    w.write("binary", b"\x7fELF\x02\x01\x01\0\0\0");
    let path = w.path(name);
    for (tool, input) in [
        ("Edit", json!({"file_path": path, "old_string": "a", "new_string": "b"})),
        ("Write", json!({"file_path": path, "content": "b"})),
        ("MultiEdit", json!({"file_path": path, "edits": [{"old_string": "a", "new_string": "b"}]})),
        ("NotebookEdit", json!({"notebook_path": path, "cell_id": "0", "new_source": "b"})),
    ] {
        let ran = gripper(w).args(["tool", tool, &input.to_string(), "--yes", "--add-dir", "/dev"]).run();
        assert_eq!(ran.code, 1, "{tool} {name}: {}", ran.transcript());
        assert!(
            ran.stdout.contains(says) || ran.stderr.contains(says),
            "{tool} {name}: {}",
            ran.transcript()
        );
    }
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    let workspace = Workspace::new();
    let small = workspace.root().join("small");
    fs::create_dir(&small).unwrap();
    let mounted = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=64k", "none"])
        .arg(&small)
        .status()
        .is_ok_and(|status| status.success());
    if !mounted {
        return;
    }
    let file = small.join("a.txt");
    fs::write(&file, "old\n").unwrap();
    let calls = [
        json!({"name": "Read", "input": {"file_path": file}}),
        json!({"name": "Write", "input": {"file_path": file, "content": "x".repeat(200_000)}}),
        json!({"name": "Write", "input": {"file_path": small.join("new"), "content": "x".repeat(200_000)}}),
    ];
    let lines: Vec<String> = calls.iter().map(Value::to_string).collect();
    let ran = gripper(&workspace)
        .args(["run", "-", "--mode", "acceptEdits", "--add-dir"])
        .arg(&small)
        .input(lines.join("\n"))
        .run();
    let left: Vec<_> = fs::read_dir(&small).unwrap().flatten().map(|entry| entry.file_name()).collect();
    let content = fs::read_to_string(&file).unwrap();
    std::process::Command::new("umount").arg(&small).status().unwrap();
    let results = ran.results();
    for result in &results[1..] {
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("there is no room left"), "{text}");
    }
    assert_eq!((content.as_str(), left.len()), ("old\n", 1), "{left:?}");
}
