//! Ways to break a turn that were found by trying: races of stops, edits, hooks and effects.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use futures::future::BoxFuture;
use gripper_runtime::{
    Access, Call, CallRequest, CallResult, DynTool, Event, Facts, Observer, Place, Resource, SiblingCancel,
    ToolError, ToolOutput, Toolbox, Turn, Use,
    approve::Answer,
    hooks::{self, After, Before, BeforeCall, HookSet, Hooks},
    permissions::{Opinion, Policy, Rule, RuleList, Source},
    results::Strategy,
    schema::InputSchema,
    tool::{ErrorCode, Interrupt, ResultBound, SessionEffect, ToolSpec, ValidInput},
};
use gripper_testkit::{Probe, RecordingApprover, World, results_of, run_all, settings, text, toolbox_of};
use serde_json::json;
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

fn call(id: &str, tool: &str) -> CallRequest {
    CallRequest::new(id, tool, json!({ "id": id }))
}
fn codes(results: &[Arc<CallResult>]) -> Vec<String> {
    results.iter().map(|r| format!("{} {}", r.call_id, r.error_code.map_or("ok", ErrorCode::name))).collect()
}
fn forever() -> Duration {
    Duration::from_secs(36000)
}
async fn started(turn: &Turn) {
    while let Some(event) = turn.next().await {
        if matches!(event, Event::Started { .. }) {
            return;
        }
    }
}
async fn bounded<T>(f: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(600), f).await.expect("HANG")
}

// interrupt then cancel
#[tokio::test(start_paused = true)]
async fn cancel_after_interrupt_stops_block_tool() {
    let toolbox = toolbox_of([Probe::stuck("Stuck", Interrupt::Block, forever())]).build();
    let turn = toolbox.turn();
    turn.submit(call("c1", "Stuck"));
    turn.close();
    started(&turn).await;
    turn.interrupt();
    turn.cancel();
    assert_eq!(codes(&bounded(results_of(&turn)).await), ["c1 cancelled"]);
}
#[tokio::test(start_paused = true)]
async fn discard_after_interrupt_gives_all_results() {
    let toolbox =
        toolbox_of([Probe::stuck("Stuck", Interrupt::Block, forever()), Probe::noop("Noop")]).build();
    let turn = toolbox.turn();
    turn.submit(call("c1", "Stuck"));
    turn.submit(call("c2", "Noop"));
    started(&turn).await;
    turn.interrupt();
    let left = turn.discard();
    assert_eq!(left.len(), 2, "{:?}", codes(&left));
}

