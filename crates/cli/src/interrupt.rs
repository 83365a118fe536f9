//! Ctrl-C: the first one asks the turn to stop, the second one ends the process.

use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
};

/// Listens from now on, on a task of its own, so that no busy or blocked loop can miss it. The
/// receiver changes at the first Ctrl-C.
pub(crate) fn listen() -> std::io::Result<watch::Receiver<()>> {
    let mut signals = signal(SignalKind::interrupt())?;
    let (sender, receiver) = watch::channel(());
    tokio::spawn(async move {
        signals.recv().await;
        sender.send_replace(());
        signals.recv().await;
        // Nobody will be there to end them later.
        gripper_process::end_all();
        std::process::exit(130);
    });
    Ok(receiver)
}
