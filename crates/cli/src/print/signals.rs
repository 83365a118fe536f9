//! Signals that end the work in good order: the first one stops it, so that there still is a last line; the second
//! one, or too long a wait, ends the process.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

use crate::exit::Exit;

/// How long the work may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// The signal that came, if one did.
pub(super) struct Signals {
    code: Arc<AtomicU8>,
    news: watch::Receiver<()>,
}

impl Signals {
    /// Listens from now on, on a task of its own.
    pub(super) fn listen() -> std::io::Result<Self> {
        let mut interrupts = signal(SignalKind::interrupt())?;
        let mut hangups = signal(SignalKind::hangup())?;
        let mut terminations = signal(SignalKind::terminate())?;
        let (sender, news) = watch::channel(());
        let code = Arc::new(AtomicU8::new(0));
        let kept = code.clone();
        tokio::spawn(async move {
            let mut any = async || {
                tokio::select! {
                    _ = interrupts.recv() => 130,
                    _ = hangups.recv() => 129,
                    _ = terminations.recv() => 143,
                }
            };
            let first = any().await;
            kept.store(first, Ordering::Relaxed);
            sender.send_replace(());
            tokio::time::timeout(PATIENCE, any()).await.ok();
            // Children have sessions of their own: no signal of the terminal reaches them.
            gripper_process::end_all();
            std::process::exit(i32::from(first));
        });
        Ok(Self { code, news })
    }

    /// How the process should end because of one.
    pub(super) fn came(&self) -> Option<Exit> {
        match self.code.load(Ordering::Relaxed) {
            0 => None,
            130 => Some(Exit::Interrupted),
            code => Some(Exit::Child(code)),
        }
    }

    /// Waits for the first one.
    pub(super) async fn wait(&mut self) {
        if self.came().is_none() && self.news.changed().await.is_err() && self.came().is_none() {
            std::future::pending().await
        }
    }
}
