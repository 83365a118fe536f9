use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use gripper_runtime::{
    CallRequest, CallResult, Registry, Toolbox, erase,
    permissions::{Policy, RuleList, Source},
};
use gripper_testkit::run_all;
use rstest::rstest;
use serde_json::{Value, json};

use super::{Bash, Settings, environment, plain, shown};
use crate::{
    bash_output::BashOutput, kill_shell::KillShell, monitor::Monitor, power_shell::PowerShell, repl::Repl,
    task_output::TaskOutput, tasks::Tasks,
};

/// The tools of a session in a folder, where everything may be run.
pub(crate) fn toolbox(folder: &Path, change: impl FnOnce(&mut Settings)) -> Arc<Toolbox> {
    let tasks = Tasks::default();
    let mut registry = Registry::default();
    let settings = settings(change);
    let bash = || Bash::new(settings.clone(), tasks.clone());
    registry.register(erase(bash())).unwrap();
    registry.register(erase(Monitor::new(bash(), tasks.clone()))).unwrap();
    registry.register(erase(PowerShell::new(bash(), settings.clone()))).unwrap();
    registry.register(erase(TaskOutput::new(tasks.clone()))).unwrap();
    registry.register(erase(BashOutput::new(tasks.clone()))).unwrap();
    registry.register(erase(KillShell::new(tasks.clone()))).unwrap();
    registry.register(erase(Repl::new(settings.clone(), true))).unwrap();
    Toolbox::builder(registry, policy(folder)).build()
}

fn settings(change: impl FnOnce(&mut Settings)) -> Arc<Settings> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut settings = Settings { env: vec![("PATH".into(), path)], ..Settings::default() };
    change(&mut settings);
    Arc::new(settings)
}

fn policy(folder: &Path) -> Policy {
    let mut policy = Policy::new(folder);
    for rule in ["Bash", "REPL"] {
        let rule = gripper_runtime::permissions::Rule::parse(rule).unwrap();
        policy.rules.add(RuleList::Allow, rule, Source::command_line());
    }
    policy
}

/// Runs one call.
pub(crate) async fn call(toolbox: &Arc<Toolbox>, tool: &str, input: Value) -> Arc<CallResult> {
    run_all(toolbox, [CallRequest::new("c1", tool, input)]).await.remove(0)
}

async fn bash(folder: &Path, command: &str) -> Arc<CallResult> {
    call(&toolbox(folder, |_| {}), "Bash", json!({ "command": command })).await
}

#[rstest]
#[case::both_streams("echo one; echo two >&2; sleep 0.05; echo three", "one\ntwo\nthree", false)]
#[case::failure("echo no; exit 3", "no\n(exit code 3)", true)]
#[case::meaning("grep x /dev/null", "(exit code 1: no line matched)", false)]
#[case::nothing("true", "(no output)", false)]
#[case::colours(
    "printf '\\033[1;31mred\\033[0m \\033]8;;http://x\\033\\\\link\\033]8;;\\033\\\\\\n'",
    "red link",
    false
)]
#[case::overwritten("printf '10%%\\r50%%\\rdone\\n'", "done", false)]
#[case::signal("kill -SEGV $$", "(signal 11 ended it)", true)]
#[case::no_input("cat; read x || echo empty", "empty", false)]
#[case::no_terminal("test -t 0 || test -t 1 || echo none", "none", false)]
#[tokio::test]
async fn shows_what_a_command_printed(#[case] command: &str, #[case] shown: &str, #[case] failed: bool) {
    let folder = tempfile::tempdir().unwrap();
    let result = bash(folder.path(), command).await;
    let text = result.to_string();
    assert_eq!(text, shown);
    assert_eq!(result.is_error, failed);
}

#[tokio::test]
async fn the_folder_stays_and_variables_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let toolbox = toolbox(&root, |_| {});
    let pwd = async |command: &str| call(&toolbox, "Bash", json!({ "command": command })).await.to_string();
    assert_eq!(pwd("mkdir -p a/b && cd a/b && x=1").await, "(no output)");
    assert_eq!(pwd("pwd; echo [$x]").await, format!("{}\n[]", root.join("a/b").display()));
    let said = pwd("cd / && echo gone").await;
    assert!(said.starts_with("gone\n(/ is outside the working directories"), "{said}");
    assert_eq!(pwd("cd ..; exit 0").await, "(no output)");
    assert_eq!(pwd("pwd").await, root.join("a").display().to_string());
}

#[tokio::test]
async fn secrets_are_not_handed_down() {
    let folder = tempfile::tempdir().unwrap();
    let secrets = |settings: &mut Settings| {
        settings.env.push(("MY_API_KEY".into(), "s3cret".into()));
        settings.env.push(("PLAIN".into(), "p".into()));
    };
    let command = json!({"command": "echo $MY_API_KEY-$PLAIN-$PAGER"});
    let told = call(&toolbox(folder.path(), secrets), "Bash", command.clone()).await;
    assert_eq!(told.to_string(), "-p-cat");
    let kept = |settings: &mut Settings| {
        secrets(settings);
        settings.keep_secrets = true;
    };
    assert_eq!(call(&toolbox(folder.path(), kept), "Bash", command).await.to_string(), "s3cret-p-cat");
}

