//! From a prompt to the end of the work: what follows from what ([`machine`]), and who does it ([`drive`]).

mod answer;
pub mod drive;
mod estimate;
pub mod machine;
#[cfg(test)]
mod machine_tests;
mod step;
mod terms;
mod till;
mod tools;

pub use drive::Agent;
pub(crate) use estimate::estimate;
pub use machine::Machine;
pub use step::{Effect, End, Input, Limits};
pub use terms::{AgentEvent, Alone, Config, Denial, Host, Outcome};
pub use till::Till;
