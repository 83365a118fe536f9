//! `gripper worker`: parses foreign bytes for the process that started it; not for people.

use std::io;

use gripper_runtime::environment::own_program;
use gripper_tools::worker::{WorkerCommand, serve};

use crate::exit::Exit;

pub(crate) fn run() -> anyhow::Result<Exit> {
    serve(io::stdin().lock(), io::stdout().lock())?;
    Ok(Exit::Ok)
}

/// How this program starts itself as a worker.
pub(crate) fn command() -> Option<WorkerCommand> {
    Some(WorkerCommand::new(own_program()?, ["worker".into()]))
}
