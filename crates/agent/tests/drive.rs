//! The whole loop over real HTTP: the driver, each wire, the scripted model server. The server itself checks on every
//! request that each call has exactly one result, in order.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{sync::Arc, time::Duration};

use gripper_agent::{
    message::Message,
    model::{Endpoint, Key, Remote, Trouble, Wire},
    session,
    turn::{Agent, AgentEvent, Config, End, Limits, Outcome},
};
use gripper_runtime::{Deferral, DynTool, Event, tool::Interrupt};
use gripper_testkit::{
    Probe, World,
    model_server::{Answer, Gate, ModelServer, Part, nobody},
    toolbox_of,
};
use rstest::rstest;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

struct Run {
    agent: Agent,
    events: mpsc::Receiver<AgentEvent>,
}

fn agent(wire: Wire, url: &str, tools: Vec<Arc<dyn DynTool>>) -> Run {
    let endpoint = Endpoint::new("the provider", wire, url.parse().unwrap());
    let model = Remote::new(Endpoint { key: Key::Fixed("k".into()), ..endpoint });
    let config = Config {
        model: "m".to_owned(),
        fallback: None,
        system: vec!["be brief".into()],
        max_tokens: 1_000,
        thinking: None,
        deferral: Deferral::Never,
        limits: Limits { turns: Some(20), retries: 3, ..Limits::default() },
        delivery: None,
        till: Default::default(),
    };
    let (sender, events) = mpsc::channel(256);
    let toolbox = toolbox_of(tools).build();
    Run { agent: Agent::new(toolbox, Arc::new(model), config, Vec::new(), sender), events }
}

impl Run {
    /// Works to the end and shows every event.
    async fn work(&mut self, see: impl FnMut(&AgentEvent)) -> Outcome {
        let outcome = self.watched_to_the_end(see).await;
        session::check(self.agent.history()).unwrap();
        outcome
    }

    async fn watched_to_the_end(&mut self, mut see: impl FnMut(&AgentEvent)) -> Outcome {
        let stop = CancellationToken::new();
        let work = self.agent.run(Message::user("go"), &stop);
        tokio::pin!(work);
        let all = async {
            loop {
                tokio::select! {
                    Some(event) = self.events.recv() => see(&event),
                    outcome = &mut work => return outcome,
                }
            }
        };
        // Generous: only something that waits for ever takes this long.
        tokio::time::timeout(Duration::from_secs(60), all).await.expect("it ends")
    }
}

fn call(answer: Answer, id: &str, input: Value) -> Answer {
    answer.call(id, "Probe", input)
}

#[rstest]
#[tokio::test]
async fn a_tool_starts_before_the_stream_ends(
    #[values(Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses)] wire: Wire,
) {
    let gate = Gate::default();
    // The second call is what tells a reader of Chat Completions that the first one is complete.
    let answer = call(call(Answer::new(), "a", json!({})), "b", json!({})).wait(&gate).text("said later");
    let server = ModelServer::start([answer, Answer::says("done")]);
    let mut run = agent(wire, &server.url(), vec![Probe::noop("Probe")]);
    let outcome = run
        .work(|event| {
            if matches!(event, AgentEvent::Call(Event::Finished { .. })) {
                gate.open();
            }
        })
        .await;
    assert_eq!((outcome.text.as_str(), outcome.turns), ("done", 2));
}

#[rstest]
#[tokio::test]
async fn calls_overlap_and_results_are_in_order(
    #[values(Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses)] wire: Wire,
) {
    let answer = (0..10).fold(Answer::new(), |answer, n| call(answer, &format!("c{n}"), json!({})));
    let server = ModelServer::start([answer.split(7), Answer::says("done")]);
    // Each waits for nine others: one after the other they would never end.
    let mut run = agent(wire, &server.url(), vec![Probe::barrier("Probe", 10)]);
    assert_eq!(run.work(|_| {}).await.text, "done");
    assert_eq!(run.agent.history()[2].content.len(), 10);
}

#[rstest]
#[tokio::test]
async fn a_stream_that_breaks_after_a_tool_ran_does_nothing_twice(
    #[values(Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses)] wire: Wire,
) {
    let (gate, world) = (Gate::default(), World::default());
    let write = |answer, id: &str, cell: &str| call(answer, id, json!({ "writes": [cell] }));
    let broken = write(write(Answer::new(), "a", "x"), "b", "y").wait(&gate).part(Part::Cut);
    let again = write(write(Answer::new(), "a2", "x"), "b2", "y");
    let server = ModelServer::start([broken, again, Answer::says("done")]);
    let mut run = agent(wire, &server.url(), vec![Probe::on_world("Probe", world.clone(), false)]);
    let outcome = run
        .work(|event| {
            if matches!(event, AgentEvent::Call(Event::Result(_))) {
                gate.open();
            }
        })
        .await;
    assert_eq!(outcome.text, "done");
    assert_eq!(world.cells().get("x"), Some(&1), "a second time would have made it 4");
    assert_eq!(world.cells().get("y"), Some(&1));
    let streamed: Vec<bool> =
        server.asked().iter().map(|asked| asked.body["stream"] == json!(true)).collect();
    assert_eq!(streamed, [true, false, true], "the second answer is asked for in one piece");
}

