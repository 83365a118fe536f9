//! The way of a confined command to the network.
//!
//! A command in a network of its own reaches nothing but a socket, and behind the socket stands a
//! [`Proxy`]: it runs on our side, is asked for hosts by name, and connects to those that its [`Rules`]
//! allow. It speaks HTTP/1: whole requests for what is not encrypted, one a connection, and tunnels for
//! the rest. Names are looked up here, once, and every address is judged before any is used.
//!
//! What goes through a tunnel is not looked at, so a server that gives out pages of other hosts to
//! whoever asks for them behind the encryption is trusted with those too: allow hosts, not networks
//! that serve anybody's pages.

pub mod bridge;
mod request;
mod rules;
mod serve;

#[cfg(test)]
mod tests;

use std::{
    fs::Permissions,
    io,
    net::{Ipv4Addr, TcpListener},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use base64::{Engine, prelude::BASE64_STANDARD};
use tempfile::TempDir;
use tokio::{
    sync::Semaphore,
    task::{JoinHandle, JoinSet},
};

pub use rules::{BadPattern, Resolve, Rules};

use rules::Host;
use serve::Stream;

/// Connections at once; others wait until one of them ends.
const CONNECTIONS: usize = 64;
/// Refusals that are remembered; a command that tries more hosts than that has been told often enough.
const REFUSALS: usize = 64;
/// What a user name in an address looks like; only the password behind it counts.
const USER: &str = "gripper";
/// What the socket is called in its folder.
const SOCKET: &str = "proxy";

/// A host that a command wanted and did not get.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The host.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Why.
    pub reason: String,
}

/// A running proxy. Dropped, it is gone, with every connection through it.
pub struct Proxy {
    door: Door,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

/// Where it is met.
enum Door {
    Socket(TempDir),
    Loopback { port: u16, password: String },
}

struct Shared {
    rules: Rules,
    password: Option<String>,
    refused: Mutex<Vec<Refusal>>,
}

enum Listener {
    Socket(tokio::net::UnixListener),
    Loopback(tokio::net::TcpListener),
}

impl Proxy {
    /// Starts one behind a socket that only our user can reach, for commands whose network is empty.
    /// Must be called within a tokio runtime, as all of these.
    pub fn start(rules: Rules) -> io::Result<Self> {
        let private = Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix("gripper-net-").permissions(private).tempdir()?;
        let listener = tokio::net::UnixListener::bind(folder.path().join(SOCKET))?;
        Ok(Self::run(rules, Listener::Socket(listener), Door::Socket(folder)))
    }

    /// Starts one behind a port of this machine, which asks for a password since anybody here can reach
    /// it. For commands that share our network and are kept from using it in another way.
    pub fn start_on_loopback(rules: Rules) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let listener = Listener::Loopback(tokio::net::TcpListener::from_std(listener)?);
        let password = uuid::Uuid::new_v4().simple().to_string();
        Ok(Self::run(rules, listener, Door::Loopback { port, password }))
    }

    fn run(rules: Rules, listener: Listener, door: Door) -> Self {
        let password = match &door {
            Door::Socket(_) => None,
            Door::Loopback { password, .. } => {
                Some(format!("Basic {}", BASE64_STANDARD.encode(format!("{USER}:{password}"))))
            }
        };
        let shared = Arc::new(Shared { rules, password, refused: Mutex::default() });
        let task = tokio::spawn(accept(listener, shared.clone()));
        Self { door, shared, task }
    }

    /// The socket, which the command must be shown; for [`bridge::run`].
    pub fn socket(&self) -> Option<PathBuf> {
        match &self.door {
            Door::Socket(folder) => Some(folder.path().join(SOCKET)),
            Door::Loopback { .. } => None,
        }
    }

    /// The variables by which programs find the proxy.
    pub fn variables(&self) -> Vec<(&'static str, String)> {
        let url = match &self.door {
            Door::Socket(_) => format!("http://127.0.0.1:{}", bridge::PORT),
            Door::Loopback { port, password } => format!("http://{USER}:{password}@127.0.0.1:{port}"),
        };
        // A command in a network of its own talks to its own servers directly, unless it may reach some
        // of ours, which have the same names.
        let direct = if self.shared.rules.admits_loopback() { "" } else { "localhost,127.0.0.1,::1" };
        let proxies = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];
        let proxies = proxies.map(|name| (name, url.clone()));
        proxies.into_iter().chain(["NO_PROXY", "no_proxy"].map(|name| (name, direct.to_owned()))).collect()
    }

    /// What was refused so far, each once.
    pub fn refused(&self) -> Vec<Refusal> {
        self.shared.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // The connections belong to the task and end with it.
        self.task.abort();
    }
}

impl Shared {
    fn refuse(&self, host: &Host, port: u16, reason: String) {
        let refusal = Refusal { host: host.to_string(), port, reason };
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() < REFUSALS && !refused.contains(&refusal) {
            refused.push(refusal);
        }
    }
}

impl Listener {
    async fn accept(&self) -> io::Result<Box<dyn Stream>> {
        Ok(match self {
            Self::Socket(listener) => Box::new(listener.accept().await?.0),
            Self::Loopback(listener) => Box::new(listener.accept().await?.0),
        })
    }
}

async fn accept(listener: Listener, shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    while let Ok(place) = places.clone().acquire_owned().await {
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok(client) => {
                let shared = shared.clone();
                connections.spawn(async move {
                    serve::serve(client, &shared).await;
                    drop(place);
                });
            }
            // No descriptors are left, most likely; some will be.
            Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
        }
    }
}
