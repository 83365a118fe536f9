//! A model behind an address: one request over one of the wires, its answer as events.

use std::{
    collections::HashSet,
    io,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{
    Stream, StreamExt, TryStreamExt, future,
    stream::{self, BoxStream},
};
use reqwest::{
    Client, Response, Url,
    header::{self, HeaderMap, HeaderName, HeaderValue},
    redirect,
};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use sse_stream::{Sse, SseStream};
use tokio::time::timeout;

use super::{
    Key, Model, ModelError, ModelEvent, Request, Trouble,
    answer::{Answer, Decode},
    anthropic,
    fields::Fields,
    http::{Asked, not_the_provider, refusal, shown, unreachable},
    openai_chat, openai_responses,
};

/// Bytes of one answer; more is no answer.
const LARGEST: usize = 64 * 1024 * 1024;
/// Bytes of an error that are looked at.
const ERROR_BYTES: usize = 64 * 1024;
/// How long the rest of a complete answer is waited for, so that its connection can be used again.
const REST: Duration = Duration::from_secs(2);
/// An answer that comes as one may be made for this long before a byte of it is there.
const WHOLE: Duration = Duration::from_secs(600);

/// The ways in which providers are spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Wire {
    /// The Messages API.
    Anthropic,
    /// Chat Completions, which most servers speak.
    #[serde(rename = "openai")]
    OpenAiChat,
    /// The Responses API.
    #[serde(rename = "openai-responses")]
    OpenAiResponses,
}

/// Where a provider is, and how it is reached.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// What it is called in messages.
    pub provider: String,
    /// How it is spoken to.
    pub wire: Wire,
    /// Where its API begins.
    pub base: Url,
    /// Its key.
    pub key: Key,
    /// Where the key is set, for messages.
    pub key_place: String,
    /// The key goes as `authorization: Bearer`, whatever is usual on the wire.
    pub bearer: bool,
    /// Further headers of every request.
    pub headers: HeaderMap,
    /// How long a connection may take.
    pub connect: Duration,
    /// How long nothing may come.
    pub idle: Duration,
    /// How many tokens the model can look at.
    pub window: u64,
}

impl Endpoint {
    /// A provider with the usual limits and without a key.
    pub fn new(provider: &str, wire: Wire, base: Url) -> Self {
        Self {
            provider: provider.to_owned(),
            wire,
            base,
            key: Key::None,
            key_place: String::new(),
            bearer: wire != Wire::Anthropic,
            headers: HeaderMap::new(),
            connect: Duration::from_secs(10),
            idle: Duration::from_secs(90),
            window: 200_000,
        }
    }

    /// Whether it is on this machine.
    pub fn is_local(&self) -> bool {
        let host = self.base.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let address = host.parse::<std::net::IpAddr>();
        address.map_or(host == "localhost" || host.ends_with(".localhost"), |address| address.is_loopback())
    }
}

impl Wire {
    /// The address of requests below a base, which may or may not end with the version.
    fn address(self, base: &Url) -> Url {
        let path = base.path().trim_end_matches('/');
        let (version, end) = match self {
            Wire::Anthropic => (!path.ends_with("/v1"), "messages"),
            Wire::OpenAiChat => (path.is_empty(), "chat/completions"),
            Wire::OpenAiResponses => (path.is_empty(), "responses"),
        };
        let mut url = base.clone();
        url.set_path(&format!("{path}{}/{end}", if version { "/v1" } else { "" }));
        url
    }

    /// `newer` servers have another name for the longest answer.
    pub(super) fn body(self, request: &Request, newer: bool, to: &mut Vec<u8>) -> serde_json::Result<()> {
        match self {
            Wire::Anthropic => serde_json::to_writer(to, &anthropic::Body::of(request)),
            Wire::OpenAiChat => serde_json::to_writer(to, &openai_chat::body(request, newer)),
            Wire::OpenAiResponses => serde_json::to_writer(to, &openai_responses::body(request)),
        }
    }

    fn decoder(self) -> Box<dyn Decode> {
        match self {
            Wire::Anthropic => Box::<anthropic::Decoder>::default(),
            Wire::OpenAiChat => Box::<openai_chat::Decoder>::default(),
            Wire::OpenAiResponses => Box::<openai_responses::Decoder>::default(),
        }
    }
}

/// A model behind an address.
#[derive(Clone)]
pub struct Remote(Arc<Inner>);

