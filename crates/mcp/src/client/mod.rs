//! Servers of others as tools here.
//!
//! [`config`] says which servers there are, [`Servers`] keeps the conversations with them: each is connected
//! in the background or when it is first called, started again when it dies, and let go when nobody calls it.
//! Their tools go into the pools of the sessions that are attached. Whatever a server sends is bounded before
//! it is read, and what goes wrong with one server is one error of one call.

mod call;
pub mod config;
mod front;
mod http;
mod link;
mod names;
mod offer;
mod open;
mod prompts;
mod results;
mod server;
mod sign_in;
mod tool;

use std::{
    collections::HashSet,
    ffi::OsString,
    path::PathBuf,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use futures::future::{BoxFuture, join_all};
use gripper_process::live::Live;
use gripper_runtime::{Block, DynTool, ErrorCode, ToolError, Toolbox, hooks::CallTool, tool::Loading};
use rmcp::model::{
    ClientRequest, ListResourcesRequest, PaginatedRequestParams, ReadResourceRequest,
    ReadResourceRequestParams, ServerResult,
};
use serde_json::{Map, Value};
use tokio::{
    sync::watch,
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub use offer::Offer;
pub use prompts::{RemotePrompt, Spoken};
pub use server::{Connection, Phase, Server};
pub use sign_in::SignIn;
pub use tool::RemoteTool;

use call::Asked;
use config::ServerConfig;
use front::Sessions;
use server::Shared;

/// News within so short a time make one snapshot of the tools.
const CALM: Duration = Duration::from_millis(20);
/// How long servers have at the end.
const FAREWELL: Duration = Duration::from_millis(400);
/// Pages of a list that are read.
const MOST_PAGES: usize = 20;

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Until a server has said which tools it has.
    pub connect: Duration,
    /// Until a server that nobody calls is let go.
    pub idle: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { connect: Duration::from_secs(30), idle: Duration::from_secs(600) }
    }
}

/// Signing in to servers.
#[derive(Default)]
pub struct Accounts {
    /// Where tokens are kept. Without it they are forgotten at the end.
    pub file: Option<PathBuf>,
    /// Who opens the page to sign in on. Without anybody nobody is signed in.
    pub person: Option<Arc<dyn SignIn>>,
}

/// The servers of a process, shared by its sessions. They end when this is dropped.
pub struct Servers {
    shared: Arc<Shared>,
    /// Counts what was put into sessions.
    published: watch::Sender<u64>,
    all: RwLock<Vec<Arc<Server>>>,
}

impl Drop for Servers {
    fn drop(&mut self) {
        self.shared.over.cancel();
    }
}

/// A resource of a server.
#[derive(Debug, Clone, serde::Serialize, schemars::JsonSchema)]
pub struct Resource {
    /// The server.
    pub server: String,
    /// What to read it by.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

impl Servers {
    /// Servers that are connected when they are wanted. Children run in `cwd` with little of `env`.
    pub fn new(
        configs: Vec<ServerConfig>,
        env: Vec<(OsString, OsString)>,
        cwd: PathBuf,
        limits: Limits,
        accounts: Accounts,
    ) -> Arc<Self> {
        let shared = Shared {
            env,
            cwd,
            sessions: Arc::new(Sessions::default()),
            news: watch::Sender::new(0),
            over: CancellationToken::new(),
            keepers: TaskTracker::new(),
            farewells: TaskTracker::new(),
            limits,
            starting: tokio::sync::Mutex::default(),
            tokens: Arc::new(sign_in::Tokens::new(accounts.file)),
            person: accounts.person,
        };
        let servers = Arc::new(Self {
            shared: Arc::new(shared),
            published: watch::Sender::new(0),
            all: RwLock::default(),
        });
        servers.replace(configs);
        servers
    }

