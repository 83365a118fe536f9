//! What is wrong with an input, in words a model can act on.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{ErrorIterator, ValidationError};
use serde::Serialize;
use serde_json::Value;

use super::bounds::SchemaRefused;
use super::shape::{Kinds, Walk, escape};

/// Problems reported at once; the rest is counted.
const MAX_PROBLEMS: usize = 50;
const MAX_PATH_CHARS: usize = 200;
const MAX_TEXT_CHARS: usize = 300;
const MAX_GIVEN_CHARS: usize = 80;
/// Names or values listed in one message.
const MAX_LISTED: usize = 20;
/// How alike two names must be to suggest one for the other.
const LIKENESS: f64 = 0.6;

/// One thing wrong with an input.
#[derive(Serialize, Clone, Debug, PartialEq)]
pub struct Problem {
    /// JSON pointer to the value; empty for the whole input.
    pub path: String,
    /// Stable name of the kind of problem, such as `missing` or `wrong_type`.
    pub code: &'static str,
    /// What the schema wants there.
    pub expected: String,
    /// What was there, shortened.
    pub given: String,
    /// Both in one sentence.
    pub message: String,
}

/// The problems as text for the model: a heading, then one line each.
pub fn describe(tool: &str, problems: &[Problem]) -> String {
    let mut text = format!("the input for {tool} does not fit its schema:");
    for problem in problems {
        let place = if problem.path.is_empty() { "input" } else { &problem.path };
        text.push_str(&format!("\n- {}: {}", one_line(place), one_line(&problem.message)));
    }
    text
}

fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

/// `text`, cut to at most `limit` characters.
pub(super) fn shortened(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl Problem {
    /// A problem that a tool's own check found.
    pub fn found(
        path: impl AsRef<str>,
        code: &'static str,
        expected: impl Into<String>,
        given: impl AsRef<str>,
    ) -> Self {
        Self::new(path.as_ref(), code, expected.into(), shortened(given.as_ref(), MAX_GIVEN_CHARS))
    }

    /// Input that the schema let through and the tool's type does not take.
    pub(crate) fn unreadable(why: &str) -> Self {
        Self::found("", "unreadable", "input that the tool can read", why)
    }

    fn new(path: &str, code: &'static str, expected: String, given: String) -> Self {
        let message = format!("expected {expected}, given {given}");
        Self::with_message(path, code, expected, given, message)
    }

    fn with_message(
        path: &str,
        code: &'static str,
        expected: String,
        given: String,
        message: String,
    ) -> Self {
        Self {
            path: shortened(path, MAX_PATH_CHARS),
            code,
            expected: shortened(&expected, MAX_TEXT_CHARS),
            given,
            message: shortened(&message, 2 * MAX_TEXT_CHARS),
        }
    }

    pub(super) fn not_an_object(input: &Value) -> Self {
        Self::new("", "wrong_type", "object".into(), given(input))
    }

    pub(super) fn too_deep(limit: usize) -> Self {
        Self::new("", "too_deep", format!("at most {limit} levels of nesting"), "more".into())
    }

    pub(super) fn too_complex() -> Self {
        let (expected, given) = ("an input that fits the schema".into(), "one that does not".to_owned());
        let message = "does not fit the schema, and explaining why would take too long; send a smaller input";
        Self::with_message("", "too_complex", expected, given, message.into())
    }

    pub(super) fn broken_schema(refused: &SchemaRefused) -> Self {
        let message = format!("the tool's own schema is broken: {refused}");
        Self::with_message("", "broken_schema", "a valid schema".into(), "a broken one".into(), message)
    }

    fn more(count: usize) -> Self {
        let (expected, given) = (format!("at most {MAX_PROBLEMS} problems"), format!("{count} more"));
        let message = format!("and {count} more problems; correct these first");
        Self::with_message("", "more", expected, given, message)
    }
}

/// All problems: sorted by path, each once, at most [`MAX_PROBLEMS`] and the number of the others.
pub(super) fn explain_all(root: &Value, errors: ErrorIterator<'_>) -> Vec<Problem> {
    let explainer = Explainer { root };
    let mut problems = Vec::new();
    errors.for_each(|error| explainer.explain(&error, &mut problems));
    problems.sort_by(|a, b| {
        by_path(&a.path, &b.path).then_with(|| (a.code, &a.message).cmp(&(b.code, &b.message)))
    });
    problems.dedup();
    if problems.len() > MAX_PROBLEMS {
        let rest = problems.len() - MAX_PROBLEMS;
        problems.truncate(MAX_PROBLEMS);
        problems.push(Problem::more(rest));
    }
    problems
}

/// Orders pointers segment by segment, array indices by number.
fn by_path(a: &str, b: &str) -> Ordering {
    fn segment(text: &str) -> (Option<u64>, &str) {
        (text.parse().ok(), text)
    }
    a.split('/').map(segment).cmp(b.split('/').map(segment))
}

/// A value in few words: its kind, and the value itself when it is short.
fn given(value: &Value) -> String {
    match value {
        Value::Null => "null".into(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::String(text) => format!("string {:?}", shortened(text, MAX_GIVEN_CHARS)),
        Value::Array(items) => format!("array of {}", counted(items.len() as u64, "item")),
        Value::Object(map) if map.is_empty() => "empty object".into(),
        Value::Object(map) => {
            let names: Vec<&str> = map.keys().take(8).map(String::as_str).collect();
            shortened(&format!("object with {}", names.join(", ")), MAX_GIVEN_CHARS)
        }
    }
}

fn counted(count: u64, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}

/// The known name most like `name`, whatever its case and separators.
fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let plain = |text: &str| -> String {
        text.chars().take(64).filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    let wanted = plain(name);
    let likeness = |other: &str| {
        let other = plain(other);
        let inside =
            wanted.len().min(other.len()) >= 4 && (wanted.contains(&other) || other.contains(&wanted));
        strsim::normalized_damerau_levenshtein(&wanted, &other).max(if inside { 0.7 } else { 0.0 })
    };
    let scored =
        known.take(200).map(|other| (likeness(other), other)).filter(|(score, _)| *score >= LIKENESS);
    scored.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, other)| other)
}

