//! AgentOutputTool: how an agent in the background stands.

use std::time::Duration;

use gripper_runtime::{
    Access, Block, Call, ErrorCode, Facts, Place, Tool, ToolError,
    tool::{Done, Hints, Kind},
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    agents::{Crew, Standing},
    model::Usage,
    task::{self, Report, Status},
};

/// The tool.
pub struct AgentOutputTool {
    crew: Crew,
}

impl AgentOutputTool {
    /// The tool of a session.
    pub fn new(crew: Crew) -> Self {
        Self { crew }
    }
}

/// What a call carries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The agent.
    #[serde(rename = "agentId")]
    pub agent_id: String,
    /// Whether to wait until it has ended; true unless given.
    pub block: Option<bool>,
    /// The longest wait in seconds; 150 unless given.
    #[schemars(range(max = 600))]
    pub wait_up_to: Option<u64>,
}

impl Input {
    fn wait(&self) -> Duration {
        match self.block {
            Some(false) => Duration::ZERO,
            _ => Duration::from_secs(self.wait_up_to.unwrap_or(150)),
        }
    }
}

impl Tool for AgentOutputTool {
    const NAME: &'static str = "AgentOutputTool";
    const DESCRIPTION: &'static str = include_str!("description.md");
    const FACTS: Facts = Facts {
        title: "Output of an agent",
        search_hint: "background agent result status wait",
        kind: Kind::Read,
        hints: Hints { idempotent: false, ..Hints::READS },
        ..task::FACTS
    };

    type Input = Input;
    type Output = Report;

    fn access(&self, _input: &Input, _place: &Place) -> Access {
        Access::nothing()
    }

    fn time_limit(&self, input: &Input) -> Duration {
        input.wait() + Duration::from_secs(10)
    }

    fn summary(&self, input: &Input) -> String {
        format!("output of {}", input.agent_id)
    }

    async fn run(&self, input: &Input, call: &Call) -> Result<Done<Report>, ToolError> {
        let id = &input.agent_id;
        let standing = tokio::select! {
            biased;
            () = call.cancel.cancelled() => {
                return Err(ToolError::new(ErrorCode::Cancelled, "the wait was cut short"));
            }
            standing = self.crew.background().wait(id, input.wait()) => standing,
        };
        let standing = standing.map_err(|why| ToolError::new(ErrorCode::NotFound, why))?;
        let Standing { label, activity: (tool_uses, last), took, outcome } = standing;
        let report = match outcome {
            Some(outcome) => Report::of(id, outcome, tool_uses),
            None => Report {
                status: Status::Running,
                result: if last.is_empty() { String::new() } else { format!("{label}: {last}") },
                agent_id: id.clone(),
                usage: Usage::default(),
                tool_uses,
                duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
                note: None,
            },
        };
        Ok(report.into())
    }

    fn map(&self, output: &Report) -> Vec<Block> {
        output.words()
    }
}
