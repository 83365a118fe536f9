//! From a prompt to the end of the work: what follows from what ([`machine`]), and who does it ([`drive`]).

mod answer;
pub mod drive;
mod estimate;
pub mod machine;
#[cfg(test)]
mod machine_tests;
mod step;
mod tools;

pub use drive::{Agent, AgentEvent, Alone, Config, Denial, Host, Outcome};
pub(crate) use estimate::estimate;
pub use machine::Machine;
pub use step::{Effect, End, Input, Limits};
