use proptest::prelude::*;
use rstest::rstest;
use schemars::{JsonSchema, schema_for};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::*;

mod hostile;

/// A built-in tool's input as such types are really written.
#[derive(JsonSchema, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Input {
    file_path: String,
    limit: Option<u32>,
    ratio: Option<f64>,
    #[serde(default)]
    replace_all: bool,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    lines: Vec<u32>,
    mode: Option<Mode>,
    range: Option<Range>,
    target: Option<Target>,
    #[schemars(length(min = 2, max = 5), regex(pattern = "^[a-z]+$"))]
    slug: Option<String>,
}

#[derive(JsonSchema, Deserialize, Serialize)]
enum Mode {
    /// Everything.
    #[serde(rename = "content")]
    Content,
    /// Only counts.
    #[serde(rename = "count")]
    Count,
}

#[derive(JsonSchema, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Range {
    start: u32,
    end: u32,
}

#[derive(JsonSchema, Deserialize, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Target {
    Line { number: u32 },
    Text { pattern: String, regex: bool },
}

fn typed() -> InputSchema {
    InputSchema::trusted(schema_for!(Input).to_value())
}

#[test]
fn what_fits_the_schema_is_what_the_type_takes() {
    let input = json!({
        "file_path": "a", "limit": 5, "ratio": 0.5, "replace_all": true, "tags": ["x"], "lines": [1],
        "mode": "count", "range": {"start": 1, "end": 2}, "target": {"kind": "line", "number": 3}, "slug": "abc",
    });
    typed().check(&input).unwrap();
    let taken: Input = serde_json::from_value(input.clone()).unwrap();
    assert_eq!(serde_json::to_value(taken).unwrap(), input);
}

fn foreign(schema: Value) -> InputSchema {
    InputSchema::external(schema).unwrap()
}

/// A schema whose only field `v` has the schema `inner`.
fn holding(inner: Value) -> InputSchema {
    foreign(json!({"type": "object", "properties": {"v": inner}}))
}

/// Path and code of every problem.
fn codes(schema: &InputSchema, input: &Value) -> Vec<(String, &'static str)> {
    let problems = schema.check(input).err().unwrap_or_default();
    problems.into_iter().map(|problem| (problem.path, problem.code)).collect()
}

#[rstest]
#[case::fits(json!({"file_path": "a"}), &[])]
#[case::all_fields(json!({"file_path": "a", "limit": 3, "ratio": 1, "replace_all": true, "tags": ["x"], "mode": "count",
    "range": {"start": 1, "end": 2}, "target": {"kind": "line", "number": 3}, "slug": "abc"}), &[])]
#[case::nulls(json!({"file_path": "a", "limit": null, "mode": null, "range": null, "target": null}), &[])]
#[case::not_an_object(json!([1, 2]), &[("", "wrong_type")])]
#[case::missing(json!({}), &[("/file_path", "missing")])]
#[case::unknown(json!({"file_path": "a", "nope": 1}), &[("/nope", "unknown_field")])]
#[case::negative(json!({"file_path": "a", "limit": -1}), &[("/limit", "out_of_range")])]
#[case::beyond_u32(json!({"file_path": "a", "limit": 5_000_000_000u64}), &[("/limit", "out_of_range")])]
#[case::fraction(json!({"file_path": "a", "limit": 1.5}), &[("/limit", "wrong_type")])]
#[case::item(json!({"file_path": "a", "lines": [1, 2, -3, "x"]}), &[("/lines/2", "out_of_range"), ("/lines/3", "wrong_type")])]
#[case::variant_of_unit_enum(json!({"file_path": "a", "mode": "contents"}), &[("/mode", "not_in_list")])]
#[case::kind_of_enum(json!({"file_path": "a", "mode": 3}), &[("/mode", "wrong_type")])]
#[case::nested(json!({"file_path": "a", "range": {"start": 1, "stop": 2}}),
    &[("/range/end", "missing"), ("/range/stop", "unknown_field")])]
