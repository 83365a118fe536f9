use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use proptest::prelude::{ProptestConfig, any, prop, prop_assert, prop_assert_eq, proptest};
use serde_json::json;

use super::{
    Entry, FILE, Header, Origin, Recovered, SessionError, Transcript, check, delete, find, fork, latest,
    list, read, resume,
};
use crate::{
    message::{Content, Message, Role},
    model::{StopReason, Usage},
};

fn prompt(text: &str) -> Entry {
    Entry::User { message: Message::user(text), origin: Origin::Prompt }
}

fn block(answer: &str, content: Content) -> Entry {
    Entry::Block { answer: answer.to_owned(), content, broken: None }
}

fn call(answer: &str, id: &str) -> Entry {
    block(answer, Content::ToolUse { id: id.to_owned(), name: "Read".to_owned(), input: json!({}).into() })
}

fn result(id: &str, text: &str) -> Entry {
    let content = vec![Content::text(text)];
    Entry::Result { content: Content::ToolResult { tool_use_id: id.to_owned(), content, is_error: false } }
}

fn end(answer: &str) -> Entry {
    let usage = Usage { input_tokens: 10, ..Usage::default() };
    let (answer, model) = (answer.to_owned(), "m".to_owned());
    Entry::AnswerEnd { answer, model, stop_reason: StopReason::EndTurn, usage, cost: Some(0.5) }
}

fn write(root: &Path, id: &str, entries: &[Entry]) -> PathBuf {
    let mut transcript = Transcript::create(root, &Header::new(id, Path::new("/project"), "m")).unwrap();
    entries.iter().for_each(|entry| transcript.append(entry).unwrap());
    transcript.path().to_owned()
}

fn recovered(root: &Path, id: &str) -> Recovered {
    let (_, recovered) = resume(root, id).unwrap();
    assert_eq!(check(&recovered.history), Ok(()));
    recovered
}

/// The conversation in one line per message: who, and each block in short.
fn told(history: &[Arc<Message>]) -> Vec<String> {
    let short = |block: &Content| match block {
        Content::Text { text } => text.clone(),
        Content::ToolUse { id, .. } => format!("call {id}"),
        Content::ToolResult { tool_use_id, is_error, .. } => {
            format!("{} {tool_use_id}", if *is_error { "failed" } else { "result" })
        }
        other => format!("{other:?}"),
    };
    let line = |message: &Arc<Message>| {
        let who = if message.role == Role::User { 'u' } else { 'a' };
        format!("{who}: {}", message.content.iter().map(short).collect::<Vec<_>>().join(", "))
    };
    history.iter().map(line).collect()
}

fn text(text: &str) -> Content {
    Content::text(text)
}

#[test]
fn a_conversation_comes_back_in_order_and_paired() {
    let folder = tempfile::tempdir().unwrap();
    let thought = Content::Thinking { thinking: "hm".to_owned(), signature: String::new() };
    let entries = [
        prompt("first"),
        prompt("and this"),
        block("a", text("lost")),
        call("a", "gone"),
        Entry::Discarded { answer: "a".to_owned() },
        result("gone", "late"),
        block("b", text("look")),
        call("b", "c1"),
        call("b", "c2"),
        result("c2", "two"),
        call("b", "c3"),
        result("c1", "one"),
        end("b"),
        result("nobody", "?"),
        Entry::User { message: Message::user("by the way"), origin: Origin::Context },
        block("c", text(" ")),
        block("c", thought),
    ];
    write(folder.path(), "s", &entries);
    let first = recovered(folder.path(), "s");
    let expected = [
        "u: first, and this",
        "a: look, call c1, call c2, call c3",
        "u: result c1, result c2, failed c3, by the way",
    ];
    assert_eq!(told(&first.history), expected);
    assert_eq!(first.interrupted, [("c3".to_owned(), "Read".to_owned())]);
    assert_eq!((first.turns, first.cost, first.usage.input_tokens), (1, Some(0.5), 10));
    let again = recovered(folder.path(), "s");
    assert_eq!(again, Recovered { interrupted: Vec::new(), ..first });
}

#[test]
fn compaction_replaces_what_was_before() {
    let folder = tempfile::tempdir().unwrap();
    let answer = Message { role: Role::Assistant, content: vec![text("known")] };
    let messages = vec![Arc::new(Message::user("summary")), Arc::new(answer)];
    let compacted = Entry::Compacted { summary: true, messages };
    write(
        folder.path(),
        "s",
        &[prompt("old"), call("a", "c"), compacted, result("c", "late"), prompt("go on")],
    );
    assert_eq!(told(&recovered(folder.path(), "s").history), ["u: summary", "a: known", "u: go on"]);
}

#[test]
fn damage_costs_no_more_than_the_damaged_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "s", &[prompt("one"), prompt("two"), prompt("three")]);
    let whole = fs::read_to_string(&path).unwrap();
    let newer = r#"{"type":"hologram","at":"2030-01-01T00:00:00Z","depth":3}"#;
    fs::write(&path, format!("{newer}\n{}\n\0\0\0\0", whole.replacen("two", "t\"wo", 1))).unwrap();
    let (mut transcript, first) = resume(folder.path(), "s").unwrap();
    assert_eq!(told(&first.history), ["u: one, three"]);
    assert_eq!(first.complaints.len(), 2, "{:?}", first.complaints);
    transcript.append(&prompt("four")).unwrap();
    drop(transcript);
    assert_eq!(told(&recovered(folder.path(), "s").history), ["u: one, three, four"]);
    fs::write(&path, "").unwrap();
    let empty = recovered(folder.path(), "s");
    assert_eq!((empty.header.id.as_str(), empty.history.len(), empty.complaints.len()), ("s", 0, 1));
}

