//! The rim of the executor: tasks, time and events around the [`Board`].

use std::{
    collections::{HashSet, VecDeque},
    panic::AssertUnwindSafe,
    sync::Arc,
    time::Duration,
};

use futures::{
    FutureExt,
    future::{AbortHandle, AbortRegistration, Abortable, Aborted},
};
use serde_json::json;
use tokio::{sync::Notify, time::Instant};

use super::{
    Lane,
    batch::{Batch, BatchState},
    board::Board,
    lane::Way,
    slot::{Entry, Settled, Stop},
};
use crate::{
    access::{Access, Footprint},
    event::Event,
    guard::Key,
    hooks::HookEvent,
    pipeline::{self, Admitted, CallRequest, CallResult, Outcome},
    registry::Pool,
    sync::{Mutex, MutexGuard, lock},
    tool::{ErrorCode, Interrupt, ToolError},
    toolbox::Toolbox,
};

/// Progress that may wait for a slow watcher before the oldest is dropped.
const PROGRESS_BACKLOG: usize = 256;

/// Calls that hooks are told about at the end of a turn; of more, only the number.
const BATCH_CALLS: usize = 1_000;

/// The calls of one assistant message. Calls may be submitted while the message still streams;
/// each starts as soon as nothing earlier stands in its way.
///
/// [`next`](Turn::next) must be polled for time limits to be kept. Must be used inside a tokio runtime.
pub struct Turn {
    core: Arc<Core>,
}

pub(super) struct Core {
    pub(super) toolbox: Arc<Toolbox>,
    pool: Mutex<Arc<Pool>>,
    pub(super) id: Arc<str>,
    pub(super) call_ended: Notify,
    news: Notify,
    state: Mutex<State>,
}

type Job = Result<Box<Admitted>, ToolError>;

pub(super) struct State {
    pub(super) board: Board<Job>,
    ids: HashSet<Arc<str>>,
    outbox: VecDeque<Event>,
    progress_waiting: usize,
    /// Characters given out in results so far.
    pub(super) spent: usize,
    errors: usize,
    closed: bool,
    discarded: bool,
    ended: bool,
    batch: Batch,
}

impl Turn {
    pub(crate) fn new(toolbox: Arc<Toolbox>) -> Self {
        let settings = &toolbox.settings;
        let board = Board::new(settings.max_concurrency, settings.sibling_cancel);
        let state = State {
            board,
            ids: HashSet::new(),
            outbox: VecDeque::new(),
            progress_waiting: 0,
            spent: 0,
            errors: 0,
            closed: false,
            discarded: false,
            ended: false,
            batch: Batch::default(),
        };
        let core = Core {
            pool: Mutex::new(toolbox.pool()),
            toolbox,
            id: uuid::Uuid::now_v7().to_string().into(),
            call_ended: Notify::new(),
            news: Notify::new(),
            state: Mutex::new(state),
        };
        Self { core: Arc::new(core) }
    }

    /// The turn's id.
    pub fn id(&self) -> &str {
        &self.core.id
    }

    /// Lets calls that are submitted from now on use the tools as they are now. For hosts that read calls
    /// which no model was ever sent tools for; a model's calls run against what it was sent.
    pub fn renew_tools(&self) {
        *lock(&self.core.pool) = self.core.toolbox.pool();
    }

    /// Takes a call in. It starts at once if it may.
    pub fn submit(&self, request: CallRequest) {
        let core = &self.core;
        let (call_id, tool) = (request.id.clone(), request.name.clone());
        // An alias is the same call.
        let pool = core.pool();
        let name = pool.get(&tool).map_or(&*tool, |found| found.spec().name.as_ref());
        let key = Key::of(name, &request.input);
        let admit = AssertUnwindSafe(|| pipeline::admit(&core.toolbox, &pool, request));
        let admitted = std::panic::catch_unwind(admit)
            .unwrap_or_else(|panic| Err(pipeline::panicked(&tool, panic.as_ref())));
        self.take_in(call_id, tool, key, admitted);
    }

    /// Takes in something that was meant as a call and is none, so that it gets its result too.
    pub fn submit_broken(&self, id: &str, why: String) {
        let key = Key::of("", &why.as_str().into());
        self.take_in(id.into(), "".into(), key, Err(ToolError::new(ErrorCode::InvalidInput, why)));
    }

