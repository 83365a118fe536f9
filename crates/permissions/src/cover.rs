//! Whether allow rules cover a command: every part of it, with all it does.

use gripper_shell::{
    Analysis, Argument, Cause, Effect, EffectKind, Part, Stretch, Surroundings, Target, Via, analyze,
};

use crate::{
    CommandUse, Mode, PathUse, Policy, Request, RuleList, SourcedRule, Subject,
    index::{Index, List, located, program, words},
    programs,
    rule::CommandPattern,
};

/// What allow rules say to a command.
pub(crate) enum Cover<'i> {
    /// Every part is covered; the strongest rule that was needed, if one was.
    Whole(Option<&'i SourcedRule>),
    /// These parts are not, by their places.
    Lacking(Vec<usize>),
}

/// A command with what is needed to look at its parts.
pub(crate) struct Coverage<'a> {
    policy: &'a Policy,
    list: &'a List,
    strict: bool,
    analysis: &'a Analysis,
    text: &'a str,
    paths: Vec<&'a PathUse>,
    edits_accepted: bool,
}

impl<'a> Coverage<'a> {
    pub(crate) fn new(
        policy: &'a Policy,
        index: &'a Index,
        request: &'a Request<'_>,
        command: &'a CommandUse,
    ) -> Self {
        let paths = request.subjects.iter().filter_map(|subject| match subject {
            Subject::Path(path) => Some(path),
            _ => None,
        });
        // Where something is forbidden, what cannot be followed might be just that.
        let forbids = [RuleList::Deny, RuleList::Ask].map(|list| index.list(list));
        Self {
            policy,
            list: index.list(RuleList::Allow),
            strict: forbids.iter().any(|list| list.minds_deeds()),
            analysis: &command.analysis,
            text: &command.text,
            paths: paths.collect(),
            edits_accepted: policy.mode == Mode::AcceptEdits,
        }
    }

