//! One request to a server and the wait for its answer.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use gripper_runtime::{ErrorCode, ToolError, tool::ProgressSender};
use rmcp::{
    RoleClient,
    model::{
        CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, InputResponses, ServerResult,
    },
    service::{PeerRequestOptions, RequestHandle, ServiceError},
};
use serde_json::{Map, Value};
use tokio::{sync::watch, time::Instant};
use tokio_util::task::TaskTracker;

use super::{
    front::Waiting,
    server::{Connection, Server},
};

/// Rounds in which a server may want to know more before it goes on.
const ROUNDS: usize = 10;
/// Progress extends a call up to this many times its limit, or an hour if that is longer.
const EXTENSIONS: u32 = 10;
const HOUR: Duration = Duration::from_secs(3_600);
/// How often it is looked whether a person is still thinking.
const LOOK: Duration = Duration::from_millis(200);

/// Who asks, and who wants to know how far it is.
#[derive(Default)]
pub(super) struct Asked {
    pub(super) progress: Option<ProgressSender>,
    pub(super) session: Option<Arc<str>>,
}

/// Answers to a server's questions, and what it wants to be reminded of with them.
pub(super) type Answered = (Option<InputResponses>, Option<String>);

/// A request that is out. Dropped without an answer, it is cancelled.
struct Out(Option<RequestHandle<RoleClient>>, TaskTracker);

impl Drop for Out {
    fn drop(&mut self) {
        if let (Some(handle), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current()) {
            let cancel = handle.cancel(Some("nobody waits for the answer any more".to_owned()));
            self.1.spawn_on(cancel, &runtime);
        }
    }
}

impl Server {
    /// Calls a tool by the server's name for it.
    pub(super) async fn call_tool(
        self: &Arc<Self>,
        tool: &str,
        arguments: Map<String, Value>,
        mut asked: Asked,
    ) -> Result<CallToolResult, ToolError> {
        let mut params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let answer = self.negotiate(&mut asked, |(answers, state)| {
            (params.input_responses, params.request_state) = (answers, state);
            ClientRequest::CallToolRequest(CallToolRequest::new(params.clone()))
        });
        match answer.await? {
            ServerResult::CallToolResult(result) => Ok(result),
            _ => Err(self.failed("its answer is no result of a tool")),
        }
    }

    /// Asks until the server needs to know nothing more. `request` makes the next request from what was answered to
    /// its last questions.
    pub(super) async fn negotiate(
        self: &Arc<Self>,
        asked: &mut Asked,
        mut request: impl FnMut(Answered) -> ClientRequest,
    ) -> Result<ServerResult, ToolError> {
        let mut answered = Answered::default();
        for _ in 0..ROUNDS {
            let (connection, answer) = self.request(request(answered), asked).await?;
            let ServerResult::InputRequiredResult(wanted) = answer else { return Ok(answer) };
            let answers = connection.front.fulfil(wanted.input_requests.unwrap_or_default()).await;
            let answers = answers.map_err(|error| self.failed(&error.message))?;
            answered = ((!answers.is_empty()).then_some(answers), wanted.request_state);
        }
        Err(self.failed(&format!("it wanted to know more than {ROUNDS} times")))
    }

    pub(super) fn failed(&self, why: &str) -> ToolError {
        ToolError::new(ErrorCode::Failed, format!("the server {} failed: {why}", self.config.name))
    }

    /// Sends a request and waits for its answer, connecting first if need be.
    pub(super) async fn request(
        self: &Arc<Self>,
        request: ClientRequest,
        asked: &mut Asked,
    ) -> Result<(Arc<Connection>, ServerResult), ToolError> {
        let name = &self.config.name;
        let connection = self.connection().await.map_err(|why| {
            let words =
                format!("the server {name} is not connected: {why}; `gripper mcp test {name}` tells more");
            ToolError::new(ErrorCode::Io, words)
        })?;
        let _busy = connection.begin();
        let (alive, beats) = watch::channel(0);
        let (mut out, token) = {
            let mut waiting = connection.front.waiting.lock().await;
            let sent =
                connection.peer.send_request_with_option(request, PeerRequestOptions::no_options()).await;
            let handle = match sent {
                Ok(handle) => handle,
                Err(error) => return Err(self.trouble(&connection, error).await),
            };
            let token = handle.progress_token.clone();
            let call = Waiting { session: asked.session.clone(), progress: asked.progress.clone(), alive };
            waiting.insert(token.clone(), call);
            (Out(Some(handle), self.shared.farewells.clone()), token)
        };
        let answer = self.answer(&connection, &mut out, beats).await;
        connection.front.waiting.lock().await.remove(&token);
        match answer {
            Ok(Ok(result)) => {
                out.0 = None;
                Ok((connection, result))
            }
            Ok(Err(error)) => {
                out.0 = None;
                Err(self.trouble(&connection, error).await)
            }
            Err(late) => Err(late),
        }
    }

    /// The answer, or an error when its time is up. Progress and questions to a person extend the time.
    async fn answer(
        &self,
        connection: &Connection,
        out: &mut Out,
        mut beats: watch::Receiver<u64>,
    ) -> Result<Result<ServerResult, ServiceError>, ToolError> {
        let Some(handle) = &mut out.0 else { return Ok(Err(ServiceError::TransportClosed)) };
        let limit = self.config.call_limit;
        let begin = Instant::now();
        let last = begin + (limit * EXTENSIONS).max(HOUR);
        let mut due = begin + limit;
        loop {
            tokio::select! {
                biased;
                answer = &mut handle.rx => return Ok(answer.unwrap_or(Err(ServiceError::TransportClosed))),
                Ok(()) = beats.changed() => due = (Instant::now() + limit).min(last),
                () = tokio::time::sleep(LOOK), if self.waits_for_a_person(connection) => {
                    due = Instant::now() + limit;
                }
                () = tokio::time::sleep_until(due) => {
                    let odd = connection.oddities.words().map(|odd| format!("; {odd}")).unwrap_or_default();
                    let words = format!(
                        "the server {} gave no answer within {} s{odd}; \"timeout\" in its configuration sets the limit",
                        self.config.name,
                        begin.elapsed().as_secs_f64().round(),
                    );
                    return Err(ToolError::new(ErrorCode::Timeout, words));
                }
            }
        }
    }

    fn waits_for_a_person(&self, connection: &Connection) -> bool {
        connection.front.asking.load(Ordering::SeqCst) > 0 || self.is_awaited()
    }

    async fn trouble(&self, connection: &Arc<Connection>, error: ServiceError) -> ToolError {
        match error {
            ServiceError::McpError(error) => {
                self.failed(&format!("{} (code {})", error.message, error.code.0))
            }
            ServiceError::TransportClosed => {
                let why = self.end_of(connection).await;
                let words = format!("the server {} was lost during the call: {why}", self.config.name);
                ToolError::new(ErrorCode::Io, words)
            }
            ServiceError::TransportSend(error) => {
                let known = error.error.downcast_ref();
                self.failed(&known.map_or_else(|| error.error.to_string(), super::http::words))
            }
            other => self.failed(&other.to_string()),
        }
    }
}
