//! How a conversation with a server begins.

use std::{
    collections::HashMap,
    ffi::OsString,
    sync::{Arc, PoisonError},
};

use gripper_process::{
    Spec,
    live::{Keep, Live},
};
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::{
    RoleClient,
    model::{ErrorCode, ProtocolVersion},
    service::{ClientInitializeError, ClientLifecycleMode, RunningService, serve_client_with_lifecycle},
    transport::{
        Transport,
        streamable_http_client::{StreamableHttpClientTransport, StreamableHttpClientTransportConfig},
    },
};
use tokio::io::BufReader;

use super::{
    config::Endpoint,
    front::Front,
    http::{self, Bounded},
    link::{Link, Oddities, read_lines, write_lines},
    server::{Opened, Server, epitaph},
};

/// What children get of our environment: what programs need to run at all, and nothing that may be secret.
const INHERITED: [&str; 14] = [
    "HOME",
    "PATH",
    "USER",
    "LOGNAME",
    "SHELL",
    "TERM",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TZ",
    "TMPDIR",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    // Our own mark: a Gripper around us finds what we start by it.
    "GRIPPER_CHILD",
];
/// Bytes kept of each end of what a child says on standard error.
const KEPT: usize = 8 * 1024;

type Service = RunningService<RoleClient, Arc<Front>>;

pub(super) async fn open(server: &Server, oddities: &Arc<Oddities>) -> Result<Opened, String> {
    match &server.config.endpoint {
        Endpoint::Stdio { command, args, env } => {
            let mut all: Vec<(OsString, OsString)> = server.shared.env.clone();
            all.retain(|(name, _)| {
                INHERITED.iter().any(|known| name == known) && !env.contains_key(&*name.to_string_lossy())
            });
            all.extend(env.iter().map(|(name, value)| (name.into(), value.into())));
            let args = args.iter().map(OsString::from).collect();
            let spec = Spec { env: all, ..Spec::exec(command, args, &server.shared.cwd) };
            stdio(server, spec, oddities).await
        }
        Endpoint::Http { url, headers, older, .. } => {
            let headers: HashMap<HeaderName, HeaderValue> = headers
                .iter()
                .filter_map(|(name, value)| Some((name.try_into().ok()?, value.try_into().ok()?)))
                .collect();
            let client = Bounded::new(server.account.clone())?;
            let known = client.token();
            let mut tried =
                if *older { Err(String::new()) } else { streamable(server, &client, url, &headers).await };
            // Signing in takes longer than the SDK waits for the answer which revision is spoken.
            if tried.is_err() && !older && client.token() != known {
                tried = streamable(server, &client, url, &headers).await;
            }
            match tried {
                Ok(opened) => Ok(opened),
                Err(why) if server.account.as_ref().is_some_and(|account| account.refused().is_some()) => {
                    Err(why)
                }
                Err(why) => {
                    let opening = http::older(client, url, headers, oddities.clone()).await;
                    // If neither form works, what the newer one said is what counts.
                    let said = |older: String| if why.is_empty() { older } else { why.clone() };
                    let front = front(server);
                    let mode = ClientLifecycleMode::Initialize;
                    let service =
                        serve(&front, opening.map_err(said)?, mode).await.map_err(|error| words(&error))?;
                    Ok(Opened { service, front, child: None })
                }
            }
        }
    }
}

fn front(server: &Server) -> Arc<Front> {
    Arc::new(Front::new(&server.config.name, server.shared.sessions.clone()))
}

async fn serve<T>(
    front: &Arc<Front>,
    transport: T,
    mode: ClientLifecycleMode,
) -> Result<Service, ClientInitializeError>
where
    T: Transport<RoleClient> + 'static,
    T::Error: Sync,
{
    serve_client_with_lifecycle(front.clone(), transport, mode).await
}

fn newest() -> Vec<ProtocolVersion> {
    vec![ProtocolVersion::V_2026_07_28]
}

async fn stdio(server: &Server, spec: Spec, oddities: &Arc<Oddities>) -> Result<Opened, String> {
    // Every server in use knows the older handshake, and some say nothing at all to the newer one. So the
    // newer one is tried when the older is refused.
    let modes =
        [ClientLifecycleMode::Initialize, ClientLifecycleMode::Discover { preferred_versions: newest() }];
    let mut trouble = String::new();
    for mode in modes {
        let keep = Keep { head: KEPT, tail: KEPT, file: None, quota: 0 };
        let started = {
            let _alone = server.shared.starting.lock().await;
            Live::converse(spec.clone(), keep)
        };
        let (child, input, output) = started.map_err(|error| error.to_string())?;
        *server.child.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&child);
        let (link, carrier) = Link::new(oddities.clone());
        tokio::spawn(read_lines(BufReader::with_capacity(64 * 1024, output), carrier.incoming));
        tokio::spawn(write_lines(carrier.outgoing, input));
        let front = front(server);
        match serve(&front, link, mode).await {
            Ok(service) => return Ok(Opened { service, front, child: Some(child) }),
            Err(error) => {
                let refused = matches!(&error, ClientInitializeError::JsonRpcError(error)
                    if matches!(error.code, ErrorCode::METHOD_NOT_FOUND | ErrorCode::UNSUPPORTED_PROTOCOL_VERSION));
                tokio::time::timeout(std::time::Duration::from_millis(100), child.wait()).await.ok();
                let end = epitaph(child.status(), &child);
                child.end(std::time::Duration::ZERO).await;
                trouble = match &error {
                    ClientInitializeError::ConnectionClosed(_) => end,
                    error => format!("{} ({end})", words(error)),
                };
                if !refused {
                    break;
                }
            }
        }
    }
    Err(trouble)
}

async fn streamable(
    server: &Server,
    client: &Bounded,
    url: &str,
    headers: &HashMap<HeaderName, HeaderValue>,
) -> Result<Opened, String> {
    let auto = ClientLifecycleMode::Auto {
        preferred_versions: newest(),
        legacy_version: Some(ProtocolVersion::V_2025_11_25),
    };
    let mut trouble = String::new();
    // Some servers answer the newer question with something that is no answer to it.
    for mode in [auto, ClientLifecycleMode::Initialize] {
        let config = StreamableHttpClientTransportConfig::with_uri(url).custom_headers(headers.clone());
        let transport = StreamableHttpClientTransport::with_client(client.clone(), config);
        let front = front(server);
        match serve(&front, transport, mode).await {
            Ok(service) => return Ok(Opened { service, front, child: None }),
            Err(error) => {
                trouble = words(&error);
                if matches!(error, ClientInitializeError::TransportError { .. }) {
                    break;
                }
            }
        }
    }
    Err(trouble)
}

/// Why a conversation did not begin.
fn words(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::TransportError { error, .. } => {
            let known = error.error.downcast_ref();
            known.map_or_else(|| error.error.to_string(), http::words)
        }
        ClientInitializeError::JsonRpcError(error) => format!("it refused the handshake: {}", error.message),
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => words(fallback),
        other => other.to_string(),
    }
}