    fn take_in(&self, call_id: Arc<str>, tool: Arc<str>, key: Key, mut admitted: Job) {
        let core = &self.core;
        let mut state = core.enter();
        if !state.ids.insert(call_id.clone()) {
            let message =
                format!("call id \"{call_id}\" was already used in this turn: every call needs its own");
            admitted = Err(ToolError::new(ErrorCode::InvalidInput, message));
        }
        let entry = core.entry(&state.board, call_id.clone(), tool.clone(), key, &admitted);
        // A call that comes after the end reopens the turn: it too gets its result.
        state.ended = false;
        state.batch.state = BatchState::Open;
        core.put(&mut state, Event::Queued { call_id, tool });
        state.board.push(entry, admitted);
        core.advance(&mut state);
    }

    /// No more calls will come.
    pub fn close(&self) {
        lock(&self.core.state).closed = true;
        self.core.news.notify_one();
    }

    /// How many calls have no result out yet, for callers that want to hold back.
    pub fn outstanding(&self) -> usize {
        lock(&self.core.state).board.outstanding()
    }

    /// The next event: progress and the like at once, results in call order. `None` when the
    /// turn is closed and everything is out, or discarded.
    pub async fn next(&self) -> Option<Event> {
        loop {
            let deadline = {
                let mut state = lock(&self.core.state);
                if let Some(event) = state.outbox.pop_front() {
                    state.progress_waiting -= usize::from(matches!(event, Event::Progress { .. }));
                    return Some(event);
                }
                if state.ended || state.discarded {
                    return None;
                }
                if state.closed && state.board.all_out() && self.core.batch_is_over(&mut state) {
                    state.ended = true;
                    let end = Event::TurnEnd { calls: state.board.submitted(), errors: state.errors };
                    self.core.toolbox.observe(&self.core.id, &end);
                    return Some(end);
                }
                state.board.next_deadline()
            };
            match deadline {
                None => self.core.news.notified().await,
                Some(deadline) => tokio::select! {
                    () = self.core.news.notified() => {}
                    () = tokio::time::sleep_until(deadline) => self.core.expire(),
                },
            }
        }
    }

    /// Stops everything: each call without a result gets one that says so.
    pub fn cancel(&self) {
        self.core.stop(Stop::Cancel);
    }

    /// The person typed: what may be cut stops, what must not be finishes, nothing new starts.
    pub fn interrupt(&self) {
        self.core.stop(Stop::Interrupt);
    }

    /// The model's stream failed and will be asked for again: nothing more is emitted, queued
    /// calls never start, running ones are cancelled. Gives the results nobody has received, for
    /// the record.
    pub fn discard(&self) -> Vec<Arc<CallResult>> {
        self.core.discard()
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.core.discard();
    }
}

impl Core {
    /// The tools that calls are taken in with.
    pub(super) fn pool(&self) -> Arc<Pool> {
        lock(&self.pool).clone()
    }

    fn entry(&self, board: &Board<Job>, call_id: Arc<str>, tool: Arc<str>, key: Key, job: &Job) -> Entry {
        let Ok(admitted) = job else {
            // A call that only fails does nothing; but what the model meant by it is not known,
            // so calls behind it keep their order.
            return Entry {
                call_id,
                tool,
                footprint: Footprint::exclusive(),
                declared: Footprint::exclusive(),
                unsettled: false,
                read_only: true,
                interrupt: Interrupt::Cancel,
                failure_spreads: false,
                key,
                twin: false,
            };
        };
        let facts = &admitted.tool.spec().facts;
        Entry {
            call_id,
            tool,
            footprint: admitted.access.footprint().clone(),
            declared: admitted.access.footprint().clone(),
            unsettled: admitted.hooked,
            read_only: admitted.access.read_only(),
            interrupt: admitted.access.interrupt(facts.interrupt),
            failure_spreads: facts.failure_spreads,
            key,
            twin: !admitted.access.read_only()
                && (board.repeats(key) || lock(&self.toolbox.guard).has_failed(key)),
        }
    }