struct Inner {
    endpoint: Endpoint,
    url: Url,
    client: OnceLock<Result<Client, String>>,
    /// Bytes of the last body; the next one is a little longer, and need not grow by copying.
    last: AtomicUsize,
}

impl Remote {
    /// Nothing is opened before the first request.
    pub fn new(endpoint: Endpoint) -> Self {
        let url = endpoint.wire.address(&endpoint.base);
        Self(Arc::new(Inner { endpoint, url, client: OnceLock::new(), last: AtomicUsize::new(0) }))
    }
}

impl Model for Remote {
    fn stream(&self, request: Request) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let inner = self.0.clone();
        let secrets = Arc::new(Mutex::new(inner.secret_headers()));
        let known = secrets.clone();
        // Whatever a provider repeats of what it was given, nobody else gets to see it.
        let hide = move |mut error: ModelError| {
            let secrets = secrets.lock().unwrap_or_else(PoisonError::into_inner);
            error.message = secrets.iter().fold(error.message, |text, secret| without(&text, secret));
            error
        };
        stream::once(async move { inner.ask(request, &known).await }).try_flatten().map_err(hide).boxed()
    }

    fn window(&self) -> u64 {
        self.0.endpoint.window
    }
}

type Events = BoxStream<'static, Result<ModelEvent, ModelError>>;

impl Inner {
    /// What the settings put into headers, as far as it may be a secret.
    fn secret_headers(&self) -> Vec<SecretString> {
        let values = self.endpoint.headers.values().filter_map(|value| value.to_str().ok());
        // The last word of "Bearer …".
        let words = values.filter_map(|value| value.split_whitespace().last());
        words.filter(|word| word.len() >= SHORTEST_SECRET).map(|word| word.to_owned().into()).collect()
    }

    async fn ask(&self, request: Request, secrets: &Mutex<Vec<SecretString>>) -> Result<Events, ModelError> {
        let Endpoint { provider, wire, key, key_place, idle, .. } = &self.endpoint;
        let address = self.address();
        let asked = Asked { provider, address: &address, model: &request.model, key: key_place };
        let newer = self.url.host_str() == Some(OPENAI_HOST);
        let refused = |error: serde_json::Error| ModelError::new(Trouble::Refused, error.to_string());
        let last = self.last.load(Ordering::Relaxed);
        let mut body = Vec::with_capacity(last + last / 8);
        wire.body(&request, newer, &mut body).map_err(refused)?;
        self.last.store(body.len(), Ordering::Relaxed);
        let (mut secret, old) = key.get().await?;
        let hide = |key: &Option<SecretString>| {
            secrets.lock().unwrap_or_else(PoisonError::into_inner).extend(key.clone());
        };
        hide(&secret);
        // What is made as one takes as long as all its parts.
        let wait = if request.streamed { *idle } else { (*idle).max(WHOLE) };
        let again = old.then(|| body.clone());
        let mut response = self.send(&asked, secret.as_ref(), body, wait).await?;
        if let (Some(body), true) = (again, response.status() == 401) {
            key.forget().await;
            secret = key.get().await?.0;
            hide(&secret);
            response = self.send(&asked, secret.as_ref(), body, wait).await?;
        }
        let status = response.status();
        if !status.is_success() {
            let headers = response.headers().clone();
            let body = timeout(*idle, start_of(response)).await.unwrap_or_default();
            return Err(refusal(&asked, status, &headers, &body));
        }
        let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        let kind = kind.unwrap_or_default();
        if let Some(what) = no_answer(kind, response.headers()) {
            return Err(not_the_provider(&asked, what));
        }
        let streamed = match kind {
            kind if kind.starts_with("text/event-stream") => true,
            kind if kind.starts_with("application/json") => false,
            _ => request.streamed,
        };
        let calls = request.messages.iter().flat_map(|message| message.calls());
        let taken = calls.map(|(id, ..)| id.to_owned()).collect();
        Ok(decode(*wire, response.bytes_stream(), streamed, wait, taken))
    }

    /// The address in messages: who wrote a secret into it does not see it there.
    fn address(&self) -> String {
        format!("{}{}", self.url.origin().ascii_serialization(), self.url.path())
    }

