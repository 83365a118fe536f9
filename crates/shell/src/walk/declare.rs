//! Builtins that give variables their values.

use super::{Walker, simple::is_name};
use crate::{
    effect::EffectKind,
    expand::is_number,
    span::Span,
    state::{Function, State, Value},
    syntax::tree::{Arithmetic, Piece, PieceKind},
    value::{Argument, Origin, Stretch, Text},
    variables,
};

impl Walker<'_> {
    pub(super) fn declare(&mut self, state: &mut State, builtin: &str, arguments: &[Argument], span: Span) {
        if builtin == "local" && self.calls == 0 {
            self.unresolved("local outside a function assigns nothing", span);
        }
        if builtin == "readonly" {
            self.unresolved("a variable that cannot be assigned again", span);
        }
        let mut opaque = false;
        let letters = |wanted: char| {
            let options = arguments.iter().filter(|argument| argument.text.prefix().starts_with('-'));
            options.into_iter().any(|argument| argument.text.prefix().contains(wanted))
        };
        if letters('f') && letters('x') {
            self.unresolved("a function is given to other shells", span);
        }
        for argument in arguments {
            let prefix = argument.text.prefix();
            if argument.many {
                self.unresolved("a declaration of names that are not known", argument.span);
            } else if prefix.starts_with(['-', '+']) && argument.literal().is_some() {
                let letters = prefix.get(1..).unwrap_or_default();
                // Namerefs, integers and case attributes change what later assignments do.
                if letters.chars().any(|letter| !"xgaApfF".contains(letter)) || prefix.starts_with('+') {
                    self.unresolved("an attribute that changes what assignments do", argument.span);
                }
                opaque |= letters.contains(['a', 'A']);
                if letters.contains('A') {
                    self.unresolved("a table of named values is not followed", argument.span);
                }
            } else {
                let (name, value) = match prefix.find('=') {
                    Some(at) => {
                        let name = prefix.get(..at).unwrap_or_default();
                        (name.trim_end_matches('+').to_owned(), Some(argument.text.without_prefix(at + 1)))
                    }
                    None => (argument.literal().unwrap_or_default().to_owned(), None),
                };
                if !is_name(&name) {
                    self.unresolved("a declaration that is not understood", argument.span);
                    continue;
                }
                let appended = prefix.find('=').is_some_and(|at| at > name.len());
                let kind = if letters('x') && builtin != "local" { "export" } else { builtin };
                if opaque {
                    self.run.arrays.insert(name.clone());
                }
                if value.as_ref().is_some_and(|value| self.may_be_elements(state, builtin, &name, value)) {
                    self.unresolved(
                        "the value may be read again, as elements with code in them",
                        argument.span,
                    );
                }
                // Where it is no new variable it keeps what it had.
                let kept = self.calls == 0 || letters('g');
                if appended || (kept && value.is_none() && kind != "export") {
                    self.check_assignment(state, &name, argument.span);
                    state.blur(&name);
                    self.locals.push(name);
                } else {
                    self.declare_one(state, kind, &name, value, opaque, argument.span);
                }
            }
        }
    }

    /// Whether a declaration may take a value for the elements of an array, which it expands once more.
    fn may_be_elements(&self, state: &State, builtin: &str, name: &str, value: &Text) -> bool {
        match value.stretches().first() {
            Some(Stretch::Known(text)) => text.starts_with('('),
            Some(Stretch::Unknown(Origin::Elements)) | None => false,
            Some(Stretch::Unknown(_) | Stretch::Glob(_)) => {
                let unsure = matches!(state.variable(name), Some(Value::Unknown(_) | Value::Array(_)));
                self.run.arrays.contains(name) || (unsure && builtin != "local")
            }
            Some(Stretch::Plain | Stretch::Number) => false,
        }
    }

    fn declare_one(
        &mut self,
        state: &mut State,
        builtin: &str,
        name: &str,
        value: Option<Text>,
        opaque: bool,
        span: Span,
    ) {
        self.check_assignment(state, name, span);
        if builtin == "export" {
            match &value {
                Some(value) => self.effect_of_setting(name, value, span),
                None => self.effect(EffectKind::Environment(format!("gives {name} to later programs")), span),
            }
        }
        if builtin != "export" {
            self.locals.push(name.to_owned());
        }
        match value {
            Some(_) if opaque => state.set(name, Value::Unknown(Origin::Computed)),
            Some(value) => state.set(name, Value::one(value)),
            None if builtin == "export" => {}
            None => state.set(name, Value::Unknown(Origin::Computed)),
        }
    }

    pub(super) fn unset(&mut self, state: &mut State, arguments: &[Argument]) {
        let mut functions_only = false;
        for argument in arguments {
            match argument.literal() {
                Some("-f") => functions_only = true,
                Some("-v") => functions_only = false,
                Some(name) if functions_only => state.undefine(name),
                Some(name) if is_name(name) => {
                    self.check_assignment(state, name, argument.span);
                    // Without an option the variable goes first, and the function only if there is none.
                    if state.function(name).is_some() {
                        state.define(name, Function::Unsure);
                    }
                    // In a function it may be the variable of a caller that goes, and one behind it that shows.
                    let shows = self.calls > 0 && !variables::is_harmless_to_read(name);
                    state.set(name, if shows { Value::Unknown(Origin::Inherited) } else { Value::Unset });
                }
                _ => self.unresolved("unset of a name that is not known can run code", argument.span),
            }
        }
    }

    /// Builtins that put what they read into variables: every plain word may be a name.
    pub(super) fn read_names(&mut self, state: &mut State, builtin: &str, arguments: &[Argument]) {
        for name in ["REPLY", "MAPFILE", "OPTARG"] {
            state.set(name, Value::Unknown(Origin::Data));
        }
        // Letters may stand together, and one too many seen is a doubt too many at most.
        let given = |letter: char| {
            let has = |word: &Argument| {
                word.text.prefix().strip_prefix('-').is_some_and(|rest| rest.contains(letter))
            };
            arguments.iter().any(has)
        };
        let list = matches!(builtin, "mapfile" | "readarray") || (builtin == "read" && given('a'));
        // With a time limit nothing may be read, and behind an origin the rest of the array stays.
        let keeps = match builtin {
            "read" => given('t') || arguments.last().is_some_and(|word| word.text.prefix().starts_with('-')),
            "mapfile" | "readarray" => given('O'),
            _ => false,
        };
        for argument in arguments {
            let prefix = argument.text.prefix();
            match argument.literal() {
                Some(text) if text.contains('[') && (builtin != "printf" || !text.starts_with("-v")) => {
                    let is_delimiter = builtin == "read" && text.len() == 1;
                    if !is_delimiter {
                        self.unresolved("a subscript can run code", argument.span);
                    }
                }
                Some(text) => {
                    let name = text.strip_prefix("-v").filter(|_| builtin == "printf").unwrap_or(text);
                    let name = name.strip_prefix("-a").filter(|_| builtin == "read").unwrap_or(name);
                    if name == "_" {
                        // The usual way to throw a field away; `$_` is never known anyway.
                    } else if is_name(name) {
                        self.check_assignment(state, name, argument.span);
                        if list {
                            self.run.arrays.insert(name.to_owned());
                        }
                        let left = keeps && state.inherits(name);
                        state.set(name, Value::Unknown(if left { Origin::Inherited } else { Origin::Data }));
                    } else if name.contains('[') {
                        self.unresolved("a subscript can run code", argument.span);
                    }
                }
                None if is_number(&argument.text) => {}
                None if prefix.starts_with("-p") || prefix.starts_with("-t") => {}
                None => self.unresolved("a name that is not known is assigned", argument.span),
            }
        }
    }

    /// An argument of `let`.
    pub(super) fn compute(&mut self, state: &mut State, argument: &Argument) {
        match argument.literal() {
            Some(text) if !text.contains(['$', '`', '[', '\\', '"', '\'']) => {
                let piece = Piece { kind: PieceKind::Literal(text.to_owned()), span: argument.span };
                self.arithmetic(state, &Arithmetic::of(vec![piece], argument.span));
            }
            _ => self.unresolved("arithmetic on text that is not known can run code", argument.span),
        }
    }
}