// observer panics
struct PanicOn(&'static str);
impl Observer for PanicOn {
    fn observe(&self, _s: &str, e: &Event) {
        let v = serde_json::to_value(e).unwrap();
        if v["event"] == self.0 {
            panic!("observer fell over")
        }
    }
}
#[tokio::test(start_paused = true)]
async fn observer_panics_on_finished() {
    let toolbox = toolbox_of([Probe::noop("Noop")]).observer(Arc::new(PanicOn("finished"))).build();
    assert_eq!(
        codes(&bounded(run_all(&toolbox, [call("c1", "Noop"), call("c2", "Noop")])).await),
        ["c1 ok", "c2 ok"]
    );
}
#[tokio::test(start_paused = true)]
async fn observer_panics_on_result() {
    let toolbox = toolbox_of([Probe::noop("Noop")]).observer(Arc::new(PanicOn("result"))).build();
    assert_eq!(
        codes(&bounded(run_all(&toolbox, [call("c1", "Noop"), call("c2", "Noop")])).await),
        ["c1 ok", "c2 ok"]
    );
}

// deadlock of settle with approver edits: no notification when a place is given up in settle
fn cell_tool(name: &'static str) -> Arc<dyn DynTool> {
    Probe::tool(
        name,
        Facts::DEFAULT,
        |input| {
            let mut a = Access::nothing();
            if let Some(c) = input["w"].as_str() {
                a = a.uses(Resource::Path(format!("/w/{c}").into()), Use::Write);
            }
            if let Some(c) = input["r"].as_str() {
                a = a.uses(Resource::Path(format!("/w/{c}").into()), Use::Read);
            }
            a
        },
        |input, _| {
            let d = input["ms"].as_u64().unwrap_or(0);
            Box::pin(async move {
                tokio::time::sleep(Duration::from_millis(d)).await;
                Ok(text("ok"))
            })
        },
    )
}
async fn spin() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn edits_while_waiting_deadlock() {
    let approver = Arc::new(RecordingApprover::default());
    let mut policy = Policy::new("/project");
    policy.rules.add(RuleList::Ask, Rule::parse("Asked").unwrap(), Source::command_line());
    let mut registry = gripper_runtime::Registry::default();
    registry.register(cell_tool("Asked")).unwrap();
    registry.register(cell_tool("Free")).unwrap();
    let toolbox = Toolbox::builder(registry, policy)
        .approver(approver.clone())
        .settings(settings(|s| s.max_concurrency = 2))
        .build();
    let turn = toolbox.turn();
    turn.submit(CallRequest::new("c1", "Free", json!({"w":"a","ms":1000})));
    turn.submit(CallRequest::new("c2", "Asked", json!({"w":"b"})));
    turn.submit(CallRequest::new("c3", "Asked", json!({"w":"c"})));
    turn.submit(CallRequest::new("c4", "Asked", json!({"w":"d"})));
    turn.close();
    spin().await;
    let edit = |w: &str| Answer::Allow { for_session: false, input: Some(json!({"w": w})) };
    assert_eq!(approver.open(), ["c2", "c3", "c4"], "an open question takes no place");
    // All three now want what c1 holds, and after it each other's.
    for id in ["c2", "c3", "c4"] {
        assert!(approver.answer(id, edit("a")));
        spin().await;
    }
    let results = bounded(results_of(&turn)).await;
    assert_eq!(codes(&results), ["c1 ok", "c2 ok", "c3 ok", "c4 ok"]);
}

// approver edit makes a call touch what a LATER call is touching right now
#[tokio::test(start_paused = true)]
async fn approver_edit_against_later_running_call() {
    let approver = Arc::new(RecordingApprover::default());
    let world = World::default();
    let mut policy = Policy::new("/project");
    policy.rules.add(RuleList::Ask, Rule::parse("Asked").unwrap(), Source::command_line());
    let mut registry = gripper_runtime::Registry::default();
    registry.register(Probe::on_world("Asked", world.clone(), false)).unwrap();
    registry.register(Probe::on_world("Free", world.clone(), false)).unwrap();
    let toolbox = Toolbox::builder(registry, policy).approver(approver.clone()).build();
    let turn = toolbox.turn();
    turn.submit(CallRequest::new("c1", "Asked", json!({"writes":["a"], "delay": 5})));
    turn.submit(CallRequest::new("c2", "Free", json!({"writes":["b"], "delay": 50})));
    turn.close();
    spin().await;
    assert!(approver.answer(
        "c1",
        Answer::Allow { for_session: false, input: Some(json!({"writes":["b"], "delay": 80})) }
    ));
    let results = bounded(results_of(&turn)).await;
    // c2 has begun with b, so c1 cannot come before it any more, and must not run beside it.
    assert_eq!(codes(&results), ["c1 denied", "c2 ok"]);
    assert_eq!(world.cells()["b"], 1);
}

// read_only is not updated by a rewrite
#[tokio::test(start_paused = true)]
async fn rewrite_to_a_write_is_taken_back_though_it_wrote() {
    let world = World::default();
    let hooks = HookSet::new().before("rw", &[], |c| {
        if c.call_id == "c2" {
            hooks::Answer::Rewrite(json!({"writes":["b"], "delay": 0}))
        } else {
            hooks::Answer::Pass
        }
    });
    let toolbox =
        toolbox_of([Probe::on_world("Command", world.clone(), true)]).hooks(Arc::new(hooks)).build();
    let results = bounded(run_all(
        &toolbox,
        [
            CallRequest::new("c1", "Command", json!({"writes":["a"], "delay": 50, "fail": true})),
            CallRequest::new("c2", "Command", json!({"reads":["b"], "delay": 0})),
        ],
    ))
    .await;
    assert_eq!(codes(&results), ["c1 failed", "c2 sibling_failed"]);
    assert_eq!(world.cells().get("b"), None, "the call that 'was cancelled' has written");
}

// session writes are "read only", and are taken back with siblingCancel all
#[tokio::test(start_paused = true)]
async fn session_write_taken_back() {
    let wrote = Arc::new(AtomicUsize::new(0));
    let w = wrote.clone();
    let todo = Probe::tool(
        "Todo",
        Facts::DEFAULT,
        |_| Access::nothing().uses(Resource::Session("todo".into()), Use::Write),
        move |_, _| {
            w.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { Ok(text("ok")) })
        },
    );
    let cmd = Probe::tool(
        "Cmd",
        Facts { failure_spreads: true, ..Facts::DEFAULT },
        |_| Access::nothing().uses(Resource::Path("/a".into()), Use::Write),
        |_, _| {
            Box::pin(async {
                tokio::time::sleep(Duration::from_millis(50)).await;
                Err(ToolError::new(ErrorCode::Failed, "exit 1"))
            })
        },
    );
    let toolbox =
        toolbox_of([todo, cmd]).settings(settings(|s| s.sibling_cancel = SiblingCancel::All)).build();
    let results = bounded(run_all(&toolbox, [call("c1", "Cmd"), call("c2", "Todo")])).await;
    assert_eq!(codes(&results), ["c1 failed", "c2 sibling_failed"]);
    assert_eq!(wrote.load(Ordering::SeqCst), 0, "said cancelled, but the list was replaced");
}

