//! Reading an argv by a model: which argument is an option, a value, an operand, a subcommand.

use super::{
    Model,
    token::{Arity, Deed, Kind, OperandKind, OptionToken},
};
use crate::{
    analysis::Normal,
    span::Span,
    value::{Argument, Stretch},
};

/// An argv read by a model.
#[derive(Debug, Default)]
pub(crate) struct Reading<'m> {
    /// The models on the way: the program, its subcommand, …
    pub models: Vec<&'m Model>,
    /// The subcommands' names.
    pub subcommands: Vec<String>,
    /// The options given.
    pub options: Vec<Given<'m>>,
    /// The operands of the innermost model.
    pub operands: Vec<Argument>,
    /// Arguments that could not be placed, and why. Each leaves the effects unknown.
    pub doubts: Vec<Doubt>,
    /// Nothing but one of the arguments that only print.
    pub info: bool,
}

/// Why an argument could not be placed.
#[derive(Debug, Clone)]
pub(crate) struct Doubt {
    /// In words.
    pub why: String,
    /// Where.
    pub span: Span,
    /// The argument is data that could be taken for an option, not an option nobody knows.
    pub data: bool,
    /// Its known end, such as `.json`, leaves room only for an option with an attached value.
    pub tail: bool,
}

/// An option that was given.
#[derive(Debug)]
pub(crate) struct Given<'m> {
    /// Which.
    pub option: &'m OptionToken,
    /// Its values and what they are.
    pub values: Vec<(Kind, Argument)>,
    /// The nested command, for the kinds that hold one.
    pub command: Vec<Argument>,
    /// As it was written.
    pub spelt: String,
    /// Where it stands.
    pub span: Span,
}

impl<'m> Reading<'m> {
    /// Reads `arguments`, the program's name not among them.
    pub(crate) fn new(model: &'m Model, arguments: &[Argument]) -> Self {
        let mut reading = Self::default();
        let mut model = model;
        let mut rest = arguments;
        loop {
            reading.models.push(model);
            for argument in arguments.iter().filter(|_| model.entry.syntax.response) {
                if argument.text.prefix().starts_with('@') {
                    let why = format!("`{}` brings further arguments from a file", argument.shown());
                    reading.doubt(why, argument.span, false);
                }
            }
            if is_info(model, rest) {
                reading.info = true;
                return reading;
            }
            if model.entry.conduct.opaque {
                reading.operands.extend_from_slice(rest);
                return reading;
            }
            let taken = Level { reading: &mut reading, model, arguments: rest, at: 0, flat: false }.read();
            rest = rest.get(taken..).unwrap_or_default();
            if !model.has_subs() {
                return reading;
            }
            let Some((name, after)) = rest.split_first() else { return reading };
            let Some(sub) = name.literal().and_then(|name| model.sub(name)) else {
                if model.operands.is_empty() {
                    reading.doubt(format!("`{}` is not a known subcommand", name.shown()), name.span, false);
                }
                Level { reading: &mut reading, model, arguments: rest, at: 0, flat: true }.read();
                return reading;
            };
            reading.subcommands.push(name.text.prefix().to_owned());
            model = sub;
            rest = after;
        }
    }

    /// The argv in one spelling.
    pub(crate) fn normal(&self, name: &str) -> Normal {
        let mut normal = Normal { head: vec![name.to_owned()], ..Normal::default() };
        normal.head.extend(self.subcommands.iter().cloned());
        for given in &self.options {
            let names = &given.option.names;
            let long = names.iter().filter(|name| name.starts_with("--")).max_by_key(|name| name.len());
            let counted = names.iter().any(|name| name.ends_with('#'));
            let mut word = match long.or(names.first()) {
                Some(name) if !counted => name.clone(),
                _ => given.spelt.clone(),
            };
            for (_, value) in &given.values {
                word.push('=');
                word.push_str(&value.shown());
            }
            normal.options.push(word);
            normal.options.extend(given.command.iter().map(Argument::shown));
        }
        let opaque = self.model().is_some_and(|model| model.entry.conduct.opaque);
        for operand in &self.operands {
            let shown = operand.shown();
            match shown.strip_prefix('-') {
                // Nothing is known of the options: letters behind one dash may each be one.
                Some(letters) if opaque && !letters.is_empty() && !letters.starts_with('-') => {
                    normal.options.extend(letters.chars().map(|letter| format!("-{letter}")));
                    normal.options.push(shown);
                }
                Some(_) if opaque => normal.options.push(shown),
                _ => normal.operands.push(shown),
            }
        }
        normal
    }

