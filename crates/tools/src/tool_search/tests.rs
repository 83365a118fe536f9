use gripper_runtime::{CallRequest, erase};
use gripper_testkit::{run_all, toolbox_of};
use serde_json::json;

use super::ToolSearch;
use crate::sleep::Sleep;

#[tokio::test]
async fn finds_and_loads() {
    let toolbox = toolbox_of([erase(ToolSearch), erase(Sleep)]).build();
    let results =
        run_all(&toolbox, [CallRequest::new("c1", "ToolSearch", json!({"query": "wait some time"}))]).await;
    let structured = results[0].structured.as_ref().unwrap();
    assert_eq!(structured["matches"][0]["name"], "Sleep");
    assert_eq!(structured["matches"][0]["input_schema"]["properties"]["seconds"]["type"], "number");
    assert_eq!(structured["total_deferred_tools"], 1);
    assert!(toolbox.loaded_tools().contains("Sleep"));
}

#[tokio::test]
async fn select_takes_names_of_any_case_and_names_what_is_missing() {
    let toolbox = toolbox_of([erase(ToolSearch), erase(Sleep)]).build();
    let calls = [CallRequest::new("c1", "ToolSearch", json!({"query": "select:sleep, Toolsearch,Nope"}))];
    let results = run_all(&toolbox, calls).await;
    let structured = results[0].structured.as_ref().unwrap();
    let names: Vec<&str> = structured["matches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| found["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["Sleep", "ToolSearch"]);
    assert_eq!(structured["not_found"], json!(["Nope"]));
    assert_eq!(toolbox.loaded_tools().len(), 1, "what is never deferred needs no loading");
}

#[tokio::test]
async fn nothing_found_is_no_error() {
    let toolbox = toolbox_of([erase(ToolSearch), erase(Sleep)]).build();
    let results = run_all(&toolbox, [CallRequest::new("c1", "ToolSearch", json!({"query": "zebra"}))]).await;
    assert!(!results[0].is_error);
    assert_eq!(results[0].to_string(), "No tool matches, of 1 that are announced by name only.");
}
