//! Both directions of the Model Context Protocol: servers of others become tools here, and the tools
//! here are served to any client. The only crate that knows the protocol's wire types.

pub mod client;
pub mod server;
