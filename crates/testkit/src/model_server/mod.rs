//! A model that plays a script, over real HTTP on this machine, in the forms of three providers.
//!
//! It keeps every request, and checks in each that every call has its one result, in order, directly after: a
//! conversation that breaks this is refused, as the providers do, and fails the test when the server is dropped.

mod pairing;
mod script;
mod wires;

use std::{
    collections::BTreeMap,
    convert::Infallible,
    io,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
    thread::JoinHandle,
};

use futures::{StreamExt, TryStreamExt, stream};
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use hyper::{
    Request, Response, StatusCode,
    body::{Bytes, Frame, Incoming},
    header::CONTENT_TYPE,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::TcpListener, sync::oneshot};

pub use script::{Answer, Gate, Part, Tokens};
pub use wires::Wire;

/// A request as it came.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Which provider's form it has.
    pub wire: Wire,
    /// Headers, names in small letters.
    pub headers: BTreeMap<String, String>,
    /// The body.
    pub body: Value,
}

type Choose = dyn Fn(&Asked, usize) -> Option<Answer> + Send + Sync;

struct Shared {
    choose: Box<Choose>,
    asked: Mutex<Vec<Asked>>,
    faults: Mutex<Vec<String>>,
}

/// The server. Dropping it ends it, and panics with what was wrong with the requests.
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Gives these answers, one a request. A request too many is a fault.
    pub fn start(answers: impl IntoIterator<Item = Answer>) -> Self {
        let answers: Vec<Answer> = answers.into_iter().collect();
        Self::choosing(move |_, at| answers.get(at).cloned())
    }

    /// Gives what `choose` makes of a request and of how many came before it.
    pub fn choosing(choose: impl Fn(&Asked, usize) -> Option<Answer> + Send + Sync + 'static) -> Self {
        let shared =
            Arc::new(Shared { choose: Box::new(choose), asked: Mutex::default(), faults: Mutex::default() });
        let (stop, stopped) = oneshot::channel();
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        listener.set_nonblocking(true).expect("a listener that does not block");
        let address = listener.local_addr().expect("its address");
        let serving = shared.clone();
        // A thread of its own, so that tests may block while they wait for the binary.
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let listener = TcpListener::from_std(listener).expect("the listener");
                tokio::select! {
                    () = serve(listener, serving) => {}
                    _ = stopped => {}
                }
            });
        });
        Self { address, shared, stop: Some(stop), thread: Some(thread) }
    }

    /// Its address, for the base URL of a provider.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        lock(&self.shared.asked).clone()
    }

    /// What was wrong with the requests so far. Who takes it keeps the drop from panicking.
    pub fn take_faults(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.shared.faults))
    }

    /// Waits until it ends, which it does not by itself.
    pub fn wait(mut self) {
        self.thread.take().map(JoinHandle::join);
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.stop.take().map(|stop| stop.send(()));
        self.thread.take().map(JoinHandle::join);
        let faults = self.take_faults();
        if !faults.is_empty() && !std::thread::panicking() {
            panic!("the model server was asked what it must not be asked:\n{}", faults.join("\n"));
        }
    }
}

/// An address at which nobody listens.
pub fn nobody() -> String {
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
    format!("http://{}", listener.local_addr().expect("its address"))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

type Body = UnsyncBoxBody<Bytes, io::Error>;

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    while let Ok((stream, _)) = listener.accept().await {
        stream.set_nodelay(true).ok();
        let shared = shared.clone();
        tokio::spawn(async move {
            let answer = service_fn(|request| answer(request, shared.clone()));
            let http = hyper::server::conn::http1::Builder::new();
            http.serve_connection(TokioIo::new(stream), answer).await.ok();
        });
    }
}

async fn answer(request: Request<Incoming>, shared: Arc<Shared>) -> io::Result<Response<Body>> {
    let Some(wire) = Wire::of_path(request.uri().path()) else {
        return Ok(plain(StatusCode::NOT_FOUND, "nothing is here"));
    };
    let text = |value: &hyper::header::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let headers = request.headers().iter().map(|(name, value)| (name.to_string(), text(value))).collect();
    let bytes = request.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
    let Ok(body) = serde_json::from_slice(&bytes) else {
        return Ok(plain(StatusCode::BAD_REQUEST, "the request is no JSON"));
    };
    let asked = Asked { wire, headers, body };
    let before = {
        let mut all = lock(&shared.asked);
        all.push(asked.clone());
        all.len() - 1
    };
    let chosen = pairing::check(&asked).and_then(|()| {
        (shared.choose)(&asked, before).ok_or_else(|| format!("there is no answer for request {before}"))
    });
    let answer = chosen.unwrap_or_else(|fault| {
        lock(&shared.faults).push(fault.clone());
        Answer::status(400).body(wires::error(wire, 400, &fault))
    });
    deliver(answer.with_ids(before), &asked)
}

fn deliver(answer: Answer, asked: &Asked) -> io::Result<Response<Body>> {
    if answer.refuse {
        return Err(io::Error::other("the connection is closed"));
    }
    let streamed = asked.body["stream"] == true && answer.status == 200;
    let kind = if streamed { "text/event-stream" } else { "application/json" };
    let mut response = Response::builder().status(answer.status);
    if !answer.headers.iter().any(|(name, _)| CONTENT_TYPE == name.as_str()) {
        response = response.header(CONTENT_TYPE, kind);
    }
    for (name, value) in &answer.headers {
        response = response.header(name, value);
    }
    let steps = match streamed {
        true => wires::steps(&answer, asked),
        false => vec![wires::Step::Send(wires::whole(&answer, asked))],
    };
    let steps = steps.into_iter().flat_map(move |step| step.split(answer.split));
    let body = stream::iter(steps).filter_map(|step| async {
        match step {
            wires::Step::Send(bytes) => Some(Ok(Frame::data(Bytes::from(bytes)))),
            wires::Step::Wait(gate) => {
                gate.passed().await;
                None
            }
            wires::Step::Delay(time) => {
                tokio::time::sleep(time).await;
                None
            }
            wires::Step::Hang => std::future::pending().await,
            wires::Step::Cut => {
                // What was sent before must be on its way, or the client sees nothing of it.
                tokio::task::yield_now().await;
                Some(Err(io::Error::other("cut")))
            }
        }
    });
    let body = BodyExt::boxed_unsync(StreamBody::new(body.into_stream()));
    response.body(body).map_err(io::Error::other)
}

fn plain(status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = Response::new(BodyExt::boxed_unsync(
        Full::new(Bytes::from_static(text.as_bytes())).map_err(|never: Infallible| match never {}),
    ));
    *response.status_mut() = status;
    response
}
