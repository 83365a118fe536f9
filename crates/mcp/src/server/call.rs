//! One call of a client, from its request to its result.

use std::{collections::BTreeMap, sync::Arc, time::Instant};

use futures::{FutureExt, future::BoxFuture};
use gripper_runtime::{
    CallRequest, CallResult, DynTool, Event, Footprint, Turn,
    approve::{Approver, Ask, Headless, Reply},
    tool::Progress,
};
use rmcp::{
    ErrorData, RoleServer, ServiceError,
    model::{
        CallToolRequestParams, CallToolResponse, ElicitRequest, ElicitResult, InputRequest,
        InputRequiredResult, JsonObject, ProgressNotificationParam, ProgressToken,
    },
    service::RequestContext,
};
use serde_json::Value;
use tokio::sync::mpsc;

use super::{
    client::{Client, News, Route, stateless},
    gate::Pass,
    question, shown,
};

/// What the question of a call is called in an answer that asks for it.
const QUESTION: &str = "permission";

/// A call at work.
pub(super) struct Running {
    turn: Turn,
    tool: Arc<dyn DynTool>,
    news: mpsc::UnboundedReceiver<News>,
    /// The client wants the structured form.
    structured: bool,
    _route: Route,
    footprint: Footprint,
    /// Its place at the gate; given up while a person thinks, so that others need not wait for that.
    pass: Option<Pass>,
}

/// A call that waits for the client to come back with an answer.
pub(super) struct Suspended {
    running: Running,
    ask: Box<Ask>,
    reply: Reply,
    /// What was called, so that an answer counts for nothing else.
    name: String,
    arguments: Option<JsonObject>,
    pub(super) since: Instant,
}

/// How the person behind a client is asked.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// By a request of ours.
    Request,
    /// By an answer that says what is missing; the client calls again with it.
    Retry,
    /// Not at all.
    Nobody,
}

/// Runs a call to its end, or to a question that the client must bring the answer to.
pub(super) async fn run(
    client: &Arc<Client>,
    params: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let running = match &params.request_state {
        Some(state) => match resume(client, state, &params, context).await? {
            Ok(running) => running,
            Err(asks_again) => return Ok(asks_again),
        },
        None => begin(client, &params, context).await?,
    };
    drive(client, running, &params, context).await
}