    /// Looks at every part.
    pub(crate) fn look(&self) -> Cover<'a> {
        let followed = self.analysis.unresolved().is_empty();
        let everything = self.list.commands("").find(|(pattern, _)| pattern.is_any());
        if let Some((_, rule)) = everything
            && (followed || !self.strict)
        {
            return Cover::Whole(Some(rule));
        }
        if let Some(rule) = self.list.spells_out(self.text) {
            return Cover::Whole(Some(rule));
        }
        let parts = self.analysis.parts();
        if !followed {
            return Cover::Lacking((0..parts.len()).collect());
        }
        let (mut needed, mut lacking) = (Vec::new(), Vec::new());
        for (at, part) in parts.iter().enumerate() {
            if !self.harmless(part) {
                match self.rule_for(parts, at) {
                    Some((_, rule)) => needed.push(rule),
                    None => lacking.push(at),
                }
            }
        }
        if !lacking.is_empty() {
            return Cover::Lacking(lacking);
        }
        let inside = |path: &PathUse| path.both().into_iter().all(|path| self.policy.holds(path));
        let granted = self.paths.iter().filter(|path| path.write || !inside(path));
        let files = granted.filter_map(|path| self.list.allows_path(path));
        Cover::Whole(crate::policy::strongest(needed.into_iter().chain(files)))
    }

    /// Whether the rules are about a part, needed or not.
    pub(crate) fn speaks_of_it(&self) -> bool {
        let parts = self.analysis.parts();
        (0..parts.len()).any(|at| self.rule_for(parts, at).is_some())
    }

    /// Needs no rule: reads inside the working directories, and redirections that are covered.
    fn harmless(&self, part: &Part) -> bool {
        part.effects.iter().all(|effect| match &effect.kind {
            EffectKind::Read(target) | EffectKind::List(target) => self.reads_inside(target),
            kind => {
                let file = programs::is_file_command(program(part)) && self.may_write(kind);
                self.redirection(effect) || self.accepted_edit(part, effect) || file
            }
        })
    }

    fn reads_inside(&self, target: &Target) -> bool {
        match target {
            Target::Unknown => self.policy.flags.confined,
            Target::Path(text) | Target::Pattern(text) => {
                let mut uses = self.paths.iter().filter(|path| path.spells(text)).peekable();
                let known = uses.peek().is_some();
                known
                    && uses.all(|path| {
                        let inside = path.both().into_iter().all(|path| self.policy.holds(path));
                        inside || self.list.allows_path(path).is_some()
                    })
            }
        }
    }

    /// A redirection to a file that may be written.
    fn redirection(&self, effect: &Effect) -> bool {
        let one = matches!(&effect.kind, EffectKind::Write(Target::Path(_)));
        effect.cause == Cause::Redirection && one && self.may_write(&effect.kind)
    }

    /// A file command of the accepting mode, or a redirection in it.
    fn accepted_edit(&self, part: &Part, effect: &Effect) -> bool {
        let edits = part.argv.is_empty()
            || effect.cause == Cause::Redirection
            || programs::is_file_command(program(part)) && part.via == Via::Line && part.inside;
        if !self.edits_accepted || !edits {
            return false;
        }
        match &effect.kind {
            EffectKind::Tamper => program(part) == "rm",
            // It says only that the program writes; the operands say what.
            EffectKind::Write(Target::Unknown) => {
                !part.argv.is_empty() && part.argv.iter().skip(1).all(|argument| argument.span != effect.span)
            }
            kind => self.writes_inside(kind),
        }
    }

    fn writes_inside(&self, kind: &EffectKind) -> bool {
        let (EffectKind::Write(target) | EffectKind::Delete(target)) = kind else { return false };
        self.written(target, |path| path.both().into_iter().all(|path| self.policy.holds(path)))
    }

    /// Whether a rule for files, or the mode, lets a file be written.
    fn may_write(&self, kind: &EffectKind) -> bool {
        let (EffectKind::Write(target) | EffectKind::Delete(target)) = kind else { return false };
        self.written(target, |path| self.list.allows_path(path).is_some())
            || (self.edits_accepted && self.writes_inside(kind))
    }

    fn written(&self, target: &Target, fits: impl Fn(&PathUse) -> bool) -> bool {
        let (Target::Path(text) | Target::Pattern(text)) = target else { return false };
        let mut uses = self.paths.iter().filter(|path| path.write && path.spells(text)).peekable();
        uses.peek().is_some() && uses.all(|path| fits(path))
    }

    /// The rule that covers a part with all it does.
    fn rule_for(&self, parts: &[Part], at: usize) -> Option<(&'a CommandPattern, &'a SourcedRule)> {
        let part = parts.get(at)?;
        let own = || {
            let mut rules = self.list.commands(program(part));
            rules.find(|(pattern, _)| pattern.allows(&part.argv) && self.covers(pattern, part))
        };
        let Some(parent) = parent(parts, at) else { return own() };
        let through = self.looks_through(parts, parent).then(own).flatten();
        through.or_else(|| self.rule_around(parts, parent, part))
    }

    /// The rule for a command that runs a part, if it goes as far as that part: a shell's or a package
    /// runner's does, a wrapper's only if it names the program.
    fn rule_around(
        &self,
        parts: &[Part],
        outer: usize,
        part: &Part,
    ) -> Option<(&'a CommandPattern, &'a SourcedRule)> {
        let around = parts.get(outer)?;
        let name = program(around);
        let carried = programs::is_wrapper(name) || programs::is_carrier(name);
        let mut rules = self.list.commands(name);
        let found = rules.find(|(pattern, _)| {
            let named = pattern.literal_words().iter().skip(1).any(|word| word == program(part));
            pattern.allows(&around.argv) && (named || !carried) && self.covers(pattern, around)
        });
        found.or_else(|| self.rule_around(parts, parent(parts, outer)?, part))
    }

    /// Whether a part is a wrapper in a form that changes nothing, as is all around it.
    fn looks_through(&self, parts: &[Part], at: usize) -> bool {
        let Some(part) = parts.get(at) else { return false };
        let plain = programs::is_wrapper(program(part)) && part.only_reads();
        plain && parent(parts, at).is_none_or(|parent| self.looks_through(parts, parent))
    }

    /// Whether a rule that fits the words also covers what they do.
    fn covers(&self, pattern: &CommandPattern, part: &Part) -> bool {
        let mut hosts = Vec::new();
        for effect in &part.effects {
            if let EffectKind::Network { host: Some(host), .. } = &effect.kind {
                hosts.push(host.as_str());
            }
            let fine = effect.kind.is_read()
                || match effect.cause {
                    Cause::Redirection => self.redirection(effect),
                    Cause::Setting => pattern.sets(&part.settings),
                    Cause::Place | Cause::Expansion => false,
                    Cause::Option => spelt_out(pattern, part, effect) || self.optional(pattern, part, effect),
                    Cause::Program => self.trusted(pattern, part, effect),
                };
            if !fine {
                return false;
            }
        }
        part.inside && pattern.minds_hosts(&hosts) && self.keeps_to(pattern, part)
    }

    /// What an option adds, under a rule that does not mention it.
    fn optional(&self, pattern: &CommandPattern, part: &Part, effect: &Effect) -> bool {
        match &effect.kind {
            EffectKind::Execute(_) => programs::is_interpreter(program(part)),
            EffectKind::Unknown(_)
            | EffectKind::Privilege
            | EffectKind::Environment(_)
            | EffectKind::System => false,
            _ => self.trusted(pattern, part, effect),
        }
    }

    /// What a program does by itself, under a rule for it.
    fn trusted(&self, pattern: &CommandPattern, part: &Part, effect: &Effect) -> bool {
        let reads = part.reader || programs::is_quiet(program(part));
        match &effect.kind {
            _ if reads && !pattern.is_exact() && !changes(pattern) => self.may_write(&effect.kind),
            EffectKind::Write(Target::Unknown) | EffectKind::Delete(Target::Unknown) => {
                // The program writes where it likes, but not where unknown words tell it to.
                let unknown = |argument: &Argument| {
                    argument.span == effect.span && argument.text.stretches().iter().any(is_open)
                };
                !part.argv.iter().any(unknown)
            }
            kind @ (EffectKind::Write(_) | EffectKind::Delete(_)) => {
                self.writes_inside(kind) || self.may_write(kind)
            }
            _ => true,
        }
    }

    /// Whether the words stay with what the rule can have meant: no options that point the program
    /// elsewhere, no places outside, no other program of the same relative name.
    fn keeps_to(&self, pattern: &CommandPattern, part: &Part) -> bool {
        let open = pattern.program().is_none() && !pattern.is_any();
        let unnamed = open && (programs::is_interpreter(program(part)) || programs::is_runner(program(part)));
        if unnamed || (part.moved && is_relative(part)) {
            return false;
        }
        if pattern.is_exact() || part.only_reads() {
            return true;
        }
        let spelt = |word: &str| pattern.literal_words().iter().any(|known| word.starts_with(known.as_str()));
        let steered = part
            .argv
            .iter()
            .skip(1)
            .filter_map(Argument::literal)
            .any(|word| programs::steers(word) && !spelt(word));
        let opaque = part
            .effects
            .iter()
            .any(|effect| matches!(effect.kind, EffectKind::Execute(_) | EffectKind::Unknown(_)));
        let outside = |word: &String| {
            let place = word.starts_with(['/', '~']) || word.split('/').any(|name| name == "..");
            let path = located(self.policy, word);
            place && !path.starts_with("/dev") && !self.policy.holds(&path) && !spelt(word)
        };
        let leaves = opaque && words(part).any(|word| outside(&word));
        !steered && !leaves
    }
}

