//! The toolbox of an agent below another: policy flows down, grants flow up, and nothing gets wider.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::sync::Arc;

use gripper_runtime::{
    CallRequest, Child, SubAgent, Toolbox,
    approve::{Answer, Approver, Ask, Reply, Worker},
    permissions::{Mode, Rule, RuleList, Scope, Source},
};
use gripper_testkit::{Probe, run_all, toolbox_of};
use rstest::rstest;
use serde_json::json;

/// Says yes for the whole session, whoever asks.
struct Generous;

impl Approver for Generous {
    fn push(&self, ask: Ask, reply: Reply) {
        assert_eq!(&*ask.agent, "child-1");
        reply.answer(Answer::granting(ask.offer()));
    }

    fn remove(&self, _id: &str) {}
}

fn above(mode: Mode) -> Arc<Toolbox> {
    let tools = ["One", "Two"].map(Probe::noop).into_iter().chain([Probe::external(
        "srv",
        "mcp__srv__x",
        "",
        json!({ "type": "object" }),
    )]);
    let toolbox = toolbox_of(tools).approver(Arc::new(Generous)).build();
    toolbox.update_policy(|policy| policy.with_mode(mode));
    toolbox
}

fn below(above: &Arc<Toolbox>, mode: Option<Mode>, granted: Option<&[&str]>) -> Arc<Toolbox> {
    let (worker, inbox) = Worker::new();
    tokio::spawn(inbox.serve(above.approver().clone()));
    let granted = granted.map(|names| names.iter().map(|name| (*name).to_owned()).collect());
    above.child(Child {
        id: "child-1".into(),
        kind: "kind".into(),
        viewer: SubAgent { may_delegate: true, granted, ..SubAgent::default() },
        mode,
        denied: (Vec::new(), Source::of(Scope::User)),
        more: Vec::new(),
        approver: Arc::new(worker),
        hooked: true,
    })
}

async fn call(toolbox: &Arc<Toolbox>, tool: &str) -> String {
    run_all(toolbox, [CallRequest::new("c", tool, json!({}))]).await[0].to_string()
}

#[rstest]
#[case(Mode::Default, Some(Mode::Plan), Mode::Plan)]
#[case(Mode::Default, Some(Mode::DontAsk), Mode::DontAsk)]
#[case(Mode::Default, Some(Mode::AcceptEdits), Mode::Default)]
#[case(Mode::Plan, Some(Mode::Default), Mode::Plan)]
#[case(Mode::DontAsk, Some(Mode::Default), Mode::DontAsk)]
#[case(Mode::AcceptEdits, Some(Mode::Auto), Mode::AcceptEdits)]
#[case(Mode::Auto, Some(Mode::BypassPermissions), Mode::Auto)]
#[case(Mode::BypassPermissions, Some(Mode::AcceptEdits), Mode::AcceptEdits)]
#[case(Mode::BypassPermissions, None, Mode::BypassPermissions)]
#[tokio::test]
async fn a_mode_only_gets_narrower(#[case] of: Mode, #[case] wanted: Option<Mode>, #[case] expected: Mode) {
    let above = above(of);
    assert_eq!(below(&above, wanted, None).policy().mode, expected);
}

#[tokio::test]
async fn what_changes_above_is_in_force_below_at_once() {
    let above = above(Mode::BypassPermissions);
    let child = below(&above, None, None);
    let grandchild = below(&child, None, None);
    assert!(!call(&grandchild, "One").await.contains("not permitted"));
    above.update_policy(|policy| {
        let mut policy = policy.clone();
        policy.rules.add(RuleList::Deny, Rule::parse("One").unwrap(), Source::of(Scope::User));
        policy
    });
    assert!(call(&grandchild, "One").await.contains("deny rule"), "a rule added above holds");
    above.update_policy(|policy| policy.with_mode(Mode::Plan));
    assert_eq!((child.policy().mode, grandchild.policy().mode), (Mode::Plan, Mode::Plan));
    above.set_foreign_tools(
        [Probe::external("new", "mcp__new__y", "", json!({ "type": "object" }))],
        Vec::new(),
    );
    assert!(grandchild.pool().get("mcp__new__y").is_some(), "servers that come later serve all");
}

#[tokio::test]
async fn a_grant_below_is_one_of_the_session() {
    let above = above(Mode::Default);
    let (child, other) = (below(&above, None, None), below(&above, None, None));
    assert!(!call(&child, "mcp__srv__x").await.contains("not permitted"));
    for toolbox in [&above, &child, &other] {
        let granted = toolbox
            .policy()
            .rules
            .list(RuleList::Allow)
            .iter()
            .any(|rule| rule.source.scope == Scope::Session);
        assert!(granted);
    }
}

#[tokio::test]
async fn nobody_gives_on_tools_it_has_not() {
    let above = above(Mode::Default);
    let names = |toolbox: &Toolbox| -> Vec<String> {
        toolbox.pool().tools().iter().map(|tool| tool.spec().name.to_string()).collect()
    };
    let child = below(&above, None, Some(&["One", "mcp__srv"]));
    assert_eq!(names(&child), ["One", "mcp__srv__x"]);
    assert_eq!(names(&below(&child, None, None)), ["One", "mcp__srv__x"]);
    assert_eq!(names(&below(&child, None, Some(&["Two", "mcp__srv__x"]))), ["mcp__srv__x"]);
}
