//! The five stages: what stops a call, what changes it, what is said about it.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{sync::Arc, time::Duration};

use gripper_runtime::{
    Access, CallRequest, CallResult, DynTool, Event, Facts, Observer, Resource, Toolbox, ToolboxBuilder, Use,
    approve::{Answer, Grant, SaveRule, SaveTo},
    hooks::{self, HookSet, RewriteTrust},
    permissions::{HookOpinion, Mode, Policy, Rule, RuleList, Source},
    results::{ResultsStore, StoreLimits, Strategy},
    tool::{ErrorCode, Interrupt, ResultBound, SessionEffect, ToolSpec},
};
use gripper_testkit::{
    Probe, RecordingApprover, Seen, World, file_seen, results_of, run_all, settings, text, toolbox_of,
};
use rstest::rstest;
use serde_json::{Value, json};

fn call(id: &str, tool: &str, input: Value) -> CallRequest {
    CallRequest::new(id, tool, input)
}

fn code(result: &CallResult) -> &'static str {
    result.error_code.map_or("ok", ErrorCode::name)
}

/// Echoes its input.
fn echo(name: &'static str) -> Arc<dyn DynTool> {
    Probe::tool(
        name,
        Facts::DEFAULT,
        |_| Access::nothing(),
        |input, _| {
            let words = input.to_string();
            Box::pin(async move { Ok(text(&words)) })
        },
    )
}

/// A tool of a server, that no rule allows.
fn external(name: &str, schema: Value) -> Arc<dyn DynTool> {
    Probe::external("srv", name, "An outside tool.", schema)
}

fn with_policy(tools: Vec<Arc<dyn DynTool>>, change: impl FnOnce(&mut Policy)) -> ToolboxBuilder {
    let mut registry = gripper_runtime::Registry::default();
    for tool in tools {
        registry.register(tool).unwrap();
    }
    let mut policy = Policy::new("/project");
    change(&mut policy);
    Toolbox::builder(registry, policy)
}

fn rule(policy: &mut Policy, list: RuleList, rule: &str) {
    policy.rules.add(list, Rule::parse(rule).unwrap(), Source::command_line());
}

#[tokio::test]
async fn unknown_tools_get_near_names() {
    let toolbox = toolbox_of([echo("Read"), echo("ReadMany"), echo("Write")]).build();
    let results = run_all(&toolbox, [call("c1", "raed", json!({})), call("c2", "Zebra", json!({}))]).await;
    assert_eq!(results[0].to_string(), "there is no tool called \"raed\": did you mean Read, ReadMany?");
    assert_eq!(results[1].to_string(), "there is no tool called \"Zebra\"");
    assert!(results.iter().all(|result| code(result) == "unknown_tool"));
}

#[tokio::test]
async fn all_problems_at_once() {
    let schema = json!({
        "type": "object", "required": ["path"], "additionalProperties": false,
        "properties": {"path": {"type": "string"}, "count": {"type": "integer", "minimum": 1}},
    });
    let toolbox = toolbox_of([external("mcp__srv__x", schema)]).build();
    let input = json!({"count": 0, "pth": "a", "extra": []});
    let results =
        run_all(&toolbox, [call("c1", "mcp__srv__x", input), call("c2", "mcp__srv__x", json!([1]))]).await;
    let problems = results[0].structured.as_ref().unwrap()["problems"].as_array().unwrap().clone();
    let seen: Vec<(String, String)> = problems
        .iter()
        .map(|problem| (problem["path"].as_str().unwrap().into(), problem["code"].as_str().unwrap().into()))
        .collect();
    let expected = [
        ("/count", "out_of_range"),
        ("/extra", "unknown_field"),
        ("/path", "missing"),
        ("/pth", "unknown_field"),
    ];
    assert_eq!(seen, expected.map(|(path, code)| (path.to_owned(), code.to_owned())));
    assert_eq!(results[1].structured.as_ref().unwrap()["problems"].as_array().unwrap().len(), 1);
    assert!(results.iter().all(|result| code(result) == "invalid_input"));
}

