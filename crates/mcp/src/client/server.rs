//! One server: connected when it is wanted, kept, started again when it dies, let go when nobody calls.

use std::{
    ffi::OsString,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use gripper_process::{Status, live::Live};
use rmcp::{Peer, RoleClient, service::RunningService};
use tokio::{
    sync::watch,
    time::{Instant, sleep, sleep_until, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Limits,
    config::{Endpoint, ServerConfig},
    front::{Front, Sessions},
    link::Oddities,
    offer::{self, Offer},
    open,
    sign_in::{Account, SignIn, Tokens},
};

/// The first pause before a server is started again; each further one is twice as long.
const PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// How often in a row a server that worked is started again without anybody calling it.
const RESTARTS: u32 = 5;
/// A server that worked this long has no past.
const STEADY: Duration = Duration::from_secs(60);
/// A call waits this long for the next try, and otherwise fails.
const PATIENCE: Duration = Duration::from_secs(5);
/// How often it is looked whether a person is signing in.
const LOOK: Duration = Duration::from_millis(200);
/// How long a child has to tidy up.
const GRACE: Duration = Duration::from_millis(500);
/// Changes of the list of tools are looked at this often at most.
const CALM: Duration = Duration::from_millis(200);
/// How much of what a child said on standard error is told.
const LAST_WORDS: usize = 500;

/// What all servers of a pool share.
pub(super) struct Shared {
    /// The environment of this process.
    pub(super) env: Vec<(OsString, OsString)>,
    /// Where children run.
    pub(super) cwd: std::path::PathBuf,
    pub(super) sessions: Arc<Sessions>,
    /// Counts what is worth another look at the tools.
    pub(super) news: watch::Sender<u64>,
    /// The pool is closed.
    pub(super) over: CancellationToken,
    /// Conversations that are kept.
    pub(super) keepers: TaskTracker,
    /// Cancellations that are on their way.
    pub(super) farewells: TaskTracker,
    pub(super) limits: Limits,
    /// Held while a child is started: many at once would hold up everything else.
    pub(super) starting: tokio::sync::Mutex<()>,
    pub(super) tokens: Arc<Tokens>,
    pub(super) person: Option<Arc<dyn SignIn>>,
}

/// A configured server.
pub struct Server {
    /// How it is configured.
    pub config: ServerConfig,
    /// Its part in the names of its tools.
    pub slug: String,
    pub(super) shared: Arc<Shared>,
    state: watch::Sender<State>,
    /// It is not configured any more, or the pool is closed.
    over: CancellationToken,
    /// The child that was started last.
    pub(super) child: Mutex<Weak<Live>>,
    /// Who we are there, if that is for us to find out.
    pub(super) account: Option<Arc<Account>>,
}

#[derive(Clone)]
struct State {
    phase: Phase,
    offer: Option<Arc<Offer>>,
    failures: u32,
    /// Not before then is it tried again.
    retry: Option<Instant>,
}

/// How a server stands.
#[derive(Clone)]
pub enum Phase {
    /// Not connected: nobody wanted it yet, or for long.
    Idle,
    /// Being connected.
    Connecting,
    /// Connected.
    Ready(Arc<Connection>),
    /// It could not be connected, or is gone.
    Failed(String),
}

impl Phase {
    /// In a word.
    pub fn word(&self) -> &'static str {
        match self {
            Phase::Idle => "idle",
            Phase::Connecting => "connecting",
            Phase::Ready(_) => "connected",
            Phase::Failed(_) => "failed",
        }
    }
}

/// A live conversation with a server.
pub struct Connection {
    pub(super) peer: Peer<RoleClient>,
    pub(super) front: Arc<Front>,
    pub(super) oddities: Arc<Oddities>,
    child: Option<Arc<Live>>,
    busy: AtomicUsize,
    used: Mutex<Instant>,
}

/// Counts a call as running for as long as it lives.
pub(super) struct Busy(Arc<Connection>);

impl Drop for Busy {
    fn drop(&mut self) {
        *self.0.used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.busy.fetch_sub(1, Ordering::SeqCst);
    }
}

/// A conversation that has just begun.
pub(super) struct Opened {
    pub(super) service: RunningService<RoleClient, Arc<Front>>,
    pub(super) front: Arc<Front>,
    pub(super) child: Option<Arc<Live>>,
}

#[derive(PartialEq)]
enum Ending {
    Unwanted,
    Gone,
}

impl Connection {
    pub(super) fn begin(self: &Arc<Self>) -> Busy {
        self.busy.fetch_add(1, Ordering::SeqCst);
        Busy(self.clone())
    }

    fn idle_since(&self) -> Option<Instant> {
        let used = *self.used.lock().unwrap_or_else(PoisonError::into_inner);
        (self.busy.load(Ordering::SeqCst) == 0).then_some(used)
    }

    /// Ends the child, and tells how it went.
    async fn end(&self) -> String {
        let mut words = match &self.child {
            None => "the server closed the connection".to_owned(),
            Some(child) => {
                // It may be about to end by itself, and how is worth knowing.
                timeout(GRACE, child.wait()).await.ok();
                let by_itself = child.status();
                child.end(GRACE).await;
                epitaph(by_itself, child)
            }
        };
        if let Some(odd) = self.oddities.words() {
            words.push_str(&format!("; {odd}"));
        }
        words
    }
}

/// How a child ended, and what it last said.
pub(super) fn epitaph(status: Option<Status>, child: &Live) -> String {
    let how = match status {
        None => "the server closed its output".to_owned(),
        Some(Status::Exited(code)) => format!("the server ended with exit code {code}"),
        Some(Status::Signalled(signal)) => format!("the server was killed by signal {signal}"),
        Some(Status::TimedOut | Status::Cancelled) => "the server was ended".to_owned(),
    };
    let said = child.output().stderr();
    let said = [said.head, said.tail].concat();
    let said = String::from_utf8_lossy(&said);
    let skipped = said.trim().chars().count().saturating_sub(LAST_WORDS);
    let last: String = said.trim().chars().skip(skipped).collect();
    if last.is_empty() { how } else { format!("{how}; it last said: {last}") }
}

fn pause(failures: u32) -> Duration {
    (PAUSE * 2u32.saturating_pow(failures.saturating_sub(1).min(10))).min(LONGEST_PAUSE)
}

impl Server {
    pub(super) fn new(config: ServerConfig, slug: String, shared: Arc<Shared>) -> Arc<Self> {
        let state = State { phase: Phase::Idle, offer: None, failures: 0, retry: None };
        let over = shared.over.child_token();
        let account = match &config.endpoint {
            Endpoint::Http { url, oauth: Some(oauth), .. } => url.parse().ok().map(|url| {
                let who = (config.name.as_str(), url, oauth.clone());
                Arc::new(Account::new(who, shared.tokens.clone(), shared.person.clone(), over.clone()))
            }),
            _ => None,
        };
        Arc::new(Self {
            config,
            slug,
            shared,
            state: watch::Sender::new(state),
            over,
            child: Mutex::default(),
            account,
        })
    }

    /// Ends it for good.
    pub(super) fn dismiss(&self) {
        self.over.cancel();
    }

    /// How it stands.
    pub fn phase(&self) -> Phase {
        self.state.borrow().phase.clone()
    }

    /// What it offers, as far as that is known.
    pub fn offer(&self) -> Option<Arc<Offer>> {
        self.state.borrow().offer.clone()
    }

    /// Whether a person is signing in to it just now.
    pub(super) fn is_awaited(&self) -> bool {
        self.account.as_ref().is_some_and(|account| account.is_waiting())
    }

    /// Whether somebody is signed in to it.
    pub fn is_signed_in(&self) -> bool {
        self.account.as_ref().is_some_and(|account| account.token().is_some())
    }

    /// Forgets who is signed in to it. Says whether anybody was.
    pub fn sign_out(&self) -> Result<bool, String> {
        self.account.as_ref().map_or(Ok(false), |account| account.forget())
    }

    pub(super) fn is_busy(&self) -> bool {
        matches!(self.phase(), Phase::Ready(connection) if connection.idle_since().is_none())
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        self.state.send_modify(change);
        self.shared.news.send_modify(|count| *count += 1);
    }

    /// Takes the work of connecting upon the caller. False if somebody else does it, or has.
    fn claim(&self) -> bool {
        let claimed = self.state.send_if_modified(|state| {
            let free = matches!(state.phase, Phase::Idle | Phase::Failed(_));
            if free {
                state.phase = Phase::Connecting;
            }
            free
        });
        if claimed {
            self.shared.news.send_modify(|count| *count += 1);
        }
        claimed
    }

    /// Connects in the background, unless that is done or being done.
    pub fn wake(self: &Arc<Self>) {
        if !self.over.is_cancelled() && self.claim() {
            self.shared.keepers.spawn(self.clone().keep());
        }
    }

    /// Waits until the server is connected, or why it is not.
    pub async fn connection(self: &Arc<Self>) -> Result<Arc<Connection>, String> {
        let (phase, retry) = {
            let state = self.state.borrow();
            (state.phase.clone(), state.retry)
        };
        if let (Phase::Failed(why), Some(retry)) = (&phase, retry) {
            let left = retry.saturating_duration_since(Instant::now());
            if left > PATIENCE {
                return Err(format!("{why}; it is tried again in {} s", left.as_secs()));
            }
            sleep(left).await;
        }
        self.wake();
        let mut state = self.state.subscribe();
        let settled = |state: &State| matches!(state.phase, Phase::Ready(_) | Phase::Failed(_));
        let closed = || "the servers are being closed".to_owned();
        let wait = async { state.wait_for(settled).await.map(|state| state.phase.clone()).ok() };
        let phase = self.over.run_until_cancelled(wait).await.flatten().ok_or_else(closed)?;
        match phase {
            Phase::Ready(connection) => Ok(connection),
            Phase::Failed(why) => Err(why),
            Phase::Idle | Phase::Connecting => Err(closed()),
        }
    }

    /// Why `connection` has ended; a moment is given for that to be known.
    pub(super) async fn end_of(&self, connection: &Arc<Connection>) -> String {
        let mut state = self.state.subscribe();
        let other =
            |state: &State| !matches!(&state.phase, Phase::Ready(now) if Arc::ptr_eq(now, connection));
        let known = timeout(GRACE * 4, state.wait_for(other)).await;
        match known.ok().and_then(Result::ok).map(|state| state.phase.clone()) {
            Some(Phase::Failed(why)) => why,
            _ => "the server closed the connection".to_owned(),
        }
    }

    async fn keep(self: Arc<Self>) {
        let mut worked = false;
        loop {
            let began = Instant::now();
            let why = match self.connect().await {
                Err(why) => why,
                Ok((service, connection)) => {
                    worked = true;
                    let ending = self.attend(service, &connection).await;
                    let why = connection.end().await;
                    if ending == Ending::Unwanted {
                        return self.change(|state| state.phase = Phase::Idle);
                    }
                    if began.elapsed() > STEADY {
                        self.state.send_modify(|state| state.failures = 0);
                    }
                    why
                }
            };
            let mut rest = Duration::ZERO;
            self.change(|state| {
                state.failures += 1;
                rest = pause(state.failures);
                state.retry = Some(Instant::now() + rest);
                state.phase = Phase::Failed(why);
            });
            let again = worked && self.state.borrow().failures <= RESTARTS;
            let waited = async { sleep(rest).await };
            if !again || self.over.run_until_cancelled(waited).await.is_none() || !self.claim() {
                return;
            }
        }
    }

    /// Opens a conversation and asks for the tools.
    async fn connect(
        self: &Arc<Self>,
    ) -> Result<(RunningService<RoleClient, Arc<Front>>, Arc<Connection>), String> {
        let limit = self.shared.limits.connect;
        let oddities = Arc::<Oddities>::default();
        let work = async {
            let Opened { service, front, child } = open::open(self, &oddities).await?;
            let offer = offer::ask(self, service.peer()).await;
            let connection = Connection {
                peer: service.peer().clone(),
                front,
                oddities: oddities.clone(),
                child,
                busy: AtomicUsize::new(0),
                used: Mutex::new(Instant::now()),
            };
            match offer {
                Ok(offer) => Ok((service, Arc::new(connection), offer)),
                Err(why) => {
                    let end = connection.end().await;
                    Err(format!("it does not say which tools it has: {why} ({end})"))
                }
            }
        };
        let late = || {
            let odd = oddities.words().map(|odd| format!("; {odd}")).unwrap_or_default();
            Err(format!("it was not ready within {} s{odd}", limit.as_secs_f64()))
        };
        let work = async {
            let (mut work, mut left) = (std::pin::pin!(work), limit);
            loop {
                let step = LOOK.min(left);
                match timeout(step, &mut work).await {
                    // A person takes longer, and has a limit of their own.
                    Err(_) if self.is_awaited() => {}
                    Err(_) if step < left => left -= step,
                    done => return done,
                }
            }
        };
        let work = self.over.run_until_cancelled(work);
        let opened = work.await.unwrap_or_else(|| Ok(Err("the servers are being closed".to_owned())));
        let (service, connection, offer) = opened.unwrap_or_else(|_| late())?;
        self.change(|state| {
            state.offer = Some(Arc::new(offer));
            state.phase = Phase::Ready(connection.clone());
        });
        Ok((service, connection))
    }

    /// Stays with a conversation until it ends or nobody wants it.
    async fn attend(
        self: &Arc<Self>,
        service: RunningService<RoleClient, Arc<Front>>,
        connection: &Arc<Connection>,
    ) -> Ending {
        let stop = service.cancellation_token();
        let peer = service.peer().clone();
        let mut gone = std::pin::pin!(service.waiting());
        let mut news = std::pin::pin!(offer::news(&peer, &connection.front));
        loop {
            let rests = connection.idle_since().unwrap_or_else(Instant::now) + self.shared.limits.idle;
            tokio::select! {
                _ = &mut gone => return Ending::Gone,
                () = self.over.cancelled() => break,
                () = sleep_until(rests) => {
                    let idle = connection.idle_since().map(|since| since.elapsed());
                    if idle.is_some_and(|idle| idle >= self.shared.limits.idle) {
                        break;
                    }
                }
                () = &mut news => {
                    let asked = timeout(self.shared.limits.connect, offer::ask(self, &peer)).await;
                    match asked.unwrap_or_else(|_| Err("it took too long".to_owned())) {
                        Ok(offer) => self.change(|state| state.offer = Some(Arc::new(offer))),
                        Err(why) => connection.oddities.note(format!("its new list of tools: {why}")),
                    }
                    sleep(CALM).await;
                    news.set(offer::news(&peer, &connection.front));
                }
            }
        }
        stop.cancel();
        timeout(GRACE, gone).await.ok();
        Ending::Unwanted
    }
}
