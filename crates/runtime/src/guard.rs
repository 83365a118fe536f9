//! The loop guard: notices when a model repeats itself to no purpose.

use std::{
    collections::{HashMap, VecDeque},
    hash::{DefaultHasher, Hash, Hasher},
};

use serde_json::Value;

use crate::pipeline::CallResult;

/// How many different calls are remembered.
const REMEMBERED: usize = 512;

/// When the guard speaks and when it refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuardLimits {
    /// Identical failures from which a note is added.
    pub note_failures: u32,
    /// Which identical attempt is refused.
    pub refuse_failures: u32,
    /// Identical reads with identical results from which a note is added.
    pub note_same: u32,
}

impl Default for GuardLimits {
    fn default() -> Self {
        Self { note_failures: 2, refuse_failures: 5, note_same: 3 }
    }
}

/// Identifies a call by tool and input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key(u64);

impl Key {
    pub(crate) fn of(tool: &str, input: &Value) -> Self {
        let mut hasher = DefaultHasher::new();
        tool.hash(&mut hasher);
        hash_value(input, &mut hasher);
        Self(hasher.finish())
    }
}

#[derive(Default)]
struct History {
    failures: u32,
    /// What had been changed when the failures were counted.
    changes: u64,
    last_result: u64,
    same_results: u32,
}

/// What was called lately and how it went.
pub(crate) struct Guard {
    limits: GuardLimits,
    calls: HashMap<Key, History>,
    order: VecDeque<Key>,
    /// Successful changes so far. After one, a call that failed before may well succeed.
    changes: u64,
}

impl Guard {
    pub(crate) fn new(limits: GuardLimits) -> Self {
        Self { limits, calls: HashMap::new(), order: VecDeque::new(), changes: 0 }
    }

    /// How often the call failed before, if that is reason to refuse the next attempt.
    pub(crate) fn refuses(&self, key: Key) -> Option<u32> {
        let failures = self.calls.get(&key).filter(|history| history.changes == self.changes)?.failures;
        (failures + 1 >= self.limits.refuse_failures).then_some(failures)
    }

    /// Whether the call has failed before, so that what else happened matters to it.
    pub(crate) fn has_failed(&self, key: Key) -> bool {
        self.calls.get(&key).is_some_and(|history| history.failures > 0)
    }

    /// Records a result, in emission order, and returns the note it deserves.
    pub(crate) fn record(&mut self, key: Key, read_only: bool, result: &CallResult) -> Option<String> {
        let limits = self.limits;
        self.changes += u64::from(!read_only && !result.is_error);
        let changes = self.changes;
        let history = self.history(key);
        if history.changes != changes {
            (history.failures, history.changes) = (0, changes);
        }
        if result.is_error {
            history.failures += 1;
            history.same_results = 0;
            let failures = history.failures;
            return (failures >= limits.note_failures).then(|| {
                format!("This exact call has failed {failures} times. Change the input or try another way.")
            });
        }
        history.failures = 0;
        if !read_only {
            return None;
        }
        let digest = digest(result);
        history.same_results = if history.last_result == digest { history.same_results + 1 } else { 1 };
        history.last_result = digest;
        let same = history.same_results;
        (same >= limits.note_same)
            .then(|| format!("This exact call has given this same result {same} times; calling it again will not change it."))
    }

    fn history(&mut self, key: Key) -> &mut History {
        if !self.calls.contains_key(&key) {
            if self.order.len() == REMEMBERED
                && let Some(oldest) = self.order.pop_front()
            {
                self.calls.remove(&oldest);
            }
            self.order.push_back(key);
        }
        self.calls.entry(key).or_default()
    }
}

fn digest(result: &CallResult) -> u64 {
    let mut hasher = DefaultHasher::new();
    result.content.hash(&mut hasher);
    hasher.finish()
}

/// Key order does not matter to a tool, so it does not matter here.
fn hash_value(value: &Value, hasher: &mut DefaultHasher) {
    let kind = match value {
        Value::Null => 0u8,
        Value::Bool(false) => 1,
        Value::Bool(true) => 2,
        Value::Number(_) => 3,
        Value::String(_) => 4,
        Value::Array(_) => 5,
        Value::Object(_) => 6,
    };
    kind.hash(hasher);
    match value {
        Value::Null | Value::Bool(_) => {}
        Value::Number(number) => number.to_string().hash(hasher),
        Value::String(text) => text.hash(hasher),
        Value::Array(items) => {
            items.len().hash(hasher);
            items.iter().for_each(|item| hash_value(item, hasher));
        }
        Value::Object(fields) => {
            fields.len().hash(hasher);
            let mut keys: Vec<&String> = fields.keys().collect();
            keys.sort();
            for key in keys {
                key.hash(hasher);
                hash_value(&fields[key], hasher);
            }
        }
    }
}

#[cfg(test)]
#[path = "guard_tests.rs"]
mod tests;
