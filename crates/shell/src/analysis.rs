//! What came out: the parts of a command line, their effects and risks, and what follows from them.

use std::collections::BTreeSet;

use serde::Serialize;

use crate::{
    effect::{Effect, EffectKind, Target},
    risk::Risk,
    span::Span,
    value::Argument,
};

/// How far a command line only reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Every part is understood and only reads the paths named.
    ReadOnly,
    /// Only reads, but which files is decided while it runs: harmless where sensitive files are hidden.
    ReadOnlyIfConfined,
    /// Does more than read, or is not understood.
    NotReadOnly,
}

/// How a part came to be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Via {
    /// Written on the line itself.
    Line,
    /// Inside a command or process substitution.
    Substitution,
    /// In a function the line defines.
    Function(String),
    /// Started by another program.
    Program(String),
}

/// What is known of a command's output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Output {
    /// Anything.
    #[default]
    Text,
    /// One word, without blanks.
    Word,
    /// One id: letters, digits and the like.
    Plain,
    /// Any number of ids.
    PlainWords,
    /// One number.
    Number,
    /// Any number of numbers.
    Numbers,
}

/// An argv in one spelling, however it was written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Normal {
    /// The bare name of the program and its subcommands, without the options between them.
    pub head: Vec<String>,
    /// The options one by one, by their long names where they have one, values behind `=`.
    pub options: Vec<String>,
    /// The operands.
    pub operands: Vec<String>,
}

impl Normal {
    /// The words as they are: nothing is known about the program.
    pub(crate) fn plain(arguments: &[Argument]) -> Self {
        let mut words = arguments.iter().map(Argument::shown);
        let head = words.next().map(|name| name.rsplit('/').next().unwrap_or_default().to_owned());
        Self { head: head.into_iter().collect(), options: Vec::new(), operands: words.collect() }
    }

    /// Head, options and operands in a row.
    pub fn words(&self) -> Vec<&str> {
        [&self.head, &self.options, &self.operands].into_iter().flatten().map(String::as_str).collect()
    }
}

/// One simple command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Where it stands.
    pub span: Span,
    /// Its arguments, the program first. Empty for a bare assignment or redirection.
    pub argv: Vec<Argument>,
    /// The argv in one spelling.
    pub normal: Normal,
    /// In its plain form the program only reads; options can make it do more.
    pub reader: bool,
    /// It runs inside the working directories.
    pub inside: bool,
    /// It runs in another folder than the line began in, or perhaps does.
    pub moved: bool,
    /// The variables set for it, as `NAME=value`.
    pub settings: Vec<String>,
    /// How it came to be run.
    pub via: Via,
    /// How deep it is nested.
    pub depth: usize,
    /// What it does.
    pub effects: Vec<Effect>,
    /// Read-only only in the form in which hooks, pagers and helpers are switched off.
    pub hardened: bool,
    /// What is known of what it prints.
    pub(crate) output: Output,
    /// What exit codes mean that are no failure.
    pub exits: Vec<(i32, String)>,
    /// Cut short, it would leave things half done.
    pub must_finish: bool,
}

impl Part {
    /// Whether it only reads.
    pub fn only_reads(&self) -> bool {
        self.effects.iter().all(|effect| effect.kind.is_read())
    }

    /// The words as shown to people.
    pub fn shown(&self) -> String {
        self.argv.iter().map(Argument::shown).collect::<Vec<_>>().join(" ")
    }
}

/// Something the analysis could not follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unresolved {
    /// What and why.
    pub why: String,
    /// Where.
    pub span: Span,
}

/// An edit of files in place, such as `sed -i`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InPlaceEdit {
    /// The program.
    pub program: String,
    /// The script, if it is known.
    pub script: Option<String>,
    /// The files, absolute.
    pub files: Vec<String>,
    /// Where.
    pub span: Span,
}

/// What a command needs when it is caged to just what it does.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Needs {
    /// Files and folders it must be able to write.
    pub writes: Vec<Target>,
    /// Hosts it contacts; an empty name stands for any.
    pub hosts: Vec<String>,
    /// The hardened form is needed: no pager, no hooks, no helpers.
    pub hardened: bool,
    /// Nothing can be said: it needs what the policy gives at most.
    pub unbounded: bool,
}

