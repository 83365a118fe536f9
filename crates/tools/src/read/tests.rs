use gripper_runtime::{CallRequest, CallResult, Toolbox, erase, permissions::Policy};
use gripper_testkit::{Workspace, run_all};
use rstest::rstest;
use serde_json::{Value, json};
use std::sync::Arc;

use super::Read;

async fn read(workspace: &Workspace, input: Value) -> Arc<CallResult> {
    let mut registry = gripper_runtime::Registry::default();
    registry.register(erase(Read::default())).unwrap();
    let toolbox = Toolbox::builder(registry, Policy::new(workspace.project())).build();
    run_all(&toolbox, [CallRequest::new("c1", "Read", input)]).await.remove(0)
}

#[tokio::test]
async fn the_structured_form_counts() {
    let workspace = Workspace::new();
    let file = workspace.write("a.txt", "one\ntwo\nthree\n");
    let result = read(&workspace, json!({"file_path": file, "offset": 2, "limit": 1})).await;
    let structured = result.structured.as_ref().unwrap();
    assert_eq!(structured["type"], "text");
    assert_eq!(structured["filePath"], json!(file));
    assert_eq!(structured["startLine"], 2);
    assert_eq!(structured["numLines"], 1);
    assert_eq!(structured["totalLines"], 3);
    assert_eq!(structured["nextOffset"], 3);
    assert_eq!(structured["content"], "     2\ttwo");
}

#[rstest]
#[case::zero_offset(json!({"file_path": "/a", "offset": 0}), "/offset", "out_of_range")]
#[case::negative(json!({"file_path": "/a", "limit": -1}), "/limit", "out_of_range")]
#[case::empty_path(json!({"file_path": ""}), "/file_path", "too_short")]
#[case::nul(json!({"file_path": "/a\0b"}), "/file_path", "bad_path")]
#[case::wrong_type(json!({"file_path": 5}), "/file_path", "wrong_type")]
#[tokio::test]
async fn bad_input(#[case] input: Value, #[case] path: &str, #[case] code: &str) {
    let result = read(&Workspace::new(), input).await;
    let problem = &result.structured.as_ref().unwrap()["problems"][0];
    assert_eq!((problem["path"].as_str().unwrap(), problem["code"].as_str().unwrap()), (path, code));
}

#[tokio::test]
async fn a_pipe_never_hangs_and_a_device_is_never_read() {
    let workspace = Workspace::new();
    let fifo = workspace.path("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, rustix::fs::Mode::RUSR, 0)
        .unwrap();
    let result = read(&workspace, json!({"file_path": fifo})).await;
    assert_eq!(result.error_code.unwrap().name(), "unsupported");
    std::os::unix::fs::symlink("/dev/zero", workspace.path("zero")).unwrap();
    let result = read(&workspace, json!({"file_path": workspace.path("zero")})).await;
    assert_eq!(result.error_code.unwrap().name(), "denied", "and it is outside the project");
}

#[tokio::test]
async fn an_unreadable_loop_is_one_clear_error() {
    let workspace = Workspace::new();
    std::os::unix::fs::symlink("loop", workspace.path("loop")).unwrap();
    let result = read(&workspace, json!({"file_path": workspace.path("loop")})).await;
    assert_eq!(result.error_code.unwrap().name(), "io");
}
