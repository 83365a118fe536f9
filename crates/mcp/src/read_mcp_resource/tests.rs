use gripper_runtime::{Block, Tool};

use super::{Output, ReadMcpResource};
use crate::client::{Accounts, Limits, Servers};

#[tokio::test]
async fn parts_are_shown_and_an_unknown_server_is_named() {
    let servers = Servers::new(Vec::new(), Vec::new(), "/".into(), Limits::default(), Accounts::default());
    let error = servers.read("none", "a://b").await.unwrap_err();
    assert!(error.to_string().contains("there is no server \"none\""), "{error}");
    let tool = ReadMcpResource::new(servers);
    let output = |blocks| Output { server: "s".into(), uri: "u".into(), parts: 0, blocks };
    assert_eq!(tool.map(&output(Vec::new()))[0].to_string(), "the resource is empty");
    assert_eq!(tool.map(&output(vec![Block::text("a")]))[0].to_string(), "a");
}
