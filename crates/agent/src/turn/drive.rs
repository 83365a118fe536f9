//! Does what the [`Machine`] says: asks the model, runs calls while the answer still streams, writes things down
//! before they happen, and tells whoever watches.

use std::{
    pin::Pin,
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{StreamExt, stream::BoxStream};
use gripper_runtime::{
    CallRequest, CallResult, ErrorCode, Event, Toolbox, Turn,
    hooks::{After, HookEvent},
};
use serde_json::{Value, json};
use tokio::{sync::mpsc, time::Sleep};
use tokio_util::sync::CancellationToken;

use super::{
    machine::Machine,
    step::{Effect, End, Input},
    terms::{AgentEvent, Alone, Config, Denial, Host, Outcome},
    tools::Advertised,
};
use crate::{
    compact,
    message::{Content, Message},
    model::{Model, ModelError, ModelEvent, Request, Trouble, Usage},
    session::{Entry, Origin, Transcript},
    structured_output::Delivery,
};

/// Times a model may have too much to do before another takes over.
const OVERLOADS: u32 = 3;

/// How long the calls of an answer that broke off may take to finish before they are dropped.
const DROP_GRACE: Duration = Duration::from_secs(2);

/// An agent: a conversation with a model that has tools.
pub struct Agent {
    /// The tools.
    pub toolbox: Arc<Toolbox>,
    model: Arc<dyn Model>,
    config: Config,
    machine: Machine,
    transcript: Option<Transcript>,
    host: Arc<dyn Host>,
    events: mpsc::Sender<AgentEvent>,
    advertised: Advertised,
    ran: compact::Ran,
}

/// What is under way in a piece of work.
#[derive(Default)]
struct Work {
    stop: CancellationToken,
    stream: Option<BoxStream<'static, Result<ModelEvent, ModelError>>>,
    asked: Option<Instant>,
    waited: Duration,
    turn: Option<Turn>,
    timer: Option<Pin<Box<Sleep>>>,
    /// The answer broke off, and its calls have until the timer ends.
    dropping: bool,
    /// Of the calls of the present answer.
    inputs: Vec<(String, Value)>,
    denials: Vec<Denial>,
    hooked: bool,
    end: Option<End>,
}

impl Agent {
    /// An agent that goes on from `history` and tells `events` what happens.
    pub fn new(
        toolbox: Arc<Toolbox>,
        model: Arc<dyn Model>,
        config: Config,
        history: Vec<Arc<Message>>,
        events: mpsc::Sender<AgentEvent>,
    ) -> Self {
        let machine = Machine::new(history, model.window(), config.limits);
        Self {
            toolbox,
            model,
            machine,
            config,
            transcript: None,
            host: Arc::new(Alone),
            events,
            advertised: Advertised::default(),
            ran: compact::Ran::default(),
        }
    }

    /// Writes the conversation down.
    #[must_use]
    pub fn recorded(mut self, transcript: Option<Transcript>) -> Self {
        self.transcript = transcript;
        self
    }

    /// Whoever it works for.
    #[must_use]
    pub fn for_host(mut self, host: Arc<dyn Host>) -> Self {
        self.host = host;
        self
    }

    /// The conversation so far.
    pub fn history(&self) -> &[Arc<Message>] {
        self.machine.history()
    }

    /// Works on `prompt` until the work is over or `stop` is set. The conversation can go on afterwards in any case.
    pub async fn run(&mut self, prompt: Message, stop: &CancellationToken) -> Outcome {
        let began = Instant::now();
        let (usage, cost) = (self.machine.usage, self.machine.cost);
        let mut work = Work { stop: stop.clone(), ..Work::default() };
        let input = match self.admit(prompt).await {
            Ok(message) => Some(Input::Prompt(message, Origin::Prompt)),
            Err(end) => {
                work.end = Some(end);
                None
            }
        };
        if let Some(input) = input {
            self.step(input, &mut work).await;
        }
        let mut stopped = false;
        while work.end.is_none() {
            let input = tokio::select! {
                biased;
                () = stop.cancelled(), if !stopped => {
                    stopped = true;
                    Input::Interrupt
                }
                event = next_event(&mut work.stream) => self.heard(event, &mut work).await,
                event = next_call_event(&work.turn) => match self.called(event, &mut work).await {
                    Some(input) => input,
                    None => continue,
                },
                () = wait(&mut work.timer) => work.time_is_up(),
            };
            self.step(input, &mut work).await;
        }
        self.machine.step(Input::Spent(self.config.till.settle(self.machine.cost)));
        let end = work.end.unwrap_or(End::Interrupted);
        self.record(Entry::Ended { reason: end.to_string() }).await;
        if let End::Failed(error) = &end {
            let told = json!({ "error": error.message });
            self.toolbox.consult(HookEvent::STOP_FAILURE, "", told).await;
        }
        Outcome {
            end,
            text: self.machine.words.clone(),
            turns: self.machine.turns,
            usage: difference(self.machine.usage, usage),
            cost: self.machine.cost - cost,
            took: (began.elapsed(), work.waited),
            denials: work.denials,
        }
    }

    /// What hooks say to a prompt, and what the model should know with it.
    async fn admit(&mut self, mut prompt: Message) -> Result<Message, End> {
        // What one agent says to another is no prompt of a person.
        let said = if self.toolbox.agent().depth == 0 {
            let told = json!({ "prompt": prompt.text() });
            self.toolbox.consult(HookEvent::USER_PROMPT_SUBMIT, "", told).await
        } else {
            After::default()
        };
        if let Some(reason) = self.toolbox.halted() {
            return Err(End::Halted(reason));
        }
        if !said.objections.is_empty() {
            return Err(End::Halted(said.objections.join("\n")));
        }
        prompt.content.extend(said.context.into_iter().map(Content::text));
        prompt.content.extend(self.context(true));
        Ok(prompt)
    }

    /// What the model should know besides.
    fn context(&mut self, prompted: bool) -> Vec<Content> {
        let told = self.host.look_around(prompted).into_iter();
        let messages = self.toolbox.take_messages();
        let names = self.advertised.news(&self.toolbox, self.config.deferral, self.model.window());
        told.chain(messages).chain(names).map(Content::text).collect()
    }

    /// Lets the machine take one step and does what follows, until there is something to wait for.
    async fn step(&mut self, input: Input, work: &mut Work) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            for effect in self.machine.step(input) {
                inputs.extend(self.perform(effect, work).await);
            }
        }
    }

    async fn perform(&mut self, effect: Effect, work: &mut Work) -> Option<Input> {
        match effect {
            Effect::Record(entry) => self.record(entry).await,
            Effect::Ask { streamed } => self.ask(streamed, work),
            Effect::Submit { id, name, input } => {
                if let Some(turn) = &work.turn {
                    work.inputs.push((id.clone(), input.clone()));
                    self.ran.note(&id, turn.id());
                    turn.submit(CallRequest::new(&id, &name, input));
                }
            }
            Effect::SubmitBroken { id, why } => {
                if let Some(turn) = &work.turn {
                    turn.submit_broken(&id, why);
                }
            }
            Effect::CloseCalls => work.turn.iter().for_each(Turn::close),
            Effect::InterruptCalls => work.turn.iter().for_each(Turn::interrupt),
            Effect::HangUp => work.hang_up(),
            Effect::DropCalls => {
                work.hang_up();
                work.turn.iter().for_each(Turn::close);
                work.dropping = true;
                work.timer = Some(Box::pin(tokio::time::sleep(DROP_GRACE)));
            }
            Effect::Wait { delay, attempt, error } => {
                self.fall_back(attempt, &error).await;
                let delay = delay.mul_f64(1.0 + f64::from(uuid::Uuid::new_v4().as_bytes()[0]) / 1024.0);
                work.timer = Some(Box::pin(tokio::time::sleep(delay)));
                let of = self.config.limits.retries;
                self.tell(AgentEvent::Retrying { delay, attempt, of, error }).await;
            }
            Effect::Compact => {
                let stop = work.stop.clone();
                let shorter = tokio::select! {
                    shorter = self.compact() => shorter,
                    () = stop.cancelled() => Err("it was interrupted".to_owned()),
                };
                return Some(Input::Compacted(shorter));
            }
            Effect::AskHooks => return Some(self.ask_hooks(work).await),
            Effect::Finish(end) => {
                work.hang_up();
                work.turn = None;
                work.end = Some(end);
            }
        }
        None
    }

    /// Another model takes over from one that has had too much to do for too long.
    async fn fall_back(&mut self, attempt: u32, error: &ModelError) {
        if error.kind == Trouble::Overloaded
            && attempt >= OVERLOADS
            && let Some(other) = self.config.fallback.take()
        {
            let words = format!("{} has too much to do: {other} takes over", self.config.model);
            self.config.model = other;
            self.tell(AgentEvent::Warning(words)).await;
        }
    }

    async fn tell(&self, event: AgentEvent) {
        // Whoever watched may have gone; the work goes on.
        self.events.send(event).await.ok();
    }

    async fn record(&mut self, entry: Entry) {
        if let Some(transcript) = &mut self.transcript
            && let Err(error) = transcript.append(&entry)
        {
            let path = transcript.path().display();
            let words = format!("the session cannot be written to {path} and will not be resumable: {error}");
            self.transcript = None;
            self.tell(AgentEvent::Warning(words)).await;
        }
        self.tell(AgentEvent::Recorded(entry)).await;
    }

    fn ask(&mut self, streamed: bool, work: &mut Work) {
        let tools = self.advertised.now(&self.toolbox, self.config.deferral, self.model.window());
        let request = Request {
            model: self.config.model.clone(),
            system: self.config.system.clone(),
            tools,
            messages: self.machine.history().to_vec(),
            max_tokens: self.config.max_tokens,
            thinking: self.config.thinking,
            streamed,
        };
        work.inputs.clear();
        work.turn = Some(self.toolbox.turn());
        work.asked = Some(Instant::now());
        work.stream = Some(self.model.stream(request));
    }

    async fn heard(&mut self, event: Option<Result<ModelEvent, ModelError>>, work: &mut Work) -> Input {
        match event {
            Some(Ok(event)) => {
                if matches!(event, ModelEvent::Stop(_)) {
                    work.hang_up();
                }
                self.tell(AgentEvent::Model(event.clone())).await;
                Input::Model(event)
            }
            Some(Err(error)) => {
                work.hang_up();
                Input::Failed(error)
            }
            None => {
                work.hang_up();
                Input::Failed(ModelError::new(Trouble::Broken, "the answer ended before it was complete"))
            }
        }
    }

    async fn called(&mut self, event: Option<Event>, work: &mut Work) -> Option<Input> {
        let Some(event) = event else {
            work.turn = None;
            return None;
        };
        let input = match &event {
            Event::Started { call_id, .. } => Some(Input::Began(call_id.to_string())),
            Event::Result(result) => {
                self.note_failure(result, work);
                Some(Input::Result(result_block(result)))
            }
            Event::TurnEnd { .. } if work.dropping => Some(work.time_is_up()),
            Event::TurnEnd { .. } => Some(self.calls_over(work).await),
            _ => None,
        };
        self.tell(AgentEvent::Call(event)).await;
        input
    }

    /// Failures that somebody counts.
    fn note_failure(&self, result: &CallResult, work: &mut Work) {
        if let Some(ErrorCode::Denied | ErrorCode::HookBlocked) = result.error_code {
            let id = &*result.call_id;
            let input = work.inputs.iter().find(|(call, _)| call == id).map(|(_, input)| input.clone());
            work.denials.push(Denial {
                tool_name: result.tool.to_string(),
                tool_use_id: id.to_owned(),
                tool_input: input.unwrap_or_default(),
            });
        }
        if result.is_error {
            self.config.delivery.iter().for_each(|delivery| delivery.refused(&result.tool));
        }
    }

    async fn calls_over(&mut self, work: &mut Work) -> Input {
        work.turn = None;
        self.machine.step(Input::Spent(self.config.till.settle(self.machine.cost)));
        if let Some(reason) = self.toolbox.halted() {
            self.machine.step(Input::Stop(End::Halted(reason)));
        }
        let delivered = self.config.delivery.as_ref().is_some_and(Delivery::is_done);
        if let Some(why) = self.config.delivery.as_ref().and_then(Delivery::given_up) {
            self.machine.step(Input::Stop(End::NotDelivered(why)));
        }
        let context = if delivered { Vec::new() } else { self.context(false) };
        Input::CallsOver { context, delivered }
    }

    /// The model believes it is done: what must be delivered may be missing, and hooks may see it otherwise.
    async fn ask_hooks(&mut self, work: &mut Work) -> Input {
        if let Some(delivery) = &self.config.delivery {
            match delivery.remind() {
                Ok(Some(words)) => return Input::Hooked(Some(words)),
                Ok(None) => {}
                Err(why) => return Input::Stop(End::NotDelivered(why)),
            }
        }
        let told = json!({ "stop_hook_active": work.hooked, "last_assistant_message": self.machine.words });
        let (event, kind) = match self.toolbox.agent() {
            main if main.depth == 0 => (HookEvent::STOP, ""),
            other => (HookEvent::SUBAGENT_STOP, &*other.kind),
        };
        let said = self.toolbox.consult(event, kind, told).await;
        if let Some(reason) = self.toolbox.halted() {
            return Input::Stop(End::Halted(reason));
        }
        work.hooked = !said.objections.is_empty();
        Input::Hooked(work.hooked.then(|| said.objections.join("\n")))
    }

    async fn compact(&mut self) -> Result<Vec<Arc<Message>>, String> {
        let told = json!({ "trigger": "auto" });
        self.toolbox.consult(HookEvent::PRE_COMPACT, "auto", told.clone()).await;
        let shorter = compact::shorten(&*self.model, &self.config.model, self.machine.history()).await?;
        self.machine.usage += shorter.usage;
        if let Some(price) = &self.config.limits.price {
            self.machine.step(Input::Spent(price.cost(&shorter.usage)));
        }
        self.ran.forget(&shorter.messages, &self.toolbox);
        let compact::Shorter { messages, summary, .. } = shorter;
        self.record(Entry::Compacted { summary, messages: messages.clone() }).await;
        self.toolbox.consult(HookEvent::POST_COMPACT, "auto", told).await;
        Ok(messages)
    }
}

