//! The effects of a program, by its model.

use super::{Walker, builtins, nested::Inner, simple::is_name};
use crate::{
    analysis::{Normal, Part},
    effect::{Cause, EffectKind, Target},
    model::{
        Model,
        argv::{Given, Reading},
        output, settings,
        token::{Arity, Deed, Kind, OperandKind},
    },
    risk::RiskKind,
    scripts,
    span::Span,
    state::{Places, State},
    surroundings::join,
    value::{Argument, Stretch, Text},
};

/// Folders that hold other people's repositories.
const FOREIGN: &[&str] = &[
    ".git",
    "node_modules",
    "vendor",
    "third_party",
    "third-party",
    "submodules",
    "external",
    "deps",
    "target",
    "dist",
    "build",
];

/// What is gathered while one program is judged.
pub(super) struct Case<'a> {
    pub name: &'a str,
    /// Where its relative paths start.
    pub state: State,
    /// Scripts in other languages, in order.
    pub scripts: Vec<(Kind, Argument)>,
    /// Commands inside.
    pub inner: Vec<Inner>,
    /// Files edited in place.
    pub edited: Vec<String>,
}

impl Walker<'_> {
    /// Judges a known program and follows the commands inside it.
    pub(super) fn judge(
        &mut self,
        state: &State,
        name: &str,
        model: &'static Model,
        arguments: &[Argument],
        span: Span,
    ) {
        let reading = Reading::new(model, arguments.get(1..).unwrap_or_default());
        let mut case =
            Case { name, state: state.clone(), scripts: Vec::new(), inner: Vec::new(), edited: Vec::new() };
        let perl = if name == "perl" { scripts::perl(arguments) } else { None };
        match perl {
            Some(edit) => self.perl_edit(&mut case, &edit, span),
            None if !reading.info => self.conduct(&mut case, &reading, span),
            None => {}
        }
        let normal = reading.normal(name);
        let must_finish = !reading.info && finishes(model, &normal, arguments);
        let reader = reading.only_reads_plainly();
        let hardened = reading.models.iter().any(|model| model.entry.conduct.hardened);
        let innermost = reading.model();
        let exits = reading.models.iter().rev().find(|model| !model.entry.exits.is_empty());
        let exits = exits.map(|model| {
            let known = model.entry.exits.iter();
            known.filter_map(|(code, meaning)| Some((code.parse().ok()?, meaning.clone()))).collect()
        });
        let output = innermost.map(|model| output::foresee(model, &reading)).unwrap_or_default();
        let part = self.command_part(arguments, normal, span);
        self.record(Part { hardened, reader, output, exits: exits.unwrap_or_default(), must_finish, ..part });
        if !case.inner.is_empty()
            && innermost.is_some_and(|model| !model.entry.nesting.placeholder.is_empty())
        {
            // What find and fd look for decides what the command inside reads.
            let words: Vec<String> = arguments.iter().skip(1).map(|argument| argument.text.shown()).collect();
            self.hints.extend(words);
        }
        for inner in std::mem::take(&mut case.inner) {
            self.inner_command(&case.state, inner, name);
        }
    }

    fn conduct(&mut self, case: &mut Case<'_>, reading: &Reading<'_>, span: Span) {
        let Some(innermost) = reading.model() else { return };
        for doubt in &reading.doubts {
            let tail = doubt.tail && innermost.entry.conduct.data == "tail";
            if !(doubt.data && (tail || innermost.is_safe_for_data())) {
                self.effect(EffectKind::Unknown(doubt.why.clone()), doubt.span);
            }
        }
        for together in &innermost.entry.syntax.conflicts {
            if together.split_whitespace().all(|option| reading.gave(option)) {
                self.effect(EffectKind::Unknown(format!("`{together}` together mean something else")), span);
            }
        }
        self.run.cause = Cause::Program;
        for model in &reading.models {
            let listing = model.entry.conduct.listing.split_whitespace().any(|option| reading.gave(option));
            if !listing {
                self.deeds(&model.deeds, case.name, span);
            }
        }
        if reading.operands.is_empty() {
            self.deeds(&innermost.bare, case.name, span);
        }
        // Options that move the tool come first: they decide where its other paths start.
        self.run.cause = Cause::Place;
        for given in &reading.options {
            for (_, folder) in given.values.iter().filter(|(kind, _)| *kind == Kind::Dir) {
                self.move_tool(case, folder);
            }
        }
        if reading.models.iter().any(|model| model.entry.conduct.repository) {
            self.check_repository(case, span);
        }
        self.run.cause = Cause::Option;
        for given in &reading.options {
            self.option(case, reading, given);
        }
        self.run.cause = Cause::Program;
        if !innermost.entry.conduct.opaque {
            self.operands(case, reading, innermost);
        }
        for given in &reading.options {
            let edits = given.option.operands.iter().flatten().any(|operand| operand.kind == Kind::Edit);
            if let Some((_, suffix)) = given.values.first().filter(|_| edits) {
                self.backups(case, suffix.literal(), suffix.span);
            }
        }
        self.scripts(case, span);
    }

    fn option(&mut self, case: &mut Case<'_>, reading: &Reading<'_>, given: &Given<'_>) {
        if !only_asks(reading, given) {
            self.deeds(&given.option.deeds, &given.option.names[0], given.span);
        }
        for (kind, value) in &given.values {
            self.kind(case, *kind, value);
        }
        if given.option.arity == Arity::Required(Kind::CommandUntil) {
            // What find names begins with one of its starting points, and those are no options.
            let words = reading.model().is_some_and(|model| model.entry.syntax.words);
            let start =
                reading.operands.first().and_then(Argument::literal).filter(|text| !text.starts_with('-'));
            let start = if words { start.unwrap_or(".") } else { "" };
            case.inner.push(Inner::command(reading, &given.command, start.to_owned()));
        }
        let jq = reading
            .model()
            .is_some_and(|model| model.operands.iter().any(|operand| operand.kind == Kind::Jq));
        let leaves =
            given.values.iter().any(|(kind, _)| matches!(kind, Kind::Read | Kind::Config | Kind::Exec));
        if jq && leaves {
            self.risk(RiskKind::JqDanger, "jq is given files or code by a flag", given.span);
        }
    }

    fn operands(&mut self, case: &mut Case<'_>, reading: &Reading<'_>, model: &Model) {
        let overrides: Vec<&Vec<OperandKind>> =
            reading.options.iter().filter_map(|given| given.option.operands.as_ref()).collect();
        let supplied = reading.options.iter().any(|given| given.option.supplies);
        if overrides.is_empty() {
            let kinds = model.operands.get(usize::from(supplied)..).unwrap_or_default();
            self.place_operands(case, reading, kinds);
        }
        for kinds in overrides {
            self.place_operands(case, reading, kinds.get(usize::from(supplied)..).unwrap_or_default());
        }
    }

    /// Gives every operand its kind.
    fn place_operands(&mut self, case: &mut Case<'_>, reading: &Reading<'_>, kinds: &[OperandKind]) {
        let (mut at, mut loose) = (0, false);
        for (index, operand) in reading.operands.iter().enumerate() {
            let rest = reading.operands.get(index..).unwrap_or_default();
            while kinds.get(at).is_some_and(|kind| kind.kind == Kind::Assign && !sets(operand)) {
                at += 1;
            }
            let Some(kind) = kinds.get(at) else { return self.unexpected(operand) };
            match kind.kind {
                Kind::Command => {
                    case.inner.push(Inner::command(reading, rest, String::new()));
                    return;
                }
                Kind::Shell | Kind::Sh if kind.many => {
                    case.inner.push(self.posix(kind.kind, Inner::joined(rest)));
                    return;
                }
                Kind::Shell | Kind::Sh => {
                    let positional = reading.operands.get(index + 1..).unwrap_or_default();
                    case.inner.push(self.posix(kind.kind, Inner::shell(operand, positional)));
                }
                _ if loose || operand.many || !(kind.many || operand.is_one()) => {
                    // It may be several words, and then nobody knows which of them stands where.
                    for later in kinds.get(at..).unwrap_or_default() {
                        self.kind(case, later.kind, operand);
                    }
                    if !operand.is_one() && kinds.last().is_some_and(|last| !last.many) {
                        self.unexpected(operand);
                    }
                    loose = true;
                    continue;
                }
                other => self.kind(case, other, operand),
            }
            if !kind.many {
                at += 1;
            }
        }
        let takes_command = kinds.get(at..).unwrap_or_default().iter().any(|kind| kind.kind == Kind::Command);
        let Some(model) = reading.model().filter(|_| takes_command) else { return };
        if model.entry.nesting.appends {
            case.inner.push(Inner::command(
                reading,
                &[Argument::known("echo", Span::default())],
                String::new(),
            ));
        } else if !reading.operands.is_empty() {
            // Assignments without a command behind them: the same as none at all.
            self.deeds(&model.bare, case.name, reading.operands[0].span);
        }
    }

    fn unexpected(&mut self, operand: &Argument) {
        let why = format!("`{}` is an operand nobody expects", operand.shown());
        self.effect(EffectKind::Unknown(why), operand.span);
    }

    /// The effect of a value or operand of this kind.
    pub(super) fn kind(&mut self, case: &mut Case<'_>, kind: Kind, argument: &Argument) {
        let (text, span) = (&argument.text, argument.span);
        let stream = argument.literal() == Some("-");
        match kind {
            Kind::Text | Kind::Dir => {}
            Kind::Read | Kind::Archive | Kind::List if stream => {}
            Kind::List => {
                for target in self.targets(&case.state.cwd, text) {
                    if !self.device(&target, false, span) {
                        self.effect(EffectKind::List(target), span);
                    }
                }
            }
            Kind::Public
                if argument
                    .literal()
                    .is_some_and(|text| !text.split('/').next().unwrap_or("").contains(':')) => {}
            Kind::Public => self.effect(EffectKind::Network { host: None, sends: false }, span),
            Kind::Glob if text.prefix().starts_with('!') => {}
            Kind::Glob => {
                let below = Text::known(text.prefix().trim_start_matches(['/', '*']));
                let whole = if argument.literal().is_some() { &below } else { text };
                for target in self.targets(&case.state.cwd, whole) {
                    let target = match target {
                        Target::Path(path) if path.contains(['*', '?', '[']) => Target::Pattern(path),
                        other => other,
                    };
                    self.effect(EffectKind::Read(target), span);
                }
            }
            Kind::Archive if argument.literal().is_none() && !text.prefix().contains('/') => {
                self.effect(EffectKind::Network { host: None, sends: false }, span);
            }
            Kind::Archive if text.prefix().split('/').next().is_some_and(|host| host.contains(':')) => {
                self.effect(EffectKind::Network { host: Some(argument.shown()), sends: false }, span);
            }
            Kind::Object => self.object(case, argument),
            Kind::Read if text.prefix().contains("://") => {
                self.effect(EffectKind::Network { host: Some(argument.shown()), sends: false }, span);
            }
            Kind::Read | Kind::Archive => {
                let state = case.state.clone();
                self.read_file(&state, text, span);
            }
            Kind::Write if stream => {}
            Kind::Write => self.changes(case, text, span, EffectKind::Write),
            Kind::Delete => self.changes(case, text, span, EffectKind::Delete),
            Kind::Edit => {
                case.edited.extend(self.targets(&case.state.cwd, text).iter().map(ToString::to_string));
                self.changes(case, text, span, EffectKind::Write);
            }
            Kind::Exec => {
                self.risk(RiskKind::CodeExecution, &format!("runs `{}`", argument.shown()), span);
                self.effect(EffectKind::Execute(format!("`{}`", argument.shown())), span);
            }
            Kind::Shell | Kind::Sh => case.inner.push(self.posix(kind, Inner::shell(argument, &[]))),
            Kind::ShellOption if argument.literal().is_some_and(builtins::is_harmless_option) => {}
            Kind::Format if argument.literal().is_some_and(is_plain_format) => {}
            Kind::Local if argument.literal().is_some_and(|text| !text.contains(['@', ','])) => {}
            Kind::ShellOption | Kind::Format | Kind::Local => {
                let why = format!("`{}` may do more than it seems", argument.shown());
                self.effect(EffectKind::Unknown(why), span);
            }
            Kind::Command | Kind::CommandUntil => {
                let why = format!("`{}` is a command of its own", argument.shown());
                self.effect(EffectKind::Unknown(why), span);
            }
            Kind::Sed | Kind::Awk | Kind::Jq => case.scripts.push((kind, argument.clone())),
            Kind::Assign => {
                let (name, value) = text.prefix().split_once('=').unwrap_or((text.prefix(), ""));
                let value = if argument.literal().is_some() { Text::known(value) } else { text.clone() };
                self.effect_of_setting(name, &value, span);
            }
            Kind::Host => {
                let host = argument.literal().map(host_of);
                self.effect(EffectKind::Network { host, sends: false }, span);
            }
            Kind::Setting if argument.literal().is_some_and(settings::only_shows) => {}
            Kind::Config | Kind::Setting => {
                let why =
                    format!("`{}` points {} at other code or another place", argument.shown(), case.name);
                self.effect(EffectKind::Unknown(why), span);
            }
            Kind::Plus if text.prefix().starts_with('+') => {}
            Kind::Name if argument.literal().is_some_and(|text| !text.contains('=')) => {}
            Kind::Plus | Kind::Name => {
                self.effect(EffectKind::Unknown(format!("`{}` sets something", argument.shown())), span);
            }
        }
    }

    /// A commit, a pathspec, or a file of a commit, which is as secret as the one on the disk.
    fn object(&mut self, case: &Case<'_>, argument: &Argument) {
        let span = argument.span;
        let Some(text) = argument.literal() else {
            self.read_file(&case.state.clone(), &argument.text, span);
            return;
        };
        if text.starts_with('-') {
            self.effect(EffectKind::Unknown(format!("`{text}` may be an option")), span);
            return;
        }
        if [":!", ":^", ":(exclude)"].iter().any(|magic| text.starts_with(magic)) {
            return;
        }
        let path = match text.strip_prefix(":(").and_then(|magic| magic.split_once(')')) {
            Some((_, path)) => path,
            None => text.strip_prefix(":/").unwrap_or(text).rsplit(':').next().unwrap_or(text),
        };
        // Git expands patterns itself.
        let mut named = Text::default();
        for (at, piece) in path.split('*').enumerate() {
            if at > 0 {
                named.push(Stretch::Glob("*".to_owned()));
            }
            named.push_str(piece);
        }
        self.read_file(&case.state.clone(), &named, span);
    }

    fn changes(&mut self, case: &Case<'_>, text: &Text, span: Span, kind: fn(Target) -> EffectKind) {
        for target in self.targets(&case.state.cwd, text) {
            if !self.device(&target, true, span) {
                self.effect(kind(target), span);
            }
        }
    }

    /// `git -C folder` and the like.
    fn move_tool(&mut self, case: &mut Case<'_>, folder: &Argument) {
        case.state.cwd = match (folder.literal(), &case.state.cwd) {
            (Some(path), Places::OneOf(places)) => {
                Places::OneOf(places.iter().map(|place| join(place, path)).collect())
            }
            _ => Places::Unknown,
        };
        match case.state.cwd.clone() {
            Places::OneOf(places) => {
                for place in places {
                    self.effect(EffectKind::List(Target::Path(place)), folder.span);
                }
            }
            Places::Unknown => {
                self.effect(
                    EffectKind::Unknown("it works in a folder that is not known".to_owned()),
                    folder.span,
                );
            }
        }
    }

    /// A tool that obeys a repository's configuration may only stand in the trusted one.
    fn check_repository(&mut self, case: &Case<'_>, span: Span) {
        let trusted = match &case.state.cwd {
            Places::OneOf(places) => places.iter().all(|place| {
                let root =
                    self.surroundings.roots.iter().find(|root| crate::surroundings::within(place, root));
                root.and_then(|root| place.strip_prefix(root.as_str())).is_some_and(|below| {
                    !below.split('/').any(|part| FOREIGN.contains(&part) || part.contains('*'))
                })
            }),
            Places::Unknown => false,
        };
        if !trusted {
            let why = format!("{} would obey a repository that is not the trusted one", case.name);
            self.effect(EffectKind::Unknown(why), span);
        }
    }

    fn deeds(&mut self, deeds: &[Deed], what: &str, span: Span) {
        for deed in deeds {
            let effect = match deed {
                Deed::Recurse => {
                    self.confine("it reads whole folders", span);
                    continue;
                }
                Deed::Write => EffectKind::Write(Target::Unknown),
                Deed::Delete => EffectKind::Delete(Target::Unknown),
                Deed::Tamper => {
                    self.risk(
                        RiskKind::FileSystemTampering,
                        &format!("`{what}` destroys or overwrites in bulk"),
                        span,
                    );
                    EffectKind::Tamper
                }
                Deed::Network => EffectKind::Network { host: None, sends: false },
                Deed::Send => {
                    self.risk(RiskKind::NetworkExfiltration, &format!("`{what}` sends data out"), span);
                    EffectKind::Network { host: None, sends: true }
                }
                Deed::Listen => EffectKind::Listen,
                Deed::Exec => {
                    self.risk(RiskKind::CodeExecution, &format!("`{what}` runs code"), span);
                    EffectKind::Execute(format!("code of {what}"))
                }
                Deed::Privilege => {
                    self.risk(RiskKind::PrivilegeEscalation, &format!("`{what}` gains rights"), span);
                    EffectKind::Privilege
                }
                Deed::Process => EffectKind::Process,
                Deed::System => EffectKind::System,
                Deed::Environment => {
                    EffectKind::Environment(format!("`{what}` shows or sets the environment or credentials"))
                }
                Deed::Unknown => EffectKind::Unknown(format!("`{what}` can do anything")),
            };
            self.effect(effect, span);
        }
    }
}

