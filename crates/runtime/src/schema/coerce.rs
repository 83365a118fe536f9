//! Repairs without loss: schema and input are walked together, first without changing anything.

use serde::Serialize;
use serde_json::{Map, Number, Value};

use super::problem::shortened;
use super::shape::{Kinds, Walk, escape};

/// Steps of one walk; far above what an ordinary call needs.
const MAX_STEPS: u32 = 50_000;
/// A repair can make another one visible, but not often.
const MAX_ROUNDS: usize = 4;
const MAX_DEPTH: usize = 256;
/// Longest text taken for a number: more digits would not survive.
const MAX_NUMBER_CHARS: usize = 20;
/// Decimal digits that a 64-bit float always keeps.
const EXACT_DIGITS: usize = 15;

/// A repair that was made to an input.
#[derive(Serialize, Clone, Debug, PartialEq)]
pub struct Coercion {
    /// JSON pointer to the value.
    pub path: String,
    /// The value as it was given, shortened.
    pub from: String,
    /// What it became, shortened.
    pub to: String,
}

/// Repairs `input` until it fits or nothing more can be done.
pub(super) fn coerce(schema: &Value, input: &mut Value, fits: &dyn Fn(&Value) -> bool) -> Vec<Coercion> {
    let mut made = Vec::new();
    if fits(input) {
        return made;
    }
    rename(schema, input, &mut made);
    for _ in 0..MAX_ROUNDS {
        if fits(input) {
            break;
        }
        let plan = Planner(Walk::new(schema, MAX_STEPS)).finish(schema, input);
        if plan.is_empty() {
            break;
        }
        made.extend(apply(plan, input));
    }
    made
}

/// Gives fields their names where only the spelling differs: `runInBackground` is `run_in_background`. Only
/// where no other fields are allowed, so that it cannot be meant otherwise.
fn rename(schema: &Value, input: &mut Value, made: &mut Vec<Coercion>) {
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let (Some(known), Some(fields)) =
        (schema.get("properties").and_then(Value::as_object), input.as_object_mut())
    else {
        return;
    };
    let spellings: Vec<(String, String)> = fields
        .keys()
        .filter(|name| closed && !known.contains_key(*name))
        .map(|name| (name.clone(), snake_case(name)))
        .filter(|(_, name)| known.contains_key(name) && !fields.contains_key(name))
        .collect();
    for (from, to) in spellings {
        if let Some(value) = fields.remove(&from) {
            made.push(Coercion { path: format!("/{}", escape(&from)), from, to: to.clone() });
            fields.insert(to, value);
        }
    }
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

fn apply(repairs: Repairs, input: &mut Value) -> Vec<Coercion> {
    let mut made = Vec::with_capacity(repairs.len());
    for (path, value) in repairs {
        let Some(place) = input.pointer_mut(&path) else { continue };
        made.push(Coercion { path, from: text(place), to: text(&value) });
        *place = value;
    }
    made
}

fn text(value: &Value) -> String {
    shortened(&value.to_string(), 120)
}

/// New values by JSON pointer, in the order found.
type Repairs = Map<String, Value>;

/// What would make a value fit a subschema.
#[derive(Default)]
struct Plan {
    repairs: Repairs,
    /// The value surely does not fit, repaired or not. False means nothing.
    misfit: bool,
}

impl Plan {
    fn misfit() -> Self {
        Self { repairs: Repairs::new(), misfit: true }
    }

    /// Both plans hold; the first to repair a place wins.
    fn and(&mut self, other: Self) {
        self.misfit |= other.misfit;
        for (path, value) in other.repairs {
            self.repairs.entry(path).or_insert(value);
        }
    }
}

struct Planner<'a>(Walk<'a>);

impl<'a> Planner<'a> {
    fn finish(&self, schema: &'a Value, input: &Value) -> Repairs {
        let plan = self.plan(schema, input, "", 0);
        // A walk that was cut short may have missed the branch that accepts a value as it is.
        if self.0.spent() { Repairs::new() } else { plan.repairs }
    }

    fn plan(&self, schema: &'a Value, value: &Value, path: &str, depth: usize) -> Plan {
        if schema == &Value::Bool(false) {
            return Plan::misfit();
        }
        if depth > MAX_DEPTH || !self.0.step() {
            return Plan::default();
        }
        let allowed = self.0.kinds(schema);
        if allowed.meets(Kinds::of(value)) {
            return self.plan_inside(schema, value, path, depth);
        }
        let Some(mut repaired) = value.as_str().and_then(|text| repair(text, allowed)) else {
            return Plan::misfit();
        };
        let inside = self.plan_inside(schema, &repaired, "", depth + 1);
        apply(inside.repairs, &mut repaired);
        Plan { repairs: Repairs::from_iter([(path.to_owned(), repaired)]), misfit: inside.misfit }
    }

