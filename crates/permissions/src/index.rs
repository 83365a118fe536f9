//! All rules of a policy, prepared: a decision costs microseconds whatever their number.

use std::collections::HashMap;

use gripper_shell::{Argument, Part};
use serde_json::Value;

use crate::{
    CommandUse, PathUse, Policy, Request, RuleList, SourcedRule, Subject, glob,
    policy::{IndexKey, rank},
    programs,
    rule::{CommandPattern, Fit, PathSet, Pattern},
    sensitive::Own,
    tools,
    web::{self, Site},
};

/// The prepared rules of a policy.
#[derive(Debug)]
pub(crate) struct Index {
    key: IndexKey,
    lists: [List; 3],
    /// The secret paths of this policy.
    pub own: Own,
}

/// One of the three lists.
#[derive(Debug)]
pub(crate) struct List {
    allow: bool,
    /// The rules that count, the strongest last.
    rules: Vec<SourcedRule>,
    /// Rules about commands, by program.
    programs: HashMap<String, Vec<usize>>,
    /// Rules about commands of any program.
    anywhere: Vec<usize>,
    reads: PathSet,
    edits: PathSet,
    /// All others.
    others: Vec<usize>,
}

impl Index {
    pub(crate) fn new(policy: &Policy, key: IndexKey) -> Self {
        let lists = RuleList::ALL.map(|list| List::new(policy, &key, list));
        let own = Own::new(&key.sensitive);
        Self { key, lists, own }
    }

    pub(crate) fn key(&self) -> &IndexKey {
        &self.key
    }

    pub(crate) fn list(&self, list: RuleList) -> &List {
        let [deny, ask, allow] = &self.lists;
        match list {
            RuleList::Deny => deny,
            RuleList::Ask => ask,
            RuleList::Allow => allow,
        }
    }
}

impl List {
    fn new(policy: &Policy, key: &IndexKey, list: RuleList) -> Self {
        let allow = list == RuleList::Allow;
        let counted = policy.rules.list(list).iter().filter(|rule| policy.counts(list, rule));
        let mut rules: Vec<SourcedRule> = counted.cloned().collect();
        rules.sort_by(|a, b| rank(b).cmp(&rank(a)));
        let mut programs: HashMap<String, Vec<usize>> = HashMap::new();
        let (mut anywhere, mut others) = (Vec::new(), Vec::new());
        for (at, sourced) in rules.iter().enumerate() {
            match &sourced.rule.pattern {
                Pattern::Command(pattern) => match pattern.program() {
                    Some(program) => programs.entry(program.to_owned()).or_default().push(at),
                    None => anywhere.push(at),
                },
                Pattern::Path { .. } => {}
                _ => others.push(at),
            }
        }
        let paths = |wanted: bool| {
            let chosen =
                rules.iter().enumerate().filter_map(move |(at, sourced)| match &sourced.rule.pattern {
                    Pattern::Path { edit, pattern, .. } if *edit == wanted => Some((at, pattern.as_ref())),
                    _ => None,
                });
            PathSet::new(chosen, &key.anchors, allow)
        };
        let (reads, edits) = (paths(false), paths(true));
        Self { allow, programs, anywhere, reads, edits, others, rules }
    }

    fn rule(&self, at: usize) -> Option<&SourcedRule> {
        self.rules.get(at)
    }

    /// Whether there are rules about single commands.
    pub(crate) fn minds_commands(&self) -> bool {
        !self.programs.is_empty() || !self.anywhere.is_empty()
    }

    /// Whether there are rules about files.
    pub(crate) fn minds_paths(&self) -> bool {
        !self.reads.is_empty() || !self.edits.is_empty()
    }