    /// Whether the program, without options, does nothing but read.
    pub(crate) fn only_reads_plainly(&self) -> bool {
        let bare = self.operands.is_empty() && self.model().is_some_and(|model| !model.bare.is_empty());
        if bare {
            return false;
        }
        self.models.iter().all(|model| {
            let quiet = model.deeds.iter().all(|deed| *deed == Deed::Recurse);
            let reads = |operand: &OperandKind| {
                !matches!(
                    operand.kind,
                    Kind::Write
                        | Kind::Edit
                        | Kind::Delete
                        | Kind::Exec
                        | Kind::Shell
                        | Kind::Sh
                        | Kind::Command
                        | Kind::Host
                )
            };
            quiet && !model.entry.conduct.opaque && model.operands.iter().all(reads)
        })
    }

    /// The innermost model.
    pub(crate) fn model(&self) -> Option<&'m Model> {
        self.models.last().copied()
    }

    /// Whether an option with this spelling was given.
    pub(crate) fn gave(&self, name: &str) -> bool {
        self.options.iter().any(|given| given.option.names.iter().any(|known| known == name))
    }

    fn doubt(&mut self, why: String, span: Span, data: bool) {
        self.doubts.push(Doubt { why, span, data, tail: false });
    }
}

fn is_info(model: &Model, arguments: &[Argument]) -> bool {
    let [only] = arguments else { return false };
    only.literal().is_some_and(|text| model.entry.conduct.info.split_whitespace().any(|known| known == text))
}

/// Reading the arguments of one model.
struct Level<'r, 'm, 'a> {
    reading: &'r mut Reading<'m>,
    model: &'m Model,
    arguments: &'a [Argument],
    at: usize,
    /// The program has subcommands, but this is none of them.
    flat: bool,
}

impl<'m> Level<'_, 'm, '_> {
    /// Reads options and operands; returns how many arguments were taken.
    fn read(mut self) -> usize {
        let mut ended = false;
        let literals = &self.model.entry.syntax.literals;
        while let Some(argument) = self.arguments.get(self.at).cloned() {
            if !ended && argument.literal() == Some("--") && !self.model.entry.syntax.words {
                ended = true;
                self.at += 1;
                continue;
            }
            if !ended && self.is_option(&argument) {
                self.at += 1;
                self.option(&argument);
                continue;
            }
            if !ended && (argument.many || argument.text.may_be_option()) {
                let why = format!("`{}` could turn out to be an option", argument.shown());
                let tail = argument.has_file_end();
                self.reading.doubts.push(Doubt { why, span: argument.span, data: true, tail });
            }
            if self.model.has_subs() && !self.flat {
                if ended {
                    self.reading.doubt("a subcommand behind `--`".to_owned(), argument.span, false);
                }
                return self.at;
            }
            let first = self.reading.operands.is_empty();
            self.at += 1;
            if first && !ended && !self.model.bundled.is_empty() && self.bundle(&argument) {
                continue;
            }
            if !literals.split_whitespace().any(|word| argument.literal() == Some(word)) {
                self.reading.operands.push(argument);
            }
            let stops = self.model.stops_at_operand()
                && !(self.flat && self.model.entry.syntax.permute != Some(false));
            if stops || self.takes_rest() {
                self.reading.operands.extend_from_slice(self.arguments.get(self.at..).unwrap_or_default());
                return self.arguments.len();
            }
        }
        self.at
    }