    /// Goes on with other servers; those that stay as they are keep their conversations.
    pub fn replace(&self, configs: Vec<ServerConfig>) {
        let mut taken = HashSet::new();
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        let before = std::mem::take(&mut *all);
        // Who is called just so keeps the name, and with it what rules say of it; others give way.
        let mut slugs: Vec<Option<String>> = configs
            .iter()
            .map(|config| names::is_plain(&config.name).then(|| names::of_server(&config.name, &mut taken)))
            .collect();
        for (config, slug) in configs.iter().zip(&mut slugs) {
            slug.get_or_insert_with(|| names::of_server(&config.name, &mut taken));
        }
        for (config, slug) in configs.into_iter().zip(slugs.into_iter().flatten()) {
            let same = before.iter().find(|server| server.config == config && server.slug == slug);
            all.push(same.cloned().unwrap_or_else(|| Server::new(config, slug, self.shared.clone())));
        }
        let gone = before.iter().filter(|old| !all.iter().any(|new| Arc::ptr_eq(old, new)));
        gone.for_each(|old| old.dismiss());
        drop(all);
        self.shared.news.send_modify(|count| *count += 1);
    }

    /// Every server, by name.
    pub fn all(&self) -> Vec<Arc<Server>> {
        self.all.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A server by its name, or by its part of the names of its tools.
    pub fn named(&self, name: &str) -> Option<Arc<Server>> {
        let all = self.all();
        all.iter()
            .find(|server| server.config.name == name)
            .or(all.iter().find(|server| server.slug == name))
            .cloned()
    }

    /// Connects all in the background.
    pub fn start(&self) {
        self.all().iter().for_each(Server::wake);
    }

    /// Keeps the tools of a session up to date for as long as both live.
    pub fn attach(self: &Arc<Self>, toolbox: &Arc<Toolbox>) {
        self.shared.sessions.add(toolbox);
        let mut news = self.shared.news.subscribe();
        let (servers, toolbox) = (Arc::downgrade(self), Arc::downgrade(toolbox));
        tokio::spawn(async move {
            while let (Some(servers), Some(toolbox)) = (servers.upgrade(), toolbox.upgrade()) {
                servers.publish_to(&toolbox);
                drop((servers, toolbox));
                if news.changed().await.is_err() {
                    return;
                }
                sleep(CALM).await;
                news.mark_unchanged();
            }
        });
    }

    /// Puts the tools as they are now into every session. Gives what was refused.
    pub fn publish(&self) -> Vec<String> {
        self.shared.sessions.all().iter().flat_map(|toolbox| self.publish_to(toolbox)).collect()
    }

    fn publish_to(&self, toolbox: &Toolbox) -> Vec<String> {
        let refused = toolbox.set_foreign_tools(self.tools(), self.connecting());
        self.published.send_modify(|count| *count += 1);
        refused.iter().map(ToString::to_string).collect()
    }

    /// Changes whenever tools were put into sessions.
    pub fn published(&self) -> watch::Receiver<u64> {
        self.published.subscribe()
    }

    /// The tools that are known now.
    pub fn tools(&self) -> Vec<Arc<dyn DynTool>> {
        let offers = self.all().into_iter().filter_map(|server| server.offer());
        offers.flat_map(|offer| offer.tools.clone()).map(|tool| tool as Arc<dyn DynTool>).collect()
    }

    /// The servers that are being connected for the first time.
    pub fn connecting(&self) -> Vec<String> {
        let all = self.all();
        let first =
            |server: &&Arc<Server>| matches!(server.phase(), Phase::Connecting) && server.offer().is_none();
        all.iter().filter(first).map(|server| server.config.name.clone()).collect()
    }

    /// Waits for the server that a tool of this name would come from, and for no other. What came of it stands
    /// in the sessions then. Gives why there is no such tool, if that is known.
    pub async fn ready_for(&self, tool: &str) -> Option<String> {
        let behind = tool.strip_prefix("mcp__")?;
        let own = |server: &Arc<Server>| {
            behind.strip_prefix(server.slug.as_str()).is_some_and(|rest| rest.starts_with("__"))
        };
        let mut trouble = None;
        for server in self.all().into_iter().filter(own) {
            // A server that was there once has its tools in the sessions already.
            if server.offer().is_none()
                && let Err(why) = server.connection().await
            {
                trouble = Some(format!("the server {} is not connected: {why}", server.config.name));
            }
        }
        self.publish();
        trouble
    }

    /// Waits until every server is connected or has failed, but not longer than `limit`.
    pub async fn settle(&self, limit: Duration) {
        let all = self.all();
        timeout(limit, join_all(all.iter().map(Server::connection))).await.ok();
        self.publish();
    }

    /// Ends every conversation. Servers have a moment to hear of what was cancelled and to tidy up.
    pub async fn close(&self) {
        let Shared { keepers, farewells, over, .. } = &*self.shared;
        farewells.close();
        let said = async {
            // A call that was just stopped lets go of its server a moment later.
            while self.all().iter().any(|server| server.is_busy()) {
                sleep(Duration::from_millis(1)).await;
            }
            farewells.wait().await;
        };
        timeout(FAREWELL, said).await.ok();
        // Those that are not yet connected have nothing to tidy up, and there may be many.
        let unready = |server: &Arc<Server>| {
            let connecting = matches!(server.phase(), Phase::Connecting);
            connecting.then(|| server.child.lock().unwrap_or_else(PoisonError::into_inner).upgrade())?
        };
        let unready: Vec<Arc<Live>> = self.all().iter().filter_map(unready).collect();
        tokio::task::spawn_blocking(move || Live::end_together(&unready)).await.ok();
        over.cancel();
        keepers.close();
        timeout(FAREWELL, keepers.wait()).await.ok();
    }

    fn known(&self, name: &str) -> Result<Arc<Server>, ToolError> {
        self.named(name).ok_or_else(|| {
            let names: Vec<String> = self.all().iter().map(|server| server.config.name.clone()).collect();
            let words = format!("there is no server {name:?}: use one of {}", names.join(", "));
            ToolError::new(ErrorCode::NotFound, words)
        })
    }

    /// The resources of a server.
    pub async fn resources(&self, server: &str) -> Result<Vec<Resource>, ToolError> {
        let server = self.known(server)?;
        let mut resources = Vec::new();
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let request = ClientRequest::ListResourcesRequest(ListResourcesRequest::with_param(page));
            let ServerResult::ListResourcesResult(page) = server.ask(request).await? else {
                return Err(ToolError::new(ErrorCode::Failed, "the server's answer is no list of resources"));
            };
            resources.extend(page.resources.into_iter().map(|resource| Resource {
                server: server.config.name.clone(),
                uri: resource.uri,
                name: resource.name,
                description: resource.description,
                mime_type: resource.mime_type,
            }));
            cursor = page.next_cursor;
            if cursor.is_none() {
                break;
            }
        }
        Ok(resources)
    }

