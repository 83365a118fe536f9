//! What a server may ask of us: roots, questions to the person, and a place for its news.
#![allow(deprecated, reason = "roots and sampling go in a later revision; servers of today still ask")]

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError, Weak,
        atomic::{AtomicUsize, Ordering},
    },
};

use gripper_runtime::{
    Toolbox,
    approve::{Answer, Ask, Reply},
    permissions::{Behavior, By, Decision},
    schema::{InputSchema, describe},
    tool::{Progress, ProgressSender},
};
use reqwest::Url;
use rmcp::{
    ClientHandler, ErrorData, RoleClient,
    model::{
        ClientCapabilities, ClientConfig, CreateMessageRequestParams, CreateMessageResult,
        ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationCapability,
        FormElicitationCapability, Implementation, InputRequest, InputRequests, InputResponses,
        ListRootsResult, ProgressNotificationParam, ProgressToken, ProtocolVersion, Root,
        UrlElicitationCapability,
    },
    service::{NotificationContext, RequestContext},
};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, watch};

/// How often a form is put to the person again when it was not filled in as wanted.
const TRIES: usize = 3;
/// Longest text of a server that a person is shown.
const SHOWN: usize = 2_000;

/// The sessions that use the servers.
#[derive(Default)]
pub(super) struct Sessions(Mutex<Vec<Weak<Toolbox>>>);

impl Sessions {
    pub(super) fn add(&self, toolbox: &Arc<Toolbox>) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(Arc::downgrade(toolbox));
    }

    pub(super) fn all(&self) -> Vec<Arc<Toolbox>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|toolbox| toolbox.strong_count() > 0);
        known.iter().filter_map(Weak::upgrade).collect()
    }

    /// The session with this id, or else the last one.
    fn find(&self, session: Option<&str>) -> Option<Arc<Toolbox>> {
        let all = self.all();
        all.iter().find(|toolbox| Some(toolbox.session()) == session).or(all.last()).cloned()
    }
}

/// A call that waits for its server.
pub(super) struct Waiting {
    pub(super) session: Option<Arc<str>>,
    pub(super) progress: Option<ProgressSender>,
    /// Counts the signs of life.
    pub(super) alive: watch::Sender<u64>,
}

/// Our side of one connection.
pub(super) struct Front {
    server: String,
    sessions: Arc<Sessions>,
    /// Locked while a request goes out, so that no progress comes before its call is known.
    pub(super) waiting: tokio::sync::Mutex<HashMap<ProgressToken, Waiting>>,
    /// Questions that a person is thinking about.
    pub(super) asking: AtomicUsize,
    /// The tools have changed.
    pub(super) stale: Notify,
}

impl Front {
    pub(super) fn new(server: &str, sessions: Arc<Sessions>) -> Self {
        Self {
            server: server.to_owned(),
            sessions,
            waiting: tokio::sync::Mutex::default(),
            asking: AtomicUsize::new(0),
            stale: Notify::new(),
        }
    }

    /// Answers what a server wants to know before it goes on with a call.
    pub(super) async fn fulfil(&self, requests: InputRequests) -> Result<InputResponses, ErrorData> {
        let mut responses = InputResponses::new();
        for (key, request) in requests {
            let answer = match request {
                InputRequest::Elicitation(request) => {
                    serde_json::to_value(self.elicit(request.params).await?)
                }
                InputRequest::ListRoots(_) => serde_json::to_value(self.roots()),
                _ => return Err(no_model()),
            };
            let answer = answer.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            responses.insert(key, answer);
        }
        Ok(responses)
    }

    fn roots(&self) -> ListRootsResult {
        let toolbox = self.sessions.find(None);
        let folders = toolbox.map(|toolbox| toolbox.policy().directories.clone()).unwrap_or_default();
        let mut uris: Vec<String> =
            folders.iter().filter_map(|folder| Url::from_file_path(folder).ok()).map(String::from).collect();
        uris.dedup();
        ListRootsResult::new(uris.into_iter().map(Root::new).collect())
    }

