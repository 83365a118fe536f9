//! Task: an agent works on something by itself.

#[cfg(test)]
mod tests;

use std::{borrow::Cow, collections::BTreeMap, fmt::Write, time::Duration};

use gripper_runtime::{
    Access, Block, Call, ErrorCode, Facts, Place, Tool, ToolError,
    results::Strategy,
    schema::Problem,
    tool::{Audience, Background, Done, ResultBound},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    agents::{Crew, ModelChoice, Order},
    model::Usage,
    turn::{End, Outcome},
};

/// The tool.
pub struct Task {
    crew: Crew,
}

impl Task {
    /// The tool of a session.
    pub fn new(crew: Crew) -> Self {
        Self { crew }
    }
}

/// What a call carries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The task in three to five words, for people.
    #[schemars(length(min = 1))]
    pub description: String,
    /// The task, with everything the agent must know.
    #[schemars(length(min = 1))]
    pub prompt: String,
    /// The type of agent.
    pub subagent_type: String,
    /// The model: inherit, fast, or a name.
    pub model: Option<String>,
    /// The agentId of an agent that is to go on.
    pub resume: Option<String>,
    /// Whether to go on at once and hear of the agent's end later.
    pub run_in_background: Option<bool>,
    /// Answers after which the agent ends.
    #[schemars(range(min = 1))]
    pub max_turns: Option<u32>,
    /// The only tools the agent may use, by name, of those that its type has.
    pub allowed_tools: Option<Vec<String>>,
    /// What the agent is called while it works, instead of its type.
    #[schemars(length(min = 1, max = 64))]
    pub name: Option<String>,
}

/// How an agent stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// It works in the background.
    Running,
    /// It is done.
    Completed,
    /// A limit ended it before it was done.
    Incomplete,
    /// It could not go on.
    Failed,
}

/// What came of it.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// How the agent stands.
    pub status: Status,
    /// What it said at the end; what it does now, while it works.
    pub result: String,
    /// The agent.
    pub agent_id: String,
    /// Tokens it used.
    #[schemars(with = "BTreeMap<String, u64>")]
    pub usage: Usage,
    /// Calls it made.
    pub tool_uses: u64,
    /// How long it worked.
    pub duration_ms: u64,
    /// Why it is not done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Report {
    /// What came of an agent that has ended.
    pub(crate) fn of(agent_id: &str, outcome: Outcome, tool_uses: u64) -> Self {
        let (status, note) = match outcome.end {
            End::Done(_) => (Status::Completed, None),
            End::MaxTurns(most) => (Status::Incomplete, Some(format!("it was ended after {most} answers"))),
            End::Budget(_) => (Status::Incomplete, Some("the budget is used up".to_owned())),
            End::Interrupted => (Status::Failed, Some("it was stopped".to_owned())),
            End::Halted(reason) => (Status::Failed, Some(format!("a hook ended it: {reason}"))),
            End::NotDelivered(why) => (Status::Failed, Some(why)),
            End::Failed(error) => (Status::Failed, Some(format!("the model did not answer: {error}"))),
        };
        Self {
            status,
            result: outcome.text,
            agent_id: agent_id.to_owned(),
            usage: outcome.usage,
            tool_uses,
            duration_ms: u64::try_from(outcome.took.0.as_millis()).unwrap_or(u64::MAX),
            note,
        }
    }

    /// The report as the model reads it.
    pub(crate) fn words(&self) -> Vec<Block> {
        let mut words = match self.result.trim() {
            "" if self.status != Status::Running => "(The agent said nothing.)".to_owned(),
            said => said.to_owned(),
        };
        let calls = if self.tool_uses == 1 { "1 call" } else { &format!("{} calls", self.tool_uses) };
        let seconds = self.duration_ms as f64 / 1000.0;
        let stands = match (self.status, &self.note) {
            (Status::Running, _) => "still works, ".to_owned(),
            (Status::Completed, _) | (_, None) => String::new(),
            (_, Some(note)) => format!("not done, {note}; "),
        };
        // Writing to a String cannot fail.
        let _ = write!(words, "\n\n(agentId {}: {stands}{calls}, {seconds:.1} s)", self.agent_id);
        vec![Block::text(words)]
    }
}

/// What both tools about agents say of themselves.
pub(crate) const FACTS: Facts = Facts {
    bound: ResultBound::Chars(32_000, Strategy::KeepBoth),
    audience: Audience::Delegating,
    background: Background::Always,
    ..Facts::DEFAULT
};

impl Tool for Task {
    const NAME: &'static str = "Task";
    const DESCRIPTION: &'static str = include_str!("description.md");
    const FACTS: Facts = Facts {
        title: "Start an agent",
        aliases: &["Agent"],
        search_hint: "start agent delegate subagent explore plan background",
        time_limit: Duration::from_secs(24 * 60 * 60),
        ..FACTS
    };

    type Input = Input;
    type Output = Report;

    fn description(&self) -> Cow<'static, str> {
        let mut text = Self::DESCRIPTION.trim_end().to_owned();
        text.push_str("\n\nTypes of agents:\n");
        for kind in self.crew.kinds().iter() {
            let _ = writeln!(text, "- {}: {}", kind.name, kind.description);
        }
        text.into()
    }

    fn check(&self, input: &Input) -> Vec<Problem> {
        let rules = input.allowed_tools.iter().flatten().filter(|name| name.contains('('));
        rules
            .map(|rule| Problem::found("/allowed_tools", "no_name", "names of tools, not rules", rule))
            .collect()
    }

    /// What the agent does is judged call by call; to start it touches nothing.
    fn access(&self, input: &Input, _place: &Place) -> Access {
        Access::nothing().named(&input.subagent_type)
    }

    fn summary(&self, input: &Input) -> String {
        format!("{}: {}", input.name.as_ref().unwrap_or(&input.subagent_type), input.description)
    }

    async fn run(&self, input: &Input, call: &Call) -> Result<Done<Report>, ToolError> {
        let order = Order {
            kind: input.subagent_type.clone(),
            prompt: input.prompt.clone(),
            label: input.name.clone().unwrap_or_else(|| input.subagent_type.clone()),
            model: input.model.as_deref().map(ModelChoice::from),
            resume: input.resume.clone(),
            background: input.run_in_background == Some(true),
            max_turns: input.max_turns,
            allowed_tools: input.allowed_tools.clone(),
            call: call.id.clone(),
        };
        let ready = self.crew.prepare(&call.agent, order).await?;
        let id = ready.id.to_string();
        if ready.background {
            ready.work_on_its_own();
            let result = "It works in the background; its end will be announced.".to_owned();
            let (status, usage, note) = (Status::Running, Usage::default(), None);
            return Ok(
                Report { status, result, agent_id: id, usage, tool_uses: 0, duration_ms: 0, note }.into()
            );
        }
        let activity = ready.activity.clone();
        let outcome = ready.work(Some(call.progress.clone()), &call.cancel).await;
        if outcome.end == End::Interrupted {
            return Err(ToolError::new(ErrorCode::Cancelled, format!("the agent {id} was stopped")));
        }
        let report = Report::of(&id, outcome, activity.now().0);
        let is_error = report.status == Status::Failed;
        Ok(Done { value: report, effects: Vec::new(), is_error })
    }

    fn map(&self, output: &Report) -> Vec<Block> {
        output.words()
    }
}
