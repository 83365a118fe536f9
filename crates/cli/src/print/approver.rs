//! A server's tool that answers for the person.

use std::sync::Arc;

use gripper_runtime::{
    approve::{Answer, Approver, Ask, Reply},
    hooks::CallTool,
};
use serde_json::{Map, Value};

use super::control::{question, read_answer};

/// Puts questions to a tool of a server; what it answers is text with `{"behavior": "allow" | "deny", …}` in it.
pub(super) struct ByTool {
    tools: Arc<dyn CallTool>,
    server: String,
    tool: String,
}

impl ByTool {
    /// From `mcp__server__tool`.
    pub(super) fn named(name: &str, tools: Arc<dyn CallTool>) -> Result<Self, String> {
        let parts = name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"));
        let (server, tool) = parts.ok_or_else(|| {
            format!("--permission-prompt-tool: \"{name}\" is neither stdio nor of the form mcp__server__tool")
        })?;
        Ok(Self { tools, server: server.to_owned(), tool: tool.to_owned() })
    }
}

impl Approver for ByTool {
    fn push(&self, ask: Ask, reply: Reply) {
        let (tools, server, tool) = (self.tools.clone(), self.server.clone(), self.tool.clone());
        tokio::spawn(async move {
            let asked: Map<String, Value> = match question(&ask) {
                Value::Object(fields) => fields,
                _ => Map::new(),
            };
            let answer = match tools.call(&server, &tool, asked).await {
                Ok(text) => match serde_json::from_str::<Value>(&text) {
                    Ok(said) => read_answer(&said, &ask.input).0,
                    Err(error) => {
                        Answer::deny(format!("the permission tool did not answer in JSON: {error}"))
                    }
                },
                Err(why) => Answer::deny(format!("the permission tool failed: {why}")),
            };
            reply.answer(answer);
        });
    }

    fn remove(&self, _id: &str) {}
}
