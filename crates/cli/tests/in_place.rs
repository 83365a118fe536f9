//! Edits in place through the binary, and what else commands have to do with the person's files and shell.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{fs, os::unix::fs::PermissionsExt, process::Stdio, time::Duration};

use gripper_testkit::{Binary, Workspace};
use rstest::rstest;
use serde_json::{Value, json};

fn gripper(workspace: &Workspace) -> Binary<'_> {
    Binary::new(env!("CARGO_BIN_EXE_gripper"), workspace)
}

/// Runs calls as one turn and gives their results.
fn run(workspace: &Workspace, flags: &[&str], calls: &[(&str, Value)]) -> Vec<Value> {
    let line = |(name, input): &(&str, Value)| json!({ "name": name, "input": input }).to_string();
    let lines: Vec<String> = calls.iter().map(line).collect();
    gripper(workspace).args(["run", "-", "--json"]).args(flags).input(lines.join("\n")).run().results()
}

fn bash(workspace: &Workspace, flags: &[&str], command: &str) -> Value {
    run(workspace, flags, &[("Bash", json!({ "command": command }))]).remove(0)
}

fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_default()
}

fn files(workspace: &Workspace) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(workspace.project())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

#[rstest]
#[case::sed("sed -i 's/one/two/' a.txt", b"two\r\n\xff keep\n" as &[u8])]
#[case::absolute("sed -i 's/one/two/' $PWD/a.txt", b"two\r\n\xff keep\n")]
#[case::perl("perl -pi -e 's/(o)ne/$1nce/' ./a.txt", b"once\r\n\xff keep\n")]
#[case::nothing("sed -i 's/none/two/' a.txt", b"one\r\n\xff keep\n")]
fn an_edit_in_place_is_made_as_an_edit(#[case] command: &str, #[case] expected: &[u8]) {
    let workspace = Workspace::new();
    let file = workspace.write("a.txt", b"one\r\n\xff keep\n");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o754)).unwrap();
    let command = command.replace("$PWD", &workspace.project().to_string_lossy());
    let result = bash(&workspace, &["--yes"], &command);
    assert_eq!(fs::read(&file).unwrap(), expected);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o754);
    let edits = result["structured"]["simulatedEdit"].as_array().unwrap_or_else(|| panic!("{result}"));
    assert_eq!(edits.len(), usize::from(expected != b"one\r\n\xff keep\n"));
    assert_eq!(files(&workspace), ["a.txt"]);
    let undone = gripper(&workspace).args(["undo"]).run();
    assert_eq!(fs::read(&file).unwrap(), b"one\r\n\xff keep\n", "{}", undone.transcript());
}

#[test]
fn the_backup_is_kept() {
    let workspace = Workspace::new();
    workspace.write("src/a.txt", "one\n");
    workspace.write("src/a.txt.bak", "older\n");
    let result = bash(&workspace, &["--yes"], "sed -i.bak s/one/two/ src/a.txt");
    assert!(text(&result).contains("a.txt.bak holds what was there"), "{result}");
    let read = |name: &str| fs::read_to_string(workspace.path(name)).unwrap();
    assert_eq!((read("src/a.txt"), read("src/a.txt.bak")), ("two\n".to_owned(), "one\n".to_owned()));
    let _ = gripper(&workspace).args(["undo"]).run();
    assert_eq!((read("src/a.txt"), read("src/a.txt.bak")), ("one\n".to_owned(), "older\n".to_owned()));
}

#[rstest]
#[case::writes_another("sed -i 's/one/two/w out.txt' a.txt", "a.txt out.txt")]
#[case::not_alone("sed -i s/one/two/ a.txt && echo done > b.txt", "a.txt b.txt")]
#[case::in_a_loop("for i in 1 2; do sed -i s/one/two/ a.txt; done", "a.txt")]
#[case::names_its_place("sed -i 's/one/two/;1F' $PWD/a.txt", "a.txt")]
fn other_edits_are_left_to_the_program(#[case] command: &str, #[case] there: &str) {
    let workspace = Workspace::new();
    workspace.write("a.txt", "one\n");
    let command = command.replace("$PWD", &workspace.project().to_string_lossy());
    let result = bash(&workspace, &["--yes"], &command);
    assert!(result["structured"].get("simulatedEdit").is_none(), "{result}");
    assert!(fs::read_to_string(workspace.path("a.txt")).unwrap().ends_with("two\n"));
    assert_eq!(files(&workspace).join(" "), there);
}

#[test]
fn an_edit_in_place_is_no_way_round_reading_first() {
    let workspace = Workspace::new();
    let file = workspace.write("a.txt", "one\nmore\n");
    let edit = ("Edit", json!({"file_path": file, "old_string": "more", "new_string": "less"}));
    let results =
        run(&workspace, &["--yes"], &[("Bash", json!({"command": "sed -i s/one/two/ a.txt"})), edit]);
    assert_eq!(results[1]["is_error"], true, "{}", results[1]);
    assert!(text(&results[1]).contains("has not been read yet"), "{}", results[1]);
}

