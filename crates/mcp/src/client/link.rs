//! Messages to and from a server, whatever carries them: nothing that it sends is read whole before it is
//! known to be small enough, and what cannot be read is counted, not waited for.

use std::{
    collections::BTreeMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use rmcp::{
    ErrorData, RoleClient,
    model::{ClientJsonRpcMessage, JsonRpcMessage, NumberOrString, RequestId, ServerJsonRpcMessage},
    transport::Transport,
};
use tokio::{
    io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt},
    sync::mpsc,
};

/// Largest message that is taken from a server.
pub(super) const LARGEST: usize = 16 * 1024 * 1024;
/// Messages that wait for us before the server has to.
const BACKLOG: usize = 64;
/// How much of a message that is too large is looked at for what it answers.
const GLANCE: usize = 512;

/// What was odd about a server's messages.
#[derive(Debug, Default)]
pub(super) struct Oddities {
    count: AtomicUsize,
    last: Mutex<Option<String>>,
}

impl Oddities {
    pub(super) fn note(&self, what: String) {
        self.count.fetch_add(1, Ordering::Relaxed);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
    }

    /// In words, if there was anything.
    pub(super) fn words(&self) -> Option<String> {
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        Some(match self.count.load(Ordering::Relaxed) {
            1 => format!("it sent something that is no message: {last}"),
            many => format!("it sent {many} things that are no messages, the last: {last}"),
        })
    }
}

/// The two ends of a conversation, each served by a task of its own.
pub(super) struct Link {
    outbox: Option<mpsc::Sender<String>>,
    inbox: mpsc::Receiver<ServerJsonRpcMessage>,
}

/// The other side of a [`Link`].
pub(super) struct Carrier {
    /// What is to be sent.
    pub(super) outgoing: mpsc::Receiver<String>,
    /// Where it goes what has come.
    pub(super) incoming: Incoming,
}

impl Link {
    pub(super) fn new(oddities: std::sync::Arc<Oddities>) -> (Self, Carrier) {
        let (outbox, outgoing) = mpsc::channel(BACKLOG);
        let (sender, inbox) = mpsc::channel(BACKLOG);
        let incoming = Incoming { sender, oddities };
        (Self { outbox: Some(outbox), inbox }, Carrier { outgoing, incoming })
    }
}

/// The server is gone, or what carries its messages.
#[derive(Debug, thiserror::Error)]
#[error("the connection is closed")]
pub(super) struct Closed;

impl Transport<RoleClient> for Link {
    type Error = Closed;

    fn send(
        &mut self,
        item: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Closed>> + Send + 'static {
        let outbox = self.outbox.clone();
        async move {
            let text = serde_json::to_string(&item).map_err(|_| Closed)?;
            outbox.ok_or(Closed)?.send(text).await.map_err(|_| Closed)
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        self.inbox.recv().await
    }

    async fn close(&mut self) -> Result<(), Closed> {
        self.outbox = None;
        Ok(())
    }
}

/// Takes in what a server sends.
#[derive(Clone)]
pub(super) struct Incoming {
    sender: mpsc::Sender<ServerJsonRpcMessage>,
    oddities: std::sync::Arc<Oddities>,
}

impl Incoming {
    /// One message. False when nobody listens any more.
    pub(super) async fn take(&self, text: &[u8]) -> bool {
        if text.trim_ascii().is_empty() {
            return true;
        }
        match serde_json::from_slice(text) {
            Ok(message) => self.sender.send(message).await.is_ok(),
            Err(error) => {
                let shown: String =
                    String::from_utf8_lossy(&text[..text.len().min(GLANCE)]).chars().take(80).collect();
                self.oddities.note(format!("{shown:?} ({error})"));
                let answer = serde_json::from_slice::<Answer>(text).ok();
                let id = answer.filter(|answer| answer.method.is_none()).and_then(|answer| answer.id);
                self.fail(id, format!("the server's answer cannot be read: {error}")).await
            }
        }
    }

    /// A message that is too large to be read; `seen` are its first and last bytes.
    pub(super) async fn refuse(&self, seen: &[u8]) -> bool {
        let most = LARGEST / (1024 * 1024);
        self.oddities.note(format!("a message of more than {most} MiB"));
        self.fail(id_in(seen), format!("the server's answer has more than {most} MiB, which is not taken"))
            .await
    }

    /// Answers a request of ours in the server's place.
    pub(super) async fn fail(&self, id: Option<RequestId>, why: String) -> bool {
        let Some(id) = id else { return true };
        let error = ErrorData::internal_error(why, None);
        self.sender.send(JsonRpcMessage::error(error, Some(id))).await.is_ok()
    }
}

/// The parts of an answer that say whose it is.
#[derive(serde::Deserialize)]
struct Answer {
    id: Option<RequestId>,
    method: Option<String>,
    #[serde(flatten)]
    _rest: BTreeMap<String, serde::de::IgnoredAny>,
}

/// The first number behind an `"id"`. A server that puts it elsewhere waits for its time limit.
fn id_in(bytes: &[u8]) -> Option<RequestId> {
    let text = String::from_utf8_lossy(bytes);
    let behind = text.split_once("\"id\"")?.1.trim_start().strip_prefix(':')?.trim_start();
    let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().map(NumberOrString::Number)
}

/// Takes in messages that end with a line.
pub(super) async fn read_lines(mut from: impl AsyncBufRead + Unpin, to: Incoming) {
    let mut line = Vec::new();
    let mut dropping = false;
    loop {
        let available = match from.fill_buf().await {
            Ok(bytes) if !bytes.is_empty() => bytes,
            // What ends without an end of line is half a message.
            _ => return,
        };
        let end = available.iter().position(|byte| *byte == b'\n');
        let taken = end.map_or(available.len(), |at| at + 1);
        let part = &available[..taken];
        if !dropping && line.len() + part.len() > LARGEST {
            dropping = true;
            line.extend_from_slice(part);
            line.truncate(GLANCE);
            line.shrink_to_fit();
        }
        if dropping {
            line.truncate(GLANCE);
            line.extend_from_slice(&part[part.len().saturating_sub(GLANCE)..]);
        } else {
            line.extend_from_slice(part);
        }
        from.consume(taken);
        if end.is_some() {
            let listening = if dropping { to.refuse(&line).await } else { to.take(&line).await };
            if !listening {
                return;
            }
            (line, dropping) = (Vec::new(), false);
        }
    }
}

/// Sends messages, each on a line.
pub(super) async fn write_lines(mut from: mpsc::Receiver<String>, mut to: impl AsyncWrite + Unpin) {
    while let Some(mut text) = from.recv().await {
        text.push('\n');
        // A server that does not read any more is noticed where its answers are missing.
        if to.write_all(text.as_bytes()).await.is_err() || to.flush().await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
