//! Following a script through its syntax tree, as the shell would run it, on all ways at once.

mod builtins;
mod compound;
mod conditional;
mod declare;
mod judge;
mod loops;
mod nested;
mod redirect;
mod simple;
mod substitution;

pub use simple::{bare_program, is_setting};

use std::collections::BTreeSet;

use crate::{
    analysis::{Analysis, InPlaceEdit, Normal, Output, Part, Unresolved, Via},
    effect::{Cause, Effect, EffectKind, Target},
    risk::{Risk, RiskKind},
    span::Span,
    state::{Places, State},
    surroundings::{Surroundings, join},
    syntax::{self, tree::CommandKind},
    value::{Argument, Origin, Stretch, Text},
    variables,
};

/// How many simple commands are followed.
const MOST_PARTS: usize = 4096;
/// How deep calls and substitutions may nest.
const MOST_DEPTH: usize = 24;
/// How many words are remembered for what is not followed.
const MOST_WORDS: usize = 16_384;

/// The walk over one text.
pub(crate) struct Walker<'s> {
    pub(crate) surroundings: &'s Surroundings<'s>,
    parts: Vec<Part>,
    risks: Vec<Risk>,
    unresolved: Vec<Unresolved>,
    confined: Vec<Unresolved>,
    hints: Vec<String>,
    words: Vec<String>,
    edits: Vec<InPlaceEdit>,
    /// Effects of expansions and redirections that no part has taken yet.
    pending: Vec<Effect>,
    /// How what is being followed came to be run.
    via: Via,
    depth: usize,
    /// Set while code from an argument is followed: its spans mean nothing in the text.
    within: Option<Span>,
    /// States at `return`, to be joined where the function ends.
    returns: Vec<State>,
    /// How many functions are being followed.
    calls: usize,
    /// Names declared local in the functions being followed.
    locals: Vec<String>,
    /// How the walk goes on.
    run: Run,
}

/// Conditions and budgets of a walk.
struct Run {
    /// What brings about the effects that are found now.
    cause: Cause,
    /// The command being followed runs inside the working directories.
    inside: bool,
    /// It runs in another folder than the line began in, or perhaps does.
    moved: bool,
    /// The variables set for the next command.
    settings: Vec<String>,
    /// Code for `sh` is followed, where assignments before special builtins stay.
    posix: bool,
    /// What is expanded is only asked whether it is there, not shown.
    testing: bool,
    /// The shell prints every command with its values.
    traced: bool,
    /// How much more code from arguments is followed, in bytes.
    code_left: usize,
    /// How much more text is taken from variables, in bytes.
    copies_left: usize,
    /// The script as a whole has become too large.
    exhausted: bool,
    /// Names that were made arrays somewhere.
    arrays: BTreeSet<String>,
}

/// What is known of the output of a substitution.
pub(crate) enum Captured {
    /// One of these, split where it is not quoted.
    Texts(Vec<Text>),
    /// One word of unknown text.
    Word,
    /// Any number of words like this one.
    PlainWords(Text),
}

/// The states after a command: when it succeeded and when it failed.
pub(crate) struct Outcome {
    success: State,
    /// None when it makes no difference.
    failure: Option<State>,
}

impl Outcome {
    fn same(state: State) -> Self {
        Self { success: state, failure: None }
    }

    fn failed(&self) -> &State {
        self.failure.as_ref().unwrap_or(&self.success)
    }

    /// What holds afterwards, whichever it was.
    fn merged(self) -> State {
        let mut state = self.success;
        if let Some(failure) = &self.failure {
            state.merge(failure);
        }
        state
    }
}

impl<'s> Walker<'s> {
    pub(crate) fn new(surroundings: &'s Surroundings<'s>) -> Self {
        Self {
            surroundings,
            parts: Vec::new(),
            risks: Vec::new(),
            unresolved: Vec::new(),
            confined: Vec::new(),
            hints: Vec::new(),
            words: Vec::new(),
            edits: Vec::new(),
            pending: Vec::new(),
            via: Via::Line,
            depth: 0,
            within: None,
            returns: Vec::new(),
            calls: 0,
            locals: Vec::new(),
            run: Run {
                cause: Cause::Program,
                inside: true,
                moved: false,
                settings: Vec::new(),
                posix: false,
                testing: false,
                traced: false,
                code_left: 2 * crate::LONGEST,
                copies_left: 16 * crate::LONGEST,
                exhausted: false,
                arrays: BTreeSet::new(),
            },
        }
    }

