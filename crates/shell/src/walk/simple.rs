//! Simple commands: assignments, words, and what the first word stands for.

use super::{Outcome, Walker, loops::literal};
use crate::{
    analysis::{Normal, Part},
    effect::{Cause, EffectKind, Target},
    expand::cross,
    model,
    risk::RiskKind,
    span::Span,
    state::{Function, Places, State, Value},
    syntax::tree::{AssignedValue, Assignment, PieceKind, Redirect, RedirectOperator, Simple, Word},
    value::{Argument, Origin, Stretch, Text},
    variables,
};

/// How many argument lists one command may have before it counts as unknown.
const MOST_LISTS: usize = 64;
/// How many arguments of one command are followed, in all the forms it can take: more than a text has words, so only
/// what multiplies them comes so far.
const MOST_ARGUMENTS: usize = 40_000;
/// Folders whose programs are taken for the well-known ones.
const SYSTEM: &[&str] =
    &["/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin"];
/// Builtins that print or test and mind no variables.
const DEAF: &[&str] = &[":", "[", "echo", "false", "printf", "pwd", "test", "true", "type"];
/// Builtins whose arguments are expanded like assignments.
const DECLARING: &[&str] = &["declare", "typeset", "local", "export", "readonly"];

/// Where a name is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lookup {
    /// Functions, builtins, programs: what the shell does.
    Shell,
    /// Builtins and programs: behind `command`.
    NoFunctions,
    /// Programs: behind `xargs`, `env`, `find -exec`.
    Program,
}