#[case::tag(json!({"file_path": "a", "target": {"kind": "lines", "number": 3}}), &[("/target/kind", "not_in_list")])]
#[case::inside_variant(json!({"file_path": "a", "target": {"kind": "text", "pattern": 1}}),
    &[("/target/pattern", "wrong_type"), ("/target/regex", "missing")])]
#[case::too_long_and_pattern(json!({"file_path": "a", "slug": "ABCDEF"}), &[("/slug", "bad_pattern"), ("/slug", "too_long")])]
#[case::too_short(json!({"file_path": "a", "slug": "a"}), &[("/slug", "too_short")])]
#[case::everything_at_once(json!({"limit": "x", "tags": [1], "what": 0}),
    &[("/file_path", "missing"), ("/limit", "wrong_type"), ("/tags/0", "wrong_type"), ("/what", "unknown_field")])]
fn problems_with_a_typed_input(#[case] input: Value, #[case] expected: &[(&str, &'static str)]) {
    let expected: Vec<_> = expected.iter().map(|(path, code)| ((*path).to_owned(), *code)).collect();
    assert_eq!(codes(&typed(), &input), expected, "{:#?}", typed().check(&input));
}

#[rstest]
#[case::exclusive(json!({"exclusiveMinimum": 0}), json!(0), "out_of_range", "more than 0")]
#[case::multiple(json!({"multipleOf": 5}), json!(7), "not_multiple", "a multiple of 5")]
#[case::constant(json!({"const": "x"}), json!("y"), "not_in_list", "\"x\"")]
#[case::items(json!({"maxItems": 1}), json!([1, 2]), "too_long", "at most 1 item")]
#[case::unique(json!({"uniqueItems": true}), json!([1, 1]), "not_unique", "items that all differ")]
#[case::format(json!({"format": "date"}), json!("soon"), "bad_format", "format \"date\"")]
#[case::pattern(json!({"pattern": "^a$"}), json!("b"), "bad_pattern", "a match of \"^a$\"")]
#[case::types(json!({"type": ["integer", "null"]}), json!("b"), "wrong_type", "integer or null")]
#[case::branch_kinds(json!({"anyOf": [{"type": "integer"}, {"type": "array"}]}), json!("b"), "wrong_type", "array or integer")]
#[case::forbidden(json!({"not": {"const": 1}}), json!(1), "forbidden", "something else")]
#[case::contains(json!({"contains": {"const": 1}}), json!([2]), "missing_item", "an array with an item of the demanded form")]
#[case::fields(json!({"minProperties": 1}), json!({}), "too_short", "at least 1 field")]
#[case::many(json!({"oneOf": [{"type": "integer"}, {"minimum": 0}]}), json!(1), "many_variants", "a value that fits only one variant")]
#[case::no_variant(json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}), json!({}), "no_variant",
    "one of: object with a; object with b")]
fn problems_with_a_foreign_input(
    #[case] inner: Value,
    #[case] given: Value,
    #[case] code: &str,
    #[case] expected: &str,
) {
    let problems = holding(inner).check(&json!({"v": given})).unwrap_err();
    let [problem] = problems.as_slice() else { panic!("{problems:#?}") };
    assert_eq!((problem.path.as_str(), problem.code, problem.expected.as_str()), ("/v", code, expected));
}

/// The right branch is the one the model meant, however much is wrong further inside.
#[rstest]
#[case::externally_tagged(
    json!({"oneOf": [
        {"type": "object", "properties": {"add": {"type": "object", "required": ["x", "y", "z"]}}, "required": ["add"], "additionalProperties": false},
        {"type": "object", "properties": {"del": {"type": "object"}}, "required": ["del"], "additionalProperties": false}]}),
    json!({"add": {}}), &["/v/add/x", "/v/add/y", "/v/add/z"])]
