//! Limits that keep a foreign schema, and an input that is checked against any schema, from costing
//! more than they should.
//!
//! A few kilobytes of schema can describe exponential work: definitions that each refer twice to the
//! next one. So the work is counted first, with memory of what was counted before, and refused when it
//! is too much; only then is the schema compiled or a failure explained.

use std::collections::HashMap;
use std::ptr;

use serde_json::Value;

use super::shape::{self, Place};

/// Limits for schemas from outside. The largest real ones seen are a tenth of these.
const MAX_BYTES: usize = 256 * 1024;
const MAX_NODES: usize = 20_000;
const MAX_DEPTH: usize = 64;
const MAX_PATTERNS: usize = 100;
const MAX_PATTERN_BYTES: usize = 1_000;
/// Subschemas visited when every reference is replaced by what it names, recursion cut.
const MAX_EXPANDED: usize = 20_000;
/// Subschemas on one path, references followed: bounds the stack of the compiler.
const MAX_CHAIN: usize = 100;
/// How often the subschemas beside an `unevaluated…` keyword are visited: once to test the value, and then
/// to find out, with another test, which of its parts they looked at.
const TRACKING_FACTOR: usize = 3;
/// Visits of a subschema to a value that explaining a failure may take.
const MAX_VISITS: u64 = 200_000;

/// Why a schema from outside was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaRefused {
    /// The schema is not a JSON object.
    #[error("the input schema is not a JSON object; a tool's input schema must describe an object")]
    NotAnObject,
    /// The schema is larger than a limit.
    #[error("the input schema is too large: more than {limit} {what}; make it smaller or split the tool")]
    TooLarge {
        /// What was counted.
        what: &'static str,
        /// The most that is accepted.
        limit: usize,
    },
    /// A reference leads outside the schema or nowhere.
    #[error("cannot follow the reference {reference:?}: {reason}; use `#/$defs/name`")]
    Reference {
        /// The reference as written.
        reference: String,
        /// Why it cannot be followed.
        reason: &'static str,
    },
    /// References lead back to where they started without looking at a part of the input.
    #[error("the reference {reference:?} leads back to itself, so checking would never end; break the cycle")]
    Cycle {
        /// A reference on the cycle.
        reference: String,
    },
    /// A keyword whose meaning depends on where the schema is loaded from or used.
    #[error("the keyword {keyword:?} is not supported here; write the subschema out or use `$defs`")]
    Unsupported {
        /// The keyword.
        keyword: &'static str,
    },
    /// A pattern that cannot be run in linear time and cannot be left out either.
    #[error("cannot use the pattern at {path}: {reason}; write it without look-around and back-references")]
    Pattern {
        /// JSON pointer to the pattern.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The schema is not valid JSON Schema.
    #[error("the input schema is not valid at {path:?}: {reason}; correct the schema")]
    Invalid {
        /// JSON pointer into the schema.
        path: String,
        /// What is wrong there.
        reason: String,
    },
}

/// What [`check`] learned about a schema.
pub(super) struct Facts {
    /// Uses both references and keywords under which accepting more can mean accepting less, so that
    /// no subschema may be loosened.
    pub(super) rigid: bool,
}

/// Refuses a schema that would cost too much to compile or to check inputs against.
pub(super) fn check(schema: &Value) -> Result<Facts, SchemaRefused> {
    if !schema.is_object() {
        return Err(SchemaRefused::NotAnObject);
    }
    check_size(schema)?;
    let mut graph = Graph { root: schema, expanded: HashMap::new(), nodes: Vec::new() };
    graph.expand(schema, 0)?;
    graph.check_cycles()?;
    graph.check_keywords()?;
    let uses = |test: &dyn Fn(&str) -> bool| {
        graph.nodes.iter().filter_map(|node| node.as_object()).flat_map(|map| map.keys()).any(|key| test(key))
    };
    Ok(Facts { rigid: uses(&|key| key == "$ref") && uses(&shape::inverts) })
}

fn too_large(what: &'static str, limit: usize) -> SchemaRefused {
    SchemaRefused::TooLarge { what, limit }
}