struct Explainer<'a> {
    root: &'a Value,
}

impl Explainer<'_> {
    fn explain(&self, error: &ValidationError<'_>, out: &mut Vec<Problem>) {
        let path = error.instance_path().as_str();
        let value = error.instance().as_ref();
        match error.kind() {
            Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
                self.explain_branches(error, context, out)
            }
            Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
                out.extend(unexpected.iter().map(|name| self.unknown_field(error, name)));
            }
            Kind::Required { property } => out.push(self.missing(error, property)),
            Kind::PropertyNames { error: inner } => {
                let name = inner.instance().as_str().unwrap_or_default().to_owned();
                let (_, expected, _) = simple(inner);
                out.push(Problem::new(
                    &format!("{path}/{}", escape(&name)),
                    "bad_name",
                    expected,
                    format!("field {name:?}"),
                ));
            }
            Kind::Enum { options } => {
                let options: Vec<&Value> = options.as_array().into_iter().flatten().collect();
                out.push(not_in_list(path, &options, value));
            }
            Kind::Constant { expected_value } => out.push(not_in_list(path, &[expected_value], value)),
            _ => {
                let (code, expected, given) = simple(error);
                out.push(Problem::new(path, code, expected, given));
            }
        }
    }

    fn missing(&self, error: &ValidationError<'_>, property: &Value) -> Problem {
        let name = property.as_str().unwrap_or_default();
        let schema = self.parent(error).and_then(|parent| parent.get("properties")?.get(name));
        let kinds = schema.map_or(Kinds::ALL, |schema| Walk::new(self.root, 1_000).kinds(schema));
        let path = format!("{}/{}", error.instance_path().as_str(), escape(name));
        let message = format!("required field {name:?} is missing ({})", kinds.words());
        Problem::with_message(&path, "missing", kinds.words(), "nothing".into(), message)
    }

    fn unknown_field(&self, error: &ValidationError<'_>, name: &str) -> Problem {
        let empty = serde_json::Map::new();
        let known =
            self.parent(error).and_then(|parent| parent.get("properties")?.as_object()).unwrap_or(&empty);
        let present = error.instance().as_object();
        let absent = known
            .keys()
            .map(String::as_str)
            .filter(|name| present.is_none_or(|map| !map.contains_key(*name)));
        let shown: Vec<&str> = known.keys().take(MAX_LISTED).map(String::as_str).collect();
        let (expected, advice) = match nearest(name, absent) {
            _ if shown.is_empty() => ("no fields".into(), "no fields are expected here".into()),
            Some(other) => (format!("field {other:?}"), format!("did you mean {other:?}?")),
            None => (format!("only {}", shown.join(", ")), format!("known fields: {}", shown.join(", "))),
        };
        let shown = shortened(name, MAX_GIVEN_CHARS);
        let path = format!("{}/{}", error.instance_path().as_str(), escape(name));
        let message = format!("unknown field {shown:?}; {advice}");
        Problem::with_message(&path, "unknown_field", expected, format!("field {shown:?}"), message)
    }

    /// The subschema that holds the keyword which failed.
    fn parent(&self, error: &ValidationError<'_>) -> Option<&Value> {
        let (parent, _keyword) = error.schema_path().as_str().rsplit_once('/')?;
        self.root.pointer(parent)
    }

    /// Explains a value that fits none of several alternatives by the one it comes closest to.
    fn explain_branches(
        &self,
        error: &ValidationError<'_>,
        branches: &[Vec<ValidationError<'_>>],
        out: &mut Vec<Problem>,
    ) {
        let path = error.instance_path().as_str();
        let value = error.instance().as_ref();
        let fitting: Vec<_> = branches.iter().enumerate().filter(|(_, one)| !wrong_kind(one, path)).collect();
        if fitting.is_empty() {
            let kinds =
                self.parent(error).map_or(Kinds::ALL, |schema| Walk::new(self.root, 1_000).kinds(schema));
            let expected =
                if kinds.meets(Kinds::of(value)) { "another kind of value".into() } else { kinds.words() };
            out.push(Problem::new(path, "wrong_type", expected, given(value)));
            return;
        }
        if let Some(problem) = wrong_choice(&fitting) {
            out.push(problem);
            return;
        }
        let ranks: Vec<_> = fitting.iter().map(|(_, one)| distance(one, path)).collect();
        let Some(best) = ranks.iter().min() else { return };
        let mut closest = fitting.iter().zip(&ranks).filter(|(_, rank)| *rank == best).map(|(one, _)| one.1);
        match (closest.next(), closest.next()) {
            (Some(_), Some(_)) if best.0 + best.1 > 0 => {
                let indices = fitting.iter().map(|(index, _)| *index);
                out.push(Problem::new(path, "no_variant", self.variants(error, indices), given(value)));
            }
            (Some(one), _) => one.iter().for_each(|error| self.explain(error, out)),
            _ => {}
        }
    }

    /// The alternatives in words: the title of each or the fields it requires.
    fn variants(&self, error: &ValidationError<'_>, indices: impl Iterator<Item = usize>) -> String {
        let walk = Walk::new(self.root, 1_000);
        let list = self.root.pointer(error.schema_path().as_str());
        let words = indices.take(8).filter_map(|index| {
            let written = list?.get(index)?;
            let schema = walk.target(written).unwrap_or(written);
            if let Some(title) = schema.get("title").and_then(Value::as_str) {
                return Some(title.to_owned());
            }
            let required = schema.get("required").and_then(Value::as_array).filter(|names| !names.is_empty());
            Some(match required {
                Some(names) => {
                    let names: Vec<&str> = names.iter().filter_map(Value::as_str).collect();
                    format!("object with {}", names.join(", "))
                }
                None => walk.kinds(schema).words(),
            })
        });
        format!("one of: {}", words.collect::<Vec<_>>().join("; "))
    }
}

