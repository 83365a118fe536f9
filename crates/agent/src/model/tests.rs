//! Byte streams and what becomes of them; requests and what is sent; errors and what is said.

use std::{collections::HashSet, convert::Infallible, fmt::Write, sync::Arc, time::Duration};

use chrono::{DateTime, Utc};
use futures::{StreamExt, stream};
use proptest::prelude::{ProptestConfig, proptest};
use reqwest::{StatusCode, header::HeaderMap};
use rstest::rstest;
use serde_json::{Value, json};

use super::{
    ModelError, ModelEvent, Request, ToolDefinition, Trouble, Wire,
    http::{Asked, refusal, retry_after},
    remote::decode,
};
use crate::message::{Content, Message, Role};

/// What comes out of these pieces, one event a line.
fn read(wire: Wire, streamed: bool, pieces: Vec<Vec<u8>>) -> String {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    runtime.block_on(async {
        let pieces = stream::iter(pieces.into_iter().map(Ok::<_, Infallible>));
        let taken = HashSet::from(["taken".to_owned()]);
        let events = decode(wire, pieces, streamed, Duration::from_secs(1), taken).collect::<Vec<_>>().await;
        events.iter().fold(String::new(), |mut lines, event| {
            writeln!(lines, "{}", line(event)).unwrap();
            lines
        })
    })
}

fn line(event: &Result<ModelEvent, ModelError>) -> String {
    match event {
        Ok(ModelEvent::Start { id, model }) => format!("start {id} {model}"),
        Ok(ModelEvent::Text { index, text }) => format!("{index} text {text}"),
        Ok(ModelEvent::Thinking { index, text }) => format!("{index} thinking {text}"),
        Ok(ModelEvent::CallStart { index, id, name }) => format!("{index} call {id} {name}"),
        Ok(ModelEvent::CallInput { index, json }) => format!("{index} input {json}"),
        Ok(ModelEvent::Block { index, content, broken }) => {
            let why = broken.as_ref().map(|why| format!(" broken: {why}")).unwrap_or_default();
            format!("{index} block {}{why}", serde_json::to_string(content).unwrap())
        }
        Ok(ModelEvent::Usage(usage)) => format!(
            "usage {} {} {} {}",
            usage.input_tokens,
            usage.output_tokens,
            usage.cache_creation_input_tokens,
            usage.cache_read_input_tokens
        ),
        Ok(ModelEvent::Stop(reason)) => format!("stop {}", serde_json::to_value(reason).unwrap()),
        Err(error) => format!("{:?}: {}", error.kind, error.message),
    }
}

/// Events of a stream, as the wire would carry them.
fn sse(events: &[Value]) -> String {
    events.iter().map(|event| format!("event: x\r\ndata: {event}\r\n\r\n")).collect()
}