/// Whether a program must not be cut short, by its subcommand or, where those are not known, any argument.
fn finishes(model: &Model, normal: &Normal, arguments: &[Argument]) -> bool {
    let listed = |word: &str| model.entry.conduct.finish.split_whitespace().any(|finish| finish == word);
    match normal.head.get(1..) {
        Some(subcommands) if !subcommands.is_empty() => subcommands.iter().any(|word| listed(word)),
        _ => arguments.iter().skip(1).filter_map(Argument::literal).any(listed),
    }
}

/// The host in a URL or a remote name.
fn host_of(text: &str) -> String {
    let behind = text.split_once("://").map_or(text, |(_, behind)| behind);
    let host = behind.split(['/', '?', '#']).next().unwrap_or(behind);
    let host = host.rsplit('@').next().unwrap_or(host);
    host.split(':').next().unwrap_or(host).to_owned()
}

/// Formats that run a signature program or print environments are no plain ones.
fn is_plain_format(text: &str) -> bool {
    let small = text.to_ascii_lowercase();
    let named = ["signature", "environ", "credential", "document", "evaluate"]
        .iter()
        .any(|part| small.contains(part));
    let signed = ["%G", "%+G", "%-G", "% G"].iter().any(|part| text.contains(part));
    !named && !signed
}

/// `NAME=…`
fn sets(operand: &Argument) -> bool {
    operand.text.prefix().split_once('=').is_some_and(|(name, _)| is_name(name)) && !operand.many
}

/// Whether an option with an effect only says what is asked for: the method by name, or a known parameter that
/// is no file's content, where nothing but that method is named.
fn only_asks(reading: &Reading<'_>, given: &Given<'_>) -> bool {
    let mut words = reading.model().map_or("", |model| model.entry.conduct.asks.as_str()).split(' ');
    let (Some(method), Some(value)) = (words.next(), words.next()) else { return false };
    let is = |given: &Given<'_>, name: &str| given.option.names.iter().any(|known| known == name);
    let text =
        |given: &Given<'_>| given.values.first().and_then(|(_, value)| value.literal().map(str::to_owned));
    let mut methods = reading.options.iter().filter(|given| is(given, method)).peekable();
    methods.peek().is_some()
        && methods.all(|given| text(given).as_deref() == Some(value))
        && (is(given, method)
            || words.any(|name| is(given, name)) && text(given).is_some_and(|text| !text.contains("=@")))
}
