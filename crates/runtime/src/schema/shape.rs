//! How a JSON Schema is put together: where its subschemas are, what a local reference points to and
//! which kinds of value a subschema can accept. Limits, repairs and explanations all walk by this.

use std::cell::Cell;
use std::ops::{BitAnd, BitOr};

use serde_json::{Map, Value};

/// Which value a subschema is applied to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The very value its parent is applied to.
    Same,
    /// The same value, as an alternative: explaining a failure visits it a second time.
    Branch,
    /// A field or an item of that value.
    Child,
    /// Nothing, until a reference names it.
    Definition,
}

/// Whether a keyword holds schemas directly (one or a list) or in a map from names.
enum Form {
    Direct,
    Map,
}

/// The keywords that hold subschemas, over all drafts; any other keyword is data.
fn keyword(name: &str) -> Option<(Form, Place)> {
    Some(match name {
        "allOf" | "then" | "else" => (Form::Direct, Place::Same),
        "anyOf" | "oneOf" | "not" | "if" => (Form::Direct, Place::Branch),
        "dependentSchemas" | "dependencies" => (Form::Map, Place::Same),
        "items"
        | "prefixItems"
        | "additionalItems"
        | "additionalProperties"
        | "contains"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties" => (Form::Direct, Place::Child),
        "properties" | "patternProperties" => (Form::Map, Place::Child),
        "$defs" | "definitions" => (Form::Map, Place::Definition),
        _ => return None,
    })
}

/// The subschemas written directly in `schema`, references not followed.
pub(super) fn subschemas(schema: &Value) -> Vec<(&str, &Value, Place)> {
    let mut found = Vec::new();
    for (name, held) in schema.as_object().into_iter().flatten() {
        let Some((form, place)) = keyword(name) else { continue };
        let name = name.as_str();
        match (form, held) {
            (Form::Direct, Value::Array(list)) => found.extend(list.iter().map(|one| (name, one, place))),
            (Form::Direct, one) => found.push((name, one, place)),
            (Form::Map, Value::Object(map)) => found.extend(map.values().map(|one| (name, one, place))),
            (Form::Map, _) => {}
        }
    }
    found
}

/// Whether accepting more in a subschema of this keyword can make the whole accept less.
pub(super) fn inverts(keyword: &str) -> bool {
    matches!(keyword, "not" | "if" | "oneOf" | "contains")
}

/// Calls `change` on every schema object in `schema`, the outermost first, with its JSON pointer and
/// whether it lies below a keyword that [`inverts`].
pub(super) fn for_each_mut(
    schema: &mut Value,
    path: &str,
    inverted: bool,
    change: &mut impl FnMut(&mut Map<String, Value>, &str, bool),
) {
    let Value::Object(map) = schema else { return };
    change(map, path, inverted);
    for (name, held) in map.iter_mut() {
        let Some((form, _)) = keyword(name) else { continue };
        let inverted = inverted || inverts(name);
        let path = format!("{path}/{name}");
        match (form, held) {
            (Form::Direct, Value::Array(list)) => {
                for (index, one) in list.iter_mut().enumerate() {
                    for_each_mut(one, &format!("{path}/{index}"), inverted, change);
                }
            }
            (Form::Direct, one) => for_each_mut(one, &path, inverted, change),
            (Form::Map, Value::Object(map)) => {
                for (key, one) in map.iter_mut() {
                    for_each_mut(one, &format!("{path}/{}", escape(key)), inverted, change);
                }
            }
            (Form::Map, _) => {}
        }
    }
}

/// What `reference` points to inside `root`: only `#` and `#/json/pointer` are understood.
pub(super) fn resolve<'a>(root: &'a Value, reference: &str) -> Option<&'a Value> {
    let pointer = reference.strip_prefix('#')?;
    if pointer.contains('%') { root.pointer(&percent_decoded(pointer)?) } else { root.pointer(pointer) }
}

fn percent_decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        if first == b'%' {
            let digits = std::str::from_utf8(tail.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &tail[2..];
        } else {
            bytes.push(first);
            rest = tail;
        }
    }
    String::from_utf8(bytes).ok()
}

/// `name` as one segment of a JSON pointer.
pub(super) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// Whether `value` nests deeper than `limit` levels; never looks deeper than that itself.
pub fn deeper_than(value: &Value, limit: usize) -> bool {
    match value {
        Value::Array(items) => limit == 0 || items.iter().any(|one| deeper_than(one, limit - 1)),
        Value::Object(map) => limit == 0 || map.values().any(|one| deeper_than(one, limit - 1)),
        _ => false,
    }
}

