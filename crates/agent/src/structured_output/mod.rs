//! StructuredOutput: the model delivers its result through a tool whose schema the caller gave.

#[cfg(test)]
mod tests;

use std::{
    borrow::Cow,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures::future::BoxFuture;
use gripper_runtime::{
    Access, Block, Call, DynTool, Facts, Place, ToolError, ToolOutput,
    schema::InputSchema,
    tool::{Audience, Background, Hints, ToolSpec, ValidInput},
};
use serde_json::Value;

const NAME: &str = "StructuredOutput";
/// Times the model is reminded, or refused, before it is given up.
const MOST_TRIES: u32 = 5;

/// What is to be delivered, shared between the tool and whoever waits for it.
#[derive(Debug, Clone, Default)]
pub struct Delivery(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    value: Option<Value>,
    reminders: u32,
    refusals: u32,
}

impl Delivery {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was delivered.
    pub fn value(&self) -> Option<Value> {
        self.state().value.clone()
    }

    /// Whether it is there.
    pub fn is_done(&self) -> bool {
        self.state().value.is_some()
    }

    /// Why there is no hope of it.
    pub(crate) fn given_up(&self) -> Option<String> {
        let state = self.state();
        let hopeless = state.value.is_none() && state.refusals > MOST_TRIES;
        hopeless.then(|| format!("the result did not satisfy the schema after {} tries", state.refusals))
    }

    /// A call was refused by the schema.
    pub(crate) fn refused(&self, tool: &str) {
        if tool == NAME {
            self.state().refusals += 1;
        }
    }

    /// The model stopped: words that remind it of what is missing, if something is; an error if it was reminded
    /// too often.
    pub(crate) fn remind(&self) -> Result<Option<String>, String> {
        let mut state = self.state();
        if state.value.is_some() {
            return Ok(None);
        }
        state.reminders += 1;
        if state.reminders > MOST_TRIES {
            return Err(format!("the model did not call {NAME} although it was reminded {MOST_TRIES} times"));
        }
        Ok(Some(format!("The result is still missing: deliver it by calling {NAME}.")))
    }
}

/// The tool.
pub struct StructuredOutput {
    spec: ToolSpec,
    delivery: Delivery,
}

impl StructuredOutput {
    /// A tool that takes what satisfies `schema`.
    pub fn new(schema: Value, delivery: Delivery) -> Result<Self, String> {
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err("the schema must describe an object: give it \"type\": \"object\"".to_owned());
        }
        let input = InputSchema::external(schema).map_err(|refused| refused.to_string())?;
        let facts = Facts {
            title: "Structured output",
            audience: Audience::MainAgent,
            background: Background::Always,
            hints: Hints::READS,
            ..Facts::DEFAULT
        };
        let spec = ToolSpec {
            name: Cow::Borrowed(NAME),
            title: Cow::Borrowed(facts.title),
            aliases: Vec::new(),
            search_hint: Cow::Borrowed("deliver the result in the form asked for"),
            description: Cow::Borrowed(include_str!("description.md")),
            input,
            output_schema: None,
            examples: Vec::new(),
            facts,
            server: None,
        };
        Ok(Self { spec, delivery })
    }

    /// The tool of an agent that another one started.
    pub(crate) fn for_any_agent(mut self) -> Self {
        self.spec.facts.audience = Audience::Everyone;
        self
    }
}

impl DynTool for StructuredOutput {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self, _input: &ValidInput, _place: &Place) -> Access {
        Access::nothing()
    }

    fn summary(&self, _input: &ValidInput) -> String {
        "Deliver the result".to_owned()
    }

    fn run<'a>(
        &'a self,
        input: &'a ValidInput,
        _call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            self.delivery.state().value = Some(input.value().clone());
            let content = vec![Block::text("The result was delivered.")];
            Ok(ToolOutput { content, structured: Some(input.value().clone()), ..ToolOutput::default() })
        })
    }
}
