//! Lists, pipelines and compound commands.

use std::rc::Rc;

use super::{Outcome, Walker, loops};
use crate::{
    analysis::Via,
    risk::RiskKind,
    span::Span,
    state::{Function, State, Value},
    syntax::tree::{Arm, ArmEnd, Chain, Command, CommandKind, Connector, List, Pipeline, Test, Word},
    value::{Argument, Origin, Text},
    variables,
};

impl Walker<'_> {
    pub(super) fn list(&mut self, state: State, list: &List) -> Outcome {
        let mut outcome = Outcome::same(state);
        for item in &list.items {
            let state = outcome.merged();
            if self.run.exhausted {
                return Outcome::same(state);
            }
            outcome = if item.background {
                // A background job is a shell of its own.
                self.chain(state.clone(), &item.chain);
                Outcome::same(state)
            } else {
                self.chain(state, &item.chain)
            };
        }
        outcome
    }

    fn chain(&mut self, state: State, chain: &Chain) -> Outcome {
        let mut outcome = self.pipeline(state, &chain.first);
        for (connector, pipeline) in &chain.rest {
            outcome = match connector {
                Connector::And => {
                    let mut failure = outcome.failed().clone();
                    let next = self.pipeline(outcome.success, pipeline);
                    failure.merge(next.failed());
                    Outcome { success: next.success, failure: Some(failure) }
                }
                Connector::Or => {
                    let next = self.pipeline(outcome.failed().clone(), pipeline);
                    let failure = next.failed().clone();
                    let mut success = outcome.success;
                    success.merge(&next.success);
                    Outcome { success, failure: Some(failure) }
                }
            };
        }
        outcome
    }

    fn pipeline(&mut self, state: State, pipeline: &Pipeline) -> Outcome {
        let outcome = match pipeline.stages.as_slice() {
            [] => Outcome::same(state),
            [only] => self.command(state, &only.command),
            stages => {
                // Every stage is a shell of its own.
                let last = stages.len() - 1;
                for (at, stage) in stages.iter().enumerate() {
                    let before = self.parts.len();
                    self.command(state.clone(), &stage.command);
                    if at < last {
                        self.hint(before);
                    }
                }
                Outcome::same(state)
            }
        };
        match (pipeline.negated, outcome) {
            (true, Outcome { success, failure: Some(failure) }) => {
                Outcome { success: failure, failure: Some(success) }
            }
            (_, outcome) => outcome,
        }
    }

    pub(super) fn command(&mut self, mut state: State, command: &Command) -> Outcome {
        if let CommandKind::Simple(simple) = &command.kind {
            return self.simple(state, simple, &command.redirects, command.span);
        }
        let before = (!command.redirects.is_empty()).then(|| state.clone());
        self.redirects(&mut state, &command.redirects);
        self.flush(command.span);
        let outcome = self.compound(state, &command.kind);
        self.flush(command.span);
        match before {
            None => outcome,
            // A redirection that fails keeps the command from running.
            Some(before) => {
                let mut failure = outcome.failed().clone();
                failure.merge(&before);
                Outcome { success: outcome.success, failure: Some(failure) }
            }
        }
    }

    fn compound(&mut self, mut state: State, kind: &CommandKind) -> Outcome {
        match kind {
            CommandKind::Simple(_) => Outcome::same(state),
            CommandKind::Group(list) => self.list(state, list),
            CommandKind::Subshell(list) => {
                self.list(state.clone(), list);
                Outcome::same(state)
            }
            CommandKind::If { branches, otherwise } => self.conditional(state, branches, otherwise.as_ref()),
            CommandKind::While { until, condition, body } => {
                let constant = if *until { "false" } else { "true" };
                if loops::is_constant(condition, constant) && !loops::leaves(body) {
                    self.unresolved("a loop that does not end", Span::default());
                }
                self.widen(&mut state, [condition, body]);
                let tested = self.list(state.clone(), condition);
                let start = if *until { tested.failed().clone() } else { tested.success };
                self.list(start, body);
                Outcome::same(state)
            }
            CommandKind::For { name, words, body } | CommandKind::Select { name, words, body } => {
                let values = self.loop_values(&mut state, words.as_deref());
                self.check_assignment(&mut state, name, words_span(words.as_deref()));
                let inherits = state.inherits(name);
                state.set(name, values.clone());
                self.widen(&mut state, [body]);
                let mut start = state.clone();
                start.set(name, values);
                if matches!(kind, CommandKind::Select { .. }) {
                    start.set("REPLY", Value::Unknown(Origin::Data));
                    start.set(name, Value::Unknown(Origin::Data));
                }
                self.list(start, body);
                // Without a single turn it is what it was.
                state.set(name, Value::Unknown(if inherits { Origin::Inherited } else { Origin::Computed }));
                Outcome::same(state)
            }
            CommandKind::ForArithmetic { header, body } => {
                let [first, test, step] = header;
                if test.pieces.is_empty() && !loops::leaves(body) {
                    self.unresolved("a loop that does not end", test.span);
                }
                self.arithmetic(&mut state, first);
                self.widen(&mut state, [body]);
                self.widen_arithmetic(&mut state, [test, step]);
                self.arithmetic(&mut state, test);
                self.list(state.clone(), body);
                self.arithmetic(&mut state, step);
                Outcome::same(state)
            }
            CommandKind::Case { subject, arms } => {
                self.text(&mut state, subject);
                self.case(state, arms)
            }
            CommandKind::Function { name, body } => {
                if variables::is_hook(name) {
                    self.unresolved("the shell calls this function by itself", body.span);
                }
                state.define(name, Function::Defined(Rc::new((**body).clone())));
                Outcome::same(state)
            }
            CommandKind::Test(test) => {
                self.run.testing =
                    matches!(test, Test::Unary { operator, .. } if matches!(operator.as_str(), "-n" | "-z"));
                self.test(&mut state, test);
                self.run.testing = false;
                Outcome::same(state)
            }
            CommandKind::Arithmetic(arithmetic) => {
                self.arithmetic(&mut state, arithmetic);
                Outcome::same(state)
            }
            CommandKind::Coprocess { body, .. } => {
                self.command(state.clone(), body);
                self.risk(RiskKind::CodeExecution, "a coprocess runs beside the script", body.span);
                self.unresolved("a coprocess runs beside the script", body.span);
                Outcome::same(state)
            }
        }
    }

    fn conditional(&mut self, state: State, branches: &[(List, List)], otherwise: Option<&List>) -> Outcome {
        let mut ends: Vec<State> = Vec::new();
        let mut next = state;
        for (condition, body) in branches {
            let tested = self.list(next, condition);
            next = tested.failed().clone();
            ends.push(self.list(tested.success, body).merged());
        }
        let mut end = match otherwise {
            Some(list) => self.list(next, list).merged(),
            None => next,
        };
        for other in &ends {
            end.merge(other);
        }
        Outcome::same(end)
    }

    fn case(&mut self, mut state: State, arms: &[Arm]) -> Outcome {
        for pattern in arms.iter().flat_map(|arm| &arm.patterns) {
            self.text(&mut state, pattern);
        }
        let mut end = state.clone();
        let mut fallen: Option<State> = None;
        for arm in arms {
            let mut start = state.clone();
            if let Some(fallen) = fallen.take() {
                start.merge(&fallen);
            }
            let after = self.list(start, &arm.body).merged();
            end.merge(&after);
            if arm.end != ArmEnd::Break {
                fallen = Some(after);
            }
        }
        Outcome::same(end)
    }

    /// What the variable of a `for` loop can be.
    fn loop_values(&mut self, state: &mut State, words: Option<&[Word]>) -> Value {
        let mut values: Vec<Text> = Vec::new();
        let mut add = |text: &Text| {
            if values.len() <= 16 && !values.contains(text) {
                values.push(text.clone());
            }
        };
        match words {
            None => match &state.positional {
                Some(positional) => positional.iter().for_each(&mut add),
                None => return Value::Unknown(Origin::Data),
            },
            Some(words) => {
                for word in words {
                    for argument in self.expand(state, word).iter().flatten() {
                        self.note_words(&argument.text);
                        add(&argument.text);
                    }
                }
            }
        }
        match values.iter().find_map(Text::origin) {
            Some(origin) => Value::Unknown(origin),
            None if values.len() > 16 => Value::Unknown(Origin::Computed),
            None => Value::OneOf(values),
        }
    }

    /// Calls a function of the text.
    pub(super) fn call(
        &mut self,
        state: State,
        name: &str,
        body: &Command,
        arguments: &[Argument],
    ) -> Outcome {
        let span = body.span;
        let mut inner = state.clone();
        inner.set_positional(arguments);
        let returns = std::mem::take(&mut self.returns);
        let locals = std::mem::take(&mut self.locals);
        self.calls += 1;
        let outcome =
            self.deeper(Via::Function(name.to_owned()), span, |walker| walker.command(inner, body).merged());
        self.calls -= 1;
        let mut end = outcome.unwrap_or_else(|| state.clone());
        for returned in std::mem::replace(&mut self.returns, returns) {
            end.merge(&returned);
        }
        end.positional.clone_from(&state.positional);
        for name in std::mem::replace(&mut self.locals, locals) {
            // What it was before the call, or what the function assigned before it was local.
            let origin = if state.inherits(&name) { Origin::Inherited } else { Origin::Computed };
            end.set(&name, Value::Unknown(origin));
        }
        Outcome::same(end)
    }
}

fn words_span(words: Option<&[Word]>) -> Span {
    words.and_then(|words| words.first()).map(|word| word.span).unwrap_or_default()
}
