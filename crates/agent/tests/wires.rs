//! Each wire over real HTTP against the scripted model server.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed expectation is how tests fail")]

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream::BoxStream};
use gripper_agent::{
    message::{Content, Message, Role},
    model::{
        Endpoint, Key, Model, ModelError, ModelEvent, Remote, Request, StopReason, Trouble, Usage, Wire,
    },
};
use gripper_testkit::model_server::{Answer, Gate, ModelServer, Part, Tokens, nobody};
use rstest::rstest;
use serde_json::{Value, json};

const KEY: &str = "wonderful-key-0123456789";

fn endpoint(wire: Wire, url: &str) -> Endpoint {
    let endpoint = Endpoint::new("the provider", wire, url.parse().unwrap());
    Endpoint { key: Key::Fixed(KEY.into()), key_place: "A_KEY".to_owned(), ..endpoint }
}

fn request(messages: Vec<Message>) -> Request {
    Request {
        model: "m".to_owned(),
        system: vec![Arc::from("be brief")],
        tools: Arc::from([]),
        messages: messages.into_iter().map(Arc::new).collect(),
        max_tokens: 1_000,
        thinking: None,
        streamed: true,
    }
}

fn ask(wire: Wire, server: &ModelServer) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
    Remote::new(endpoint(wire, &server.url())).stream(request(vec![Message::user("hello")]))
}

async fn error(events: BoxStream<'static, Result<ModelEvent, ModelError>>) -> ModelError {
    let mut events: Vec<_> = events.collect().await;
    events.pop().unwrap().expect_err("the last event is an error")
}

/// The blocks, the last usage and the reason to stop.
async fn answer(
    events: BoxStream<'static, Result<ModelEvent, ModelError>>,
) -> (Vec<Content>, Usage, StopReason) {
    let (mut blocks, mut used, mut reason) = (Vec::new(), Usage::default(), None);
    for event in events.collect::<Vec<_>>().await {
        match event.unwrap() {
            ModelEvent::Block { content, broken: None, .. } => blocks.push(content),
            ModelEvent::Usage(usage) => used = usage,
            ModelEvent::Stop(stop) => reason = Some(stop),
            _ => {}
        }
    }
    (blocks, used, reason.unwrap())
}

#[rstest]
#[tokio::test]
async fn a_conversation_goes_on(
    #[values(Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses)] wire: Wire,
    #[values(true, false)] streamed: bool,
    #[values(None, Some(1), Some(7))] split: Option<usize>,
) {
    let usage = Tokens { input: 100, output: 20, cached: 30 };
    let mut first = Answer::new().thinking("höre").text("first … then").usage(usage);
    first.parts.push(Part::Call { id: "a".into(), name: "Read".into(), input: json!({"path": "ä/b"}) });
    first.parts.push(Part::Call { id: "b".into(), name: "Glob".into(), input: json!({}) });
    first.split = split;
    let server = ModelServer::start([first, Answer::says("done").stop("max_tokens")]);
    let model = Remote::new(endpoint(wire, &server.url()));
    let asked = Request { streamed, ..request(vec![Message::user("hello")]) };
    let (blocks, used, stop) = answer(model.stream(asked)).await;
    let texts: Vec<&Content> = blocks.iter().filter(|block| matches!(block, Content::Text { .. })).collect();
    assert_eq!(texts, [&Content::text("first … then")]);
    let call = |id: &str, name: &str, input: Value| {
        let (id, name) = (id.into(), name.into());
        Content::ToolUse { id, name, input: input.into() }
    };
    assert_eq!(blocks[2..], [call("a", "Read", json!({"path": "ä/b"})), call("b", "Glob", json!({}))]);
    let told =
        Usage { input_tokens: 100, output_tokens: 20, cache_read_input_tokens: 30, ..Usage::default() };
    assert_eq!((used, stop), (told, StopReason::ToolUse));
    // The server refuses what is out of order, so this proves that calls and results are sent as they must be.
    let result = |id: &str| Content::ToolResult {
        tool_use_id: id.to_owned(),
        content: vec![Content::text("seen")],
        is_error: false,
    };
    let history = vec![
        Message::user("hello"),
        Message { role: Role::Assistant, content: blocks },
        Message { role: Role::User, content: vec![result("a"), result("b"), Content::text("go on")] },
    ];
    let (blocks, _, stop) = answer(model.stream(Request { streamed, ..request(history) })).await;
    assert_eq!((blocks, stop), (vec![Content::text("done")], StopReason::MaxTokens));
    let header = if wire == Wire::Anthropic {
        ("x-api-key", KEY.into())
    } else {
        ("authorization", format!("Bearer {KEY}"))
    };
    assert!(server.asked().iter().all(|asked| asked.headers[header.0] == header.1));
    assert_eq!(server.asked().len(), 2);
}

