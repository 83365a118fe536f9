//! One line for people.

use crate::{
    analysis::Analysis,
    effect::{EffectKind, Target},
    surroundings::{Surroundings, within},
};

/// How many paths of one kind are named.
const MOST_NAMED: usize = 3;

impl Analysis {
    /// What the command does, in one line.
    pub fn summary(&self, surroundings: &Surroundings<'_>) -> String {
        let mut phrases: Vec<String> = Vec::new();
        let mut files = |verb: &str, pick: fn(&EffectKind) -> Option<&Target>| {
            let mut names: Vec<String> = Vec::new();
            for target in self.effects().filter_map(|effect| pick(&effect.kind)) {
                let name = shown(target, surroundings);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
            if !names.is_empty() {
                let more = names.len().saturating_sub(MOST_NAMED);
                names.truncate(MOST_NAMED);
                let more = if more > 0 { format!(" and {more} more") } else { String::new() };
                phrases.push(format!("{verb} {}{more}", names.join(" and ")));
            }
        };
        files("lists", |kind| match kind {
            EffectKind::List(target) => Some(target),
            _ => None,
        });
        files("reads", |kind| match kind {
            EffectKind::Read(target) => Some(target),
            _ => None,
        });
        files("writes", |kind| match kind {
            EffectKind::Write(target) => Some(target),
            _ => None,
        });
        files("deletes", |kind| match kind {
            EffectKind::Delete(target) => Some(target),
            _ => None,
        });
        for effect in self.effects() {
            if effect.kind.is_read() || matches!(effect.kind, EffectKind::Write(_) | EffectKind::Delete(_)) {
                continue;
            }
            let phrase = effect.kind.to_string();
            if !phrases.contains(&phrase) && phrases.len() < 8 {
                phrases.push(phrase);
            }
        }
        if let Some(first) = self.unresolved.first() {
            phrases.push(format!("cannot be followed: {}", first.why));
        }
        if phrases.is_empty() { "only prints".to_owned() } else { phrases.join(", ") }
    }
}

fn shown(target: &Target, surroundings: &Surroundings<'_>) -> String {
    let text = target.to_string();
    if text == surroundings.cwd {
        return ".".to_owned();
    }
    if within(&text, &surroundings.cwd) {
        return text.get(surroundings.cwd.len() + 1..).unwrap_or_default().to_owned();
    }
    if within(&text, &surroundings.home) {
        return format!("~{}", text.get(surroundings.home.len()..).unwrap_or_default());
    }
    text
}
