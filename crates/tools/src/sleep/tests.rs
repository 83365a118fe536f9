use std::time::Duration;

use gripper_runtime::{CallRequest, erase};
use gripper_testkit::{run_all, toolbox_of};
use serde_json::json;

use super::Sleep;

#[tokio::test(start_paused = true)]
async fn waits_as_long_as_asked() {
    let toolbox = toolbox_of([erase(Sleep)]).build();
    let start = tokio::time::Instant::now();
    let results = run_all(&toolbox, [CallRequest::new("c1", "Sleep", json!({"seconds": 90.5}))]).await;
    assert_eq!(results[0].to_string(), "Waited 90.5 s.");
    assert!(start.elapsed() >= Duration::from_millis(90_500));
}

#[tokio::test(start_paused = true)]
async fn a_wait_holds_back_what_is_behind_it() {
    let toolbox = toolbox_of([erase(Sleep)]).build();
    let start = tokio::time::Instant::now();
    let calls = (1..=3).map(|n| CallRequest::new(&format!("c{n}"), "Sleep", json!({"seconds": n})));
    run_all(&toolbox, calls).await;
    assert!(start.elapsed() >= Duration::from_secs(6));
}

#[tokio::test]
async fn nonsense_is_refused() {
    let toolbox = toolbox_of([erase(Sleep)]).build();
    for input in [json!({"seconds": -1}), json!({"seconds": 1e9}), json!({}), json!({"seconds": "soon"})] {
        let results = run_all(&toolbox, [CallRequest::new("c1", "Sleep", input.clone())]).await;
        assert_eq!(results[0].error_code.unwrap().name(), "invalid_input", "{input}");
    }
}