    /// The rules about commands that could fit a program, the strongest first.
    pub(crate) fn commands<'l>(
        &'l self,
        program: &str,
    ) -> impl Iterator<Item = (&'l CommandPattern, &'l SourcedRule)> {
        let named = self.programs.get(program).map(Vec::as_slice).unwrap_or_default();
        let mut numbers: Vec<usize> = named.iter().chain(&self.anywhere).copied().collect();
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        numbers.into_iter().filter_map(|at| {
            let sourced = self.rule(at)?;
            match &sourced.rule.pattern {
                Pattern::Command(pattern) => Some((pattern, sourced)),
                _ => None,
            }
        })
    }

    fn all_commands(&self) -> impl Iterator<Item = (&CommandPattern, &SourcedRule)> {
        self.rules.iter().rev().filter_map(|sourced| match &sourced.rule.pattern {
            Pattern::Command(pattern) => Some((pattern, sourced)),
            _ => None,
        })
    }

    /// The deny or ask rule that strikes a call, if one does, and how surely.
    pub(crate) fn strikes(&self, request: &Request<'_>) -> Option<(Fit, &SourcedRule)> {
        let whole = self.others.iter().rev().filter_map(|at| self.rule(*at));
        if let Some(rule) = whole.into_iter().find(|rule| fits_call(&rule.rule.pattern, request)) {
            return Some((Fit::Yes, rule));
        }
        let mut maybe = None;
        for subject in &request.subjects {
            let found = match subject {
                Subject::Path(path) => self.strikes_path(path),
                Subject::Command(command) => self.strikes_command(command),
                _ => None,
            };
            match found {
                Some((Fit::Yes, rule)) => return Some((Fit::Yes, rule)),
                Some(found) => maybe = Some(found),
                None => {}
            }
        }
        maybe
    }

    fn strikes_path(&self, path: &PathUse) -> Option<(Fit, &SourcedRule)> {
        if let Some(pattern) = &path.pattern {
            let found = self.reads.aimed_at(pattern);
            let found = found.or_else(|| path.write.then(|| self.edits.aimed_at(pattern)).flatten());
            if let Some(rule) = found.and_then(|at| self.rule(at)) {
                return Some((Fit::Yes, rule));
            }
        }
        let within =
            |set: &PathSet| [&path.written, &path.real].into_iter().find_map(|path| set.find(path, true));
        // What may not be read may not be changed either. A listing shows names only, but of the
        // folder that a rule is about it shows too much.
        let found = within(&self.reads).or_else(|| path.write.then(|| within(&self.edits)).flatten());
        let found = found.or_else(|| {
            let emptied = path.write && path.whole_folder;
            emptied.then(|| self.edits.inside(&path.real).or_else(|| self.reads.inside(&path.real))).flatten()
        });
        found.and_then(|at| self.rule(at)).map(|rule| (Fit::Yes, rule))
    }

    fn strikes_command(&self, command: &CommandUse) -> Option<(Fit, &SourcedRule)> {
        let analysis = &command.analysis;
        if self.rules.is_empty() {
            return None;
        }
        let mut maybe = None;
        for part in analysis.parts() {
            for (pattern, rule) in self.commands(program(part)) {
                match pattern.strikes(part) {
                    Fit::Yes => return Some((Fit::Yes, rule)),
                    Fit::Maybe => maybe = Some((Fit::Maybe, rule)),
                    Fit::No => {}
                }
            }
            if part.argv.first().is_some_and(|first| first.literal().is_none()) && maybe.is_none() {
                maybe = self.all_commands().next().map(|(_, rule)| (Fit::Maybe, rule)).or(maybe);
            }
        }
        // What could not be followed is searched for the words of rules.
        let open = !analysis.unresolved().is_empty() || analysis.parts().iter().any(is_given_code);
        let found = self.all_commands().find(|(pattern, _)| {
            pattern.strikes_line(&command.text) || (open && pattern.appears_in(&command.text))
        });
        found.map(|(_, rule)| (Fit::Yes, rule)).or(maybe)
    }

    /// The allow rule for a call that has no command and no path.
    pub(crate) fn allows_call(&self, request: &Request<'_>) -> Option<&SourcedRule> {
        let mut rules = self.others.iter().rev().filter_map(|at| self.rule(*at));
        rules.find(|rule| fits_call(&rule.rule.pattern, request))
    }

    /// The allow rule that covers a path, as written and as it resolves.
    pub(crate) fn allows_path(&self, path: &PathUse) -> Option<&SourcedRule> {
        if path.pattern.is_some() || !self.allow {
            return None;
        }
        let both = |set: &PathSet| {
            set.find(&path.real, false)?;
            set.find(&path.written, false)
        };
        // Who may change a file may read it.
        let found = both(&self.edits).or_else(|| (!path.write).then(|| both(&self.reads)).flatten());
        found.and_then(|at| self.rule(at))
    }

    /// The allow rule that names a path without wildcards.
    pub(crate) fn names_path(&self, path: &PathUse) -> bool {
        let named = |set: &PathSet| {
            set.names(&path.written).is_some()
                && (path.written == path.real || set.find(&path.real, false).is_some())
        };
        named(&self.edits) || (!path.write && named(&self.reads))
    }

    /// Whether an allow rule spells out a host.
    pub(crate) fn names_host(&self, host: &str) -> bool {
        self.rules
            .iter()
            .any(|rule| matches!(&rule.rule.pattern, Pattern::Domain(domain) if domain.names(host)))
    }
}