const MESSAGES: &str = concat!(
    ": a comment\n\n",
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m1\",\"model\":\"large\",",
    "\"usage\":{\"input_tokens\":7,\"cache_read_input_tokens\":3,\"output_tokens\":1}}}\n\n",
    "event: ping\r\ndata: {\"type\":\"ping\"}\r\n\r\n",
    "data: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"thinking_delta\",\"thinking\":\"héy\"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"signature_delta\",\"signature\":\"s1\"}}\n\n",
    "data: {\"type\":\"content_block_stop\",\"index\":0}\n\n",
    "data: {\"type\":\"content_block_start\",\"index\":1,\"content_block\":{\"type\":\"tool_use\",\"id\":\"a\",",
    "\"name\":\"Read\",\"input\":{}}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":1,\"delta\":{\"type\":\"input_json_delta\",",
    "\"partial_json\":\"{\\\"p\\\": \\\"日\"}}\n\n",
    "data: {\"type\":\"content_block_delta\",\"index\":1,\ndata: \"delta\":{\"type\":\"input_json_delta\",",
    "\"partial_json\":\"本\\\"}\"}}\n\n",
    "data: {\"type\":\"content_block_stop\",\"index\":1}\n\n",
    "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"tool_use\"},\"usage\":{\"output_tokens\":20}}\n\n",
    "data: {\"type\":\"message_stop\"}\n\n",
);
const MESSAGES_READ: &str = "start m1 large
usage 7 1 0 3
0 thinking héy
0 block {\"type\":\"thinking\",\"thinking\":\"héy\",\"signature\":\"s1\"}
1 call a Read
1 input {\"p\": \"日
1 input 本\"}
1 block {\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"Read\",\"input\":{\"p\":\"日本\"}}
usage 7 20 0 3
stop \"tool_use\"
";

const CHAT: &str = concat!(
    ": keep alive\r\n\r\n",
    "data: {\"id\":\"c1\",\"model\":\"small\",\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\r\n\r\n",
    "data: {\"id\":\"c1\",\"choices\":[{\"delta\":{\"reasoning_content\":\"hé\"}}]}\n\n",
    "data: {\"id\":\"c1\",\"choices\":[{\"delta\":{\"content\":\"日\"}}]}\n\n",
    "data: {\"id\":\"c1\",\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":",
    "{\"name\":\"Read\",\"arguments\":\"\"}}]}}]}\n\n",
    "data: {\"id\":\"c1\",\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"function\":{\"arguments\":\"{}\"}}]}}]}\n\n",
    "data: {\"id\":\"c1\",\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n",
    "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":2,",
    "\"prompt_tokens_details\":{\"cached_tokens\":4}}}\n\n",
    "data: [DONE]\n\n",
);
const CHAT_READ: &str = "start c1 small
0 thinking hé
0 block {\"type\":\"thinking\",\"thinking\":\"hé\"}
1 text 日
1 block {\"type\":\"text\",\"text\":\"日\"}
2 call a Read
2 input {}
2 block {\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"Read\",\"input\":{}}
usage 5 2 0 4
stop \"tool_use\"
";
const RESPONSES: &str = concat!(
    "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r1\",\"model\":\"big\"}}\n\n",
    "data: {\"type\":\"response.output_item.added\",\"output_index\":0,\"item\":{\"type\":\"reasoning\",\"id\":\"t\"}}\n\n",
    "data: {\"type\":\"response.reasoning_summary_text.delta\",\"output_index\":0,\"delta\":\"hé\"}\n\n",
    "data: {\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":",
    "{\"type\":\"reasoning\",\"id\":\"t\",\"encrypted_content\":\"e\"}}\n\n",
    "data: {\"type\":\"response.output_item.added\",\"output_index\":1,\"item\":{\"type\":\"message\"}}\r\n\r\n",
    "data: {\"type\":\"response.output_text.delta\",\"output_index\":1,\"delta\":\"日\"}\n\n",
    "data: {\"type\":\"response.output_item.done\",\"output_index\":1,\"item\":",
    "{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":\"日本\"}]}}\n\n",
    "data: {\"type\":\"response.output_item.done\",\"output_index\":2,\"item\":",
    "{\"type\":\"function_call\",\"call_id\":\"a\",\"name\":\"Read\",\"arguments\":\"{}\"}}\n\n",
    "data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":9,\"output_tokens\":2,",
    "\"input_tokens_details\":{\"cached_tokens\":4}}}}\n\n",
);
const RESPONSES_READ: &str = "start r1 big
0 thinking hé
0 block {\"type\":\"reasoning\",\"id\":\"t\",\"encrypted_content\":\"e\"}
1 text 日
1 text 本
1 block {\"type\":\"text\",\"text\":\"日本\"}
2 call a Read
2 input {}
2 block {\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"Read\",\"input\":{}}
usage 5 2 0 4
stop \"tool_use\"
";
const STREAMS: [(Wire, &str, &str); 3] = [
    (Wire::Anthropic, MESSAGES, MESSAGES_READ),
    (Wire::OpenAiChat, CHAT, CHAT_READ),
    (Wire::OpenAiResponses, RESPONSES, RESPONSES_READ),
];

#[rstest]
#[case::messages(Wire::Anthropic, MESSAGES, MESSAGES_READ)]
#[case::chat(Wire::OpenAiChat, CHAT, CHAT_READ)]
#[case::responses(Wire::OpenAiResponses, RESPONSES, RESPONSES_READ)]
fn a_stream_may_be_cut_anywhere(#[case] wire: Wire, #[case] bytes: &str, #[case] expected: &str) {
    let bytes = bytes.as_bytes();
    assert_eq!(read(wire, true, vec![bytes.to_vec()]), expected);
    for at in 0..bytes.len() {
        let (before, after) = bytes.split_at(at);
        assert_eq!(read(wire, true, vec![before.to_vec(), after.to_vec()]), expected, "cut at {at}");
        // And where it ends too early, nobody takes it for complete.
        let early = read(wire, true, vec![before.to_vec()]);
        let (rest, last) = early.trim_end().rsplit_once('\n').unwrap_or(("", early.trim_end()));
        // After the reason to stop only the usage may be missing.
        assert!(last.starts_with("Broken: ") || expected.ends_with(&format!("{last}\n")), "{at}: {early}");
        assert!(expected.starts_with(rest), "{at}: {early}");
    }
}

#[rstest]
#[case::unknown_fields("wind: north\n")]
#[case::two_names("event: a\r\nevent: b\r\n")]
#[case::no_number("retry: soon\r")]
#[case::no_colon("data\nx\n\u{feff}:\n")]
fn fields_that_nobody_knows_are_passed_over(#[case] odd: &str) {
    for (wire, bytes, expected) in STREAMS {
        let bytes = format!("\u{feff}{odd}{}", bytes.replace("data:", &format!("{odd}data:")));
        let pieces = bytes.as_bytes().iter().map(|byte| vec![*byte]).collect();
        assert_eq!(read(wire, true, pieces), expected);
        assert_eq!(read(wire, true, vec![bytes.into_bytes()]), expected);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn pieces_of_any_size_give_the_same(sizes in proptest::collection::vec(1_usize..40, 1..80)) {
        for (wire, bytes, expected) in STREAMS {
            let mut rest = bytes.as_bytes();
            let mut pieces = Vec::new();
            for size in sizes.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (piece, after) = rest.split_at((*size).min(rest.len()));
                pieces.push(piece.to_vec());
                rest = after;
            }
            assert_eq!(read(wire, true, pieces), expected);
        }
    }
}

fn begin(index: u64, block: Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn call_delta(index: u64, json: &str) -> Value {
    delta(index, json!({"type": "input_json_delta", "partial_json": json}))
}

fn done(index: u64) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

#[rstest]
#[case::duplicate_ids_and_no_input(
    &[begin(0, json!({"type": "tool_use", "id": "a", "name": "X", "input": {}})), done(0),
      begin(1, json!({"type": "tool_use", "id": "a", "name": "X", "input": {"k": 1}})), done(1),
      json!({"type": "message_stop"})],
    "0 call a X\n0 block {\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"X\",\"input\":{}}\n\
     1 call a_2 X\n1 input {\"k\":1}\n1 block {\"type\":\"tool_use\",\"id\":\"a_2\",\"name\":\"X\",\"input\":{\"k\":1}}\n\
     stop \"tool_use\"\n"
)]
#[case::broken_input(
    &[begin(0, json!({"type": "tool_use", "id": "a", "name": "X"})), call_delta(0, "{\"k\": tru"), done(0)],
    "0 call a X\n0 input {\"k\": tru\n0 block {\"type\":\"tool_use\",\"id\":\"a\",\"name\":\"X\",\"input\":{}} broken: \
     the input of the call could not be read, it is no valid JSON: EOF while parsing a value at line 1 column 9; \
     what came was: {\"k\": tru\nBroken: the model's answer broke off before it was complete\n"
)]
#[case::unknown_blocks_are_kept(
    &[begin(0, json!({"type": "server_tool_use", "id": "s", "name": "search"})), call_delta(0, "{\"q\":1}"), done(0),
      json!({"type": "newer"}), begin(1, json!({"type": "redacted_thinking", "data": "x"})), done(1),
      json!({"type": "message_delta", "delta": {"stop_reason": "novel"}}), json!({"type": "message_stop"})],
    "0 block {\"type\":\"server_tool_use\",\"id\":\"s\",\"name\":\"search\",\"input\":{\"q\":1}}\n\
     1 block {\"type\":\"redacted_thinking\",\"data\":\"x\"}\nstop \"novel\"\n"
)]
#[case::overloaded(
    &[json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})],
    "Overloaded: the provider broke off its answer (overloaded_error: Overloaded)\n"
)]
#[case::unknown_error(
    &[json!({"type": "error", "error": {"message": "?"}})],
    "Broken: the provider broke off its answer (: ?)\n"
)]
#[case::a_piece_of_nothing(&[call_delta(3, "{")], "Broken: the model's answer broke off before it was complete\n")]
fn messages(#[case] events: &[Value], #[case] expected: &str) {
    assert_eq!(read(Wire::Anthropic, true, vec![sse(events).into_bytes()]), expected);
}