    /// Locks the state, and tells the board what time it is.
    fn enter(&self) -> MutexGuard<'_, State> {
        let mut state = lock(&self.state);
        state.board.set_time(Instant::now());
        state
    }

    /// Fires the end of the turn once; false while hooks are busy with it.
    fn batch_is_over(self: &Arc<Self>, state: &mut State) -> bool {
        if state.batch.state == BatchState::Open && !state.batch.calls.is_empty() {
            state.batch.state = BatchState::Fired;
            let told = json!({
                "tool_calls": std::mem::take(&mut state.batch.calls),
                "calls": state.board.submitted(), "errors": state.errors,
            });
            let core = self.clone();
            // Whoever waits for the next event may stop waiting; hooks run once all the same.
            tokio::spawn(async move {
                for run in core.toolbox.turning_point(HookEvent::POST_TOOL_BATCH, "", told).await {
                    core.post(Event::Hook { call_id: None, run });
                }
                lock(&core.state).batch.state = BatchState::Done;
                core.news.notify_one();
            });
        }
        state.batch.state != BatchState::Fired
    }

    /// Adds an event for the watcher and tells the observers.
    fn put(&self, state: &mut State, event: Event) {
        self.toolbox.observe(&self.id, &event);
        if state.discarded || state.ended {
            return;
        }
        if matches!(event, Event::Progress { .. }) {
            state.progress_waiting += 1;
            if state.progress_waiting > PROGRESS_BACKLOG
                && let Some(oldest) =
                    state.outbox.iter().position(|event| matches!(event, Event::Progress { .. }))
            {
                state.outbox.remove(oldest);
                state.progress_waiting -= 1;
            }
        }
        // Whoever waits has seen an empty outbox; while it is not empty, nobody does.
        let waited_for = state.outbox.is_empty();
        state.outbox.push_back(event);
        if waited_for {
            self.news.notify_one();
        }
    }

    pub(super) fn post(&self, event: Event) {
        self.put(&mut lock(&self.state), event);
    }

    /// Gives out what is ready and starts what may start.
    fn advance(self: &Arc<Self>, state: &mut State) {
        self.give_out(state);
        while let Some(run) = self.start_next(state) {
            tokio::spawn(self.clone().work_off(run));
        }
        self.drop_after_grace(state);
    }

    fn give_out(&self, state: &mut State) {
        for (call_id, is_error, duration) in state.board.take_settled() {
            self.put(state, Event::Finished { call_id, is_error, duration });
        }
        while let Some((number, outcome)) = state.board.next_outcome() {
            let result = Arc::new(self.seal(state, number, outcome));
            state.errors += usize::from(result.is_error);
            if state.batch.calls.len() < BATCH_CALLS && self.toolbox.hooks.listens(HookEvent::POST_TOOL_BATCH)
            {
                let told = json!({
                    "tool_name": result.tool, "tool_use_id": result.call_id, "is_error": result.is_error,
                });
                state.batch.calls.push(told);
            }
            self.put(state, Event::Result(result));
        }
        state.board.drop_front();
    }

    /// The next call that may start, if any.
    fn start_next(self: &Arc<Self>, state: &mut State) -> Option<Run> {
        let (number, job) = state.board.start_next()?;
        let slot = state.board.slot(number)?;
        let (abort, registration) = AbortHandle::new_pair();
        slot.abort = Some(abort);
        let lane = Lane(Arc::new(Way {
            core: self.clone(),
            number,
            call_id: slot.entry.call_id.clone(),
            tool: slot.entry.tool.clone(),
            key: slot.entry.key,
            cancel: slot.cancel.clone(),
        }));
        Some(Run { lane, job, registration })
    }

    /// Runs a call, and after it whatever may start then: a task is reused rather than made anew
    /// for each of many small calls.
    async fn work_off(self: Arc<Self>, first: Run) {
        let mut next = Some(first);
        while let Some(Run { lane, job, registration }) = next {
            let call = AssertUnwindSafe(Box::pin(pipeline::run_call(&lane, job))).catch_unwind();
            let outcome = match Abortable::new(call, registration).await {
                Ok(Ok(outcome)) => Some(outcome),
                Ok(Err(panic)) => {
                    let error = pipeline::panicked(lane.tool(), panic.as_ref());
                    Some(pipeline::synthetic(lane.call_id().clone(), lane.tool().clone(), error))
                }
                // Stopped and given up on; its outcome was settled when it was told to stop.
                Err(Aborted) => None,
            };
            next = self.finish(&lane, outcome);
        }
    }

    pub(super) fn begin(&self, number: usize, limit: Duration, started: Event) {
        let mut state = lock(&self.state);
        // A limit beyond the end of time is none.
        state.board.begin(number, Instant::now().checked_add(limit));
        self.put(&mut state, started);
    }

    pub(super) fn end_of_work(&self, number: usize) {
        lock(&self.state).board.end_of_work(number);
    }

    pub(super) fn set_aside(self: &Arc<Self>, number: usize) {
        let mut state = self.enter();
        state.board.set_aside(number);
        self.advance(&mut state);
        drop(state);
        self.call_ended.notify_waiters();
    }

    pub(super) fn settle(self: &Arc<Self>, number: usize, access: &Access) -> Settled {
        let mut state = self.enter();
        let before = state.board.running();
        let settled = state.board.settle(number, access);
        let gave_up_its_place = state.board.running() < before;
        self.advance(&mut state);
        drop(state);
        // Others may be waiting for just such a place.
        if gave_up_its_place {
            self.call_ended.notify_waiters();
        }
        settled
    }

    /// Takes a call's outcome in. Gives the next call that may start to the caller's own task.
    fn finish(self: &Arc<Self>, lane: &Lane, mut outcome: Option<Outcome>) -> Option<Run> {
        let mut state = self.enter();
        let number = lane.0.number;
        let was_alone = state.board.slot(number).is_some_and(|slot| slot.entry.footprint.is_exclusive());
        if let Some(outcome) = outcome.as_mut().filter(|_| state.board.is_open(number)) {
            self.apply_commuting(outcome);
        }
        state.board.finish(number, outcome);
        self.give_out(&mut state);
        if was_alone {
            self.review_queue(&mut state);
        }
        let next = self.start_next(&mut state);
        self.advance(&mut state);
        drop(state);
        self.call_ended.notify_waiters();
        next
    }

    /// What queued calls touch may look different now.
    fn review_queue(&self, state: &mut State) {
        let (place, policy) = (self.toolbox.place(), self.toolbox.policy());
        state.board.review_queue(|job| {
            let admitted = job.as_mut().ok()?;
            let tool = admitted.tool.as_ref();
            let look = AssertUnwindSafe(|| Access::of(tool, &admitted.input, &place, &policy));
            admitted.access = std::panic::catch_unwind(look).unwrap_or_else(|_| Access::unknown());
            Some(admitted.access.clone())
        });
    }

    fn expire(self: &Arc<Self>) {
        let mut state = self.enter();
        state.board.expire();
        self.advance(&mut state);
    }

    fn stop(self: &Arc<Self>, stop: Stop) {
        let mut state = self.enter();
        state.board.stop_all(stop);
        self.advance(&mut state);
        drop(state);
        self.call_ended.notify_waiters();
    }

    fn discard(self: &Arc<Self>) -> Vec<Arc<CallResult>> {
        let mut state = self.enter();
        let mut left: Vec<Arc<CallResult>> = state.outbox.drain(..).filter_map(Event::into_result).collect();
        self.forget_unseen(&state, &left);
        state.progress_waiting = 0;
        state.discarded = true;
        state.board.stop_all(Stop::Discard);
        self.drop_after_grace(&mut state);
        while let Some((_, outcome)) = state.board.next_outcome() {
            let result = Arc::new(outcome.result);
            self.toolbox.observe(&self.id, &Event::Result(result.clone()));
            left.push(result);
        }
        self.news.notify_one();
        left
    }

    /// A stopped tool may tidy up for a moment; then its future is dropped.
    fn drop_after_grace(&self, state: &mut State) {
        let handles = state.board.take_told();
        if handles.is_empty() {
            return;
        }
        let grace = self.toolbox.settings.stop_grace;
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                tokio::time::sleep(grace).await;
                handles.iter().for_each(AbortHandle::abort);
            });
        } else {
            handles.iter().for_each(AbortHandle::abort);
        }
    }
}

/// A call that is about to run.
struct Run {
    lane: Lane,
    job: Job,
    registration: AbortRegistration,
}