    /// Whether from here on everything belongs to a nested command.
    fn takes_rest(&self) -> bool {
        let before = self.reading.operands.len().saturating_sub(1);
        self.model.operands.get(before).is_some_and(|operand| operand.kind == Kind::Command)
    }

    fn is_option(&self, argument: &Argument) -> bool {
        let prefix = argument.text.prefix();
        if argument.many || (self.model.entry.syntax.lax && !self.is_known_cluster(argument)) {
            return false;
        }
        (prefix.starts_with('-') && argument.literal() != Some("-"))
            || (prefix.len() > 1
                && prefix.starts_with('+')
                && self.model.index.keys().any(|name| name.starts_with('+')))
    }

    /// Whether every letter of `-abc` is an option.
    fn is_known_cluster(&self, argument: &Argument) -> bool {
        let letters = argument.literal().and_then(|text| text.strip_prefix('-')).unwrap_or_default();
        !letters.is_empty()
            && letters.chars().all(|letter| self.model.option(&format!("-{letter}")).is_some())
    }

    fn option(&mut self, argument: &Argument) {
        let prefix = argument.text.prefix();
        let digits = |text: &str| text.len() > 1 && text.bytes().skip(1).all(|byte| byte.is_ascii_digit());
        if let Some(text) = argument.literal() {
            let whole = if digits(text) { format!("{}#", &text[..1]) } else { text.to_owned() };
            if let Some(option) = self.model.option(&whole) {
                return self.give(option, None, argument);
            }
        } else if matches!(argument.text.stretches(), [Stretch::Known(dash), Stretch::Number] if dash == "-")
            && let Some(option) = self.model.option("-#")
        {
            return self.give(option, None, argument);
        }
        if let Some((name, _)) = prefix.split_once('=')
            && let Some(option) = self.model.long_option(name).filter(|_| name.len() > 2)
        {
            let value = Argument { text: argument.text.without_prefix(name.len() + 1), ..argument.clone() };
            return match option.arity {
                Arity::None | Arity::Pair(..) => self.unknown(argument),
                _ => self.give(option, Some(value), argument),
            };
        }
        if prefix.starts_with("--") || self.model.entry.syntax.words || prefix.starts_with('+') {
            let known = argument.literal().and_then(|name| self.model.long_option(name));
            return match known {
                Some(option) => self.give(option, None, argument),
                None => self.unknown(argument),
            };
        }
        self.cluster(argument);
    }

    /// `-abc`, `-ovalue`
    fn cluster(&mut self, argument: &Argument) {
        let prefix = argument.text.prefix().to_owned();
        let whole = argument.literal().is_some();
        for (at, letter) in prefix.char_indices().skip(1) {
            let Some(option) = self.model.option(&format!("-{letter}")) else {
                return self.unknown(argument);
            };
            let after = at + letter.len_utf8();
            match option.arity {
                Arity::None => self.give(option, None, argument),
                Arity::Attached(_) | Arity::Pair(..) => return self.unknown(argument),
                Arity::Required(_) | Arity::Optional(_) => {
                    let rest = argument.text.without_prefix(after);
                    let attached = !rest.stretches().is_empty();
                    let value = attached.then(|| Argument { text: rest, ..argument.clone() });
                    return self.give(option, value, argument);
                }
            }
        }
        if !whole {
            self.unknown(argument);
        }
    }

    /// A first operand that holds option letters. The values of its letters follow in order.
    fn bundle(&mut self, argument: &Argument) -> bool {
        let Some(text) = argument.literal() else { return false };
        let model: &'m Model = self.model;
        let letters: Option<Vec<&'m OptionToken>> = text
            .chars()
            .map(|letter| {
                model.bundled.iter().find(|token| token.names.iter().any(|name| name.chars().eq([letter])))
            })
            .collect();
        let Some(letters) = letters.filter(|letters| !letters.is_empty()) else { return false };
        for option in letters {
            self.give(option, None, argument);
        }
        true
    }

