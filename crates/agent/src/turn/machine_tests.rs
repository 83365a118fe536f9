use std::{collections::HashSet, sync::Arc, time::Duration};

use serde_json::json;

use super::{Effect, End, Input, Limits, Machine};
use crate::{
    message::{Content, Message},
    model::{ModelError, ModelEvent, StopReason, Trouble, Usage},
    session::{self, Entry, Origin},
};

fn machine() -> Machine {
    Machine::new(Vec::new(), 200_000, Limits::default())
}

fn prompt() -> Input {
    Input::Prompt(Message::user("go"), Origin::Prompt)
}

fn start(id: &str) -> Input {
    Input::Model(ModelEvent::Start { id: id.to_owned(), model: "m".to_owned() })
}

fn text() -> Input {
    Input::Model(ModelEvent::Block { index: 0, content: Content::text("so"), broken: None })
}

fn thought() -> Input {
    let content = Content::Thinking { thinking: "hm".to_owned(), signature: "s".to_owned() };
    Input::Model(ModelEvent::Block { index: 0, content, broken: None })
}

fn call(id: &str, n: u32) -> Input {
    let content =
        Content::ToolUse { id: id.to_owned(), name: "Edit".to_owned(), input: json!({ "n": n }).into() };
    Input::Model(ModelEvent::Block { index: 0, content, broken: None })
}

fn stop(reason: StopReason) -> Input {
    Input::Model(ModelEvent::Stop(reason))
}

fn result(id: &str) -> Content {
    Content::ToolResult { tool_use_id: id.to_owned(), content: vec![Content::text("ok")], is_error: false }
}

fn over() -> Input {
    Input::CallsOver { context: Vec::new(), delivered: false }
}

fn broken() -> Input {
    Input::Failed(ModelError::new(Trouble::Broken, "cut"))
}

/// Everything that follows from these, but what is only written down.
fn follow(machine: &mut Machine, inputs: impl IntoIterator<Item = Input>) -> Vec<Effect> {
    let effects = inputs.into_iter().flat_map(|input| machine.step(input));
    effects.filter(|effect| !matches!(effect, Effect::Record(_))).collect()
}

#[test]
fn a_call_is_recorded_before_it_runs_and_its_result_before_the_next_request() {
    let mut machine = machine();
    machine.step(prompt());
    machine.step(start("a"));
    let effects = machine.step(call("1", 1));
    assert!(
        matches!(effects[..], [Effect::Record(Entry::Block { .. }), Effect::Submit { .. }]),
        "{effects:?}"
    );
    follow(&mut machine, [stop(StopReason::ToolUse)]);
    let effects = machine.step(Input::Result(result("1")));
    assert!(matches!(effects[..], [Effect::Record(Entry::Result { .. })]), "{effects:?}");
    assert_eq!(machine.step(over()), [Effect::Ask { streamed: true }]);
    assert_eq!(machine.history().len(), 3);
}

#[test]
fn a_stream_that_breaks_before_any_tool_ran_is_asked_for_again_and_leaves_nothing() {
    let mut machine = machine();
    let effects = follow(&mut machine, [prompt(), start("a"), text(), broken()]);
    assert!(matches!(effects[..], [Effect::Ask { streamed: true }, Effect::Wait { .. }]), "{effects:?}");
    assert_eq!(machine.history().len(), 1);
    let again = follow(&mut machine, [Input::Waited, broken(), Input::Waited]);
    assert!(
        matches!(again[..], [Effect::Ask { streamed: true }, _, Effect::Ask { streamed: false }]),
        "{again:?}"
    );
}

#[test]
fn what_was_done_before_a_stream_broke_is_kept_and_never_done_twice() {
    let mut machine = machine();
    follow(
        &mut machine,
        [prompt(), start("a"), call("1", 1), Input::Began("1".to_owned()), Input::Result(result("1"))],
    );
    let effects = follow(&mut machine, [call("2", 2), broken()]);
    assert!(matches!(effects[..], [Effect::Submit { .. }, Effect::DropCalls]), "{effects:?}");
    let dropped = vec![Content::ToolResult { tool_use_id: "2".to_owned(), content: vec![], is_error: true }];
    let effects = follow(&mut machine, [Input::Dropped(dropped), Input::Waited]);
    assert!(matches!(effects[..], [Effect::Wait { .. }, Effect::Ask { streamed: false }]), "{effects:?}");
    session::check(machine.history()).unwrap();
    assert_eq!(machine.history().len(), 3);
    // The same call again is answered from what is known, the one that was dropped is made.
    let effects = follow(&mut machine, [start("b"), call("3", 1), call("4", 2), stop(StopReason::ToolUse)]);
    assert!(
        matches!(&effects[..], [Effect::Submit { id, .. }, Effect::CloseCalls] if id == "4"),
        "{effects:?}"
    );
    follow(&mut machine, [Input::Result(result("4")), over()]);
    session::check(machine.history()).unwrap();
}