    async fn send(
        &self,
        asked: &Asked<'_>,
        key: Option<&SecretString>,
        body: Vec<u8>,
        wait: Duration,
    ) -> Result<Response, ModelError> {
        let Endpoint { provider, wire, key_place, bearer, connect, .. } = &self.endpoint;
        let client = self.client.get_or_init(|| self.client()).as_ref();
        let client = client.map_err(|why| ModelError::new(Trouble::Refused, why.clone()))?;
        let mut request = client.post(self.url.clone()).header(header::CONTENT_TYPE, "application/json");
        if *wire == Wire::Anthropic {
            request = request.header("anthropic-version", "2023-06-01");
        }
        if let Some(key) = key {
            let (name, start) = if *bearer { (header::AUTHORIZATION, "Bearer ") } else { (X_API_KEY, "") };
            let value = HeaderValue::try_from(format!("{start}{}", key.expose_secret()));
            let mut value = value.map_err(|_| {
                let what = format!("the key of {provider} holds characters that no key has");
                ModelError::new(Trouble::Unauthorized, format!("{what}; check {key_place}"))
            })?;
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        let request = request.headers(self.endpoint.headers.clone()).body(body);
        match timeout(wait, request.send()).await {
            Ok(sent) => sent.map_err(|error| unreachable(asked, error, *connect)),
            Err(_) => Err(silence(wait)),
        }
    }

    fn client(&self) -> Result<Client, String> {
        // A redirect would take the key somewhere else.
        let mut builder =
            Client::builder().connect_timeout(self.endpoint.connect).redirect(redirect::Policy::none());
        if self.endpoint.is_local() {
            builder = builder.no_proxy();
        }
        if self.url.scheme() == "http" {
            // Reading the system's certificates takes longer than all the rest of the start.
            builder = builder.tls_certs_only([]);
        }
        builder.build().map_err(|error| shown(&error.to_string()))
    }
}

/// Words of headers that are shorter than this are no secrets.
const SHORTEST_SECRET: usize = 8;
/// Its models refuse the name that all others know.
const OPENAI_HOST: &str = "api.openai.com";
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

fn silence(wait: Duration) -> ModelError {
    let seconds = wait.as_secs_f64();
    ModelError::new(Trouble::Broken, format!("nothing came from the model for {seconds} seconds"))
}

/// What came instead of an answer and will come again, whoever asks: a page to sign in at, or something that was not
/// asked for.
fn no_answer(kind: &str, headers: &HeaderMap) -> Option<&'static str> {
    if kind.starts_with("text/html") {
        return Some("a web page");
    }
    let encoding = headers.get(header::CONTENT_ENCODING).map(HeaderValue::as_bytes);
    encoding.filter(|encoding| !matches!(*encoding, b"" | b"identity")).map(|_| "something compressed")
}

/// The text without a secret that is repeated in it, plainly or as JSON writes it.
fn without(text: &str, secret: &SecretString) -> String {
    let secret = secret.expose_secret();
    if secret.is_empty() {
        return text.to_owned();
    }
    let escaped = secret.replace('/', "\\/");
    text.replace(secret, "[the key]").replace(&escaped, "[the key]")
}

async fn start_of(mut response: Response) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let (true, Ok(Some(chunk))) = (bytes.len() < ERROR_BYTES, response.chunk().await) {
        bytes.extend_from_slice(&chunk);
    }
    bytes.truncate(ERROR_BYTES);
    bytes
}

type Pieces<B> = BoxStream<'static, io::Result<B>>;

/// The events in the body of an answer. `idle` is how long nothing may come; ids that are `taken` get another end.
#[doc(hidden)]
pub fn decode<B, E>(
    wire: Wire,
    body: impl Stream<Item = Result<B, E>> + Send + 'static,
    streamed: bool,
    idle: Duration,
    taken: HashSet<String>,
) -> Events
where
    B: AsRef<[u8]> + Send + 'static,
    E: std::error::Error + Send + Sync + 'static,
{
    let state = (body.boxed(), 0);
    let pieces = stream::unfold(state, move |(mut body, before)| async move {
        let piece = match timeout(idle, body.next()).await {
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, silence(idle))),
            Ok(None) => return None,
            Ok(Some(Ok(piece))) if before + piece.as_ref().len() > LARGEST => {
                let limit = LARGEST / (1024 * 1024);
                Err(io::Error::other(format!("the answer has more than {limit} MiB")))
            }
            Ok(Some(piece)) => piece.map_err(io::Error::other),
        };
        let size = before + piece.as_ref().map_or(0, |piece| piece.as_ref().len());
        Some((piece, (body, size)))
    });
    let reading = match streamed {
        true => {
            let mut fields = Fields::default();
            let pieces = pieces.map_ok(move |piece| io::Cursor::new(fields.of(piece.as_ref())));
            let pieces = pieces.try_filter(|piece| future::ready(!piece.get_ref().is_empty()));
            Reading::Events(SseStream::from_bytes_stream(pieces.boxed()).map_err(broken).boxed())
        }
        false => {
            let whole = pieces.try_fold(Vec::new(), |mut all, piece| async move {
                all.extend_from_slice(piece.as_ref());
                Ok(all)
            });
            Reading::Whole(stream::once(whole).boxed())
        }
    };
    let decoding = Decoding { reading, decoder: wire.decoder(), answer: Answer::new(taken), failed: None };
    stream::unfold(decoding, Decoding::next).boxed()
}