fn call_piece(index: Option<u64>, id: Option<&str>, name: Option<&str>, arguments: Value) -> Value {
    let call = json!({"index": index, "id": id, "function": {"name": name, "arguments": arguments}});
    json!({"choices": [{"delta": {"tool_calls": [call]}}]})
}

fn finish(reason: &str) -> Value {
    json!({"choices": [{"delta": {}, "finish_reason": reason}]})
}

fn tool_use(index: usize, id: &str, input: &str) -> String {
    format!("{index} block {{\"type\":\"tool_use\",\"id\":\"{id}\",\"name\":\"X\",\"input\":{input}}}\n")
}

#[rstest]
#[case::late_names(
    &[call_piece(Some(0), None, None, json!("{\"k\"")), call_piece(Some(0), Some("a"), Some("X"), json!(":1}")),
      call_piece(Some(1), Some("b"), Some("X"), json!("")), finish("tool_calls")],
    &format!("0 call a X\n0 input {{\"k\"\n0 input :1}}\n{}1 call b X\n{}stop \"tool_use\"\n",
        tool_use(0, "a", "{\"k\":1}"), tool_use(1, "b", "{}"))
)]
#[case::repeated_names(
    &[call_piece(Some(0), Some("a"), Some("X"), json!("{")), call_piece(Some(0), Some("a"), Some("X"), json!("}")),
      finish("stop")],
    &format!("0 call a X\n0 input {{\n0 input }}\n{}stop \"tool_use\"\n", tool_use(0, "a", "{}"))
)]
#[case::whole_calls_with_one_index(
    &[call_piece(Some(0), Some("a"), Some("X"), json!({"k": 1})), call_piece(Some(0), Some("b"), Some("X"), json!({})),
      finish("function_call")],
    &format!("0 call a X\n0 input {{\"k\":1}}\n{}1 call b X\n1 input {{}}\n{}stop \"tool_use\"\n",
        tool_use(0, "a", "{\"k\":1}"), tool_use(1, "b", "{}"))
)]
#[case::one_id_twice(
    &[call_piece(Some(0), Some("taken"), Some("X"), json!("")), call_piece(Some(1), Some("taken"), Some("X"), json!("")),
      finish("tool_calls")],
    &format!("0 call taken_2 X\n1 call taken_3 X\n{}{}stop \"tool_use\"\n", tool_use(0, "taken_2", "{}"), tool_use(1, "taken_3", "{}"))
)]
#[case::several_at_once(
    &[call_piece(Some(0), Some("a"), Some("X"), json!("{\"k\"")), call_piece(Some(1), Some("b"), Some("X"), json!("{")),
      call_piece(Some(0), None, None, json!(":1}")), call_piece(Some(1), None, None, json!("}")), finish("tool_calls")],
    &format!("0 call a X\n0 input {{\"k\"\n1 call b X\n1 input {{\n0 input :1}}\n{}1 input }}\n{}stop \"tool_use\"\n",
        tool_use(0, "a", "{\"k\":1}"), tool_use(1, "b", "{}"))
)]
#[case::a_name_that_nobody_takes_back(
    &[call_piece(Some(0), Some("a"), Some("f.X y"), json!("{}")), finish("tool_calls")],
    &format!("0 call a f_X_y\n0 input {{}}\n{}stop \"tool_use\"\n", tool_use(0, "a", "{}").replace('X', "f_X_y"))
)]
#[case::no_tool(
    &[call_piece(Some(0), Some("a"), None, json!("{}")), finish("tool_calls")],
    &format!("0 call a unknown\n0 input {{}}\n{}stop \"tool_use\"\n", tool_use(0, "a", "{}").replace('X', "unknown"))
)]
#[case::no_usage_and_no_end(&[json!({"choices": [{"delta": {"content": "hi"}, "finish_reason": "length"}]})],
    "0 text hi\n0 block {\"type\":\"text\",\"text\":\"hi\"}\nstop \"max_tokens\"\n")]
