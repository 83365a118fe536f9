//! What every tool that goes to the disk needs.

use gripper_runtime::{ErrorCode, ToolError, schema::Problem};

/// What a path cannot be, whatever it names.
pub(crate) fn path_problems(pointer: &'static str, path: &str) -> Vec<Problem> {
    if path.contains('\0') {
        return vec![Problem::found(pointer, "bad_path", "a path without NUL characters", "a NUL character")];
    }
    Vec::new()
}

/// Runs what may wait for a disk where nobody else waits with it. A write that has begun is finished, also
/// when nobody waits for it any more.
pub(crate) async fn off_thread<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ToolError> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| ToolError::new(ErrorCode::Panic, format!("the work stopped: {error}")))
}