#[test]
fn a_call_that_was_cut_off_is_not_repeated_without_a_look() {
    let mut machine = machine();
    let cut = [
        prompt(),
        start("a"),
        call("1", 1),
        Input::Began("1".to_owned()),
        broken(),
        Input::Dropped(Vec::new()),
    ];
    follow(&mut machine, cut.into_iter().chain([Input::Waited]));
    let again = follow(&mut machine, [start("b"), call("2", 1), stop(StopReason::ToolUse), over()]);
    assert_eq!(again, [Effect::CloseCalls, Effect::Ask { streamed: true }], "it is not run");
    let third = follow(&mut machine, [start("c"), call("3", 1)]);
    assert!(matches!(third[..], [Effect::Submit { .. }]), "once the model has been told, it may: {third:?}");
}

#[test]
fn waits_grow_and_what_the_provider_wants_counts() {
    let mut machine = machine();
    follow(&mut machine, [prompt()]);
    let mut delays = Vec::new();
    for retry_after in [None, Some(Duration::ZERO), None, Some(Duration::from_secs(7))] {
        let error = ModelError { retry_after, ..ModelError::new(Trouble::RateLimited, "busy") };
        for effect in follow(&mut machine, [Input::Failed(error), Input::Waited]) {
            if let Effect::Wait { delay, .. } = effect {
                delays.push(delay.as_millis());
            }
        }
    }
    assert_eq!(delays, [500, 1_000, 2_000, 7_000]);
}

#[test]
fn an_address_where_nobody_has_answered_is_not_tried_for_long() {
    let tries = |machine: &mut Machine| {
        follow(machine, [prompt()]);
        let failed = || Input::Failed(ModelError::new(Trouble::Unreachable, "nobody"));
        let more = |machine: &mut Machine| follow(machine, [failed(), Input::Waited]);
        (1..20).find(|_| !more(machine).iter().any(|effect| matches!(effect, Effect::Ask { .. })))
    };
    let mut machine = machine();
    assert_eq!(tries(&mut machine), Some(5));
    follow(&mut machine, [prompt(), start("a"), text(), stop(StopReason::EndTurn), Input::Hooked(None)]);
    assert_eq!(tries(&mut machine), Some(9));
}

#[test]
fn what_is_said_belongs_to_the_prompt() {
    let mut machine = machine();
    follow(&mut machine, [prompt(), start("a"), text(), stop(StopReason::PauseTurn), start("b"), text()]);
    assert_eq!(machine.words, "so", "of an answer that is not complete nothing is said yet");
    follow(&mut machine, [stop(StopReason::EndTurn), Input::Hooked(None)]);
    assert_eq!(machine.words, "soso");
    follow(&mut machine, [prompt(), start("c"), stop(StopReason::EndTurn), Input::Hooked(None)]);
    assert_eq!(machine.words, "");
}

#[test]
fn trouble_that_does_not_pass_ends_the_work_at_once() {
    for kind in [Trouble::Unauthorized, Trouble::Refused] {
        let effects = follow(&mut machine(), [prompt(), Input::Failed(ModelError::new(kind, "no"))]);
        assert!(matches!(effects[..], [_, Effect::Finish(End::Failed(_))]), "{effects:?}");
    }
    let long = || Input::Failed(ModelError::new(Trouble::TooLong, "long"));
    let mut machine = machine();
    let effects = follow(&mut machine, [prompt(), long()]);
    assert_eq!(effects[1..], [Effect::Compact]);
    let shorter = vec![Arc::new(Message::user("short"))];
    let effects = follow(&mut machine, [Input::Compacted(Ok(shorter)), long()]);
    assert!(matches!(effects[..], [Effect::Ask { .. }, Effect::Finish(End::Failed(_))]), "{effects:?}");
}