    /// Follows a whole text.
    pub(crate) fn run(mut self, text: &str) -> Analysis {
        let parsed = syntax::parse(text);
        if let Some(error) = parsed.error {
            self.risk(RiskKind::MalformedTokens, &error.message, error.span);
            self.unresolved(&error.message, error.span);
        }
        let state = self.list(State::new(&self.surroundings.cwd), &parsed.list).merged();
        self.flush(Span::new(0, text.len()));
        self.line_tricks(text, &parsed.comments);
        let cwd = match &state.cwd {
            Places::OneOf(places) => places.first().filter(|_| places.len() == 1).cloned(),
            Places::Unknown => None,
        };
        let mut parts: Vec<Part> = Vec::with_capacity(self.parts.len());
        self.parts.sort_by_key(|part| (part.span.start, part.depth));
        for part in self.parts {
            if parts.last() != Some(&part) {
                parts.push(part);
            }
        }
        // `[[ ]]` and `(( ))` are commands of the shell, and no parts.
        let last =
            parsed.list.items.last().map(|item| item.chain.rest.last().map_or(&item.chain.first, |it| &it.1));
        let kind = last.and_then(|pipeline| pipeline.stages.last()).map(|stage| &stage.command.kind);
        let exits = match kind {
            _ if last.is_some_and(|pipeline| pipeline.negated) => Vec::new(),
            Some(CommandKind::Test(_) | CommandKind::Arithmetic(_)) => {
                vec![(1, "the condition is false".to_owned())]
            }
            _ => {
                let last = parts.iter().rev().find(|part| part.depth == 0);
                last.map(|part| part.exits.clone()).unwrap_or_default()
            }
        };
        self.risks.sort_by_key(|risk| (risk.span, risk.kind));
        self.risks.dedup();
        self.unresolved.dedup();
        self.confined.dedup();
        Analysis {
            parts,
            risks: self.risks,
            unresolved: self.unresolved,
            confined: self.confined,
            hints: self.hints,
            words: self.words,
            edits: self.edits,
            cwd,
            exits,
        }
    }

    /// Commands that a reader takes for part of a comment, or does not see behind a carriage return.
    fn line_tricks(&mut self, text: &str, comments: &[Span]) {
        if let Some(at) = text.find('\r') {
            let span = Span::new(at, at + 1);
            self.risk(RiskKind::NewlineInjection, "a carriage return can hide what stands before it", span);
        }
        for comment in comments {
            let words = comment.of(text);
            let odd = |quote: char| words.matches(quote).count() % 2 == 1;
            let open =
                words.ends_with('\\') || words.contains("$(") && !words.contains(')') || odd('`') || odd('"');
            let harm = |part: &Part| part.span.start >= comment.end && !part.only_reads();
            if open && self.parts.iter().any(harm) {
                self.risk(
                    RiskKind::NewlineInjection,
                    "the comment looks as if it went on, but the next line is run",
                    *comment,
                );
            }
        }
    }

    /// The span to report: the argument's while code from an argument is followed.
    pub(crate) fn at(&self, span: Span) -> Span {
        self.within.unwrap_or(span)
    }

    pub(crate) fn unresolved(&mut self, why: &str, span: Span) {
        let span = self.at(span);
        // The first few say all there is to say; a hostile text could have thousands.
        if self.unresolved.len() < 64 {
            self.unresolved.push(Unresolved { why: why.to_owned(), span });
        }
    }

    pub(crate) fn risk(&mut self, kind: RiskKind, detail: &str, span: Span) {
        let span = self.at(span);
        if self.risks.len() < 256 {
            self.risks.push(Risk { kind, detail: detail.to_owned(), span });
        }
    }

    /// Notes that the command is harmless only where sensitive files are hidden.
    fn confine(&mut self, why: &str, span: Span) {
        let span = self.at(span);
        if self.confined.len() < 64 {
            self.confined.push(Unresolved { why: why.to_owned(), span });
        }
    }

    pub(crate) fn effect(&mut self, kind: EffectKind, span: Span) {
        let span = self.at(span);
        self.pending.push(Effect { kind, span, cause: self.run.cause });
    }

    pub(crate) fn reads_environment(&mut self, name: &str, span: Span) {
        // Such a test shows nothing of the value but whether there is one.
        if self.run.testing && !self.run.traced && !variables::looks_secret(name) {
            return;
        }
        self.effect(EffectKind::Environment(format!("uses the environment variable {name}")), span);
    }

    /// Text taken from a variable; a text that is used over and over must not cost without end.
    pub(crate) fn copied(&mut self, texts: Vec<Text>, span: Span) -> Vec<Text> {
        let bytes: usize = texts.iter().map(Text::len).sum();
        match self.run.copies_left.checked_sub(bytes) {
            Some(left) => {
                self.run.copies_left = left;
                texts
            }
            None => {
                self.unresolved("more text in variables than is followed", span);
                vec![Text::unknown(Origin::Computed)]
            }
        }
    }