#[case::tagged(
    json!({"anyOf": [
        {"properties": {"t": {"const": "a"}, "n": {"type": "integer"}, "m": {"type": "integer"}}, "required": ["t", "n", "m"]},
        {"properties": {"t": {"const": "b"}}, "required": ["t"]}]}),
    json!({"t": "a", "n": "x"}), &["/v/m", "/v/n"])]
#[case::optional(
    json!({"anyOf": [{"type": "object", "required": ["a", "b"]}, {"type": "null"}]}),
    json!({}), &["/v/a", "/v/b"])]
#[case::array_or_string(
    json!({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
    json!(["a", 1]), &["/v/1"])]
fn alternatives_are_explained_by_the_closest(
    #[case] inner: Value,
    #[case] given: Value,
    #[case] paths: &[&str],
) {
    let found = codes(&holding(inner), &json!({"v": given}));
    assert_eq!(found.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), paths);
}

#[rstest]
#[case::case_and_separator("filePath", Some("file_path"))]
#[case::typo("file_pth", Some("file_path"))]
#[case::part("path", Some("file_path"))]
#[case::plural("limits", Some("limit"))]
#[case::unlike("zzz", None)]
fn unknown_field_names_the_nearest(#[case] name: &str, #[case] expected: Option<&str>) {
    let problems = typed().check(&json!({ name: 1 })).unwrap_err();
    let unknown = problems.iter().find(|problem| problem.code == "unknown_field").unwrap();
    match expected {
        Some(near) => {
            assert!(unknown.message.ends_with(&format!("did you mean {near:?}?")), "{}", unknown.message)
        }
        None => assert!(unknown.message.contains("known fields: file_path, limit"), "{}", unknown.message),
    }
}

#[test]
fn problems_are_described_one_line_each() {
    let problems =
        typed().check(&json!({"limit": "many\nlines", "mode": "cont", "tags": "x", "a\nb": 1})).unwrap_err();
    let expected = "the input for Edit does not fit its schema:
- /a b: unknown field \"a\\nb\"; known fields: file_path, limit, ratio, replace_all, tags, lines, mode, range, target, slug
- /file_path: required field \"file_path\" is missing (string)
- /limit: expected integer or null, given string \"many\\nlines\"
- /mode: expected one of \"content\", \"count\", given string \"cont\"; did you mean \"count\"?
- /tags: expected array, given string \"x\"";
    assert_eq!(describe("Edit", &problems), expected);
}

#[test]
fn problems_are_capped_counted_and_in_the_order_of_the_input() {
    let items: Vec<Value> = (0..120).map(|n| json!(format!("x{n}"))).collect();
    let problems = typed().check(&json!({"file_path": "a", "lines": items})).unwrap_err();
    assert_eq!(problems.len(), 51);
    assert_eq!(problems[10].path, "/lines/10");
    assert_eq!((problems[50].code, problems[50].given.as_str()), ("more", "70 more"));
}

#[test]
fn the_same_problem_is_reported_once() {
    let twice = json!({"allOf": [{"type": "integer"}, {"type": "integer"}], "type": "integer"});
    assert_eq!(codes(&holding(twice), &json!({"v": "x"})).len(), 1);
}

#[test]
fn huge_values_are_quoted_in_part() {
    let huge = "é".repeat(1_000_000);
    let problems =
        typed().check(&json!({"file_path": 1, "limit": huge, "mode": huge, huge.clone(): 1})).unwrap_err();
    assert_eq!(problems.len(), 4);
    assert!(describe("Edit", &problems).len() < 4_000);
}

#[test]
fn deep_input_is_refused() {
    let nested = |levels| (0..levels).fold(json!(1), |inner, _| Value::Array(vec![inner]));
    let schema = foreign(json!({}));
    let mut input = json!({"v": nested(500)});
    assert_eq!(codes(&schema, &input), [(String::new(), "too_deep")]);
    assert_eq!(schema.coerce(&mut input), []);
    assert_eq!(codes(&schema, &json!({"v": nested(127)})), []);
}