/// Counts values, nesting and text without recursion, so that depth cannot exhaust the stack.
fn check_size(schema: &Value) -> Result<(), SchemaRefused> {
    let (mut nodes, mut bytes) = (0, 0);
    let mut pending = vec![(schema, 1)];
    while let Some((value, depth)) = pending.pop() {
        nodes += 1;
        bytes += if let Value::String(text) = value { text.len() } else { 2 };
        if depth > MAX_DEPTH {
            return Err(too_large("levels of nesting", MAX_DEPTH));
        }
        match value {
            Value::Array(items) => pending.extend(items.iter().map(|one| (one, depth + 1))),
            Value::Object(map) => {
                bytes += map.keys().map(String::len).sum::<usize>();
                pending.extend(map.values().map(|one| (one, depth + 1)));
            }
            _ => {}
        }
        if nodes + pending.len() > MAX_NODES {
            return Err(too_large("values", MAX_NODES));
        }
        if bytes > MAX_BYTES {
            return Err(too_large("bytes", MAX_BYTES));
        }
    }
    Ok(())
}

/// A subschema with its references written out.
#[derive(Clone, Copy)]
struct Expanded {
    weight: usize,
    height: usize,
}

/// The subschemas of a schema as nodes of a graph whose edges include references.
struct Graph<'a> {
    root: &'a Value,
    /// By address; `None` while the node is being expanded.
    expanded: HashMap<*const Value, Option<Expanded>>,
    nodes: Vec<&'a Value>,
}

impl<'a> Graph<'a> {
    /// Counts what `node` becomes with its references written out. A reference back to a node that is
    /// still being counted is recursion and counts as one: the validator remembers results there.
    fn expand(&mut self, node: &'a Value, depth: usize) -> Result<Expanded, SchemaRefused> {
        let leaf = Expanded { weight: 1, height: 1 };
        match self.expanded.get(&ptr::from_ref(node)) {
            Some(known) => return Ok(known.unwrap_or(leaf)),
            None if depth > MAX_CHAIN => return Err(too_large("subschemas inside each other", MAX_CHAIN)),
            None => {}
        }
        self.expanded.insert(ptr::from_ref(node), None);
        self.nodes.push(node);
        let mut total = leaf;
        for (child, place) in edges(self.root, node)? {
            let below = self.expand(child, depth + 1)?;
            let again = if tracks_parts(node) && place != Place::Child { TRACKING_FACTOR } else { 1 };
            if place != Place::Definition {
                total.weight = total.weight.saturating_add(below.weight.saturating_mul(again));
                total.height = total.height.max(below.height + 1);
            }
        }
        if total.weight > MAX_EXPANDED {
            return Err(too_large("subschemas with references written out", MAX_EXPANDED));
        }
        if total.height > MAX_CHAIN {
            return Err(too_large("subschemas inside each other", MAX_CHAIN));
        }
        self.expanded.insert(ptr::from_ref(node), Some(total));
        Ok(total)
    }

    /// Finds references that lead back to their start while staying at the same value.
    fn check_cycles(&self) -> Result<(), SchemaRefused> {
        let mut done = HashMap::new();
        self.nodes.iter().try_for_each(|node| self.follow(node, 0, &mut done))
    }

    fn follow(
        &self,
        node: &'a Value,
        depth: usize,
        done: &mut HashMap<*const Value, bool>,
    ) -> Result<(), SchemaRefused> {
        match done.get(&ptr::from_ref(node)) {
            Some(true) => return Ok(()),
            Some(false) => {
                let reference = node.get("$ref").and_then(Value::as_str).unwrap_or("#").to_owned();
                return Err(SchemaRefused::Cycle { reference });
            }
            None if depth > 2 * MAX_CHAIN => return Err(too_large("references in a row", 2 * MAX_CHAIN)),
            None => {}
        }
        done.insert(ptr::from_ref(node), false);
        for (child, place) in edges(self.root, node)? {
            if matches!(place, Place::Same | Place::Branch) {
                self.follow(child, depth + 1, done)?;
            }
        }
        done.insert(ptr::from_ref(node), true);
        Ok(())
    }

    fn check_keywords(&self) -> Result<(), SchemaRefused> {
        let mut patterns = 0;
        let old = self.root["$schema"].as_str().is_some_and(|uri| uri.contains("draft-04"));
        for node in &self.nodes {
            let own = node.get("pattern").and_then(Value::as_str);
            let names = node.get("patternProperties").and_then(Value::as_object);
            for pattern in
                own.into_iter().chain(names.into_iter().flat_map(|map| map.keys().map(String::as_str)))
            {
                patterns += 1;
                if pattern.len() > MAX_PATTERN_BYTES {
                    return Err(too_large("bytes in a pattern", MAX_PATTERN_BYTES));
                }
            }
            for keyword in ["$dynamicRef", "$recursiveRef"] {
                if node.get(keyword).is_some() {
                    return Err(SchemaRefused::Unsupported { keyword });
                }
            }
            // A nested identifier would change what the references below it mean.
            let keyword = if old { "id" } else { "$id" };
            if !ptr::eq(*node, self.root) && node.get(keyword).is_some_and(Value::is_string) {
                return Err(SchemaRefused::Unsupported { keyword });
            }
        }
        if patterns > MAX_PATTERNS { Err(too_large("patterns", MAX_PATTERNS)) } else { Ok(()) }
    }
}

