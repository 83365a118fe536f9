//! Every result that no tool made, and that every submitted call has exactly one result.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{sync::Arc, time::Duration};

use gripper_runtime::{
    Access, CallRequest, CallResult, DynTool, Facts, SiblingCancel, ToolError, Toolbox, Turn,
    tool::{ErrorCode, Interrupt},
};
use gripper_testkit::{Probe, World, results_of, run_all, settings, text, toolbox_of};
use rstest::rstest;
use serde_json::json;

fn call(id: &str, tool: &str) -> CallRequest {
    CallRequest::new(id, tool, json!({ "id": id }))
}

/// `id code` for each result, `ok` for good ones.
fn codes(results: &[Arc<CallResult>]) -> Vec<String> {
    results
        .iter()
        .map(|result| format!("{} {}", result.call_id, result.error_code.map_or("ok", ErrorCode::name)))
        .collect()
}

fn forever() -> Duration {
    Duration::from_secs(3600)
}

/// Fails at once; a failure takes followers along.
fn command(name: &'static str, access: Access) -> Arc<dyn DynTool> {
    let facts = Facts { failure_spreads: true, ..Facts::DEFAULT };
    Probe::tool(
        name,
        facts,
        move |_| access.clone(),
        |input, _| {
            let fail = input["fail"] == true;
            Box::pin(async move {
                if fail { Err(ToolError::new(ErrorCode::Failed, "exit 1")) } else { Ok(text("ran")) }
            })
        },
    )
}

