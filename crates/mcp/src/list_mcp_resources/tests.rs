use gripper_runtime::Tool;

use super::{ListMcpResources, Output};
use crate::client::{Accounts, Limits, Resource, Servers};

#[tokio::test]
async fn resources_are_lines_and_silent_servers_are_named() {
    let tool = ListMcpResources::new(Servers::new(
        Vec::new(),
        Vec::new(),
        "/".into(),
        Limits::default(),
        Accounts::default(),
    ));
    let text = |output: &Output| tool.map(output)[0].to_string();
    assert_eq!(text(&Output { resources: Vec::new(), missing: Vec::new() }), "no resources");
    let one = Resource {
        server: "s".into(),
        uri: "a://b".into(),
        name: "n".into(),
        description: Some("what".into()),
        mime_type: Some("text/plain".into()),
    };
    let output = Output { resources: vec![one], missing: vec!["t: gone".into()] };
    assert_eq!(text(&output), "s a://b n (text/plain): what\nnot asked: t: gone");
}