#[tokio::test]
async fn what_takes_too_long_goes_on_in_the_background() {
    let folder = tempfile::tempdir().unwrap();
    let toolbox = toolbox(folder.path(), |_| {});
    let slow =
        json!({"command": "echo begun; while [ ! -e go ]; do sleep 0.02; done; echo over", "timeout": 200});
    let result = call(&toolbox, "Bash", slow).await;
    assert_eq!(result.structured.as_ref().unwrap()["backgroundTaskId"], "bash_1");
    assert!(result.to_string().contains("goes on in the background as bash_1"), "{result}");
    std::fs::write(folder.path().join("go"), "").unwrap();
    let told = call(&toolbox, "TaskOutput", json!({"task_id": "bash_1"})).await;
    assert_eq!(told.to_string(), "begun\nover\n(bash_1 has ended with exit code 0)");
    let waits = call(&toolbox, "Bash", json!({"command": "sleep 60", "timeout": 100})).await;
    assert_eq!(waits.error_code.unwrap().name(), "timeout");
}

#[rstest]
#[case::nul(json!({"command": "echo \u{0}"}), "NUL")]
#[case::long(json!({"command": "x".repeat(1_000_000)}), "write a script")]
#[case::empty(json!({"command": ""}), "command")]
#[tokio::test]
async fn what_cannot_be_run_is_refused(#[case] input: Value, #[case] why: &str) {
    let folder = tempfile::tempdir().unwrap();
    let result = call(&toolbox(folder.path(), |_| {}), "Bash", input).await;
    assert!(result.is_error && result.to_string().contains(why), "{result}");
}

#[tokio::test]
async fn a_long_output_is_shown_in_part() {
    let folder = tempfile::tempdir().unwrap();
    let outputs = folder.path().join("kept");
    let toolbox = toolbox(folder.path(), |settings| settings.outputs = Some(outputs));
    let command = "seq 1 20000; echo 'error: the middle'; seq 20001 40000";
    let result = call(&toolbox, "Bash", json!({ "command": command })).await;
    let (text, structured) = (result.to_string(), result.structured.as_ref().unwrap());
    assert!(text.starts_with("1\n2\n") && text.contains("\n40000\n"), "{text}");
    assert!(text.contains("error: the middle"));
    assert!(text.chars().count() < 31_000);
    let file = std::fs::read_to_string(structured["rawOutputPath"].as_str().unwrap()).unwrap();
    assert_eq!(file.lines().count(), 40_001);
}

#[test]
fn pictures_are_known_by_their_form() {
    assert_eq!(
        shown::picture("data:image/png;base64,iVBO=\n").unwrap(),
        ("image/png".into(), "iVBO=".into())
    );
    for text in ["data:text/html;base64,aa", "data:image/png;base64,<x>", "plain"] {
        assert!(shown::picture(text).is_none(), "{text}");
    }
}

#[test]
fn text_is_plain() {
    assert_eq!(plain(b"a\x1b[2Kb\x1b(Bc\r\nd\x1b", ""), "abc\nd");
    assert_eq!(plain(b"out\nMARK:/x", "MARK:"), "out");
    assert_eq!(shown::marked(b"out\nMARK:/x y", "MARK:").unwrap(), "/x y");
}

#[test]
fn limits_come_from_the_environment() {
    let env = |name: &str, value: &str| (name.into(), value.into());
    let settings = Settings {
        env: vec![env("BASH_DEFAULT_TIMEOUT_MS", "900000"), env("BASH_MAX_TIMEOUT_MS", "5000")],
        ..Settings::default()
    };
    let most = Duration::from_secs(5);
    assert_eq!(settings.with_limits_of_env().limits, (most, most));
    assert!(environment::is_secret("github_token") && !environment::is_secret("SSH_AUTH_SOCK"));
}

#[tokio::test]
async fn files_that_somebody_else_finds_are_read_ahead_if_they_may_be_shown() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for name in ["NOTES", ".env"] {
        std::fs::write(root.join(name), "x\n").unwrap();
    }
    let told = Arc::new(std::sync::Mutex::new(String::new()));
    let heard = told.clone();
    let finder: super::Finder = Arc::new(move |output| {
        *heard.lock().unwrap() = output;
        Box::pin(async { [".env", "NOTES", "none", "/etc/passwd"].map(PathBuf::from).to_vec() })
    });
    let bash = Bash::new(settings(|_| {}), Tasks::default()).with_finder(Some(finder));
    let mut registry = Registry::default();
    registry.register(erase(bash)).unwrap();
    let toolbox = Toolbox::builder(registry, policy(&root)).build();
    call(&toolbox, "Bash", json!({ "command": "printf 'see NOTES\\n%02500d' 1" })).await;
    assert_eq!(told.lock().unwrap().len(), 2_000);
    let ahead = |path: &Path| {
        let stamp = gripper_runtime::files::Stamp::of(&rustix::fs::stat(path).unwrap());
        toolbox.files().ledger.was_read_ahead(path, &stamp)
    };
    while ahead(&root.join("NOTES")).is_none() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(ahead(&root.join("NOTES")).as_deref(), Some(&b"x\n"[..]));
    assert!(ahead(&root.join(".env")).is_none() && ahead(Path::new("/etc/passwd")).is_none());
}
