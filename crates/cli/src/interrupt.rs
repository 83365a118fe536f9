//! Ctrl-C: the first one asks the turn to stop, the second one ends the process. Nothing that was
//! started stays behind, whichever signal it is.

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

/// Listens from now on, on a task of its own, so that no busy or blocked loop can miss it. The
/// receiver changes at the first Ctrl-C.
pub(crate) fn listen() -> std::io::Result<watch::Receiver<()>> {
    let mut interrupts = signal(SignalKind::interrupt())?;
    let mut hangups = signal(SignalKind::hangup())?;
    let mut terminations = signal(SignalKind::terminate())?;
    let (sender, receiver) = watch::channel(());
    tokio::spawn(async move {
        let twice = async {
            interrupts.recv().await;
            sender.send_replace(());
            interrupts.recv().await;
        };
        let code = tokio::select! {
            () = twice => 130,
            _ = hangups.recv() => 129,
            _ = terminations.recv() => 143,
        };
        // Children have sessions of their own: no signal of the terminal reaches them.
        gripper_process::end_all();
        std::process::exit(code);
    });
    Ok(receiver)
}

/// The outcome of `work`, or nothing if Ctrl-C came first.
pub(crate) async fn unless<T>(
    interrupt: &mut watch::Receiver<()>,
    work: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        done = work => Some(done),
        Ok(()) = interrupt.changed() => None,
    }
}
