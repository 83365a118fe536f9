use std::time::Duration;

use gripper_runtime::{
    permissions::{Scope, Source},
    settings::Node,
};
use rstest::rstest;
use serde_json::{Value, json};

use super::{CALL_LIMIT, Endpoint, expand, read};

fn file(scope: Scope, value: Value) -> Node {
    Node::parse(&value.to_string(), &Source::of(scope)).unwrap().0
}

#[rstest]
#[case::plain("a", Ok("a"))]
#[case::variable("x${A}y", Ok("xoney"))]
#[case::default_not_needed("${A:-b}", Ok("one"))]
#[case::default("${B:-b c}", Ok("b c"))]
#[case::empty_takes_the_default("${E:-b}", Ok("b"))]
#[case::empty("${E}", Ok(""))]
#[case::two("${A}${A}", Ok("oneone"))]
#[case::not_closed("${A", Ok("${A"))]
#[case::dollar_alone("$A", Ok("$A"))]
#[case::missing("${B}", Err("the variable B is not set: set it, or write ${B:-default}"))]
fn variables_are_filled_in(#[case] text: &str, #[case] expected: Result<&str, &str>) {
    let env = [("A".into(), "one".into()), ("E".into(), "".into())];
    assert_eq!(expand(text, &env), expected.map(str::to_owned).map_err(str::to_owned));
}

#[rstest]
#[case::nothing(json!({}), "a stdio server needs a \"command\"")]
#[case::no_url(json!({"type": "http"}), "needs a \"url\" that begins with")]
#[case::file_url(json!({"type": "sse", "url": "file:///etc/passwd"}), "needs a \"url\" that begins with")]
#[case::kind(json!({"type": "ws", "url": "http://a"}), "there is no type \"ws\": use stdio, http or sse")]
#[case::header(json!({"url": "http://a", "headers": {"a b": "c"}}), "\"a b\" cannot be sent as a header")]
#[case::variable(json!({"command": "${NONE}"}), "the variable NONE is not set")]
fn a_bad_entry_is_named_and_the_others_stay(#[case] bad: Value, #[case] why: &str) {
    let both = file(Scope::User, json!({"bad": bad, "good": {"command": "true"}}));
    let (servers, wrong) = read(&[both], &[]);
    assert_eq!(servers.iter().map(|server| server.name.as_str()).collect::<Vec<_>>(), ["good"]);
    assert_eq!(wrong.len(), 1);
    assert!(wrong[0].what.contains("the server \"bad\" does not count: ") && wrong[0].what.contains(why));
}

#[test]
fn the_strongest_file_counts_whole() {
    let user = json!({"a": {"command": "u", "args": ["x"], "trusted": true}, "b": {"url": "http://b"}});
    let project = json!({"a": {"command": "p", "trusted": true, "timeout": 5}, "off": {"disabled": true}});
    let (servers, wrong) = read(&[file(Scope::User, user), file(Scope::Project, project)], &[]);
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(servers.len(), 2);
    let Endpoint::Stdio { command, args, .. } = &servers[0].endpoint else { panic!("{servers:?}") };
    assert_eq!((command.as_str(), args.len(), servers[0].trusted), ("p", 0, false));
    assert_eq!(servers[0].call_limit, Duration::from_secs(5));
    assert_eq!(servers[1].endpoint.kind(), "http");
}

#[rstest]
#[case(json!(0.5), Duration::from_millis(500))]
#[case(json!(999), Duration::from_secs(999))]
#[case(json!(1000), Duration::from_secs(1))]
#[case(json!(0), CALL_LIMIT)]
fn limits_are_seconds_or_milliseconds(#[case] written: Value, #[case] meant: Duration) {
    let (servers, _) = read(&[file(Scope::User, json!({"a": {"command": "a", "timeout": written}}))], &[]);
    assert_eq!(servers[0].call_limit, meant);
}
