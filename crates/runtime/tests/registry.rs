//! Which tools there are, which an agent gets, and which are held back.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{collections::BTreeSet, sync::Arc};

use gripper_runtime::{
    Access, Deferral, DynTool, Facts, Pool, Registry, RegistryError, SubAgent, Viewer, assemble_pool,
    permissions::{Policy, Rule, RuleList, Source},
    tool::{Audience, Background, ErrorCode, Loading},
};
use gripper_testkit::{Probe, text};
use rstest::rstest;
use serde_json::json;

fn tool(name: &'static str, facts: Facts) -> Arc<dyn DynTool> {
    Probe::tool(name, facts, |_| Access::nothing(), |_, _| Box::pin(async { Ok(text("ok")) }))
}

fn external(server: &str, name: &str) -> Arc<dyn DynTool> {
    Probe::external(server, name, "Outside.", json!({"type": "object"}))
}

fn registry(tools: impl IntoIterator<Item = Arc<dyn DynTool>>) -> Registry {
    let mut registry = Registry::default();
    for tool in tools {
        registry.register(tool).unwrap();
    }
    registry
}

fn pool(registry: &Registry, viewer: Viewer) -> Pool {
    assemble_pool(registry, &Policy::new("/project"), &viewer, Vec::new())
}

fn names(pool: &Pool) -> Vec<&str> {
    pool.tools().iter().map(|tool| tool.spec().name.as_ref()).collect()
}

#[test]
fn names_and_aliases_lead_to_the_tool() {
    let registry = registry([tool("KillShell", Facts { aliases: &["KillBash"], ..Facts::DEFAULT })]);
    assert_eq!(registry.get("KillBash").unwrap().spec().name, "KillShell");
    let pool = pool(&registry, Viewer::Main);
    assert_eq!(pool.get("KillBash").unwrap().spec().name, "KillShell");
    assert!(pool.get("killbash").is_none());
}

#[test]
fn duplicates_are_refused_and_replacing_is_explicit() {
    let mut registry = registry([tool("A", Facts { aliases: &["Old"], ..Facts::DEFAULT })]);
    for taken in ["A", "Old"] {
        let error = registry.register(external("srv", taken)).unwrap_err();
        assert_eq!(error, RegistryError::Duplicate { name: taken.into(), server: Some("srv".into()) });
        assert!(error.to_string().contains("offered again by server srv"));
    }
    registry.replace(tool("A", Facts { aliases: &["New"], ..Facts::DEFAULT })).unwrap();
    assert!(registry.get("Old").is_none() && registry.get("New").is_some());
    assert_eq!(registry.iter().count(), 1);
}

#[rstest]
#[case::empty("")]
#[case::space("a b")]
#[case::control("a\u{1b}[2J")]
#[case::slash("../x")]
fn names_that_cannot_be_used(#[case] name: &str) {
    let error = Registry::default().register(external("srv", name)).unwrap_err();
    assert!(matches!(error, RegistryError::BadName(_)));
    let long = "x".repeat(129);
    assert!(Registry::default().register(external("srv", &long)).is_err());
}

#[test]
fn a_server_never_moves_a_built_in() {
    let mut registry = registry([tool("Zeta", Facts::DEFAULT), tool("Alpha", Facts::DEFAULT)]);
    let before = pool(&registry, Viewer::Main);
    assert_eq!(names(&before), ["Alpha", "Zeta"]);
    registry.register(external("b", "mcp__b__x")).unwrap();
    registry.register(external("a", "Beta")).unwrap();
    let after = pool(&registry, Viewer::Main);
    assert_eq!(names(&after), ["Alpha", "Zeta", "Beta", "mcp__b__x"]);
    assert_ne!(before.generation(), after.generation());
    assert_eq!(names(&before), ["Alpha", "Zeta"], "a snapshot does not change");
}

#[test]
fn what_is_left_out_says_why() {
    let registry = registry([
        Probe::unavailable("PowerShell", "pwsh is not installed"),
        tool("Web", Facts::DEFAULT),
        external("srv", "mcp__srv__x"),
        external("srv2", "mcp__srv2__x"),
    ]);
    let mut policy = Policy::new("/project");
    for rule in ["Web", "mcp__srv"] {
        policy.rules.add(RuleList::Deny, Rule::parse(rule).unwrap(), Source::command_line());
    }
    let pool = assemble_pool(&registry, &policy, &Viewer::Main, Vec::new());
    assert_eq!(names(&pool), ["mcp__srv2__x"]);
    assert_eq!(pool.absence("PowerShell").unwrap().reason, "pwsh is not installed");
    assert_eq!(pool.absence("PowerShell").unwrap().code, ErrorCode::Disabled);
    assert_eq!(pool.absence("Web").unwrap().code, ErrorCode::Denied);
    assert_eq!(pool.absence("mcp__srv__x").unwrap().reason, "deny rule mcp__srv (command line)");
    assert!(pool.absence("mcp__srv2__x").is_none());
}

