//! `[[ … ]]`

use super::Walker;
use crate::{
    effect::EffectKind,
    state::State,
    syntax::tree::{Arithmetic, Test, Word},
};

impl Walker<'_> {
    pub(super) fn test(&mut self, state: &mut State, test: &Test) {
        match test {
            Test::Word(word) => {
                self.text(state, word);
            }
            Test::Unary { operator, operand } => self.unary(state, operator, operand),
            Test::Binary { left, operator, right } => {
                let computes = matches!(operator.as_str(), "-eq" | "-ne" | "-lt" | "-le" | "-gt" | "-ge");
                for word in [left, right] {
                    if computes {
                        self.arithmetic(state, &Arithmetic::of(word.pieces.clone(), word.span));
                    } else {
                        self.text(state, word);
                    }
                }
            }
            Test::Not(inner) | Test::Group(inner) => self.test(state, inner),
            Test::And(left, right) | Test::Or(left, right) => {
                self.test(state, left);
                self.test(state, right);
            }
        }
    }

    fn unary(&mut self, state: &mut State, operator: &str, operand: &Word) {
        let text = self.one_text(state, operand);
        match operator {
            "-z" | "-n" | "-o" | "-t" => {}
            // The subscript of the name is evaluated, and with it any code in it.
            "-v" | "-R" => {
                if text.literal().is_none_or(|name| name.contains('[')) {
                    self.unresolved("testing a name that is not known can run code", operand.span);
                }
            }
            _ => {
                for target in self.targets(&state.cwd.clone(), &text) {
                    self.effect(EffectKind::List(target), operand.span);
                }
            }
        }
    }
}