/// Whether the program is named by a path that starts where the command runs.
fn is_relative(part: &Part) -> bool {
    let name = part.argv.first().and_then(Argument::literal).unwrap_or_default();
    name.contains('/') && !name.starts_with('/')
}

/// Whether a rule for a program that reads spells out an option with which it changes files or runs code.
fn changes(pattern: &CommandPattern) -> bool {
    let words = pattern.literal_words();
    if !words.iter().any(|word| word.starts_with('-')) {
        return false;
    }
    let text = format!("{} x x", words.join(" "));
    let analysis = analyze(&text, &Surroundings::new("/", "/"));
    analysis.unresolved().is_empty() && !analysis.parts().iter().all(Part::only_reads)
}

fn is_open(stretch: &Stretch) -> bool {
    matches!(stretch, Stretch::Unknown(_))
}

/// The part that runs this one, when it is a program.
fn parent(parts: &[Part], at: usize) -> Option<usize> {
    let part = parts.get(at)?;
    let Via::Program(name) = &part.via else { return None };
    let earlier = parts.get(..at)?;
    earlier.iter().rposition(|outer| outer.depth + 1 == part.depth && program(outer) == name)
}

/// Whether the option behind an effect stands in the rule itself, with its value if it has one there.
fn spelt_out(pattern: &CommandPattern, part: &Part, effect: &Effect) -> bool {
    let spelt = pattern.literal_words();
    let Some(at) = part.argv.iter().position(|argument| argument.span == effect.span) else { return false };
    let word = |at: usize| part.argv.get(at).and_then(Argument::literal);
    let Some(this) = word(at) else { return false };
    let known = |word: &str| spelt.iter().any(|spelt| spelt == word);
    if this.starts_with('-') {
        return known(this) || this.split_once('=').is_some_and(|(name, _)| known(name));
    }
    // A value: its option stands before it, and either the rule ends there or goes on with this value.
    let option = at.checked_sub(1).and_then(word).filter(|option| option.starts_with('-') && known(option));
    option.is_some_and(|option| spelt.last().is_some_and(|last| last == option) || known(this))
}