async fn begin(
    client: &Arc<Client>,
    params: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<Running, ErrorData> {
    let session = client.session(context).await?;
    let toolbox = session.toolbox();
    let pool = toolbox.pool();
    let Some(tool) = pool.get(&params.name).cloned() else {
        return Err(ErrorData::invalid_params(absent(&pool, &params.name), None));
    };
    let id = client.next_call();
    let input = Value::Object(params.arguments.clone().unwrap_or_default());
    let request = CallRequest::new(&id, &params.name, input);
    let footprint = toolbox.footprint(&request);
    let pass = Some(enter(client, &footprint, context).await?);
    let (route, news) = client.questions.open(id);
    let turn = toolbox.turn();
    turn.submit(request);
    turn.close();
    let structured = shown::wants_structured(&context.meta);
    Ok(Running { turn, tool, news, structured, _route: route, footprint, pass })
}

/// A place at the gate, unless the client gives up before.
async fn enter(
    client: &Arc<Client>,
    footprint: &Footprint,
    context: &RequestContext<RoleServer>,
) -> Result<Pass, ErrorData> {
    tokio::select! {
        pass = client.gate.enter(footprint.clone()) => Ok(pass),
        () = context.ct.cancelled() => Err(ErrorData::internal_error("the call was cancelled", None)),
    }
}

/// Why there is no such tool, and what there is instead.
fn absent(pool: &gripper_runtime::Pool, name: &str) -> String {
    let shown: String = name.chars().take(64).collect();
    if let Some(absence) = pool.absence(name) {
        return format!("{shown} is not available: {}", absence.reason);
    }
    match pool.near(name).as_slice() {
        [] => format!("there is no tool called \"{shown}\""),
        near => format!("there is no tool called \"{shown}\": did you mean {}?", near.join(", ")),
    }
}

/// Takes a call up again with the client's answer, or asks once more if there is none in it.
async fn resume(
    client: &Arc<Client>,
    state: &str,
    params: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<Result<Running, CallToolResponse>, ErrorData> {
    let unknown = || ErrorData::invalid_params("no call waits under this requestState: call anew", None);
    let mut call = client.resume(state).ok_or_else(unknown)?;
    if call.name != params.name || call.arguments != params.arguments {
        return Err(ErrorData::invalid_params("this requestState belongs to another call: call anew", None));
    }
    let Some(answer) = params.input_responses.as_ref().and_then(|answers| answers.get(QUESTION)) else {
        return Ok(Err(suspended(client, call)));
    };
    call.running.pass = Some(enter(client, &call.running.footprint, context).await?);
    call.reply.answer(question::answer_of_json(&call.ask, answer));
    Ok(Ok(call.running))
}

/// The answer that asks for what is missing.
fn suspended(client: &Arc<Client>, call: Suspended) -> CallToolResponse {
    let form = question::form(&call.ask);
    let state = client.suspend(call);
    let ask = |form| (QUESTION.to_owned(), InputRequest::Elicitation(ElicitRequest::new(form)));
    InputRequiredResult::new(Some(BTreeMap::from_iter(form.map(ask))), Some(state)).into()
}

async fn drive(
    client: &Arc<Client>,
    mut running: Running,
    params: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let way = way(context);
    let mut asking: Option<Asking> = None;
    let mut progress = Reports::of(context);
    let mut last: Option<Arc<CallResult>> = None;
    let mut cancelled = false;
    loop {
        tokio::select! {
            biased;
            () = context.ct.cancelled(), if !cancelled => {
                cancelled = true;
                running.turn.cancel();
            }
            Some(news) = running.news.recv() => match news {
                News::Asked(ask, reply) if way == Way::Retry => {
                    running.pass = None;
                    let (name, arguments) = (params.name.to_string(), params.arguments.clone());
                    let since = Instant::now();
                    return Ok(suspended(client, Suspended { running, ask, reply, name, arguments, since }));
                }
                News::Asked(ask, reply) => {
                    asking = Asking::begin(way, ask, reply, context);
                    running.pass = running.pass.filter(|_| asking.is_none());
                }
                News::Moot(id) => asking = asking.filter(|open| open.ask.id != id),
            },
            result = heard(&mut asking) => if let Some(open) = asking.take() {
                running.pass = Some(enter(client, &running.footprint, context).await?);
                open.settle(result);
            },
            event = running.turn.next() => match event {
                Some(Event::Result(result)) => last = Some(result),
                Some(Event::Progress { progress: report, .. }) => progress.send(report, context).await,
                Some(event) => client.log.tell(&event, context).await,
                None => break,
            },
        }
    }
    let result = last.ok_or_else(|| ErrorData::internal_error("the call has no result", None))?;
    Ok(shown::result(&result, running.tool.spec(), running.structured).into())
}

fn way(context: &RequestContext<RoleServer>) -> Way {
    let asks = |capabilities: rmcp::model::ClientCapabilities| {
        // One that names neither kind means forms, which were the only kind once.
        capabilities.elicitation.is_some_and(|kinds| kinds.form.is_some() || kinds.url.is_none())
    };
    match context.client_capabilities().is_some_and(asks) {
        false => Way::Nobody,
        true if stateless(context) => Way::Retry,
        true => Way::Request,
    }
}

/// A question the client has been sent.
struct Asking {
    ask: Box<Ask>,
    reply: Reply,
    result: BoxFuture<'static, Result<ElicitResult, ServiceError>>,
}

impl Asking {
    /// Asks, or says no with the rule that would have settled it.
    fn begin(way: Way, ask: Box<Ask>, reply: Reply, context: &RequestContext<RoleServer>) -> Option<Self> {
        let form = (way == Way::Request).then(|| question::form(&ask)).flatten();
        let Some(form) = form else {
            Headless.push(*ask, reply);
            return None;
        };
        let peer = context.peer.clone();
        let result = async move { peer.create_elicitation(form).await }.boxed();
        Some(Self { ask, reply, result })
    }

    fn settle(self, result: Result<ElicitResult, ServiceError>) {
        match result {
            Ok(result) => {
                self.reply.answer(question::answer(&self.ask, &result));
            }
            // The client says it can ask and then cannot: that is as good as nobody.
            Err(_) => Headless.push(*self.ask, self.reply),
        }
    }
}

/// The client's answer to an open question; for ever if there is none.
async fn heard(asking: &mut Option<Asking>) -> Result<ElicitResult, ServiceError> {
    match asking {
        Some(asking) => (&mut asking.result).await,
        None => std::future::pending().await,
    }
}

/// Progress on its way to a client that asked for it.
struct Reports {
    token: Option<ProgressToken>,
    last: f64,
}

impl Reports {
    fn of(context: &RequestContext<RoleServer>) -> Self {
        Self { token: context.meta.get_progress_token(), last: f64::NEG_INFINITY }
    }

    async fn send(&mut self, report: Progress, context: &RequestContext<RoleServer>) {
        let Some(token) = self.token.clone() else { return };
        // The protocol wants it to grow, whatever the tool counts.
        let done = report.done.filter(|done| *done > self.last);
        self.last = done.unwrap_or(self.last.max(0.0) + 1.0);
        let mut shown = ProgressNotificationParam::new(token, self.last).with_message(report.message);
        shown.total = report.total.filter(|_| done.is_some());
        context.peer.notify_progress(shown).await.ok();
    }
}
