//! Commands inside commands, shell code in arguments, scripts in other languages.

use super::{Outcome, Walker, judge::Case, simple::Lookup};
use crate::{
    analysis::{InPlaceEdit, Via},
    effect::{EffectKind, Target},
    model::{
        argv::{Given, Reading},
        token::Kind,
    },
    risk::RiskKind,
    scripts::{self, FindingKind, ScriptEffects},
    span::Span,
    state::State,
    syntax,
    value::{Argument, Origin, Stretch, Text},
};

/// Options of xargs that give the command several items at once.
const BATCHING: &[&str] = &["-n", "-L", "-l", "--max-args", "--max-lines"];

/// A command inside another one.
pub(super) enum Inner {
    /// An argument list.
    Command(Vec<Argument>),
    /// Shell code with `$0` and the positional parameters.
    Shell(Argument, Vec<Text>),
}

impl Inner {
    /// The command of `xargs`, `find -exec`, `env`, …, with data where data goes. `start` is what
    /// the data begins with, as far as that is known.
    pub(super) fn command(reading: &Reading<'_>, command: &[Argument], start: String) -> Self {
        let nesting = reading.models.last().map(|model| &model.entry.nesting);
        let Some(nesting) = nesting else { return Self::Command(command.to_vec()) };
        let replaces = |given: &&Given<'_>| {
            let named = |name: &String| nesting.replace.split_whitespace().any(|option| option == name);
            given.option.names.iter().any(named)
        };
        let mut replacing = reading.options.iter().filter(replaces);
        let replaced = replacing.next();
        let placeholder = match replaced {
            Some(given) => given.values.first().map_or(Some("{}"), |(_, value)| value.literal()),
            None => Some(nesting.placeholder.as_str()),
        };
        let span = command.first().map(|first| first.span).unwrap_or_default();
        // Replacing and batching exclude each other, and the later one wins: neither is followed.
        let muddled = replaced.is_some()
            && (replacing.next().is_some() || BATCHING.iter().any(|name| reading.gave(name)));
        let Some(placeholder) =
            placeholder.filter(|text| !muddled && (replaced.is_none() || !text.is_empty()))
        else {
            return Self::Command(vec![Argument::any(Origin::Data, span)]);
        };
        let mut filled: Vec<Argument> = command.to_vec();
        for placeholder in placeholder.split_whitespace() {
            filled = filled.iter().map(|argument| fill(argument, placeholder, &start)).collect();
        }
        let used = filled != command;
        if nesting.appends && replaced.is_none() && !used {
            filled.push(Argument::any(Origin::Data, span));
        }
        Self::Command(filled)
    }

    /// Words that are joined to shell code.
    pub(super) fn joined(words: &[Argument]) -> Self {
        let mut text = Text::default();
        let mut span = words.first().map(|word| word.span).unwrap_or_default();
        for (at, word) in words.iter().enumerate() {
            text.push_str(if at > 0 { " " } else { "" });
            text.append(&word.text);
            span = span.to(word.span);
        }
        Self::Shell(Argument { text, many: false, pattern: false, disguised: false, span }, Vec::new())
    }

    /// Shell code in one argument.
    pub(super) fn shell(code: &Argument, positional: &[Argument]) -> Self {
        let mut known: Vec<Text> = positional.iter().map(|argument| argument.text.clone()).collect();
        if !positional.iter().all(Argument::is_one) {
            // Any number of them: every position may hold anything.
            known = vec![Text::unknown(Origin::Data); 64];
        }
        Self::Shell(code.clone(), known)
    }
}

/// An argument with the placeholder replaced by data.
fn fill(argument: &Argument, placeholder: &str, start: &str) -> Argument {
    if placeholder.is_empty() {
        return argument.clone();
    }
    let mut text = Text::default();
    let mut found = false;
    for stretch in argument.text.stretches() {
        let Stretch::Known(known) = stretch else {
            text.push(stretch.clone());
            continue;
        };
        for (at, between) in known.split(placeholder).enumerate() {
            if at > 0 {
                found = true;
                text.push_str(start);
                text.push(Stretch::Unknown(Origin::Data));
            }
            text.push_str(between);
        }
    }
    if found { Argument { text, ..argument.clone() } } else { argument.clone() }
}

