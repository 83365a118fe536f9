use std::{
    fs,
    os::unix::fs::symlink,
    sync::Arc,
    time::{Duration, SystemTime},
};

use gripper_runtime::{
    CallRequest, CallResult, Toolbox, erase,
    permissions::{Policy, Rule, RuleList, Source},
};
use gripper_testkit::{Workspace, run_all};
use rstest::rstest;
use serde_json::{Value, json};

use super::{Glob, Settings};

async fn glob_with(policy: Policy, settings: Settings, input: Value) -> Arc<CallResult> {
    let mut registry = gripper_runtime::Registry::default();
    registry.register(erase(Glob::new(settings))).unwrap();
    let toolbox = Toolbox::builder(registry, policy).build();
    run_all(&toolbox, [CallRequest::new("c1", "Glob", input)]).await.remove(0)
}

async fn names(workspace: &Workspace, settings: Settings, input: Value) -> Vec<String> {
    let result = glob_with(Policy::new(workspace.project()), settings, input).await;
    let structured = result.structured.as_ref().unwrap_or_else(|| panic!("{result}"));
    serde_json::from_value(structured["filenames"].clone()).unwrap_or_else(|_| panic!("{result}"))
}

#[tokio::test]
async fn the_newest_are_kept_and_the_rest_counted() {
    let workspace = Workspace::new();
    for number in 0..2_000_u64 {
        let file = workspace.write(&format!("d{}/f{number:04}.txt", number % 9), "");
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs((number * 7) % 1_999);
        fs::File::options().write(true).open(file).unwrap().set_modified(time).unwrap();
    }
    let result = glob_with(
        Policy::new(workspace.project()),
        Settings { most: 3, ..Settings::default() },
        json!({"pattern": "**/*.txt"}),
    )
    .await;
    let structured = result.structured.as_ref().unwrap();
    // 7 · 571 = 1998 modulo 1999, and so on; the start of time comes twice, but last.
    assert_eq!(structured["filenames"], json!(["d4/f0571.txt", "d8/f1142.txt", "d3/f1713.txt"]));
    assert_eq!(structured["totalMatches"], 2_000);
    assert_eq!(structured["numFiles"], 3);
    assert_eq!(structured["truncated"], true);
    assert!(result.to_string().contains("the newest 3 of 2000 files"), "{result}");
}

#[rstest]
#[case::top_only("*.rs", &["a.rs"])]
#[case::all_below("**/*.rs", &["a.rs", "src/b.rs", "src/deep/c.rs"])]
#[case::one_level("*/*.rs", &["src/b.rs"])]
#[case::everything_below("src/**", &["src/b.rs", "src/deep/c.rs"])]
#[case::alternatives_with_folders("{src/deep,.}/*.rs", &["src/deep/c.rs"])]
#[case::question_mark("src/?.rs", &["src/b.rs"])]
#[case::negated_class("[!b].rs", &["a.rs"])]
#[case::dots("./src/../src/./deep/*.rs", &["src/deep/c.rs"])]
#[case::literal("src/b.rs", &["src/b.rs"])]
#[case::escaped(r"odd\[1\].md", &["odd[1].md"])]
#[case::missing_folder("nowhere/*.rs", &[])]
#[tokio::test]
async fn patterns(#[case] pattern: &str, #[case] expected: &[&str]) {
    let workspace = Workspace::new();
    for name in ["a.rs", "src/b.rs", "src/deep/c.rs", "odd[1].md", "odd1.md"] {
        workspace.write(name, "");
    }
    for pattern in [pattern.to_owned(), workspace.path(pattern).to_string_lossy().into_owned()] {
        let mut found = names(&workspace, Settings::default(), json!({"pattern": pattern})).await;
        found.sort();
        assert_eq!(found, expected, "{pattern}");
    }
}

#[tokio::test]
async fn links_count_as_what_they_lead_to() {
    let workspace = Workspace::new();
    workspace.write("private/a.txt", "");
    workspace.write("b.txt", "");
    symlink(workspace.path("b.txt"), workspace.path("good.txt")).unwrap();
    symlink(workspace.path("private/a.txt"), workspace.path("leads.txt")).unwrap();
    symlink(workspace.path("private"), workspace.path("folder.txt")).unwrap();
    symlink("nowhere", workspace.path("broken.txt")).unwrap();
    let mut policy = Policy::new(workspace.project());
    policy.rules.add(RuleList::Deny, Rule::parse("Read(private/**)").unwrap(), Source::command_line());
    let result = glob_with(policy.clone(), Settings::default(), json!({"pattern": "**/*.txt"})).await;
    let mut lines: Vec<String> = result.to_string().lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["b.txt", "good.txt"]);
    let denied = glob_with(policy, Settings::default(), json!({"pattern": "private/*"})).await;
    assert_eq!(denied.error_code.unwrap().name(), "denied", "{denied}");
}

#[tokio::test]
async fn ignore_files_count_if_a_person_says_so() {
    let workspace = Workspace::new();
    workspace.write(".ignore", "skipped\n");
    workspace.write("skipped", "");
    workspace.write("kept", "");
    let input = json!({"pattern": "*e*"});
    assert_eq!(names(&workspace, Settings::default(), input.clone()).await.len(), 3);
    let respect = Settings { respect_ignore: true, ..Settings::default() };
    let mut kept = names(&workspace, respect, input).await;
    kept.sort();
    assert_eq!(kept, [".ignore", "kept"]);
}

#[tokio::test]
async fn out_of_time_says_where_to_go_on() {
    let workspace = Workspace::new();
    workspace.write("src/a.rs", "");
    workspace.write("web/b.rs", "");
    let late = Settings { budget: Duration::ZERO, ..Settings::default() };
    let result = glob_with(Policy::new(workspace.project()), late, json!({"pattern": "**/*.rs"})).await;
    let structured = result.structured.as_ref().unwrap();
    assert_eq!(structured["notReached"], json!(["src", "web"]));
    assert_eq!(structured["truncated"], true);
    assert!(result.to_string().contains("time ran out"), "{result}");
}

#[rstest]
#[case::dots_behind_wildcards(json!({"pattern": "*/../x"}), "may only stand before")]
#[case::unclosed(json!({"pattern": "[a"}), "the pattern is not valid")]
#[case::nul(json!({"pattern": "a\u{0}"}), "NUL")]
#[case::missing_path(json!({"pattern": "*", "path": "/project/nowhere"}), "")]
#[tokio::test]
async fn bad_input_is_one_clear_error(#[case] input: Value, #[case] message: &str) {
    let result = glob_with(Policy::new(Workspace::new().project()), Settings::default(), input).await;
    assert!(result.is_error && result.to_string().contains(message), "{result}");
}
