//! What follows from what. The machine is told what happened and says what is to be done; it does nothing itself,
//! knows no clock and no wire, and so can be tested step by step.
//!
//! What holds at every step: a call is recorded before it is run; every call of the history has exactly one result,
//! in the message after it, in the order of the calls.

use std::{sync::Arc, time::Duration};

use super::{
    answer::{Answer, MadeBefore},
    estimate::estimate,
    step::{Effect, End, Input, Limits},
};
use crate::{
    message::{Content, Message, Role},
    model::{ModelError, ModelEvent, StopReason, Trouble, Usage},
    session::{Entry, Origin},
};

/// Broken streams in a row after which the answer is asked for in one piece.
const BROKEN_STREAMS: u32 = 2;
/// Longest wait before asking again, unless the provider wants longer.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// A provider that wants us to wait longer than this is not waited for.
const LONGEST_PATIENCE: Duration = Duration::from_secs(300);
/// Times an address is tried again at which nobody has answered yet.
const TRIES_OF_A_STRANGER: u32 = 4;
/// Answers in a row that pause or grow too long before it is given up.
const MOST_CUT_SHORT: u32 = 20;
/// Times in a row that hooks may send the model back to work.
const MOST_HOOKED: u32 = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing is asked for.
    Idle,
    /// The model answers.
    Answering,
    /// The answer is complete; its calls are not.
    Working,
    /// The answer broke off and its calls are being dropped.
    Dropping,
    /// Before another try.
    Waiting,
    /// Hooks are asked whether it is over.
    Ending,
    /// The history is being made shorter.
    Compacting,
}

/// What must not go on for ever.
#[derive(Default)]
struct InARow {
    /// Times that hooks sent the model back to work.
    hooked: u32,
    /// Answers that did not come to their end.
    cut_short: u32,
}

/// The state of a conversation.
pub struct Machine {
    limits: Limits,
    window: u64,
    state: State,
    history: Vec<Arc<Message>>,
    answer: Answer,
    stop: Option<StopReason>,
    /// What must end it once its calls have their results.
    ending: Option<End>,
    /// Tries of the present request that failed, and how many of them broke off.
    failures: (u32, u32),
    made_before: Vec<MadeBefore>,
    /// The request was too long, and the history was made shorter for it.
    squeezed: bool,
    in_a_row: InARow,
    /// Answers since the prompt, tokens and dollars of the session.
    pub(super) turns: u32,
    pub(super) usage: Usage,
    pub(super) cost: f64,
    /// The text of the last answer since the prompt that had one.
    pub(super) words: String,
    /// What the last request and its answer filled of the window.
    filled: u64,
}

impl Machine {
    /// A conversation that goes on from `history`.
    pub fn new(history: Vec<Arc<Message>>, window: u64, limits: Limits) -> Self {
        let filled = history.iter().map(|message| estimate(message)).sum();
        Self {
            limits,
            window,
            state: State::Idle,
            history,
            answer: Answer::default(),
            stop: None,
            ending: None,
            failures: (0, 0),
            made_before: Vec::new(),
            squeezed: false,
            in_a_row: InARow::default(),
            turns: 0,
            usage: Usage::default(),
            cost: 0.0,
            words: String::new(),
            filled,
        }
    }

    /// The conversation so far, whole messages only.
    pub fn history(&self) -> &[Arc<Message>] {
        &self.history
    }

    /// Takes in what happened; says what is to be done.
    pub fn step(&mut self, input: Input) -> Vec<Effect> {
        let mut effects = Vec::new();
        match (self.state, input) {
            (_, Input::Spent(cost)) => self.cost += cost,
            (State::Idle, Input::Prompt(message, origin)) => self.begin(message, origin, &mut effects),
            (State::Idle, _) | (_, Input::Prompt(..)) => {}
            (State::Answering, Input::Model(event)) => self.listen(event, &mut effects),
            (State::Answering, Input::Failed(error)) => self.fail(error, &mut effects),
            (State::Answering | State::Working | State::Dropping, Input::Began(id)) => self.answer.begin(id),
            (State::Answering | State::Working | State::Dropping, Input::Result(result)) => {
                self.settle(result, &mut effects);
            }
            (State::Working, Input::CallsOver { context, delivered }) => {
                self.calls_over(context, delivered, &mut effects);
            }
            (State::Dropping, Input::Dropped(results)) => self.dropped(results, &mut effects),
            (State::Waiting, Input::Waited) => self.ask(&mut effects),
            (State::Ending, Input::Hooked(words)) => self.hooked(words, &mut effects),
            (State::Compacting, Input::Compacted(outcome)) => self.compacted(outcome, &mut effects),
            (_, Input::Interrupt) => self.end_early(End::Interrupted, &mut effects),
            (_, Input::Stop(end)) => self.end_early(end, &mut effects),
            // What comes late, such as the rest of an answer that is no longer listened to.
            _ => {}
        }
        effects
    }

