use serde_json::json;

use crate::bash::tests::{call, toolbox};

#[tokio::test]
async fn only_lines_that_fit_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let toolbox = toolbox(folder.path(), |_| {});
    let command = json!({"command": "echo ok 1; echo bad; echo ok 2", "run_in_background": true});
    call(&toolbox, "Bash", command).await;
    call(&toolbox, "TaskOutput", json!({"task_id": "bash_1"})).await;
    let wrong = call(&toolbox, "BashOutput", json!({"bash_id": "bash_1", "filter": "("})).await;
    assert!(wrong.is_error && wrong.to_string().contains("not a valid regular expression"), "{wrong}");
    let command = json!({"command": "echo ok 1; echo bad; echo ok 2; sleep 60", "run_in_background": true});
    call(&toolbox, "Bash", command).await;
    let mut told = String::new();
    while !told.contains("ok 2") {
        let input = json!({"bash_id": "bash_2", "filter": "^ok"});
        told.push_str(&call(&toolbox, "BashOutput", input).await.to_string());
    }
    assert!(told.contains("ok 1") && !told.contains("bad"), "{told}");
}