#[test]
fn a_broken_built_in_schema_is_a_problem_not_a_panic() {
    let schema = InputSchema::trusted(json!({"type": "objekt"}));
    assert!(schema.verify().is_err());
    assert_eq!(codes(&schema, &json!({})), [(String::new(), "broken_schema")]);
    assert!(typed().verify().is_ok());
}

#[rstest]
#[case::integer(json!({"type": "integer"}), json!("5"), json!(5))]
#[case::negative(json!({"type": "integer"}), json!("-12"), json!(-12))]
#[case::largest(json!({"type": "integer"}), json!("18446744073709551615"), json!(u64::MAX))]
#[case::number(json!({"type": "number"}), json!("1.5"), json!(1.5))]
#[case::number_without_fraction(json!({"type": "number"}), json!("5"), json!(5))]
#[case::number_with_zero_fraction(json!({"type": "number"}), json!("5.0"), json!(5.0))]
#[case::boolean(json!({"type": "boolean"}), json!("true"), json!(true))]
#[case::array(json!({"type": "array"}), json!("[1, 2]"), json!([1, 2]))]
#[case::object(json!({"type": "object"}), json!(" {\"a\": 1}\n"), json!({"a": 1}))]
#[case::array_of_numbers(json!({"type": "array", "items": {"type": "integer"}}), json!("[\"1\", 2]"), json!([1, 2]))]
#[case::nullable(json!({"type": ["integer", "null"]}), json!("5"), json!(5))]
#[case::any_of(json!({"anyOf": [{"type": "boolean"}, {"type": "integer"}]}), json!("5"), json!(5))]
#[case::enumeration(json!({"enum": [1, 2]}), json!("2"), json!(2))]
#[case::all_of(json!({"allOf": [{"type": "integer"}, {"minimum": 0}]}), json!("5"), json!(5))]
#[case::item(json!({"items": {"type": "integer"}}), json!([1, "2"]), json!([1, 2]))]
#[case::prefix_item(json!({"prefixItems": [{"type": "boolean"}], "items": {"type": "integer"}}), json!(["true", "2"]), json!([true, 2]))]
#[case::other_fields(json!({"additionalProperties": {"type": "integer"}}), json!({"a/b": "2"}), json!({"a/b": 2}))]
#[case::branch_by_tag(
    json!({"anyOf": [{"properties": {"t": {"const": "a"}, "n": {"type": "integer"}}}, {"properties": {"t": {"const": "b"}, "n": {"type": "boolean"}}}]}),
    json!({"t": "a", "n": "5"}), json!({"t": "a", "n": 5}))]
