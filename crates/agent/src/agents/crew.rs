//! The agents of a session: starts them, holds them to their limits, and keeps what becomes of those that work in
//! the background.

use std::{
    collections::{BTreeSet, HashMap},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use gripper_runtime::{
    Child, Deferral, DynTool, ErrorCode, Event, SubAgent, ToolError, Toolbox,
    approve::Worker,
    hooks::HookEvent,
    in_both,
    permissions::Source,
    tool::{Agent as Who, ProgressSender},
};
use serde_json::json;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Definition, Kinds, ModelChoice,
    background::Background,
    watch::{Activity, Watch},
};
use crate::{
    message::{Content, Message},
    model::{ModelEvent, config::Chosen},
    session::{self, Header, SessionError, Transcript},
    structured_output::Delivery,
    turn::{Agent, AgentEvent, Config, Host, Limits, Outcome, Till},
};

/// Agents at work at once, and started in a session.
const MOST_AT_WORK: usize = 20;
const MOST_STARTED: usize = 200;

/// Which models there are besides the one that answers the person.
pub trait Models: Send + Sync {
    /// The one for small things.
    fn fast(&self) -> Option<Chosen>;

    /// The one with this name, or why there is none.
    fn named(&self, name: &str) -> Result<Chosen, String>;
}

/// What the agents of a session are made with.
pub struct Outfit {
    /// The kinds there are.
    pub kinds: Kinds,
    /// The models there are.
    pub models: Arc<dyn Models>,
    /// The folder of their transcripts; without one none can be gone on with.
    pub transcripts: Option<PathBuf>,
    /// How deep agents may start others: 1 for the main agent only.
    pub max_depth: u8,
    /// When tools are announced by name only.
    pub deferral: Deferral,
    /// Who wants to know what agents say and do while the call that started them goes on.
    pub watcher: Option<mpsc::Sender<AgentEvent>>,
}

/// The agents of a session.
#[derive(Clone)]
pub struct Crew(Arc<Inner>);

struct Inner {
    outfit: Outfit,
    state: Mutex<State>,
    background: Background,
    tracker: TaskTracker,
    over: CancellationToken,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) members: HashMap<Arc<str>, Member>,
    /// Ends what an agent has started in the background, with the agent.
    ends: HashMap<Arc<str>, CancellationToken>,
    started: usize,
    host: Option<Weak<dyn Host>>,
}

/// An agent that may start others.
#[derive(Clone)]
pub struct Member {
    /// Its tools.
    pub toolbox: Weak<Toolbox>,
    /// The model that answers it.
    pub model: Chosen,
    /// What all agents of the session read about where they are.
    pub about: Vec<Arc<str>>,
    /// Where those it starts put down what they cost.
    pub till: Till,
    /// What it may cost with them.
    pub budget: Option<f64>,
}

/// What an agent is asked to do.
pub(crate) struct Order {
    pub(crate) kind: String,
    pub(crate) prompt: String,
    /// What people call it.
    pub(crate) label: String,
    pub(crate) model: Option<ModelChoice>,
    pub(crate) resume: Option<String>,
    pub(crate) background: bool,
    pub(crate) max_turns: Option<u32>,
    pub(crate) allowed_tools: Option<Vec<String>>,
    /// The call that asks.
    pub(crate) call: Arc<str>,
}

/// An agent that is ready to begin.
pub(crate) struct Ready {
    pub(crate) id: Arc<str>,
    pub(crate) label: String,
    /// It works while the call that started it goes on.
    pub(crate) background: bool,
    pub(crate) activity: Activity,
    starter: Member,
    above: Arc<Toolbox>,
    agent: Agent,
    prompt: Message,
    events: mpsc::Receiver<AgentEvent>,
    call: Arc<str>,
    crew: Crew,
}

impl Crew {
    /// A crew without anybody.
    pub fn new(outfit: Outfit) -> Self {
        let (state, background, tracker, over) = Default::default();
        Self(Arc::new(Inner { outfit, state, background, tracker, over }))
    }

    /// The tools with which agents are started and listened to.
    pub fn tools(&self) -> Vec<Arc<dyn DynTool>> {
        vec![
            gripper_runtime::erase(crate::agent_output_tool::AgentOutputTool::new(self.clone())),
            gripper_runtime::erase(crate::task::Task::new(self.clone())),
        ]
    }