impl Walker<'_> {
    pub(super) fn simple(
        &mut self,
        mut state: State,
        simple: &Simple,
        redirects: &[Redirect],
        span: Span,
    ) -> Outcome {
        let first_name = simple.words.first().and_then(literal).unwrap_or_default();
        let asks =
            simple.words.get(1).and_then(literal).is_some_and(|word| matches!(word.as_str(), "-n" | "-z"));
        self.run.testing =
            first_name == "[" && asks && simple.words.len() == 4 && state.function("[").is_none();
        (self.run.inside, self.run.moved) = self.place_of(&state.cwd);
        self.run.cause = Cause::Expansion;
        let lists = self.argument_lists(&mut state, simple, span);
        self.run.testing = false;
        self.redirects(&mut state, redirects);
        if !redirects.is_empty() && matches!(first_name.as_str(), "set" | "shift" | "getopts") {
            self.unresolved("a redirection that fails keeps the arguments as they were", span);
        }
        self.run.cause = Cause::Setting;
        if simple.words.is_empty() {
            for assignment in &simple.assignments {
                self.assign(&mut state, assignment);
            }
            self.flush(span);
            return Outcome::same(state);
        }
        let mut temporary = Vec::new();
        for assignment in &simple.assignments {
            self.prefix_assignment(&mut state, assignment, &first_name);
            temporary.push(assignment.name.clone());
        }
        let words = simple.words.iter().fold(simple.words[0].span, |span, word| span.to(word.span));
        let mut merged: Option<Outcome> = None;
        for arguments in lists {
            let mut start = state.clone();
            if !temporary.is_empty() {
                // Builtins and functions see the assignments while they run; afterwards they are gone.
                temporary.iter().for_each(|name| start.set(name, Value::Unknown(Origin::Computed)));
            }
            let outcome = self.dispatch(start, &arguments, Lookup::Shell, words);
            merged = Some(match merged {
                None => outcome,
                Some(mut before) => {
                    let mut failure = before.failed().clone();
                    failure.merge(outcome.failed());
                    before.success.merge(&outcome.success);
                    Outcome { success: before.success, failure: Some(failure) }
                }
            });
        }
        self.flush(span);
        let mut outcome = merged.unwrap_or_else(|| Outcome::same(state.clone()));
        // The name may stand behind `command` or `builtin`.
        let reads = |name: String| matches!(name.as_str(), "read" | "mapfile" | "readarray");
        if simple.words.iter().filter_map(literal).any(reads) {
            outcome = unread(outcome, &state, simple, redirects);
        }
        if !temporary.is_empty() && (self.run.posix || DECLARING.contains(&first_name.as_str())) {
            outcome = Outcome::same(outcome.merged());
            outcome.success.forget(temporary);
        } else if !temporary.is_empty() {
            restore(&mut outcome.success, &state, &temporary);
            if let Some(failure) = &mut outcome.failure {
                restore(failure, &state, &temporary);
            }
        }
        outcome
    }

    /// The argument lists the words can become.
    fn argument_lists(&mut self, state: &mut State, simple: &Simple, span: Span) -> Vec<Vec<Argument>> {
        let declaring =
            simple.words.first().and_then(literal).is_some_and(|name| DECLARING.contains(&name.as_str()));
        let mut lists: Vec<Vec<Argument>> = vec![Vec::new()];
        for (at, word) in simple.words.iter().enumerate() {
            let ways = if declaring && at > 0 && is_assignment(word) {
                if word
                    .pieces
                    .iter()
                    .any(|piece| matches!(&piece.kind, PieceKind::Literal(text) if text.contains('{')))
                {
                    self.unresolved("braces in a declaration", word.span);
                }
                let texts = self.text(state, word);
                texts.into_iter().map(|text| vec![self.argument(text, word.span)]).collect()
            } else {
                self.expand(state, word)
            };
            let there: usize = lists.iter().map(Vec::len).sum();
            let more: usize = ways.iter().map(Vec::len).sum();
            let fits = there * ways.len() + more * lists.len() <= MOST_ARGUMENTS;
            let Some(crossed) = fits.then(|| cross(lists, &ways, MOST_LISTS)).flatten() else {
                self.unresolved("a command has too many arguments, or forms of them, to follow", span);
                return vec![vec![Argument::any(Origin::Computed, self.at(span))]];
            };
            lists = crossed;
        }
        lists
    }

    /// An assignment that stays.
    fn assign(&mut self, state: &mut State, assignment: &Assignment) {
        let value = match &assignment.value {
            AssignedValue::Scalar(word) => {
                let texts = self.text(state, word);
                texts.iter().for_each(|text| self.note_words(text));
                match texts.iter().find_map(Text::origin) {
                    Some(origin)
                        if texts.iter().all(|text| text.stretches() == [Stretch::Unknown(origin)]) =>
                    {
                        Value::Unknown(if origin == Origin::Environment { Origin::Computed } else { origin })
                    }
                    _ => Value::OneOf(texts),
                }
            }
            AssignedValue::Array(words) => self.array(state, words),
        };
        self.check_assignment(state, &assignment.name, assignment.span);
        // A plain assignment to an array changes its first element only.
        let within = matches!(state.variable(&assignment.name), Some(Value::Array(_)));
        let scalar = matches!(assignment.value, AssignedValue::Scalar(_));
        let partial = assignment.subscript.is_some() || assignment.append || (within && scalar);
        if let Some(subscript) = &assignment.subscript {
            self.arithmetic(state, subscript);
            let first = subscript.pieces.first().map(|piece| &piece.kind);
            let named = matches!(first, Some(PieceKind::Literal(text)) if is_name(text));
            if named && variables::is_table(&assignment.name) {
                self.unresolved("some shells keep the meaning of names in this table", assignment.span);
            }
        }
        if matches!(value, Value::Array(_)) || !scalar || assignment.subscript.is_some() {
            self.run.arrays.insert(assignment.name.clone());
        }
        if state.is_full() {
            self.unresolved("more variables than are followed", assignment.span);
        } else if partial {
            state.blur(&assignment.name);
        } else {
            state.set(&assignment.name, value);
        }
    }

    fn array(&mut self, state: &mut State, words: &[Word]) -> Value {
        let mut items = Vec::new();
        let mut known = true;
        for word in words {
            let indexed = matches!(word.pieces.first().map(|piece| &piece.kind), Some(PieceKind::Literal(text)) if text.starts_with('['));
            let ways = self.expand(state, word);
            ways.iter().flatten().for_each(|argument| self.note_words(&argument.text));
            match ways.as_slice() {
                [arguments] if !indexed && arguments.iter().all(Argument::is_one) => {
                    items.extend(arguments.iter().map(|argument| argument.text.clone()));
                }
                _ => known = false,
            }
            if indexed {
                self.unresolved("an array with subscripts", word.span);
            }
        }
        if known && items.len() <= MOST_LISTS {
            Value::Array(items)
        } else {
            Value::Unknown(Origin::Computed)
        }
    }

    /// Notes what setting a variable of the shell can do to later commands.
    pub(crate) fn check_assignment(&mut self, state: &mut State, name: &str, span: Span) {
        if name == "IFS" {
            state.split_changed = true;
            self.risk(RiskKind::IfsInjection, "IFS is changed", span);
        }
        if variables::is_number(name) || matches!(name, "_" | "DIRSTACK" | "FUNCNAME" | "PIPESTATUS") {
            self.unresolved(&format!("{name} keeps a value of its own"), span);
        }
        if variables::steers(name) {
            self.unresolved(&format!("{name} steers the shell or other programs"), span);
            self.effect(EffectKind::Environment(format!("sets {name}, which steers other programs")), span);
        }
    }

    /// An assignment before a command.
    fn prefix_assignment(&mut self, state: &mut State, assignment: &Assignment, program: &str) {
        let text = match &assignment.value {
            AssignedValue::Scalar(word) => self.one_text(state, word),
            AssignedValue::Array(words) => {
                self.array(state, words);
                Text::unknown(Origin::Computed)
            }
        };
        if let Some(subscript) = &assignment.subscript {
            self.arithmetic(state, subscript);
        }
        let name = assignment.name.as_str();
        self.run.settings.push(format!("{name}={}", text.shown()));
        if name == "IFS"
            && matches!(program, "read" | "mapfile" | "readarray")
            && state.function(program).is_none()
        {
            return;
        }
        let silent = name.ends_with("PAGER") && matches!(text.literal(), Some("" | "cat"));
        // Builtins run in this shell, which minds only what steers it.
        let deaf = !variables::steers(name) && state.function(program).is_none() && DEAF.contains(&program);
        if silent || deaf {
            return;
        }
        self.effect_of_setting(name, &text, assignment.span);
        if variables::steers(name) {
            self.unresolved(&format!("{name} steers the shell or other programs"), assignment.span);
        }
        if name == "IFS" {
            self.risk(RiskKind::IfsInjection, "IFS is changed", assignment.span);
        }
    }

    /// The effect of putting a variable into the environment of a program.
    pub(super) fn effect_of_setting(&mut self, name: &str, value: &Text, span: Span) {
        let zone = |value: &str| name == "TZ" && !value.starts_with(['/', ':', '.']) && !value.contains("..");
        let plain = value.literal().is_some_and(|value| !value.contains('/') || zone(value));
        if !(variables::is_harmless_to_set(name) && plain) {
            self.effect(EffectKind::Environment(format!("sets {name} for the program")), span);
        }
    }

    /// Follows one argument list.
    pub(super) fn dispatch(
        &mut self,
        state: State,
        arguments: &[Argument],
        lookup: Lookup,
        span: Span,
    ) -> Outcome {
        self.run.cause = Cause::Program;
        (self.run.inside, self.run.moved) = self.place_of(&state.cwd);
        let Some(first) = arguments.first() else { return Outcome::same(state) };
        let Some(name) = first.literal().filter(|name| !name.is_empty()).map(str::to_owned) else {
            return self.unknown_command(state, arguments, span);
        };
        if name.contains('\n') {
            self.risk(RiskKind::NewlineInjection, "a newline stands in the name of a command", first.span);
        }
        if lookup == Lookup::Shell {
            match state.function(&name) {
                Some(Function::Defined(body)) => {
                    self.part(arguments, span);
                    return self.call(state, &name, &body, arguments.get(1..).unwrap_or_default());
                }
                Some(Function::Unsure) => {
                    self.unresolved(&format!("`{name}` may be a function"), span);
                    self.effect(EffectKind::Unknown(format!("`{name}` may be a function")), span);
                    self.part(arguments, span);
                    return Outcome::same(state);
                }
                None => {}
            }
        }
        let bare = bare_program(&name);
        if bare.contains('/') {
            let detail = format!("`{name}` is not one of the known programs");
            self.risk(RiskKind::CodeExecution, &detail, span);
            self.effect(EffectKind::Execute(format!("the program {name}")), span);
            self.part(arguments, span);
            return Outcome::same(state);
        }
        let outcome = if lookup == Lookup::Program || name.contains('/') {
            Err(state)
        } else {
            self.builtin(state, bare, arguments, span)
        };
        match outcome {
            Ok(outcome) => outcome,
            Err(state) => {
                let model =
                    model::find(bare).filter(|_| lookup != Lookup::Program || !model::is_builtin_only(bare));
                match model {
                    Some(model) => {
                        self.stands_outside(&state.cwd, bare, span);
                        self.judge(&state, bare, model, arguments, span);
                    }
                    None => {
                        self.effect(
                            EffectKind::Unknown(format!("`{bare}` is not a known program")),
                            first.span,
                        );
                        self.part(arguments, span);
                    }
                }
                Outcome::same(state)
            }
        }
    }

    /// A program may look at the folder it runs in without being told to.
    fn stands_outside(&mut self, places: &Places, program: &str, span: Span) {
        let Places::OneOf(places) = places else { return };
        for place in places.iter().filter(|place| !self.surroundings.holds(place)) {
            if !DEAF.contains(&program) {
                self.effect(EffectKind::List(Target::Path(place.clone())), span);
            }
        }
    }

    /// Whether every folder it may be in is a working directory, and whether it may be another than at first.
    fn place_of(&self, places: &Places) -> (bool, bool) {
        match places {
            Places::OneOf(places) => (
                // A folder that only a pattern names may be a repository of its own.
                places.iter().all(|place| self.surroundings.holds(place) && !place.contains('*')),
                places.iter().any(|place| *place != self.surroundings.cwd),
            ),
            Places::Unknown => (false, true),
        }
    }

    fn unknown_command(&mut self, state: State, arguments: &[Argument], span: Span) -> Outcome {
        let Some(first) = arguments.first() else { return Outcome::same(state) };
        if first.text.origin().is_some() {
            self.risk(RiskKind::DangerousVariables, "the command itself is not known", first.span);
        }
        self.unresolved("the command itself is not known", first.span);
        self.effect(EffectKind::Unknown(format!("`{}` could be any command", first.shown())), first.span);
        self.part(arguments, span);
        Outcome::same(state)
    }

    /// Records a part with the effects gathered so far.
    pub(super) fn part(&mut self, arguments: &[Argument], span: Span) {
        let part = self.command_part(arguments, Normal::plain(arguments), span);
        self.record(part);
    }

    /// A part of a command, its words remembered and its spelling looked at.
    pub(super) fn command_part(&mut self, arguments: &[Argument], normal: Normal, span: Span) -> Part {
        let part = self.build(arguments, normal, span);
        for (at, argument) in arguments.iter().enumerate() {
            self.note_words(&argument.text);
            let speaks = at == 0 || argument.text.prefix().starts_with('-');
            if argument.disguised && speaks && !part.only_reads() {
                let detail = format!("`{}` is spelt so that it does not show", argument.shown());
                self.risk(RiskKind::ObfuscatedFlags, &detail, argument.span);
            }
        }
        part
    }
}

