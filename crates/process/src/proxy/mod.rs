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

mod request;
mod rules;
mod serve;

#[cfg(test)]
mod tests;

use std::{
    fs::Permissions,
    io,
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tempfile::TempDir;
use tokio::{
    net::UnixListener,
    sync::Semaphore,
    task::{JoinHandle, JoinSet},
};

pub use rules::{BadPattern, Resolve, Rules};

use rules::Host;

/// Connections at once; others wait until one of them ends.
const CONNECTIONS: usize = 64;
/// Refusals that are remembered; a command that tries more hosts than that has been told often enough.
const REFUSALS: usize = 64;
/// What the socket is called in its folder.
const SOCKET: &str = "proxy";

/// A host that a command wanted and did not get.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
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
    folder: TempDir,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

struct Shared {
    rules: Rules,
    refused: Mutex<Vec<Refusal>>,
}

impl Proxy {
    /// Starts one behind a socket that only our user can reach, for commands whose network is empty.
    /// Must be called within a tokio runtime.
    pub fn start(rules: Rules) -> io::Result<Self> {
        let private = Permissions::from_mode(0o700);
        let folder = tempfile::Builder::new().prefix("gripper-net-").permissions(private).tempdir()?;
        let listener = UnixListener::bind(folder.path().join(SOCKET))?;
        let shared = Arc::new(Shared { rules, refused: Mutex::default() });
        let task = tokio::spawn(accept(listener, shared.clone()));
        Ok(Self { folder, shared, task })
    }

    /// Whether it leads to this machine.
    pub(crate) fn leads_home(&self) -> bool {
        self.shared.rules.leads_home()
    }

    /// The socket it listens on.
    pub(crate) fn socket(&self) -> PathBuf {
        self.folder.path().join(SOCKET)
    }

    /// What was refused so far, each once.
    pub fn refused(&self) -> Vec<Refusal> {
        self.shared.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl std::fmt::Debug for Proxy {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_tuple("Proxy").field(&self.socket()).finish()
    }
}

impl PartialEq for Proxy {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

impl Eq for Proxy {}

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

async fn accept(listener: UnixListener, shared: Arc<Shared>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    while let Ok(place) = places.clone().acquire_owned().await {
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((client, _)) => {
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
