//! Examples that rules carry, and single rules against single calls.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::{
    CommandPlace, Diagnostic, Policy, Request, Rule, RuleList, Source, SourcedRule,
    cover::{Cover, Coverage},
    policy::{COMMAND_TOOL, Examples},
    rule::{Fit, Pattern},
};

impl Rule {
    /// Whether the rule is about a call: as a deny or ask rule any part of it is enough, as an
    /// allow rule it must cover the whole.
    pub fn matches(&self, list: RuleList, policy: &Policy, request: &Request<'_>) -> bool {
        let mut alone = Policy { rules: Default::default(), ..policy.clone() };
        // Alone, whatever its source: the question is what the rule says, not whether it counts.
        alone.trusted = true;
        alone.rules.add(list, self.clone(), Source::command_line());
        let index = alone.index();
        let rules = index.list(list);
        if list != RuleList::Allow {
            return rules.strikes(request).is_some_and(|(fit, _)| fit == Fit::Yes);
        }
        match request.command_use() {
            Some(command) => {
                let coverage = Coverage::new(&alone, &index, request, command);
                // What only reads needs no rule, and may still be what the rule is about.
                matches!(coverage.look(), Cover::Whole(rule) if rule.is_some() || coverage.speaks_of_it())
            }
            None => {
                let mut paths = request.paths().peekable();
                let files = paths.peek().is_some() && paths.all(|path| rules.allows_path(path).is_some());
                files || rules.allows_call(request).is_some()
            }
        }
    }
}

/// Every rule of a policy that is about a call, with the list it stands in.
pub fn matching<'p>(policy: &'p Policy, request: &Request<'_>) -> Vec<(RuleList, &'p SourcedRule)> {
    let all = RuleList::ALL
        .into_iter()
        .flat_map(|list| policy.rules.list(list).iter().map(move |rule| (list, rule)));
    all.filter(|(list, sourced)| {
        // Of a line of commands an allow rule need only fit one to be worth showing.
        let list =
            if *list == RuleList::Allow && request.command_use().is_some() { RuleList::Ask } else { *list };
        sourced.rule.matches(list, policy, request)
    })
    .collect()
}

/// The examples of all rules that do not come out as they say.
pub fn failing_examples(policy: &Policy) -> Vec<Diagnostic> {
    let all = RuleList::ALL
        .into_iter()
        .flat_map(|list| policy.rules.list(list).iter().map(move |rule| (list, rule)));
    all.flat_map(|(list, rule)| check(policy, list, rule)).collect()
}

fn check(policy: &Policy, list: RuleList, sourced: &SourcedRule) -> Vec<Diagnostic> {
    let Examples { fits, not_match } = &sourced.examples;
    let wanted = fits.iter().map(|text| (text, true)).chain(not_match.iter().map(|text| (text, false)));
    let wrong = wanted.filter(|(text, expected)| {
        let Some((tool, input)) = call(&sourced.rule, text) else { return true };
        let (cwd, home) = (policy.directories.first(), policy.home.to_string_lossy());
        let cwd = cwd.map_or_else(|| "/".into(), |cwd| cwd.to_string_lossy());
        let real = |path: &str| PathBuf::from(path);
        let place = CommandPlace { cwd: &cwd, home: &home, real: &real };
        let request = Request::from_input(tool, &input, policy, place);
        request.is_none_or(|request| sourced.rule.matches(list, policy, &request) != *expected)
    });
    wrong
        .map(|(text, expected)| {
            let (does, should) = if expected { ("does not fit", "should") } else { ("fits", "should not") };
            let what = format!("{} {does} the example \"{text}\", and {should}", sourced.rule);
            Diagnostic::error(sourced.source.clone(), what).fix("correct the rule or the example")
        })
        .collect()
}

/// The call that an example stands for.
fn call<'r>(rule: &'r Rule, text: &str) -> Option<(&'r str, Value)> {
    Some(match &*rule.pattern {
        Pattern::Command(_) => (COMMAND_TOOL, json!({ "command": text })),
        Pattern::Path { edit, .. } => (if *edit { "Edit" } else { "Read" }, json!({ "file_path": text })),
        Pattern::Domain(_) => ("WebFetch", json!({ "url": text })),
        Pattern::Name { .. } | Pattern::Param { .. } | Pattern::Tool(_) => {
            let input = serde_json::from_str(text).ok()?;
            let name = rule.text().split('(').next().unwrap_or_default();
            (name, input)
        }
        Pattern::AnyTool | Pattern::Mcp { .. } => return None,
    })
}