#[case::an_empty_reason_with_every_piece(
    &[json!({"choices": [{"delta": {"content": "h"}, "finish_reason": ""}]}),
      json!({"choices": [{"delta": {"content": "i"}, "finish_reason": ""}]}), finish("stop")],
    "0 text h\n0 text i\n0 block {\"type\":\"text\",\"text\":\"hi\"}\nstop \"end_turn\"\n")]
#[case::content_in_parts(
    &[json!({"choices": [{"delta": {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "h"}]}]}}]}),
      json!({"choices": [{"delta": {"content": [{"type": "text", "text": "hi"}]}, "finish_reason": "stop"}]})],
    "0 thinking h\n0 block {\"type\":\"thinking\",\"thinking\":\"h\"}\n\
     1 text hi\n1 block {\"type\":\"text\",\"text\":\"hi\"}\nstop \"end_turn\"\n")]
#[case::a_thought_told_twice(
    &[json!({"choices": [{"delta": {"reasoning": "h", "reasoning_content": "h"}, "finish_reason": "stop"}]})],
    "0 thinking h\n0 block {\"type\":\"thinking\",\"thinking\":\"h\"}\nstop \"end_turn\"\n")]
#[case::error(&[json!({"error": {"message": "slow down", "code": "rate_limit_exceeded"}})],
    "RateLimited: the provider broke off its answer (rate_limit_exceeded: slow down)\n")]