enum Reading {
    Events(BoxStream<'static, Result<Sse, ModelError>>),
    Whole(Pieces<Vec<u8>>),
    Over,
}

struct Decoding {
    reading: Reading,
    decoder: Box<dyn Decode>,
    answer: Answer,
    failed: Option<ModelError>,
}

impl Decoding {
    async fn next(mut self) -> Option<(Result<ModelEvent, ModelError>, Self)> {
        loop {
            if let Some(event) = self.answer.events.pop_front() {
                return Some((Ok(event), self));
            }
            if let Some(error) = self.failed.take() {
                return Some((Err(error), self));
            }
            let read = match &mut self.reading {
                Reading::Over => return None,
                Reading::Events(events) => match events.next().await {
                    Some(Ok(event)) => self.event(&event),
                    Some(Err(error)) => Err(error),
                    None => self.end(false),
                },
                Reading::Whole(body) => match body.next().await {
                    Some(Ok(body)) => self.whole(&body),
                    Some(Err(error)) => Err(broken(sse_stream::Error::Body(error.into()))),
                    None => self.end(false),
                },
            };
            self.failed = read.err();
            if self.failed.is_some() || self.answer.stopped {
                let reading = std::mem::replace(&mut self.reading, Reading::Over);
                if let (Reading::Events(rest), None) = (reading, &self.failed) {
                    // Read to its end the connection serves the next request as well.
                    tokio::spawn(timeout(REST, rest.for_each(|_| async {})));
                }
            }
        }
    }

    fn event(&mut self, event: &Sse) -> Result<(), ModelError> {
        match event.data.as_deref().map(str::trim).unwrap_or_default() {
            "" => Ok(()),
            "[DONE]" => self.end(true),
            data => self.decoder.event(json(data.as_bytes())?, &mut self.answer),
        }
    }

    fn whole(&mut self, body: &[u8]) -> Result<(), ModelError> {
        self.decoder.whole(json(body)?, &mut self.answer)
    }

    fn end(&mut self, told: bool) -> Result<(), ModelError> {
        self.reading = Reading::Over;
        self.decoder.end(told, &mut self.answer)
    }
}

fn json(bytes: &[u8]) -> Result<serde_json::Value, ModelError> {
    serde_json::from_slice(bytes).or_else(|error| whole_characters(bytes).ok_or(error)).map_err(|error| {
        let start = shown(&String::from_utf8_lossy(&bytes[..bytes.len().min(1024)]));
        ModelError::new(Trouble::Broken, format!("the model's answer is no valid JSON: {error}: {start}"))
    })
}

fn broken(error: sse_stream::Error) -> ModelError {
    let mut last: &dyn std::error::Error = &error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    ModelError::new(Trouble::Broken, format!("the model's answer broke off: {}", shown(&last.to_string())))
}

/// The value with a mark for each half of a character. Some servers count in halves when they cut an answer into pieces.
fn whole_characters(bytes: &[u8]) -> Option<serde_json::Value> {
    let text = std::str::from_utf8(bytes).ok()?;
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(digits, 16).ok().filter(|unit| (0xD800..0xE000).contains(unit))
    };
    let (mut mended, mut at) = (String::with_capacity(text.len()), 0);
    while let Some(next) = text[at..].find('\\').map(|next| at + next) {
        mended.push_str(&text[at..next]);
        at = match (unit(next), unit(next + 6)) {
            (Some(..0xDC00), Some(0xDC00..)) => next + 12,
            (Some(_), _) => {
                mended.push_str("\\ufffd");
                at = next + 6;
                continue;
            }
            // Whatever is escaped, it is one character longer than the sign.
            (None, _) => next + 1 + text[next + 1..].chars().next()?.len_utf8(),
        };
        mended.push_str(&text[next..at]);
    }
    mended.push_str(&text[at..]);
    serde_json::from_str(&mended).ok()
}