    /// The main agent, and whoever takes in what changes.
    pub fn lead(&self, who: &Who, member: Member, host: Weak<dyn Host>) {
        let mut state = self.state();
        state.members.insert(who.id.clone(), member);
        state.ends.insert(who.id.clone(), self.0.over.clone());
        state.host = Some(host);
    }

    /// The kinds there are.
    pub fn kinds(&self) -> &Kinds {
        &self.0.outfit.kinds
    }

    /// Ends all agents, and waits until they have.
    pub async fn close(&self) {
        self.0.over.cancel();
        self.0.tracker.close();
        self.0.tracker.wait().await;
    }

    pub(crate) fn background(&self) -> &Background {
        &self.0.background
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes an agent ready for what `by` wants done.
    pub(crate) async fn prepare(&self, by: &Who, order: Order) -> Result<Ready, ToolError> {
        let gone = || ToolError::new(ErrorCode::Failed, "the agent that calls has ended");
        let starter = self.state().members.get(&by.id).cloned().ok_or_else(gone)?;
        self.state().room()?;
        let above = starter.toolbox.upgrade().ok_or_else(gone)?;
        if by.depth >= self.0.outfit.max_depth {
            let words =
                format!("agents may start others {} deep, and that is reached", self.0.outfit.max_depth);
            return Err(ToolError::new(ErrorCode::Denied, words + ": do the work yourself"));
        }
        let budget = starter.budget.map(|budget| budget - starter.till.total());
        if budget.is_some_and(|left| left <= 0.0) {
            return Err(ToolError::new(ErrorCode::Denied, "the budget is used up"));
        }
        let kind = self.kind(&order.kind)?;
        let model = self.model(&starter, kind, order.model.as_ref())?;
        let (id, transcript, history) = self.past(&order, &above, &model.name)?;
        let background = order.background || kind.background;
        let toolbox = above.child(Child {
            id: id.clone(),
            kind: kind.name.as_str().into(),
            viewer: SubAgent {
                custom: kind.source.is_some(),
                background,
                explores: kind.explores,
                may_delegate: by.depth + 1 < self.0.outfit.max_depth,
                granted: granted(kind, order.allowed_tools.as_deref()),
            },
            mode: kind.mode,
            denied: (kind.denied.clone(), kind.source.clone().unwrap_or(Source::command_line())),
            more: Vec::new(),
            approver: self.worker(&above),
            hooked: true,
        });
        let told = json!({ "agent_id": &*id, "agent_type": kind.name });
        let said = toolbox.consult(HookEvent::SUBAGENT_START, &kind.name, told).await;
        if let Some(reason) = said.objections.first() {
            return Err(ToolError::new(
                ErrorCode::HookBlocked,
                format!("a hook does not let it start: {reason}"),
            ));
        }
        let mut prompt = Message::user(order.prompt);
        prompt.content.extend(said.context.into_iter().map(Content::text));
        let till = Till::default();
        let member = Member {
            toolbox: Arc::downgrade(&toolbox),
            model: model.clone(),
            about: starter.about.clone(),
            till: till.clone(),
            budget,
        };
        self.enlist(&id, member)?;
        let mut system: Vec<Arc<str>> = vec![kind.prompt.as_str().into()];
        system.extend(starter.about.iter().cloned());
        let limits = Limits { turns: fewest(kind.max_turns, order.max_turns), budget, ..Limits::default() };
        let config = self.config(&model, system, limits, till, None);
        let (sender, events) = mpsc::channel(64);
        let mut agent = Agent::new(toolbox, model.model, config, history, sender).recorded(transcript);
        if let Some(host) = self.state().host.clone() {
            agent = agent.for_host(Arc::new(Below(host)));
        }
        let (label, activity) = (order.label, Activity::default());
        let (call, crew) = (order.call, self.clone());
        Ok(Ready { id, label, background, activity, starter, above, agent, prompt, events, call, crew })
    }

    pub(super) fn models(&self) -> &dyn Models {
        &*self.0.outfit.models
    }

    pub(super) fn config(
        &self,
        model: &Chosen,
        system: Vec<Arc<str>>,
        limits: Limits,
        till: Till,
        delivery: Option<Delivery>,
    ) -> Config {
        Config {
            model: model.name.clone(),
            fallback: None,
            system,
            max_tokens: model.longest_answer(),
            thinking: None,
            deferral: self.0.outfit.deferral,
            limits: Limits { price: model.price, ..limits },
            delivery,
            till,
        }
    }

    fn kind(&self, name: &str) -> Result<&Definition, ToolError> {
        self.kinds().get(name).ok_or_else(|| {
            let known: Vec<&str> = self.kinds().iter().map(|kind| kind.name.as_str()).collect();
            let words = format!("there is no agent type \"{name}\": there are {}", known.join(", "));
            ToolError::new(ErrorCode::InvalidInput, words)
        })
    }

    fn model(
        &self,
        starter: &Member,
        kind: &Definition,
        wanted: Option<&ModelChoice>,
    ) -> Result<Chosen, ToolError> {
        let models = &self.0.outfit.models;
        let choose = |choice: &ModelChoice| match choice {
            ModelChoice::Inherit => Ok(starter.model.clone()),
            ModelChoice::Fast => Ok(models.fast().unwrap_or_else(|| starter.model.clone())),
            ModelChoice::Named(name) => models.named(name),
        };
        match wanted {
            Some(choice) => choose(choice).map_err(|why| ToolError::new(ErrorCode::InvalidInput, why)),
            // A description may come from where other models are to be had.
            None => Ok(choose(&kind.model).unwrap_or_else(|_| starter.model.clone())),
        }
    }

    /// The conversation to go on with, or the beginning of one.
    fn past(&self, order: &Order, above: &Toolbox, model: &str) -> Result<Past, ToolError> {
        let folder = self.0.outfit.transcripts.as_ref();
        let Some(id) = &order.resume else {
            let id = new_id(&order.kind);
            let parent = session::Parent { id: above.session().to_owned(), entries: 0 };
            let header = Header {
                parent: Some(parent),
                agent_type: Some(order.kind.clone()),
                ..Header::new(&*id, &above.place().cwd, model)
            };
            // An agent without a transcript works as well; it only cannot be gone on with.
            let transcript = folder.and_then(|folder| Transcript::create(folder, &header).ok());
            return Ok((id.into(), transcript, Vec::new()));
        };
        let wrong = |code, words: String| Err(ToolError::new(code, words));
        // A transcript is locked as long as somebody writes it.
        let (transcript, past) = match folder.map(|folder| session::resume(folder, id)) {
            Some(Ok(opened)) => opened,
            Some(Err(SessionError::InUse(_))) => {
                return wrong(ErrorCode::Failed, format!("{id} is still at work: wait until it has ended"));
            }
            _ => {
                let words = format!("there is no agent {id} in this session: start a new one without resume");
                return wrong(ErrorCode::NotFound, words);
            }
        };
        let was = past.header.agent_type.unwrap_or_default();
        if was != order.kind {
            return wrong(
                ErrorCode::InvalidInput,
                format!("{id} is of the type {was}: give that as subagent_type"),
            );
        }
        Ok((transcript.id().into(), Some(transcript), past.history))
    }

    pub(super) fn worker(&self, above: &Arc<Toolbox>) -> Arc<Worker> {
        let (worker, inbox) = Worker::new();
        let (approver, over) = (above.approver().clone(), self.0.over.clone());
        // It ends with the worker, which ends with the agent.
        self.0.tracker.spawn(async move { over.run_until_cancelled(inbox.serve(approver)).await });
        Arc::new(worker)
    }

    fn enlist(&self, id: &Arc<str>, member: Member) -> Result<(), ToolError> {
        let mut state = self.state();
        state.room()?;
        state.started += 1;
        state.members.insert(id.clone(), member);
        state.ends.insert(id.clone(), self.0.over.child_token());
        Ok(())
    }
}

impl State {
    /// Whether one more may be started.
    fn room(&self) -> Result<(), ToolError> {
        // The main agent is a member too.
        if self.members.len() > MOST_AT_WORK {
            let words =
                format!("{MOST_AT_WORK} agents are at work, and no more may be: wait until one has ended");
            return Err(ToolError::new(ErrorCode::Denied, words));
        }
        if self.started >= MOST_STARTED {
            let words = format!("{MOST_STARTED} agents were started in this session, and no more may be");
            return Err(ToolError::new(ErrorCode::Denied, words + ": do the work yourself"));
        }
        Ok(())
    }
}

type Past = (Arc<str>, Option<Transcript>, Vec<Arc<Message>>);

impl Ready {
    /// Works until it is done or stopped.
    pub(crate) async fn work(
        mut self,
        progress: Option<ProgressSender>,
        stop: &CancellationToken,
    ) -> Outcome {
        let pool = self.agent.toolbox.pool();
        let watcher = self.crew.0.outfit.watcher.clone().filter(|_| progress.is_some());
        let mut watch = Watch::new(self.label.clone(), pool, progress, self.activity.clone());
        let prompt = std::mem::replace(&mut self.prompt, Message::user(""));
        let working = self.agent.run(prompt, stop);
        tokio::pin!(working);
        let outcome = loop {
            tokio::select! {
                biased;
                Some(event) = self.events.recv() => {
                    watch.take(&event);
                    pass_on(watcher.as_ref(), &self.call, event, stop).await;
                }
                outcome = &mut working => break outcome,
            }
        };
        while let Ok(event) = self.events.try_recv() {
            watch.take(&event);
            pass_on(watcher.as_ref(), &self.call, event, stop).await;
        }
        self.starter.till.put(outcome.cost);
        outcome
    }