/// Whether a word is `NAME=…`, which before a command sets a variable for it.
pub fn is_setting(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| is_name(name))
}

/// A program's name without its folder, if that is one of the system's; else as it is.
pub fn bare_program(name: &str) -> &str {
    match name.rsplit_once('/') {
        Some((folder, program)) if SYSTEM.contains(&folder) => program,
        _ => name,
    }
}

/// Where the file is not there nothing is read, and a variable keeps what the environment gave it.
fn unread(outcome: Outcome, before: &State, simple: &Simple, redirects: &[Redirect]) -> Outcome {
    if !redirects.iter().any(|redirect| redirect.operator == RedirectOperator::Read) {
        return outcome;
    }
    let mut after = outcome.merged();
    for name in simple.words.iter().filter_map(literal) {
        if is_name(&name) && before.inherits(&name) && variables::looks_secret(&name) {
            after.set(&name, Value::Unknown(Origin::Inherited));
        }
    }
    Outcome::same(after)
}

fn restore(state: &mut State, before: &State, names: &[String]) {
    for name in names {
        match before.variable(name) {
            Some(value) => state.set(name, value.clone()),
            None => state.set(name, Value::Unknown(Origin::Environment)),
        }
    }
}

/// `name=…` or `name+=…` as an argument of a declaring builtin.
fn is_assignment(word: &Word) -> bool {
    let Some(PieceKind::Literal(text)) = word.pieces.first().map(|piece| &piece.kind) else { return false };
    let Some((name, _)) = text.split_once('=') else { return false };
    is_name(name.trim_end_matches('+'))
}

/// Whether a text can be the name of a variable.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