fn chat(#[case] events: &[Value], #[case] expected: &str) {
    let read = read(Wire::OpenAiChat, true, vec![sse(events).into_bytes()]);
    assert_eq!(read.strip_prefix("start  \n").unwrap_or(&read), expected);
}

#[rstest]
#[case::no_number(None, &["{}", "{}"], &["{}", "{}"])]
#[case::always_the_same_number(Some(0), &["{\"k\":{}}", "", "{}"], &["{\"k\":{}}", "{}"])]
#[case::a_name_with_every_piece(Some(0), &["{\"k\":", "{}", "}"], &["{\"k\":{}}"])]
fn calls_without_ids_get_some(#[case] index: Option<u64>, #[case] pieces: &[&str], #[case] inputs: &[&str]) {
    let mut events: Vec<Value> =
        pieces.iter().map(|piece| call_piece(index, None, Some("X"), json!(piece))).collect();
    events.push(finish("tool_calls"));
    let read = read(Wire::OpenAiChat, true, vec![sse(&events).into_bytes()]);
    let ids: HashSet<&str> = read.lines().filter_map(|line| line.split(" call call_").nth(1)).collect();
    let blocks = read.lines().filter(|line| line.contains(" block "));
    let told: Vec<&str> = blocks.filter_map(|line| line.split("\"input\":").nth(1)).collect();
    let inputs: Vec<String> = inputs.iter().map(|input| format!("{input}}}")).collect();
    assert_eq!((ids.len(), told), (inputs.len(), inputs.iter().map(String::as_str).collect()), "{read}");
}

#[rstest]
#[case::failed(json!({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "no"}}}),
    "Overloaded: the provider broke off its answer (server_error: no)\n")]
#[case::too_long(json!({"type": "error", "code": "context_length_exceeded", "message": "no"}),
    "TooLong: the conversation is too long for the model (error context_length_exceeded: no); compact it or begin a new \
     one\n")]
#[case::incomplete(json!({"type": "response.incomplete", "response": {"incomplete_details": {"reason": "content_filter"}}}),
    "start  \nstop \"refusal\"\n")]
#[case::unasked(json!({"type": "response.output_text.delta", "delta": "x"}),
    "Broken: the model's answer broke off before it was complete\n")]
fn responses(#[case] event: Value, #[case] expected: &str) {
    assert_eq!(read(Wire::OpenAiResponses, true, vec![sse(&[event]).into_bytes()]), expected);
}

#[rstest]
#[case::no_json("data: {\"type\"\n\n", "Broken: the model's answer is no valid JSON: EOF")]
#[case::control_character(
    "data: \"\u{1}\"\n\n",
    "Broken: the model's answer is no valid JSON: control character"
)]
#[case::no_stream("<html>", "Broken: the model's answer broke off before it was complete")]
#[case::halves_of_characters(
    "data: {\"type\": \"error\", \"error\": {\"message\": \"\\ud83d \\\\ud83d \\ude00 \\ud83d\\ude00\"}}\n\n",
    "Broken: the provider broke off its answer (: \u{fffd} \\ud83d \u{fffd} \u{1f600})"
)]
fn what_is_no_answer(#[case] body: &str, #[case] expected: &str) {
    let read = read(Wire::Anthropic, true, vec![body.as_bytes().to_vec()]);
    assert!(read.starts_with(expected) && read.lines().count() == 1, "{read}");
}

#[test]
fn a_call_under_the_number_of_something_else_is_a_call() {
    let item =
        |kind: &str, item: Value| json!({"type": format!("response.output_item.{kind}"), "item": item});
    let call = json!({"type": "function_call", "call_id": "a", "name": "X", "arguments": "{}"});
    let events = [item("added", json!({"type": "reasoning"})), item("done", call)];
    let read = read(Wire::OpenAiResponses, true, vec![sse(&events).into_bytes()]);
    assert!(read.starts_with(&format!("1 call a X\n1 input {{}}\n{}", tool_use(1, "a", "{}"))), "{read}");
}