/// Stand-ins with the facts that the real tools of these names declare.
fn cast() -> Registry {
    registry([
        tool("Task", Facts { audience: Audience::Delegating, ..Facts::DEFAULT }),
        tool("AskUserQuestion", Facts { audience: Audience::MainAgent, ..Facts::DEFAULT }),
        tool(
            "Inner",
            Facts { audience: Audience::BuiltinAgents, background: Background::Always, ..Facts::DEFAULT },
        ),
        tool("Read", Facts { background: Background::Always, ..Facts::DEFAULT }),
        tool("Edit", Facts { background: Background::Always, edits_files: true, ..Facts::DEFAULT }),
        tool("Write", Facts { background: Background::WhenGranted, edits_files: true, ..Facts::DEFAULT }),
        tool("Sleep", Facts::DEFAULT),
        external("srv", "mcp__srv__x"),
    ])
}

fn granted(names: &[&str]) -> Option<BTreeSet<String>> {
    Some(names.iter().map(|name| (*name).to_owned()).collect())
}

#[rstest]
#[case::plain(SubAgent::default(), &["Edit", "Inner", "Read", "Sleep", "Write", "mcp__srv__x"])]
#[case::may_delegate(SubAgent { may_delegate: true, ..SubAgent::default() }, &["Edit", "Inner", "Read", "Sleep", "Task", "Write", "mcp__srv__x"])]
#[case::custom(SubAgent { custom: true, ..SubAgent::default() }, &["Edit", "Read", "Sleep", "Write", "mcp__srv__x"])]
#[case::background(SubAgent { background: true, ..SubAgent::default() }, &["Edit", "Inner", "Read", "mcp__srv__x"])]
#[case::background_granted(SubAgent { background: true, granted: granted(&["Write", "Sleep", "Read"]), ..SubAgent::default() }, &["Read", "Write"])]
#[case::explores(SubAgent { explores: true, may_delegate: true, ..SubAgent::default() }, &["Inner", "Read", "Sleep", "mcp__srv__x"])]
#[case::granted_cannot_widen(SubAgent { granted: granted(&["AskUserQuestion", "Read"]), ..SubAgent::default() }, &["Read"])]
fn sub_agents_get_what_is_meant_for_them(#[case] agent: SubAgent, #[case] expected: &[&str]) {
    assert_eq!(names(&pool(&cast(), Viewer::Sub(agent))), expected);
}

#[test]
fn the_main_agent_gets_everything() {
    assert_eq!(pool(&cast(), Viewer::Main).tools().len(), 8);
}

fn many(count: usize) -> Registry {
    let mut tools = vec![
        tool("Read", Facts::DEFAULT),
        tool("Rare", Facts { loading: Loading::Deferrable, ..Facts::DEFAULT }),
    ];
    tools.extend((0..count).map(|n| external("srv", &format!("mcp__srv__tool_{n}"))));
    registry(tools)
}

#[rstest]
#[case::never("never", 1_000, 0)]
#[case::always("always", 1_000, 1_001)]
#[case::under_the_share("auto", 10, 0)]
#[case::over_the_share("auto", 1_000, 1_001)]
#[case::larger_share("auto:90", 1_000, 0)]
fn schemas_are_held_back(#[case] setting: &str, #[case] count: usize, #[case] expected: usize) {
    let pool = pool(&many(count), Viewer::Main);
    let deferral: Deferral = setting.parse().unwrap();
    let announcement = pool.announce(deferral, 100_000, &BTreeSet::new());
    assert_eq!(announcement.names.len(), expected);
    assert_eq!(announcement.full.len() + announcement.names.len(), count + 2);
    assert!(!announcement.names.contains(&"Read"), "what is always loaded stays");
    let loaded = BTreeSet::from(["Rare".to_owned()]);
    assert!(!pool.announce(deferral, 100_000, &loaded).names.contains(&"Rare"));
}

#[rstest]
#[case("sometimes")]
#[case("auto:0")]
#[case("auto:101")]
#[case("auto:x")]
fn bad_deferrals(#[case] text: &str) {
    assert!(text.parse::<Deferral>().unwrap_err().to_string().contains(text));
}

#[test]
fn searches_find_deferrable_tools_and_selections_any() {
    let pool = pool(&many(50), Viewer::Main);
    let (found, _) = pool.search("tool 7", 3);
    assert_eq!(found[0].spec().name, "mcp__srv__tool_7");
    assert!(found.len() <= 3);
    let (found, _) = pool.search("read", 3);
    assert!(found.iter().all(|tool| tool.spec().name != "Read"), "it is loaded already");
    let (found, missing) = pool.search("select:rare,READ,Nope", 1);
    let found: Vec<&str> = found.iter().map(|tool| tool.spec().name.as_ref()).collect();
    assert_eq!((found, missing), (vec!["Rare", "Read"], vec!["Nope".to_owned()]));
}