#[rstest]
#[case::all("cat a.txt", true)]
#[case::elsewhere("cd sub && cat ../a.txt", true)]
#[case::several("cat sub/b.txt a.txt", true)]
#[case::some_lines("sed -n 2,3p a.txt", true)]
#[case::the_end("tail -n 1 a.txt", true)]
#[case::piped("cat a.txt | head -n 2", true)]
#[case::something_else("grep -c one a.txt", false)]
#[case::changed_on_the_way("cat a.txt | sed s/one/1/", false)]
fn what_a_command_printed_was_read(#[case] command: &str, #[case] read: bool) {
    let workspace = Workspace::new();
    let file = workspace.write("a.txt", "one\ntwo\nthree\n");
    workspace.write("sub/b.txt", "b\n");
    let edit = ("Edit", json!({"file_path": file, "old_string": "three", "new_string": "four"}));
    let results =
        run(&workspace, &["--mode", "acceptEdits"], &[("Bash", json!({ "command": command })), edit]);
    assert_eq!(results[1]["is_error"] == false, read, "{results:?}");
}

#[test]
fn start_files_are_used_once_and_change_nothing_that_was_judged() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "a\n");
    let rc = "echo noise\necho x >> ~/started\nexport PATH=\"$HOME/bin:$PATH\" COLOUR=blue MY_TOKEN=hush\n\
        greet() { echo \"hello $1\"; }\nalias ls='touch pwned; ls'\nalias ll='echo long'\ngrep() { touch pwned; }\n";
    fs::write(workspace.home().join(".bash_profile"), rc).unwrap();
    fs::create_dir(workspace.home().join("bin")).unwrap();
    let tool = workspace.home().join("bin/mytool");
    fs::write(&tool, "#!/bin/sh\necho tool\n").unwrap();
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
    let command = |command: &str| ("Bash", json!({ "command": command }));
    let judged = run(&workspace, &[], &[command("ls"), command("grep a a.txt")]);
    assert_eq!((text(&judged[0]), text(&judged[1])), ("a.txt", "a"), "{judged:?}");
    let allowed = run(
        &workspace,
        &["--allow", "Bash(ll:*)", "--allow", "Bash(touch:*)", "--allow", "Bash(ls:*)"],
        &[command("ll"), command("touch b.txt; ls")],
    );
    assert_eq!((text(&allowed[0]), text(&allowed[1])), ("long", "a.txt\nb.txt"), "{allowed:?}");
    assert_eq!(files(&workspace), ["a.txt", "b.txt"]);
    fs::remove_file(workspace.home().join("started")).unwrap();
    let lines = "greet you; mytool; echo $COLOUR [$MY_TOKEN]; bash -c 'type greet 2>&1 | wc -l'";
    let approved = run(&workspace, &["--yes"], &[command(lines), command("touch c.txt; ls")]);
    assert_eq!(text(&approved[0]), "hello you\ntool\nblue []\n1", "{approved:?}");
    assert!(workspace.path("pwned").exists(), "a person said yes to what the shell calls ls");
    assert_eq!(fs::read_to_string(workspace.home().join("started")).unwrap(), "x\n");
    fs::write(workspace.home().join(".gripper/settings.json"), "{\"bash\": {\"startFiles\": false}}")
        .unwrap();
    assert_eq!(text(&bash(&workspace, &["--yes"], "echo [$COLOUR]")), "[]");
}

#[test]
fn start_files_that_hang_are_gone_without() {
    let workspace = Workspace::new();
    fs::write(workspace.home().join(".bash_profile"), "export COLOUR=blue\nsleep 600\n").unwrap();
    let command = ("Bash", json!({"command": "echo [$COLOUR]"}));
    let results = run(&workspace, &["--yes"], &[command.clone(), command]);
    assert!(text(&results[0]).starts_with("[]\n(the start files of your shell are not used"), "{results:?}");
    assert_eq!(text(&results[1]), "[]");
}

#[test]
fn a_picture_that_is_printed_is_a_picture() {
    let workspace = Workspace::new();
    let result = bash(&workspace, &["--yes"], "printf 'data:image/png;base64,iVBORw0KGgo='");
    assert_eq!(result["content"][0]["type"], "image", "{result}");
    assert_eq!(result["content"][0]["source"]["media_type"], "image/png");
    assert_eq!(result["structured"]["isImage"], true);
}

#[test]
fn errors_in_the_middle_of_a_long_output_are_shown() {
    let workspace = Workspace::new();
    let lines = "seq 1 60000; echo 'error: here it is'; seq 1 300000";
    let result = bash(&workspace, &["--yes"], lines);
    assert!(text(&result).contains("\nerror: here it is\n"), "{}", text(&result).len());
    assert!(text(&result).chars().count() < 31_000);
}

#[rstest]
#[case::block("git commit -m x", true)]
#[case::cancel("git frobnicate", false)]
fn an_interrupt_waits_for_what_must_not_be_cut(#[case] command: &str, #[case] finished: bool) {
    let workspace = Workspace::new();
    let git = workspace.write("bin/git", "#!/bin/sh\necho x > begun\nsleep 2\necho x > finished\n");
    fs::set_permissions(&git, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", workspace.path("bin").display(), std::env::var("PATH").unwrap());
    let input = json!({ "command": command }).to_string();
    let mut child = gripper(&workspace)
        .args(["tool", "Bash", &input, "--yes"])
        .env("PATH", path)
        .into_command()
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    while !workspace.path("begun").exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it began");
        std::thread::sleep(Duration::from_millis(10));
    }
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    child.wait().unwrap();
    assert_eq!(workspace.path("finished").exists(), finished);
}
