//! What one client has here: a session that opens when it is first needed, and its open questions.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use gripper_runtime::{
    DynTool, Pool,
    approve::{Approver, Ask, Reply},
    prompts::Prompts,
};
use rmcp::{ErrorData, RoleServer, model::ProtocolVersion, service::RequestContext};
use tokio::sync::{OnceCell, mpsc, watch};

use super::{Host, Opening, Session, call::Suspended, gate::Gate, log::Log};

/// How long a client may take to say where it works.
const ROOTS_TIME: Duration = Duration::from_secs(5);
/// How long a call waits for the client to come back with an answer.
const ANSWER_TIME: Duration = Duration::from_secs(600);
/// Calls of one client that wait so.
const MOST_SUSPENDED: usize = 64;

/// One client.
pub(super) struct Client {
    host: Arc<dyn Host>,
    session: OnceCell<Arc<dyn Session>>,
    pub(super) gate: Arc<Gate>,
    pub(super) questions: Arc<Questions>,
    pub(super) log: Log,
    suspended: Mutex<HashMap<String, Suspended>>,
    told: Mutex<Told>,
    calls: AtomicU64,
}

/// What a client was told of last.
#[derive(Default, Clone)]
struct Told {
    tools: Option<Arc<Pool>>,
    prompts: Option<Arc<Prompts>>,
}

impl Client {
    pub(super) fn new(host: Arc<dyn Host>) -> Arc<Self> {
        Arc::new(Self {
            host,
            session: OnceCell::new(),
            gate: Gate::new(1),
            questions: Arc::default(),
            log: Log::default(),
            suspended: Mutex::default(),
            told: Mutex::default(),
            calls: AtomicU64::new(1),
        })
    }