    fn begin(&mut self, message: Message, origin: Origin, effects: &mut Vec<Effect>) {
        (self.turns, self.in_a_row, self.ending) = (0, InARow::default(), None);
        self.words.clear();
        self.say(message, origin, effects);
        self.go_on(effects);
    }

    /// Puts a user message into the history.
    fn say(&mut self, message: Message, origin: Origin, effects: &mut Vec<Effect>) {
        self.filled = self.filled.saturating_add(estimate(&message));
        effects.push(Effect::Record(Entry::User { message: message.clone(), origin }));
        self.append(message);
    }

    /// Two messages in a row of the same speaker become one: prompts, or an answer that paused and what it went on with.
    fn append(&mut self, message: Message) {
        match self.history.last_mut() {
            Some(last) if last.role == message.role => {
                Arc::make_mut(last).content.extend(message.content);
            }
            _ => self.history.push(Arc::new(message)),
        }
    }

    /// Asks, unless the history has grown too long for it.
    fn go_on(&mut self, effects: &mut Vec<Effect>) {
        (self.failures, self.squeezed) = ((0, 0), false);
        if self.filled >= self.window / 5 * 4 && self.history.len() > 1 {
            self.state = State::Compacting;
            effects.push(Effect::Compact);
        } else {
            self.ask(effects);
        }
    }

    fn ask(&mut self, effects: &mut Vec<Effect>) {
        self.state = State::Answering;
        self.answer = Answer::default();
        self.stop = None;
        effects
            .push(Effect::Ask { streamed: self.failures.1 < BROKEN_STREAMS && self.made_before.is_empty() });
    }

    fn listen(&mut self, event: ModelEvent, effects: &mut Vec<Effect>) {
        match event {
            ModelEvent::Start { id, model } => self.answer = Answer::new(id, model),
            ModelEvent::Block { content, broken, .. } => self.take_block(content, broken, effects),
            ModelEvent::Usage(usage) => self.answer.usage = usage,
            ModelEvent::Stop(reason) => self.answered(reason, effects),
            ModelEvent::Text { .. }
            | ModelEvent::Thinking { .. }
            | ModelEvent::CallStart { .. }
            | ModelEvent::CallInput { .. } => {}
        }
    }

    fn take_block(&mut self, content: Content, broken: Option<String>, effects: &mut Vec<Effect>) {
        let answer = self.answer.id.clone();
        effects.push(Effect::Record(Entry::Block {
            answer,
            content: content.clone(),
            broken: broken.clone(),
        }));
        self.answer.push(content.clone());
        let Content::ToolUse { id, name, input } = content else { return };
        if let Some(why) = broken {
            self.answer.submitted += 1;
            return effects.push(Effect::SubmitBroken { id, why });
        }
        match self.made_before.iter().position(|made| made.is(&name, &input)) {
            Some(at) => {
                let result = self.made_before.remove(at).result_for(&id);
                self.settle(result, effects);
            }
            None => {
                self.answer.submitted += 1;
                effects.push(Effect::Submit { id, name, input: input.value() });
            }
        }
    }

    fn settle(&mut self, result: Content, effects: &mut Vec<Effect>) {
        if self.answer.settle(&result) {
            effects.push(Effect::Record(Entry::Result { content: result }));
        }
    }

    /// The answer is complete.
    fn answered(&mut self, reason: StopReason, effects: &mut Vec<Effect>) {
        self.account(&reason, effects);
        self.made_before.clear();
        let cut_short = matches!(reason, StopReason::PauseTurn | StopReason::MaxTokens);
        self.in_a_row.cut_short = if cut_short { self.in_a_row.cut_short + 1 } else { 0 };
        self.stop = Some(reason);
        if self.answer.has_calls() {
            self.state = State::Working;
            return effects.push(Effect::CloseCalls);
        }
        let reason = self.stop.clone().unwrap_or(StopReason::EndTurn);
        self.keep_answer(Vec::new());
        if reason == StopReason::PauseTurn && self.in_a_row.cut_short <= MOST_CUT_SHORT {
            return self.unless_over(effects);
        }
        self.state = State::Ending;
        effects.push(Effect::AskHooks);
    }

