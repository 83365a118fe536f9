//! Servers behind an address: the SDK's transport with bounded bodies, and the older form with one stream of
//! events for all answers.

use std::{borrow::Cow, collections::HashMap, io, sync::Arc};

use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use reqwest::{
    Client, Response, StatusCode, Url,
    header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, WWW_AUTHENTICATE},
    redirect,
};
use rmcp::{
    ErrorData,
    model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, ServerJsonRpcMessage},
    transport::auth::WWWAuthenticateParams,
    transport::streamable_http_client::{
        AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
        StreamableHttpError, StreamableHttpPostResponse,
    },
};
use sse_stream::{Sse, SseStream};

use super::{
    link::{Carrier, Incoming, LARGEST, Link, Oddities},
    sign_in::{Account, Asked, ROUNDS, TOKEN_WANTED},
};

const STREAM: &str = "text/event-stream";
const JSON: &str = "application/json";
const SESSION: &str = "Mcp-Session-Id";
/// Redirects that are followed for one request.
const HOPS: usize = 5;
/// How much of a page that says what went wrong is shown.
const SHOWN: usize = 300;

type Headers = HashMap<HeaderName, HeaderValue>;
type Failure = StreamableHttpError<reqwest::Error>;

/// A client that takes no body larger than a message may be.
#[derive(Clone)]
pub(super) struct Bounded {
    client: Client,
    /// Who calls, if that is for us to find out.
    account: Option<Arc<Account>>,
}

impl Bounded {
    pub(super) fn new(account: Option<Arc<Account>>) -> Result<Self, String> {
        // A redirect to another origin would hand our headers to somebody else, and other kinds than these
        // two lose the message.
        let follow = redirect::Policy::custom(|attempt| {
            let same =
                attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
            let keeps =
                matches!(attempt.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
            match same && keeps && attempt.previous().len() <= HOPS {
                true => attempt.follow(),
                false => attempt.stop(),
            }
        });
        let client = Client::builder().redirect(follow).pool_max_idle_per_host(0).build();
        client.map(|client| Self { client, account }).map_err(|error| describe(&error))
    }

    /// What says who we are.
    pub(super) fn token(&self) -> Option<String> {
        self.account.as_ref().and_then(|account| account.token())
    }

    /// Sends a request as who we are; a server that asks for more is given it, if that can be had.
    async fn signed<T, Sent>(&self, send: impl Fn(Option<String>) -> Sent) -> Result<T, Failure>
    where
        Sent: Future<Output = Result<T, Failure>>,
    {
        let mut rounds = 0;
        loop {
            let token = self.token();
            let error = match send(token.clone()).await {
                Err(error) => error,
                done => return done,
            };
            let asked = match &error {
                StreamableHttpError::AuthRequired(error) => Asked::Who(&error.www_authenticate_header),
                StreamableHttpError::InsufficientScope(error) => Asked::More(&error.www_authenticate_header),
                _ => return Err(error),
            };
            match &self.account {
                Some(account) if rounds < ROUNDS => {
                    account.renew(asked, token.as_deref()).await.map_err(unexpected)?;
                }
                _ => return Err(error),
            }
            rounds += 1;
        }
    }

    async fn post(
        &self,
        url: &str,
        message: &ClientJsonRpcMessage,
        session: Option<&str>,
        token: Option<String>,
        headers: &Headers,
    ) -> Result<Response, Failure> {
        let mut request = self.client.post(url).header(ACCEPT, format!("{STREAM}, {JSON}"));
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        request = request.headers(headers.clone().into_iter().collect::<HeaderMap>());
        if let Some(session) = session {
            request = request.header(SESSION, session);
        }
        let response = request.json(message).send().await.map_err(StreamableHttpError::Client)?;
        match challenge(&response) {
            Some(challenge) => Err(challenge),
            None => Ok(response),
        }
    }
}

/// A body that is not larger than a message may be.
async fn body(response: Response) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(StreamableHttpError::Client)?;
        if bytes.len() + chunk.len() > LARGEST {
            return Err(unexpected(format!(
                "the server's answer has more than {} MiB, which is not taken",
                LARGEST / (1024 * 1024)
            )));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// The events of a body, none of them larger than `largest`.
fn events(response: Response, largest: usize) -> BoxStream<'static, Result<Sse, SseError>> {
    let (mut size, mut last) = (0, 0);
    let bounded = response.bytes_stream().map_err(io::Error::other).map(move |chunk| {
        let chunk = chunk?;
        for byte in &chunk {
            size += 1;
            // An empty line ends an event.
            if *byte == b'\n' && last == b'\n' {
                size = 0;
            }
            if *byte != b'\r' {
                last = *byte;
            }
        }
        if size > largest { Err(io::Error::other("an event is too large")) } else { Ok(chunk) }
    });
    SseStream::from_bytes_stream(bounded).boxed()
}

fn unexpected(words: String) -> Failure {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(words))
}

