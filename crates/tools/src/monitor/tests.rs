use rstest::rstest;
use serde_json::{Value, json};

use crate::bash::tests::{call, toolbox};

const READY: &str = "echo one; echo ready on 3000; while [ ! -e go ]; do sleep 0.02; done; echo two";

#[rstest]
#[case::fits(json!({"command": READY, "until": "^ready"}), "match", "killed", "ready on 3000")]
#[case::goes_on(json!({"command": READY, "until": "^ready", "persistent": true}), "match", "running", "ready on 3000")]
#[case::unfinished_line(json!({"command": "printf 'a\\nb'", "until": "^b$"}), "match", "completed", "b")]
#[case::prompt(json!({"command": "printf 'Name: '; sleep 600", "until": "Name: $"}), "match", "killed", "Name:")]
#[case::ends(json!({"command": "echo x; exit 3", "until": "y"}), "exit", "failed", "exit code 3")]
#[case::no_pattern(json!({"command": "echo x"}), "exit", "completed", "bash_1 ended\n")]
#[case::time(json!({"command": READY, "until": "never", "timeout_ms": 300}), "time", "killed", "time was up")]
#[case::time_and_on(json!({"command": READY, "timeout_ms": 300, "persistent": true}), "time", "running", "still runs")]
#[case::moved(json!({"command": "cd /; echo x", "until": "^gripper"}), "exit", "completed", "x\n(bash_1 has ended")]
#[tokio::test]
async fn watches_a_command(#[case] input: Value, #[case] why: &str, #[case] state: &str, #[case] said: &str) {
    let folder = tempfile::tempdir().unwrap();
    let toolbox = toolbox(folder.path(), |_| {});
    let seen = call(&toolbox, "Monitor", input).await;
    let told = seen.structured.as_ref().unwrap();
    assert_eq!((told["reason"].as_str(), told["status"].as_str()), (Some(why), Some(state)), "{seen}");
    assert!(seen.to_string().contains(said), "{seen}");
    assert!(!seen.is_error);
}

#[tokio::test]
async fn watches_a_task_from_where_it_was_left() {
    let folder = tempfile::tempdir().unwrap();
    let toolbox = toolbox(folder.path(), |_| {});
    call(&toolbox, "Bash", json!({"command": READY, "run_in_background": true})).await;
    let watch = json!({"task_id": "bash_1", "until": "ready|two"});
    let first = call(&toolbox, "Monitor", watch.clone()).await;
    assert_eq!(first.structured.as_ref().unwrap()["matches"], json!(["ready on 3000"]), "{first}");
    std::fs::write(folder.path().join("go"), "").unwrap();
    let second = call(&toolbox, "Monitor", watch).await;
    assert_eq!(second.structured.as_ref().unwrap()["matches"], json!(["two"]), "{second}");
}

#[rstest]
#[case::neither(json!({}), "either command or task_id")]
#[case::both(json!({"command": "x", "task_id": "bash_1"}), "either command or task_id")]
#[case::pattern(json!({"command": "x", "until": "("}), "regular expression")]
#[case::unknown(json!({"task_id": "bash_9"}), "there is no task called \"bash_9\": there is none")]
#[case::needless(json!({"task_id": "bash_9", "persistent": true}), "persistent with command only")]
#[tokio::test]
async fn what_cannot_be_watched_is_refused(#[case] input: Value, #[case] why: &str) {
    let folder = tempfile::tempdir().unwrap();
    let refused = call(&toolbox(folder.path(), |_| {}), "Monitor", input).await;
    assert!(refused.is_error && refused.to_string().contains(why), "{refused}");
}

#[tokio::test]
async fn a_flood_is_watched_in_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let command = "yes | head -c 3000000; seq 1 100; head -c 200000 /dev/zero | tr '\\0' x";
    let input = json!({"command": command, "until": "^[0-9]+$|x{1000}"});
    let seen = call(&toolbox(folder.path(), |_| {}), "Monitor", input).await;
    let lines = seen.structured.as_ref().unwrap()["matches"].as_array().unwrap().len();
    assert!(lines > 0 && lines <= 20 && seen.to_string().chars().count() < 45_000, "{lines}");
}

#[tokio::test]
async fn a_watch_that_is_cancelled_ends_its_command() {
    let folder = tempfile::tempdir().unwrap();
    let toolbox = toolbox(folder.path(), |_| {});
    let turn = toolbox.turn();
    let input = json!({"command": "echo $$ > pid; sleep 600", "persistent": true});
    turn.submit(gripper_runtime::CallRequest::new("c1", "Monitor", input));
    let pid = loop {
        match std::fs::read_to_string(folder.path().join("pid")) {
            Ok(text) if text.ends_with('\n') => break text.trim().to_owned(),
            _ => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
        }
    };
    turn.cancel();
    turn.close();
    while turn.next().await.is_some() {}
    while std::path::Path::new(&format!("/proc/{pid}")).exists() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}
