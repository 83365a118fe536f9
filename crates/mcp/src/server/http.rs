//! The same over HTTP, for clients that come over the network of this machine.

use std::{convert::Infallible, sync::Arc, time::Duration};

use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Full, combinators::BoxBody};
use hyper::{body::Bytes, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use rmcp::{
    ServerHandler,
    transport::streamable_http_server::{
        StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager,
    },
};
use sha2::{Digest, Sha256};
use tokio::{net::TcpListener, sync::Semaphore};
use tokio_util::sync::CancellationToken;

use super::{Client, Host, LONGEST_MESSAGE, Server, Shared};

/// Connections at once.
const MOST_CONNECTIONS: usize = 1_024;
/// How long a client may take for the head of a request.
const HEAD_TIME: Duration = Duration::from_secs(30);

/// Who may come in.
pub struct HttpOptions {
    /// The secret that each request must carry; `None` lets everybody on this machine in.
    pub token: Option<String>,
    /// Pages whose scripts may call; without any, no page may.
    pub origins: Vec<String>,
    /// Names under which this server is reached besides those of this machine.
    pub hosts: Vec<String>,
}

type Answer = Response<BoxBody<Bytes, Infallible>>;
type Streamable<S> = StreamableHttpService<S, LocalSessionManager>;

/// Serves clients until `stop`.
pub async fn serve_http(
    host: Arc<dyn Host>,
    listener: TcpListener,
    options: HttpOptions,
    stop: CancellationToken,
) -> Result<(), String> {
    serve_http_with(host, listener, options, stop, |server| server).await
}

/// The same, with something in front of each server: the conformance suite wants more than tools.
#[doc(hidden)]
pub async fn serve_http_with<S: ServerHandler>(
    host: Arc<dyn Host>,
    listener: TcpListener,
    options: HttpOptions,
    stop: CancellationToken,
    wrap: impl Fn(Server) -> S + Send + Sync + 'static,
) -> Result<(), String> {
    let shared = Arc::new(Shared { host: host.clone(), clients: Default::default() });
    let server = move || Ok(wrap(Server { own: Client::new(host.clone()), shared: Some(shared.clone()) }));
    let mut config = StreamableHttpServerConfig::default()
        .with_allowed_origins(options.origins)
        .enforce_origin_validation()
        .with_max_request_body_bytes(LONGEST_MESSAGE)
        .with_cancellation_token(stop.child_token());
    config.allowed_hosts.extend(options.hosts);
    let service = StreamableHttpService::new(server, Arc::<LocalSessionManager>::default(), config);
    let token = options.token.map(|token| Arc::<[u8]>::from(digest(&token)));
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        // One that finds no place waits in the listener's own queue.
        let Ok(place) = places.clone().acquire_owned().await else { return Ok(()) };
        let stream = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                // Out of descriptors: what is open must end before more can come.
                Err(_) => { tokio::time::sleep(Duration::from_millis(50)).await; continue }
            },
        };
        stream.set_nodelay(true).ok();
        let (service, token, stop) = (service.clone(), token.clone(), stop.clone());
        tokio::spawn(async move {
            let answer = service_fn(move |request| answer(request, service.clone(), token.clone()));
            let mut http = hyper::server::conn::http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
            tokio::select! {
                _ = http.serve_connection(TokioIo::new(stream), answer) => {}
                () = stop.cancelled() => {}
            }
            drop(place);
        });
    }
}

async fn answer<S: ServerHandler>(
    request: Request<hyper::body::Incoming>,
    service: Streamable<S>,
    token: Option<Arc<[u8]>>,
) -> Result<Answer, Infallible> {
    if let Some(token) = token
        && !carries(&request, &token)
    {
        let mut refused =
            plain(StatusCode::UNAUTHORIZED, "this server needs its token: Authorization: Bearer TOKEN");
        refused.headers_mut().insert(header::WWW_AUTHENTICATE, header::HeaderValue::from_static("Bearer"));
        return Ok(refused);
    }
    if !matches!(request.uri().path(), "/" | "/mcp") {
        return Ok(plain(StatusCode::NOT_FOUND, "the address of this server is /mcp"));
    }
    let ends = request.method() == http::Method::DELETE;
    let mut answer = service.handle(request).await;
    if ends && answer.status() == StatusCode::ACCEPTED {
        // It is done, not only accepted; some clients warn of anything but this.
        *answer.status_mut() = StatusCode::NO_CONTENT;
    }
    Ok(answer)
}

/// Whether a request carries the token. Digests are compared, so that time tells nothing of the secret.
fn carries<B>(request: &Request<B>, token: &[u8]) -> bool {
    let given = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let given = given.and_then(|value| value.split_once(' '));
    given
        .is_some_and(|(scheme, given)| scheme.eq_ignore_ascii_case("bearer") && digest(given.trim()) == token)
}

fn digest(text: &str) -> Vec<u8> {
    Sha256::digest(text.as_bytes()).to_vec()
}

fn plain(status: StatusCode, text: &'static str) -> Answer {
    let mut response = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *response.status_mut() = status;
    response
}
