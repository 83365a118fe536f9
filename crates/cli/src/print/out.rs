//! Standard output as lines of JSON: each written whole and at once, on a thread of its own, so that a slow reader
//! holds up nothing but itself.

use std::{fs::File, io::Write, os::fd::AsFd, time::Duration};

use rustix::{
    event::{PollFd, PollFlags, poll},
    io::Errno,
};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

/// Lines that may wait for a slow reader.
const WAITING: usize = 256;
/// How long the last lines may take to be read once somebody wants us to end.
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
        watch(reader.clone());
        std::thread::spawn(move || {
            // Not through the lock of standard output: whoever flushes it at the end would wait for a slow reader.
            let Ok(mut stdout) = std::io::stdout().as_fd().try_clone_to_owned().map(File::from) else {
                return reader.cancel();
            };
            while let Some(mut line) = waiting.blocking_recv() {
                line.push('\n');
                if stdout.write_all(line.as_bytes()).is_err() {
                    return reader.cancel();
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

    /// Waits until everything is written, for as long as there is a reader. Once `stopped`, not for long.
    pub(super) async fn close(self, stopped: impl Future<Output = ()>) {
        drop(self.lines);
        let given_up = async {
            stopped.await;
            tokio::time::sleep(PATIENCE).await;
        };
        tokio::select! {
            _ = self.written => {}
            () = given_up => {}
        }
    }
}

/// Notices also while there is nothing to write that the reader has gone: a call may take hours.
fn watch(gone: CancellationToken) {
    std::thread::spawn(move || {
        let stdout = std::io::stdout();
        let mut stdout = [PollFd::new(&stdout, PollFlags::empty())];
        while poll(&mut stdout, None) == Err(Errno::INTR) {}
        if stdout[0].revents().intersects(PollFlags::ERR | PollFlags::HUP) {
            gone.cancel();
        }
    });
}