    /// Works while the call goes on; what comes of it is kept, and announced to the one that started it.
    pub(crate) fn work_on_its_own(self) {
        let crew = self.crew.clone();
        let starter = crew.state().ends.get(&self.above.agent().id).cloned();
        let stop = starter.unwrap_or_else(|| crew.0.over.clone()).child_token();
        let (id, above) = (self.id.clone(), Arc::downgrade(&self.above));
        crew.0.background.begins(&id, &self.label, self.activity.clone());
        let tracker = crew.0.tracker.clone();
        tracker.spawn(async move {
            let outcome = self.work(None, &stop).await;
            if let (Some(words), Some(above)) = (crew.0.background.ended(&id, outcome), above.upgrade()) {
                above.add_message(words);
            }
        });
    }
}

impl Drop for Ready {
    fn drop(&mut self) {
        let mut state = self.crew.state();
        state.members.remove(&self.id);
        state.ends.remove(&self.id).iter().for_each(CancellationToken::cancel);
    }
}

/// Tells the watcher, as long as anybody waits for the agent. What belongs to agents further below is told by them.
async fn pass_on(
    watcher: Option<&mpsc::Sender<AgentEvent>>,
    call: &Arc<str>,
    event: AgentEvent,
    stop: &CancellationToken,
) {
    let lasting = matches!(
        event,
        AgentEvent::Recorded(_)
            | AgentEvent::Model(ModelEvent::Start { .. } | ModelEvent::Usage(_))
            | AgentEvent::Call(Event::Result(_))
    );
    if let Some(watcher) = watcher.filter(|_| lasting) {
        let event = AgentEvent::Below { call: call.clone(), event: Box::new(event) };
        // What is recorded after a stop is told too. Nobody reads any more, or nobody waits: no reason to stay.
        if let Err(TrySendError::Full(event)) = watcher.try_send(event) {
            stop.run_until_cancelled(watcher.send(event)).await.transpose().ok();
        }
    }
}

/// Takes in what changes also while an agent below works.
struct Below(Weak<dyn Host>);

impl Host for Below {
    fn look_around(&self, _prompted: bool) -> Option<String> {
        self.0.upgrade().iter().for_each(|host| host.refresh());
        None
    }
}

/// What both the description and the call let it have.
fn granted(kind: &Definition, allowed: Option<&[String]>) -> Option<BTreeSet<String>> {
    let set = |names: &[String]| names.iter().cloned().collect::<BTreeSet<String>>();
    in_both(kind.tools.as_deref().map(set), allowed.map(set))
}

fn fewest(one: Option<u32>, other: Option<u32>) -> Option<u32> {
    one.into_iter().chain(other).min()
}

/// Such as `explore-1f0c9a2b`: people read it in questions.
pub(super) fn new_id(kind: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let kind: String = kind.chars().map(plain).collect();
    format!("{kind}-{}", &uuid::Uuid::new_v4().simple().to_string()[..8])
}