#[test]
fn limits_end_the_work_with_every_call_answered() {
    let mut machine = Machine::new(Vec::new(), 200_000, Limits { turns: Some(1), ..Limits::default() });
    let effects = follow(
        &mut machine,
        [prompt(), start("a"), call("1", 1), stop(StopReason::ToolUse), Input::Result(result("1")), over()],
    );
    assert_eq!(effects.last(), Some(&Effect::Finish(End::MaxTurns(1))));
    session::check(machine.history()).unwrap();
    let filled = Usage { input_tokens: 170_000, ..Usage::default() };
    let mut machine = self::machine();
    let effects = follow(
        &mut machine,
        [
            prompt(),
            start("a"),
            call("1", 1),
            Input::Model(ModelEvent::Usage(filled)),
            stop(StopReason::ToolUse),
            over(),
        ],
    );
    assert_eq!(effects.last(), Some(&Effect::Compact));
}

#[test]
fn hooks_may_send_the_model_back_to_work() {
    let mut machine = machine();
    let done = || [start("a"), text(), stop(StopReason::EndTurn)];
    follow(&mut machine, std::iter::once(prompt()).chain(done()));
    let effects = follow(&mut machine, [Input::Hooked(Some("tests fail".to_owned()))]);
    assert_eq!(effects, [Effect::Ask { streamed: true }]);
    let effects = follow(&mut machine, done().into_iter().chain([Input::Hooked(None)]));
    assert_eq!(effects, [Effect::AskHooks, Effect::Finish(End::Done(StopReason::EndTurn))]);
    session::check(machine.history()).unwrap();
}

#[test]
fn thoughts_that_led_to_nothing_are_not_sent_back() {
    let mut machine = machine();
    follow(&mut machine, [prompt(), start("a"), thought(), stop(StopReason::MaxTokens), Input::Hooked(None)]);
    follow(&mut machine, [prompt(), start("b"), text(), thought(), Input::Interrupt]);
    follow(&mut machine, [prompt(), start("c"), text(), stop(StopReason::PauseTurn), start("d"), text()]);
    follow(&mut machine, [stop(StopReason::EndTurn), Input::Hooked(None)]);
    let sizes: Vec<usize> = machine.history().iter().map(|message| message.content.len()).collect();
    assert_eq!(sizes, [2, 1, 1, 2], "two prompts are one message, and so is an answer that paused");
    session::check(machine.history()).unwrap_or_else(|why| panic!("{why}"));
}

/// A world in which anything may happen next. Whatever does, the conversation stays one that can be sent.
#[test]
fn no_order_of_events_breaks_the_conversation() {
    let mut seed = 7_u64;
    let mut random = move |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    for _ in 0..2_000 {
        let mut machine = machine();
        let (mut open, mut next, mut submitted) = (Vec::<String>::new(), 0_u32, HashSet::new());
        let mut inputs = vec![prompt()];
        for _ in 0..random(60) {
            while let Some(input) = inputs.pop() {
                for effect in machine.step(input) {
                    match effect {
                        Effect::Submit { id, .. } => {
                            assert!(submitted.insert(id.clone()), "a call runs once");
                            open.push(id);
                        }
                        Effect::DropCalls => {
                            let kept = open.drain(..).filter(|_| random(3) > 0);
                            inputs.push(Input::Dropped(kept.map(|id| result(&id)).collect()));
                        }
                        Effect::Compact => inputs.push(Input::Compacted(Err("no".to_owned()))),
                        Effect::Ask { .. } | Effect::Finish(_) => open.clear(),
                        _ => {}
                    }
                }
                session::check(machine.history()).unwrap_or_else(|why| panic!("{why}"));
            }
            next += 1;
            inputs.push(match random(16) {
                0 => start(&format!("a{next}")),
                1 => text(),
                2..=4 => call(&next.to_string(), random(3) as u32),
                5 => stop(StopReason::ToolUse),
                6 => stop(StopReason::EndTurn),
                7 => broken(),
                8 => Input::Began(open.last().cloned().unwrap_or_default()),
                9 => open.pop().map_or(Input::Waited, |id| Input::Result(result(&id))),
                10 => over(),
                11 => Input::Hooked((random(2) == 0).then(|| "more".to_owned())),
                12 => Input::Waited,
                13 => thought(),
                14 => stop(StopReason::PauseTurn),
                _ if random(6) == 0 => Input::Interrupt,
                _ => prompt(),
            });
        }
    }
}
