//! ListMcpResources: what servers have to read.

use std::{sync::Arc, time::Duration};

use futures::future::join_all;
use gripper_runtime::{
    Access, Block, Call, Facts, Place, Resource as Touched, Tool, ToolError, Use,
    tool::{Done, Kind, Loading},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::client::{Resource, Servers};

/// How long servers are waited for when all are asked.
const PATIENCE: Duration = Duration::from_secs(5);

/// The tool.
pub struct ListMcpResources {
    servers: Arc<Servers>,
}

impl ListMcpResources {
    /// Asks these servers.
    pub fn new(servers: Arc<Servers>) -> Self {
        Self { servers }
    }
}

/// What a call carries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// Only the resources of this server.
    pub server: Option<String>,
}

/// The structured result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The resources.
    pub resources: Vec<Resource>,
    /// Servers that did not answer, and why.
    pub missing: Vec<String>,
}

impl Tool for ListMcpResources {
    const NAME: &'static str = "ListMcpResources";
    const DESCRIPTION: &'static str = include_str!("description.md");
    const FACTS: Facts = Facts {
        title: "List resources of servers",
        aliases: &["ListMcpResourcesTool"],
        search_hint: "list resources of MCP servers",
        kind: Kind::List,
        loading: Loading::Deferrable,
        ..Facts::DEFAULT
    };

    type Input = Input;
    type Output = Output;

    fn access(&self, _input: &Input, _place: &Place) -> Access {
        Access::nothing().uses(Touched::Outside("mcp".to_owned()), Use::Read)
    }

    fn summary(&self, input: &Input) -> String {
        match &input.server {
            Some(server) => format!("list the resources of {server}"),
            None => "list the resources of all servers".to_owned(),
        }
    }

    async fn run(&self, input: &Input, _call: &Call) -> Result<Done<Output>, ToolError> {
        if let Some(server) = &input.server {
            let resources = self.servers.resources(server).await?;
            return Ok(Output { resources, missing: Vec::new() }.into());
        }
        let all = self.servers.all();
        let asked = all.iter().map(|server| async {
            let name = &server.config.name;
            match tokio::time::timeout(PATIENCE, self.servers.resources(name)).await {
                Ok(Ok(resources)) => Ok(resources),
                // A server without resources refuses to list them.
                Ok(Err(_))
                    if server
                        .offer()
                        .is_some_and(|offer| offer.info["capabilities"]["resources"].is_null()) =>
                {
                    Ok(Vec::new())
                }
                Ok(Err(error)) => Err(format!("{name}: {error}")),
                Err(_) => Err(format!("{name}: no answer within {} s", PATIENCE.as_secs())),
            }
        });
        let mut output = Output { resources: Vec::new(), missing: Vec::new() };
        for answer in join_all(asked).await {
            match answer {
                Ok(resources) => output.resources.extend(resources),
                Err(why) => output.missing.push(why),
            }
        }
        Ok(output.into())
    }

    fn map(&self, output: &Output) -> Vec<Block> {
        let mut lines: Vec<String> = Vec::new();
        for Resource { server, uri, name, description, mime_type } in &output.resources {
            let kind = mime_type.as_ref().map(|kind| format!(" ({kind})")).unwrap_or_default();
            let about = description.as_ref().map(|about| format!(": {about}")).unwrap_or_default();
            lines.push(format!("{server} {uri} {name}{kind}{about}"));
        }
        if lines.is_empty() {
            lines.push("no resources".to_owned());
        }
        lines.extend(output.missing.iter().map(|why| format!("not asked: {why}")));
        vec![Block::text(lines.join("\n"))]
    }
}

#[cfg(test)]
mod tests;