    /// The session, opened by whichever request comes first.
    pub(super) async fn session(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<dyn Session>, ErrorData> {
        let opened = self.session.get_or_try_init(|| async {
            let opening = Opening { roots: roots(context).await, approver: self.questions.clone() };
            let session = self.host.open(opening).await?;
            if !stateless(context) {
                let (mut changes, peer) = (self.changes(&session), context.peer.clone());
                tokio::spawn(async move {
                    while let Some(changed) = changes.next().await {
                        let told = match changed {
                            Changed::Tools => peer.notify_tool_list_changed().await,
                            Changed::Prompts => peer.notify_prompt_list_changed().await,
                        };
                        if told.is_err() {
                            return;
                        }
                    }
                });
            }
            Ok::<_, String>(session)
        });
        let session = opened.await.map_err(|why| {
            ErrorData::internal_error(format!("the session could not be opened: {why}"), None)
        })?;
        session.refresh();
        self.gate.set_limit(session.concurrency());
        Ok(session.clone())
    }

    /// Its tools, of which it knows from now on.
    pub(super) fn tell(&self, session: &Arc<dyn Session>) -> Arc<Pool> {
        let pool = session.toolbox().pool();
        self.told.lock().unwrap_or_else(PoisonError::into_inner).tools = Some(pool.clone());
        pool
    }

    /// Its prompts, of which it knows from now on.
    pub(super) fn tell_prompts(&self, session: &Arc<dyn Session>) -> Arc<Prompts> {
        let prompts = session.prompts();
        self.told.lock().unwrap_or_else(PoisonError::into_inner).prompts = Some(prompts.clone());
        prompts
    }

    /// What changes from what it was told, or from now.
    pub(super) fn changes(&self, session: &Arc<dyn Session>) -> Changes {
        let Told { tools, prompts } = self.told.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Changes {
            hints: session.changes(),
            tools: tools.unwrap_or_else(|| session.toolbox().pool()),
            prompts: prompts.unwrap_or_else(|| session.prompts()),
            session: Arc::downgrade(session),
        }
    }

    /// An id that no other call of this client has.
    pub(super) fn next_call(&self) -> Arc<str> {
        format!("c{}", self.calls.fetch_add(1, Ordering::Relaxed)).into()
    }

    /// Keeps a call until its answer comes, under a name that nobody can guess.
    pub(super) fn suspend(self: &Arc<Self>, call: Suspended) -> String {
        let name = uuid::Uuid::new_v4().to_string();
        let mut suspended = self.suspended();
        if suspended.len() >= MOST_SUSPENDED
            && let Some(oldest) =
                suspended.iter().min_by_key(|(_, other)| other.since).map(|(name, _)| name.clone())
        {
            suspended.remove(&oldest);
        }
        suspended.insert(name.clone(), call);
        let (client, late) = (Arc::downgrade(self), name.clone());
        // One that nobody comes back for is a no, and what it holds is given up.
        tokio::spawn(async move {
            tokio::time::sleep(ANSWER_TIME).await;
            if let Some(client) = client.upgrade() {
                client.suspended().remove(&late);
            }
        });
        name
    }

    /// Takes such a call up again.
    pub(super) fn resume(&self, name: &str) -> Option<Suspended> {
        self.suspended().remove(name).filter(|call| call.since.elapsed() < ANSWER_TIME)
    }

    fn suspended(&self) -> MutexGuard<'_, HashMap<String, Suspended>> {
        self.suspended.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends the session, if one was opened.
    pub(super) async fn end(&self) {
        if let Some(session) = self.session.get() {
            session.end().await;
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // A client that went away leaves nothing running.
        if let (Some(session), Ok(runtime)) =
            (self.session.get().cloned(), tokio::runtime::Handle::try_current())
        {
            runtime.spawn(async move { session.end().await });
        }
    }
}

/// The changes of a session's tools and prompts.
pub(super) struct Changes {
    hints: Option<watch::Receiver<u64>>,
    session: Weak<dyn Session>,
    tools: Arc<Pool>,
    prompts: Arc<Prompts>,
}

/// Which list is another one now.
#[derive(Debug, Clone, Copy)]
pub(super) enum Changed {
    Tools,
    Prompts,
}

impl Changes {
    /// Waits until a list has changed. Nothing when none ever will.
    pub(super) async fn next(&mut self) -> Option<Changed> {
        let Some(hints) = &mut self.hints else { return std::future::pending().await };
        loop {
            let (tools, prompts) = {
                let session = self.session.upgrade()?;
                (session.toolbox().pool(), session.prompts())
            };
            let same = |(a, b): (&Arc<dyn DynTool>, &Arc<dyn DynTool>)| Arc::ptr_eq(a, b);
            let known = std::mem::replace(&mut self.tools, tools);
            let (before, after) = (known.tools(), self.tools.tools());
            if before.len() != after.len() || !before.iter().zip(after).all(same) {
                return Some(Changed::Tools);
            }
            let known = std::mem::replace(&mut self.prompts, prompts);
            if !known.list_alike(&self.prompts) {
                return Some(Changed::Prompts);
            }
            hints.changed().await.ok()?;
        }
    }
}

/// The folders the client works in, if it tells.
#[expect(deprecated, reason = "clients of earlier revisions offer roots")]
async fn roots(context: &RequestContext<RoleServer>) -> Vec<PathBuf> {
    let offers = context.client_capabilities().is_some_and(|capabilities| capabilities.roots.is_some());
    if !offers || stateless(context) {
        return Vec::new();
    }
    let Ok(Ok(told)) = tokio::time::timeout(ROOTS_TIME, context.peer.list_roots()).await else {
        return Vec::new();
    };
    let path = |uri: &str| url::Url::parse(uri).ok()?.to_file_path().ok().filter(|path| path.is_dir());
    told.roots.iter().filter_map(|root| path(&root.uri)).collect()
}

/// Whether the client speaks a revision in which a server asks nothing by itself: each request
/// stands alone, and what is missing is asked for in the answer.
pub(super) fn stateless(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Leads each question to the call it is about.
#[derive(Default)]
pub(super) struct Questions(Mutex<HashMap<Arc<str>, mpsc::UnboundedSender<News>>>);

/// What a call hears of its questions.
pub(super) enum News {
    Asked(Box<Ask>, Reply),
    Moot(Arc<str>),
}

/// A call's way to its questions, closed by dropping it.
pub(super) struct Route {
    questions: Arc<Questions>,
    call: Arc<str>,
}

impl Questions {
    pub(super) fn open(self: &Arc<Self>, call: Arc<str>) -> (Route, mpsc::UnboundedReceiver<News>) {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.routes().insert(call.clone(), sender);
        (Route { questions: self.clone(), call }, receiver)
    }

    fn routes(&self) -> MutexGuard<'_, HashMap<Arc<str>, mpsc::UnboundedSender<News>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Route {
    fn drop(&mut self) {
        self.questions.routes().remove(&self.call);
    }
}

impl Approver for Questions {
    fn push(&self, ask: Ask, reply: Reply) {
        // A question whose call is gone is dropped with its reply, and that is a no.
        if let Some(call) = self.routes().get(&ask.call_id) {
            call.send(News::Asked(Box::new(ask), reply)).ok();
        }
    }

    fn remove(&self, id: &str) {
        let id: Arc<str> = id.into();
        for call in self.routes().values() {
            call.send(News::Moot(id.clone())).ok();
        }
    }
}
