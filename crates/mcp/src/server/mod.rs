//! The tools here, served to any client over stdio or HTTP.
//!
//! A [`Host`] opens sessions; everything else, the protocol in all its revisions, is here. Calls go
//! the way of every call, one turn each; a question goes to the person behind the client.
#![expect(deprecated, reason = "the newest revision drops log messages; clients of earlier ones show them")]

mod call;
mod client;
mod gate;
mod http;
mod lines;
mod log;
mod question;
mod shown;

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
};

use futures::future::BoxFuture;
use gripper_runtime::{Toolbox, approve::Approver, prompts::Prompts};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CompleteRequestMethod, CompleteRequestParams,
        CompleteResult, CustomRequest, CustomResult, ErrorCode, GetPromptRequestParams, GetPromptResponse,
        GetPromptResult, Implementation, ListPromptsResult, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams, PromptMessage, ReadResourceRequestParams, ReadResourceResponse,
        ReadResourceResult, Resource, ResourceContents, Role, ServerCapabilities, ServerConfig,
        SetLevelRequestMethod, SetLevelRequestParams, SubscriptionFilter,
    },
    service::{RequestContext, SubscriptionContext, SubscriptionSendError, serve_server},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::watch,
};

use client::{Changed, Client, stateless};
use lines::Lines;

#[doc(hidden)]
pub use http::serve_http_with;
pub use http::{HttpOptions, serve_http};

/// The longest message that is taken from a client.
const LONGEST_MESSAGE: usize = 16 * 1024 * 1024;

/// Clients of a revision without sessions that are told apart.
const MOST_SHARED: usize = 64;

const INSTRUCTIONS: &str = "\
Tools to read, search and change the files of a project and to run commands in it. Every call is \
judged by the rules of the person who runs this server: a denied call says which rule would allow \
it, so do not try to get around one. Prefer Grep, Glob and Read over commands that do the same.";

/// Whoever opens sessions for clients.
pub trait Host: Send + Sync + 'static {
    /// Opens a session; `Err` says why not, in words for the client.
    fn open(&self, opening: Opening) -> BoxFuture<'_, Result<Arc<dyn Session>, String>>;
}

/// What a session is opened with.
pub struct Opening {
    /// The folders the client works in, if it told.
    pub roots: Vec<PathBuf>,
    /// Leads to the person behind the client.
    pub approver: Arc<dyn Approver>,
}

/// A client's session.
pub trait Session: Send + Sync {
    /// Its tools and its policy.
    fn toolbox(&self) -> &Arc<Toolbox>;

    /// How many calls run at once.
    fn concurrency(&self) -> usize;

    /// Changes whenever its tools or prompts may have. Without it they never do.
    fn changes(&self) -> Option<watch::Receiver<u64>> {
        None
    }

    /// Takes in settings that changed. Called before each request.
    fn refresh(&self) {}

    /// The prompts that the person behind the client may pick, as they are now.
    fn prompts(&self) -> Arc<Prompts> {
        Arc::default()
    }

    /// What a client may read besides calling tools.
    fn documents(&self) -> Vec<Document> {
        Vec::new()
    }

    /// The media type and the text of one of them; `None` if there is none of that address.
    fn document(&self, _uri: &str) -> Option<Result<(&'static str, String), String>> {
        None
    }

    /// The client is gone.
    fn end(&self) -> BoxFuture<'_, ()>;
}

/// Something a client may read.
pub struct Document {
    /// Its address.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// What it is, in words.
    pub description: String,
    /// Such as `text/plain`.
    pub media_type: &'static str,
}

/// Serves one client over a pair of streams until it goes away.
pub async fn serve_stream(
    host: Arc<dyn Host>,
    read: impl AsyncRead + Send + Unpin + 'static,
    write: impl AsyncWrite + Send + Unpin + 'static,
) -> Result<(), String> {
    let client = Client::new(host);
    let server = Server { own: client.clone(), shared: None };
    let served = match serve_server(server, Lines::new(read, write)).await {
        Ok(running) => running.waiting().await.map(|_| ()).map_err(|error| error.to_string()),
        // One that goes away without a word has not lost anything.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(error.to_string()),
    };
    client.end().await;
    served
}

/// Clients of a revision that has no sessions, by the name they give: requests of one belong together.
struct Shared {
    host: Arc<dyn Host>,
    clients: Mutex<HashMap<String, Arc<Client>>>,
}

impl Shared {
    fn client(&self, name: String) -> Arc<Client> {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        if clients.len() >= MOST_SHARED && !clients.contains_key(&name) {
            // One that has a call open is held by that call.
            let idle = clients.iter().find(|(_, client)| Arc::strong_count(client) == 1);
            if let Some(idle) = idle.map(|(name, _)| name.clone()) {
                clients.remove(&idle);
            }
        }
        clients.entry(name).or_insert_with(|| Client::new(self.host.clone())).clone()
    }
}