/// A set of JSON kinds. A number without a fraction is an integer, as in JSON Schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kinds(u8);

/// The names of the kinds, each at the place of its bit; `number` here is one with a fraction.
const NAMES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

impl Kinds {
    pub(super) const NONE: Self = Self(0);
    pub(super) const BOOLEAN: Self = Self(1 << 1);
    pub(super) const INTEGER: Self = Self(1 << 2);
    pub(super) const FRACTION: Self = Self(1 << 3);
    pub(super) const STRING: Self = Self(1 << 4);
    pub(super) const ARRAY: Self = Self(1 << 5);
    pub(super) const OBJECT: Self = Self(1 << 6);
    pub(super) const ALL: Self = Self(0x7f);

    pub(super) fn of(value: &Value) -> Self {
        match value {
            Value::Null => Self(1),
            Value::Bool(_) => Self::BOOLEAN,
            Value::Number(number) => match number.as_f64() {
                Some(float) if float.fract() != 0.0 => Self::FRACTION,
                _ => Self::INTEGER,
            },
            Value::String(_) => Self::STRING,
            Value::Array(_) => Self::ARRAY,
            Value::Object(_) => Self::OBJECT,
        }
    }

    fn named(name: &str) -> Self {
        match NAMES.iter().position(|known| *known == name) {
            Some(3) => Self::INTEGER | Self::FRACTION,
            Some(bit) => Self(1 << bit),
            None => Self::NONE,
        }
    }

    /// Whether any kind is in both sets.
    pub(super) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The kinds in words, such as `integer or null`.
    pub(super) fn words(self) -> String {
        if self == Self::ALL {
            return "any value".into();
        }
        let hides_integer = self.meets(Self::FRACTION);
        let shown = NAMES
            .iter()
            .enumerate()
            .rev()
            .filter(|(bit, name)| self.0 & (1 << bit) != 0 && !(hides_integer && **name == "integer"));
        let words: Vec<&str> = shown.map(|(_, name)| *name).collect();
        if words.is_empty() { "nothing".into() } else { words.join(" or ") }
    }
}

impl BitOr for Kinds {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitAnd for Kinds {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }
}

/// A walk through a schema that gives up after a fixed number of steps, so that no schema, ours or
/// foreign, can make it long.
pub(super) struct Walk<'a> {
    pub(super) root: &'a Value,
    steps_left: Cell<u32>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(root: &'a Value, steps: u32) -> Self {
        Self { root, steps_left: Cell::new(steps) }
    }

    /// Takes one step; false when none is left.
    pub(super) fn step(&self) -> bool {
        let left = self.steps_left.get();
        self.steps_left.set(left.saturating_sub(1));
        left > 0
    }

    pub(super) fn spent(&self) -> bool {
        self.steps_left.get() == 0
    }

    /// What `$ref` in `schema` points to.
    pub(super) fn target(&self, schema: &'a Value) -> Option<&'a Value> {
        resolve(self.root, schema.get("$ref")?.as_str()?)
    }

    /// The kinds of value `schema` may accept. Never leaves out a kind that it does accept.
    pub(super) fn kinds(&self, schema: &'a Value) -> Kinds {
        self.kinds_within(schema, 0)
    }

    fn kinds_within(&self, schema: &'a Value, depth: usize) -> Kinds {
        let map = match schema {
            Value::Bool(false) => return Kinds::NONE,
            Value::Object(map) if depth < 64 && self.step() => map,
            _ => return Kinds::ALL,
        };
        let union = |list: &'a Value, kinds: &dyn Fn(&'a Value) -> Kinds| match list.as_array() {
            Some(list) => list.iter().map(kinds).fold(Kinds::NONE, BitOr::bitor),
            None => Kinds::ALL,
        };
        let below = |one: &'a Value| self.kinds_within(one, depth + 1);
        let mut kinds = Kinds::ALL;
        for (name, held) in map {
            kinds = kinds
                & match (name.as_str(), held) {
                    ("type", Value::String(name)) => Kinds::named(name),
                    ("type", list) => union(list, &|name| name.as_str().map_or(Kinds::ALL, Kinds::named)),
                    ("enum", list) => union(list, &Kinds::of),
                    ("const", value) => Kinds::of(value),
                    ("$ref", _) => self.target(schema).map_or(Kinds::ALL, below),
                    ("anyOf" | "oneOf", list) => union(list, &below),
                    ("allOf", Value::Array(list)) => list.iter().map(below).fold(Kinds::ALL, BitAnd::bitand),
                    _ => Kinds::ALL,
                };
        }
        kinds
    }
}
