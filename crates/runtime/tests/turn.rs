//! Order, overlap, limits and streaming of a turn.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use gripper_runtime::{Access, CallRequest, Event, Facts, Resource, Use, tool::Progress};
use gripper_testkit::{Probe, World, results_of, run_all, settings, text, toolbox_of};
use serde_json::json;
use tokio::sync::{Notify, oneshot};

fn call(id: &str, tool: &str) -> CallRequest {
    CallRequest::new(id, tool, json!({ "id": id }))
}

/// Waits for an event that `wanted` accepts.
async fn until(turn: &gripper_runtime::Turn, mut wanted: impl FnMut(&Event) -> bool) -> Event {
    loop {
        let event = turn.next().await.expect("the turn goes on");
        if wanted(&event) {
            return event;
        }
    }
}

#[tokio::test]
async fn safe_calls_truly_overlap_while_a_conflicting_one_waits() {
    // Five calls that return only when all five run at once; a writer submitted between them
    // would deadlock if it overtook, and would break the meeting if it ran beside them.
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let log = order.clone();
    let writer = Probe::tool(
        "Writer",
        Facts::DEFAULT,
        |_| Access::unknown(),
        move |_, call| {
            log.lock().unwrap().push(call.id.to_string());
            Box::pin(async { Ok(text("written")) })
        },
    );
    let log = order.clone();
    let barrier = Arc::new(tokio::sync::Barrier::new(5));
    let meet = Probe::tool(
        "Meet",
        Facts::DEFAULT,
        |_| Access::concurrency_safe(),
        move |_, call| {
            let (barrier, log) = (barrier.clone(), log.clone());
            Box::pin(async move {
                barrier.wait().await;
                log.lock().unwrap().push(call.id.to_string());
                Ok(text("met"))
            })
        },
    );
    let toolbox = toolbox_of([writer, meet]).build();
    let mut calls: Vec<CallRequest> = (0..5).map(|n| call(&format!("m{n}"), "Meet")).collect();
    calls.push(call("w", "Writer"));
    calls.extend((5..10).map(|n| call(&format!("m{n}"), "Meet")));
    let results = run_all(&toolbox, calls).await;
    let ids: Vec<&str> = results.iter().map(|result| &*result.call_id).collect();
    assert_eq!(ids, ["m0", "m1", "m2", "m3", "m4", "w", "m5", "m6", "m7", "m8", "m9"]);
    let order = order.lock().unwrap();
    let at = order.iter().position(|id| id == "w").unwrap();
    assert_eq!(at, 5, "the writer ran after the first five and before the others: {order:?}");
}

#[tokio::test]
async fn a_call_starts_before_the_last_block_is_submitted() {
    let (started, wait_started) = oneshot::channel::<()>();
    let started = std::sync::Mutex::new(Some(started));
    let tool = Probe::tool(
        "Early",
        Facts::DEFAULT,
        |_| Access::nothing(),
        move |_, _| {
            let started = started.lock().unwrap().take();
            Box::pin(async move {
                if let Some(started) = started {
                    started.send(()).ok();
                }
                Ok(text("ran"))
            })
        },
    );
    let toolbox = toolbox_of([tool, Probe::noop("Late")]).build();
    let turn = toolbox.turn();
    turn.submit(call("c1", "Early"));
    // The stream is still open: the first call must run, and its result come out, before more is submitted.
    wait_started.await.unwrap();
    until(&turn, |event| matches!(event, Event::Result(result) if &*result.call_id == "c1")).await;
    turn.submit(call("c2", "Late"));
    turn.close();
    assert_eq!(results_of(&turn).await.len(), 1);
}

