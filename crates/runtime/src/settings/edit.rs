//! What a change to a settings file would do, before it is made.

use std::fmt;

use gripper_permissions::{Scope, Source};
use serde_json::Value;

use super::{Kind, Node, Tree, keys, read};
use crate::schema::Problem;

/// What would change in effect, one sentence each.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change(pub Vec<String>);

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "changes nothing in effect" } else { "" })?;
        f.write_str(&self.0.join("; "))
    }
}

/// Checks a change of a file's text: what stands there parses, and what would stand there parses and fits the
/// schema. Gives what the change comes to, or everything that is wrong with it.
pub fn check_edit(kind: Kind, before: &str, after: &str) -> Result<Change, Vec<Problem>> {
    let before = parsed(kind, before, "the current content ")?;
    let after = parsed(kind, after, "")?;
    keys::schema(kind).check(&after.value())?;
    let mut change = Change::default();
    compare(kind.key().unwrap_or_default(), Some(&before), Some(&after), &mut change.0);
    Ok(change)
}

fn parsed(kind: Kind, text: &str, whose: &str) -> Result<Node, Vec<Problem>> {
    let (node, _) = Node::parse(text, &Source::of(Scope::Local)).map_err(|broken| {
        vec![Problem::found("", "unreadable", format!("{whose}to be JSON"), broken.to_string())]
    })?;
    Ok(read::unwrapped(node, kind))
}

fn compare(path: &str, before: Option<&Node>, after: Option<&Node>, lines: &mut Vec<String>) {
    let is = |node: Option<&Node>, shape: fn(&Tree) -> bool| node.is_none_or(|node| shape(&node.tree));
    if is(before, |tree| matches!(tree, Tree::Object(_))) && is(after, |tree| matches!(tree, Tree::Object(_)))
    {
        let keys = |node: Option<&Node>| -> Vec<String> {
            node.into_iter().flat_map(Node::entries).map(|(key, _)| key.clone()).collect()
        };
        let mut all = keys(before);
        all.extend(keys(after));
        all.sort();
        all.dedup();
        for key in all {
            let dot = if path.is_empty() { "" } else { "." };
            let (old, new) = (before.and_then(|node| node.get(&key)), after.and_then(|node| node.get(&key)));
            compare(&format!("{path}{dot}{key}"), old, new, lines);
        }
    } else if is(before, |tree| matches!(tree, Tree::Array(_)))
        && is(after, |tree| matches!(tree, Tree::Array(_)))
    {
        let values = |node: Option<&Node>| -> Vec<Value> {
            node.map(Node::items).unwrap_or_default().iter().map(Node::value).collect()
        };
        let (old, new) = (values(before), values(after));
        for (verb, these, others) in [("adds", &new, &old), ("removes", &old, &new)] {
            for value in these.iter().filter(|value| !others.contains(value)) {
                lines.extend(entry(path, value).into_iter().map(|words| format!("{verb} {words}")));
            }
        }
    } else if before.map(Node::value) != after.map(Node::value) {
        let name =
            path.rsplit_once('.').filter(|(parent, _)| *parent == "permissions").map_or(path, |(_, key)| key);
        lines.push(match after {
            Some(node) => format!("sets {name} to {}", plain(&node.value())),
            None => format!("removes {name}"),
        });
    }
}

/// An entry of a list in words: a rule, the hooks of a group, or the value with the list's name.
fn entry(path: &str, value: &Value) -> Vec<String> {
    match path.split_once('.') {
        Some(("permissions", list @ ("allow" | "ask" | "deny"))) => {
            let rule = value.get("rule").unwrap_or(value);
            vec![format!("{list} {}", plain(rule))]
        }
        Some(("hooks", event)) => {
            let matcher = value.get("matcher").and_then(Value::as_str).filter(|matcher| !matcher.is_empty());
            let matcher = matcher.map(|matcher| format!(" for {matcher}")).unwrap_or_default();
            let hooks = value.get("hooks").and_then(Value::as_array).into_iter().flatten();
            let runs = |hook: &Value| {
                let what = ["command", "url", "type"].iter().find_map(|key| hook.get(*key));
                what.map(plain).unwrap_or_default()
            };
            hooks.map(|hook| format!("a {event} hook{matcher} running {}", runs(hook))).collect()
        }
        _ => vec![format!("{} in {path}", plain(value))],
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
