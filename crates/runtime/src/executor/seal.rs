//! Last touches: what happens to an outcome between the tool's end and its coming out.

use std::sync::Arc;

use super::turn::{Core, State};
use crate::{
    guard::Key,
    pipeline::{self, CallResult, Outcome},
    results,
    sync::lock,
    tool::{ErrorCode, ResultBound, ToolError},
};

impl Core {
    /// Effects whose order makes no difference are applied as soon as the call is done, so that a
    /// call that waited for it sees them, even while its result waits behind a slower one.
    pub(super) fn apply_commuting(&self, outcome: &mut Outcome) {
        for effect in outcome.effects.extract_if(.., |effect| effect.commutes()) {
            self.toolbox.apply(effect, &self.id);
        }
    }

    /// What results that never come out have shown, the model has never seen.
    pub(super) fn forget_unseen(&self, state: &State, left: &[Arc<CallResult>]) {
        if !left.is_empty() || !state.board.all_out() {
            self.toolbox.files.ledger.evict_turn(&self.id);
        }
    }

    /// Last touches at the moment a result comes out: loop guard, budget, effects.
    pub(super) fn seal(&self, state: &mut State, number: usize, outcome: Outcome) -> CallResult {
        let Outcome { mut result, effects, bound, .. } = outcome;
        let (key, read_only, alone) = match state.board.slot(number) {
            Some(slot) => (slot.entry.key, slot.entry.read_only, slot.entry.footprint.is_exclusive()),
            None => return result,
        };
        self.heed_guard(&mut result, key, read_only, alone);
        self.fit_budget(state, &mut result, bound);
        state.spent += result.chars();
        // What is left depends on order, and a call that may run beside others must not ask for it.
        match effects.first().filter(|_| !alone) {
            Some(effect) => {
                let message = format!(
                    "{} has a bug: it asked for {} although it may run beside other calls; that change was not made",
                    result.tool,
                    effect.name()
                );
                result.fail_instead(ToolError::new(ErrorCode::EffectRefused, message));
            }
            None => effects.into_iter().for_each(|effect| self.toolbox.apply(effect, &self.id)),
        }
        result
    }

    /// Counts the result in the loop guard, and lets the guard have its say.
    fn heed_guard(&self, result: &mut CallResult, key: Key, read_only: bool, alone: bool) {
        if result.error_code.is_some_and(ErrorCode::is_not_its_own) {
            return;
        }
        let mut guard = lock(&self.toolbox.guard);
        match guard.refuses(key).filter(|_| result.is_error && read_only) {
            // Its twins ran beside it; one by one it would have been refused.
            Some(failures) => result.fail_instead(pipeline::refusal(failures)),
            None => {
                // What runs alone is called for its place in the order, not for what it returns.
                if let Some(note) = guard.record(key, read_only, result).filter(|_| result.is_error || !alone)
                {
                    result.add_note(&note);
                }
            }
        }
    }

    /// Keeps the results of the turn within its budget, the largest giving way first.
    fn fit_budget(&self, state: &State, result: &mut CallResult, bound: ResultBound) {
        let ResultBound::Chars(_, strategy) = bound else { return };
        let size = result.chars();
        let budget = self.toolbox.settings.turn_budget;
        if state.spent + size <= budget / 2 {
            return;
        }
        let mut fresh = vec![size];
        fresh.extend(state.board.waiting_sizes());
        let allowance = results::share(budget, state.spent, &fresh);
        if let Some(&most) = allowance.first().filter(|&&most| most < size) {
            pipeline::shorten(&self.toolbox, result, most, strategy);
        }
    }
}
