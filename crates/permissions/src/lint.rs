//! Rules that cannot mean what they say, with what to write instead.

use crate::{
    Diagnostic, Policy, RuleList, SourcedRule,
    rule::{CommandPattern, Pattern},
    tools,
};

/// Folders that a rule with one slash in front hardly means inside the project.
const SYSTEM: [&str; 9] =
    ["/etc/", "/home/", "/opt/", "/root/", "/srv/", "/tmp/", "/usr/", "/var/", "/Users/"];
/// Beyond this many rules they are no longer compared with each other.
const MOST_COMPARED: usize = 2000;

/// Looks through all rules of a policy. `known` are the tools that exist besides those of the
/// rule language.
pub fn lint(policy: &Policy, known: &[&str]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    for list in RuleList::ALL {
        for sourced in policy.rules.list(list) {
            found.extend(one(policy, list, sourced, known));
        }
    }
    found.extend(crate::examples::failing_examples(policy));
    found.extend(shadowed(policy));
    found
}

fn one(policy: &Policy, list: RuleList, sourced: &SourcedRule, known: &[&str]) -> Option<Diagnostic> {
    let (rule, source) = (&sourced.rule, sourced.source.clone());
    let inert = |what: String| Diagnostic::error(source.clone(), what);
    let allow = list == RuleList::Allow;
    match &*rule.pattern {
        Pattern::AnyTool if allow => Some(
            inert("allow * grants nothing: name the tools".to_owned())
                .fix("or use the mode bypassPermissions"),
        ),
        Pattern::Param { .. } if allow => {
            Some(inert(format!("{rule} grants nothing: rules about single inputs only deny or ask")))
        }
        Pattern::Mcp { server, .. } if allow && server.contains('*') => Some(
            inert(format!("{rule} grants nothing: an allow rule must name the server"))
                .fix("write mcp__server__tool"),
        ),
        Pattern::Tool(tool) | Pattern::Param { tool, .. } if !is_known(tool, known) => {
            Some(unknown(tool, sourced, known))
        }
        Pattern::Path { misnamed: true, edit, .. } => Some(misnamed(sourced, *edit, allow)),
        Pattern::Path { pattern: Some(_), .. } => path(sourced),
        Pattern::Command(pattern) => command(policy, list, sourced, pattern),
        _ => None,
    }
    .or_else(|| {
        let why = policy.set_aside(list, sourced)?;
        Some(Diagnostic::warning(source, format!("{rule} does not count: {why}")))
    })
}

fn is_known(tool: &str, known: &[&str]) -> bool {
    tools::known(tool).is_some() || known.contains(&tool) || tool.starts_with("mcp__")
}

fn unknown(tool: &str, sourced: &SourcedRule, known: &[&str]) -> Diagnostic {
    let what = format!("there is no tool {tool}, so {} fits nothing", sourced.rule);
    let diagnostic = Diagnostic::error(sourced.source.clone(), what);
    match tools::near(tool, known) {
        Some(name) => diagnostic.fix(format!("write {}", sourced.rule.text().replacen(tool, name, 1))),
        None => diagnostic.fix("`gripper tools` lists them"),
    }
}

fn misnamed(sourced: &SourcedRule, edit: bool, allow: bool) -> Diagnostic {
    let text = sourced.rule.text();
    let name = if edit { "Edit" } else { "Read" };
    let fixed = text.split_once('(').map_or(name.to_owned(), |(_, rest)| format!("{name}({rest}"));
    let what = if allow {
        format!(
            "{text} grants nothing: rules about files are written for {name}, which covers all tools of its kind"
        )
    } else {
        format!("{text} is taken as {fixed}: rules about files are written for {name}")
    };
    let diagnostic = Diagnostic::error(sourced.source.clone(), what).fix(format!("write {fixed}"));
    if allow { diagnostic } else { Diagnostic { weight: crate::Weight::Warning, ..diagnostic } }
}

fn path(sourced: &SourcedRule) -> Option<Diagnostic> {
    let text = sourced.rule.text();
    let (_, specifier) = text.split_once('(')?;
    let system = SYSTEM.iter().any(|folder| specifier.starts_with(folder));
    system.then(|| {
        let what = format!("{text} begins in the project, not in the root of the disk");
        let fixed = text.replacen('(', "(/", 1);
        Diagnostic::warning(sourced.source.clone(), what).fix(format!("write {fixed} if that is meant"))
    })
}

fn command(
    policy: &Policy,
    list: RuleList,
    sourced: &SourcedRule,
    pattern: &CommandPattern,
) -> Option<Diagnostic> {
    let (rule, source) = (&sourced.rule, sourced.source.clone());
    let allow = list == RuleList::Allow;
    let text = rule.text();
    let inner = text.split_once('(').map_or("", |(_, inner)| inner.trim_end_matches(')'));
    if pattern.has_operators() && allow {
        let what = format!("{text} fits nothing: each command of a line is compared on its own");
        return Some(Diagnostic::error(source, what).fix("write one rule for each command"));
    }
    if inner.trim_end_matches(":*").contains(":*") {
        let what = format!("{text}: `:*` means \"and what follows\" at the end only");
        return Some(Diagnostic::error(source, what).fix(format!("write {}", text.replacen(":*", " *", 1))));
    }
    if inner.len() > 2 && inner.starts_with('/') && inner.ends_with('/') {
        let what = format!("{text} is compared as a command: rules are no regular expressions");
        return Some(
            Diagnostic::error(source, what).fix("write the words of the command, with * as a wildcard"),
        );
    }
    (allow && rule.is_broad() && policy.counts(list, sourced)).then(|| {
        let what = format!("{text} allows nearly anything to be run");
        Diagnostic::warning(source, what).fix("name the commands that are needed")
    })
}

/// Rules that another makes needless: the same twice, or an allow that a deny or ask always beats.
fn shadowed(policy: &Policy) -> Vec<Diagnostic> {
    let all: Vec<(RuleList, &SourcedRule)> = RuleList::ALL
        .into_iter()
        .flat_map(|list| policy.rules.list(list).iter().map(move |rule| (list, rule)))
        .take(MOST_COMPARED)
        .collect();
    let mut found = Vec::new();
    for (at, (list, rule)) in all.iter().enumerate() {
        let stronger = all.iter().take(at).find(|(other_list, other)| {
            let same = other.rule.pattern == rule.rule.pattern;
            let beats = other_list != list && swallows(&other.rule.pattern, &rule.rule.pattern);
            (same && other_list == list) || ((same || beats) && other_list != list)
        });
        if let Some((other_list, other)) = stronger {
            let what = if other_list == list {
                format!("{} stands here a second time: {}", rule.rule, other.source)
            } else {
                let other_list = other_list.name();
                format!(
                    "{} is never reached: the {other_list} rule {} ({}) wins",
                    rule.rule, other.rule, other.source
                )
            };
            found.push(Diagnostic::warning(rule.source.clone(), what).fix("leave it out"));
        }
    }
    found
}

/// Whether everything that one rule fits the other fits too, as far as that can be told by their text.
fn swallows(wide: &Pattern, narrow: &Pattern) -> bool {
    match (wide, narrow) {
        (Pattern::AnyTool, _) => true,
        (Pattern::Command(wide), Pattern::Command(narrow)) => wide.swallows(narrow),
        (Pattern::Path { edit: a, pattern: None, .. }, Pattern::Path { edit: b, .. }) => a == b,
        (Pattern::Mcp { server, tool: None }, Pattern::Mcp { server: other, .. }) => server == other,
        _ => false,
    }
}