    /// Counts the answer, and says that it is whole.
    fn account(&mut self, reason: &StopReason, effects: &mut Vec<Effect>) {
        self.turns += 1;
        let usage = self.answer.usage;
        self.usage += usage;
        let cost = self.limits.price.map(|price| price.cost(&usage));
        self.cost += cost.unwrap_or_default();
        if usage.window() > 0 {
            self.filled = usage.window();
        }
        effects.push(Effect::Record(Entry::AnswerEnd {
            answer: self.answer.id.clone(),
            model: self.answer.model.clone(),
            stop_reason: reason.clone(),
            usage,
            cost,
        }));
    }

    /// The answer enters the history, and after it what belongs to it.
    fn keep_answer(&mut self, context: Vec<Content>) {
        let answer = std::mem::take(&mut self.answer);
        if answer.is_empty() {
            return;
        }
        let (said, results) = answer.into_messages();
        if !said.content.is_empty() {
            let words = said.text();
            let paused = self.history.last().is_some_and(|last| last.role == Role::Assistant);
            match words.is_empty() || paused {
                true => self.words += &words,
                false => self.words = words,
            }
            self.append(said);
        }
        let mut content = results.map(|message| message.content).unwrap_or_default();
        content.extend(context);
        if !content.is_empty() {
            let message = Message { role: Role::User, content };
            self.filled = self.filled.saturating_add(estimate(&message));
            self.append(message);
        }
    }

    fn calls_over(&mut self, context: Vec<Content>, delivered: bool, effects: &mut Vec<Effect>) {
        self.answer_for_missing(effects);
        if !context.is_empty() {
            let message = Message { role: Role::User, content: context.clone() };
            effects.push(Effect::Record(Entry::User { message, origin: Origin::Context }));
        }
        self.keep_answer(context);
        if let Some(end) = self.ending.take() {
            return self.finish(end, effects);
        }
        if delivered || self.in_a_row.cut_short > MOST_CUT_SHORT {
            let reason = self.stop.take().filter(|_| !delivered).unwrap_or(StopReason::EndTurn);
            return self.finish(End::Done(reason), effects);
        }
        self.unless_over(effects);
    }

    /// Goes on, unless a limit is reached.
    fn unless_over(&mut self, effects: &mut Vec<Effect>) {
        if let Some(most) = self.limits.turns.filter(|most| self.turns >= *most) {
            return self.finish(End::MaxTurns(most), effects);
        }
        if let Some(most) = self.limits.budget.filter(|most| self.cost >= *most) {
            return self.finish(End::Budget(most), effects);
        }
        self.go_on(effects);
    }

    /// The tools give one result per call; should one be missing all the same, the history must not break.
    fn answer_for_missing(&mut self, effects: &mut Vec<Effect>) {
        for id in self.answer.open_calls() {
            let content = vec![Content::text("This call has no result: it was stopped before it gave one.")];
            self.settle(Content::ToolResult { tool_use_id: id, content, is_error: true }, effects);
        }
    }

    fn fail(&mut self, error: ModelError, effects: &mut Vec<Effect>) {
        self.failures.0 += 1;
        self.failures.1 += u32::from(error.kind == Trouble::Broken);
        let patient = error.retry_after.is_none_or(|wait| wait <= LONGEST_PATIENCE);
        // Where nobody has answered yet, nobody may be.
        let unknown = error.kind == Trouble::Unreachable && self.history.len() < 2;
        let most = self.limits.retries.min(if unknown { TRIES_OF_A_STRANGER } else { u32::MAX });
        let again = error.kind.passes() && patient && self.failures.0 <= most;
        let squeeze = error.kind == Trouble::TooLong && !self.squeezed;
        if self.answer.submitted > 0 {
            // What was done is part of the conversation, whatever comes of the rest.
            self.ending = (!again && !squeeze).then(|| End::Failed(error.clone()));
            self.state = State::Dropping;
            self.failed_with(error);
            return effects.push(Effect::DropCalls);
        }
        self.forget_answer(effects);
        if squeeze {
            self.squeezed = true;
            self.state = State::Compacting;
            effects.push(Effect::Compact);
        } else if again {
            self.wait(error, effects);
        } else {
            self.finish(End::Failed(error), effects);
        }
    }

