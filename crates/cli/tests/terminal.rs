//! The real binary on a pseudo-terminal, with somebody at it who waits for the text and then types.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{
    io::{Read, Write},
    process::Child,
    sync::mpsc::{Receiver, RecvTimeoutError, channel},
    time::Duration,
};

use gripper_testkit::Workspace;
use pty_process::blocking::{Command, Pty, open};
use serde_json::{Value, json};

/// Far more than any step takes; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(60);
const PROMPT: &str = "your choice: ";

/// A terminal with a program in it.
struct Session {
    pty: Pty,
    child: Child,
    output: Receiver<Vec<u8>>,
    seen: String,
    /// How far the text was waited for.
    read: usize,
}

impl Session {
    fn start(workspace: &Workspace, args: &[&str]) -> Self {
        let (pty, pts) = open().unwrap();
        pty.resize(pty_process::Size::new(40, 200)).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_gripper"))
            .args(args)
            .current_dir(workspace.project())
            .env_clear()
            .env("HOME", workspace.home())
            .env("NO_COLOR", "1")
            .env("TERM", "xterm")
            .spawn(pts)
            .unwrap();
        let mut reader = std::fs::File::from(std::os::fd::AsFd::as_fd(&pty).try_clone_to_owned().unwrap());
        let (sender, output) = channel();
        // Ends with an error when the program is gone and its last words are read.
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(count) = reader.read(&mut bytes) {
                if count == 0 || sender.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self { pty, child, output, seen: String::new(), read: 0 }
    }

    /// Waits for a text after the last one that was waited for.
    fn wait_for(&mut self, text: &str) -> &mut Self {
        loop {
            if let Some(at) = self.seen[self.read..].find(text) {
                self.read += at + text.len();
                return self;
            }
            match self.output.recv_timeout(PATIENCE) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => {
                    self.child.kill().ok();
                    panic!("{text:?} never came after byte {} of:\n{}", self.read, self.seen);
                }
            }
        }
    }

    fn type_in(&mut self, keys: &str) -> &mut Self {
        self.pty.write_all(keys.as_bytes()).unwrap();
        self
    }

    /// Waits for the end: the exit code and everything that was shown.
    fn end(mut self) -> (i32, String) {
        loop {
            match self.output.recv_timeout(PATIENCE) {
                Ok(bytes) => self.seen.push_str(&String::from_utf8_lossy(&bytes)),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {
                    self.child.kill().ok();
                    panic!("it did not end after:\n{}", self.seen);
                }
            }
        }
        (self.child.wait().unwrap().code().unwrap_or(-1), self.seen)
    }
}

/// A workspace with a file outside the project, and the input that reads it.
fn outside() -> (Workspace, String) {
    let workspace = Workspace::new();
    let path = workspace.root().join("outside.txt");
    std::fs::write(&path, "beyond the fence\n").unwrap();
    (workspace, json!({ "file_path": path }).to_string())
}

fn tool(keys: &[&str]) -> (i32, String) {
    let (workspace, input) = outside();
    let mut session = Session::start(&workspace, &["tool", "Read", &input]);
    for keys in keys {
        session.wait_for(PROMPT).type_in(keys);
    }
    session.end()
}

#[test]
fn allow_once_and_what_the_person_reads() {
    let (code, seen) = tool(&["\r", "maybe\r", "1\r"]);
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("beyond the fence"), "{seen}");
    for part in [
        "? Read: ",
        "why    ",
        "outside the working directories",
        "2 allow for this session: Read(/",
        "(reading this file, whatever the tool)",
    ] {
        assert!(seen.contains(part), "{part:?} is missing in {seen}");
    }
    assert_eq!(seen.matches("type 1, 2, 3, 4, 5 or e").count(), 2, "nothing is preselected: {seen}");
}

#[test]
fn no_answer_is_a_no() {
    for keys in ["4\r", "\u{4}"] {
        let (code, seen) = tool(&[keys]);
        assert_eq!(code, 3, "{seen}");
        assert!(seen.contains("error: denied: not permitted") && !seen.contains("beyond"), "{seen}");
    }
}

#[test]
fn an_interrupt_stops_the_call_that_is_asked_about() {
    let (code, seen) = tool(&["\u{3}"]);
    assert_eq!(code, 130, "{seen}");
    assert!(!seen.contains("beyond"), "{seen}");
}