// SetCwd effect, footprints of later calls are stale
struct Rel {
    spec: ToolSpec,
    log: Arc<Mutex<Vec<String>>>,
}
impl DynTool for Rel {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    fn access(&self, input: &ValidInput, place: &Place) -> Access {
        let v = input.value();
        let p = place.locate(std::path::Path::new(v["path"].as_str().unwrap()));
        if v["write"] == true { Access::nothing().writes_path(&p) } else { Access::nothing().reads_path(&p) }
    }
    fn opinion(&self, _: &ValidInput) -> Opinion {
        Opinion::Allow("x".into())
    }
    fn run<'a>(
        &'a self,
        input: &'a ValidInput,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let p = call.place.absolute(std::path::Path::new(input.value()["path"].as_str().unwrap()));
            self.log.lock().unwrap().push(format!("{} begins {}", call.id, p.display()));
            tokio::time::sleep(Duration::from_millis(10)).await;
            self.log.lock().unwrap().push(format!("{} ends", call.id));
            Ok(text("ok"))
        })
    }
}
#[tokio::test(start_paused = true)]
async fn footprint_is_stale_after_set_cwd() {
    let log = Arc::new(Mutex::new(vec![]));
    let spec = ToolSpec {
        name: "Rel".into(),
        title: "Rel".into(),
        aliases: vec![],
        search_hint: "".into(),
        description: "".into(),
        input: InputSchema::trusted(json!({"type":"object"})),
        output_schema: None,
        examples: vec![],
        facts: Facts::DEFAULT,
        server: None,
    };
    let cd = Probe::effects("Cd", Access::unknown(), vec![SessionEffect::SetCwd("/tmp/new".into())]);
    let toolbox = {
        let mut policy = Policy::new("/tmp/old");
        policy.directories.push("/tmp/new".into());
        let mut r = gripper_runtime::Registry::default();
        r.register(cd).unwrap();
        r.register(Arc::new(Rel { spec, log: log.clone() })).unwrap();
        Toolbox::builder(r, policy).build()
    };
    bounded(run_all(
        &toolbox,
        [
            call("c1", "Cd"),
            CallRequest::new("c2", "Rel", json!({"path":"x","write":true})),
            CallRequest::new("c3", "Rel", json!({"path":"/tmp/new/x"})),
        ],
    ))
    .await;
    let log = log.lock().unwrap().clone();
    assert_eq!(log, ["c2 begins /tmp/new/x", "c2 ends", "c3 begins /tmp/new/x", "c3 ends"]);
}

// events after turn_end
#[tokio::test(start_paused = true)]
async fn nothing_comes_after_turn_end() {
    let polite = Probe::tool(
        "Polite",
        Facts { time_limit: Duration::from_secs(1), ..Facts::DEFAULT },
        |_| Access::nothing(),
        |_, call| {
            Box::pin(async move {
                call.cancel.cancelled().await;
                tokio::time::sleep(Duration::from_millis(500)).await;
                Ok(text("late"))
            })
        },
    );
    let toolbox = toolbox_of([polite]).build();
    let turn = toolbox.turn();
    turn.submit(call("c1", "Polite"));
    turn.close();
    loop {
        match bounded(turn.next()).await {
            Some(Event::TurnEnd { .. }) => break,
            Some(_) => {}
            None => panic!(),
        }
    }
    tokio::time::sleep(Duration::from_secs(1)).await; // a slow front end
    let next = turn.next().await;
    assert!(next.is_none(), "{next:?}");
}