#[tokio::test]
async fn no_more_than_the_limit_run_at_once() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = most.clone();
    let tool = Probe::tool(
        "Count",
        Facts::DEFAULT,
        |_| Access::nothing(),
        move |_, _| {
            let (now, most) = (now.clone(), seen.clone());
            Box::pin(async move {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                for _ in 0..5 {
                    tokio::task::yield_now().await;
                }
                now.fetch_sub(1, Ordering::SeqCst);
                Ok(text("ok"))
            })
        },
    );
    let toolbox = toolbox_of([tool]).settings(settings(|settings| settings.max_concurrency = 3)).build();
    run_all(&toolbox, (0..40).map(|n| call(&format!("c{n}"), "Count"))).await;
    assert_eq!(most.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn progress_comes_at_once_and_results_in_order() {
    let release = Arc::new(Notify::new());
    let gate = release.clone();
    let slow = Probe::tool(
        "Slow",
        Facts::DEFAULT,
        |_| Access::nothing(),
        move |_, _| {
            let gate = gate.clone();
            Box::pin(async move {
                gate.notified().await;
                Ok(text("slow"))
            })
        },
    );
    let chatty = Probe::tool(
        "Chatty",
        Facts::DEFAULT,
        |_| Access::nothing(),
        |_, call| {
            call.progress.report(Progress { message: "half way".into(), done: Some(1.0), total: Some(2.0) });
            Box::pin(async { Ok(text("chatty")) })
        },
    );
    let toolbox = toolbox_of([slow, chatty]).build();
    let turn = toolbox.turn();
    turn.submit(call("c1", "Slow"));
    turn.submit(call("c2", "Chatty"));
    turn.close();
    // The second call reports and finishes while the first still runs, and no result is out yet.
    let progress = until(&turn, |event| matches!(event, Event::Progress { .. } | Event::Result(_))).await;
    let line = serde_json::to_value(&progress).unwrap();
    assert_eq!(
        line,
        json!({"event": "progress", "call_id": "c2", "message": "half way", "done": 1.0, "total": 2.0})
    );
    until(&turn, |event| match event {
        Event::Finished { call_id, .. } => &**call_id == "c2",
        Event::Result(_) => panic!("a result overtook an earlier call"),
        _ => false,
    })
    .await;
    release.notify_one();
    let results = results_of(&turn).await;
    assert_eq!(results.iter().map(|result| result.to_string()).collect::<Vec<_>>(), ["slow", "chatty"]);
}

#[tokio::test]
async fn a_flood_of_progress_stays_bounded() {
    let tool = Probe::tool(
        "Flood",
        Facts::DEFAULT,
        |_| Access::nothing(),
        |_, call| {
            for n in 0..100_000 {
                call.progress.report(Progress { message: format!("{n}"), ..Progress::default() });
            }
            Box::pin(async { Ok(text("done")) })
        },
    );
    let toolbox = toolbox_of([tool]).build();
    let turn = toolbox.turn();
    turn.submit(call("c1", "Flood"));
    turn.close();
    // Nobody looks while the tool floods.
    while turn.outstanding() > 0 {
        tokio::task::yield_now().await;
    }
    let mut messages = Vec::new();
    while let Some(event) = turn.next().await {
        if let Event::Progress { progress, .. } = event {
            messages.push(progress.message);
        }
    }
    assert!(messages.len() <= 256, "{}", messages.len());
    assert_eq!(messages.last().unwrap(), "99999", "the newest is kept");
}

#[tokio::test]
async fn different_files_are_edited_at_once_and_one_file_in_order() {
    let world = World::default();
    let met = Arc::new(tokio::sync::Barrier::new(2));
    let edit = Probe::tool(
        "Edit",
        Facts::DEFAULT,
        |input| Access::nothing().uses(Resource::Path(input["file"].as_str().unwrap().into()), Use::Write),
        move |input, _| {
            let met = met.clone();
            let wait = input["meet"] == true;
            Box::pin(async move {
                if wait {
                    met.wait().await;
                }
                Ok(text("edited"))
            })
        },
    );
    let toolbox = toolbox_of([edit, Probe::on_world("World", world, false)]).build();
    let calls = [
        CallRequest::new("c1", "Edit", json!({"file": "/a", "meet": true})),
        CallRequest::new("c2", "Edit", json!({"file": "/b", "meet": true})),
        CallRequest::new("c3", "Edit", json!({"file": "/a"})),
    ];
    assert_eq!(run_all(&toolbox, calls).await.len(), 3);
}

#[tokio::test]
async fn the_same_id_twice_is_refused_once() {
    let toolbox = toolbox_of([Probe::noop("Noop")]).build();
    let results = run_all(&toolbox, [call("c1", "Noop"), call("c1", "Noop")]).await;
    assert!(!results[0].is_error);
    assert_eq!(results[1].error_code.unwrap().name(), "invalid_input");
    assert!(results[1].to_string().contains("already used"));
}

#[tokio::test(start_paused = true)]
async fn a_thousand_calls_keep_their_order() {
    let world = World::default();
    let toolbox = toolbox_of([Probe::on_world("World", world, false)]).build();
    let calls = (0..1000).map(|n| {
        CallRequest::new(&format!("c{n}"), "World", json!({"reads": ["a"], "delay": (n * 7919) % 13, "n": n}))
    });
    let results = run_all(&toolbox, calls).await;
    let ids: Vec<String> = results.iter().map(|result| result.call_id.to_string()).collect();
    assert_eq!(ids, (0..1000).map(|n| format!("c{n}")).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_call_after_the_end_gets_its_result_too() {
    let toolbox = toolbox_of([Probe::noop("Noop")]).build();
    let turn = toolbox.turn();
    turn.close();
    assert_eq!(results_of(&turn).await.len(), 0);
    turn.submit(call("c1", "Noop"));
    assert_eq!(results_of(&turn).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn events_tell_the_life_of_a_call() {
    let toolbox = toolbox_of([Probe::noop("Noop")]).build();
    let turn = toolbox.turn();
    turn.submit(call("c1", "Noop"));
    turn.close();
    let mut kinds = Vec::new();
    while let Some(event) = turn.next().await {
        kinds.push(serde_json::to_value(&event).unwrap()["event"].as_str().unwrap().to_owned());
    }
    assert_eq!(kinds, ["queued", "decision", "started", "finished", "result", "turn_end"]);
    assert!(tokio::time::timeout(Duration::from_secs(1), turn.next()).await.unwrap().is_none());
}