#[test]
fn a_rule_that_cannot_be_saved_still_holds() {
    let (workspace, input) = outside();
    let broken = workspace.write(".gripper/settings.local.json", "{\"permissions\": ");
    let mut session = Session::start(&workspace, &["tool", "Read", &input]);
    session.wait_for(PROMPT).type_in("3\r");
    session.wait_for("  1 Read(/").wait_for("the rule: ").type_in("1\r");
    session.wait_for("where to save it").type_in("1\r");
    let (code, seen) = session.end();
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("holds for this session, but was not saved: "), "{seen}");
    assert_eq!(std::fs::read_to_string(broken).unwrap(), "{\"permissions\": ", "the file is not touched");
}

/// Plays the call several times in one turn; the results go to the terminal as JSON Lines.
fn run(copies: usize, talk: impl FnOnce(&mut Session)) -> (Vec<Value>, String) {
    let (workspace, input) = outside();
    let line = format!("{{\"name\": \"Read\", \"input\": {input}}}\n");
    let file = workspace.write("calls.jsonl", line.repeat(copies));
    let mut session = Session::start(&workspace, &["run", "--json", file.to_str().unwrap()]);
    talk(&mut session);
    let (code, seen) = session.end();
    assert_eq!(code, 0, "{seen}");
    let results = seen
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line.trim()).ok())
        .filter(|line| line["event"] == "result")
        .collect();
    (results, seen)
}

#[test]
fn feedback_reaches_the_model() {
    let (results, seen) = run(1, |session| {
        session.wait_for(PROMPT).type_in("5\r");
        session.wait_for("what the model should know").type_in("look inside instead\r");
    });
    let text = results[0]["content"][0]["text"].as_str().unwrap();
    assert!(text.ends_with("(look inside instead)"), "{seen}");
    assert_eq!(results[0]["error_code"], "denied");
}

#[test]
fn one_answer_for_the_session_settles_all() {
    let (results, seen) = run(4, |session| {
        session.wait_for(PROMPT).type_in("2\r");
    });
    assert_eq!(results.len(), 4, "{seen}");
    assert!(results.iter().all(|result| result["is_error"] == false), "{seen}");
}

#[test]
fn a_counted_answer_is_used_up() {
    let (results, seen) = run(3, |session| {
        session.wait_for(PROMPT).type_in("2 1x\r");
        session.wait_for(PROMPT);
        session.type_in("4\r");
    });
    let failed = results.iter().filter(|result| result["is_error"] == true).count();
    assert_eq!((results.len(), failed), (3, 1), "{seen}");
}

#[test]
fn live_rows_make_room_for_a_question() {
    let (workspace, input) = outside();
    let calls = format!(
        "{}\n{{\"id\": \"r1\", \"name\": \"Read\", \"input\": {input}}}\n",
        json!({"id": "s1", "name": "TodoWrite", "input": {"todos": []}})
    );
    let file = workspace.write("calls.jsonl", calls);
    let mut session = Session::start(&workspace, &["run", file.to_str().unwrap()]);
    session.wait_for(PROMPT).type_in("1\r");
    let (code, seen) = session.end();
    assert_eq!(code, 0, "{seen}");
    let asked = seen.find("? Read: ").unwrap();
    let answered = seen.find(PROMPT).unwrap();
    assert!(!seen[asked..answered].contains("\u{1b}["), "nothing is drawn into the question: {seen:?}");
    assert!(seen.contains("beyond the fence") && seen.contains("all well"), "{seen}");
}

#[test]
fn an_edit_in_place_is_shown_before_it_is_made() {
    let workspace = Workspace::new();
    let file = workspace.write("a.txt", "one\nsame\n");
    let input = json!({"command": "sed -i s/one/two/ a.txt"}).to_string();
    let mut session = Session::start(&workspace, &["tool", "Bash", &input]);
    session.wait_for("-one").wait_for("+two").wait_for(PROMPT);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\nsame\n", "nothing happens before the answer");
    // What somebody else writes meanwhile is not lost.
    std::fs::write(&file, "one\nother\n").unwrap();
    session.type_in("1\r");
    let (code, seen) = session.end();
    assert_eq!(code, 0, "{seen}");
    assert!(seen.contains("the edit was made anew"), "{seen}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "two\nother\n");
}
