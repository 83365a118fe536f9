//! What a loop may change: found in its text before it is followed, so that one pass covers every turn.

use std::collections::BTreeMap;

use super::Walker;
use crate::{
    expand::is_number,
    state::{Function, Places, State, Value},
    syntax::tree::{
        Arithmetic, AssignedValue, Command, CommandKind, Descriptor, List, Operation, Parameter, Piece,
        PieceKind, RedirectTarget, Simple, Test, Word,
    },
    value::Text,
};

/// What the body of a loop assigns.
#[derive(Debug, Default)]
struct Changes {
    /// Names, and whether only numbers are assigned to them.
    names: BTreeMap<String, bool>,
    functions: Vec<String>,
    /// The working directory.
    place: bool,
    /// Anything: code that is not in the text runs, or a function is called.
    everything: bool,
    /// The positional parameters.
    positional: bool,
    /// Functions whose bodies were looked into.
    visited: Vec<String>,
}

impl Walker<'_> {
    /// Forgets whatever `lists` may change, so that the state fits every turn of the loop.
    pub(super) fn widen<'l>(&mut self, state: &mut State, lists: impl IntoIterator<Item = &'l List>) {
        let mut changes = Changes::default();
        for list in lists {
            changes.list(list, state);
        }
        changes.apply(state);
    }

    pub(super) fn widen_arithmetic<'l>(
        &mut self,
        state: &mut State,
        all: impl IntoIterator<Item = &'l Arithmetic>,
    ) {
        let mut changes = Changes::default();
        for arithmetic in all {
            changes.arithmetic(arithmetic);
        }
        changes.apply(state);
    }
}

impl Changes {
    fn apply(self, state: &mut State) {
        if self.everything {
            state.forget_all();
            state.names_unsure = true;
        }
        state.split_changed |= self.names.contains_key("IFS");
        for (name, numeric) in self.names {
            let was_number = match state.variable(&name) {
                Some(Value::OneOf(values)) => values.iter().all(is_number),
                Some(Value::Unset) => true,
                None => crate::variables::is_harmless_to_read(&name),
                Some(_) => false,
            };
            let empty = match state.variable(&name) {
                Some(Value::OneOf(values)) => values.iter().any(|value| value.stretches().is_empty()),
                _ => true,
            };
            match numeric && was_number {
                true if empty => state.set(&name, Value::OneOf(vec![Text::number(), Text::default()])),
                true => state.set(&name, Value::one(Text::number())),
                false => state.blur(&name),
            }
        }
        for name in self.functions {
            state.define(&name, Function::Unsure);
        }
        if self.place || self.everything {
            state.cwd = Places::Unknown;
            state.previous = Places::Unknown;
            state.stack = std::rc::Rc::new(vec![Places::Unknown]);
        }
        if self.positional || self.everything {
            state.positional = None;
        }
    }

    fn assign(&mut self, name: &str, numeric: bool) {
        let known = self.names.entry(name.to_owned()).or_insert(true);
        *known &= numeric;
    }

    fn list(&mut self, list: &List, state: &State) {
        // Stages and background jobs are shells of their own and change nothing here, but that is
        // worth no exception: forgetting more is always sound.
        for command in list.commands() {
            self.command(command, state);
        }
    }

    fn command(&mut self, command: &Command, state: &State) {
        for redirect in &command.redirects {
            if let Some(Descriptor::Variable(name)) = &redirect.descriptor {
                self.assign(name, false);
            }
            match &redirect.target {
                RedirectTarget::Word(word) => self.word(word),
                RedirectTarget::HereDocument(document) => self.word(&document.body),
            }
        }
        match &command.kind {
            CommandKind::Simple(simple) => self.simple(simple, state),
            CommandKind::Subshell(_) => {}
            CommandKind::Group(list) => self.list(list, state),
            CommandKind::If { branches, otherwise } => {
                for (condition, body) in branches {
                    self.list(condition, state);
                    self.list(body, state);
                }
                if let Some(list) = otherwise {
                    self.list(list, state);
                }
            }
            CommandKind::While { condition, body, .. } => {
                self.list(condition, state);
                self.list(body, state);
            }
            CommandKind::For { name, words, body } | CommandKind::Select { name, words, body } => {
                self.assign(name, false);
                self.assign("REPLY", false);
                words.iter().flatten().for_each(|word| self.word(word));
                self.list(body, state);
            }
            CommandKind::ForArithmetic { header, body } => {
                header.iter().for_each(|arithmetic| self.arithmetic(arithmetic));
                self.list(body, state);
            }
            CommandKind::Case { subject, arms } => {
                self.word(subject);
                for arm in arms {
                    arm.patterns.iter().for_each(|pattern| self.word(pattern));
                    self.list(&arm.body, state);
                }
            }
            // What it does counts where it is defined: a later turn may call it through any other
            // function, whose body was looked into before this name meant anything.
            CommandKind::Function { name, body } => {
                self.functions.push(name.clone());
                self.command(body, state);
            }
            CommandKind::Arithmetic(arithmetic) => self.arithmetic(arithmetic),
            CommandKind::Test(test) => self.test(test),
            CommandKind::Coprocess { .. } => self.everything = true,
        }
    }