#[test]
fn an_error_in_place_of_an_answer_that_comes_as_one() {
    let body = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "no"}});
    for wire in [Wire::Anthropic, Wire::OpenAiChat, Wire::OpenAiResponses] {
        let read = read(wire, false, vec![body.to_string().into_bytes()]);
        assert_eq!(read, "Refused: the provider broke off its answer (invalid_request_error: no)\n");
    }
}

#[test]
fn a_long_input_in_small_pieces_takes_no_longer_than_its_length() {
    let mut body = sse(&[begin(0, json!({"type": "tool_use", "id": "a", "name": "X", "input": {}}))]);
    body += &sse(&[call_delta(0, "{\"k\": \"")]);
    let piece = sse(&[call_delta(0, "0123456789")]);
    (0..30_000).for_each(|_| body.push_str(&piece));
    body += &sse(&[call_delta(0, "\"}"), done(0), json!({"type": "message_stop"})]);
    let read = read(Wire::Anthropic, true, vec![body.into_bytes()]);
    assert!(read.ends_with("0123456789\"}}\nstop \"tool_use\"\n") && read.lines().count() == 30_005);
}

fn request(system: &[&str], tools: &[(&str, bool, bool)], messages: Vec<Message>) -> Request {
    let tool = |(name, built_in, deferred): &(&str, bool, bool)| ToolDefinition {
        name: (*name).to_owned(),
        description: format!("does {name}"),
        schema: json!({"type": "object"}),
        built_in: *built_in,
        deferred: *deferred,
    };
    Request {
        model: "m".to_owned(),
        system: system.iter().map(|part| Arc::from(*part)).collect(),
        tools: tools.iter().map(tool).collect(),
        messages: messages.into_iter().map(Arc::new).collect(),
        max_tokens: 2_000,
        thinking: None,
        streamed: true,
    }
}

fn result(id: &str, content: Vec<Content>, is_error: bool) -> Content {
    Content::ToolResult { tool_use_id: id.to_owned(), content, is_error }
}

fn said(role: Role, content: Vec<Value>) -> Message {
    serde_json::from_value(json!({"role": role, "content": content})).unwrap()
}

/// A conversation with everything in it.
fn conversation() -> Vec<Message> {
    let picture =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}});
    let picture: Content = serde_json::from_value(picture).unwrap();
    let result = result("a", vec![Content::text("seen"), Content::text(" "), picture], true);
    vec![
        Message::user("look"),
        said(
            Role::Assistant,
            vec![
                json!({"type": "thinking", "thinking": "hm", "signature": "s"}),
                json!({"type": "thinking", "thinking": "of somebody else"}),
                json!({"type": "redacted_thinking", "data": "x"}),
                json!({"type": "reasoning", "id": "r", "encrypted_content": "e"}),
                json!({"type": "text", "text": ""}),
                json!({"type": "text", "text": "so"}),
                json!({"type": "tool_use", "id": "a", "name": "Read", "input": {"p": 1}}),
            ],
        ),
        Message { role: Role::User, content: vec![result, Content::text("go on")] },
        Message { role: Role::Assistant, content: vec![Content::text("done")] },
        Message::user("again"),
    ]
}

fn sent(wire: Wire, request: &Request) -> Value {
    body_of(wire, request, false)
}

fn body_of(wire: Wire, request: &Request, newer: bool) -> Value {
    let mut body = Vec::new();
    wire.body(request, newer, &mut body).unwrap();
    serde_json::from_slice(&body).unwrap()
}

#[test]
fn a_request_of_messages() {
    let tools = [("Read", true, false), ("Later", true, true), ("mcp__x", false, false)];
    let mut request = request(&["lasting", " ", "today"], &tools, conversation());
    request.thinking = Some(8_000);
    let mark = json!({"type": "ephemeral"});
    let tool = |name| json!({"name": name, "description": format!("does {name}"), "input_schema": {"type": "object"}});
    let mut tools = [tool("Read"), tool("Later"), tool("mcp__x")];
    tools[0]["cache_control"] = mark.clone();
    tools[1]["defer_loading"] = json!(true);
    let picture =
        json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}});
    let expected = json!({
        "model": "m", "max_tokens": 2_000, "stream": true,
        "thinking": {"type": "enabled", "budget_tokens": 1_999},
        "system": [{"type": "text", "text": "lasting"}, {"type": "text", "text": "today", "cache_control": mark}],
        "tools": tools,
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "look"}]},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "so"},
                {"type": "tool_use", "id": "a", "name": "Read", "input": {"p": 1}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "a", "is_error": true,
                 "content": [{"type": "text", "text": "seen"}, picture]},
                {"type": "text", "text": "go on", "cache_control": mark},
            ]},
            {"role": "assistant", "content": [{"type": "text", "text": "done"}]},
            {"role": "user", "content": [{"type": "text", "text": "again", "cache_control": mark}]},
        ],
    });
    assert_eq!(sent(Wire::Anthropic, &request), expected);
}