#[tokio::test]
async fn harmless_repairs_are_made_and_mentioned() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}, "on": {"type": "boolean"}, "list": {"type": "array"}}});
    let toolbox = with_policy(vec![external("mcp__srv__x", schema)], |policy| {
        rule(policy, RuleList::Allow, "mcp__srv")
    })
    .build();
    let results =
        run_all(&toolbox, [call("c1", "mcp__srv__x", json!({"n": "5", "on": "true", "list": "[1]"}))]).await;
    let words = results[0].to_string();
    assert!(words.starts_with(r#"{"n":5,"on":true,"list":[1]}"#), "{words}");
    assert!(words.contains("(input /n: "), "{words}");
}

#[tokio::test]
async fn huge_input_is_refused_with_its_limit() {
    let toolbox = toolbox_of([echo("Echo")]).build();
    let results = run_all(
        &toolbox,
        [call("c1", "Echo", json!({"text": "x".repeat(10_000_000)})), call("c2", "Echo", json!({}))],
    )
    .await;
    assert_eq!(code(&results[0]), "too_large");
    assert!(results[0].to_string().contains("4194304 bytes"));
    assert_eq!(code(&results[1]), "ok");
}

#[test]
fn schema_bombs_are_refused_at_the_door() {
    let mut deep = json!({"type": "string"});
    for _ in 0..200 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    let mut doubling = serde_json::Map::new();
    for n in 0..40 {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        doubling.insert(format!("d{n}"), json!({"allOf": [next.clone(), next]}));
    }
    doubling.insert("d40".into(), json!({"type": "object"}));
    for bomb in
        [deep, json!({"$ref": "#/$defs/d0", "$defs": doubling}), json!({"$ref": "http://example.invalid/x"})]
    {
        assert!(ToolSpec::external("srv", "mcp__srv__bomb".into(), String::new(), bomb).is_err());
    }
}

#[rstest]
#[case::allowed("default", &[("allow", "mcp__srv")], "ok")]
#[case::asked_headless("default", &[], "denied")]
#[case::denied("bypassPermissions", &[("deny", "mcp__srv__x")], "denied")]
#[case::bypass("bypassPermissions", &[], "ok")]
#[case::plan("plan", &[("allow", "mcp__srv")], "denied")]
#[case::dont_ask("dontAsk", &[], "denied")]
#[tokio::test]
async fn permission(#[case] mode: &str, #[case] rules: &[(&str, &str)], #[case] expected: &str) {
    let toolbox = with_policy(vec![external("mcp__srv__x", json!({"type": "object"}))], |policy| {
        policy.mode = mode.parse().unwrap();
        for (list, text) in rules {
            let list = if *list == "allow" { RuleList::Allow } else { RuleList::Deny };
            rule(policy, list, text);
        }
    })
    .build();
    let results = run_all(&toolbox, [call("c1", "mcp__srv__x", json!({}))]).await;
    assert_eq!(code(&results[0]), expected, "{}", results[0]);
}

#[tokio::test]
async fn a_headless_denial_says_which_rule_would_help() {
    let toolbox = toolbox_of([external("mcp__srv__x", json!({"type": "object"}))]).build();
    let results = run_all(&toolbox, [call("c1", "mcp__srv__x", json!({}))]).await;
    assert_eq!(
        results[0].to_string(),
        "not permitted: no rule allows mcp__srv__x (nobody can be asked here; the allow rule mcp__srv__x would settle it)"
    );
}

fn asked(approver: &Arc<RecordingApprover>) -> ToolboxBuilder {
    with_policy(
        vec![external("mcp__srv__x", json!({"type": "object", "properties": {"n": {"type": "integer"}}}))],
        |_| {},
    )
    .approver(approver.clone())
}

#[tokio::test]
async fn an_approver_may_allow_deny_or_edit() {
    let script = vec![
        Some(Answer::once()),
        Some(Answer::Deny { feedback: Some("use the other one".into()) }),
        Some(Answer::edited(json!({"n": 7}))),
        Some(Answer::edited(json!({"n": "x"}))),
    ];
    let approver = Arc::new(RecordingApprover::new(script));
    let toolbox = asked(&approver).build();
    let results =
        run_all(&toolbox, (1..=4).map(|n| call(&format!("c{n}"), "mcp__srv__x", json!({"n": n})))).await;
    assert_eq!(results[0].to_string(), r#"{"n":1}"#);
    assert_eq!(results[1].to_string(), "not permitted: no rule allows mcp__srv__x (use the other one)");
    assert_eq!(results[2].to_string(), r#"{"n":7}"#);
    assert_eq!(code(&results[3]), "invalid_input", "an edited input is checked like any other");
    assert!(approver.seen().contains(&Seen::Removed("c2".into())));
}

fn grant(rule: &str) -> Grant {
    Grant::of(Rule::parse(rule).unwrap())
}

/// Runs so many calls of which the first is answered with this grant; gives how many were asked
/// about, and what the person was told.
async fn granted(calls: u32, grant: Grant, saver: Option<Arc<dyn SaveRule>>) -> (usize, Vec<String>) {
    let script = std::iter::once(Some(Answer::granting(Some(grant))))
        .chain((1..calls).map(|_| Some(Answer::once())))
        .collect();
    let approver = Arc::new(RecordingApprover::new(script));
    let mut builder = asked(&approver);
    if let Some(saver) = saver {
        builder = builder.saver(saver);
    }
    let toolbox = builder.build();
    let calls = (1..=calls).map(|n| call(&format!("c{n}"), "mcp__srv__x", json!({"n": n})));
    let results = run_all(&toolbox, calls).await;
    assert!(results.iter().all(|result| !result.is_error));
    let mut told = Vec::new();
    let mut asked = 0;
    for seen in approver.seen() {
        match seen {
            Seen::Pushed(..) => asked += 1,
            Seen::Told(_, words) => told.push(words),
            Seen::Updated(..) | Seen::Removed(..) => {}
        }
    }
    (asked, told)
}

#[tokio::test]
async fn a_grant_settles_later_calls_as_far_as_it_goes() {
    assert_eq!(granted(3, grant("mcp__srv__x"), None).await, (1, vec![]));
    let twice = Grant { uses: Some(2), ..grant("mcp__srv__x") };
    assert_eq!(granted(5, twice, None).await, (3, vec![]), "the one it was given for, then two for nothing");
    let (asked, told) = granted(2, grant("Other"), None).await;
    assert_eq!(asked, 2);
    assert_eq!(
        told,
        ["Other does not settle such calls, they will be asked again: no rule allows mcp__srv__x"]
    );
}

/// Remembers rules, or has no room for them.
struct Shelf(bool);

impl SaveRule for Shelf {
    fn save(&self, to: SaveTo, list: RuleList, rule: &Rule) -> Result<std::path::PathBuf, String> {
        assert_eq!((list, rule.text()), (RuleList::Allow, "mcp__srv"));
        if self.0 { Ok(format!("/{to:?}").into()) } else { Err("the shelf is full".into()) }
    }
}

#[tokio::test]
async fn a_rule_is_saved_or_the_person_learns_why_not() {
    let always = || Grant { save: Some(SaveTo::Project), ..grant("mcp__srv") };
    let told = granted(2, always(), Some(Arc::new(Shelf(true)))).await;
    assert_eq!(told, (1, vec!["mcp__srv is saved in /Project".to_owned()]));
    let limited = Grant { uses: Some(9), ..always() };
    for (grant, saver, why) in [
        (always(), Some(Arc::new(Shelf(false)) as Arc<dyn SaveRule>), "the shelf is full"),
        (always(), None, "no settings files are in use here"),
        (limited, Some(Arc::new(Shelf(true)) as Arc<dyn SaveRule>), "settings files know no limits"),
    ] {
        let words = format!("mcp__srv holds for this session, but was not saved: {why}");
        assert_eq!(granted(2, grant, saver).await, (1, vec![words]));
    }
}

#[tokio::test]
async fn a_policy_change_settles_or_updates_an_open_question() {
    let approver = Arc::new(RecordingApprover::default());
    let toolbox = asked(&approver).build();
    let turn = toolbox.turn();
    turn.submit(call("c1", "mcp__srv__x", json!({})));
    turn.close();
    while approver.open().is_empty() {
        tokio::task::yield_now().await;
    }
    let mut policy = (*toolbox.policy()).clone();
    rule(&mut policy, RuleList::Ask, "mcp__srv");
    toolbox.set_policy(policy.clone());
    while !approver.seen().iter().any(|seen| matches!(seen, Seen::Updated(..))) {
        tokio::task::yield_now().await;
    }
    rule(&mut policy, RuleList::Deny, "mcp__srv");
    toolbox.set_policy(policy);
    let results = results_of(&turn).await;
    assert_eq!(results[0].to_string(), "not permitted: deny rule mcp__srv (command line)");
    assert!(!approver.answer("c1", Answer::once()), "the question is gone");
}

/// Allows the call that is being asked about, in the moment between judging and asking.
#[derive(Default)]
struct Meddler(std::sync::OnceLock<std::sync::Weak<Toolbox>>);

impl Observer for Meddler {
    fn observe(&self, _turn: &str, event: &Event) {
        if let (Event::Decision { .. }, Some(toolbox)) =
            (event, self.0.get().and_then(std::sync::Weak::upgrade))
        {
            let mut policy = (*toolbox.policy()).clone();
            rule(&mut policy, RuleList::Allow, "mcp__srv");
            toolbox.set_policy(policy);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_change_just_before_the_question_counts() {
    let meddler = Arc::new(Meddler::default());
    let toolbox = asked(&Arc::new(RecordingApprover::default())).observer(meddler.clone()).build();
    meddler.0.set(Arc::downgrade(&toolbox)).unwrap();
    let results = run_all(&toolbox, [call("c1", "mcp__srv__x", json!({}))]).await;
    assert_eq!(results[0].to_string(), "{}");
}

#[tokio::test(start_paused = true)]
async fn an_approver_that_never_answers_is_a_no() {
    let approver = Arc::new(RecordingApprover::default());
    let limit = settings(|settings| settings.approval_limit = Duration::from_secs(60));
    let toolbox = asked(&approver).settings(limit).build();
    let results = run_all(&toolbox, [call("c1", "mcp__srv__x", json!({}))]).await;
    assert_eq!(
        results[0].to_string(),
        "not permitted: nobody answered within 60 s (no rule allows mcp__srv__x)"
    );
    assert!(approver.open().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_takes_its_question_back() {
    let approver = Arc::new(RecordingApprover::default());
    let toolbox = asked(&approver).build();
    let turn = toolbox.turn();
    turn.submit(call("c1", "mcp__srv__x", json!({})));
    turn.close();
    while approver.open().is_empty() {
        tokio::task::yield_now().await;
    }
    turn.cancel();
    assert_eq!(code(&results_of(&turn).await[0]), "cancelled");
    while !approver.seen().contains(&Seen::Removed("c1".into())) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn hooks_block_decide_and_add() {
    let hooks = HookSet::new()
        .before("no-two", &["Echo"], |call| match call.input["n"].as_i64() {
            Some(2) => hooks::Answer::Block("two is unlucky".into()),
            Some(3) => hooks::Answer::Decide(HookOpinion::Deny("three is too many".into())),
            Some(4) => panic!("hook bug"),
            Some(5) => hooks::Answer::Note("five is fine".into()),
            _ => hooks::Answer::Pass,
        })
        .after("count", &["Echo"], |_, result| {
            result.is_error.then(|| "failed".into()).or(Some("seen".into()))
        });
    let toolbox = toolbox_of([echo("Echo"), echo("Other")]).hooks(Arc::new(hooks)).build();
    let mut calls: Vec<CallRequest> =
        (1..=5).map(|n| call(&format!("c{n}"), "Echo", json!({"n": n}))).collect();
    calls.push(call("c6", "Other", json!({})));
    let results = run_all(&toolbox, calls).await;
    let codes: Vec<&str> = results.iter().map(|result| code(result)).collect();
    assert_eq!(codes, ["ok", "hook_blocked", "denied", "denied", "ok", "ok"]);
    assert_eq!(results[0].to_string(), "{\"n\":1}\n\nseen");
    assert_eq!(results[1].to_string(), "a hook blocked this call: two is unlucky");
    assert!(results[3].to_string().contains("hook no-two failed"), "a hook that fails opens no door");
    assert_eq!(results[4].to_string(), "{\"n\":5}\n\nfive is fine\n\nseen");
    assert_eq!(results[5].to_string(), "{}", "other tools pay nothing");
}

#[rstest]
#[case::revalidate(RewriteTrust::Revalidate, false, "ok")]
#[case::policy_only(RewriteTrust::PolicyOnly, false, "hook_blocked")]
#[case::policy_only_managed(RewriteTrust::PolicyOnly, true, "ok")]
#[case::trust(RewriteTrust::Trust, false, "ok")]
#[tokio::test]
async fn hooks_rewrite_as_far_as_they_may(
    #[case] trust: RewriteTrust,
    #[case] managed: bool,
    #[case] expected: &str,
) {
    let mut hooks = HookSet::new().before("swap", &[], |_| hooks::Answer::Rewrite(json!({"n": 9})));
    if managed {
        hooks = hooks.managed();
    }
    let settings = settings(|settings| settings.rewrite_trust = trust);
    let toolbox = toolbox_of([echo("Echo")]).hooks(Arc::new(hooks)).settings(settings).build();
    let turn = toolbox.turn();
    turn.submit(call("c1", "Echo", json!({"n": 1})));
    turn.close();
    let (mut rewrites, mut last) = (0, None);
    while let Some(event) = turn.next().await {
        match event {
            Event::Rewrite { before, after, .. } => {
                assert_eq!((before, after), (json!({"n": 1}), json!({"n": 9})));
                rewrites += 1;
            }
            Event::Result(result) => last = Some(result),
            _ => {}
        }
    }
    let result = last.unwrap();
    assert_eq!(code(&result), expected);
    if expected == "ok" {
        assert_eq!((rewrites, result.to_string()), (1, r#"{"n":9}"#.to_owned()));
    }
}

#[tokio::test]
async fn a_rewrite_that_does_not_fit_is_refused() {
    let hooks = HookSet::new().before("break", &[], |_| hooks::Answer::Rewrite(json!("nonsense")));
    let toolbox = toolbox_of([echo("Echo")]).hooks(Arc::new(hooks)).build();
    assert_eq!(code(&run_all(&toolbox, [call("c1", "Echo", json!({}))]).await[0]), "invalid_input");
}

#[tokio::test(start_paused = true)]
async fn a_rewritten_call_keeps_its_place_in_the_order() {
    // The hook turns a write of b into a write of a; the calls behind it that read a must see it.
    let world = World::default();
    let hooks = HookSet::new().before("redirect", &["Cell"], |call| {
        if call.input["writes"] == json!(["b"]) {
            hooks::Answer::Rewrite(json!({"writes": ["a"], "delay": 10}))
        } else {
            hooks::Answer::Pass
        }
    });
    let toolbox = toolbox_of([Probe::on_world("Cell", world.clone(), false)]).hooks(Arc::new(hooks)).build();
    let calls = [
        call("c1", "Cell", json!({"writes": ["a"], "delay": 30})),
        call("c2", "Cell", json!({"writes": ["b"]})),
        call("c3", "Cell", json!({"reads": ["a"]})),
    ];
    let results = run_all(&toolbox, calls).await;
    // a: 0*3+1 = 1, then 1*3+1 = 4.
    assert_eq!(results[2].to_string(), "c3 4");
    assert_eq!(world.cells().into_iter().collect::<Vec<_>>(), [("a".to_owned(), 4)]);
}

#[tokio::test]
async fn session_effects_are_applied_in_order_and_only_from_calls_that_run_alone() {
    let alone = Access::nothing().alone();
    let tools = vec![
        Probe::effects("Cd", alone.clone(), vec![SessionEffect::SetCwd("/elsewhere".into())]),
        Probe::effects(
            "Grant",
            alone.clone(),
            vec![SessionEffect::GrantPermission(Rule::parse("mcp__srv").unwrap())],
        ),
        Probe::effects(
            "Talk",
            alone.clone(),
            vec![
                SessionEffect::InjectMessages(vec!["hi".into()]),
                SessionEffect::QueueCommand("/clear".into()),
            ],
        ),
        Probe::effects("Plan", alone, vec![SessionEffect::SetMode(Mode::Plan)]),
        Probe::effects("Bad", Access::nothing(), vec![SessionEffect::SetMode(Mode::BypassPermissions)]),
        Probe::effects(
            "See",
            Access::nothing(),
            vec![file_seen("/f"), SessionEffect::LoadTools(vec!["X".into()])],
        ),
        external("mcp__srv__x", json!({"type": "object"})),
    ];
    let toolbox = with_policy(tools, |_| {}).build();
    let names = ["Cd", "Bad", "See", "Grant", "mcp__srv__x", "Talk", "Plan", "mcp__srv__x"];
    let calls = names.iter().enumerate().map(|(n, name)| call(&format!("c{n}"), name, json!({"n": n})));
    let results = run_all(&toolbox, calls).await;
    let codes: Vec<&str> = results.iter().map(|result| code(result)).collect();
    assert_eq!(codes, ["ok", "effect_refused", "ok", "ok", "ok", "ok", "ok", "denied"]);
    assert!(results[7].to_string().contains("plan mode"));
    assert_eq!(toolbox.place().cwd, std::path::Path::new("/elsewhere"));
    assert_eq!(toolbox.policy().mode, Mode::Plan);
    assert_eq!(toolbox.policy().mode_before_plan, Some(Mode::Default));
    assert!(toolbox.files().ledger.content("/f".as_ref()).is_some() && toolbox.loaded_tools().contains("X"));
    assert_eq!(
        (toolbox.take_messages(), toolbox.take_commands()),
        (vec!["hi".to_owned()], vec!["/clear".to_owned()])
    );
    assert!(toolbox.take_messages().is_empty());
}

#[tokio::test]
async fn repeated_failures_are_noted_then_refused() {
    let world = World::default();
    let toolbox = toolbox_of([Probe::on_world("Cell", world.clone(), false)]).build();
    let fail = |n: usize| call(&format!("c{n}"), "Cell", json!({"writes": ["a"], "fail": true}));
    let results = run_all(&toolbox, (1..=6).map(fail)).await;
    let codes: Vec<&str> = results.iter().map(|result| code(result)).collect();
    assert_eq!(codes, ["failed", "failed", "failed", "failed", "repeated", "repeated"]);
    assert!(!results[0].to_string().contains("This exact call"));
    assert!(
        results[1]
            .to_string()
            .ends_with("This exact call has failed 2 times. Change the input or try another way.")
    );
    assert_eq!(world.cells()["a"], 1 + 3 * (1 + 3 * (1 + 3)), "the refused calls did not run");
}

#[tokio::test]
async fn oversized_results_are_stored_and_windowed() {
    let folder = tempfile::tempdir().unwrap();
    let store = ResultsStore::new(folder.path().join("results"), StoreLimits::default());
    let tools = [
        Probe::wordy("Bounded", ResultBound::Chars(1_000, Strategy::KeepBoth)),
        Probe::wordy("Own", ResultBound::SelfBounded),
    ];
    let toolbox = toolbox_of(tools).results(store).build();
    let calls =
        [call("c1", "Bounded", json!({"chars": 50_000})), call("c2", "Own", json!({"chars": 50_000}))];
    let results = run_all(&toolbox, calls).await;
    assert!(results[0].chars() < 2_000);
    let stored: Vec<_> = std::fs::read_dir(folder.path().join("results")).unwrap().flatten().collect();
    assert_eq!(stored.len(), 1, "what bounds itself is never stored");
    assert_eq!(std::fs::read_to_string(stored[0].path()).unwrap().chars().count(), 50_000);
    assert!(results[0].to_string().contains(&*stored[0].path().to_string_lossy()));
    assert_eq!(results[1].chars(), 50_000);
}

#[tokio::test]
async fn a_results_folder_that_cannot_be_written_costs_only_the_path() {
    let store = ResultsStore::new("/proc/no/such/place".into(), StoreLimits::default());
    let toolbox = toolbox_of([Probe::wordy("Bounded", ResultBound::Chars(1_000, Strategy::KeepEnd))])
        .results(store)
        .build();
    let results = run_all(&toolbox, [call("c1", "Bounded", json!({"chars": 50_000}))]).await;
    assert_eq!(code(&results[0]), "ok");
    assert!(results[0].chars() < 2_000);
}

#[tokio::test(start_paused = true)]
async fn the_turn_has_a_budget_and_the_largest_give_way() {
    let folder = tempfile::tempdir().unwrap();
    let store = ResultsStore::new(folder.path().join("results"), StoreLimits::default());
    let settings = settings(|settings| settings.turn_budget = 20_000);
    let tools =
        [Probe::wordy("Wordy", ResultBound::Chars(30_000, Strategy::KeepBoth)), Probe::barrier("Meet", 2)];
    let toolbox = toolbox_of(tools).results(store).settings(settings).build();
    // All but the first are finished when the first comes out, so all are fresh together.
    let turn = toolbox.turn();
    turn.submit(call("m1", "Meet", json!({})));
    for (n, chars) in [500, 25_000, 600, 24_000].into_iter().enumerate() {
        turn.submit(call(&format!("c{n}"), "Wordy", json!({"chars": chars})));
    }
    tokio::time::sleep(Duration::from_millis(20)).await;
    turn.submit(call("m2", "Meet", json!({})));
    turn.close();
    let sizes: Vec<usize> = results_of(&turn).await.iter().map(|result| result.chars()).collect();
    assert_eq!((sizes[1], sizes[3]), (500, 600), "small ones stay whole");
    assert!(sizes[2] < 12_000 && sizes[4] < 12_000, "{sizes:?}");
    assert!(sizes.iter().sum::<usize>() < 22_000, "{sizes:?}");
}

#[tokio::test]
async fn the_newest_deny_counts_right_before_execution() {
    // A hook that adds a deny while it runs: the decision came before, the check comes after.
    let holder: Arc<std::sync::Mutex<Option<Arc<Toolbox>>>> = Arc::default();
    let held = holder.clone();
    let opinion = Probe::tool(
        "Echo",
        Facts { interrupt: Interrupt::Cancel, ..Facts::DEFAULT },
        move |_| {
            if let Some(toolbox) = held.lock().unwrap().take() {
                let mut policy = (*toolbox.policy()).clone();
                rule(&mut policy, RuleList::Deny, "Echo");
                toolbox.set_policy(policy);
            }
            Access::nothing().uses(Resource::Session("x".into()), Use::Read)
        },
        |_, _| Box::pin(async { Ok(text("ran")) }),
    );
    let toolbox = toolbox_of([opinion]).build();
    let turn = toolbox.turn();
    turn.submit(call("c1", "Echo", json!({})));
    *holder.lock().unwrap() = Some(toolbox.clone());
    turn.close();
    assert_eq!(code(&results_of(&turn).await[0]), "denied");
}
