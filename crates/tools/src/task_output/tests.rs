use serde_json::json;

use crate::bash::tests::{call, toolbox};

#[tokio::test]
async fn only_what_is_new_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let toolbox = toolbox(folder.path(), |_| {});
    let command = "echo one; while [ ! -e go ]; do sleep 0.02; done; echo two; exit 4";
    let begun = call(&toolbox, "Bash", json!({"command": command, "runInBackground": true})).await;
    assert!(begun.to_string().contains("runs in the background as bash_1"), "{begun}");
    let mut first = String::new();
    while !first.contains("one") {
        first = call(&toolbox, "TaskOutput", json!({"task_id": "bash_1", "block": false})).await.to_string();
    }
    assert!(first.contains("bash_1 still runs"), "{first}");
    std::fs::write(folder.path().join("go"), "").unwrap();
    let last = call(&toolbox, "TaskOutput", json!({"task_id": "bash_1"})).await;
    assert_eq!(last.to_string(), "two\n(bash_1 has ended with exit code 4)");
    assert_eq!(last.structured.as_ref().unwrap()["status"], "failed");
    let again = call(&toolbox, "TaskOutput", json!({"task_id": "bash_1"})).await;
    assert_eq!(again.to_string(), "no new output\n(bash_1 has ended with exit code 4)");
}

#[tokio::test]
async fn a_task_that_is_not_there_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let toolbox = toolbox(folder.path(), |_| {});
    for id in ["bash_7", "x", ""] {
        let result = call(&toolbox, "TaskOutput", json!({ "task_id": id })).await;
        assert!(result.is_error && result.to_string().contains("there is none"), "{result}");
    }
}