#[test]
fn a_request_of_chat() {
    let mut request =
        request(&["lasting", "today"], &[("Read", true, false), ("Later", true, true)], conversation());
    request.thinking = Some(8_000);
    let function = json!({"name": "Read", "description": "does Read", "parameters": {"type": "object"}});
    let call = json!({"id": "a", "type": "function", "function": {"name": "Read", "arguments": "{\"p\":1}"}});
    let expected = json!({
        "model": "m", "max_tokens": 2_000, "stream": true,
        "messages": [
            {"role": "system", "content": "lasting\n\ntoday"},
            {"role": "user", "content": "look"},
            {"role": "assistant", "content": "so", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "a", "content": "the call failed: seen\n "},
            {"role": "user", "content": [
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}},
                {"type": "text", "text": "go on"},
            ]},
            {"role": "assistant", "content": "done"},
            {"role": "user", "content": "again"},
        ],
        "stream_options": {"include_usage": true}, "reasoning_effort": "medium",
        "tools": [{"type": "function", "function": function}],
    });
    assert_eq!(sent(Wire::OpenAiChat, &request), expected);
    let newer = body_of(Wire::OpenAiChat, &request, true);
    assert_eq!((&newer["max_completion_tokens"], &newer["max_tokens"]), (&json!(2_000), &Value::Null));
}

#[test]
fn a_request_of_responses() {
    let mut request = request(&["lasting"], &[("Read", true, false)], conversation());
    request.thinking = Some(100);
    let picture = json!({"type": "input_image", "image_url": "data:image/png;base64,QUJD"});
    let expected = json!({
        "model": "m", "max_output_tokens": 2_000, "stream": true, "store": false,
        "include": ["reasoning.encrypted_content"], "instructions": "lasting",
        "input": [
            {"role": "user", "content": [{"type": "input_text", "text": "look"}]},
            {"type": "reasoning", "id": "r", "encrypted_content": "e"},
            {"role": "assistant", "content": [{"type": "output_text", "text": "so"}]},
            {"type": "function_call", "call_id": "a", "name": "Read", "arguments": "{\"p\":1}"},
            {"type": "function_call_output", "call_id": "a",
             "output": [{"type": "input_text", "text": "the call failed: seen\n "}, picture]},
            {"role": "user", "content": [{"type": "input_text", "text": "go on"}]},
            {"role": "assistant", "content": [{"type": "output_text", "text": "done"}]},
            {"role": "user", "content": [{"type": "input_text", "text": "again"}]},
        ],
        "reasoning": {"effort": "low", "summary": "auto"},
        "tools": [{"name": "Read", "description": "does Read", "parameters": {"type": "object"},
                   "type": "function", "strict": false}],
    });
    assert_eq!(sent(Wire::OpenAiResponses, &request), expected);
}

#[test]
fn a_mark_on_a_result_and_an_id_of_another_provider() {
    let call =
        said(Role::Assistant, vec![json!({"type": "tool_use", "id": "f.X:0", "name": "X", "input": {}})]);
    let block = result("f.X:0", vec![Content::text("seen")], false);
    let request = request(&[], &[], vec![call, Message { role: Role::User, content: vec![block] }]);
    let messages = &sent(Wire::Anthropic, &request)["messages"];
    let expected = json!([{"type": "tool_use", "id": "f_X_0", "name": "X", "input": {}}]);
    assert_eq!(messages[0]["content"], expected);
    let marked = &messages[1]["content"][0];
    assert_eq!(marked["tool_use_id"], "f_X_0");
    assert_eq!(marked["cache_control"]["type"], "ephemeral");
    assert_eq!(marked["content"], json!([{"type": "text", "text": "seen"}]));
}

