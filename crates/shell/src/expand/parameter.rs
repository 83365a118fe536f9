//! `$x`, `${x:-y}` and the rest of their family.

use super::Expansion;
use crate::{
    risk::RiskKind,
    span::Span,
    state::{Places, State, Value},
    syntax::tree::{Operation, Parameter, Piece, PieceKind, Word},
    value::{Origin, Text},
    variables,
    walk::Walker,
};

impl Walker<'_> {
    /// What a parameter expands to.
    pub(super) fn parameter(
        &mut self,
        state: &mut State,
        parameter: &Parameter,
        span: Span,
        quoted: bool,
    ) -> Expansion {
        let base = self.base(state, parameter, span, quoted);
        if parameter.length {
            return Expansion::OneOf(vec![Text::number()]);
        }
        let Some(operation) = &parameter.operation else { return base };
        self.operate(state, parameter, operation, base, span, quoted)
    }

    fn base(&mut self, state: &mut State, parameter: &Parameter, span: Span, quoted: bool) -> Expansion {
        if parameter.indirect {
            // The name, and code in its subscript, would come from the value.
            if !matches!(parameter.operation, Some(Operation::Names)) && !is_all(parameter) {
                self.unresolved("an indirect expansion can run code", span);
            }
            if let (true, None, Some(Value::Array(items))) =
                (is_all(parameter), &parameter.operation, state.variable(&parameter.name))
            {
                // The subscripts of an array that was written down.
                return Expansion::Fields((0..items.len()).map(|at| Text::known(at.to_string())).collect());
            }
            return Expansion::Many(Origin::Computed);
        }
        let name = parameter.name.as_str();
        if let Some(subscript) = &parameter.subscript {
            if is_all(parameter) {
                return match state.variable(name) {
                    Some(Value::Array(items)) => {
                        let items = self.copied(items.clone(), span);
                        all(&items, &subscript_text(parameter), quoted)
                    }
                    _ => {
                        self.element(state, name, span);
                        Expansion::Many(Origin::Computed)
                    }
                };
            }
            let subscript = subscript.clone();
            self.arithmetic(state, &subscript);
            self.element(state, name, span);
            return Expansion::OneOf(vec![Text::unknown(Origin::Computed)]);
        }
        match name {
            "@" | "*" => match &state.positional {
                Some(positional) => {
                    let items = self.copied(positional.to_vec(), span);
                    all(&items, name, quoted)
                }
                None => Expansion::Many(Origin::Data),
            },
            "#" | "?" | "$" => Expansion::OneOf(vec![Text::number()]),
            "!" => Expansion::OneOf(vec![Text::number(), Text::default()]),
            "0" => match state.variable("0") {
                Some(Value::OneOf(values)) => Expansion::OneOf(values.clone()),
                _ => Expansion::OneOf(vec![Text::unknown(Origin::Computed)]),
            },
            "-" | "_" => Expansion::OneOf(vec![Text::unknown(Origin::Computed)]),
            _ if name.bytes().all(|byte| byte.is_ascii_digit()) => {
                let at = name.parse::<usize>().unwrap_or(usize::MAX).saturating_sub(1);
                Expansion::OneOf(vec![match &state.positional {
                    Some(positional) => positional.get(at).cloned().unwrap_or_default(),
                    None => Text::unknown(Origin::Data),
                }])
            }
            _ => self.variable(state, name, span),
        }
    }

    /// An element of an array. Every variable is an array of one, those of the environment too.
    fn element(&mut self, state: &State, name: &str, span: Span) {
        let places = ["HOME", "IFS", "OLDPWD", "PWD"];
        if state.inherits(name) && !places.contains(&name) && !variables::is_harmless_to_read(name) {
            self.reads_environment(name, span);
        }
    }

    fn variable(&mut self, state: &State, name: &str, span: Span) -> Expansion {
        let one = |text: Text| Expansion::OneOf(vec![text]);
        match state.variable(name) {
            Some(Value::Unset) => return one(Text::default()),
            Some(Value::OneOf(values)) => {
                let values = values.clone();
                return Expansion::OneOf(self.copied(values, span));
            }
            Some(Value::Array(items)) => return one(items.first().cloned().unwrap_or_default()),
            Some(Value::Unknown(Origin::Environment | Origin::Inherited)) | None => {}
            Some(Value::Unknown(origin)) => return one(Text::unknown(*origin)),
        }
        let assigned = state.variable(name).is_some();
        match name {
            "HOME" => one(Text::known(self.surroundings.home.clone())),
            "PWD" => match &state.cwd {
                Places::OneOf(places) => Expansion::OneOf(places.iter().map(Text::known).collect()),
                Places::Unknown => one(Text::unknown(Origin::Computed)),
            },
            "OLDPWD" => one(Text::unknown(Origin::Computed)),
            "IFS" => one(Text::known(" \t\n")),
            _ if variables::is_number(name) => one(Text::number()),
            _ => {
                if !variables::is_harmless_to_read(name) {
                    self.reads_environment(name, span);
                }
                one(Text::unknown(if assigned { Origin::Inherited } else { Origin::Environment }))
            }
        }
    }

    fn operate(
        &mut self,
        state: &mut State,
        parameter: &Parameter,
        operation: &Operation,
        base: Expansion,
        span: Span,
        quoted: bool,
    ) -> Expansion {
        let unknown = || match base {
            Expansion::OneOf(_) => Expansion::OneOf(vec![Text::unknown(Origin::Computed)]),
            _ => Expansion::Many(Origin::Computed),
        };
        match operation {
            Operation::Default(word) | Operation::Assign(word) => {
                let mut others = self.operand(state, word, quoted);
                if matches!(operation, Operation::Assign(_)) {
                    self.check_assignment(state, &parameter.name, span);
                    state.blur(&parameter.name);
                }
                let Expansion::OneOf(values) = base else { return Expansion::Many(Origin::Computed) };
                let certain =
                    !values.iter().any(|value| value.stretches().is_empty() || value.origin().is_some());
                if certain {
                    return Expansion::OneOf(values);
                }
                others.extend(values);
                Expansion::OneOf(others)
            }
            Operation::Alternative(word) => {
                let mut others = self.operand(state, word, quoted);
                others.push(Text::default());
                Expansion::OneOf(others)
            }
            Operation::Error(word) => {
                self.operand(state, word, quoted);
                base
            }
            Operation::Trim { pattern, .. } | Operation::Case { pattern, .. } => {
                self.text(state, pattern);
                unknown()
            }
            Operation::Replace { pattern, replacement, .. } => {
                self.text(state, pattern);
                if let Some(replacement) = replacement {
                    self.text(state, replacement);
                }
                unknown()
            }
            Operation::Substring { offset, length } => {
                self.arithmetic(state, offset);
                if let Some(length) = length {
                    self.arithmetic(state, length);
                }
                unknown()
            }
            Operation::Transform(letter) => {
                if *letter == 'P' {
                    self.risk(RiskKind::CodeExecution, "prompt expansion runs code in the value", span);
                    self.unresolved("prompt expansion can run code", span);
                }
                unknown()
            }
            Operation::Names => Expansion::Many(Origin::Computed),
        }
    }

    /// The word of `${x:-word}`. Unquoted, its own quotes would keep it from being split, which is
    /// not followed.
    fn operand(&mut self, state: &mut State, word: &Word, quoted: bool) -> Vec<Text> {
        let several = |piece: &Piece| matches!(&piece.kind, PieceKind::Parameter(inner) if matches!(inner.name.as_str(), "@" | "*") || inner.subscript.is_some());
        let inside =
            |piece: &Piece| matches!(&piece.kind, PieceKind::Double(inner) if inner.iter().any(several));
        if word.pieces.iter().any(|piece| several(piece) || inside(piece)) {
            self.unresolved("several words inside an expansion", word.span);
        }
        let texts = self.text(state, word);
        let tilde = |piece: &Piece| matches!(&piece.kind, PieceKind::Literal(text) if text.contains('~'));
        if quoted && word.pieces.iter().any(tilde) {
            // Between quotes a tilde stays a tilde.
            return vec![Text::unknown(Origin::Computed)];
        }
        let plain = word.pieces.iter().all(|piece| matches!(piece.kind, PieceKind::Literal(_)));
        if quoted || plain { texts } else { vec![Text::unknown(Origin::Computed)] }
    }
}

fn subscript_text(parameter: &Parameter) -> String {
    let pieces =
        parameter.subscript.as_ref().map(|subscript| subscript.pieces.as_slice()).unwrap_or_default();
    match pieces {
        [piece] => match &piece.kind {
            PieceKind::Literal(text) => text.clone(),
            _ => String::new(),
        },
        _ => String::new(),
    }
}

fn is_all(parameter: &Parameter) -> bool {
    matches!(subscript_text(parameter).as_str(), "@" | "*")
}

/// `$@` and `$*`: arguments of their own, or one joined by blanks when `*` is quoted.
fn all(items: &[Text], name: &str, quoted: bool) -> Expansion {
    if !(quoted && name == "*") {
        return Expansion::Fields(items.to_vec());
    }
    let mut joined = Text::default();
    for (at, item) in items.iter().enumerate() {
        joined.push_str(if at > 0 { " " } else { "" });
        joined.append(item);
    }
    Expansion::OneOf(vec![joined])
}