    fn simple(&mut self, simple: &Simple, state: &State) {
        for assignment in &simple.assignments {
            let numeric = match &assignment.value {
                AssignedValue::Scalar(word) => is_numeric_word(word),
                AssignedValue::Array(_) => false,
            };
            self.assign(&assignment.name, numeric && !assignment.append);
            if let Some(subscript) = &assignment.subscript {
                self.arithmetic(subscript);
            }
            match &assignment.value {
                AssignedValue::Scalar(word) => self.word(word),
                AssignedValue::Array(words) => words.iter().for_each(|word| self.word(word)),
            }
        }
        simple.words.iter().for_each(|word| self.word(word));
        self.words(&simple.words, state);
    }

    /// A command by its words.
    fn words(&mut self, words: &[Word], state: &State) {
        let Some((first, rest)) = words.split_first() else { return };
        for name in names(first, state) {
            match name {
                Some(name) => self.named(&name, rest, state),
                None => self.everything = true,
            }
        }
    }

    fn named(&mut self, name: &str, rest: &[Word], state: &State) {
        match state.function(name) {
            Some(Function::Defined(body)) if !self.visited.iter().any(|known| known == name) => {
                self.visited.push(name.to_owned());
                self.command(&body, state);
            }
            Some(Function::Defined(_)) => {}
            Some(Function::Unsure) => self.everything = true,
            None => self.everything |= self.functions.iter().any(|known| known == name),
        }
        match name {
            "command"
                if rest
                    .first()
                    .and_then(literal)
                    .is_some_and(|word| matches!(word.as_str(), "-v" | "-V")) => {}
            "command" | "builtin" => self.words(rest, state),
            "eval" | "source" | "." | "trap" | "alias" | "shopt" | "enable" => self.everything = true,
            "cd" | "pushd" | "popd" => self.place = true,
            "set" | "shift" => self.positional = true,
            "read" | "mapfile" | "readarray" | "printf" | "declare" | "typeset" | "local" | "export"
            | "readonly" | "unset" | "let" | "getopts" | "wait" => {
                self.assign("REPLY", false);
                self.assign("MAPFILE", false);
                self.assign("OPTARG", false);
                for word in rest {
                    let text = literal_prefix(word);
                    let names = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
                    names.filter(|name| !name.is_empty()).for_each(|name| self.assign(name, false));
                }
            }
            _ => {}
        }
    }

    fn test(&mut self, test: &Test) {
        match test {
            Test::Word(word) | Test::Unary { operand: word, .. } => self.word(word),
            Test::Binary { left, right, .. } => {
                for word in [left, right] {
                    self.arithmetic(&Arithmetic::of(word.pieces.clone(), word.span));
                }
            }
            Test::Not(inner) | Test::Group(inner) => self.test(inner),
            Test::And(left, right) | Test::Or(left, right) => {
                self.test(left);
                self.test(right);
            }
        }
    }

    fn word(&mut self, word: &Word) {
        self.pieces(&word.pieces);
    }

    fn pieces(&mut self, pieces: &[Piece]) {
        for piece in pieces {
            match &piece.kind {
                PieceKind::Double(inner) | PieceKind::Locale(inner) => self.pieces(inner),
                PieceKind::Arithmetic(arithmetic) => self.arithmetic(arithmetic),
                PieceKind::Parameter(parameter) => self.parameter(parameter),
                PieceKind::Array(words) => words.iter().for_each(|word| self.word(word)),
                _ => {}
            }
        }
    }

    fn parameter(&mut self, parameter: &Parameter) {
        if let Some(subscript) = &parameter.subscript {
            self.arithmetic(subscript);
        }
        match &parameter.operation {
            Some(Operation::Assign(word)) => {
                self.assign(&parameter.name, false);
                self.word(word);
            }
            Some(Operation::Default(word) | Operation::Alternative(word) | Operation::Error(word)) => {
                self.word(word)
            }
            Some(Operation::Trim { pattern, .. } | Operation::Case { pattern, .. }) => self.word(pattern),
            Some(Operation::Replace { pattern, replacement, .. }) => {
                self.word(pattern);
                replacement.iter().for_each(|word| self.word(word));
            }
            Some(Operation::Substring { offset, length }) => {
                self.arithmetic(offset);
                length.iter().for_each(|length| self.arithmetic(length));
            }
            _ => {}
        }
    }