#[rstest]
#[case::key(
    401,
    r#"{"error":{"message":"invalid x-api-key"}}"#,
    Trouble::Unauthorized,
    "Acme does not accept the key (HTTP 401: invalid x-api-key); check ACME_KEY"
)]
#[case::not_allowed(
    403,
    "",
    Trouble::Unauthorized,
    "Acme does not accept the key (HTTP 403); check ACME_KEY"
)]
#[case::model(
    404,
    r#"{"error":{"message":"model: m"}}"#,
    Trouble::Refused,
    "Acme has no model \"m\", or nothing at http://a/v1 (HTTP 404: model: m); check the model's name and the \
     provider's base URL"
)]
#[case::too_long(
    400,
    r#"{"error":{"message":"Prompt is too long: 9 > 8"}}"#,
    Trouble::TooLong,
    "the conversation is too long for m (HTTP 400: Prompt is too long: 9 > 8); compact it or begin a new one"
)]
#[case::too_long_code(
    400,
    r#"{"error":{"code":"context_length_exceeded","message":"no"}}"#,
    Trouble::TooLong,
    "the conversation is too long for m (HTTP 400: no); compact it or begin a new one"
)]
#[case::too_large(
    413,
    "",
    Trouble::TooLong,
    "the conversation is too long for m (HTTP 413); compact it or begin a new one"
)]
#[case::rate(
    429,
    r#"{"message":"slow down"}"#,
    Trouble::RateLimited,
    "Acme takes no more requests for now (HTTP 429: slow down); wait a while or use another model"
)]
#[case::no_money(
    429,
    r#"{"error":{"code":"insufficient_quota","message":"pay"}}"#,
    Trouble::Refused,
    "Acme refused the request to http://a/v1 (HTTP 429: pay)"
)]
#[case::overloaded(
    529,
    "<html>\nbusy</html>",
    Trouble::Overloaded,
    "Acme has too much to do, or a fault (HTTP 529: <html> busy</html>); try again later or use another model"
)]
#[case::plain_error(
    500,
    r#"{"error":"boom"}"#,
    Trouble::Overloaded,
    "Acme has too much to do, or a fault (HTTP 500: boom); try again later or use another model"
)]
#[case::bad_request(
    400,
    r#"{"detail":"no"}"#,
    Trouble::Refused,
    "Acme refused the request to http://a/v1 (HTTP 400: no)"
)]
#[case::in_a_list(
    400,
    r#"[{"error":{"message":"no"}}]"#,
    Trouble::Refused,
    "Acme refused the request to http://a/v1 (HTTP 400: no)"
)]
#[case::in_other_words(
    422,
    r#"{"detail":[{"msg":"no"}]}"#,
    Trouble::Refused,
    "Acme refused the request to http://a/v1 (HTTP 422: {\"detail\":[{\"msg\":\"no\"}]})"
)]
#[case::redirect(
    302,
    "",
    Trouble::Refused,
    "http://a/v1 points elsewhere (HTTP 302), which is not followed, as the key would go along; set the provider's \
     base URL to where it lives now"
)]
fn refusals(#[case] status: u16, #[case] body: &str, #[case] kind: Trouble, #[case] message: &str) {
    let asked = Asked { provider: "Acme", address: "http://a/v1", model: "m", key: "ACME_KEY" };
    let status = StatusCode::from_u16(status).unwrap();
    let error = refusal(&asked, status, &HeaderMap::new(), body.as_bytes());
    assert_eq!((error.kind, error.message.as_str()), (kind, message));
}

#[rstest]
#[case::seconds("retry-after", "7", Some(7_000))]
#[case::fractions("retry-after", "0.5", Some(500))]
#[case::milliseconds("retry-after-ms", "250", Some(250))]
#[case::date("retry-after", "Thu, 01 Jan 1970 00:00:30 GMT", Some(20_000))]
#[case::past("retry-after", "Thu, 01 Jan 1970 00:00:01 GMT", Some(0))]
#[case::negative("retry-after", "-3", None)]
#[case::endless("retry-after", "1e300", None)]
#[case::long("retry-after", "999999999", Some(86_400_000))]
#[case::nonsense("retry-after", "soon", None)]
fn waits(#[case] name: &'static str, #[case] value: &str, #[case] milliseconds: Option<u64>) {
    let headers = HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]);
    let now = DateTime::<Utc>::from_timestamp(10, 0).unwrap();
    assert_eq!(retry_after(&headers, now), milliseconds.map(Duration::from_millis));
}