    async fn elicit(&self, request: ElicitRequestParams) -> Result<ElicitResult, ErrorData> {
        self.asking.fetch_add(1, Ordering::SeqCst);
        let _asking = Asking(&self.asking);
        let session = self.waiting.lock().await.values().find_map(|call| call.session.clone());
        let Some(toolbox) = self.sessions.find(session.as_deref()) else {
            return Ok(ElicitResult::new(ElicitationAction::Decline));
        };
        match request {
            ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
                let schema = serde_json::to_value(requested_schema).unwrap_or_default();
                let checked = InputSchema::external(schema.clone())
                    .map_err(|refused| ErrorData::invalid_params(refused.to_string(), None))?;
                Ok(self.fill_in(&toolbox, &message, &schema, &checked).await)
            }
            ElicitRequestParams::UrlElicitationParams { message, url, .. } => {
                let scheme = Url::parse(&url).map(|url| url.scheme().to_owned());
                if !scheme.is_ok_and(|scheme| scheme == "http" || scheme == "https") {
                    return Err(ErrorData::invalid_params("only http and https addresses are shown", None));
                }
                let ask =
                    self.question(&toolbox, "wants you to open a page", &message, json!({ "url": url }));
                let action = match put(&toolbox, ask).await {
                    // Nobody has looked at the page if nobody was asked.
                    Answer::Allow { reason: None, .. } => ElicitationAction::Accept,
                    Answer::Allow { .. } => ElicitationAction::Cancel,
                    Answer::Deny { .. } => ElicitationAction::Decline,
                };
                Ok(ElicitResult::new(action))
            }
            _ => Err(ErrorData::invalid_params("this kind of question is not known here", None)),
        }
    }

    /// Puts a form to the person until it is filled in or declined.
    async fn fill_in(
        &self,
        toolbox: &Arc<Toolbox>,
        message: &str,
        schema: &Value,
        checked: &InputSchema,
    ) -> ElicitResult {
        let mut content = defaults(schema);
        for _ in 0..TRIES {
            let wanted = format!("{message}\n(a form: {})", fields(schema));
            let ask = self.question(toolbox, "asks", &wanted, content.clone());
            let id = ask.id.clone();
            let Answer::Allow { input, reason, .. } = put(toolbox, ask).await else {
                return ElicitResult::new(ElicitationAction::Decline);
            };
            content = input.unwrap_or(content);
            checked.coerce(&mut content);
            let Err(problems) = checked.check(&content) else {
                return ElicitResult::new(ElicitationAction::Accept).with_content(content);
            };
            toolbox.approver().tell(&id, &describe("the form", &problems));
            if reason.is_some() {
                break;
            }
        }
        ElicitResult::new(ElicitationAction::Cancel)
    }

    fn question(&self, toolbox: &Arc<Toolbox>, does: &str, message: &str, input: Value) -> Ask {
        static NUMBER: AtomicUsize = AtomicUsize::new(1);
        let id: Arc<str> = format!("elicitation-{}", NUMBER.fetch_add(1, Ordering::Relaxed)).into();
        let message: String = message.chars().take(SHOWN).collect();
        Ask {
            id: id.clone(),
            call_id: id,
            tool: format!("server {}", self.server).into(),
            agent: "main".into(),
            mode: toolbox.policy().mode,
            summary: message,
            input,
            subjects: Vec::new(),
            preview: None,
            decision: Decision {
                behavior: Behavior::Ask,
                step: 8,
                reason: format!("the server {} {does}; your answer goes to it", self.server).into(),
                by: By::Tool,
                risks: Vec::new(),
                suggestions: Vec::new(),
            },
        }
    }
}

/// Counts a question as open for as long as it lives.
struct Asking<'a>(&'a AtomicUsize);

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Takes a question back when nobody waits for its answer any more.
struct Open<'a>(&'a Toolbox, Arc<str>);

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.approver().remove(&self.1);
    }
}

async fn put(toolbox: &Toolbox, ask: Ask) -> Answer {
    let _open = Open(toolbox, ask.id.clone());
    let (pending, reply) = Reply::open();
    toolbox.approver().push(ask, reply);
    pending.wait().await
}

/// What the fields of a form hold when nobody fills them in.
fn defaults(schema: &Value) -> Value {
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let known = fields.filter_map(|(name, field)| Some((name.clone(), field.get("default")?.clone())));
    Value::Object(known.collect::<Map<_, _>>())
}

fn fields(schema: &Value) -> String {
    let required = schema.get("required").and_then(Value::as_array).cloned().unwrap_or_default();
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let shown = fields.map(|(name, field)| {
        let kind = field.get("type").and_then(Value::as_str).unwrap_or("one of its choices");
        let must = if required.iter().any(|wanted| wanted == name) { "" } else { ", optional" };
        format!("{name} ({kind}{must})")
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn no_model() -> ErrorData {
    let words = "sampling is not offered here: no language model is configured for servers";
    ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, words, None)
}

impl ClientHandler for Front {
    fn get_info(&self) -> ClientConfig {
        let mut capabilities = ClientCapabilities::default();
        capabilities.roots = Some(Default::default());
        let mut elicitation = ElicitationCapability::new();
        elicitation.form = Some(FormElicitationCapability::default());
        elicitation.url = Some(UrlElicitationCapability::default());
        capabilities.elicitation = Some(elicitation);
        ClientConfig::new(capabilities, Implementation::new("gripper", env!("CARGO_PKG_VERSION")))
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
    }

    async fn create_message(
        &self,
        _params: CreateMessageRequestParams,
        _context: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        Err(no_model())
    }

    async fn list_roots(&self, _context: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(self.roots())
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let gone = || Ok(ElicitResult::new(ElicitationAction::Cancel));
        context.ct.run_until_cancelled(self.elicit(request)).await.unwrap_or_else(gone)
    }

    async fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _context: NotificationContext<RoleClient>,
    ) {
        if let Some(call) = self.waiting.lock().await.get(&params.progress_token) {
            call.alive.send_modify(|beats| *beats += 1);
            if let Some(progress) = &call.progress {
                let message = params.message.unwrap_or_default().chars().take(SHOWN).collect();
                progress.report(Progress { message, done: Some(params.progress), total: params.total });
            }
        }
    }

    async fn on_tool_list_changed(&self, _context: NotificationContext<RoleClient>) {
        self.stale.notify_one();
    }
}
