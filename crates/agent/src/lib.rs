//! Who talks to the model?
//!
//! A [`model::Model`] answers requests as a stream of events. The turn machine decides, event by event, what
//! follows from them, and a driver does it: runs tools while the answer still streams, keeps every call paired
//! with its result, writes the transcript before it acts.

pub mod agent_output_tool;
pub mod agents;
pub mod compact;
pub mod context;
pub mod message;
pub mod model;
pub mod session;
pub mod structured_output;
pub mod task;
pub mod turn;