#[test]
fn one_process_at_a_time_and_a_fork_goes_its_own_way() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "aa1", &[prompt("hello"), call("a", "c")]);
    let (mut held, _) = resume(folder.path(), "aa1").unwrap();
    for refused in [resume(folder.path(), "aa").err(), delete(folder.path(), "aa1").err()] {
        assert!(refused.unwrap().to_string().contains("the session aa1 is open in another process"));
    }
    let (copy, forked) = fork(folder.path(), "aa1").unwrap();
    held.append(&prompt("not in the copy")).unwrap();
    let parent = forked.header.parent.clone().unwrap();
    assert_eq!((parent.id.as_str(), parent.entries, copy.id() != "aa1"), ("aa1", 4, true));
    let id = copy.id().to_owned();
    drop((copy, held));
    assert_eq!(told(&recovered(folder.path(), &id).history), ["u: hello", "a: call c", "u: failed c"]);
    write(folder.path(), "aa2", &[]);
    assert!(matches!(find(folder.path(), "aa"), Err(SessionError::Ambiguous { .. })));
    for wrong in ["", "..", "../aa1", "b"] {
        assert!(matches!(find(folder.path(), wrong), Err(SessionError::NotFound(_))), "{wrong}");
    }
    assert_eq!(delete(folder.path(), "aa2").unwrap(), "aa2");
    assert!(!folder.path().join("aa2").exists());
    assert!(Transcript::create(folder.path(), &Header::new("../x", Path::new("/"), "m")).is_err());
}

#[test]
fn the_list_reads_only_the_ends() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let now = SystemTime::now();
    for (number, id) in ["old", "new", "other"].into_iter().enumerate() {
        let long = text(&"x".repeat(200_000));
        let path =
            write(root, id, &[prompt(&format!("do\n{id} {}", "y".repeat(99))), call("a", "c"), end("a")]);
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        // A damaged middle shows whether anybody reads it.
        file.write_all(&[b'z'; 2_000_000]).unwrap();
        file.write_all(b"\n").unwrap();
        drop(file);
        let (mut more, _) = resume(root, id).unwrap();
        more.append(&block("b", long)).unwrap();
        more.append(&end("b")).unwrap();
        drop(more);
        let file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.set_modified(now - Duration::from_secs(100 - number as u64)).unwrap();
    }
    let other = fs::read_to_string(root.join("other").join(FILE)).unwrap();
    fs::write(root.join("other").join(FILE), other.replacen("/project", "/elsewhere", 1)).unwrap();
    fs::create_dir_all(root.join("no transcript/results")).unwrap();
    let found = list(root);
    assert_eq!(found.iter().map(|one| one.header.id.as_str()).collect::<Vec<_>>(), ["other", "new", "old"]);
    let new = &found[1];
    assert_eq!((new.totals.turns, new.totals.calls, new.totals.cost), (2, 1, Some(1.0)));
    assert!(new.title.starts_with("do new y") && new.title.ends_with("y…"), "{}", new.title);
    assert_eq!(latest(root, Path::new("/project")).as_deref(), Some("new"));
    assert_eq!(latest(root, Path::new("/nowhere")), None);
    assert_eq!(read(root, "new").unwrap().complaints.len(), 1);
}

/// A transcript as a driver could write it, whatever the numbers are.
fn scenario(steps: &[u8]) -> Vec<Entry> {
    let (mut entries, mut answer, mut due) = (vec![prompt("begin")], 0, Vec::new());
    let mut ids = 0;
    for step in steps {
        let name = format!("a{answer}");
        match step % 9 {
            0..=2 => {
                ids += 1;
                due.push(format!("c{ids}"));
                entries.push(call(&name, &format!("c{ids}")));
            }
            3 => entries.push(block(&name, text("words"))),
            4 => {
                entries.push(block(&name, Content::Thinking { thinking: "hm".into(), signature: "s".into() }))
            }
            5 if !due.is_empty() => {
                let id = due.remove(*step as usize % due.len());
                entries.push(result(&id, "out"));
            }
            6 if due.is_empty() => {
                entries.push(Entry::Discarded { answer: name });
                answer += 1;
            }
            7 if due.is_empty() => {
                let messages = vec![Arc::new(Message::user("in short"))];
                entries.extend([end(&name), Entry::Compacted { summary: true, messages }]);
                answer += 1;
            }
            _ => {
                entries.push(end(&name));
                entries.extend(due.drain(..).map(|id| result(&id, "out")));
                entries.push(prompt("more"));
                answer += 1;
            }
        }
    }
    entries
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    #[test]
    fn whatever_is_left_of_a_transcript_is_a_conversation(
        steps in prop::collection::vec(any::<u8>(), 0..40),
        keep in prop::collection::vec(prop::bool::weighted(0.8), 60),
        cut in 0.0..=1.0,
        deleted: bool,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let path = write(folder.path(), "s", &scenario(&steps));
        let mut bytes = fs::read(&path).unwrap();
        if deleted {
            let lines = bytes.split_inclusive(|byte| *byte == b'\n').zip(keep.iter().cycle());
            bytes = lines.filter(|(_, keep)| **keep).flat_map(|(line, _)| line.to_vec()).collect();
        }
        bytes.truncate((bytes.len() as f64 * cut) as usize);
        fs::write(&path, &bytes).unwrap();
        let (transcript, first) = resume(folder.path(), "s").unwrap();
        drop(transcript);
        prop_assert_eq!(check(&first.history), Ok(()));
        let (_, again) = resume(folder.path(), "s").unwrap();
        prop_assert!(again.interrupted.is_empty());
        prop_assert_eq!(again, Recovered { interrupted: Vec::new(), ..first });
    }
}