#[tokio::test]
async fn a_call_that_a_broken_stream_cut_off_is_not_made_again_unseen() {
    let gate = Gate::default();
    let cut = Answer::calls("Probe", json!({})).wait(&gate).part(Part::Cut);
    let again = Answer::calls("Probe", json!({}));
    let server = ModelServer::start([cut, again, Answer::says("done")]);
    let stuck = Probe::stuck("Probe", Interrupt::Cancel, Duration::from_secs(600));
    let mut run = agent(Wire::Anthropic, &server.url(), vec![stuck]);
    let mut began = 0;
    let outcome = run
        .work(|event| {
            if matches!(event, AgentEvent::Call(Event::Started { .. })) {
                began += 1;
                gate.open();
            }
        })
        .await;
    assert_eq!((outcome.text.as_str(), began), ("done", 1));
}

#[rstest]
#[case::rate(Answer::status(429).header("retry-after", "0"))]
#[case::overload(Answer::status(529))]
#[case::fault(Answer::status(500))]
#[case::cut(Answer::new().text("half of").part(Part::Cut))]
#[case::silence(Answer::refused())]
#[tokio::test]
async fn what_passes_is_waited_for(
    #[case] trouble: Answer,
    #[values(Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses)] wire: Wire,
) {
    let server = ModelServer::start([trouble, Answer::says("done")]);
    let mut run = agent(wire, &server.url(), Vec::new());
    let mut retries = 0;
    let outcome =
        run.work(|event| retries += usize::from(matches!(event, AgentEvent::Retrying { .. }))).await;
    assert_eq!((outcome.text.as_str(), retries), ("done", 1));
    assert_eq!(run.agent.history().len(), 2, "what broke off left nothing");
}

#[rstest]
#[tokio::test]
async fn what_does_not_pass_ends_the_work_with_words(
    #[values(Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses)] wire: Wire,
) {
    let server = ModelServer::start([Answer::status(401)]);
    let mut run = agent(wire, &server.url(), Vec::new());
    let End::Failed(error) = run.work(|_| {}).await.end else { panic!("it fails") };
    assert_eq!(error.kind, Trouble::Unauthorized);
    let mut run = agent(wire, &nobody(), Vec::new());
    let End::Failed(error) = run.work(|_| {}).await.end else { panic!("it fails") };
    assert!(error.kind == Trouble::Unreachable && error.message.contains("127.0.0.1"), "{error}");
}

#[rstest]
#[tokio::test]
async fn strange_calls_get_their_results_and_the_work_goes_on(
    #[values(Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses)] wire: Wire,
) {
    let strange = call(Answer::new(), "same", json!({}));
    let strange = call(strange, "same", json!({})).call("gone", "NoSuchTool", json!({}));
    let strange = strange.call("bad", "Probe", json!("{\"a\": tru"));
    let many = (0..200).fold(Answer::new(), |answer, n| call(answer, &format!("m{n}"), json!({})));
    let server = ModelServer::start([strange, many, Answer::says("done")]);
    let mut run = agent(wire, &server.url(), vec![Probe::noop("Probe")]);
    assert_eq!(run.work(|_| {}).await.text, "done");
    let failed = |message: &Message| {
        let all = message.content.iter();
        all.filter(|block| serde_json::to_value(block).unwrap()["is_error"] == true).count()
    };
    let history = run.agent.history();
    assert_eq!((failed(&history[2]), failed(&history[4])), (2, 0), "{:?}", history[2]);
    assert_eq!(history[4].content.len(), 200);
}

#[tokio::test]
async fn an_interrupt_leaves_a_conversation_that_goes_on() {
    let hangs = call(Answer::new(), "a", json!({})).part(Part::Hang);
    let server = ModelServer::start([hangs, Answer::says("on we go")]);
    let mut run = agent(Wire::Anthropic, &server.url(), vec![Probe::noop("Probe")]);
    let stop = CancellationToken::new();
    let (agent, events) = (&mut run.agent, &mut run.events);
    let watch = async {
        while let Some(event) = events.recv().await {
            if matches!(event, AgentEvent::Call(Event::Result(_))) {
                stop.cancel();
                break;
            }
        }
    };
    let (outcome, ()) = tokio::join!(agent.run(Message::user("go"), &stop), watch);
    assert_eq!(outcome.end, End::Interrupted);
    assert_eq!(run.work(|_| {}).await.text, "on we go");
}
