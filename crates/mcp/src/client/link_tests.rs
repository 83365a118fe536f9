use std::sync::Arc;

use rmcp::{model::JsonRpcMessage, transport::Transport};

use super::{LARGEST, Link, Oddities, read_lines};

/// What arrives of these bytes: ids of answers, `error ID` for those that failed, and the oddities.
async fn arrives(bytes: Vec<u8>) -> (Vec<String>, Option<String>) {
    let oddities = Arc::<Oddities>::default();
    let (mut link, carrier) = Link::new(oddities.clone());
    let reading = tokio::spawn(async move {
        read_lines(tokio::io::BufReader::new(bytes.as_slice()), carrier.incoming).await;
    });
    let mut seen = Vec::new();
    while let Some(message) = link.receive().await {
        seen.push(match message {
            JsonRpcMessage::Response(response) => response.id.to_string(),
            JsonRpcMessage::Error(error) => format!("error {}", error.id.unwrap()),
            other => format!("{other:?}"),
        });
    }
    reading.await.unwrap();
    (seen, oddities.words())
}

fn answer(id: u32, text: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\"{text}\"}}]}}}}\n"
    )
}

#[tokio::test]
async fn what_cannot_be_read_fails_its_own_call_only() {
    let huge = answer(2, &"x".repeat(LARGEST));
    let late = format!("{{\"result\":\"{}\",\"id\": 3}}\n", "y".repeat(LARGEST));
    let broken = "{\"jsonrpc\":\"2.0\",\"id\":4,\"error\":\"not an object\"}\nnot json at all\n\n";
    let all = [answer(1, "a"), huge, late, broken.to_owned(), answer(5, "b"), "{\"half\":".to_owned()];
    let (seen, oddities) = arrives(all.concat().into_bytes()).await;
    assert_eq!(seen, ["1", "error 2", "error 3", "error 4", "5"]);
    let oddities = oddities.unwrap();
    assert!(
        oddities.starts_with("it sent 4 things that are no messages, the last: \"not json at all"),
        "{oddities}"
    );
}