// every started call gets a finished, and what finished says agrees with the result
#[tokio::test(start_paused = true)]
async fn finished_agrees_with_result() {
    let polite = Probe::tool(
        "Polite",
        Facts { time_limit: Duration::from_secs(1), ..Facts::DEFAULT },
        |_| Access::nothing(),
        |_, call| {
            Box::pin(async move {
                call.cancel.cancelled().await;
                Ok(text("late"))
            })
        },
    );
    let toolbox = toolbox_of([
        polite,
        Probe::stuck("Stuck", Interrupt::Cancel, Duration::from_secs(1)),
        cell_tool("Cell"),
    ])
    .build();
    let turn = toolbox.turn();
    turn.submit(call("c1", "Polite"));
    turn.submit(call("c2", "Stuck"));
    turn.submit(CallRequest::new("c3", "Cell", json!({"ms": 20000})));
    turn.close();
    let mut lines = vec![];
    while let Some(e) = bounded(turn.next()).await {
        lines.push(serde_json::to_string(&e).unwrap());
    }
    let f1 = lines.iter().find(|l| l.contains("\"finished\"") && l.contains("c1")).expect("finished c1");
    assert!(f1.contains("\"is_error\":true"), "{f1}");
}

// submit after end
#[tokio::test(start_paused = true)]
async fn submit_after_end() {
    let ran = Arc::new(AtomicUsize::new(0));
    let r = ran.clone();
    let t = Probe::tool(
        "T",
        Facts::DEFAULT,
        |_| Access::nothing(),
        move |_, _| {
            r.fetch_add(1, Ordering::SeqCst);
            Box::pin(async { Ok(text("ok")) })
        },
    );
    let toolbox = toolbox_of([t]).build();
    let turn = toolbox.turn();
    turn.close();
    results_of(&turn).await;
    turn.submit(call("c1", "T"));
    let results = results_of(&turn).await;
    spin().await;
    assert_eq!((results.len(), ran.load(Ordering::SeqCst)), (1, 1), "ran, but no result");
}

// two consumers
#[tokio::test(start_paused = true)]
async fn two_consumers_both_end() {
    let toolbox = toolbox_of([Probe::noop("Noop")]).build();
    let turn = Arc::new(toolbox.turn());
    let a = tokio::spawn({
        let t = turn.clone();
        async move { results_of(&t).await.len() }
    });
    let b = tokio::spawn({
        let t = turn.clone();
        async move { results_of(&t).await.len() }
    });
    spin().await;
    turn.submit(call("c1", "Noop"));
    turn.close();
    let (a, b) = bounded(async { (a.await.unwrap(), b.await.unwrap()) }).await;
    assert_eq!(a + b, 1);
}

// no limit
#[tokio::test(start_paused = true)]
async fn a_tool_without_time_limit() {
    let t = Probe::tool(
        "T",
        Facts { time_limit: Duration::MAX, ..Facts::DEFAULT },
        |_| Access::nothing(),
        |_, _| Box::pin(async { Ok(text("ok")) }),
    );
    let toolbox = toolbox_of([t]).build();
    assert_eq!(codes(&run_all(&toolbox, [call("c1", "T")]).await), ["c1 ok"]);
}

