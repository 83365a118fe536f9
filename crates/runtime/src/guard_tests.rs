use serde_json::json;

use super::{Guard, GuardLimits, Key, REMEMBERED};
use crate::pipeline::CallResult;
use crate::tool::{ErrorCode, ToolError};

fn result(fails: bool, text: &str) -> CallResult {
    if fails {
        CallResult::failed("c".into(), "T".into(), ToolError::new(ErrorCode::Failed, text))
    } else {
        CallResult::plain("c".into(), "T".into(), text)
    }
}

#[test]
fn failures_are_noted_then_refused_and_forgiven() {
    let mut guard = Guard::new(GuardLimits::default());
    let key = Key::of("T", &json!({"a": 1, "b": [2]}));
    assert_eq!(key, Key::of("T", &json!({"b": [2], "a": 1})));
    assert!(guard.record(key, false, &result(true, "x")).is_none());
    assert!(guard.record(key, false, &result(true, "y")).is_some());
    assert!(guard.refuses(key).is_none());
    guard.record(key, false, &result(true, "z"));
    guard.record(key, false, &result(true, "z"));
    assert_eq!(guard.refuses(key), Some(4));
    guard.record(key, false, &result(false, "ok"));
    assert_eq!(guard.refuses(key), None);
}

#[test]
fn same_reads_are_noted_and_a_new_result_starts_over() {
    let mut guard = Guard::new(GuardLimits::default());
    let key = Key::of("T", &json!({}));
    let notes: Vec<bool> = ["a", "a", "a", "b", "b", "b"]
        .iter()
        .map(|text| guard.record(key, true, &result(false, text)).is_some())
        .collect();
    assert_eq!(notes, [false, false, true, false, false, true]);
}

#[test]
fn a_change_elsewhere_gives_a_failing_call_another_chance() {
    let mut guard = Guard::new(GuardLimits::default());
    let (test, edit) = (Key::of("T", &json!("test")), Key::of("T", &json!("edit")));
    for _ in 0..10 {
        guard.record(edit, false, &result(false, "edited"));
        assert!(guard.refuses(test).is_none());
        assert!(guard.record(test, true, &result(true, "red")).is_none());
    }
}

#[test]
fn different_inputs_have_different_keys() {
    let inputs = [
        json!({"a": {"b": 1}, "c": 2}),
        json!({"a": {"b": 1, "c": 2}}),
        json!(null),
        json!(false),
        json!(0),
        json!("0"),
        json!([]),
        json!({}),
        json!([[]]),
        json!(["a", "b"]),
        json!(["ab"]),
    ];
    let keys: std::collections::HashSet<_> = inputs.iter().map(|input| Key::of("T", input)).collect();
    assert_eq!(keys.len(), inputs.len());
}

#[test]
fn memory_is_bounded() {
    let mut guard = Guard::new(GuardLimits::default());
    for number in 0..REMEMBERED + 50 {
        guard.record(Key::of("T", &json!(number)), true, &result(false, "x"));
    }
    assert_eq!(guard.calls.len(), REMEMBERED);
    assert_eq!(guard.order.len(), REMEMBERED);
}