    /// The plan for a value of a kind that `schema` allows.
    fn plan_inside(&self, schema: &'a Value, value: &Value, path: &str, depth: usize) -> Plan {
        let mut plan = Plan::default();
        let Some(map) = schema.as_object() else { return plan };
        let depth = depth + 1;
        for (keyword, held) in map {
            match (keyword.as_str(), held) {
                ("const", expected) => plan.misfit |= !equal(expected, value),
                ("enum", Value::Array(list)) => plan.misfit |= !list.iter().any(|one| equal(one, value)),
                ("$ref", _) => {
                    if let Some(target) = self.0.target(schema) {
                        plan.and(self.plan(target, value, path, depth));
                    }
                }
                ("allOf", Value::Array(list)) => {
                    list.iter().for_each(|one| plan.and(self.plan(one, value, path, depth)));
                }
                ("anyOf" | "oneOf", Value::Array(list)) => plan.and(self.choose(list, value, path, depth)),
                _ => {}
            }
        }
        match value {
            Value::Object(fields) => self.plan_fields(map, fields, path, depth, &mut plan),
            Value::Array(items) => self.plan_items(map, items, path, depth, &mut plan),
            _ => {}
        }
        plan
    }

    /// Repairs for one of several alternatives: those on which all that could accept the value agree, so
    /// none if one may accept it as it is; else those of the only alternative of the right kind.
    fn choose(&self, branches: &'a [Value], value: &Value, path: &str, depth: usize) -> Plan {
        let plans: Vec<Plan> = branches.iter().map(|one| self.plan(one, value, path, depth)).collect();
        let mut plausible = plans.iter().filter(|plan| !plan.misfit);
        if let Some(first) = plausible.next() {
            let agreed = plausible.all(|other| other.repairs == first.repairs);
            let repairs = if agreed { first.repairs.clone() } else { Repairs::new() };
            return Plan { repairs, misfit: false };
        }
        let kind = Kinds::of(value);
        let mut right_kind = branches.iter().zip(plans).filter(|(one, _)| self.0.kinds(one).meets(kind));
        match (right_kind.next(), right_kind.next()) {
            (Some((_, plan)), None) => plan,
            _ => Plan::misfit(),
        }
    }

    fn plan_fields(
        &self,
        schema: &'a Map<String, Value>,
        fields: &Map<String, Value>,
        path: &str,
        depth: usize,
        plan: &mut Plan,
    ) {
        let known = schema.get("properties").and_then(Value::as_object);
        // Which other fields a pattern claims is not looked into, so they are left alone.
        let others = schema.get("additionalProperties").filter(|_| !schema.contains_key("patternProperties"));
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        plan.misfit |= required.filter_map(Value::as_str).any(|name| !fields.contains_key(name));
        for (name, value) in fields {
            if let Some(one) = known.and_then(|known| known.get(name)).or(others) {
                plan.and(self.plan(one, value, &format!("{path}/{}", escape(name)), depth));
            }
        }
    }

    fn plan_items(
        &self,
        schema: &'a Map<String, Value>,
        items: &[Value],
        path: &str,
        depth: usize,
        plan: &mut Plan,
    ) {
        // Older drafts write the leading items as a list in `items` and the rest in `additionalItems`.
        let (leading, rest) = match schema.get("items") {
            Some(Value::Array(list)) => (Some(list), schema.get("additionalItems")),
            rest => (schema.get("prefixItems").and_then(Value::as_array), rest),
        };
        for (index, value) in items.iter().enumerate() {
            if let Some(one) = leading.and_then(|list| list.get(index)).or(rest) {
                plan.and(self.plan(one, value, &format!("{path}/{index}"), depth));
            }
        }
    }
}

/// Equality as JSON Schema has it: 1 and 1.0 are the same. Equal values never count as different.
fn equal(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(a), Value::Number(b)) => a.as_f64() == b.as_f64(),
        (Value::Array(_), Value::Array(_)) | (Value::Object(_), Value::Object(_)) => true,
        _ => one == other,
    }
}

/// The value that `text` spells out, if `allowed` has its kind and nothing is lost. A string is never
/// allowed here. The text itself says which kind it is, so there is never more than one candidate.
fn repair(text: &str, allowed: Kinds) -> Option<Value> {
    let value = match text.trim_start().as_bytes().first()? {
        b'[' | b'{' => serde_json::from_str(text).ok()?,
        b't' | b'f' => Value::Bool(text.parse().ok()?),
        _ => Value::Number(number(text)?),
    };
    // 5.0 counts as an integer, but a tool that wants an integer may not take it written so.
    if value.is_f64() && !allowed.meets(Kinds::FRACTION) {
        return None;
    }
    allowed.meets(Kinds::of(&value)).then_some(value)
}

/// A plain decimal number that keeps all its digits.
fn number(text: &str) -> Option<Number> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'-' | b'.'));
    if !plain || text.len() > MAX_NUMBER_CHARS || text == "-0" {
        return None;
    }
    // Also refuses what JSON does not allow, such as leading zeros.
    let number: Number = serde_json::from_str(text).ok()?;
    let digits = text.trim_start_matches(['-', '0', '.']).bytes().filter(u8::is_ascii_digit).count();
    let kept = if number.is_f64() { text.contains('.') && digits <= EXACT_DIGITS } else { true };
    kept.then_some(number)
}
