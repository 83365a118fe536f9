//! Standard output as lines of JSON: each written whole and at once, on a thread of its own, so that a slow reader
//! holds up nothing but itself.

use std::{io::Write, time::Duration};

use serde_json::Value;
use tokio::{
    sync::{mpsc, oneshot},
    time::timeout,
};
use tokio_util::sync::CancellationToken;

/// Lines that may wait for a slow reader.
const WAITING: usize = 256;
/// How long the last lines may take to be read once we want to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Where lines go.
pub(super) struct Out {
    lines: mpsc::Sender<String>,
    written: oneshot::Receiver<()>,
    /// Set when the reader is gone.
    pub(super) gone: CancellationToken,
}

impl Out {
    pub(super) fn start() -> Self {
        let (lines, mut waiting) = mpsc::channel::<String>(WAITING);
        let (done, written) = oneshot::channel();
        let gone = CancellationToken::new();
        let reader = gone.clone();
        std::thread::spawn(move || {
            while let Some(mut line) = waiting.blocking_recv() {
                line.push('\n');
                let mut stdout = std::io::stdout().lock();
                if stdout.write_all(line.as_bytes()).and_then(|()| stdout.flush()).is_err() {
                    reader.cancel();
                    return;
                }
            }
            done.send(()).ok();
        });
        Self { lines, written, gone }
    }

    /// Writes one line.
    pub(super) async fn line(&self, value: &Value) {
        // A reader that is gone is noticed by everyone through `gone`.
        self.lines.send(value.to_string()).await.ok();
    }

    /// Waits until everything is written.
    pub(super) async fn close(self) {
        drop(self.lines);
        timeout(PATIENCE, self.written).await.ok();
    }
}
