//! Any schema, in the first line, and any input: no panic, what fits stays as it is, what is repaired fits better, and
//! a repaired input is not repaired again.
#![no_main]

use gripper_runtime::schema::{InputSchema, describe};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|text: &str| {
    let (schema, input) = text.split_once('\n').unwrap_or((text, "{}"));
    let (Ok(schema), Ok(input)) = (serde_json::from_str(schema), serde_json::from_str::<Value>(input)) else {
        return;
    };
    let Ok(schema) = InputSchema::external(schema) else { return };
    let before = schema.check(&input);
    let mut repaired = input.clone();
    let made = schema.coerce(&mut repaired);
    assert_eq!(made.is_empty(), input == repaired, "{input} became {repaired}: {made:?}");
    assert!(before.is_err() || made.is_empty(), "{input} fits and became {repaired}");
    if let Err(problems) = schema.check(&repaired) {
        assert!(!describe("Tool", &problems).is_empty());
    }
    let mut again = repaired.clone();
    assert!(schema.coerce(&mut again).is_empty(), "{repaired} became {again}");
});
