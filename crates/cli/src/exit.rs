//! Exit codes and the words that go with them.

use std::{any::Any, io, process::ExitCode};

use gripper_runtime::{CallResult, ErrorCode};

use crate::show;

/// How the process ends. The numbers are part of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// 0
    Ok,
    /// 1: the tool reported an error, or a check did not pass.
    Failed,
    /// 2: bad usage or invalid input.
    Usage,
    /// 3: not permitted.
    Denied,
    /// 4: our fault.
    Internal,
    /// 130: stopped by Ctrl-C.
    Interrupted,
    /// As a command ended that was run for the person.
    Child(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Ok => 0,
            Exit::Failed => 1,
            Exit::Usage => 2,
            Exit::Denied => 3,
            Exit::Internal => 4,
            Exit::Interrupted => 130,
            Exit::Child(code) => code,
        })
    }
}

/// A mistake of the person who called us, with what to do about it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// The exit code that a call's result stands for.
pub(crate) fn of_result(result: &CallResult) -> Exit {
    match result.error_code {
        None => Exit::Ok,
        Some(ErrorCode::InvalidInput | ErrorCode::UnknownTool | ErrorCode::Disabled) => Exit::Usage,
        Some(ErrorCode::Denied | ErrorCode::HookBlocked) => Exit::Denied,
        Some(ErrorCode::Panic | ErrorCode::EffectRefused) => Exit::Internal,
        Some(ErrorCode::Cancelled | ErrorCode::Interrupted) => Exit::Interrupted,
        Some(_) => Exit::Failed,
    }
}

/// Prints an error and says how to exit.
pub(crate) fn report(error: &anyhow::Error) -> Exit {
    if error.chain().any(|cause| {
        cause.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
    }) {
        return Exit::Ok;
    }
    show::error(&format!("{error:#}"));
    if error.is::<UsageError>() { Exit::Usage } else { Exit::Internal }
}

/// Prints one line about a bug of ours.
pub(crate) fn report_panic(panic: &(dyn Any + Send)) -> Exit {
    let words = panic
        .downcast_ref::<&str>()
        .map(|words| (*words).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no details".to_owned());
    show::error(&format!(
        "gripper has a bug and stopped ({words}); please report it with the command you ran"
    ));
    Exit::Internal
}