/// One connection.
#[doc(hidden)]
pub struct Server {
    own: Arc<Client>,
    /// Where requests without a session go, for connections that are only one request long.
    shared: Option<Arc<Shared>>,
}

impl Server {
    fn client(&self, context: &RequestContext<RoleServer>) -> Arc<Client> {
        match &self.shared {
            Some(shared) if stateless(context) => {
                let name = context.client_info().map(|info| format!("{} {}", info.name, info.version));
                shared.client(name.unwrap_or_default())
            }
            _ => self.own.clone(),
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_logging().enable_tools();
        let capabilities = capabilities.enable_tool_list_changed().enable_resources();
        let capabilities = capabilities.enable_prompts().enable_prompts_list_changed().build();
        let own = Implementation::new("gripper", env!("CARGO_PKG_VERSION")).with_title("Gripper");
        ServerConfig::new(capabilities).with_server_info(own).with_instructions(INSTRUCTIONS)
    }

    async fn set_level(
        &self,
        params: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        if stateless(&context) {
            // There, each request says what it wants to hear.
            return Err(ErrorData::method_not_found::<SetLevelRequestMethod>());
        }
        self.client(&context).log.listen(params.level);
        Ok(())
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let client = self.client(&context);
        let pool = client.tell(&client.session(&context).await?);
        Ok(ListToolsResult::with_all_items(
            pool.tools().iter().map(|tool| shown::tool(tool.spec())).collect(),
        ))
    }

    fn accepted_subscription_filter(&self, _requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let mut filter = SubscriptionFilter::new();
        (filter.tools_list_changed, filter.prompts_list_changed) = (Some(true), Some(true));
        Some(filter)
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let context = subscription.request_context();
        let client = self.client(context);
        let mut changes = client.changes(&client.session(context).await?);
        loop {
            let changed = tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                changed = changes.next() => changed,
            };
            let told = match changed {
                None => return Ok(()),
                Some(Changed::Tools) => subscription.sink().notify_tool_list_changed().await,
                Some(Changed::Prompts) => subscription.sink().notify_prompt_list_changed().await,
            };
            // One that did not ask for this kind of news may have asked for the other.
            if !matches!(told, Ok(()) | Err(SubscriptionSendError::NotificationNotAccepted(_))) {
                return Ok(());
            }
        }
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        call::run(&self.client(&context), params, &context).await
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // A request that the protocol's types do not take ends up here, whatever its method.
        if matches!(request.method.as_str(), "tools/call" | "resources/read" | "prompts/get") {
            let why = format!("the parameters do not fit {}", request.method);
            return Err(ErrorData::invalid_params(why, None));
        }
        let method: String = request.method.chars().take(100).collect();
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, format!("there is no method {method}"), None))
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let client = self.client(&context);
        let prompts = client.tell_prompts(&client.session(&context).await?);
        Ok(ListPromptsResult::with_all_items(prompts.iter().map(shown::prompt).collect()))
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let prompts = self.client(&context).session(&context).await?.prompts();
        let Some(prompt) = prompts.get(&params.name) else {
            let shown: String = params.name.chars().take(64).collect();
            let near = prompts.near(&params.name);
            let hint =
                if near.is_empty() { String::new() } else { format!(": did you mean {}?", near.join(", ")) };
            return Err(ErrorData::invalid_params(
                format!("there is no prompt called {shown:?}{hint}"),
                None,
            ));
        };
        let text = prompt.filled(&params.arguments.unwrap_or_default());
        let text = text.map_err(|why| ErrorData::invalid_params(why, None))?;
        let messages = vec![PromptMessage::new_text(Role::User, text)];
        Ok(GetPromptResult::new(messages).with_description(prompt.description.clone()).into())
    }

    async fn complete(
        &self,
        _params: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        // An empty list would promise what `get_info` does not declare.
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let session = self.client(&context).session(&context).await?;
        let resource = |document: Document| {
            Resource::new(document.uri, document.name)
                .with_description(document.description)
                .with_mime_type(document.media_type)
        };
        let all = session.documents().into_iter().map(resource).collect();
        Ok(ListResourcesResult::with_all_items(all))
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let session = self.client(&context).session(&context).await?;
        match session.document(&params.uri) {
            Some(Ok((media_type, text))) => {
                let contents = ResourceContents::text(text, params.uri).with_mime_type(media_type);
                Ok(ReadResourceResult::new(vec![contents]).into())
            }
            Some(Err(why)) => Err(ErrorData::internal_error(why, None)),
            None => {
                let uri: String = params.uri.chars().take(200).collect();
                let told = serde_json::json!({ "uri": uri });
                Err(ErrorData::resource_not_found(format!("there is no resource {uri}"), Some(told)))
            }
        }
    }
}