/// Whether the validator has to find out which parts of a value the subschemas of `node` looked at.
fn tracks_parts(node: &Value) -> bool {
    node.get("unevaluatedProperties").is_some() || node.get("unevaluatedItems").is_some()
}

/// The subschemas of `node` and the target of its reference.
fn edges<'a>(root: &'a Value, node: &'a Value) -> Result<Vec<(&'a Value, Place)>, SchemaRefused> {
    let mut found: Vec<_> =
        shape::subschemas(node).into_iter().map(|(_, child, place)| (child, place)).collect();
    if let Some(reference) = node.get("$ref").and_then(Value::as_str) {
        let refuse = |reason| SchemaRefused::Reference { reference: reference.to_owned(), reason };
        if !(reference == "#" || reference.starts_with("#/")) {
            return Err(refuse("it is not a pointer into this schema"));
        }
        let target = shape::resolve(root, reference).ok_or_else(|| refuse("nothing is there"))?;
        found.push((target, Place::Same));
    }
    Ok(found)
}

/// Whether collecting every error of `input` stays within bounds. The validator visits alternatives
/// twice and does not remember results while it collects, so recursion through alternatives can double
/// the work at every level of the input.
pub(super) fn can_explain(root: &Value, input: &Value) -> bool {
    let mut count = Count { root, known: HashMap::new() };
    count.visits(root, input, 0).is_some_and(|visits| visits.collecting <= MAX_VISITS)
}

#[derive(Clone, Copy, Default)]
struct Visits {
    /// To learn whether the value fits.
    testing: u64,
    /// To collect what is wrong with it.
    collecting: u64,
}

struct Count<'a> {
    root: &'a Value,
    known: HashMap<(*const Value, *const Value), Visits>,
}

impl<'a> Count<'a> {
    /// `None` when even counting takes too long.
    fn visits(&mut self, schema: &'a Value, value: &'a Value, depth: usize) -> Option<Visits> {
        let key = (ptr::from_ref(schema), ptr::from_ref(value));
        if let Some(known) = self.known.get(&key) {
            return Some(*known);
        }
        if depth > 600 || self.known.len() as u64 >= MAX_VISITS / 4 {
            return None;
        }
        let mut total = Visits { testing: 1, collecting: 1 };
        // Known while it is counted, which ends the walk on a schema of ours that refers to itself.
        self.known.insert(key, total);
        let mut add = |below: Visits, alternative: bool| {
            let again = if alternative { below.testing } else { 0 };
            total.testing = total.testing.saturating_add(below.testing);
            total.collecting = total.collecting.saturating_add(below.collecting).saturating_add(again);
        };
        for (child, place) in edges(self.root, schema).ok()? {
            match place {
                Place::Same => add(self.visits(child, value, depth + 1)?, tracks_parts(schema)),
                Place::Branch => add(self.visits(child, value, depth + 1)?, true),
                Place::Child | Place::Definition => {}
            }
        }
        for (child, part) in parts(schema, value) {
            add(self.visits(child, part, depth + 1)?, false);
        }
        self.known.insert(key, total);
        Some(total)
    }
}

/// Which subschemas meet which parts of `value`; more rather than fewer.
fn parts<'a>(schema: &'a Value, value: &'a Value) -> Vec<(&'a Value, &'a Value)> {
    let mut found = Vec::new();
    for (keyword, held) in schema.as_object().into_iter().flatten() {
        match (keyword.as_str(), held, value) {
            ("properties", Value::Object(fields), Value::Object(given)) => {
                found.extend(given.iter().filter_map(|(name, part)| Some((fields.get(name)?, part))));
            }
            ("patternProperties", Value::Object(patterns), Value::Object(given)) => {
                found.extend(patterns.values().flat_map(|one| given.values().map(move |part| (one, part))));
            }
            ("additionalProperties" | "unevaluatedProperties", Value::Object(_), Value::Object(given)) => {
                found.extend(given.values().map(|part| (held, part)));
            }
            ("prefixItems" | "items", Value::Array(list), Value::Array(given)) => {
                found.extend(list.iter().zip(given));
            }
            ("items" | "additionalItems" | "unevaluatedItems" | "contains", one, Value::Array(given)) => {
                found.extend(given.iter().map(|part| (one, part)));
            }
            _ => {}
        }
    }
    found
}
