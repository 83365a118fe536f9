use gripper_runtime::{CallRequest, erase};
use gripper_testkit::{run_all, toolbox_of};
use rstest::rstest;
use serde_json::{Value, json};

use super::{Status, TodoList, TodoWrite};

fn todos(items: &[(&str, &str)]) -> Value {
    let items: Vec<Value> =
        items.iter().map(|(content, status)| json!({"content": content, "status": status})).collect();
    json!({ "todos": items })
}

async fn call(list: &TodoList, input: Value) -> std::sync::Arc<gripper_runtime::CallResult> {
    let toolbox = toolbox_of([erase(TodoWrite::new(list.clone()))]).build();
    run_all(&toolbox, [CallRequest::new("c1", "TodoWrite", input)]).await.remove(0)
}

#[tokio::test]
async fn replaces_the_list_and_returns_both() {
    let list = TodoList::default();
    call(&list, todos(&[("a", "pending")])).await;
    let result = call(&list, todos(&[("a", "in_progress"), ("b", "pending")])).await;
    let structured = result.structured.clone().unwrap();
    assert_eq!(structured["oldTodos"][0]["status"], "pending");
    assert_eq!(structured["newTodos"].as_array().unwrap().len(), 2);
    assert_eq!(list.items()[0].status, Status::InProgress);
}

#[tokio::test]
async fn a_bad_list_leaves_the_old_one() {
    let list = TodoList::default();
    call(&list, todos(&[("a", "pending")])).await;
    let result =
        call(&list, todos(&[("x", "in_progress"), (" ", "in_progress"), ("y", "in_progress")])).await;
    assert_eq!(result.error_code.unwrap().name(), "invalid_input");
    let problems = result.structured.as_ref().unwrap()["problems"].clone();
    let paths: Vec<&str> = problems.as_array().unwrap().iter().map(|p| p["path"].as_str().unwrap()).collect();
    assert_eq!(paths, ["/todos/1/content", "/todos/1/status", "/todos/2/status"]);
    assert_eq!(list.items()[0].content, "a");
}

#[rstest]
#[case::three_done_no_check(&["Write a", "Write b", "Write c"], true)]
#[case::two_done(&["Write a", "Write b"], false)]
#[case::one_is_a_check(&["Write a", "Write b", "Run the tests"], false)]
#[tokio::test]
async fn a_check_is_suggested(#[case] done: &[&str], #[case] expected: bool) {
    let items: Vec<(&str, &str)> = done.iter().map(|content| (*content, "completed")).collect();
    let result = call(&TodoList::default(), todos(&items)).await;
    assert_eq!(result.structured.as_ref().unwrap()["checkSuggested"], expected);
    assert_eq!(result.to_string().contains("Nothing on the list checks the work"), expected);
}
