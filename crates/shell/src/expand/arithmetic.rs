//! Arithmetic: harmless with numbers, but text taken for a number can run code (`a[$(…)]`).

use crate::{
    state::{State, Value},
    syntax::tree::{Arithmetic, PieceKind},
    value::{Origin, Stretch, Text},
    walk::Walker,
};

impl Walker<'_> {
    /// Follows an expression; its value is some number.
    pub(crate) fn arithmetic(&mut self, state: &mut State, arithmetic: &Arithmetic) -> Text {
        let mut text = String::new();
        for piece in &arithmetic.pieces {
            match &piece.kind {
                PieceKind::Literal(literal) => text.push_str(literal),
                // Quotes keep an expansion from this shell, not from the evaluation that follows.
                PieceKind::Single(literal) | PieceKind::AnsiC(literal)
                    if !literal.contains(['$', '`', '[', '\\']) =>
                {
                    text.push_str(literal);
                }
                PieceKind::Escaped(c) if !matches!(c, '$' | '`' | '[' | '\\') => text.push(*c),
                PieceKind::Double(_)
                | PieceKind::Parameter(_)
                | PieceKind::Command(_)
                | PieceKind::Arithmetic(_) => {
                    let word = crate::syntax::tree::Word { pieces: vec![piece.clone()], span: piece.span };
                    for value in self.text(state, &word) {
                        match number_text(&value) {
                            Some(value) => text.push_str(&value),
                            None => self
                                .unresolved("arithmetic on text that is not known can run code", piece.span),
                        }
                        text.push(' ');
                    }
                }
                _ => self.unresolved("arithmetic that is not understood", piece.span),
            }
        }
        self.arithmetic_names(state, &text, arithmetic);
        Text::number()
    }

    /// The variables of an expression must hold numbers; those it may assign hold one afterwards.
    fn arithmetic_names(&mut self, state: &mut State, text: &str, arithmetic: &Arithmetic) {
        let assigns = assigns(text);
        for name in names(text) {
            let value = state.variable(&name).cloned();
            if value.is_none() && !crate::variables::is_harmless_to_read(&name) {
                self.reads_environment(&name, arithmetic.span);
            }
            let sound = match &value {
                None | Some(Value::Unset) => true,
                // Other text would be evaluated in its turn, names and subscripts in it included.
                Some(Value::OneOf(values)) | Some(Value::Array(values)) => values.iter().all(is_number),
                Some(Value::Unknown(_)) => false,
            };
            if !sound {
                self.unresolved(&format!("arithmetic on `{name}`, which may hold code"), arithmetic.span);
            }
            if assigns {
                self.check_assignment(state, &name, arithmetic.span);
                let numeric = match &value {
                    Some(Value::OneOf(values)) => values.iter().all(is_number),
                    None | Some(Value::Unset) => true,
                    _ => false,
                };
                // An expression that fails leaves the variable as it was.
                let next = match &value {
                    None | Some(Value::Unset) => Value::OneOf(vec![Text::number(), Text::default()]),
                    Some(Value::OneOf(values))
                        if numeric && values.iter().any(|value| value.stretches().is_empty()) =>
                    {
                        Value::OneOf(vec![Text::number(), Text::default()])
                    }
                    _ if numeric => Value::one(Text::number()),
                    _ => Value::Unknown(Origin::Computed),
                };
                state.set(&name, next);
            }
        }
    }
}

/// Whether a text can only be a number.
pub(crate) fn is_number(text: &Text) -> bool {
    text.stretches().iter().all(|stretch| match stretch {
        Stretch::Known(known) => {
            let digits = known.strip_prefix('-').unwrap_or(known);
            !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
        }
        Stretch::Number => true,
        _ => false,
    })
}

/// A text that is safe to compute with, numbers standing for what is not known.
fn number_text(text: &Text) -> Option<String> {
    let mut shown = String::new();
    for stretch in text.stretches() {
        match stretch {
            Stretch::Known(known) if !known.contains(['$', '`', '[']) => shown.push_str(known),
            Stretch::Number => shown.push('1'),
            _ => return None,
        }
    }
    Some(shown)
}

fn names(text: &str) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '#' || c == '@';
    for token in text.split(|c: char| !word(c)) {
        let is_name = token.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if is_name && !names.iter().any(|known| known == token) {
            names.push(token.to_owned());
        }
    }
    names
}

/// Whether an expression may assign: a single `=`, `++` or `--` stands in it.
fn assigns(text: &str) -> bool {
    if text.contains("++") || text.contains("--") {
        return true;
    }
    let bytes = text.as_bytes();
    bytes.iter().enumerate().any(|(at, &byte)| {
        let before = at.checked_sub(1).and_then(|at| bytes.get(at)).copied().unwrap_or(b' ');
        let after = bytes.get(at + 1).copied().unwrap_or(b' ');
        let shift = at >= 2 && matches!(bytes.get(at - 2..at), Some(b"<<" | b">>"));
        byte == b'=' && after != b'=' && (shift || !matches!(before, b'=' | b'!' | b'<' | b'>'))
    })
}