impl Walker<'_> {
    pub(super) fn inner_command(&mut self, state: &State, inner: Inner, program: &str) {
        match inner {
            Inner::Command(command) => {
                let span = command.iter().fold(None, |all: Option<Span>, argument| {
                    let here = argument.span;
                    if here == Span::default() { all } else { Some(all.map_or(here, |all| all.to(here))) }
                });
                let span = span.unwrap_or_default();
                self.deeper(Via::Program(program.to_owned()), span, |walker| {
                    walker.dispatch(state.clone(), &command, Lookup::Program, span)
                });
            }
            Inner::Shell(code, positional) => self.shell_code(state, &code, positional, program),
        }
    }

    /// Code for `sh`: what bash and other shells read differently is not followed.
    pub(super) fn posix(&mut self, kind: Kind, inner: Inner) -> Inner {
        if let Inner::Shell(code, _) = &inner
            && kind == Kind::Sh
            && code.literal().is_some_and(|code| !is_posix(code))
        {
            self.unresolved("sh may read this code differently", code.span);
        }
        self.run.posix |= kind == Kind::Sh;
        inner
    }

    /// Code that another shell runs.
    pub(super) fn shell_code(
        &mut self,
        state: &State,
        code: &Argument,
        positional: Vec<Text>,
        program: &str,
    ) {
        let Some(text) = code.literal() else {
            if code.text.origin() == Some(Origin::Data) {
                self.risk(RiskKind::ShellMetacharacters, "data is pasted into shell code", code.span);
            }
            self.risk(RiskKind::CodeExecution, "shell code that is not known is run", code.span);
            self.unresolved("shell code that is not known", code.span);
            return;
        };
        let mut positional = positional.into_iter();
        let zero = positional.next().unwrap_or_else(|| Text::unknown(Origin::Computed));
        let mut fresh = state.fresh(positional.collect());
        fresh.set("0", crate::state::Value::one(zero));
        fresh.split_changed = state.split_changed;
        self.code(fresh, text, code.span, program);
    }

    /// Follows code given as text, in this state.
    pub(super) fn code(&mut self, state: State, text: &str, span: Span, program: &str) -> Outcome {
        let Some(left) = self.run.code_left.checked_sub(text.len()) else {
            self.unresolved("more code in arguments than is followed", span);
            return Outcome::same(state);
        };
        self.run.code_left = left;
        let outer = self.within;
        let place = self.at(span);
        let parsed = syntax::parse(text);
        if let Some(error) = parsed.error {
            self.risk(RiskKind::MalformedTokens, &error.message, place);
            self.unresolved(&error.message, place);
        }
        let after = state.clone();
        let outcome = self.deeper(Via::Program(program.to_owned()), span, |walker| {
            walker.within = Some(place);
            walker.list(state, &parsed.list)
        });
        self.within = outer;
        outcome.unwrap_or_else(|| Outcome::same(after))
    }

    /// Checks the scripts of sed, awk and jq; fragments of one command are one script.
    pub(super) fn scripts(&mut self, case: &mut Case<'_>, span: Span) {
        let scripts = std::mem::take(&mut case.scripts);
        let Some((kind, first)) = scripts.first() else {
            self.note_edit(case, None, span);
            return;
        };
        let texts: Option<Vec<String>> =
            scripts.iter().map(|(_, script)| script_text(&script.text)).collect();
        let Some(texts) = texts else {
            self.effect(EffectKind::Unknown("the script is not known".to_owned()), first.span);
            self.note_edit(case, None, span);
            return;
        };
        let whole = texts.join("\n");
        let effects = match kind {
            Kind::Sed => scripts::sed(&whole),
            Kind::Awk => scripts::awk(&whole),
            _ => scripts::jq(&whole),
        };
        self.findings(case, *kind, effects, first.span);
        self.note_edit(case, Some(whole), span);
    }

    fn findings(&mut self, case: &Case<'_>, kind: Kind, effects: ScriptEffects, span: Span) {
        for finding in effects.findings {
            if kind == Kind::Jq && finding.kind != FindingKind::Unknown {
                self.risk(RiskKind::JqDanger, &finding.what, span);
            }
            let files = |walker: &Self, name: &str| walker.targets(&case.state.cwd, &Text::known(name));
            match finding.kind {
                FindingKind::Exec => {
                    self.risk(RiskKind::CodeExecution, &finding.what, span);
                    let what = finding.what.strip_prefix("runs ").unwrap_or(&finding.what);
                    self.effect(EffectKind::Execute(what.to_owned()), span);
                }
                FindingKind::Write(Some(name)) => {
                    for target in files(self, &name) {
                        self.effect(EffectKind::Write(target), span);
                    }
                }
                FindingKind::Write(None) => self.effect(EffectKind::Write(Target::Unknown), span),
                FindingKind::Read(name) => {
                    let state = case.state.clone();
                    self.read_file(&state, &Text::known(name), span);
                }
                FindingKind::Network => self.effect(EffectKind::Network { host: None, sends: true }, span),
                FindingKind::Environment => self.effect(EffectKind::Environment(finding.what), span),
                FindingKind::Module | FindingKind::Unknown => {
                    self.effect(EffectKind::Unknown(finding.what), span)
                }
            }
        }
    }

    /// An edit in place by a perl program that only replaces text.
    pub(super) fn perl_edit(&mut self, case: &mut Case<'_>, edit: &scripts::PerlEdit<'_>, span: Span) {
        for file in edit.files {
            self.kind(case, Kind::Edit, file);
        }
        if !edit.suffix.is_empty() {
            self.backups(case, Some(edit.suffix), span);
        }
        self.note_edit(case, Some(edit.script.clone()), span);
    }

    /// What an edit in place keeps of the files as they were, under names with this suffix.
    pub(super) fn backups(&mut self, case: &Case<'_>, suffix: Option<&str>, span: Span) {
        match suffix {
            // A star stands for the name of the file, and a slash leads elsewhere.
            Some(suffix) if !suffix.contains(['*', '/']) => {
                for file in &case.edited {
                    let backup = Target::Path(format!("{file}{suffix}"));
                    self.effect(EffectKind::Write(backup), span);
                }
            }
            _ => self.effect(EffectKind::Write(Target::Unknown), span),
        }
    }

    fn note_edit(&mut self, case: &mut Case<'_>, script: Option<String>, span: Span) {
        if !case.edited.is_empty() {
            let files = std::mem::take(&mut case.edited);
            let span = self.at(span);
            self.edits.push(InPlaceEdit { program: case.name.to_owned(), script, files, span });
        }
    }
}