/// Whether a branch failed because the value itself is of the wrong kind.
fn wrong_kind(branch: &[ValidationError<'_>], path: &str) -> bool {
    branch.iter().filter(|error| error.instance_path().as_str() == path).any(|error| match error.kind() {
        Kind::Type { .. } | Kind::FalseSchema => true,
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            context.iter().all(|one| wrong_kind(one, path))
        }
        _ => false,
    })
}

/// Values that a branch would have accepted at a place where it demands fixed ones.
fn choice<'e>(branch: &'e [ValidationError<'_>]) -> Option<(&'e str, Vec<&'e Value>, &'e Value)> {
    branch.iter().find_map(|error| {
        let options = match error.kind() {
            Kind::Enum { options } => options.as_array()?.iter().collect(),
            Kind::Constant { expected_value } => vec![expected_value.as_ref()],
            _ => return None,
        };
        Some((error.instance_path().as_str(), options, error.instance().as_ref()))
    })
}

/// When every branch wants another fixed value at the same place, that place is the problem.
fn wrong_choice(branches: &[(usize, &Vec<ValidationError<'_>>)]) -> Option<Problem> {
    let mut all = Vec::new();
    let mut place = None;
    for (_, branch) in branches {
        let (path, options, value) = choice(branch)?;
        if place.get_or_insert((path, value)).0 != path {
            return None;
        }
        all.extend(options);
    }
    let (path, value) = place?;
    Some(not_in_list(path, &all, value))
}

/// How far a value is from a branch: fixed values that differ and fields that are missing or unknown right
/// here count before anything deeper.
fn distance(branch: &[ValidationError<'_>], path: &str) -> (usize, usize, usize) {
    let depth = path.matches('/').count();
    let fixed = branch.iter().filter(|error| {
        let near = error.instance_path().as_str().matches('/').count() <= depth + 1;
        near && matches!(error.kind(), Kind::Enum { .. } | Kind::Constant { .. })
    });
    let fields = branch.iter().filter(|error| error.instance_path().as_str() == path);
    (fixed.count(), fields.count(), branch.len())
}

fn not_in_list(path: &str, options: &[&Value], value: &Value) -> Problem {
    let mut seen = BTreeSet::new();
    let mut listed: Vec<String> =
        options.iter().map(|one| shortened(&one.to_string(), MAX_GIVEN_CHARS)).collect();
    listed.retain(|text| seen.insert(text.clone()));
    let more = listed.len().saturating_sub(MAX_LISTED);
    listed.truncate(MAX_LISTED);
    let expected = match (listed.as_slice(), more) {
        ([only], _) => only.clone(),
        (list, 0) => format!("one of {}", list.join(", ")),
        (list, more) => format!("one of {} and {more} more", list.join(", ")),
    };
    let strings = options.iter().filter_map(|one| one.as_str());
    let advice = value.as_str().and_then(|text| nearest(text, strings));
    let advice = advice.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    let given = given(value);
    let message = format!("expected {expected}, given {given}{advice}");
    Problem::with_message(path, "not_in_list", expected, given, message)
}

/// Code, expectation and given value of an error that needs no more than itself.
fn simple(error: &ValidationError<'_>) -> (&'static str, String, String) {
    let value = error.instance().as_ref();
    let chars = || format!("{} characters", value.as_str().unwrap_or_default().chars().count());
    let items = || counted(value.as_array().map_or(0, Vec::len) as u64, "item");
    let fields = || counted(value.as_object().map_or(0, serde_json::Map::len) as u64, "field");
    let plain = |code, expected: String| (code, expected, given(value));
    match error.kind() {
        Kind::Type { kind: TypeKind::Single(kind) } => plain("wrong_type", kind.to_string()),
        Kind::Type { kind: TypeKind::Multiple(kinds) } => {
            let mut names: Vec<String> = kinds.iter().map(|kind| kind.to_string()).collect();
            // The set starts with null, which nobody should be nudged towards.
            names.reverse();
            plain("wrong_type", names.join(" or "))
        }
        Kind::Minimum { limit } => plain("out_of_range", format!("at least {limit}")),
        Kind::Maximum { limit } => plain("out_of_range", format!("at most {limit}")),
        Kind::ExclusiveMinimum { limit } => plain("out_of_range", format!("more than {limit}")),
        Kind::ExclusiveMaximum { limit } => plain("out_of_range", format!("less than {limit}")),
        Kind::MultipleOf { multiple_of } => plain("not_multiple", format!("a multiple of {multiple_of}")),
        Kind::MaxLength { limit } => ("too_long", format!("at most {limit} characters"), chars()),
        Kind::MinLength { limit } => ("too_short", format!("at least {limit} characters"), chars()),
        Kind::MaxItems { limit } => ("too_long", format!("at most {}", counted(*limit, "item")), items()),
        Kind::MinItems { limit } => ("too_short", format!("at least {}", counted(*limit, "item")), items()),
        Kind::AdditionalItems { limit } => {
            ("too_long", format!("at most {}", counted(*limit as u64, "item")), items())
        }
        Kind::UnevaluatedItems { .. } => ("too_long", "no further items".into(), items()),
        Kind::MaxProperties { limit } => {
            ("too_long", format!("at most {}", counted(*limit, "field")), fields())
        }
        Kind::MinProperties { limit } => {
            ("too_short", format!("at least {}", counted(*limit, "field")), fields())
        }
        Kind::Pattern { pattern } => plain("bad_pattern", format!("a match of {pattern:?}")),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            plain("bad_pattern", "a string that the pattern can be tried on".into())
        }
        Kind::Format { format } => plain("bad_format", format!("format {format:?}")),
        Kind::ContentEncoding { content_encoding } => plain("bad_format", format!("{content_encoding} text")),
        Kind::ContentMediaType { content_media_type } => {
            plain("bad_format", format!("{content_media_type} text"))
        }
        Kind::FromUtf8 { .. } => plain("bad_format", "text in UTF-8".into()),
        Kind::UniqueItems => {
            ("not_unique", "items that all differ".into(), format!("{} with repeats", items()))
        }
        Kind::Contains => plain("missing_item", "an array with an item of the demanded form".into()),
        Kind::OneOfMultipleValid { .. } => {
            plain("many_variants", "a value that fits only one variant".into())
        }
        Kind::Not { .. } | Kind::FalseSchema => plain("forbidden", "something else".into()),
        other => plain("invalid", format!("a value that satisfies {:?}", other.keyword())),
    }
}