#[rstest]
#[tokio::test]
async fn a_call_is_complete_before_the_answer_is(
    #[values(Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses)] wire: Wire,
) {
    let gate = Gate::default();
    let answer = Answer::new().call("a", "Read", json!({})).call("b", "Read", json!({})).wait(&gate);
    let server = ModelServer::start([answer.call("c", "Read", json!({}))]);
    let mut events = ask(wire, &server);
    let complete = async |events: &mut BoxStream<'static, Result<ModelEvent, ModelError>>| {
        while let Some(event) = events.next().await {
            if let ModelEvent::Block { content: Content::ToolUse { id, .. }, .. } = event.unwrap() {
                return Some(id);
            }
        }
        None
    };
    assert_eq!(complete(&mut events).await.as_deref(), Some("a"));
    gate.open();
    assert_eq!(complete(&mut events).await.as_deref(), Some("b"));
    assert_eq!(complete(&mut events).await.as_deref(), Some("c"));
    assert_eq!(complete(&mut events).await, None);
}

#[rstest]
#[case::rate(Answer::status(429).header("retry-after", "3"), Trouble::RateLimited, Some(3))]
#[case::rate_without_time(Answer::status(429), Trouble::RateLimited, None)]
#[case::overloaded(Answer::status(529), Trouble::Overloaded, None)]
#[case::fault(Answer::status(500), Trouble::Overloaded, None)]
#[case::too_long(Answer::too_long(), Trouble::TooLong, None)]
#[case::key(Answer::status(401).body(KEY), Trouble::Unauthorized, None)]
#[case::no_model(Answer::status(404), Trouble::Refused, None)]
#[case::moved(Answer::status(307).header("location", "/elsewhere"), Trouble::Refused, None)]
#[case::no_word(Answer::refused(), Trouble::Unreachable, None)]
#[case::cut(Answer::says("hi").part(Part::Cut), Trouble::Broken, None)]
#[case::silence(Answer::says("hi").part(Part::Hang), Trouble::Broken, None)]
#[case::silence_at_once(Answer::new().part(Part::Hang), Trouble::Broken, None)]
#[case::no_stream(Answer::new().body("<html>\n"), Trouble::Broken, None)]
#[case::page(Answer::new().body("<html>\n").header("content-type", "text/html"), Trouble::Refused, None)]
#[case::compressed(Answer::says("hi").header("content-encoding", "gzip"), Trouble::Refused, None)]
#[tokio::test]
async fn trouble(
    #[values(Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses)] wire: Wire,
    #[case] answer: Answer,
    #[case] kind: Trouble,
    #[case] seconds: Option<u64>,
) {
    let hangs = matches!(answer.parts.last(), Some(Part::Hang));
    let server = ModelServer::start([answer]);
    let idle = if hangs { Duration::from_millis(200) } else { Duration::from_secs(60) };
    let endpoint = Endpoint { idle, ..endpoint(wire, &server.url()) };
    let error = error(Remote::new(endpoint).stream(request(vec![Message::user("hello")]))).await;
    assert_eq!((error.kind, error.retry_after), (kind, seconds.map(Duration::from_secs)), "{error}");
    assert!(!error.message.contains(KEY), "{error}");
}

#[tokio::test]
async fn nobody_there_is_said_with_the_address() {
    let url = nobody();
    let model = Remote::new(endpoint(Wire::Anthropic, &url));
    let error = error(model.stream(request(vec![Message::user("hello")]))).await;
    assert_eq!(error.kind, Trouble::Unreachable);
    assert!(error.message.contains(&url) && error.message.contains("refused"), "{error}");
}

#[rstest]
#[tokio::test]
async fn a_call_without_a_result_is_refused(
    #[values(Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses)] wire: Wire,
) {
    let server = ModelServer::start([Answer::says("never")]);
    let call = Content::ToolUse { id: "a".into(), name: "Read".into(), input: json!({}).into() };
    let history = vec![
        Message::user("hello"),
        Message { role: Role::Assistant, content: vec![call] },
        Message::user("and?"),
    ];
    let model = Remote::new(endpoint(wire, &server.url()));
    let error = error(model.stream(request(history))).await;
    assert!(error.message.contains("the call a has no result"), "{error}");
    assert_eq!(server.take_faults(), ["the call a has no result"]);
}

#[cfg(unix)]
#[tokio::test]
async fn a_refused_key_of_a_command_is_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let words = ["/bin/sh", "-c", "printf 'key-'; ls | wc -l; touch used"].map(str::to_owned).to_vec();
    let server = ModelServer::choosing(|asked, at| match (at, asked.headers["x-api-key"].as_str()) {
        (0, "key-0") | (2, "key-1") => Some(Answer::says("hello")),
        (1, "key-0") => Some(Answer::status(401)),
        _ => None,
    });
    let command = |words| Key::Command { words, cwd: folder.path().to_owned(), known: Arc::default() };
    let key = command(words);
    let model = Remote::new(Endpoint { key, ..endpoint(Wire::Anthropic, &server.url()) });
    for _ in 0..2 {
        let (blocks, ..) = answer(model.stream(request(vec![Message::user("hello")]))).await;
        assert_eq!(blocks, [Content::text("hello")]);
    }
    let key = command(vec!["/bin/false".to_owned()]);
    let model = Remote::new(Endpoint { key, ..endpoint(Wire::Anthropic, &server.url()) });
    let error = error(model.stream(request(vec![Message::user("hello")]))).await;
    assert_eq!(error.kind, Trouble::Unauthorized);
    assert!(error.message.contains("/bin/false, failed with code 1"), "{error}");
}
