//! Messages over a pair of streams, one a line. What is no message is answered as well: a client whose
//! request got lost without a word would wait for ever.

use futures::StreamExt;
use rmcp::{
    ErrorData, RoleServer,
    model::{JsonRpcMessage, RequestId},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::{Transport, async_rw::AsyncRwTransport},
};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite, Empty, empty};
use tokio_util::codec::{FramedRead, LinesCodec, LinesCodecError};

use super::LONGEST_MESSAGE;

/// The two streams.
pub(super) struct Lines<R, W: AsyncWrite> {
    read: FramedRead<R, LinesCodec>,
    /// A request has come: what comes before the first has nothing to be about.
    begun: bool,
    /// The reader has just reported something, after which it claims once to be at its end.
    stumbled: bool,
    write: AsyncRwTransport<RoleServer, Empty, W>,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead,
    W: AsyncWrite + Send + Unpin + 'static,
{
    pub(super) fn new(read: R, write: W) -> Self {
        let read = FramedRead::new(read, LinesCodec::new_with_max_length(LONGEST_MESSAGE));
        Self { read, begun: false, stumbled: false, write: AsyncRwTransport::new_server(empty(), write) }
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = std::io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.write.send(message)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let refusal = match self.read.next().await {
                None if self.stumbled => {
                    self.stumbled = false;
                    continue;
                }
                None => return None,
                Some(Ok(line)) => match message(&line) {
                    Ok(message) => {
                        self.begun |= matches!(message, JsonRpcMessage::Request(_));
                        if self.begun {
                            return Some(message);
                        }
                        None
                    }
                    Err(refusal) => refusal,
                },
                Some(Err(error)) => {
                    self.stumbled = true;
                    Some(refusal(error)?)
                }
            };
            if let Some(refusal) = refusal {
                // This may be dropped at any time; the answer must not be.
                tokio::spawn(self.write.send(*refusal));
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.write.close().await
    }
}

type Refusal = Box<TxJsonRpcMessage<RoleServer>>;

fn refused(why: ErrorData, id: Option<RequestId>) -> Refusal {
    Box::new(TxJsonRpcMessage::<RoleServer>::error(why, id))
}

/// The message of a line, or what is answered to something else; to a notification, nothing is.
fn message(line: &str) -> Result<RxJsonRpcMessage<RoleServer>, Option<Refusal>> {
    let line = line.trim_start_matches('\u{feff}');
    serde_json::from_str(line).map_err(|_| match serde_json::from_str::<Value>(line) {
        _ if line.trim().is_empty() => None,
        Err(error) => {
            let why = ErrorData::parse_error(format!("a line that is not JSON: {error}"), None);
            Some(refused(why, None))
        }
        Ok(value) => {
            let id = value.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
            let why = ErrorData::invalid_request("a line that is not a message of JSON-RPC 2.0", None);
            (id.is_some() || value.get("method").is_none()).then(|| refused(why, id))
        }
    })
}

/// What is answered to a line that could not even be read; nothing once the stream itself is broken.
fn refusal(error: LinesCodecError) -> Option<Refusal> {
    let why = match error {
        LinesCodecError::MaxLineLengthExceeded => {
            format!("a message that is longer than {} MiB was dropped", LONGEST_MESSAGE / 1024 / 1024)
        }
        LinesCodecError::Io(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            "a line that is not UTF-8 was dropped".to_owned()
        }
        LinesCodecError::Io(_) => return None,
    };
    Some(refused(ErrorData::parse_error(why, None), None))
}