// slow after hook turns success into time-out
struct SlowAfter;
impl Hooks for SlowAfter {
    fn interested(&self, _t: &str) -> bool {
        true
    }
    fn before<'a>(&'a self, _c: BeforeCall<'a>) -> BoxFuture<'a, Before> {
        Box::pin(async { Before::default() })
    }
    fn after<'a>(&'a self, _c: BeforeCall<'a>, _r: &'a CallResult) -> BoxFuture<'a, After> {
        Box::pin(async {
            tokio::time::sleep(Duration::from_secs(10)).await;
            After::default()
        })
    }
}
#[tokio::test(start_paused = true)]
async fn slow_after_hook() {
    let t = Probe::tool(
        "T",
        Facts { time_limit: Duration::from_secs(1), ..Facts::DEFAULT },
        |_| Access::nothing(),
        |_, _| Box::pin(async { Ok(text("written")) }),
    );
    let toolbox = toolbox_of([t]).hooks(Arc::new(SlowAfter)).build();
    assert_eq!(codes(&bounded(run_all(&toolbox, [call("c1", "T")])).await), ["c1 ok"]);
}
struct StuckBefore;
impl Hooks for StuckBefore {
    fn interested(&self, _t: &str) -> bool {
        true
    }
    fn before<'a>(&'a self, _c: BeforeCall<'a>) -> BoxFuture<'a, Before> {
        Box::pin(std::future::pending())
    }
    fn after<'a>(&'a self, _c: BeforeCall<'a>, _r: &'a CallResult) -> BoxFuture<'a, After> {
        Box::pin(async { After::default() })
    }
}
#[tokio::test(start_paused = true)]
async fn hook_that_never_answers() {
    let toolbox = toolbox_of([Probe::noop("T")]).hooks(Arc::new(StuckBefore)).build();
    assert_eq!(
        codes(
            &tokio::time::timeout(Duration::from_secs(36000), run_all(&toolbox, [call("c1", "T")]))
                .await
                .expect("HANG 10 h")
        )
        .len(),
        1
    );
}
struct PanicInterested;
impl Hooks for PanicInterested {
    fn interested(&self, _t: &str) -> bool {
        panic!("bad regex")
    }
    fn before<'a>(&'a self, _c: BeforeCall<'a>) -> BoxFuture<'a, Before> {
        Box::pin(std::future::pending())
    }
    fn after<'a>(&'a self, _c: BeforeCall<'a>, _r: &'a CallResult) -> BoxFuture<'a, After> {
        Box::pin(async { After::default() })
    }
}
#[tokio::test(start_paused = true)]
async fn hook_interest_panics() {
    let toolbox = toolbox_of([Probe::noop("T")]).hooks(Arc::new(PanicInterested)).build();
    assert_eq!(bounded(run_all(&toolbox, [call("c1", "T")])).await.len(), 1);
}

// effects pending behind a slow call are invisible to a call that depends on them
#[tokio::test(start_paused = true)]
async fn effects_are_seen_by_dependants() {
    let slot: Arc<Mutex<Option<Arc<Toolbox>>>> = Default::default();
    let see = Probe::effects(
        "See",
        Access::nothing().uses(Resource::Path("/a".into()), Use::Read),
        vec![SessionEffect::FileSeen { path: "/a".into() }],
    );
    let s = slot.clone();
    let edit = Probe::tool(
        "Edit",
        Facts::DEFAULT,
        |_| Access::nothing().uses(Resource::Path("/a".into()), Use::Write),
        move |_, _| {
            let seen = s.lock().unwrap().as_ref().unwrap().files_seen().contains(std::path::Path::new("/a"));
            Box::pin(async move {
                if seen {
                    Ok(text("edited"))
                } else {
                    Err(ToolError::new(ErrorCode::Failed, "read it first"))
                }
            })
        },
    );
    let toolbox = toolbox_of([see, edit, cell_tool("Slow")]).build();
    *slot.lock().unwrap() = Some(toolbox.clone());
    let r = bounded(run_all(
        &toolbox,
        [CallRequest::new("c1", "Slow", json!({"ms": 100})), call("c2", "See"), call("c3", "Edit")],
    ))
    .await;
    assert_eq!(codes(&r), ["c1 ok", "c2 ok", "c3 ok"]);
}

// asks take running places
#[tokio::test(start_paused = true)]
async fn open_questions_do_not_block_others() {
    let approver = Arc::new(RecordingApprover::default());
    let mut policy = Policy::new("/project");
    policy.rules.add(RuleList::Ask, Rule::parse("Asked").unwrap(), Source::command_line());
    let mut registry = gripper_runtime::Registry::default();
    registry.register(Probe::noop("Asked")).unwrap();
    registry.register(Probe::noop("Free")).unwrap();
    let toolbox = Toolbox::builder(registry, policy)
        .approver(approver.clone())
        .settings(settings(|s| s.max_concurrency = 2))
        .build();
    let turn = toolbox.turn();
    for n in 0..3 {
        turn.submit(CallRequest::new(&format!("c{n}"), "Asked", json!({"n": n})));
    }
    turn.submit(call("f", "Free"));
    turn.close();
    let mut ran = false;
    tokio::time::timeout(Duration::from_secs(60), async {
        while let Some(e) = turn.next().await {
            if matches!(&e, Event::Finished{call_id, ..} if &**call_id == "f") {
                ran = true;
                break;
            }
        }
    })
    .await
    .ok();
    assert_eq!((approver.open().len(), ran), (3, true));
}