    /// Records an option, taking its value from the next argument where it needs one.
    fn give(&mut self, option: &'m OptionToken, value: Option<Argument>, argument: &Argument) {
        let mut given = Given {
            option,
            values: Vec::new(),
            command: Vec::new(),
            spelt: argument.shown(),
            span: argument.span,
        };
        match (option.arity, value) {
            (Arity::None, _) | (Arity::Optional(_), None) => {}
            (Arity::Required(Kind::CommandUntil), None) => given.command = self.command(),
            (Arity::Required(kind) | Arity::Attached(kind) | Arity::Optional(kind), Some(value)) => {
                given.values.push((kind, value));
            }
            (Arity::Required(kind), None) => {
                given.values.extend(self.next_value(argument).map(|value| (kind, value)));
            }
            (Arity::Pair(first, second), _) => {
                for kind in [first, second] {
                    given.values.extend(self.next_value(argument).map(|value| (kind, value)));
                }
            }
            (Arity::Attached(_), None) => return self.unknown(argument),
        }
        self.reading.options.push(given);
    }

    fn next_value(&mut self, argument: &Argument) -> Option<Argument> {
        let Some(value) = self.arguments.get(self.at).cloned() else {
            // Where abbreviations count, getopt_long reads the options, and ends the program here.
            if !self.model.entry.syntax.abbrev {
                self.reading.doubt(format!("`{}` lacks its value", argument.shown()), argument.span, false);
            }
            return None;
        };
        self.at += 1;
        let dashed = value.literal().is_some_and(|text| {
            text.starts_with('-')
                && text.len() > 1
                && !text[1..].starts_with(|next: char| next.is_ascii_digit())
        });
        let syntax = &self.model.entry.syntax;
        let why = || format!("`{}` may not be the value of `{}`", value.shown(), argument.shown());
        if dashed && !syntax.greedy {
            self.reading.doubt(why(), value.span, false);
        }
        if !value.is_one() {
            self.several(&value, why());
        }
        Some(value)
    }

    /// A value that may be several words: the first is the value, and the others are what stands there.
    fn several(&mut self, value: &Argument, why: String) {
        if self.model.has_subs() && !self.flat {
            return self.reading.doubt(why, value.span, false);
        }
        if value.many || value.text.may_be_option() {
            let tail = value.has_file_end();
            self.reading.doubts.push(Doubt { why, span: value.span, data: true, tail });
        }
        self.reading.operands.push(Argument { many: true, ..value.clone() });
    }

    /// A nested command up to `;`, or to `{} +` where options are whole words, as find has it.
    fn command(&mut self) -> Vec<Argument> {
        let mut command: Vec<Argument> = Vec::new();
        while let Some(argument) = self.arguments.get(self.at) {
            self.at += 1;
            let batch = self.model.entry.syntax.words
                && argument.literal() == Some("+")
                && command.last().and_then(Argument::literal) == Some("{}");
            if batch || argument.literal() == Some(";") {
                break;
            }
            command.push(argument.clone());
        }
        self.check_end(&command);
        command
    }

    /// What is not known may be the end of the command, and then the words behind it are the program's own.
    fn check_end(&mut self, command: &[Argument]) {
        let mut open = false;
        for argument in command {
            let text = argument.literal();
            let owns =
                |text: &str| self.model.long_option(text).is_some() || self.model.option(text).is_some();
            let follows = open && text.is_none_or(|text| text.starts_with('-') && owns(text));
            let ends = text.is_none() && argument.text.may_be(";");
            if follows || ends && !argument.is_one() {
                let why = format!("`{}` may stand behind the end of the command", argument.shown());
                self.reading.doubt(why, argument.span, false);
            }
            open |= ends;
        }
    }

    fn unknown(&mut self, argument: &Argument) {
        let why = format!("`{}` is not a known option", argument.shown());
        self.reading.doubt(why, argument.span, false);
    }
}