/// A challenge to say who we are, if the answer is one.
fn challenge(response: &Response) -> Option<Failure> {
    let words = response.headers().get(WWW_AUTHENTICATE).and_then(|words| words.to_str().ok());
    match (response.status(), words) {
        (StatusCode::UNAUTHORIZED, words) => {
            let words = words.unwrap_or_default().to_owned();
            Some(StreamableHttpError::AuthRequired(AuthRequiredError::new(words)))
        }
        (StatusCode::FORBIDDEN, Some(words)) => {
            let asked = WWWAuthenticateParams::parse(words, response.url());
            let error = InsufficientScopeError::new(words.to_owned(), asked.scope.clone());
            asked.is_insufficient_scope().then_some(StreamableHttpError::InsufficientScope(error))
        }
        _ => None,
    }
}

impl StreamableHttpClient for Bounded {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let attached = session_id.is_some();
        let session = session_id.as_deref();
        let send = |token| self.post(&uri, &message, session, auth_header.clone().or(token), &custom_headers);
        let response = self.signed(send).await?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && attached {
            return Err(StreamableHttpError::SessionExpired);
        }
        let header = |name: &str| Some(response.headers().get(name)?.to_str().ok()?.to_owned());
        let (kind, session) = (header(CONTENT_TYPE.as_str()).unwrap_or_default(), header(SESSION));
        let waits = matches!(message, JsonRpcMessage::Request(_));
        if !status.is_success() {
            let bytes = body(response).await?;
            return failed(&message, attached, status, &kind, &bytes, session);
        }
        if kind.starts_with(STREAM) {
            return Ok(StreamableHttpPostResponse::Sse(events(response, LARGEST), session));
        }
        let bytes = body(response).await?;
        match serde_json::from_slice(&bytes) {
            Ok(answer) if kind.starts_with(JSON) => Ok(StreamableHttpPostResponse::Json(answer, session)),
            _ if !waits => Ok(StreamableHttpPostResponse::Accepted),
            Ok(_) => Err(StreamableHttpError::UnexpectedContentType(Some(kind))),
            Err(error) => Err(unexpected(format!("the answer is no message ({error}): {}", shown(&bytes)))),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<(), Failure> {
        let token = auth_header.or(self.token());
        self.client.delete_session(uri, session_id, token, custom_headers).await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: Headers,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failure> {
        let send = |token| {
            self.client.get_stream_with_max_sse_event_size(
                uri.clone(),
                session_id.clone(),
                last_event_id.clone(),
                auth_header.clone().or(token),
                custom_headers.clone(),
                LARGEST,
            )
        };
        self.signed(send).await
    }
}

/// What an answer other than a success means.
fn failed(
    message: &ClientJsonRpcMessage,
    attached: bool,
    status: StatusCode,
    kind: &str,
    bytes: &[u8],
    session: Option<String>,
) -> Result<StreamableHttpPostResponse, Failure> {
    let refused = matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
    let told = match serde_json::from_slice(bytes) {
        Ok(JsonRpcMessage::Error(error)) => Some(error),
        Ok::<ServerJsonRpcMessage, _>(_) | Err(_) => None,
    };
    // An older server knows nothing of the question which revision it speaks; however it puts that, it is
    // an answer, and the handshake it does know follows.
    if let JsonRpcMessage::Request(request) = message
        && matches!(request.request, ClientRequest::DiscoverRequest(_))
        && !attached
        && !refused
        && status.is_client_error()
    {
        let error = told.map(|told| told.error);
        let error =
            error.unwrap_or_else(|| ErrorData::invalid_request(format!("{status}: {}", shown(bytes)), None));
        let answer = JsonRpcMessage::error(error, Some(request.id.clone()));
        return Ok(StreamableHttpPostResponse::Json(answer, None));
    }
    match told {
        Some(told) if !refused && kind.starts_with(JSON) => {
            Ok(StreamableHttpPostResponse::Json(JsonRpcMessage::Error(told), session))
        }
        _ if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
            Err(HttpStatusError::new(status.as_u16(), None).into())
        }
        _ => Err(unexpected(format!("HTTP {status}: {}", shown(bytes)))),
    }
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim().chars().take(SHOWN).collect()
}

/// Opens the older form: a stream of events, whose first says where messages are posted.
pub(super) async fn older(
    client: Bounded,
    url: &str,
    headers: Headers,
    oddities: Arc<Oddities>,
) -> Result<Link, String> {
    let base = Url::parse(url).map_err(|error| error.to_string())?;
    let opened = client.get_stream(url.into(), None, None, None, headers.clone()).await;
    let mut events = opened.map_err(|error| words(&error))?;
    let place = loop {
        match events.next().await {
            None => return Err("the stream of events ended before it said where to post".to_owned()),
            Some(Err(error)) => return Err(error.to_string()),
            Some(Ok(event)) if event.event.as_deref() == Some("endpoint") => {
                break event.data.unwrap_or_default();
            }
            Some(Ok(_)) => {}
        }
    };
    let place = base.join(place.trim()).map_err(|error| error.to_string())?;
    if place.origin() != base.origin() {
        return Err(format!(
            "it wants messages posted to another place, {}",
            place.origin().ascii_serialization()
        ));
    }
    let (link, Carrier { mut outgoing, incoming }) = Link::new(oddities);
    let poster = incoming.clone();
    let posting = tokio::spawn(async move {
        while let Some(text) = outgoing.recv().await {
            post_older(&client, &place, headers.clone(), text, &poster).await;
        }
    });
    tokio::spawn(async move {
        while let Some(Ok(event)) = events.next().await {
            let data = event.data.unwrap_or_default();
            if !incoming.take(data.as_bytes()).await {
                break;
            }
        }
        // The sender of answers is dropped with the last of the two: the link sees the end.
        posting.abort();
    });
    Ok(link)
}

async fn post_older(client: &Bounded, place: &Url, headers: Headers, text: String, incoming: &Incoming) {
    let Ok(message) = serde_json::from_str::<ClientJsonRpcMessage>(&text) else { return };
    let id = match &message {
        JsonRpcMessage::Request(request) => Some(request.id.clone()),
        _ => None,
    };
    let why = match client.signed(|token| client.post(place.as_str(), &message, None, token, &headers)).await
    {
        Ok(response) if response.status().is_success() => return,
        Ok(response) => format!("the server refused the message: HTTP {}", response.status()),
        Err(error) => words(&error),
    };
    incoming.fail(id, why).await;
}

/// Why a request failed, with its causes and without the address, which may hold a secret.
pub(super) fn words(error: &Failure) -> String {
    match error {
        StreamableHttpError::Client(error) => describe(error),
        StreamableHttpError::AuthRequired(_) => TOKEN_WANTED.to_owned(),
        other => other.to_string(),
    }
}

pub(super) fn describe(error: &reqwest::Error) -> String {
    let mut words = match error.url() {
        Some(url) => error.to_string().replace(&format!(" for url ({url})"), ""),
        None => error.to_string(),
    };
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        words.push_str(&format!(": {error}"));
        cause = error.source();
    }
    words
}
