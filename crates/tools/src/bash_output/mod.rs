//! BashOutput: new lines of a background command, if wanted only those that fit a pattern.

use gripper_runtime::{
    Access, Block, Call, ErrorCode, Facts, Place, Resource, Tool, ToolError, Use,
    tool::{Background, Done, Hints, Kind, Loading, ResultBound},
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::tasks::{Report, Tasks};

/// The tool.
pub struct BashOutput {
    tasks: Tasks,
}

impl BashOutput {
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
    pub bash_id: String,
    /// A regular expression: only lines that it fits are shown. The others count as shown too.
    pub filter: Option<String>,
}

impl Tool for BashOutput {
    const NAME: &'static str = "BashOutput";
    const DESCRIPTION: &'static str = include_str!("description.md");
    const FACTS: Facts = Facts {
        title: "Output of a command",
        aliases: &["BashOutputTool"],
        search_hint: "background shell output filter lines",
        kind: Kind::Read,
        bound: ResultBound::SelfBounded,
        loading: Loading::Deferrable,
        background: Background::Always,
        hints: Hints { idempotent: false, ..Hints::READS },
        ..Facts::DEFAULT
    };

    type Input = Input;
    type Output = Report;

    fn access(&self, input: &Input, _place: &Place) -> Access {
        Access::nothing().uses(Resource::Session(input.bash_id.clone().into()), Use::Write)
    }

    fn summary(&self, input: &Input) -> String {
        format!("output of {}", input.bash_id)
    }

    async fn run(&self, input: &Input, _call: &Call) -> Result<Done<Report>, ToolError> {
        let filter = input.filter.as_ref().map(|filter| regex::Regex::new(filter)).transpose();
        let filter = filter.map_err(|error| {
            ToolError::new(
                ErrorCode::InvalidInput,
                format!("filter is not a valid regular expression: {error}"),
            )
        })?;
        let mut report = self.tasks.report(&input.bash_id)?;
        if let Some(filter) = filter {
            let lines: Vec<&str> = report.output.lines().filter(|line| filter.is_match(line)).collect();
            report.output = lines.join("\n");
        }
        Ok(report.into())
    }

    fn map(&self, output: &Report) -> Vec<Block> {
        vec![Block::text(output.words())]
    }
}

#[cfg(test)]
mod tests;
