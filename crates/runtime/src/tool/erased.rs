//! From [`Tool`] to [`DynTool`].

use std::{borrow::Cow, sync::Arc, time::Duration};

use futures::future::BoxFuture;
use gripper_permissions::Opinion;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::Value;

use super::{Call, Done, DynTool, ErrorCode, ParsedInput, Tool, ToolError, ToolOutput, ToolSpec, ValidInput};
use crate::{
    access::Access,
    place::Place,
    schema::{InputSchema, Problem},
};

/// Makes a typed tool storable.
pub fn erase<T: Tool>(tool: T) -> Arc<dyn DynTool> {
    let spec = ToolSpec {
        name: Cow::Borrowed(T::NAME),
        title: Cow::Borrowed(T::FACTS.title),
        aliases: T::FACTS.aliases.iter().copied().map(Cow::Borrowed).collect(),
        search_hint: Cow::Borrowed(T::FACTS.search_hint),
        description: tool.description(),
        input: InputSchema::trusted(schema_of::<T::Input>(SchemaSettings::draft2020_12())),
        // As it is written, not as it would be read: what may be left out is not required.
        output_schema: Some(schema_of::<T::Output>(SchemaSettings::draft2020_12().for_serialize())),
        examples: T::examples(),
        facts: T::FACTS,
        server: None,
    };
    Arc::new(Erased { tool, spec })
}

/// The schema of a type, without the parts that only name Rust.
fn schema_of<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with(|settings| settings.meta_schema = None);
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(fields) = schema.as_object_mut() {
        // The type's name and comment are for readers of the code.
        fields.shift_remove("title");
        fields.shift_remove("description");
    }
    schema
}

struct Erased<T> {
    tool: T,
    spec: ToolSpec,
}

impl<T: Tool> Erased<T> {
    /// The pipeline hands back what [`DynTool::parse`] of this very tool made, so the type is right.
    fn typed<'a>(&self, input: &'a ValidInput) -> Option<&'a T::Input>
    where
        T::Input: 'static,
    {
        input.typed::<T::Input>()
    }
}

impl<T: Tool> DynTool for Erased<T>
where
    T::Input: 'static,
{
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn parse(&self, input: &Value) -> Result<ParsedInput, Vec<Problem>> {
        let read = |input: &Value| <T::Input as serde::Deserialize>::deserialize(input);
        let typed = read(input)
            .or_else(|error| read(&with_integers(input)).map_err(|_| error))
            .map_err(|error| vec![Problem::unreadable(&error.to_string())])?;
        let problems = self.tool.check(&typed);
        if problems.is_empty() { Ok(Box::new(typed)) } else { Err(problems) }
    }

    fn available(&self) -> Result<(), String> {
        self.tool.available()
    }

    fn access(&self, input: &ValidInput, place: &Place) -> Access {
        self.typed(input).map_or_else(Access::unknown, |input| self.tool.access(input, place))
    }

    fn opinion(&self, input: &ValidInput) -> Opinion {
        self.typed(input).map_or(Opinion::None, |input| self.tool.opinion(input))
    }

    fn time_limit(&self, input: &ValidInput) -> Duration {
        self.typed(input).map_or(T::FACTS.time_limit, |input| self.tool.time_limit(input))
    }

    fn observable(&self, input: &ValidInput, place: &Place) -> Value {
        let told = self.typed(input).and_then(|typed| self.tool.observable(typed, place));
        told.unwrap_or_else(|| input.value().clone())
    }

    fn summary(&self, input: &ValidInput) -> String {
        self.typed(input).map_or_else(|| T::NAME.to_owned(), |input| self.tool.summary(input))
    }

    fn preview<'a>(&'a self, input: &'a ValidInput, call: &'a Call) -> BoxFuture<'a, Option<String>> {
        match self.typed(input) {
            Some(input) => Box::pin(self.tool.preview(input, call)),
            None => Box::pin(std::future::ready(None)),
        }
    }

    fn run<'a>(
        &'a self,
        input: &'a ValidInput,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let input = self.typed(input).ok_or_else(|| {
                ToolError::new(ErrorCode::InvalidInput, "the input was made for another tool")
            })?;
            let done = self.tool.run(input, call).await?;
            let content = self.tool.map(&done.value);
            let structured = serde_json::to_value(&done.value).map_err(|error| {
                ToolError::new(ErrorCode::Failed, format!("the result cannot be written as JSON: {error}"))
            })?;
            let Done { effects, is_error, .. } = done;
            Ok(ToolOutput { content, structured: Some(structured), is_error, effects })
        })
    }
}

/// The same with `5.0` as `5`: to a schema that is an integer, to a type it is not.
fn with_integers(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(with_integers).collect(),
        Value::Object(map) => map.iter().map(|(key, value)| (key.clone(), with_integers(value))).collect(),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() && float.fract() == 0.0 && float.abs() < EXACT => {
                Value::from(float as i64)
            }
            _ => value.clone(),
        },
        other => other.clone(),
    }
}

/// Below this every whole number is a float of its own.
const EXACT: f64 = 9_007_199_254_740_992.0;