    /// Effects that no command took become a part of their own.
    fn flush(&mut self, span: Span) {
        if !self.pending.is_empty() {
            let part = self.build(&[], Normal::default(), span);
            self.record(part);
        }
    }

    /// A part with the effects gathered so far.
    fn build(&mut self, arguments: &[Argument], normal: Normal, span: Span) -> Part {
        Part {
            span: self.at(span),
            argv: arguments.to_vec(),
            normal,
            reader: false,
            inside: self.run.inside,
            moved: self.run.moved,
            settings: std::mem::take(&mut self.run.settings),
            via: self.via.clone(),
            depth: self.depth,
            effects: std::mem::take(&mut self.pending),
            hardened: false,
            output: Output::Text,
            exits: Vec::new(),
            must_finish: false,
        }
    }

    fn record(&mut self, part: Part) {
        if self.parts.len() < MOST_PARTS {
            self.parts.push(part);
        } else if !self.run.exhausted {
            self.run.exhausted = true;
            self.unresolved("more commands than are followed", part.span);
        }
    }

    /// Follows something deeper; refuses beyond the limit.
    fn deeper<T>(&mut self, via: Via, span: Span, follow: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.depth >= MOST_DEPTH || self.run.exhausted {
            self.unresolved("nested too deeply to follow", span);
            return None;
        }
        let pending = std::mem::take(&mut self.pending);
        let before = std::mem::replace(&mut self.via, via);
        let (cause, inside, moved) = (self.run.cause, self.run.inside, self.run.moved);
        let settings = std::mem::take(&mut self.run.settings);
        self.depth += 1;
        let result = follow(self);
        self.flush(span);
        self.depth -= 1;
        self.via = before;
        (self.run.cause, self.run.inside, self.run.moved) = (cause, inside, moved);
        self.run.settings = settings;
        self.pending = pending;
        Some(result)
    }

    /// Remembers known text: it may name what is read, by ways that are not followed.
    pub(crate) fn note_words(&mut self, text: &Text) {
        for stretch in text.stretches() {
            if let Stretch::Known(known) = stretch {
                if self.words.len() >= MOST_WORDS {
                    if !self.run.exhausted {
                        self.run.exhausted = true;
                        self.unresolved("more words than are remembered", Span::default());
                    }
                    return;
                }
                let mut end = known.len().min(256);
                while !known.is_char_boundary(end) {
                    end -= 1;
                }
                self.words.push(known.get(..end).unwrap_or_default().to_owned());
            }
        }
    }

    /// Remembers the words of the parts from `before` on: they decide what others read.
    fn hint(&mut self, before: usize) {
        let room = MOST_WORDS.saturating_sub(self.hints.len());
        let words = self.parts.get(before..).unwrap_or_default().iter().flat_map(|part| &part.argv);
        let words: Vec<String> = words.take(room).map(|argument| argument.text.shown()).collect();
        self.hints.extend(words);
    }

    /// The files a text names, for each place the shell may stand in.
    pub(crate) fn targets(&self, places: &Places, text: &Text) -> Vec<Target> {
        if text.origin().is_some() {
            return vec![Target::Unknown];
        }
        let mut pattern = String::new();
        let mut escapes = false;
        let mut open = false;
        for stretch in text.stretches() {
            match stretch {
                Stretch::Known(known) => {
                    // Behind a pattern, dots could lead anywhere.
                    escapes |= open && known.contains("..");
                    pattern.push_str(known);
                }
                Stretch::Glob(glob) => {
                    open = true;
                    pattern.push_str(glob);
                }
                Stretch::Plain | Stretch::Number | Stretch::Unknown(_) => {
                    open = true;
                    pattern.push('*');
                }
            }
        }
        if escapes {
            return vec![Target::Unknown];
        }
        let make = |base: &str| {
            let path = join(base, &pattern);
            // The folder may itself be one of those that a pattern matches.
            if open || base.contains('*') { Target::Pattern(path) } else { Target::Path(path) }
        };
        match places {
            _ if pattern.starts_with('/') => vec![make("/")],
            Places::OneOf(places) => places.iter().map(|place| make(place)).collect(),
            Places::Unknown => vec![Target::Unknown],
        }
    }

    fn argument(&self, text: Text, span: Span) -> Argument {
        Argument { text, many: false, pattern: false, disguised: false, span: self.at(span) }
    }
}
