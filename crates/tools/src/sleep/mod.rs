//! Sleep: wait, and make the calls behind wait too.

use std::time::Duration;

use gripper_runtime::{
    Access, Block, Call, Facts, Place, Tool, ToolError,
    tool::{Done, ErrorCode, Hints, Loading, Progress},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest wait of one call.
const LONGEST: f64 = 3_600.0;
/// How often a long wait reports.
const TICK: Duration = Duration::from_secs(1);

/// The tool.
pub struct Sleep;

/// What a call carries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// How long to wait, in seconds. Fractions are fine; at most 3600.
    #[schemars(range(min = 0.0, max = 3600.0))]
    pub seconds: f64,
}

/// The structured result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// How long was waited.
    pub seconds: f64,
}

impl Input {
    fn duration(&self) -> Duration {
        Duration::from_secs_f64(self.seconds.clamp(0.0, LONGEST))
    }
}

impl Tool for Sleep {
    const NAME: &'static str = "Sleep";
    const DESCRIPTION: &'static str = include_str!("description.md");
    const FACTS: Facts = Facts {
        title: "Wait",
        search_hint: "wait pause delay seconds time",
        loading: Loading::Deferrable,
        hints: Hints::READS,
        ..Facts::DEFAULT
    };

    type Input = Input;
    type Output = Output;

    /// Alone: a wait that lets the calls behind it overtake would be no wait.
    fn access(&self, _input: &Input, _place: &Place) -> Access {
        Access::nothing().alone()
    }

    fn time_limit(&self, input: &Input) -> Duration {
        input.duration() + Duration::from_secs(10)
    }

    fn summary(&self, input: &Input) -> String {
        format!("wait {} s", input.seconds)
    }

    async fn run(&self, input: &Input, call: &Call) -> Result<Done<Output>, ToolError> {
        let total = input.duration();
        let start = tokio::time::Instant::now();
        loop {
            let waited = start.elapsed().min(total);
            let left = total - waited;
            if left.is_zero() {
                return Ok(Output { seconds: input.seconds }.into());
            }
            tokio::select! {
                () = tokio::time::sleep(left.min(TICK)) => {}
                () = call.cancel.cancelled() => {
                    let message = format!("the wait was cut short after {:.1} s", waited.as_secs_f64());
                    return Err(ToolError::new(ErrorCode::Cancelled, message));
                }
            }
            call.progress.report(Progress {
                message: format!("waiting, {:.0} of {} s", start.elapsed().as_secs_f64(), input.seconds),
                done: Some(start.elapsed().as_secs_f64()),
                total: Some(input.seconds),
            });
        }
    }

    fn map(&self, output: &Output) -> Vec<Block> {
        vec![Block::text(format!("Waited {} s.", output.seconds))]
    }
}

#[cfg(test)]
mod tests;