#[case::branch_by_kind(
    json!({"anyOf": [{"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["m"]}, {"type": "null"}]}),
    json!({"n": "5"}), json!({"n": 5}))]
fn repairs(#[case] inner: Value, #[case] given: Value, #[case] expected: Value) {
    let schema = holding(inner);
    let mut input = json!({"v": given, "other": "5"});
    let made = schema.coerce(&mut input);
    assert_eq!(input, json!({"v": expected, "other": "5"}));
    assert_eq!(
        made.len(),
        1.max(given.as_array().map_or(0, |items| items.iter().filter(|v| v.is_string()).count()))
    );
    assert_eq!(schema.coerce(&mut input), []);
}

#[rstest]
#[case::fraction_for_integer(json!({"type": "integer"}), json!("5.5"))]
#[case::zero_fraction_for_integer(json!({"type": "integer"}), json!("5.0"))]
#[case::overflow(json!({"type": "number"}), json!("1e999"))]
#[case::exponent(json!({"type": "number"}), json!("1e5"))]
#[case::hexadecimal(json!({"type": "integer"}), json!("0x10"))]
#[case::spaces(json!({"type": "integer"}), json!(" 5 "))]
#[case::plus(json!({"type": "integer"}), json!("+5"))]
#[case::leading_zero(json!({"type": "integer"}), json!("007"))]
#[case::minus_zero(json!({"type": "integer"}), json!("-0"))]
#[case::beyond_u64(json!({"type": "integer"}), json!("18446744073709551616"))]
#[case::too_many_digits(json!({"type": "number"}), json!("0.12345678901234567"))]
#[case::too_long_for_a_number(json!({"type": "number"}), json!("0.0000000000000000000001"))]
#[case::empty(json!({"type": "integer"}), json!(""))]
#[case::not_a_number(json!({"type": "number"}), json!("NaN"))]
#[case::capital(json!({"type": "boolean"}), json!("True"))]
#[case::one_for_true(json!({"type": "boolean"}), json!("1"))]
#[case::number_for_boolean(json!({"type": "boolean"}), json!(1))]
#[case::number_for_string(json!({"type": "string"}), json!(5))]
#[case::object_for_array(json!({"type": "array"}), json!("{}"))]
#[case::cut_json(json!({"type": "array"}), json!("[1, 2"))]
#[case::plain_string_for_array(json!({"type": "array"}), json!("a"))]
#[case::string_allowed(json!({"type": ["integer", "string"], "maxLength": 0}), json!("5"))]
#[case::string_allowed_in_a_branch(json!({"anyOf": [{"type": "integer"}, {"type": "string", "pattern": "^x"}]}), json!("5"))]
#[case::string_in_list(json!({"enum": [5, "6"]}), json!("5"))]
#[case::anything(json!({"minimum": 9, "not": {"const": "5"}}), json!("5"))]
#[case::branches_disagree(
    json!({"anyOf": [{"type": "object", "properties": {"a": {"type": "integer"}}}, {"type": "object", "properties": {"b": {"type": "integer"}}}], "required": ["c"]}),
    json!({"a": "1", "b": "2"}))]
fn leaves_alone(#[case] inner: Value, #[case] given: Value) {
    let schema = holding(inner);
    let mut input = json!({"v": given});
    assert_eq!(schema.coerce(&mut input), []);
    assert_eq!(input, json!({"v": given}));
    assert!(schema.check(&input).is_err(), "the case proves nothing if the input fits");
}

/// Older drafts ignore what stands beside a reference, so here a string fits too.
#[test]
fn an_input_that_fits_is_left_alone_whatever_the_schema_seems_to_say() {
    let schema = foreign(json!({"$schema": "http://json-schema.org/draft-07/schema#",
        "properties": {"v": {"$ref": "#/definitions/any", "type": "integer"}}, "definitions": {"any": {}}}));
    let mut input = json!({"v": "5"});
    assert_eq!(schema.coerce(&mut input), []);
    assert_eq!(codes(&schema, &input), []);
}

#[test]
fn a_typed_input_is_repaired_in_many_places() {
    let mut input = json!({"file_path": "5", "limit": "7", "replace_all": "false", "lines": "[1, \"2\"]",
        "range": {"start": "1", "end": 2}, "target": {"kind": "line", "number": "3"}});
    let made = typed().coerce(&mut input);
    assert_eq!(
        input,
        json!({"file_path": "5", "limit": 7, "replace_all": false, "lines": [1, 2],
        "range": {"start": 1, "end": 2}, "target": {"kind": "line", "number": 3}})
    );
    assert_eq!(made[0], Coercion { path: "/limit".into(), from: "\"7\"".into(), to: "7".into() });
    assert_eq!(made.len(), 5);
    assert_eq!(codes(&typed(), &input), []);
}

#[test]
fn repairs_are_made_beside_other_problems() {
    let mut input = json!({"limit": "7", "nope": 1});
    assert_eq!(typed().coerce(&mut input).len(), 1);
    assert_eq!(codes(&typed(), &input).len(), 2);
}