/// Everything known about a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Analysis {
    pub(crate) parts: Vec<Part>,
    pub(crate) risks: Vec<Risk>,
    pub(crate) unresolved: Vec<Unresolved>,
    pub(crate) confined: Vec<Unresolved>,
    pub(crate) hints: Vec<String>,
    pub(crate) words: Vec<String>,
    pub(crate) edits: Vec<InPlaceEdit>,
    pub(crate) cwd: Option<String>,
    pub(crate) exits: Vec<(i32, String)>,
}

impl Analysis {
    /// The simple commands, in the order of the text.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// The risks, in the order of the text.
    pub fn risks(&self) -> &[Risk] {
        &self.risks
    }

    /// What could not be followed. Not empty means: anything may happen.
    pub fn unresolved(&self) -> &[Unresolved] {
        &self.unresolved
    }

    /// Why the command is harmless only where sensitive files are hidden.
    pub fn confined(&self) -> &[Unresolved] {
        &self.confined
    }

    /// Literal words of the commands whose output names what others read.
    pub fn hints(&self) -> &[String] {
        &self.hints
    }

    /// Known text of the whole line, quotes taken off: names may be among it that reach a reader
    /// by ways that are not followed.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Edits in place that could be shown as a difference first.
    pub fn edits(&self) -> &[InPlaceEdit] {
        &self.edits
    }

    /// Where the shell stands afterwards, if that is known.
    pub fn cwd(&self) -> Option<&str> {
        self.cwd.as_deref()
    }

    /// All effects of all parts.
    pub fn effects(&self) -> impl Iterator<Item = &Effect> {
        self.parts.iter().flat_map(|part| &part.effects)
    }

    /// Whether it does no more than read what is named and ask others on the network, telling them nothing.
    pub fn only_queries(&self) -> bool {
        let queries =
            |kind: &EffectKind| kind.is_read() || matches!(kind, EffectKind::Network { sends: false, .. });
        self.unresolved.is_empty()
            && self.confined.is_empty()
            && self.risks().is_empty()
            && self.effects().all(|effect| queries(&effect.kind))
    }

    /// How far it only reads.
    pub fn verdict(&self) -> Verdict {
        if !self.unresolved.is_empty() || !self.parts.iter().all(Part::only_reads) {
            return Verdict::NotReadOnly;
        }
        let open = |effect: &Effect| match &effect.kind {
            EffectKind::Read(target) | EffectKind::List(target) => !matches!(target, Target::Path(_)),
            _ => true,
        };
        if self.confined.is_empty() && !self.effects().any(open) {
            Verdict::ReadOnly
        } else {
            Verdict::ReadOnlyIfConfined
        }
    }

    /// Everything it reads.
    pub fn reads(&self) -> BTreeSet<&Target> {
        self.effects()
            .filter_map(|effect| match &effect.kind {
                EffectKind::Read(target) => Some(target),
                _ => None,
            })
            .collect()
    }

    /// Everything whose names it shows, not the content.
    pub fn lists(&self) -> BTreeSet<&Target> {
        self.effects()
            .filter_map(|effect| match &effect.kind {
                EffectKind::List(target) => Some(target),
                _ => None,
            })
            .collect()
    }

    /// Everything it writes or deletes.
    pub fn writes(&self) -> BTreeSet<&Target> {
        self.effects()
            .filter_map(|effect| match &effect.kind {
                EffectKind::Write(target) | EffectKind::Delete(target) => Some(target),
                _ => None,
            })
            .collect()
    }

    /// What a cage has to leave open.
    pub fn needs(&self) -> Needs {
        let mut needs = Needs {
            writes: self.writes().into_iter().cloned().collect(),
            hardened: self.parts.iter().any(|part| part.hardened),
            unbounded: !self.unresolved.is_empty(),
            hosts: Vec::new(),
        };
        for effect in self.effects() {
            match &effect.kind {
                EffectKind::Network { host, .. } => needs.hosts.push(host.clone().unwrap_or_default()),
                EffectKind::List(_) | EffectKind::Read(_) | EffectKind::Write(_) | EffectKind::Delete(_) => {}
                _ => needs.unbounded = true,
            }
        }
        if needs.hosts.iter().any(|host| !host.is_empty()) {
            needs.hosts.retain(|host| !host.is_empty());
        }
        needs.hosts.sort();
        needs.hosts.dedup();
        needs
    }

    /// Whether some part of it would leave things half done if it were cut short.
    pub fn must_finish(&self) -> bool {
        self.parts.iter().any(|part| part.must_finish)
    }

    /// What the exit code of the line means where it is no failure: that of its last command.
    pub fn exits(&self) -> &[(i32, String)] {
        &self.exits
    }
}