    /// The content of a resource.
    pub async fn read(&self, server: &str, uri: &str) -> Result<Vec<Block>, ToolError> {
        let params = ReadResourceRequestParams::new(uri);
        let request = ClientRequest::ReadResourceRequest(ReadResourceRequest::new(params));
        match self.known(server)?.ask(request).await? {
            ServerResult::ReadResourceResult(result) => {
                Ok(result.contents.into_iter().map(results::resource).collect())
            }
            _ => Err(ToolError::new(ErrorCode::Failed, "the server's answer is no resource")),
        }
    }
}

impl Server {
    /// A request on nobody's behalf.
    async fn ask(self: &Arc<Self>, request: ClientRequest) -> Result<ServerResult, ToolError> {
        Ok(self.request(request, &mut Asked::default()).await?.1)
    }

    /// What is wrong with what it sent so far.
    pub fn complaints(&self) -> Vec<String> {
        let mut all = self.offer().map(|offer| offer.complaints.clone()).unwrap_or_default();
        if let Phase::Ready(connection) = self.phase() {
            all.extend(connection.oddities.words());
        }
        all
    }

    /// How many of its tools are never held back.
    pub fn always_loaded(&self) -> usize {
        let always = |tool: &&Arc<RemoteTool>| tool.spec().facts.loading == Loading::Always;
        self.offer().map_or(0, |offer| offer.tools.iter().filter(always).count())
    }

    /// Asks whether it is there.
    pub async fn ping(self: &Arc<Self>) -> Result<(), ToolError> {
        self.ask(ClientRequest::PingRequest(Default::default())).await.map(drop)
    }
}

impl CallTool for Servers {
    fn call<'a>(
        &'a self,
        server: &'a str,
        tool: &'a str,
        input: Map<String, Value>,
    ) -> BoxFuture<'a, Result<String, String>> {
        Box::pin(async move {
            let server = self.known(server).map_err(|error| error.to_string())?;
            let result = server.call_tool(tool, input, Asked::default()).await;
            let output = results::output(result.map_err(|error| error.to_string())?);
            let text: Vec<String> = output.content.iter().map(ToString::to_string).collect();
            let text = text.join("\n");
            if output.is_error { Err(text) } else { Ok(text) }
        })
    }
}
