//! All rules of a policy, prepared: a decision costs microseconds whatever their number.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use gripper_shell::{Analysis, Argument, Cause, EffectKind, Part, Target};
use serde_json::Value;

use crate::{
    CommandUse, PathUse, Policy, Request, RuleList, Scope, SourcedRule, Subject, glob,
    policy::{IndexKey, rank},
    programs,
    rule::{CommandPattern, Fit, PathSet, Pattern, Spelling, domain_labels},
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
    /// The rules that count, the strongest last.
    rules: Vec<SourcedRule>,
    /// Their patterns, where they are about commands, with homes filled in.
    patterns: Vec<Option<CommandPattern>>,
    /// Rules about commands, by program.
    programs: HashMap<String, Vec<usize>>,
    /// Rules about commands of any program.
    anywhere: Vec<usize>,
    reads: PathSet,
    edits: PathSet,
    /// All others.
    others: Vec<usize>,
    /// Those of them that are a whole line with operators.
    lines: Vec<usize>,
    /// Those without wildcards, by their words.
    spelt: HashMap<String, usize>,
    /// Where words that name files start.
    cwd: PathBuf,
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
        let (mut anywhere, mut others, mut patterns) = (Vec::new(), Vec::new(), Vec::new());
        let (mut lines, mut spelt) = (Vec::new(), HashMap::new());
        let home = key.anchors.home.to_string_lossy();
        for (at, sourced) in rules.iter().enumerate() {
            let Pattern::Command(pattern) = &*sourced.rule.pattern else {
                patterns.push(None);
                if !matches!(*sourced.rule.pattern, Pattern::Path { .. }) {
                    others.push(at);
                }
                continue;
            };
            match pattern.program() {
                Some(program) => {
                    let usual = crate::programs::usual_name(program);
                    programs.entry(usual.to_owned()).or_default().push(at);
                }
                None => anywhere.push(at),
            }
            if pattern.has_operators() {
                lines.push(at);
            }
            if let Some(line) = pattern.spelt(sourced.rule.text()) {
                spelt.insert(line, at);
            }
            patterns.push(Some(pattern.at_home(&home)));
        }
        let paths = |wanted: bool| {
            let chosen =
                rules.iter().enumerate().filter_map(move |(at, sourced)| match &*sourced.rule.pattern {
                    Pattern::Path { edit, pattern, .. } if *edit == wanted => {
                        Some((at, pattern.as_ref(), sourced.source.scope == Scope::User))
                    }
                    _ => None,
                });
            PathSet::new(chosen, &key.anchors, allow, wanted)
        };
        let (reads, edits) = (paths(false), paths(true));
        let cwd = key.anchors.directories.first().cloned().unwrap_or_else(|| PathBuf::from("/"));
        Self { programs, anywhere, reads, edits, others, rules, patterns, lines, spelt, cwd }
    }

    fn rule(&self, at: usize) -> Option<&SourcedRule> {
        self.rules.get(at)
    }

    /// Whether there are rules about commands, files or hosts: what code that is not followed could be about.
    pub(crate) fn minds_deeds(&self) -> bool {
        let reaches = |rule: &SourcedRule| match &*rule.rule.pattern {
            Pattern::Domain(_) => true,
            Pattern::Tool(tool) => tool.starts_with("Web"),
            _ => false,
        };
        let commands = !self.programs.is_empty() || !self.anywhere.is_empty();
        commands || self.minds_paths() || self.rules.iter().any(reaches)
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
        let named = self.programs.get(programs::usual_name(program)).map(Vec::as_slice).unwrap_or_default();
        let mut numbers: Vec<usize> = named.iter().chain(&self.anywhere).copied().collect();
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        numbers.into_iter().filter_map(|at| Some((self.patterns.get(at)?.as_ref()?, self.rule(at)?)))
    }

    /// The rule that is the whole line, word for word.
    pub(crate) fn spells_out(&self, text: &str) -> Option<&SourcedRule> {
        let words: Vec<&str> = text.split_whitespace().collect();
        self.spelt.get(&words.join(" ")).and_then(|at| self.rule(*at))
    }

    fn all_commands(&self) -> impl Iterator<Item = (&CommandPattern, &SourcedRule)> {
        self.patterns
            .iter()
            .zip(&self.rules)
            .rev()
            .filter_map(|(pattern, rule)| Some((pattern.as_ref()?, rule)))
    }

    /// The deny or ask rule that strikes a call, if one does, and how surely.
    pub(crate) fn strikes(&self, request: &Request<'_>) -> Option<(Fit, &SourcedRule)> {
        let hosts = hosts(request);
        let whole = self.others.iter().rev().filter_map(|at| self.rule(*at));
        if let Some(rule) = whole.into_iter().find(|rule| fits_call(&rule.rule.pattern, request, &hosts)) {
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

    pub(crate) fn strikes_path(&self, path: &PathUse) -> Option<(Fit, &SourcedRule)> {
        if let Some(pattern) = &path.pattern {
            let found = self.reads.aimed_at(pattern);
            let found = found.or_else(|| path.write.then(|| self.edits.aimed_at(pattern)).flatten());
            if let Some(rule) = found.and_then(|at| self.rule(at)) {
                return Some((Fit::Yes, rule));
            }
        }
        let real = (path.real.as_os_str() != path.written.as_os_str()).then_some(&path.real);
        let within =
            |set: &PathSet| std::iter::once(&path.written).chain(real).find_map(|path| set.find(path, true));
        // What may not be read may not be changed either. A listing shows names only, but of the
        // folder that a rule is about it shows too much.
        let found = within(&self.reads).or_else(|| path.write.then(|| within(&self.edits)).flatten());
        let found = found.or_else(|| {
            let emptied = path.write && path.whole_folder;
            emptied.then(|| self.edits.inside(&path.real).or_else(|| self.reads.inside(&path.real))).flatten()
        });
        if let Some(rule) = found.and_then(|at| self.rule(at)) {
            return Some((Fit::Yes, rule));
        }
        let pattern = path.pattern.as_ref().filter(|_| !path.names_only)?;
        let met =
            self.reads.met_by(pattern).or_else(|| path.write.then(|| self.edits.met_by(pattern)).flatten());
        met.and_then(|at| self.rule(at)).map(|rule| (Fit::Maybe, rule))
    }

    fn strikes_command(&self, command: &CommandUse) -> Option<(Fit, &SourcedRule)> {
        let analysis = &command.analysis;
        if self.rules.is_empty() {
            return None;
        }
        let mut maybe = None;
        for part in analysis.parts() {
            let spelling = Spelling::of(part);
            for (pattern, rule) in self.commands(program(part)) {
                match pattern.strikes(part, &spelling) {
                    Fit::Yes => return Some((Fit::Yes, rule)),
                    Fit::Maybe => maybe = Some((Fit::Maybe, rule)),
                    Fit::No => {}
                }
            }
            if let Some((_, rule)) = self.commands(program(part)).find(|(pattern, _)| pattern.lurks(part)) {
                maybe = maybe.or(Some((Fit::Maybe, rule)));
            }
            if part.argv.first().is_some_and(|first| first.literal().is_none()) && maybe.is_none() {
                maybe = self.all_commands().next().map(|(_, rule)| (Fit::Maybe, rule));
            }
        }
        let written = self.lines.iter().rev().find(|at| {
            let pattern = self.patterns.get(**at).and_then(Option::as_ref);
            pattern.is_some_and(|pattern| pattern.strikes_line(&command.text))
        });
        if let Some(rule) = written.and_then(|at| self.rule(*at)) {
            return Some((Fit::Yes, rule));
        }
        // What could not be followed, or is given to another program to run, is searched for the
        // words of rules.
        let lost = !analysis.unresolved().is_empty();
        let handed: Vec<Handed> = analysis.parts().iter().filter_map(handed_on).collect();
        for (pattern, rule) in self.all_commands().filter(|_| lost || !handed.is_empty()) {
            if lost && pattern.appears_in(&command.text) {
                return Some((Fit::Yes, rule));
            }
            for handed in &handed {
                if pattern.appears_in(&handed.text) {
                    if handed.shell {
                        return Some((Fit::Yes, rule));
                    }
                    maybe = maybe.or(Some((Fit::Maybe, rule)));
                } else if handed.reads_on && pattern.appears_in(&command.text) {
                    maybe = maybe.or(Some((Fit::Maybe, rule)));
                }
            }
        }
        maybe.or_else(|| self.perhaps_touches(analysis))
    }

    /// A rule about files that a command may touch without showing which.
    fn perhaps_touches(&self, analysis: &Analysis) -> Option<(Fit, &SourcedRule)> {
        let cwd = self.cwd.as_path();
        let parts = analysis.parts().iter().filter(|part| !part.only_reads());
        let found = parts.into_iter().find_map(|part| {
            let unknown = part.effects.iter().any(|effect| match &effect.kind {
                EffectKind::Write(Target::Unknown) | EffectKind::Delete(Target::Unknown) => {
                    part.argv.iter().skip(1).any(|argument| argument.span == effect.span) || part.moved
                }
                _ => false,
            });
            let only_read = |path: &Path| {
                part.effects.iter().any(|effect| match &effect.kind {
                    EffectKind::Read(Target::Path(read)) => Path::new(read) == path,
                    _ => part.reader,
                })
            };
            let named = || {
                words(part).find_map(|word| {
                    let path = absolute(cwd, &word);
                    let edits = || self.edits.find(&path, true).filter(|_| !only_read(&path));
                    let whole = || self.reads.inside(&path);
                    self.reads.find(&path, true).or_else(edits).or_else(whole)
                })
            };
            let copied = || {
                part.effects.iter().find_map(|effect| match &effect.kind {
                    EffectKind::Read(Target::Path(path)) => self.reads.inside(Path::new(path)),
                    _ => None,
                })
            };
            unknown.then(|| self.edits.any()).flatten().or_else(named).or_else(copied)
        });
        // Files whose names come from elsewhere may be those that words of the line name.
        let open = analysis.reads().contains(&Target::Unknown);
        let named = || {
            let mut words = analysis.words().iter().chain(analysis.hints()).filter(|_| open);
            words.find_map(|word| self.reads.find(&absolute(cwd, word), true))
        };
        found.or_else(named).and_then(|at| self.rule(at)).map(|rule| (Fit::Maybe, rule))
    }

    /// The allow rule for a call that has no command and no path.
    pub(crate) fn allows_call(&self, request: &Request<'_>) -> Option<&SourcedRule> {
        let hosts = hosts(request);
        let mut rules = self.others.iter().rev().filter_map(|at| self.rule(*at));
        rules.find(|rule| fits_call(&rule.rule.pattern, request, &hosts))
    }

    /// The allow rule that covers a path, as written and as it resolves.
    pub(crate) fn allows_path(&self, path: &PathUse) -> Option<&SourcedRule> {
        // What a pattern stands for lies in its folder; a rule must cover whatever is in there.
        let any = |folder: &Path| match path.pattern {
            Some(_) => folder.join("any file"),
            None => folder.to_owned(),
        };
        let both = |set: &PathSet| {
            if path.real != path.written {
                set.find(&any(&path.real), false)?;
            }
            set.find(&any(&path.written), false)
        };
        // Who may change a file may read it.
        let found = both(&self.edits).or_else(|| (!path.write).then(|| both(&self.reads)).flatten());
        found.and_then(|at| self.rule(at))
    }

    /// The allow rule that names a path without wildcards.
    pub(crate) fn names_path(&self, path: &PathUse) -> bool {
        let named = |set: &PathSet| set.names(&path.written).is_some() && set.names(&path.real).is_some();
        named(&self.edits) || (!path.write && named(&self.reads))
    }
}

/// The bare name of a part's program.
pub(crate) fn program(part: &Part) -> &str {
    let name = part.argv.first().and_then(Argument::literal).unwrap_or_default();
    name.rsplit('/').next().unwrap_or(name)
}

/// The hosts of the pages of a call, as labels from the last to the first; none for what is no page.
fn hosts(request: &Request<'_>) -> Vec<Option<Vec<String>>> {
    let labels = |subject: &Subject| match subject {
        Subject::Url(url) => Some(match web::site(url) {
            Site::Open { host, .. } | Site::Doubtful { host, .. } => Some(domain_labels(&host)),
            Site::Refused(_) => None,
        }),
        _ => None,
    };
    request.subjects.iter().filter_map(labels).collect()
}

/// Whether a rule without a command or path fits a call.
fn fits_call(pattern: &Pattern, request: &Request<'_>, hosts: &[Option<Vec<String>>]) -> bool {
    match pattern {
        Pattern::AnyTool => true,
        Pattern::Tool(tool) => same_tool(tool, request.tool),
        Pattern::Mcp { .. } => {
            let mut also = request.also.iter();
            pattern.fits_mcp(request.tool, request.server) || also.any(|name| pattern.fits_mcp(name, None))
        }
        Pattern::Domain(domain) => hosts.iter().any(|host| match host {
            Some(labels) => domain.fits_labels(labels),
            None => domain.is_any(),
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
            let same = same_tool(tool, request.tool) || request.also.iter().any(|name| name == tool);
            same && given.is_some_and(|given| scalar(given, value))
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

/// What a part gives another program to run.
struct Handed {
    text: String,
    /// It goes to a shell, so that it is run as it stands.
    shell: bool,
    /// Nothing is given: the commands come from elsewhere in the line.
    reads_on: bool,
}

fn handed_on(part: &Part) -> Option<Handed> {
    let name = program(part);
    let shell = programs::is_shell(name);
    let words: Vec<&str> = part.argv.iter().skip(1).filter_map(Argument::literal).collect();
    // Build tools and the like run their own code, not what they are given.
    let tool = programs::words(&[name]).is_some();
    let foreign = part.effects.iter().any(|effect| match &effect.kind {
        EffectKind::Unknown(_) => true,
        EffectKind::Execute(_) => !tool || effect.cause == Cause::Option,
        _ => false,
    });
    // What stands behind a wrapper or a carrier is looked at by itself.
    let looked_at = programs::is_wrapper(name) || programs::is_carrier(name);
    let runs = programs::is_interpreter(name) || (programs::is_runner(name) && !looked_at);
    let told = words.iter().any(|word| programs::steers(word) || programs::runs(word));
    if !(runs || foreign || told) {
        return None;
    }
    // The first word of those with subcommands is one of them.
    let skipped = usize::from(programs::has_subcommands(name));
    let text = words.get(skipped..).unwrap_or_default().join(" ").replace('=', " ");
    let reads_on = (shell || runs) && words.iter().all(|word| word.starts_with('-'));
    Some(Handed { text, shell, reads_on })
}

/// The words of a part that may name files, taken apart at the signs that stand before a name.
pub(crate) fn words(part: &Part) -> impl Iterator<Item = String> {
    let code = programs::is_interpreter(program(part));
    part.argv.iter().skip(1).filter_map(Argument::literal).flat_map(move |word| {
        let apart = move |c: char| {
            matches!(c, '=' | '@' | ',' | ':')
                || (code && !(c.is_alphanumeric() || matches!(c, '.' | '/' | '_' | '-' | '~')))
        };
        let whole = !word.contains(char::is_whitespace) && !word.contains("://");
        let pieces: Vec<String> = word
            .split(apart)
            .filter(|piece| (whole || code) && !piece.is_empty() && !piece.starts_with('-'))
            .map(str::to_owned)
            .collect();
        pieces
    })
}

/// Where a word leads if it names a file.
pub(crate) fn located(policy: &Policy, word: &str) -> PathBuf {
    let cwd = policy.directories.first().map_or(Path::new("/"), PathBuf::as_path);
    word.strip_prefix("~/").map_or_else(|| absolute(cwd, word), |below| policy.home.join(below))
}

/// Absolute, by spelling alone.
fn absolute(cwd: &Path, word: &str) -> PathBuf {
    PathBuf::from(gripper_shell::join(&cwd.to_string_lossy(), word))
}
