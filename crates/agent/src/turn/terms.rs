//! What an agent is given by whoever runs it, and what it gives back.

use std::{sync::Arc, time::Duration};

use gripper_runtime::{Deferral, Event};
use serde_json::Value;

use super::{
    step::{End, Limits},
    till::Till,
};
use crate::{
    model::{ModelError, ModelEvent, Usage},
    session::Entry,
    structured_output::Delivery,
};

/// Something worth showing.
#[derive(Debug, Clone)]
pub enum AgentEvent {
    /// The model sent something.
    Model(ModelEvent),
    /// Something happened to a call.
    Call(Event),
    /// This is part of the session now.
    Recorded(Entry),
    /// The model is asked again after a wait.
    Retrying {
        /// How long the wait is.
        delay: Duration,
        /// The try that failed, counted from 1.
        attempt: u32,
        /// Of so many.
        of: u32,
        /// What went wrong.
        error: ModelError,
    },
    /// Something the person should know.
    Warning(String),
    /// This became part of the session of an agent below.
    Below {
        /// The call that started the agent.
        call: Arc<str>,
        /// What happened there.
        event: Box<AgentEvent>,
    },
}

/// What the agent is told by whoever it works for.
pub trait Host: Send + Sync {
    /// Takes in what changed meanwhile, such as settings.
    fn refresh(&self) {}

    /// Before every request: takes in what changed meanwhile, such as settings, and gives what the model should
    /// know besides a prompt (`prompted`) or the results of its calls.
    fn look_around(&self, _prompted: bool) -> Option<String> {
        None
    }
}

/// Somebody who has nothing to add.
pub struct Alone;

impl Host for Alone {}

/// How the model is asked.
#[derive(Debug, Clone)]
pub struct Config {
    /// The model's name.
    pub model: String,
    /// The model that takes over when that one has too much to do.
    pub fallback: Option<String>,
    /// The system prompt in parts, the most lasting first.
    pub system: Vec<Arc<str>>,
    /// Longest answer.
    pub max_tokens: u32,
    /// Tokens for thinking.
    pub thinking: Option<u32>,
    /// When tools are announced by name only.
    pub deferral: Deferral,
    /// Where the work must end.
    pub limits: Limits,
    /// What must be delivered, if anything in particular.
    pub delivery: Option<Delivery>,
    /// Where agents that it starts put down what they cost.
    pub till: Till,
}

/// How a piece of work went.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// How it ended.
    pub end: End,
    /// The last thing the model said.
    pub text: String,
    /// Answers given.
    pub turns: u32,
    /// Tokens of this piece of work.
    pub usage: Usage,
    /// Dollars, as far as prices are known.
    pub cost: f64,
    /// How long it took, and how much of that was waiting for the model.
    pub took: (Duration, Duration),
    /// Calls that were not permitted.
    pub denials: Vec<Denial>,
}

/// A call that was not permitted.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Denial {
    /// The tool.
    pub tool_name: String,
    /// The call.
    pub tool_use_id: String,
    /// Its input.
    pub tool_input: Value,
}
