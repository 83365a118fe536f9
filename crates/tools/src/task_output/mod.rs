//! TaskOutput: what a background task has printed since it was last asked, and how it stands.

use std::time::Duration;

use gripper_runtime::{
    Access, Block, Call, Facts, Place, Resource, Tool, ToolError, Use,
    tool::{Background, Done, Hints, Kind, ResultBound},
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tasks::{Report, Tasks};

/// The tool.
pub struct TaskOutput {
    tasks: Tasks,
}

impl TaskOutput {
    /// The tool of a session.
    pub fn new(tasks: Tasks) -> Self {
        Self { tasks }
    }
}

/// What a call carries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The task.
    pub task_id: String,
    /// Whether to wait until it has ended; true unless given.
    pub block: Option<bool>,
    /// The longest wait in milliseconds; 30000 unless given.
    #[schemars(range(max = 600_000))]
    pub timeout: Option<u64>,
}

impl Input {
    fn wait(&self) -> Duration {
        match self.block {
            Some(false) => Duration::ZERO,
            _ => Duration::from_millis(self.timeout.unwrap_or(30_000)),
        }
    }
}

impl Tool for TaskOutput {
    const NAME: &'static str = "TaskOutput";
    const DESCRIPTION: &'static str = include_str!("description.md");
    const FACTS: Facts = Facts {
        title: "Output of a task",
        search_hint: "background task output status wait shell",
        kind: Kind::Read,
        bound: ResultBound::SelfBounded,
        background: Background::Always,
        hints: Hints { idempotent: false, ..Hints::READS },
        ..Facts::DEFAULT
    };

    type Input = Input;
    type Output = Report;

    /// Each report moves on what counts as new.
    fn access(&self, input: &Input, _place: &Place) -> Access {
        Access::nothing().uses(Resource::Session(input.task_id.clone().into()), Use::Write)
    }

    fn time_limit(&self, input: &Input) -> Duration {
        input.wait() + Duration::from_secs(10)
    }

    fn summary(&self, input: &Input) -> String {
        format!("output of {}", input.task_id)
    }

    async fn run(&self, input: &Input, call: &Call) -> Result<Done<Report>, ToolError> {
        self.tasks.wait(&input.task_id, input.wait(), call).await?;
        Ok(self.tasks.report(&input.task_id)?.into())
    }

    fn map(&self, output: &Report) -> Vec<Block> {
        vec![Block::text(output.words())]
    }
}

#[cfg(test)]
mod tests;
