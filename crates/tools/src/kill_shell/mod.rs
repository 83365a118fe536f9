//! KillShell: ends a background task with everything it started.

use gripper_runtime::{
    Access, Block, Call, Facts, Place, Resource, Tool, ToolError, Use,
    schema::Problem,
    tool::{Background, Done, Hints},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tasks::Tasks;

/// The tool.
pub struct KillShell {
    tasks: Tasks,
}

impl KillShell {
    /// The tool of a session.
    pub fn new(tasks: Tasks) -> Self {
        Self { tasks }
    }
}

/// What a call carries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The background command.
    pub shell_id: Option<String>,
    /// The same under its other name.
    pub task_id: Option<String>,
}

impl Input {
    fn id(&self) -> &str {
        self.shell_id.as_deref().or(self.task_id.as_deref()).unwrap_or_default()
    }
}

/// The structured result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// The task.
    pub task_id: String,
    /// How it stands.
    pub status: &'static str,
}

impl Tool for KillShell {
    const NAME: &'static str = "KillShell";
    const DESCRIPTION: &'static str = include_str!("description.md");
    const FACTS: Facts = Facts {
        title: "End a task",
        aliases: &["TaskStop", "KillBash"],
        search_hint: "stop end kill background task shell",
        background: Background::Always,
        hints: Hints { idempotent: true, ..Hints::CHANGES },
        ..Facts::DEFAULT
    };

    type Input = Input;
    type Output = Output;

    fn check(&self, input: &Input) -> Vec<Problem> {
        if input.id().is_empty() {
            return vec![Problem::found(
                "/shell_id",
                "missing",
                "the name of a task, such as bash_1",
                "nothing",
            )];
        }
        Vec::new()
    }

    fn access(&self, input: &Input, _place: &Place) -> Access {
        Access::nothing().uses(Resource::Session(input.id().to_owned().into()), Use::Write)
    }

    fn summary(&self, input: &Input) -> String {
        format!("end {}", input.id())
    }

    async fn run(&self, input: &Input, _call: &Call) -> Result<Done<Output>, ToolError> {
        self.tasks.end(input.id()).await?;
        Ok(Output { task_id: input.id().to_owned(), status: "killed" }.into())
    }

    fn map(&self, output: &Output) -> Vec<Block> {
        vec![Block::text(format!("{} was ended, with everything it had started", output.task_id))]
    }
}

#[cfg(test)]
mod tests;
