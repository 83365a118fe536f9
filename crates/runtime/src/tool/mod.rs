//! The tool contract.
//!
//! [`Tool`] is what people write: typed input, data about itself, what it would touch, and the
//! work. [`DynTool`] is the object-safe form that the registry keeps; every `Tool` becomes one
//! through [`erase`], and tools known only by a JSON Schema implement it directly.

mod call;
mod erased;
mod facts;
mod input;
mod output;

use std::{borrow::Cow, time::Duration};

use futures::future::BoxFuture;
use gripper_permissions::Opinion;
use schemars::JsonSchema;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    access::Access,
    place::Place,
    schema::{InputSchema, Problem, SchemaRefused},
};

pub(crate) use call::ProgressSink;
pub use call::{Agent, Call, Progress, ProgressSender};
pub use erased::erase;
pub use facts::{Audience, Background, Facts, Hints, Interrupt, Kind, Loading, ResultBound};
pub use input::{Unfit, ValidInput};
pub(crate) use input::{accept, accept_rewritten};
pub use output::{Block, Done, ErrorCode, SessionEffect, ToolError, ToolOutput};

/// A built-in tool.
///
/// Declares; never asks for permission and never schedules itself, so it cannot forget to.
pub trait Tool: Send + Sync + 'static {
    /// The name models call it by.
    const NAME: &'static str;
    /// What the model reads, kept in `description.md` beside the tool.
    const DESCRIPTION: &'static str;
    /// Plain data about the tool.
    const FACTS: Facts;

    /// What a call carries. Doc comments become the schema's texts.
    type Input: DeserializeOwned + JsonSchema + Send + Sync;
    /// The structured form of the result.
    type Output: Serialize + JsonSchema + Send;

    /// What the model reads, where that depends on the session.
    fn description(&self) -> Cow<'static, str> {
        Cow::Borrowed(Self::DESCRIPTION.trim_end())
    }

    /// Examples of input, shown with the schema.
    fn examples() -> Vec<Value> {
        Vec::new()
    }

    /// Whether the tool works here at all; `Err` says why not.
    fn available(&self) -> Result<(), String> {
        Ok(())
    }

    /// Checks beyond the schema. All problems at once.
    fn check(&self, _input: &Self::Input) -> Vec<Problem> {
        Vec::new()
    }

    /// What the call would touch. The default is everything, alone.
    fn access(&self, _input: &Self::Input, _place: &Place) -> Access {
        Access::unknown()
    }

    /// What the tool itself thinks of the call.
    fn opinion(&self, _input: &Self::Input) -> Opinion {
        Opinion::None
    }

    /// How long the call may run.
    fn time_limit(&self, _input: &Self::Input) -> Duration {
        Self::FACTS.time_limit
    }

    /// One line on what is about to be done.
    fn summary(&self, input: &Self::Input) -> String;

    /// The input as hooks see it: defaults and absolute paths filled in. `None` when what the model
    /// wrote says it all.
    fn observable(&self, _input: &Self::Input, _place: &Place) -> Option<Value> {
        None
    }

    /// What the call would do to files, as a difference, for whoever is asked about it. Must change nothing.
    fn preview(&self, _input: &Self::Input, _call: &Call) -> impl Future<Output = Option<String>> + Send {
        std::future::ready(None)
    }

    /// Does the work.
    fn run(
        &self,
        input: &Self::Input,
        call: &Call,
    ) -> impl Future<Output = Result<Done<Self::Output>, ToolError>> + Send;

    /// The result as the model reads it.
    fn map(&self, output: &Self::Output) -> Vec<Block>;
}

/// What a tool says about itself, as data.
#[derive(Debug)]
pub struct ToolSpec {
    /// The name models call it by.
    pub name: Cow<'static, str>,
    /// Short name for people.
    pub title: Cow<'static, str>,
    /// Old names that keep working.
    pub aliases: Vec<Cow<'static, str>>,
    /// Words that searches should find it by.
    pub search_hint: Cow<'static, str>,
    /// The text for the model.
    pub description: Cow<'static, str>,
    /// Input schema and its validator.
    pub input: InputSchema,
    /// Schema of the structured result.
    pub output_schema: Option<Value>,
    /// Examples of input.
    pub examples: Vec<Value>,
    /// Plain data.
    pub facts: Facts,
    /// The server it comes from; `None` for a built-in.
    pub server: Option<String>,
}

impl ToolSpec {
    /// The spec of a tool known only by its schema, with the safe defaults.
    pub fn external(
        server: &str,
        name: String,
        description: String,
        schema: Value,
    ) -> Result<Self, SchemaRefused> {
        Ok(Self {
            title: Cow::Owned(name.clone()),
            name: Cow::Owned(name),
            aliases: Vec::new(),
            search_hint: Cow::Borrowed(""),
            description: Cow::Owned(description),
            input: InputSchema::external(schema)?,
            output_schema: None,
            examples: Vec::new(),
            facts: Facts { loading: Loading::Deferrable, ..Facts::DEFAULT },
            server: Some(server.to_owned()),
        })
    }

    /// About how many tokens the model pays for the full text and schema.
    pub fn token_estimate(&self) -> usize {
        (self.name.len() + self.description.len() + self.input.value().to_string().len()) / 4
    }

    /// What the model is sent: name, description and input schema.
    pub fn advertised(&self) -> Value {
        serde_json::json!({
            "name": self.name, "description": self.description, "input_schema": self.input.value(),
        })
    }
}

/// A tool as the registry keeps it.
pub trait DynTool: Send + Sync {
    /// What the tool says about itself.
    fn spec(&self) -> &ToolSpec;

    /// Turns input that satisfies the schema into the value [`run`](Self::run) takes, or says
    /// what is wrong beyond the schema. The default keeps the JSON as it is.
    fn parse(&self, input: &Value) -> Result<ParsedInput, Vec<Problem>> {
        Ok(Box::new(input.clone()))
    }

    /// Whether the tool works here at all; `Err` says why not.
    fn available(&self) -> Result<(), String> {
        Ok(())
    }

    /// What the call would touch.
    fn access(&self, _input: &ValidInput, _place: &Place) -> Access {
        Access::unknown()
    }

    /// What the tool thinks of the call.
    fn opinion(&self, _input: &ValidInput) -> Opinion {
        Opinion::None
    }

    /// How long the call may run.
    fn time_limit(&self, _input: &ValidInput) -> Duration {
        self.spec().facts.time_limit
    }

    /// The input as hooks see it.
    fn observable(&self, input: &ValidInput, _place: &Place) -> Value {
        input.value().clone()
    }

    /// One line on what is about to be done.
    fn summary(&self, _input: &ValidInput) -> String {
        self.spec().name.to_string()
    }

    /// What the call would do to files, for whoever is asked about it.
    fn preview<'a>(&'a self, _input: &'a ValidInput, _call: &'a Call) -> BoxFuture<'a, Option<String>> {
        Box::pin(std::future::ready(None))
    }

    /// Does the work.
    fn run<'a>(
        &'a self,
        input: &'a ValidInput,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>>;
}

/// The typed form of an input, erased.
pub type ParsedInput = Box<dyn std::any::Any + Send + Sync>;
