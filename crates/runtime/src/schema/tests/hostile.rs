//! Schemas and inputs made to cost time, memory or stack. Each must come back, refused or harmless; a
//! case that is not bounded never ends, so no clock is needed.

use super::{InputSchema, SchemaRefused, Value, codes, foreign, json, rstest};

fn refusal(schema: Value) -> SchemaRefused {
    InputSchema::external(schema).expect_err("the schema must be refused")
}

/// `count` definitions, each made by `link` from a reference to the next.
fn chain(count: usize, link: impl Fn(Value) -> Value) -> Value {
    let mut definitions = serde_json::Map::new();
    for index in 0..count {
        definitions.insert(format!("d{index}"), link(json!({"$ref": format!("#/$defs/d{}", index + 1)})));
    }
    definitions.insert(format!("d{count}"), json!({"type": "integer"}));
    json!({"$ref": "#/$defs/d0", "$defs": definitions})
}

fn nested(levels: usize, wrap: impl Fn(Value) -> Value) -> Value {
    (0..levels).fold(json!({"type": "integer"}), |inner, _| wrap(inner))
}

fn object_with(key: &str, value: Value) -> Value {
    Value::Object([(key.to_owned(), value)].into_iter().collect())
}

#[rstest]
#[case::not_an_object(json!([]), "not a JSON object")]
#[case::boolean(json!(true), "not a JSON object")]
#[case::deep(nested(1_000, |inner| object_with("items", inner)), "more than 64 levels of nesting")]
#[case::a_million_values(json!({"enum": vec![0; 1_000_000]}), "more than 20000 values")]
#[case::long_text(json!({"description": "x".repeat(300_000)}), "more than 262144 bytes")]
#[case::long_key(json!({"properties": {"x".repeat(300_000): {}}}), "more than 262144 bytes")]
#[case::doubling_all_of(chain(40, |next| json!({"allOf": [next, next]})), "references written out")]
#[case::doubling_any_of(chain(40, |next| json!({"anyOf": [next, next]})), "references written out")]
#[case::doubling_one_of(chain(40, |next| json!({"oneOf": [next, {"not": next}]})), "references written out")]
#[case::doubling_conditions(chain(40, |next| json!({"if": next, "then": next, "else": next})), "references written out")]
#[case::doubling_dependent(chain(40, |next| json!({"dependentSchemas": {"a": next, "b": next}})), "references written out")]
#[case::doubling_fields(chain(30, |next| json!({"anyOf": [{"properties": {"a": next}}, {"properties": {"a": next}}]})), "references written out")]
#[case::doubling_fields_of_one_object(chain(40, |next| json!({"properties": {"a": next, "b": next}})), "references written out")]
#[case::tracking_parts(nested(30, |inner| json!({"anyOf": [inner, true], "unevaluatedProperties": false})), "references written out")]
#[case::tracking_parts_of_conditions(nested(30, |inner| json!({"if": inner, "unevaluatedItems": false})), "references written out")]
#[case::long_chain(chain(200, |next| next), "inside each other")]
#[case::long_chain_unused({
    let mut schema = chain(5_000, |next| next);
    schema["$ref"] = json!("#/$defs/d5000");
    schema
}, "inside each other")]
#[case::cycle_of_one(json!({"$ref": "#"}), "leads back to itself")]
#[case::cycle_in_place(json!({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"anyOf": [{"$ref": "#"}]}}}), "leads back to itself")]
#[case::cycle_first_seen_through_a_field(json!({
    "properties": {"x": {"$ref": "#/$defs/b"}},
    "$defs": {"a": {"properties": {"y": {"$ref": "#/$defs/b"}}, "$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}
}), "leads back to itself")]
#[case::cycle_in_unused_definition(json!({"$defs": {"a": {"$ref": "#/$defs/a"}}}), "leads back to itself")]
#[case::remote(json!({"$ref": "https://example.com/schema.json"}), "not a pointer into this schema")]
#[case::file(json!({"$ref": "file:///etc/passwd"}), "not a pointer into this schema")]
#[case::remote_in_definition(json!({"$defs": {"a": {"$ref": "other.json#/a"}}}), "not a pointer into this schema")]
#[case::dangling(json!({"$ref": "#/$defs/none"}), "nothing is there")]
#[case::bad_escape(json!({"$ref": "#/%zz"}), "nothing is there")]
#[case::dynamic(json!({"properties": {"a": {"$dynamicRef": "#a"}}}), "\"$dynamicRef\" is not supported")]
#[case::moved_base(json!({"properties": {"a": {"$id": "https://example.com/", "$ref": "#/x"}}, "x": {}}), "\"$id\" is not supported")]
#[case::long_pattern(json!({"pattern": "a".repeat(2_000)}), "bytes in a pattern")]
#[case::many_patterns(json!({"allOf": (0..200).map(|n| json!({"pattern": n.to_string()})).collect::<Vec<_>>()}), "100 patterns")]
#[case::pattern_that_must_count(json!({"properties": {"v": {"not": {"pattern": "^(?!a)"}}}}), "cannot use the pattern at /properties/v/not/pattern")]
#[case::pattern_of_names(json!({"patternProperties": {"^(?!a)": {}}}), "not valid")]
#[case::wrong_type(json!({"type": "objekt"}), "not valid at \"/type\"")]
#[case::unknown_draft(json!({"$schema": "https://example.com/draft"}), "not valid")]
fn refused(#[case] schema: Value, #[case] reason: &str) {
    let message = refusal(schema).to_string();
    assert!(message.contains(reason), "{message}");
    assert!(message.len() < 1_000);
}

