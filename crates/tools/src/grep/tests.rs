use std::{
    fs,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant, SystemTime},
};

use gripper_runtime::{
    CallRequest, CallResult, Located, Toolbox, erase,
    permissions::{Behavior, Policy, Rule, RuleList, Source},
};
use gripper_testkit::{Workspace, run_all};
use rstest::rstest;
use serde_json::{Value, json};

use super::{Grep, Query, Task, Wanted, search};
use crate::walk::{self, Halt, Limit, Root};

async fn grep_with(policy: Policy, tool: Grep, input: Value) -> Arc<CallResult> {
    let mut registry = gripper_runtime::Registry::default();
    registry.register(erase(tool)).unwrap();
    let toolbox = Toolbox::builder(registry, policy).build();
    run_all(&toolbox, [CallRequest::new("c1", "Grep", input)]).await.remove(0)
}

async fn grep(workspace: &Workspace, input: Value) -> Arc<CallResult> {
    grep_with(Policy::new(workspace.project()), Grep::default(), input).await
}

fn with_rules(workspace: &Workspace, rules: &[(RuleList, &str)]) -> Policy {
    let mut policy = Policy::new(workspace.project());
    for (list, rule) in rules {
        policy.rules.add(*list, Rule::parse(rule).unwrap(), Source::command_line());
    }
    policy
}

fn structured(result: &CallResult) -> &Value {
    result.structured.as_ref().unwrap()
}

/// Changed so many seconds after the start of time.
fn date(file: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    fs::File::options().write(true).open(file).unwrap().set_modified(time).unwrap();
}

#[tokio::test]
async fn files_come_newest_first_and_then_by_name() {
    let workspace = Workspace::new();
    for (name, seconds) in [("b", 5), ("old", 1), ("a", 5), ("new", 9)] {
        date(&workspace.write(name, "x\n"), seconds);
    }
    let all = grep(&workspace, json!({"pattern": "x"})).await;
    assert_eq!(structured(&all)["filenames"], json!(["new", "a", "b", "old"]));
    assert_eq!(structured(&all)["numFiles"], 4);
    let page = grep(&workspace, json!({"pattern": "x", "head_limit": 2, "offset": 1})).await;
    assert_eq!(structured(&page)["filenames"], json!(["a", "b"]));
    assert_eq!(structured(&page)["appliedLimit"], 2);
    assert_eq!(structured(&page)["appliedOffset"], 1);
    assert_eq!(structured(&page)["nextOffset"], 3);
}

/// Whatever the size of a page, the pages together are the whole, in order, without a gap.
#[rstest]
#[case::content("content")]
#[case::count("count")]
#[case::files("files_with_matches")]
#[tokio::test]
async fn pages_join_up(#[case] mode: &str) {
    let workspace = Workspace::new();
    for file in 0..40 {
        let text: String = (0..file % 7).map(|line| format!("match {line}\nother\n\n\n")).collect();
        date(&workspace.write(&format!("d{}/f{file}", file % 3), text), 1);
    }
    let call = |offset: usize, limit: usize| {
        let input =
            json!({"pattern": "match", "output_mode": mode, "-A": 1, "offset": offset, "head_limit": limit});
        let workspace = &workspace;
        async move {
            let result = grep(workspace, input).await;
            let text = structured(&result)["content"].as_str().map(str::to_owned);
            let names = || serde_json::from_value(structured(&result)["filenames"].clone()).unwrap();
            text.map_or_else(names, |text| text.lines().map(str::to_owned).collect::<Vec<String>>())
        }
    };
    let whole = call(0, 0).await;
    assert!(whole.len() >= 34, "{whole:?}");
    for size in [1, 7, 30] {
        let mut joined = Vec::new();
        while joined.len() < whole.len() {
            let page = call(joined.len(), size).await;
            assert!(!page.is_empty() && page.len() <= size);
            joined.extend(page);
        }
        assert_eq!(joined, whole, "pages of {size}");
    }
}

#[tokio::test]
async fn results_are_bounded_and_say_where_to_go_on() {
    let workspace = Workspace::new();
    // More than is held in hand for a file that waits for its turn.
    workspace.write("a.txt", "needle and some more text to fill the line\n".repeat(9_000));
    workspace.write("b.txt", "needle\n");
    let result = grep(&workspace, json!({"pattern": "needle", "output_mode": "content"})).await;
    let text = result.to_string();
    assert!(text.chars().count() < 20_200, "{}", text.chars().count());
    let next = structured(&result)["nextOffset"].as_u64().unwrap();
    assert!(text.ends_with(&format!("begin at offset {next})")), "{}", &text[text.len() - 100..]);
    let far = json!({"pattern": "needle", "output_mode": "content", "offset": 8_999});
    let rest = grep(&workspace, far).await;
    let last = "a.txt:9000:needle and some more text to fill the line\nb.txt:1:needle\n(results 9000 to 9001 of 9001)";
    assert_eq!(rest.to_string(), last);
    let beyond = grep(&workspace, json!({"pattern": "needle", "offset": 7})).await;
    assert_eq!(beyond.to_string(), "(nothing at offset 7: there are 2 results)");
}

