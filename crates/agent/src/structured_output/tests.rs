use std::sync::Arc;

use gripper_runtime::CallRequest;
use gripper_testkit::{run_all, toolbox_of};
use serde_json::{Value, json};

use super::{Delivery, StructuredOutput};

fn tool(schema: Value) -> (Delivery, Result<StructuredOutput, String>) {
    let delivery = Delivery::default();
    (delivery.clone(), StructuredOutput::new(schema, delivery))
}

#[tokio::test]
async fn what_satisfies_the_schema_is_delivered_and_nothing_else() {
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
    let (delivery, tool) = tool(schema);
    let toolbox = toolbox_of([Arc::new(tool.unwrap()) as Arc<_>]).build();
    let wrong = run_all(&toolbox, [CallRequest::new("a", "StructuredOutput", json!({ "n": "many" }))]).await;
    assert!(wrong[0].is_error && !delivery.is_done());
    let right = run_all(&toolbox, [CallRequest::new("b", "StructuredOutput", json!({ "n": 3 }))]).await;
    assert!(!right[0].is_error, "{right:?}");
    assert_eq!(delivery.value(), Some(json!({ "n": 3 })));
}

#[test]
fn a_schema_that_no_call_can_satisfy_is_refused() {
    assert!(tool(json!({ "type": "array" })).1.is_err());
    assert!(tool(json!("object")).1.is_err());
}

#[test]
fn the_model_is_reminded_so_often_and_no_more() {
    let delivery = Delivery::default();
    for _ in 0..5 {
        assert!(delivery.remind().unwrap().is_some());
    }
    assert!(delivery.remind().is_err());
}