/// Whether nothing stands in the code that only bash knows, or knows otherwise.
fn is_posix(code: &str) -> bool {
    const SIGNS: &[&str] =
        &["((", "[[", "$'", "$\"", "<(", ">(", "|&", "&>", "<<<", "+=", "=(", "]=", "\\", "set -o"];
    const WORDS: &[&str] = &[
        "coproc",
        "declare",
        "function",
        "let",
        "local",
        "mapfile",
        "popd",
        "pushd",
        "readarray",
        "readonly",
        "select",
        "shopt",
        "source",
        "time",
        "typeset",
    ];
    let braces = code.contains('{') && (code.contains(',') || code.contains(".."));
    let operations = code.contains("${") && code.contains(['/', '^', ',', '@', '!']);
    let mut words = code.split(|c: char| c.is_whitespace() || ";|&(){}".contains(c));
    !braces
        && !operations
        && !code.contains("printf -v")
        && !SIGNS.iter().any(|sign| code.contains(sign))
        && !words.any(|word| WORDS.contains(&word))
}

/// The text of a script, a digit standing for what can only be a number.
fn script_text(text: &Text) -> Option<String> {
    let mut script = String::new();
    for stretch in text.stretches() {
        match stretch {
            Stretch::Known(known) => script.push_str(known),
            Stretch::Number => script.push('1'),
            Stretch::Plain | Stretch::Glob(_) | Stretch::Unknown(_) => return None,
        }
    }
    Some(script)
}