impl Work {
    /// The end of a wait before another try, or of the moment that calls of a broken answer had.
    fn time_is_up(&mut self) -> Input {
        self.timer = None;
        if !std::mem::take(&mut self.dropping) {
            return Input::Waited;
        }
        let left = self.turn.take().map(|turn| turn.discard()).unwrap_or_default();
        Input::Dropped(left.iter().map(|result| result_block(result)).collect())
    }

    fn hang_up(&mut self) {
        self.stream = None;
        if let Some(asked) = self.asked.take() {
            self.waited += asked.elapsed();
        }
    }
}

async fn next_event(
    stream: &mut Option<BoxStream<'static, Result<ModelEvent, ModelError>>>,
) -> Option<Result<ModelEvent, ModelError>> {
    match stream {
        Some(stream) => stream.next().await,
        None => std::future::pending().await,
    }
}

async fn next_call_event(turn: &Option<Turn>) -> Option<Event> {
    match turn {
        Some(turn) => turn.next().await,
        None => std::future::pending().await,
    }
}

async fn wait(timer: &mut Option<Pin<Box<Sleep>>>) {
    match timer {
        Some(timer) => timer.await,
        None => std::future::pending().await,
    }
}

/// A result as the conversation carries it.
fn result_block(result: &CallResult) -> Content {
    let mut content: Vec<Content> = result.content.iter().map(Content::of_block).collect();
    // Some providers refuse a failure without words.
    if content.is_empty() && result.is_error {
        content.push(Content::text(result.error_code.map_or("failed", ErrorCode::name)));
    }
    Content::ToolResult { tool_use_id: result.call_id.to_string(), content, is_error: result.is_error }
}

fn difference(now: Usage, before: Usage) -> Usage {
    Usage {
        input_tokens: now.input_tokens - before.input_tokens,
        output_tokens: now.output_tokens - before.output_tokens,
        cache_creation_input_tokens: now.cache_creation_input_tokens - before.cache_creation_input_tokens,
        cache_read_input_tokens: now.cache_read_input_tokens - before.cache_read_input_tokens,
    }
}