#[rstest]
#[case::long_chain_of_fields(chain(40, |next| json!({"properties": {"a": next}})))]
#[case::nested_to_the_limit(nested(60, |inner| object_with("items", inner)))]
#[case::recursion_through_items(json!({"properties": {"children": {"items": {"$ref": "#"}}}}))]
#[case::escaped_reference(json!({"$ref": "#/$defs/a%3Cb~1c%3E", "$defs": {"a<b/c>": {}}}))]
#[case::field_called_ref(json!({"properties": {"$ref": {"type": "string"}, "$id": {"type": "string"}}}))]
#[case::reference_in_data(json!({"default": {"$ref": "#/nowhere"}, "examples": [{"$id": "x"}]}))]
#[case::own_identifier(json!({"$id": "https://example.com/tool.json", "$ref": "#/$defs/a", "$defs": {"a": {}}}))]
#[case::draft_7(json!({"$schema": "http://json-schema.org/draft-07/schema#", "properties": {"a": {"items": [{}]}}}))]
#[case::draft_7_undeclared(json!({"properties": {"a": {"items": [{"type": "integer"}], "additionalItems": false}}}))]
fn accepted(#[case] schema: Value) {
    foreign(schema);
}

#[rstest]
#[case::backtracking("(a+)+$", true)]
#[case::nested_repeats("a{1000}{1000}{1000}", false)]
#[case::look_ahead("^(?!.*\\.\\.)[a-z]+$", false)]
#[case::back_reference("(a)\\1", false)]
#[case::invalid("(", false)]
#[case::wide_class("\\p{L}{500}", false)]
fn patterns_run_in_linear_time_or_not_at_all(#[case] pattern: &str, #[case] checked: bool) {
    let schema = foreign(json!({"properties": {"v": {"type": "string", "pattern": pattern}}}));
    let ignored: &[&str] = if checked { &[] } else { &["/properties/v/pattern"] };
    assert_eq!(schema.ignored_patterns(), ignored);
    let text = format!("{}!", "a".repeat(100_000));
    assert_eq!(codes(&schema, &json!({"v": text})).len(), usize::from(checked));
    assert_eq!(schema.value()["properties"]["v"]["pattern"], pattern);
}

/// Both branches look into the same field and refer back, so every level of the input doubles the work of
/// explaining: the answer is short, and right.
#[test]
fn recursion_through_alternatives_does_not_double_at_every_level() {
    let branch = |name: &str| json!({"properties": {"a": {"$ref": "#"}}, "required": [name]});
    let schema = foreign(json!({"anyOf": [branch("x"), branch("y")]}));
    let deep = |levels: usize, end: Value| {
        (0..levels).fold(end, |inner, _| {
            Value::Object([("a".into(), inner), ("y".into(), json!("1"))].into_iter().collect())
        })
    };
    assert_eq!(codes(&schema, &deep(100, json!({}))), [(String::new(), "too_complex")]);
    assert_eq!(codes(&schema, &deep(100, json!({"y": 1}))), []);
    assert_eq!(codes(&schema, &deep(2, json!({}))).len(), 1);
    let mut input = deep(100, json!({}));
    assert_eq!(schema.coerce(&mut input), []);
}

/// Explaining at the largest depth and width that are accepted must not exhaust the stack of a test thread.
#[test]
fn the_largest_accepted_schema_and_input_fit_the_stack() {
    let schema = foreign(json!({"properties": {"v": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"allOf": [{"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/n"}}]}]}}}));
    let nested = (0..126).fold(json!("x"), |inner, _| Value::Array(vec![inner]));
    assert_eq!(codes(&schema, &json!({"v": nested})).len(), 1);
    let long = foreign(chain(48, |next| json!({"allOf": [next]})));
    assert_eq!(codes(&long, &json!({})).len(), 1);
}

#[test]
fn a_reference_to_itself_in_a_schema_of_ours_does_no_harm() {
    let schema = InputSchema::trusted(
        json!({"$ref": "#/$defs/a", "required": ["x"], "$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}}),
    );
    let mut input = json!({"y": "5"});
    assert_eq!(schema.coerce(&mut input), []);
    assert_eq!(codes(&schema, &input), [("/x".to_owned(), "missing")]);
}
