//! One session's tools, policy and state: what an agent author holds.

mod child;

use std::{
    collections::{BTreeSet, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::Arc,
};

use gripper_permissions::{Decision, Policy, Request, RuleList, Scope, Source};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use crate::{
    access::{Access, Footprint},
    approve::{Approver, Grant, Grants, Headless, SaveRule},
    event::{Event, Observer},
    executor::Turn,
    files::Files,
    guard::Guard,
    hooks::{After, HookEvent, HookRun, HookSet, Hooks, Occasion, Scene, fields},
    pipeline::{self, CallRequest},
    place::Place,
    registry::{Pool, Registry, RegistryError, Viewer, assemble_pool},
    results::{ResultsStore, StoreLimits, Strategy},
    settings::Settings,
    sync::{Mutex, lock},
    tool::{Agent, DynTool, SessionEffect},
};

pub use child::Child;
use child::Family;

/// Everything that the calls of a session share.
pub struct Toolbox {
    pub(crate) session: Arc<str>,
    pub(crate) agent: Agent,
    pub(crate) settings: Settings,
    pub(crate) hooks: Arc<dyn Hooks>,
    pub(crate) approver: Arc<dyn Approver>,
    pub(crate) saver: Option<Arc<dyn SaveRule>>,
    pub(crate) results: Arc<ResultsStore>,
    pub(crate) files: Arc<Files>,
    pub(crate) guard: Mutex<Guard>,
    observers: Vec<Arc<dyn Observer>>,
    tools: Tools,
    policy: watch::Sender<Arc<Policy>>,
    grants: Arc<Mutex<Grants>>,
    state: Mutex<SessionState>,
    family: Family,
}

/// The tools there are, and those that the agent gets of them.
struct Tools {
    registry: Registry,
    viewer: Viewer,
    foreign: Mutex<Foreign>,
    pool: Mutex<Arc<Pool>>,
}

/// The tools of servers, and the servers whose tools are still to come.
type Foreign = (Vec<Arc<dyn DynTool>>, Vec<String>);

impl Tools {
    fn new(registry: Registry, viewer: Viewer, policy: &Policy) -> Self {
        let pool = Mutex::new(Arc::new(assemble_pool(&registry, policy, &viewer, Vec::new())));
        Self { registry, viewer, foreign: Mutex::default(), pool }
    }
}

/// What calls have changed about the session so far.
struct SessionState {
    place: Arc<Place>,
    loaded: BTreeSet<String>,
    messages: VecDeque<String>,
    commands: VecDeque<String>,
    /// A hook wants the session to end, and why.
    halt: Option<String>,
}

impl SessionState {
    fn at(place: Arc<Place>) -> Self {
        let (loaded, messages, commands) = Default::default();
        Self { place, loaded, messages, commands, halt: None }
    }
}

/// Longest text of a hook that goes to the model as it is.
const HOOK_CHARS: usize = 10_000;

/// Collects what a [`Toolbox`] needs.
pub struct ToolboxBuilder {
    registry: Registry,
    policy: Policy,
    viewer: Viewer,
    settings: Settings,
    session: Arc<str>,
    agent: Agent,
    hooks: Arc<dyn Hooks>,
    approver: Arc<dyn Approver>,
    saver: Option<Arc<dyn SaveRule>>,
    observers: Vec<Arc<dyn Observer>>,
    results: Option<ResultsStore>,
    files: Files,
}

impl Toolbox {
    /// Starts a toolbox. Without more, nobody can be asked, nothing hooks in and nothing is stored.
    pub fn builder(registry: Registry, policy: Policy) -> ToolboxBuilder {
        ToolboxBuilder {
            registry,
            policy,
            viewer: Viewer::Main,
            settings: Settings::default(),
            session: uuid::Uuid::now_v7().to_string().into(),
            agent: Agent::main(),
            hooks: Arc::new(HookSet::new()),
            approver: Arc::new(Headless),
            saver: None,
            observers: Vec::new(),
            results: None,
            files: Files::default(),
        }
    }

    /// Begins a turn with the tools as they are now.
    pub fn turn(self: &Arc<Self>) -> Turn {
        Turn::new(self.clone())
    }

    /// What a call would touch as things are now, for whoever schedules calls of several turns. One
    /// that will only fail touches nothing.
    pub fn footprint(&self, request: &CallRequest) -> Footprint {
        let admitted = pipeline::admit(self, &self.pool(), request.clone());
        admitted.map(|admitted| admitted.access.footprint().clone()).unwrap_or_default()
    }

    /// The session's id.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The tools as advertised now.
    pub fn pool(&self) -> Arc<Pool> {
        lock(&self.tools.pool).clone()
    }

    /// Puts the tools of servers as they are now beside the built-in ones, as a new snapshot; turns that have
    /// begun keep theirs. `connecting` are the servers whose tools are still to come. Gives what was refused.
    pub fn set_foreign_tools(
        &self,
        tools: impl IntoIterator<Item = Arc<dyn DynTool>>,
        connecting: Vec<String>,
    ) -> Vec<RegistryError> {
        let tools: Vec<Arc<dyn DynTool>> = tools.into_iter().collect();
        let mut registry = self.tools.registry.clone();
        let refused = tools.iter().filter_map(|tool| registry.register(tool.clone()).err()).collect();
        let pool = assemble_pool(&registry, &self.policy(), &self.tools.viewer, connecting.clone());
        *lock(&self.tools.pool) = Arc::new(pool);
        *lock(&self.tools.foreign) = (tools.clone(), connecting.clone());
        self.each_below(|child| drop(child.set_foreign_tools(tools.clone(), connecting.clone())));
        refused
    }

    /// Whoever answers asks in this session.
    pub fn approver(&self) -> &Arc<dyn Approver> {
        &self.approver
    }

    /// The policy in force now.
    pub fn policy(&self) -> Arc<Policy> {
        self.policy.borrow().clone()
    }

    /// Puts another policy in force. Open questions are judged again by it.
    pub fn set_policy(&self, policy: Policy) {
        self.policy.send_replace(Arc::new(policy));
        self.hand_down();
        self.notify(HookEvent::CONFIG_CHANGE, "policy", json!({ "source": "policy" }));
    }

    /// Replaces the policy by one made from it, with nothing in between: a grant given meanwhile is not lost.
    pub fn update_policy(&self, change: impl FnOnce(&Policy) -> Policy) {
        self.policy.send_modify(|policy| *policy = Arc::new(change(policy)));
        self.hand_down();
    }

    /// Tells hooks that settings changed.
    pub fn settings_changed(&self) {
        self.notify(HookEvent::CONFIG_CHANGE, "settings", json!({ "source": "settings" }));
    }

    pub(crate) fn policy_changes(&self) -> watch::Receiver<Arc<Policy>> {
        self.policy.subscribe()
    }

    /// Adds an allow rule for the rest of the session, or for as long as it holds.
    pub(crate) fn grant(&self, grant: Grant) {
        let Some(grant) = self.grant_above(grant) else { return };
        self.policy.send_modify(|policy| {
            if grant.is_limited() {
                lock(&self.grants).add(grant);
            } else {
                let policy = Arc::make_mut(policy);
                for rule in grant.rules() {
                    policy.rules.add(RuleList::Allow, rule.clone(), Source::of(Scope::Session));
                }
            }
        });
        self.hand_down();
    }

    /// Judges a call under `policy` and the limited grants that hold for it now. Two calls at once
    /// cannot use the same last use of a grant; `spend` says whether this is a use.
    pub(crate) fn judge(
        &self,
        policy: &Policy,
        access: &Access,
        spend: bool,
        decide: impl Fn(&Policy) -> Decision,
    ) -> Decision {
        let place = self.place();
        lock(&self.grants).judge(policy, (access.subjects(), &place.cwd), spend, decide)
    }

    /// Where calls work now.
    pub fn place(&self) -> Arc<Place> {
        lock(&self.state).place.clone()
    }

    /// Deferred tools that searches have loaded.
    pub fn loaded_tools(&self) -> BTreeSet<String> {
        lock(&self.state).loaded.clone()
    }

    /// What the session knows of files.
    pub fn files(&self) -> &Arc<Files> {
        &self.files
    }

    /// What others have done to files the model knows, if anything; each change is told once.
    pub fn changed_files(&self) -> Option<Event> {
        let files = self.files.changed_files(&self.session);
        (!files.is_empty()).then_some(Event::ChangedFiles { files })
    }

    /// Puts a message into the conversation.
    pub fn add_message(&self, message: String) {
        lock(&self.state).messages.push_back(message);
    }

    /// Messages that calls want in the conversation; each is given out once.
    pub fn take_messages(&self) -> Vec<String> {
        lock(&self.state).messages.drain(..).collect()
    }

    /// Commands that calls queued for the front end; each is given out once.
    pub fn take_commands(&self) -> Vec<String> {
        lock(&self.state).commands.drain(..).collect()
    }

    /// Why a hook wants the session to end, if one does. No more calls are run then.
    pub fn halted(&self) -> Option<String> {
        self.above().map_or_else(|| lock(&self.state).halt.clone(), |above| above.halted())
    }

    pub(crate) fn halt(&self, reason: Option<String>) {
        if let Some(above) = self.above() {
            above.halt(reason);
        } else if reason.is_some() {
            lock(&self.state).halt = reason;
        }
    }

    /// The session begins, or goes on (`source` is `startup`, `resume` or `compact`): hooks may add to the
    /// conversation. Gives which ran.
    pub async fn begin(&self, source: &str) -> Vec<HookRun> {
        let runs = self.turning_point(HookEvent::SESSION_START, source, json!({ "source": source })).await;
        self.observe_runs(&runs);
        runs
    }

    /// The session ends: hooks hear of it, and none is left running. Gives which ran.
    pub async fn end(&self) -> Vec<HookRun> {
        let mut runs =
            self.turning_point(HookEvent::SESSION_END, "other", json!({ "reason": "other" })).await;
        runs.extend(self.hooks.close().await);
        self.observe_runs(&runs);
        runs
    }

    /// Fires an event of the session itself; what hooks have to say goes to the conversation.
    pub(crate) async fn turning_point(&self, event: HookEvent, subject: &str, more: Value) -> Vec<HookRun> {
        if !self.hooks.listens(event) {
            return Vec::new();
        }
        let said = self.fire(event, subject, fields(more), None).await;
        self.halt(said.stop);
        lock(&self.state).messages.extend(said.context);
        said.runs
    }

    /// Tells hooks of something in the life of an agent and gives what they say about it. One that wants the
    /// session to end ends it.
    pub async fn consult(&self, event: HookEvent, subject: &str, more: Value) -> After {
        if !self.hooks.listens(event) {
            return After::default();
        }
        let said = self.fire(event, subject, fields(more), None).await;
        self.halt(said.stop.clone());
        self.observe_runs(&said.runs);
        said
    }

    fn observe_runs(&self, runs: &[HookRun]) {
        for run in runs {
            self.observe("", &Event::Hook { call_id: None, run: run.clone() });
        }
    }

    /// Tells hooks what happened and waits for what they say.
    pub(crate) async fn fire(
        &self,
        event: HookEvent,
        subject: &str,
        fields: Map<String, Value>,
        request: Option<&Request<'_>>,
    ) -> After {
        let (place, policy) = (self.place(), self.policy());
        let occasion = Occasion { event, subject, fields, request };
        let firing = self.hooks.fire(self.scene(&place, &policy), occasion);
        let mut said = tokio::time::timeout(self.settings.hook_limit, firing).await.unwrap_or_default();
        for text in &mut said.context {
            *text = self.within(event.name(), std::mem::take(text));
        }
        said
    }

    /// Tells hooks what happened; nobody waits for them.
    pub(crate) fn notify(&self, event: HookEvent, subject: &str, more: Value) {
        if self.hooks.listens(event) {
            let (place, policy) = (self.place(), self.policy());
            let occasion = Occasion { event, subject, fields: fields(more), request: None };
            self.hooks.notify(self.scene(&place, &policy), occasion);
        }
    }

    pub(crate) fn scene<'a>(&'a self, place: &'a Place, policy: &'a Policy) -> Scene<'a> {
        Scene { session: &self.session, agent: &self.agent, place, policy }
    }

    /// A hook's text at a size that a conversation can bear; the whole of a longer one is stored.
    pub(crate) fn within(&self, name: &str, text: String) -> String {
        let name = format!("hook-{name}");
        let bounded = self.results.bound(&name, &text, HOOK_CHARS, Strategy::KeepStart);
        bounded.map_or(text, |bounded| bounded.text)
    }

    pub(crate) fn observe(&self, turn: &str, event: &Event) {
        for observer in &self.observers {
            // A watcher that falls over must not take the turn with it.
            catch_unwind(AssertUnwindSafe(|| observer.observe(turn, event))).ok();
        }
    }

    /// Applies one effect. The executor calls this in call order.
    pub(crate) fn apply(&self, effect: SessionEffect, turn: &Arc<str>) {
        match effect {
            SessionEffect::GrantPermission(rule) => self.grant(Grant::of(rule)),
            // The mode of an agent below another follows from the one above.
            SessionEffect::SetMode(mode) if self.above().is_none() => {
                self.update_policy(|policy| policy.with_mode(mode));
            }
            SessionEffect::SetMode(_) => {}
            SessionEffect::SetCwd(cwd) => {
                let told = json!({ "old_cwd": self.place().cwd, "new_cwd": cwd });
                lock(&self.state).place = Arc::new(Place { cwd });
                self.notify(HookEvent::CWD_CHANGED, "", told);
            }
            SessionEffect::FileSeen(seen) => self.files.note(*seen, turn),
            SessionEffect::LoadTools(names) => lock(&self.state).loaded.extend(names),
            SessionEffect::InjectMessages(messages) => lock(&self.state).messages.extend(messages),
            SessionEffect::QueueCommand(command) => lock(&self.state).commands.push_back(command),
        }
    }
}

