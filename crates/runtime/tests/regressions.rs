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
use gripper_testkit::{
    Probe, RecordingApprover, World, file_seen, results_of, run_all, settings, text, toolbox_of,
};
use rstest::rstest;
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
    tokio::time::timeout(forever(), f).await.expect("HANG")
}

#[tokio::test(start_paused = true)]
async fn a_cancel_after_an_interrupt_stops_what_that_spared() {
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
async fn a_discard_after_an_interrupt_accounts_for_all() {
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

struct PanicOn(&'static str);
impl Observer for PanicOn {
    fn observe(&self, _s: &str, e: &Event) {
        let v = serde_json::to_value(e).unwrap();
        if v["event"] == self.0 {
            panic!("observer fell over")
        }
    }
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn a_watcher_that_panics_costs_no_result(
    #[values("queued", "decision", "started", "finished", "result")] event: &'static str,
) {
    let toolbox = toolbox_of([Probe::noop("Noop")]).observer(Arc::new(PanicOn(event))).build();
    let results = bounded(run_all(&toolbox, [call("c1", "Noop"), call("c2", "Noop")])).await;
    assert_eq!(codes(&results), ["c1 ok", "c2 ok"]);
}

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
/// Lets everything run that can, without letting time pass.
async fn spin() {
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
}

/// A toolbox where each call of `Asked` is asked about.
fn asking(
    tools: impl IntoIterator<Item = Arc<dyn DynTool>>,
    limit: usize,
) -> (Arc<Toolbox>, Arc<RecordingApprover>) {
    let approver = Arc::new(RecordingApprover::default());
    let toolbox = toolbox_of(tools)
        .approver(approver.clone())
        .settings(settings(|settings| settings.max_concurrency = limit))
        .build();
    let mut policy = (*toolbox.policy()).clone();
    policy.rules.add(RuleList::Ask, Rule::parse("Asked").unwrap(), Source::command_line());
    toolbox.set_policy(policy);
    (toolbox, approver)
}

#[tokio::test(start_paused = true)]
async fn edits_that_make_calls_wait_for_each_other_do_not_lock_up() {
    let (toolbox, approver) = asking([cell_tool("Asked"), cell_tool("Free")], 2);
    let turn = toolbox.turn();
    turn.submit(CallRequest::new("c1", "Free", json!({"w":"a","ms":1000})));
    turn.submit(CallRequest::new("c2", "Asked", json!({"w":"b"})));
    turn.submit(CallRequest::new("c3", "Asked", json!({"w":"c"})));
    turn.submit(CallRequest::new("c4", "Asked", json!({"w":"d"})));
    turn.close();
    spin().await;
    let edit = |w: &str| Answer::edited(json!({"w": w}));
    assert_eq!(approver.open(), ["c2", "c3", "c4"], "an open question takes no place");
    // All three now want what c1 holds, and after it each other's.
    for id in ["c2", "c3", "c4"] {
        assert!(approver.answer(id, edit("a")));
        spin().await;
    }
    let results = bounded(results_of(&turn)).await;
    assert_eq!(codes(&results), ["c1 ok", "c2 ok", "c3 ok", "c4 ok"]);
}

#[tokio::test(start_paused = true)]
async fn an_edit_cannot_go_before_a_later_call_that_has_begun() {
    let world = World::default();
    let tools = ["Asked", "Free"].map(|name| Probe::on_world(name, world.clone(), false));
    let (toolbox, approver) = asking(tools, 10);
    let turn = toolbox.turn();
    turn.submit(CallRequest::new("c1", "Asked", json!({"writes":["a"], "delay": 5})));
    turn.submit(CallRequest::new("c2", "Free", json!({"writes":["b"], "delay": 50})));
    turn.close();
    spin().await;
    assert!(approver.answer("c1", Answer::edited(json!({"writes":["b"], "delay": 80}))));
    let results = bounded(results_of(&turn)).await;
    // c2 has begun with b, so c1 cannot come before it any more, and must not run beside it.
    assert_eq!(codes(&results), ["c1 denied", "c2 ok"]);
    assert_eq!(world.cells()["b"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_read_rewritten_to_a_write_waits_for_what_may_cancel_it() {
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

#[tokio::test(start_paused = true)]
async fn a_session_write_waits_for_what_may_cancel_it() {
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
async fn footprints_follow_the_working_directory() {
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

#[tokio::test(start_paused = true)]
async fn what_finished_says_agrees_with_the_result() {
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
    let (mut finished, mut results) = (vec![], vec![]);
    while let Some(event) = bounded(turn.next()).await {
        match event {
            Event::Finished { call_id, is_error, .. } => finished.push((call_id, is_error)),
            Event::Result(result) => results.push((result.call_id.clone(), result.is_error)),
            _ => {}
        }
    }
    finished.sort();
    assert_eq!(finished, results);
    assert_eq!(results.iter().map(|(_, is_error)| *is_error).collect::<Vec<_>>(), [true, true, false]);
}

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

/// Hooks that misbehave in one way each.
#[derive(Clone, Copy, PartialEq)]
enum Odd {
    SlowAfter,
    StuckBefore,
    PanicsWhenAsked,
}

impl Hooks for Odd {
    fn interested(&self, _tool: &str) -> bool {
        assert!(*self != Odd::PanicsWhenAsked, "bad regex");
        true
    }

    fn before<'a>(&'a self, _call: BeforeCall<'a>) -> BoxFuture<'a, Before> {
        Box::pin(async {
            if *self == Odd::StuckBefore {
                std::future::pending::<()>().await;
            }
            Before::default()
        })
    }

    fn after<'a>(&'a self, _call: BeforeCall<'a>, _result: &'a CallResult) -> BoxFuture<'a, After> {
        Box::pin(async {
            if *self == Odd::SlowAfter {
                tokio::time::sleep(Duration::from_secs(10)).await;
            }
            After::default()
        })
    }
}

/// A slow hook after the call is not the tool's time; one that never answers is a question, which
/// nobody is there to answer; a panic is a result like any other.
#[rstest]
#[case::slow_after(Odd::SlowAfter, "c1 ok")]
#[case::stuck_before(Odd::StuckBefore, "c1 denied")]
#[case::panics(Odd::PanicsWhenAsked, "c1 panic")]
#[tokio::test(start_paused = true)]
async fn odd_hooks_cost_no_result(#[case] odd: Odd, #[case] expected: &str) {
    let facts = Facts { time_limit: Duration::from_secs(1), ..Facts::DEFAULT };
    let tool = Probe::tool("T", facts, |_| Access::nothing(), |_, _| Box::pin(async { Ok(text("written")) }));
    let toolbox = toolbox_of([tool]).hooks(Arc::new(odd)).build();
    assert_eq!(codes(&bounded(run_all(&toolbox, [call("c1", "T")])).await), [expected]);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_call_sees_the_effects_of_the_one_before() {
    let slot: Arc<Mutex<Option<Arc<Toolbox>>>> = Default::default();
    let see = Probe::effects(
        "See",
        Access::nothing().uses(Resource::Path("/a".into()), Use::Read),
        vec![file_seen("/a")],
    );
    let s = slot.clone();
    let edit = Probe::tool(
        "Edit",
        Facts::DEFAULT,
        |_| Access::nothing().uses(Resource::Path("/a".into()), Use::Write),
        move |_, _| {
            let seen = s.lock().unwrap().as_ref().unwrap().files().ledger.content("/a".as_ref()).is_some();
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

#[tokio::test(start_paused = true)]
async fn open_questions_do_not_block_others() {
    let (toolbox, approver) = asking([Probe::noop("Asked"), Probe::noop("Free")], 2);
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

#[tokio::test(start_paused = true)]
async fn an_interrupt_stops_what_is_only_being_asked_about() {
    let commit = Probe::tool(
        "Asked",
        Facts { interrupt: Interrupt::Block, ..Facts::DEFAULT },
        |_| Access::unknown(),
        |_, _| Box::pin(async { Ok(text("ok")) }),
    );
    let (toolbox, approver) = asking([commit], 10);
    let turn = toolbox.turn();
    turn.submit(call("c1", "Asked"));
    turn.close();
    spin().await;
    turn.interrupt();
    spin().await;
    assert!(approver.open().is_empty(), "question still open after interrupt: {:?}", approver.open());
}

#[tokio::test(start_paused = true)]
async fn a_time_out_says_how_long_it_took() {
    let toolbox = toolbox_of([Probe::stuck("Stuck", Interrupt::Cancel, Duration::from_secs(5))]).build();
    let r = run_all(&toolbox, [call("c1", "Stuck")]).await;
    assert!(r[0].duration >= Duration::from_secs(5), "{:?}", r[0].duration);
}

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
async fn a_failing_test_run_is_not_refused_while_code_changes() {
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