/// Inputs that fit, nearly fit or do not fit [`Input`].
fn any_input() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!("5")),
        Just(json!("true")),
        Just(json!("[1]")),
        Just(json!("{\"start\": \"1\", \"end\": 2}")),
        Just(json!(5)),
        Just(json!(1.5)),
        Just(json!(true)),
        Just(json!(null)),
        Just(json!("count")),
        Just(json!("line")),
        "[a-z]{0,6}".prop_map(Value::from),
    ];
    let key = prop::sample::select(vec![
        "file_path",
        "limit",
        "ratio",
        "replace_all",
        "tags",
        "lines",
        "mode",
        "range",
        "target",
        "slug",
        "start",
        "end",
        "kind",
        "number",
        "x",
    ]);
    let value = leaf.prop_recursive(3, 24, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(key.clone(), inner, 0..6).prop_map(|map| json!(map)),
        ]
    });
    prop_oneof![
        value.clone(),
        prop::collection::hash_map("file_path|limit|lines|range|target|tags", value, 0..6).prop_map(
            |mut map| {
                map.insert("file_path".into(), json!("5"));
                json!(map)
            }
        )
    ]
}

/// Schemas made of the pieces that repairs look at.
fn any_schema() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(json!({"type": "integer"})),
        Just(json!({"type": "string"})),
        Just(json!({"type": ["boolean", "null"]})),
        Just(json!({"enum": [5, true]})),
        Just(json!({"const": "5"})),
        Just(json!({})),
        Just(json!(false)),
        Just(json!({"type": "array", "items": {"type": "number"}})),
        Just(json!({"$ref": "#/properties/limit"})),
    ];
    leaf.prop_recursive(3, 16, 3, |inner| {
        let list = prop::collection::vec(inner.clone(), 1..4);
        let word = prop::sample::select(vec!["anyOf", "oneOf", "allOf"]);
        let key = prop::sample::select(vec!["limit", "lines", "range", "start", "end"]);
        prop_oneof![
            (word, list.clone()).prop_map(|(word, list)| json!({ word: list })),
            inner.clone().prop_map(|one| json!({"items": one})),
            inner.clone().prop_map(|one| json!({"additionalProperties": one})),
            inner.clone().prop_map(|one| json!({"not": one})),
            (prop::collection::hash_map(key, inner, 1..3))
                .prop_map(|map| json!({"type": "object", "properties": map})),
        ]
    })
}

fn obeys_the_laws_of_repair(schema: &InputSchema, input: &Value) -> Result<(), TestCaseError> {
    let mut repaired = input.clone();
    let made = schema.coerce(&mut repaired);
    if schema.check(input).is_ok() {
        prop_assert_eq!(&repaired, input);
        prop_assert!(schema.check(&repaired).is_ok());
    }
    prop_assert_eq!(made.is_empty(), &repaired == input);
    let once = repaired.clone();
    prop_assert_eq!(schema.coerce(&mut repaired), vec![]);
    prop_assert_eq!(once, repaired);
    Ok(())
}

proptest! {
    #[test]
    fn repair_of_a_typed_input_is_lawful(input in any_input()) {
        obeys_the_laws_of_repair(&typed(), &input)?;
    }

    #[test]
    fn repair_by_any_schema_is_lawful(inner in any_schema(), input in any_input()) {
        let schema = json!({"properties": {"limit": {"type": "integer"}}, "allOf": [inner]});
        obeys_the_laws_of_repair(&foreign(schema), &input)?;
    }

    #[test]
    fn checking_agrees_with_the_validator(inner in any_schema(), input in any_input()) {
        let schema = json!({"type": "object", "properties": {"limit": {"type": "integer"}}, "allOf": [inner]});
        let fits = jsonschema::validator_for(&schema).unwrap().is_valid(&input);
        let problems = foreign(schema).check(&input).err().unwrap_or_default();
        prop_assert_eq!(fits, problems.is_empty());
        prop_assert!(problems.iter().all(|problem| !problem.message.is_empty() && problem.message.len() < 2_500));
    }
}
