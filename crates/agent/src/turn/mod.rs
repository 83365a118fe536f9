//! From a prompt to the end of the work: what follows from what ([`machine`]), and who does it ([`drive`]).

mod answer;
pub mod drive;
pub mod machine;
#[cfg(test)]
mod machine_tests;
mod till;
mod tools;

pub use drive::{Agent, AgentEvent, Alone, Config, Denial, Host, Outcome};
pub use machine::{Effect, End, Input, Limits, Machine};
pub use till::Till;