/// The bare name of a part's program.
pub(crate) fn program(part: &Part) -> &str {
    let name = part.argv.first().and_then(Argument::literal).unwrap_or_default();
    name.rsplit('/').next().unwrap_or(name)
}

/// Whether a rule without a command or path fits a call.
fn fits_call(pattern: &Pattern, request: &Request<'_>) -> bool {
    match pattern {
        Pattern::AnyTool => true,
        Pattern::Tool(tool) => same_tool(tool, request.tool),
        Pattern::Mcp { .. } => pattern.fits_mcp(request.tool, request.server),
        Pattern::Domain(domain) => request.subjects.iter().any(|subject| match subject {
            Subject::Url(url) => match web::site(url) {
                Site::Open { host, .. } | Site::Doubtful { host, .. } => domain.fits(&host),
                Site::Refused(_) => domain.is_any(),
            },
            _ => false,
        }),
        Pattern::Name { kind, name } => {
            let given = request.subjects.iter().find_map(|subject| match subject {
                Subject::Name(given) => Some(given.as_str()),
                _ => None,
            });
            let same = tools::known(request.tool).is_some_and(|known| known.kind == *kind);
            same && given.is_some_and(|given| match name.strip_suffix(" *").or(name.strip_suffix(":*")) {
                Some(start) => given == start || given.starts_with(&format!("{start} ")),
                None => glob::matches(name, given),
            })
        }
        Pattern::Param { tool, name, value } => {
            let given = request.input.and_then(|input| input.get(name));
            same_tool(tool, request.tool) && given.is_some_and(|given| scalar(given, value))
        }
        Pattern::Command(_) | Pattern::Path { .. } => false,
    }
}

/// The two names of the tool that starts sub-agents are one.
fn same_tool(rule: &str, tool: &str) -> bool {
    let agent = |name: &str| matches!(name, "Task" | "Agent");
    rule == tool || (agent(rule) && agent(tool))
}

fn scalar(given: &Value, wanted: &str) -> bool {
    match given {
        Value::String(text) => glob::matches(wanted, text),
        Value::Number(_) | Value::Bool(_) => glob::matches(wanted, &given.to_string()),
        _ => false,
    }
}

/// Whether an interpreter gets its program as an argument.
fn is_given_code(part: &Part) -> bool {
    let code =
        |argument: &Argument| argument.literal().is_none_or(|word| word.contains([' ', '(', ';', '\n']));
    programs::is_interpreter(program(part)) && part.argv.iter().skip(1).any(code)
}