async fn started(turn: &Turn) {
    while let Some(event) = turn.next().await {
        if matches!(event, gripper_runtime::Event::Started { .. }) {
            return;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn time_out() {
    let toolbox =
        toolbox_of([Probe::stuck("Stuck", Interrupt::Cancel, Duration::from_secs(5)), Probe::noop("Noop")])
            .build();
    let results = run_all(&toolbox, [call("c1", "Stuck"), call("c2", "Noop")]).await;
    assert_eq!(codes(&results), ["c1 timeout", "c2 ok"]);
    assert_eq!(results[0].to_string(), "Stuck was stopped: it did not answer within its time limit");
}

#[tokio::test]
async fn panic() {
    let toolbox = toolbox_of([Probe::panics("Panics"), Probe::noop("Noop")]).build();
    let results = run_all(&toolbox, [call("c1", "Panics"), call("c2", "Noop")]).await;
    assert_eq!(codes(&results), ["c1 panic", "c2 ok"]);
    assert!(results[0].to_string().contains("the tool fell over"));
}

#[tokio::test]
async fn a_panic_in_a_declaration_is_contained_too() {
    let tool = Probe::tool(
        "Odd",
        Facts::DEFAULT,
        |input| {
            if input["id"] == "c1" { panic!("cannot say") } else { Access::nothing() }
        },
        |_, _| Box::pin(async { Ok(text("ok")) }),
    );
    let toolbox = toolbox_of([tool]).build();
    let results = run_all(&toolbox, [call("c1", "Odd"), call("c2", "Odd")]).await;
    assert_eq!(codes(&results), ["c1 panic", "c2 ok"]);
}

#[tokio::test(start_paused = true)]
async fn cancel_stops_running_and_queued_and_whatever_comes_after() {
    let toolbox =
        toolbox_of([Probe::stuck("Stuck", Interrupt::Block, forever()), command("Wait", Access::unknown())])
            .build();
    let turn = toolbox.turn();
    turn.submit(call("c1", "Stuck"));
    turn.submit(call("c2", "Wait"));
    started(&turn).await;
    turn.cancel();
    turn.submit(call("c3", "Wait"));
    turn.close();
    assert_eq!(codes(&results_of(&turn).await), ["c1 cancelled", "c2 cancelled", "c3 cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn an_interrupt_spares_what_must_not_be_cut() {
    let slow = Facts { interrupt: Interrupt::Block, ..Facts::DEFAULT };
    let commit = Probe::tool(
        "Commit",
        slow,
        |_| Access::nothing(),
        |_, _| {
            Box::pin(async {
                tokio::time::sleep(Duration::from_secs(5)).await;
                Ok(text("committed"))
            })
        },
    );
    let tools =
        [commit, Probe::stuck("Stuck", Interrupt::Cancel, forever()), command("Wait", Access::unknown())];
    let toolbox = toolbox_of(tools).build();
    let turn = toolbox.turn();
    turn.submit(call("c1", "Commit"));
    turn.submit(call("c2", "Stuck"));
    turn.submit(call("c3", "Wait"));
    started(&turn).await;
    started(&turn).await;
    turn.interrupt();
    turn.submit(call("c4", "Commit"));
    turn.close();
    assert_eq!(
        codes(&results_of(&turn).await),
        ["c1 ok", "c2 interrupted", "c3 interrupted", "c4 interrupted"]
    );
}

#[tokio::test(start_paused = true)]
async fn discard_emits_nothing_more_and_accounts_for_every_call() {
    let toolbox = toolbox_of([
        Probe::stuck("Stuck", Interrupt::Cancel, forever()),
        Probe::noop("Noop"),
        command("Wait", Access::unknown()),
    ])
    .build();
    let turn = toolbox.turn();
    turn.submit(call("c1", "Noop"));
    turn.submit(call("c2", "Stuck"));
    turn.submit(call("c3", "Noop"));
    turn.submit(call("c4", "Wait"));
    let mut received = Vec::new();
    while let Some(event) = turn.next().await {
        if let gripper_runtime::Event::Result(result) = event {
            received.push(result);
            break;
        }
    }
    assert_eq!(codes(&received), ["c1 ok"]);
    // Let the third finish behind the stuck second.
    tokio::time::sleep(Duration::from_millis(1)).await;
    let rest = turn.discard();
    assert_eq!(rest.len(), 3);
    assert_eq!(codes(&rest)[0], "c2 discarded");
    assert_eq!(codes(&rest)[2], "c4 discarded");
    assert!(turn.next().await.is_none(), "nothing more is emitted");
}

#[tokio::test]
async fn dropping_a_turn_stops_its_calls() {
    let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
    let sender = std::sync::Mutex::new(Some(sender));
    let tool = Probe::tool(
        "Holds",
        Facts::DEFAULT,
        |_| Access::nothing(),
        move |_, call| {
            let held = sender.lock().unwrap().take();
            Box::pin(async move {
                call.cancel.cancelled().await;
                drop(held);
                Ok(text("stopped"))
            })
        },
    );
    let toolbox = toolbox_of([tool]).build();
    let turn = toolbox.turn();
    turn.submit(call("c1", "Holds"));
    started(&turn).await;
    drop(turn);
    receiver.await.unwrap_err();
}

#[tokio::test(start_paused = true)]
async fn a_stopped_tool_that_does_not_listen_is_dropped() {
    let (sender, receiver) = tokio::sync::oneshot::channel::<()>();
    let sender = std::sync::Mutex::new(Some(sender));
    let tool = Probe::tool(
        "Deaf",
        Facts::DEFAULT,
        |_| Access::nothing(),
        move |_, _| {
            let held = sender.lock().unwrap().take();
            Box::pin(async move {
                std::future::pending::<()>().await;
                drop(held);
                Ok(text("never"))
            })
        },
    );
    let toolbox = toolbox_of([tool]).build();
    let turn = toolbox.turn();
    turn.submit(call("c1", "Deaf"));
    turn.close();
    started(&turn).await;
    turn.cancel();
    assert_eq!(codes(&results_of(&turn).await), ["c1 cancelled"]);
    tokio::time::timeout(Duration::from_secs(10), receiver)
        .await
        .expect("dropped after the grace")
        .unwrap_err();
}

/// `ok` commands are read-only and beside each other; `W` writes everything.
async fn siblings(mode: SiblingCancel) -> Vec<String> {
    let tools = [
        command("Look", Access::concurrency_safe()),
        command("Work", Access::unknown()),
        Probe::on_world("Cell", World::default(), false),
        Probe::noop("Noop"),
    ];
    let toolbox = toolbox_of(tools).settings(settings(|settings| settings.sibling_cancel = mode)).build();
    let calls = [
        call("c1", "Look"),
        CallRequest::new("c2", "Look", json!({"fail": true})),
        call("c3", "Look"),
        CallRequest::new("c4", "Cell", json!({"reads": ["a"]})),
        CallRequest::new("c5", "Cell", json!({"writes": ["a"]})),
        call("c6", "Work"),
        call("c7", "Noop"),
    ];
    codes(&run_all(&toolbox, calls).await)
}

#[rstest]
#[case::conflicting(SiblingCancel::Conflicting, ["ok", "failed", "sibling_failed", "ok", "sibling_failed", "sibling_failed", "ok"])]
#[case::all(SiblingCancel::All, ["ok", "failed", "sibling_failed", "sibling_failed", "sibling_failed", "sibling_failed", "sibling_failed"])]
#[case::never(SiblingCancel::Never, ["ok", "failed", "ok", "ok", "ok", "ok", "ok"])]
#[tokio::test]
async fn a_failing_command_takes_along(#[case] mode: SiblingCancel, #[case] expected: [&str; 7]) {
    let expected: Vec<String> =
        expected.iter().enumerate().map(|(n, code)| format!("c{} {code}", n + 1)).collect();
    assert_eq!(siblings(mode).await, expected);
}

#[tokio::test]
async fn a_call_submitted_after_the_failure_fares_the_same() {
    let toolbox = toolbox_of([command("Work", Access::unknown()), Probe::noop("Noop")]).build();
    let turn = toolbox.turn();
    turn.submit(CallRequest::new("c1", "Work", json!({"fail": true})));
    while turn.outstanding() > 0 {
        tokio::task::yield_now().await;
    }
    turn.submit(call("c2", "Work"));
    turn.submit(call("c3", "Noop"));
    turn.close();
    let results = results_of(&turn).await;
    // Noop touches nothing, but what wrote everything and failed conflicts with all.
    assert_eq!(codes(&results), ["c1 failed", "c2 sibling_failed", "c3 sibling_failed"]);
    assert_eq!(results[1].to_string(), "cancelled: parallel call c1 (Work) failed");
}

#[tokio::test]
async fn the_turn_itself_goes_on_after_a_sibling_failure() {
    let toolbox: Arc<Toolbox> = toolbox_of([command("Work", Access::unknown())]).build();
    run_all(&toolbox, [CallRequest::new("c1", "Work", json!({"fail": true}))]).await;
    assert_eq!(
        codes(&run_all(&toolbox, [call("c2", "Work")]).await),
        ["c2 ok"],
        "the next turn starts afresh"
    );
}
