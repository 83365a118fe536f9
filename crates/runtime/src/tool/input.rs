//! Input that has been proved fit.

use std::{any::Any, sync::Arc};

use serde_json::Value;

use super::{DynTool, ParsedInput};
use crate::schema::{Coercion, Problem};

/// Input that passed validation. Only the validator can make one, so whatever takes it, the
/// permission stage and the tool itself, cannot be reached by anything unchecked.
pub struct ValidInput {
    value: Arc<Value>,
    parsed: ParsedInput,
    coercions: Vec<Coercion>,
}

impl std::fmt::Debug for ValidInput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ValidInput").field(&self.value).finish()
    }
}

impl ValidInput {
    /// The input as JSON, repairs included.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The same, to keep.
    pub(crate) fn shared(&self) -> Arc<Value> {
        self.value.clone()
    }

    /// Small repairs that were made before the check.
    pub fn coercions(&self) -> &[Coercion] {
        &self.coercions
    }

    /// The typed form. `None` only if asked for another type than the tool parsed.
    pub fn typed<T: Any>(&self) -> Option<&T> {
        self.parsed.downcast_ref()
    }
}

/// Why input was not accepted.
#[derive(Debug)]
pub enum Unfit {
    /// It is larger than any honest input.
    TooLarge {
        /// How many are allowed.
        limit: usize,
    },
    /// It does not satisfy the schema or the tool's own checks.
    Problems(Vec<Problem>),
}

/// The validator: size, repairs, schema, then the tool's own checks.
pub(crate) fn accept(tool: &dyn DynTool, mut value: Value, limit: usize) -> Result<ValidInput, Unfit> {
    if weigh(&value, limit) > limit {
        return Err(Unfit::TooLarge { limit });
    }
    let schema = &tool.spec().input;
    let coercions = schema.coerce(&mut value);
    schema.check(&value).map_err(Unfit::Problems)?;
    let parsed = tool.parse(&value).map_err(Unfit::Problems)?;
    Ok(ValidInput { value: Arc::new(value), parsed, coercions })
}

/// For rewrites that settings trust: no schema and no repairs, but the tool must still be able
/// to make sense of it.
pub(crate) fn accept_rewritten(tool: &dyn DynTool, value: Value) -> Result<ValidInput, Unfit> {
    let parsed = tool.parse(&value).map_err(Unfit::Problems)?;
    Ok(ValidInput { value: Arc::new(value), parsed, coercions: Vec::new() })
}

/// Roughly how many bytes a value has as JSON. Stops counting soon after `limit`.
fn weigh(value: &Value, limit: usize) -> usize {
    let mut total = 0usize;
    let mut stack = vec![value];
    while let Some(value) = stack.pop() {
        total = total.saturating_add(match value {
            Value::Null | Value::Bool(_) => 4,
            Value::Number(_) => 8,
            Value::String(text) => text.len() + 2,
            Value::Array(items) => {
                stack.extend(items);
                items.len() + 2
            }
            Value::Object(fields) => {
                stack.extend(fields.values());
                fields.keys().map(|key| key.len() + 4).sum::<usize>() + 2
            }
        });
        if total > limit {
            break;
        }
    }
    total
}
