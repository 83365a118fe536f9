//! The schema of a tool's input: kept within bounds, compiled once, and used to repair what can be
//! repaired without loss and to say everything that is wrong with the rest.
//!
//! ```
//! use gripper_runtime::schema::{InputSchema, describe};
//! use serde_json::json;
//!
//! let schema = json!({"type": "object", "properties": {"limit": {"type": "integer"}}, "additionalProperties": false});
//! let schema = InputSchema::external(schema)?;
//! let mut input = json!({"limit": "5", "pth": "src"});
//! assert_eq!(schema.coerce(&mut input)[0].path, "/limit");
//! let problems = schema.check(&input).unwrap_err();
//! assert!(describe("Grep", &problems).contains("/pth: unknown field"));
//! # Ok::<(), gripper_runtime::schema::SchemaRefused>(())
//! ```

mod bounds;
mod coerce;
mod problem;
mod shape;
#[cfg(test)]
mod tests;

use std::fmt;
use std::sync::OnceLock;

use jsonschema::{Draft, PatternOptions, ValidationOptions, Validator};
use serde_json::{Map, Value, json};

pub use bounds::SchemaRefused;
pub use coerce::Coercion;
pub use problem::{Problem, describe};
pub use shape::deeper_than;

/// Levels of nesting an input may have.
const MAX_INPUT_DEPTH: usize = 128;

/// Size of one compiled pattern, and of the cache that speeds up matching it, in bytes.
const PATTERN_BYTES: usize = 256 * 1024;

/// The integer formats that generators write instead of limits, with the limits they stand for.
const INTEGER_FORMATS: [(&str, i64, u64); 8] = [
    ("int8", i8::MIN as i64, i8::MAX as u64),
    ("int16", i16::MIN as i64, i16::MAX as u64),
    ("int32", i32::MIN as i64, i32::MAX as u64),
    ("int64", i64::MIN, i64::MAX as u64),
    ("uint8", 0, u8::MAX as u64),
    ("uint16", 0, u16::MAX as u64),
    ("uint32", 0, u32::MAX as u64),
    ("uint64", 0, u64::MAX),
];

/// The schema of a tool's input together with its validator.
pub struct InputSchema {
    value: Value,
    compiled: OnceLock<Result<Compiled, SchemaRefused>>,
}

struct Compiled {
    validator: Validator,
    ignored_patterns: Vec<String>,
}

impl InputSchema {
    /// The schema of a built-in tool. It is compiled when first used, so that start-up stays fast.
    pub fn trusted(schema: Value) -> Self {
        Self { value: schema, compiled: OnceLock::new() }
    }

    /// A schema from outside: measured first, then compiled at once, so that what is wrong with it shows
    /// when the tool is registered.
    pub fn external(schema: Value) -> Result<Self, SchemaRefused> {
        let facts = bounds::check(&schema)?;
        let compiled = compile(&schema, facts.rigid)?;
        Ok(Self { value: schema, compiled: OnceLock::from(Ok(compiled)) })
    }

    /// The schema as it was given.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// Compiles a built-in schema now and reports what is wrong with it; for tests over all tools.
    pub fn verify(&self) -> Result<(), SchemaRefused> {
        self.compiled().map(|_| ()).map_err(Clone::clone)
    }

    /// JSON pointers to the patterns that are not checked, because the linear-time engine cannot run
    /// them (look-around, back-references, too large). Whoever made the schema still checks them.
    pub fn ignored_patterns(&self) -> &[String] {
        self.compiled().map_or(&[], |compiled| &compiled.ignored_patterns)
    }

    /// Repairs what models often get wrong and what can be put right without loss: a number, a boolean,
    /// an array or an object written as a string where no string is allowed. A value that fits is never
    /// touched.
    pub fn coerce(&self, input: &mut Value) -> Vec<Coercion> {
        let Ok(compiled) = self.compiled() else { return Vec::new() };
        if !input.is_object() || shape::deeper_than(input, MAX_INPUT_DEPTH) {
            return Vec::new();
        }
        coerce::coerce(&self.value, input, &|input| compiled.validator.is_valid(input))
    }

    /// Reports everything that is wrong with `input`, sorted by path.
    pub fn check(&self, input: &Value) -> Result<(), Vec<Problem>> {
        if !input.is_object() {
            return Err(vec![Problem::not_an_object(input)]);
        }
        if shape::deeper_than(input, MAX_INPUT_DEPTH) {
            return Err(vec![Problem::too_deep(MAX_INPUT_DEPTH)]);
        }
        let validator = match self.compiled() {
            Ok(compiled) => &compiled.validator,
            Err(refused) => return Err(vec![Problem::broken_schema(refused)]),
        };
        if validator.is_valid(input) {
            return Ok(());
        }
        if !bounds::can_explain(&self.value, input) {
            return Err(vec![Problem::too_complex()]);
        }
        Err(problem::explain_all(&self.value, validator.iter_errors(input)))
    }

    fn compiled(&self) -> Result<&Compiled, &SchemaRefused> {
        self.compiled.get_or_init(|| compile(&self.value, false)).as_ref()
    }
}

impl fmt::Debug for InputSchema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InputSchema").field("value", &self.value).finish_non_exhaustive()
    }
}

/// Never fetches anything, and matches patterns in linear time only: both schema and input may be hostile.
fn options<'i>() -> ValidationOptions<'i> {
    let patterns = PatternOptions::regex().size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES);
    jsonschema::options().offline().should_validate_formats(true).with_pattern_options(patterns)
}

fn compile(schema: &Value, rigid: bool) -> Result<Compiled, SchemaRefused> {
    let mut prepared = schema.clone();
    let mut ignored_patterns = Vec::new();
    let mut refused = None;
    shape::for_each_mut(&mut prepared, "", rigid, &mut |map, path, inverted| {
        if !inverted {
            limit_integer(map);
        }
        if let Some(reason) = map.get("pattern").and_then(unusable_pattern) {
            let path = format!("{path}/pattern");
            if inverted {
                refused.get_or_insert(SchemaRefused::Pattern { path, reason });
            } else {
                map.shift_remove("pattern");
                ignored_patterns.push(path);
            }
        }
    });
    if let Some(refused) = refused {
        return Err(refused);
    }
    let built = options().build(&prepared).or_else(|error| {
        // Without a declared draft the newest is assumed, but many servers still write the one of 2018.
        let older = prepared.get("$schema").is_none().then(|| options().with_draft(Draft::Draft7));
        older.and_then(|options| options.build(&prepared).ok()).ok_or(error)
    });
    let validator = built.map_err(|error| SchemaRefused::Invalid {
        path: error.instance_path().as_str().to_owned(),
        reason: problem::shortened(&error.to_string(), 300),
    })?;
    Ok(Compiled { validator, ignored_patterns })
}

/// Why a pattern cannot be run, asked of the validator itself, which translates patterns in its own way.
fn unusable_pattern(pattern: &Value) -> Option<String> {
    let alone = json!({ "pattern": pattern });
    options().build(&alone).err().map(|error| problem::shortened(&error.to_string(), 300))
}

/// Adds the limits an integer format stands for, so that a number that the tool's own type cannot hold is
/// reported with the other problems.
fn limit_integer(map: &mut Map<String, Value>) {
    let Some(format) = map.get("format").and_then(Value::as_str) else { return };
    let Some(&(_, low, high)) = INTEGER_FORMATS.iter().find(|(name, ..)| *name == format) else { return };
    map.entry("minimum").or_insert(low.into());
    map.entry("maximum").or_insert(high.into());
}
