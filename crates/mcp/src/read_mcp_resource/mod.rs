//! ReadMcpResource: one resource of a server.

use std::sync::Arc;

use gripper_runtime::{
    Access, Block, Call, Facts, Place, Resource, Tool, ToolError, Use,
    results::Strategy,
    tool::{Done, Kind, Loading, ResultBound},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::client::Servers;

/// The tool.
pub struct ReadMcpResource {
    servers: Arc<Servers>,
}

impl ReadMcpResource {
    /// Reads from these servers.
    pub fn new(servers: Arc<Servers>) -> Self {
        Self { servers }
    }
}

/// What a call carries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The server.
    #[schemars(length(min = 1))]
    pub server: String,
    /// The address, as ListMcpResources shows it.
    #[schemars(length(min = 1))]
    pub uri: String,
}

/// The structured result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The server.
    pub server: String,
    /// The address.
    pub uri: String,
    /// How many parts it has.
    pub parts: usize,
    #[serde(skip)]
    blocks: Vec<Block>,
}

impl Tool for ReadMcpResource {
    const NAME: &'static str = "ReadMcpResource";
    const DESCRIPTION: &'static str = include_str!("description.md");
    const FACTS: Facts = Facts {
        title: "Read a resource of a server",
        aliases: &["ReadMcpResourceTool"],
        search_hint: "read resource of MCP server by uri",
        kind: Kind::Read,
        loading: Loading::Deferrable,
        bound: ResultBound::Chars(100_000, Strategy::KeepStart),
        ..Facts::DEFAULT
    };

    type Input = Input;
    type Output = Output;

    fn access(&self, _input: &Input, _place: &Place) -> Access {
        Access::nothing().uses(Resource::Outside("mcp".to_owned()), Use::Read)
    }

    fn summary(&self, input: &Input) -> String {
        format!("read {} of {}", input.uri, input.server)
    }

    async fn run(&self, input: &Input, _call: &Call) -> Result<Done<Output>, ToolError> {
        let blocks = self.servers.read(&input.server, &input.uri).await?;
        let (server, uri) = (input.server.clone(), input.uri.clone());
        Ok(Output { server, uri, parts: blocks.len(), blocks }.into())
    }

    fn map(&self, output: &Output) -> Vec<Block> {
        if output.blocks.is_empty() {
            vec![Block::text("the resource is empty")]
        } else {
            output.blocks.clone()
        }
    }
}

#[cfg(test)]
mod tests;