    fn failed_with(&mut self, error: ModelError) {
        self.stop = Some(StopReason::Other(error.message));
    }

    /// An answer of which nothing was done does not count.
    fn forget_answer(&mut self, effects: &mut Vec<Effect>) {
        let answer = std::mem::take(&mut self.answer);
        if !answer.is_empty() {
            effects.push(Effect::Record(Entry::Discarded { answer: answer.id }));
        }
    }

    fn wait(&mut self, error: ModelError, effects: &mut Vec<Effect>) {
        self.state = State::Waiting;
        let attempt = self.failures.0;
        let usual = Duration::from_millis(500).saturating_mul(1 << attempt.min(10).saturating_sub(1));
        // Who says "at once" every time would use up all tries in a moment.
        let delay = usual.min(LONGEST_WAIT).max(error.retry_after.unwrap_or_default());
        effects.push(Effect::Wait { delay, attempt, error });
    }

    /// The answer broke off after calls had been made: what was done is kept, with what became of the rest, so that
    /// the model knows and does nothing twice.
    fn dropped(&mut self, results: Vec<Content>, effects: &mut Vec<Effect>) {
        let kind = Trouble::Broken;
        let words = match self.stop.take() {
            Some(StopReason::Other(words)) => words,
            _ => "the answer broke off".to_owned(),
        };
        let ending = self.ending.take();
        if !self.answer.ran() && ending.is_none() {
            self.forget_answer(effects);
            return self.wait(ModelError::new(kind, words), effects);
        }
        self.made_before.extend(self.answer.made());
        results.into_iter().for_each(|result| self.settle(result, effects));
        self.answer_for_missing(effects);
        self.account(&StopReason::Other("broken".to_owned()), effects);
        self.keep_answer(Vec::new());
        match ending {
            Some(end) => self.finish(end, effects),
            None => self.wait(ModelError::new(kind, words), effects),
        }
    }

    fn hooked(&mut self, words: Option<String>, effects: &mut Vec<Effect>) {
        match words {
            Some(words) if self.in_a_row.hooked < MOST_HOOKED => {
                self.in_a_row.hooked += 1;
                self.say(Message::user(words), Origin::Hook, effects);
                self.unless_over(effects);
            }
            _ => {
                let reason = self.stop.take().unwrap_or(StopReason::EndTurn);
                self.finish(End::Done(reason), effects);
            }
        }
    }

    fn compacted(&mut self, outcome: Result<Vec<Arc<Message>>, String>, effects: &mut Vec<Effect>) {
        match outcome {
            Ok(history) => {
                self.filled = history.iter().map(|message| estimate(message)).sum();
                self.history = history;
                self.ask(effects);
            }
            Err(why) if self.squeezed => {
                let words =
                    format!("the conversation is too long for the model, and cannot be made shorter: {why}");
                self.finish(End::Failed(ModelError::new(Trouble::TooLong, words)), effects);
            }
            // It may still fit; if not, the provider says so.
            Err(_) => {
                self.squeezed = true;
                self.ask(effects);
            }
        }
    }

    /// Stops as soon as every call that was made has its result.
    fn end_early(&mut self, end: End, effects: &mut Vec<Effect>) {
        match self.state {
            State::Idle => {}
            State::Answering => {
                effects.push(Effect::HangUp);
                if self.answer.submitted == 0 {
                    self.answer_for_missing(effects);
                    if !self.answer.is_empty() {
                        self.account(&StopReason::Other("interrupted".to_owned()), effects);
                    }
                    self.keep_answer(Vec::new());
                    return self.finish(end, effects);
                }
                self.account(&StopReason::Other("interrupted".to_owned()), effects);
                self.state = State::Working;
                self.ending = Some(end);
                effects.extend([Effect::InterruptCalls, Effect::CloseCalls]);
            }
            State::Working => {
                if self.ending.is_none() {
                    effects.push(Effect::InterruptCalls);
                }
                self.ending = Some(end);
            }
            State::Dropping => self.ending = Some(end),
            State::Waiting | State::Ending | State::Compacting => self.finish(end, effects),
        }
    }

    fn finish(&mut self, end: End, effects: &mut Vec<Effect>) {
        self.state = State::Idle;
        self.made_before.clear();
        effects.push(Effect::Finish(end));
    }
}