// interrupt while a Block tool is only being asked about
#[tokio::test(start_paused = true)]
async fn interrupt_stops_a_block_tool_that_has_not_begun() {
    let approver = Arc::new(RecordingApprover::default());
    let mut policy = Policy::new("/project");
    policy.rules.add(RuleList::Ask, Rule::parse("Asked").unwrap(), Source::command_line());
    let mut registry = gripper_runtime::Registry::default();
    registry
        .register(Probe::tool(
            "Asked",
            Facts { interrupt: Interrupt::Block, ..Facts::DEFAULT },
            |_| Access::unknown(),
            |_, _| Box::pin(async { Ok(text("ok")) }),
        ))
        .unwrap();
    let toolbox = Toolbox::builder(registry, policy).approver(approver.clone()).build();
    let turn = toolbox.turn();
    turn.submit(call("c1", "Asked"));
    turn.close();
    spin().await;
    turn.interrupt();
    spin().await;
    assert!(approver.open().is_empty(), "question still open after interrupt: {:?}", approver.open());
}

// duration of synthetic
#[tokio::test(start_paused = true)]
async fn a_time_out_says_how_long_it_took() {
    let toolbox = toolbox_of([Probe::stuck("Stuck", Interrupt::Cancel, Duration::from_secs(5))]).build();
    let r = run_all(&toolbox, [call("c1", "Stuck")]).await;
    assert!(r[0].duration >= Duration::from_secs(5), "{:?}", r[0].duration);
}
// notes (coercions, hooks) cut away by KeepStart
#[tokio::test(start_paused = true)]
async fn notes_survive_the_bound() {
    let facts = Facts { bound: ResultBound::Chars(1000, Strategy::KeepStart), ..Facts::DEFAULT };
    let t = Probe::tool(
        "T",
        facts,
        |_| Access::nothing(),
        |_, _| Box::pin(async { Ok(text(&"line of words\n".repeat(1000))) }),
    );
    let hooks = HookSet::new().before("n", &[], |_| hooks::Answer::Note("IMPORTANT NOTE".into()));
    let toolbox = toolbox_of([t]).hooks(Arc::new(hooks)).build();
    let r = run_all(&toolbox, [call("c1", "T")]).await;
    assert!(r[0].to_string().contains("IMPORTANT NOTE"));
}
// loop guard and alias / coerced forms
fn failing() -> Arc<dyn DynTool> {
    Probe::tool(
        "Cmd",
        Facts::DEFAULT,
        |_| Access::unknown(),
        |input, _| {
            let fail = input["ok"] != true;
            Box::pin(async move {
                if fail { Err(ToolError::new(ErrorCode::Failed, "exit 1")) } else { Ok(text("ok")) }
            })
        },
    )
}
#[tokio::test]
async fn guard_key_mixes_up_nesting() {
    let toolbox = toolbox_of([failing()]).build();
    for _n in 0..4 {
        run_all(&toolbox, [CallRequest::new("c", "Cmd", json!({"a": {"b": 1}, "c": 2}))]).await;
    }
    let r = run_all(&toolbox, [CallRequest::new("c", "Cmd", json!({"a": {"b": 1, "c": 2}}))]).await;
    assert_eq!(codes(&r), ["c failed"], "another call was refused: {}", r[0]);
}
#[tokio::test]
async fn guard_key_mixes_up_null_and_false() {
    let toolbox = toolbox_of([failing()]).build();
    for _n in 0..4 {
        run_all(&toolbox, [CallRequest::new("c", "Cmd", json!({"a": null}))]).await;
    }
    let r = run_all(&toolbox, [CallRequest::new("c", "Cmd", json!({"a": false}))]).await;
    assert_eq!(codes(&r), ["c failed"], "{}", r[0]);
}
#[tokio::test]
async fn edit_test_loop_is_not_refused_for_ever() {
    let toolbox = toolbox_of([failing(), cell_tool("Edit")]).build();
    let mut last = vec![];
    for n in 0..6 {
        run_all(&toolbox, [CallRequest::new("e", "Edit", json!({"w": "src", "n": n}))]).await;
        last =
            codes(&run_all(&toolbox, [CallRequest::new("t", "Cmd", json!({"command": "cargo test"}))]).await);
    }
    assert_eq!(
        last,
        ["t failed"],
        "cargo test is refused for the rest of the session though the code changed"
    );
}