#[tokio::test]
async fn what_may_not_be_read_never_appears() {
    let workspace = Workspace::new();
    for name in ["open.txt", "private/a.txt", "asked.txt", "named.pem", "other.pem"] {
        workspace.write(name, "needle\n");
    }
    symlink(workspace.path("private"), workspace.path("link")).unwrap();
    symlink(workspace.path("private/a.txt"), workspace.path("also")).unwrap();
    let rules = [
        (RuleList::Deny, "Read(private/**)"),
        (RuleList::Ask, "Read(asked.txt)"),
        (RuleList::Allow, "Read(named.pem)"),
    ];
    let policy = with_rules(&workspace, &rules);
    for mode in ["content", "count", "files_with_matches"] {
        let input = json!({"pattern": "needle", "output_mode": mode});
        let result = grep_with(policy.clone(), Grep::default(), input).await;
        let files = structured(&result)["filenames"].as_array().unwrap().len();
        let text = result.to_string();
        assert!(files == 2 && text.contains("open.txt") && text.contains("named.pem"), "{text}");
        assert!(!text.contains("private") && !text.contains("link") && !text.contains("also"), "{text}");
        assert!(text.contains("1 file left out: a rule forbids"), "{text}");
        assert!(text.contains("2 files left out that may hold secrets"), "{text}");
    }
    // Whether a file that may not be read would match is nobody's business either.
    let without = grep_with(policy.clone(), Grep::default(), json!({"pattern": "not there"})).await;
    assert!(without.to_string().contains("1 file left out: a rule forbids"), "{without}");
    for path in ["private", "link", "also", "private/../private/a.txt"] {
        let input = json!({"pattern": "needle", "path": workspace.path(path)});
        let result = grep_with(policy.clone(), Grep::default(), input).await;
        assert_eq!(result.error_code.unwrap().name(), "denied", "{path}: {result}");
    }
}

#[tokio::test]
async fn names_are_kept_on_one_line() {
    let workspace = Workspace::new();
    workspace.write("two\nlines", "x\n");
    let odd = workspace.project().join(std::ffi::OsStr::from_bytes(b"odd\xff"));
    fs::write(odd, "x\n").unwrap();
    let result = grep(&workspace, json!({"pattern": "x", "output_mode": "content"})).await;
    assert_eq!(result.to_string(), "odd\u{fffd}:1:x\ntwo\\nlines:1:x\n(2 matches in 2 files)");
}

#[tokio::test]
async fn encodings_are_sniffed_and_binary_files_skipped() {
    let workspace = Workspace::new();
    let wide: Vec<u8> = "\u{feff}caf\u{e9} needle\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    workspace.write("wide.txt", wide);
    workspace.write("crlf.txt", "a needle\r\n");
    workspace.write("early.bin", "needle\n\0\n");
    workspace.write("late.bin", ["needle\n".repeat(20_000).as_bytes(), b"\0"].concat());
    let result = grep(&workspace, json!({"pattern": "needle", "output_mode": "count"})).await;
    assert_eq!(result.to_string(), "crlf.txt:1\nwide.txt:1\n(2 matches in 2 files)");
    let text = json!({"pattern": "needle", "output_mode": "content", "glob": "*.txt"});
    let shown = "crlf.txt:1:a needle\nwide.txt:1:caf\u{e9} needle\n(2 matches in 2 files)";
    assert_eq!(grep(&workspace, text).await.to_string(), shown);
    let named = grep(&workspace, json!({"pattern": "needle", "path": workspace.path("early.bin")})).await;
    assert_eq!(named.to_string(), "(no matches)\n(the file is binary, so it was not searched)");
}

#[tokio::test]
async fn odd_places_are_one_clear_error() {
    let workspace = Workspace::new();
    let fifo = workspace.path("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    let pipe = grep(&workspace, json!({"pattern": "x", "path": fifo})).await;
    assert_eq!(pipe.error_code.unwrap().name(), "unsupported", "{pipe}");
    // On the way it is passed over.
    assert_eq!(grep(&workspace, json!({"pattern": "x"})).await.to_string(), "(no matches)");
    symlink("loop", workspace.path("loop")).unwrap();
    let looped = grep(&workspace, json!({"pattern": "x", "path": workspace.path("loop")})).await;
    assert_eq!(looped.error_code.unwrap().name(), "io", "{looped}");
    let line = grep(&workspace, json!({"pattern": "a\\nb"})).await;
    assert!(line.to_string().contains("set multiline to true"), "{line}");
    let glob = grep(&workspace, json!({"pattern": "x", "glob": "*.{rs"})).await;
    assert!(glob.to_string().starts_with("glob is not valid"), "{glob}");
}

#[tokio::test]
async fn out_of_time_is_a_result() {
    let workspace = Workspace::new();
    workspace.write("a", "x\n");
    for mode in ["content", "files_with_matches"] {
        let input = json!({"pattern": "x", "output_mode": mode});
        let tool = Grep { budget: Duration::ZERO };
        let result = grep_with(Policy::new(workspace.project()), tool, input).await;
        assert!(!result.is_error && result.to_string().starts_with("(time ran out after 0 s"), "{result}");
        assert_eq!(structured(&result)["nextOffset"], 0);
    }
}

/// A file that was begun is not read to its end, however large it is.
#[test]
fn cancelling_breaks_a_file_off() {
    let workspace = Workspace::new();
    workspace.write("large", "needle in a line\n".repeat(500_000));
    let (input, begun) = (json!({"pattern": "needle", "output_mode": "count"}), AtomicBool::new(false));
    let query = Query::new(&serde_json::from_value(input).unwrap()).unwrap();
    let at = Located { written: workspace.project(), real: workspace.project() };
    let root = Root { at, cwd: workspace.project() };
    let judge = |_: &Path| {
        begun.store(true, Ordering::Relaxed);
        Behavior::Allow
    };
    let deadline = Instant::now() + Duration::from_secs(100);
    let limit = Limit { cancelled: &|| begun.load(Ordering::Relaxed), deadline };
    let walk = walk::builder(&root, true);
    let task = Task { root: &root, walk: Some(&walk), query: &query, judge: &judge, limit: &limit };
    let found = search(&task, Wanted::ALL);
    assert_eq!((found.halt, found.page.lines), (Some(Halt::Cancelled), 0));
}
