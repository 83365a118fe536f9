//! One session's tools, policy and state: what an agent author holds.

use std::{
    collections::{BTreeSet, VecDeque},
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::Arc,
};

use gripper_permissions::{Policy, Rule, RuleList, Scope, Source};
use tokio::sync::watch;

use crate::{
    approve::{Approver, Headless},
    event::{Event, Observer},
    executor::Turn,
    guard::Guard,
    hooks::{HookSet, Hooks},
    place::Place,
    registry::{Pool, Registry, Viewer, assemble_pool},
    results::{ResultsStore, StoreLimits},
    settings::Settings,
    sync::{Mutex, lock},
    tool::{Agent, SessionEffect},
};

/// Everything that the calls of a session share.
pub struct Toolbox {
    pub(crate) session: Arc<str>,
    pub(crate) agent: Agent,
    pub(crate) settings: Settings,
    pub(crate) hooks: Arc<dyn Hooks>,
    pub(crate) approver: Arc<dyn Approver>,
    pub(crate) results: ResultsStore,
    pub(crate) guard: Mutex<Guard>,
    observers: Vec<Arc<dyn Observer>>,
    pool: Arc<Pool>,
    policy: watch::Sender<Arc<Policy>>,
    state: Mutex<SessionState>,
}

/// What calls have changed about the session so far.
struct SessionState {
    place: Arc<Place>,
    loaded: BTreeSet<String>,
    seen: BTreeSet<PathBuf>,
    messages: VecDeque<String>,
    commands: VecDeque<String>,
}

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
    observers: Vec<Arc<dyn Observer>>,
    results: Option<ResultsStore>,
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
            observers: Vec::new(),
            results: None,
        }
    }

    /// Begins a turn with the tools as they are now.
    pub fn turn(self: &Arc<Self>) -> Turn {
        Turn::new(self.clone())
    }

    /// The session's id.
    pub fn session(&self) -> &str {
        &self.session
    }

    /// The tools as advertised now.
    pub fn pool(&self) -> Arc<Pool> {
        self.pool.clone()
    }

    /// The policy in force now.
    pub fn policy(&self) -> Arc<Policy> {
        self.policy.borrow().clone()
    }

    /// Puts another policy in force. Open questions are judged again by it.
    pub fn set_policy(&self, policy: Policy) {
        self.policy.send_replace(Arc::new(policy));
    }

    /// Replaces the policy by one made from it, with nothing in between: a grant given meanwhile is not lost.
    pub fn update_policy(&self, change: impl FnOnce(&Policy) -> Policy) {
        self.policy.send_modify(|policy| *policy = Arc::new(change(policy)));
    }

    pub(crate) fn policy_changes(&self) -> watch::Receiver<Arc<Policy>> {
        self.policy.subscribe()
    }

    /// Adds an allow rule for the rest of the session.
    pub(crate) fn grant(&self, rule: Rule) {
        self.policy.send_modify(|policy| {
            Arc::make_mut(policy).rules.add(RuleList::Allow, rule, Source::of(Scope::Session));
        });
    }

    /// Where calls work now.
    pub fn place(&self) -> Arc<Place> {
        lock(&self.state).place.clone()
    }

    /// Deferred tools that searches have loaded.
    pub fn loaded_tools(&self) -> BTreeSet<String> {
        lock(&self.state).loaded.clone()
    }

    /// Files the model has seen.
    pub fn files_seen(&self) -> BTreeSet<PathBuf> {
        lock(&self.state).seen.clone()
    }

    /// Messages that calls want in the conversation; each is given out once.
    pub fn take_messages(&self) -> Vec<String> {
        lock(&self.state).messages.drain(..).collect()
    }

    /// Commands that calls queued for the front end; each is given out once.
    pub fn take_commands(&self) -> Vec<String> {
        lock(&self.state).commands.drain(..).collect()
    }

    pub(crate) fn observe(&self, turn: &str, event: &Event) {
        for observer in &self.observers {
            // A watcher that falls over must not take the turn with it.
            catch_unwind(AssertUnwindSafe(|| observer.observe(turn, event))).ok();
        }
    }

    /// Applies one effect. The executor calls this in call order.
    pub(crate) fn apply(&self, effect: SessionEffect) {
        match effect {
            SessionEffect::GrantPermission(rule) => self.grant(rule),
            SessionEffect::SetMode(mode) => self.update_policy(|policy| policy.with_mode(mode)),
            SessionEffect::SetCwd(cwd) => lock(&self.state).place = Arc::new(Place { cwd }),
            SessionEffect::FileSeen { path } => {
                lock(&self.state).seen.insert(path);
            }
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

    /// Ready to run turns.
    pub fn build(self) -> Arc<Toolbox> {
        let cwd = self.policy.directories.first().cloned().unwrap_or_else(|| PathBuf::from("/"));
        Arc::new(Toolbox {
            pool: Arc::new(assemble_pool(&self.registry, &self.policy, &self.viewer, Vec::new())),
            session: self.session,
            agent: self.agent,
            guard: Mutex::new(Guard::new(self.settings.guard)),
            settings: self.settings,
            hooks: self.hooks,
            approver: self.approver,
            results: self.results.unwrap_or_else(nowhere),
            observers: self.observers,
            policy: watch::Sender::new(Arc::new(self.policy)),
            state: Mutex::new(SessionState {
                place: Arc::new(Place { cwd }),
                loaded: BTreeSet::new(),
                seen: BTreeSet::new(),
                messages: VecDeque::new(),
                commands: VecDeque::new(),
            }),
        })
    }
}

/// Keeps nothing: without a folder to store them in, oversized results are only shortened.
fn nowhere() -> ResultsStore {
    ResultsStore::new(PathBuf::new(), StoreLimits::default())
}
