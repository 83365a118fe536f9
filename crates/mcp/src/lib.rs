//! Both directions of the Model Context Protocol: servers of others become tools here, and the tools
//! here are served to any client. The only crate that knows the protocol's wire types.

pub mod client;
pub mod list_mcp_resources;
pub mod read_mcp_resource;
pub mod server;

use std::sync::Arc;

use gripper_runtime::{DynTool, erase};

/// The built-in tools about the resources of servers, in order of name.
pub fn tools(servers: &Arc<client::Servers>) -> Vec<Arc<dyn DynTool>> {
    vec![
        erase(list_mcp_resources::ListMcpResources::new(servers.clone())),
        erase(read_mcp_resource::ReadMcpResource::new(servers.clone())),
    ]
}
