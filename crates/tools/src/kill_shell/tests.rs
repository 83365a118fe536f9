use serde_json::json;

use crate::bash::tests::{call, toolbox};

#[tokio::test]
async fn ends_a_task_and_what_it_started() {
    let folder = tempfile::tempdir().unwrap();
    let toolbox = toolbox(folder.path(), |_| {});
    let command = "trap '' TERM; sleep 600 & echo $! > pid; wait; sleep 600";
    call(&toolbox, "Bash", json!({"command": command, "run_in_background": true})).await;
    let file = folder.path().join("pid");
    let child = loop {
        match std::fs::read_to_string(&file) {
            Ok(text) if text.ends_with('\n') => break text.trim().to_owned(),
            _ => tokio::time::sleep(std::time::Duration::from_millis(10)).await,
        }
    };
    let ended = call(&toolbox, "KillShell", json!({"shell_id": "bash_1"})).await;
    assert!(!ended.is_error, "{ended}");
    assert!(!std::path::Path::new(&format!("/proc/{child}")).exists());
    let told = call(&toolbox, "TaskOutput", json!({"task_id": "bash_1"})).await;
    assert_eq!(told.structured.as_ref().unwrap()["status"], "killed");
    let again = call(&toolbox, "TaskStop", json!({"task_id": "bash_1"})).await;
    assert!(again.is_error && again.to_string().contains("already ended"), "{again}");
    let nothing = call(&toolbox, "KillShell", json!({})).await;
    assert!(nothing.to_string().contains("such as bash_1"), "{nothing}");
}