    fn arithmetic(&mut self, arithmetic: &Arithmetic) {
        for piece in &arithmetic.pieces {
            if let PieceKind::Literal(text) = &piece.kind {
                let names = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
                let starts = |name: &&str| name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
                if text.contains('=') || text.contains("++") || text.contains("--") {
                    names.filter(starts).for_each(|name| self.assign(name, true));
                }
            }
        }
        self.pieces(&arithmetic.pieces);
    }
}

/// Whether a condition is nothing but `true`, `:` or, for `until`, `false`.
pub(super) fn is_constant(condition: &List, wanted: &str) -> bool {
    let [item] = condition.items.as_slice() else { return false };
    let [stage] = item.chain.first.stages.as_slice() else { return false };
    let CommandKind::Simple(simple) = &stage.command.kind else { return false };
    let [word] = simple.words.as_slice() else { return false };
    item.chain.rest.is_empty()
        && literal(word).is_some_and(|name| name == wanted || (wanted == "true" && name == ":"))
}

/// Whether something in a loop can leave it, as far as its first words tell.
pub(super) fn leaves(list: &List) -> bool {
    list.commands().any(|command| match &command.kind {
        CommandKind::Simple(simple) => {
            let name = simple.words.first().and_then(literal).unwrap_or_default();
            matches!(name.as_str(), "break" | "return" | "exit" | "exec")
        }
        CommandKind::Group(list) => leaves(list),
        CommandKind::If { branches, otherwise } => {
            branches.iter().any(|(condition, body)| leaves(condition) || leaves(body))
                || otherwise.as_ref().is_some_and(leaves)
        }
        CommandKind::Case { arms, .. } => arms.iter().any(|arm| leaves(&arm.body)),
        _ => false,
    })
}

/// The names a command word can stand for: itself, or the values of the variable it is.
fn names(word: &Word, state: &State) -> Vec<Option<String>> {
    let parameter = match word.pieces.as_slice() {
        [Piece { kind: PieceKind::Parameter(parameter), .. }] => parameter,
        [Piece { kind: PieceKind::Double(inner), .. }] => match inner.as_slice() {
            [Piece { kind: PieceKind::Parameter(parameter), .. }] => parameter,
            _ => return vec![literal(word)],
        },
        _ => return vec![literal(word)],
    };
    match state.variable(&parameter.name) {
        Some(Value::OneOf(values)) if parameter.operation.is_none() && parameter.subscript.is_none() => {
            let one_word = |text: &&str| !text.contains(char::is_whitespace);
            values.iter().map(|value| value.literal().filter(one_word).map(str::to_owned)).collect()
        }
        _ => vec![None],
    }
}

/// Whether a word can only be a number.
fn is_numeric_word(word: &Word) -> bool {
    !word.pieces.is_empty()
        && word.pieces.iter().all(|piece| match &piece.kind {
            PieceKind::Arithmetic(_) => true,
            PieceKind::Literal(text) => text.bytes().all(|byte| byte.is_ascii_digit()),
            _ => false,
        })
}

/// The text of a word without expansions.
pub(super) fn literal(word: &Word) -> Option<String> {
    let mut text = String::new();
    for piece in &word.pieces {
        match &piece.kind {
            PieceKind::Literal(part) | PieceKind::Single(part) | PieceKind::AnsiC(part) => {
                text.push_str(part)
            }
            PieceKind::Escaped(c) => text.push(*c),
            PieceKind::Double(inner) => match inner.as_slice() {
                [] => {}
                [Piece { kind: PieceKind::Literal(part), .. }] => text.push_str(part),
                _ => return None,
            },
            _ => return None,
        }
    }
    (text == "[" || !text.contains(['*', '?', '{', '['])).then_some(text)
}

fn literal_prefix(word: &Word) -> String {
    let mut text = String::new();
    for piece in &word.pieces {
        match &piece.kind {
            PieceKind::Literal(part) | PieceKind::Single(part) | PieceKind::AnsiC(part) => {
                text.push_str(part)
            }
            PieceKind::Double(inner) => {
                text.push_str(&literal_prefix(&Word { pieces: inner.clone(), span: word.span }))
            }
            _ => break,
        }
    }
    text
}
