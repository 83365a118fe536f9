//! `gripper sessions` over transcripts that were written by hand.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a failed expectation is how tests fail")]

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use gripper_agent::session::{latest, resume};
use gripper_testkit::{Binary, Ran, Workspace};
use serde_json::json;

const LINES: &str = r#"{"at":"2030-01-02T03:04:06Z","type":"user","message":{"role":"user","content":[{"type":"text","text":"fix \u001b[31mit"}]},"origin":"prompt"}
{"at":"2030-01-02T03:04:07Z","type":"block","answer":"a","content":{"type":"text","text":"I look"}}
{"at":"2030-01-02T03:04:07Z","type":"block","answer":"a","content":{"type":"tool_use","id":"c1","name":"Read","input":{"file_path":"/x"}}}
{"at":"2030-01-02T03:04:08Z","type":"from_the_future","answer":"a"}
{"at":"2030-01-02T03:04:08Z","type":"result","content":{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"1\n2\n3\n4\n5\n6\n7\n8\n9\n10"}]}}
{"at":"2030-01-02T03:04:09Z","type":"answer_end","answer":"a","model":"m","stop_reason":"tool_use","usage":{"input_tokens":1},"cost":0.25,"totals":{"turns":1,"calls":1,"cost":0.25}}
{"at":"2030-01-02T03:04:10Z","type":"us"#;

fn session(workspace: &Workspace, id: &str, cwd: &str, kind: &str) -> PathBuf {
    let folder = workspace.home().join(".gripper/sessions").join(id);
    fs::create_dir_all(folder.join("results")).unwrap();
    let first =
        format!(r#"{{"type":"session","id":"{id}","cwd":"{cwd}","model":"m","started":"2030"{kind}}}"#);
    fs::write(folder.join("transcript.jsonl"), format!("{first}\n{LINES}")).unwrap();
    folder
}

fn run(workspace: &Workspace, args: &[&str]) -> Ran {
    Binary::new(env!("CARGO_BIN_EXE_gripper"), workspace).arg("sessions").args(args).run()
}

fn workspace() -> Workspace {
    let workspace = Workspace::new();
    let project = workspace.project().display().to_string();
    session(&workspace, "abc-1", &project, "");
    session(&workspace, "abd-2", "/elsewhere", "");
    session(&workspace, "sub-3", &project, r#","agent_type":"Explore""#);
    workspace
}

#[test]
fn sessions_of_the_project_are_listed_and_others_when_asked_for() {
    let workspace = workspace();
    let ran = run(&workspace, &[]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert!(
        ran.stdout.starts_with("abc-1 ") && ran.stdout.contains("1 turn, 1 call, $0.25"),
        "{}",
        ran.stdout
    );
    assert!(ran.stdout.contains("  fix \\u{1b}[31mit\n"), "{}", ran.stdout);
    assert_eq!(ran.stdout.lines().count(), 2);
    assert_eq!(run(&workspace, &["list", "--all"]).stdout.lines().count(), 6);
    let listed: serde_json::Value =
        serde_json::from_str(&run(&workspace, &["--all", "--json"]).stdout).unwrap();
    let listed = listed["sessions"].as_array().unwrap();
    let other = listed.iter().find(|one| one["id"] == "abd-2").unwrap();
    assert_eq!((&other["cwd"], &other["calls"]), (&"/elsewhere".into(), &1.into()));
    assert!(other["changed"].is_string());
}

#[test]
fn a_session_is_shown_by_the_beginning_of_its_id() {
    let workspace = workspace();
    let ran = run(&workspace, &["show", "abc"]);
    assert_eq!(ran.code, 0, "{}", ran.transcript());
    for words in [
        "person\nfix \\u{1b}[31mit",
        "model\nI look",
        "Read {\"file_path\":\"/x\"} c1",
        "    8\n    … 2 more lines",
    ] {
        assert!(ran.stdout.contains(words), "{words} is missing in\n{}", ran.stdout);
    }
    assert!(ran.stderr.contains("line 8 of the transcript was skipped: it is torn"), "{}", ran.stderr);
    let lines = run(&workspace, &["show", "abc-1", "--json"]).stdout;
    let types =
        lines.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["type"].clone());
    let expected = ["session", "user", "block", "block", "result", "answer_end"];
    assert_eq!(types.collect::<Vec<_>>(), expected);
    for (id, words) in
        [("ab", "ab is the beginning of 2 ids, abc-1 and abd-2"), ("../x", "there is no session ../x")]
    {
        let ran = run(&workspace, &["show", id]);
        assert!(ran.code == 2 && ran.stderr.contains(words), "{}", ran.transcript());
    }
}

#[test]
fn deleting_takes_all_or_nothing_and_never_what_is_open() {
    let workspace = workspace();
    let root = workspace.home().join(".gripper/sessions");
    assert_eq!(run(&workspace, &["delete", "abc-1", "nobody"]).code, 2);
    assert!(root.join("abc-1").exists());
    let (open, recovered) = resume(&root, "abc-1").unwrap();
    assert_eq!(recovered.history.len(), 3);
    let ran = run(&workspace, &["delete", "abc-1"]);
    assert!(ran.code == 2 && ran.stderr.contains("abc-1 is open in another process"), "{}", ran.transcript());
    drop(open);
    assert_eq!(run(&workspace, &["delete", "abc", "abd"]).stdout, "deleted abc-1\ndeleted abd-2\n");
    assert!(!root.join("abc-1").exists() && !root.join("abd-2").exists() && root.join("sub-3").exists());
}

#[test]
fn a_long_conversation_becomes_a_summary_and_goes_on_from_it() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "hello\n");
    let script = workspace.root().join("script.jsonl");
    let read = json!({"type": "tool_use", "id": "c1", "name": "Read", "input": {"file_path": workspace.path("a.txt")}});
    let again = json!({"type": "tool_use", "id": "c2", "name": "Read", "input": {"file_path": workspace.path("a.txt")}});
    let say = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    let long = json!({"content": [read], "usage": {"input_tokens": 170_000}});
    let answers = [long, say("# Goal: greet"), json!({"content": [again]}), say("done")];
    fs::write(&script, answers.map(|answer| format!("{answer}\n")).concat()).unwrap();
    let model = format!("--model=scripted:{}", script.display());
    let ran = Binary::new(env!("CARGO_BIN_EXE_gripper"), &workspace).args(["-p", "go", &model]).run();
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "done\n"), "{}", ran.transcript());
    let root = workspace.home().join(".gripper/sessions");
    let id = latest(&root, &workspace.project()).unwrap();
    let shown = run(&workspace, &["show", &id]).stdout;
    assert!(shown.contains("made shorter: a summary and the last messages"), "{shown}");
    assert_eq!(
        shown.matches("hello").count(),
        1,
        "the last messages stay, and with them what they showed\n{shown}"
    );
    let (made, recovered) = resume(&root, &id).unwrap();
    assert!(recovered.history[0].text().contains("# Goal: greet"));
    assert_eq!(recovered.history.last().unwrap().text(), "done");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(made.path()), mode(&root.join(&id))), (0o600, 0o700), "it is nobody else's business");
}