impl ToolboxBuilder {
    /// Chooses the tools for this agent.
    #[must_use]
    pub fn viewer(mut self, viewer: Viewer) -> Self {
        self.viewer = viewer;
        self
    }

    /// Limits and choices.
    #[must_use]
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// The session's id.
    pub fn id(&self) -> &str {
        &self.session
    }

    /// Continues a session under its id.
    #[must_use]
    pub fn session(mut self, id: &str) -> Self {
        self.session = id.into();
        self
    }

    /// What runs around calls.
    #[must_use]
    pub fn hooks(mut self, hooks: Arc<dyn Hooks>) -> Self {
        self.hooks = hooks;
        self
    }

    /// Who answers asks.
    #[must_use]
    pub fn approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.approver = approver;
        self
    }

    /// Who writes the rules that are granted for good.
    #[must_use]
    pub fn saver(mut self, saver: Arc<dyn SaveRule>) -> Self {
        self.saver = Some(saver);
        self
    }

    /// Adds someone who sees every event.
    #[must_use]
    pub fn observer(mut self, observer: Arc<dyn Observer>) -> Self {
        self.observers.push(observer);
        self
    }

    /// Where oversized results go.
    #[must_use]
    pub fn results(mut self, store: ResultsStore) -> Self {
        self.results = Some(store);
        self
    }

    /// Where changes of files are kept.
    #[must_use]
    pub fn files(mut self, files: Files) -> Self {
        self.files = files;
        self
    }

    /// Ready to run turns.
    pub fn build(self) -> Arc<Toolbox> {
        let cwd = self.policy.directories.first().cloned().unwrap_or_else(|| PathBuf::from("/"));
        Arc::new(Toolbox {
            tools: Tools::new(self.registry, self.viewer, &self.policy),
            session: self.session,
            agent: self.agent,
            guard: Mutex::new(Guard::new(self.settings.guard)),
            settings: self.settings,
            hooks: self.hooks,
            approver: self.approver,
            saver: self.saver,
            results: Arc::new(self.results.unwrap_or_else(nowhere)),
            files: Arc::new(self.files),
            observers: self.observers,
            policy: watch::Sender::new(Arc::new(self.policy)),
            grants: Arc::default(),
            state: Mutex::new(SessionState::at(Arc::new(Place { cwd }))),
            family: Family::default(),
        })
    }
}

/// Keeps nothing: without a folder to store them in, oversized results are only shortened.
fn nowhere() -> ResultsStore {
    ResultsStore::new(PathBuf::new(), StoreLimits::default())
}
