//! Hides secrets in text that is logged or shown, and nothing else: commands, hosts, paths, commits and hashes
//! stay readable.
//!
//! One search over the text finds the few literals by which a secret can be noticed; only there are the shapes
//! (`shapes`) and the names (`names`, `assign`) tried. Text without such a literal costs one scan.

mod assign;
mod names;
mod shapes;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

use names::Secrecy;

/// Up to this many literals are searched with vector instructions, at several bytes per cycle; with one more the
/// search is twenty times slower. A test holds the tables to it.
#[cfg(test)]
const MOST_TRIGGERS: usize = 64;

/// Everything a secret can be noticed by.
fn triggers() -> BTreeSet<&'static str> {
    shapes::SHAPES.iter().flat_map(|shape| shape.starts).chain(names::STEMS).copied().collect()
}

static TRIGGER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let literals: Vec<String> = triggers().into_iter().map(regex::escape).collect();
    Regex::new(&literals.join("|")).ok()
});

/// Replaces each secret by a note of its kind, such as `[redacted: github token]`.
#[must_use]
pub fn redact(text: &str) -> Cow<'_, str> {
    let Some(trigger) = TRIGGER.as_ref() else { return Cow::Borrowed(text) };
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(hit) = trigger.find_at(text, at) {
        at = hit.end();
        if let Some((secret, kind)) =
            secret_at(text, hit.range()).filter(|(secret, _)| secret.start >= copied)
        {
            out.push_str(&text[copied..hit.start()]);
            // Between the trigger and the secret another may stand: a token as the user name of a URL.
            out.push_str(&redact(&text[hit.start()..secret.start]));
            out.push_str(&label(kind));
            copied = secret.end;
            at = at.max(secret.end);
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Redacts every string in a value, keys included, and hides what stands under a key such as `password`.
pub fn redact_value(value: &mut Value) {
    match value {
        Value::String(text) => redact_string(text),
        Value::Array(items) => items.iter_mut().for_each(redact_value),
        Value::Object(members) => redact_members(members),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn secret_at(text: &str, hit: Range<usize>) -> Option<(Range<usize>, &'static str)> {
    if names::STEMS.contains(&&text[hit.clone()]) {
        assign::find(text, hit.start)
    } else {
        shapes::find(text, hit.start)
    }
}

fn label(kind: &str) -> String {
    format!("[redacted: {kind}]")
}

fn redact_string(text: &mut String) {
    if let Cow::Owned(redacted) = redact(text) {
        *text = redacted;
    }
}

fn redact_members(members: &mut Map<String, Value>) {
    // Environment lists spell a member as two: {"name": "DB_PASSWORD", "value": "…"}.
    let named = ["name", "key"].iter().find_map(|key| members.get(*key)?.as_str().and_then(names::secrecy));
    for (key, value) in members.iter_mut() {
        let secrecy = if key == "value" { named } else { names::secrecy(key) };
        match secrecy {
            Some(secrecy) => hide(value, secrecy),
            None => redact_value(value),
        }
    }
    if members.keys().any(|key| matches!(redact(key), Cow::Owned(_))) {
        // Two keys that were secrets of one kind become one member; their values are the lesser loss.
        *members = std::mem::take(members)
            .into_iter()
            .map(|(key, value)| (redact(&key).into_owned(), value))
            .collect();
    }
}

/// Hides a value under a secret name. Truth values and null tell nothing; objects have names of their own.
fn hide(value: &mut Value, secrecy: Secrecy) {
    match (value, secrecy) {
        (Value::Array(items), _) => items.iter_mut().for_each(|item| hide(item, secrecy)),
        (Value::String(text), Secrecy::Sure(kind)) if is_literal(text) => *text = label(kind_of(text, kind)),
        (Value::String(text), Secrecy::Maybe(kind)) if names::looks_random(text) && is_literal(text) => {
            *text = label(kind_of(text, kind));
        }
        (value @ Value::Number(_), Secrecy::Sure(kind)) => *value = Value::String(label(kind)),
        (value, _) => redact_value(value),
    }
}

/// Whether the text is a secret itself rather than a reference to one, such as `$TOKEN`.
fn is_literal(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('$') && !text.starts_with("[redacted: ")
}

/// The kind by the text's own shape if it has one, else by its name.
fn kind_of(text: &str, by_name: &'static str) -> &'static str {
    shapes::find(text, 0).map_or(by_name, |(_, kind)| kind)
}
