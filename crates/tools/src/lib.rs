//! The built-in tools, one folder each.
//!
//! Adding one: make the folder (see any of them), write one line in [`all`]. Everything else,
//! schema file, listing, pipeline, follows from what the tool declares.

pub mod apply_patch;
pub mod bash;
pub mod bash_output;
mod disk;
pub mod edit;
mod editing;
pub mod glob;
pub mod grep;
pub mod kill_shell;
pub mod monitor;
pub mod multi_edit;
pub mod notebook_edit;
pub mod power_shell;
pub mod read;
pub mod repl;
pub mod sleep;
pub mod task_output;
pub mod tasks;
pub mod text;
pub mod todo_write;
pub mod tool_search;
pub mod walk;
pub mod worker;
pub mod write;

use std::sync::Arc;

use gripper_runtime::{DynTool, erase};

/// What tools share with the session they work for. Made once per session.
#[derive(Default)]
pub struct Services {
    /// The session's to-do list.
    pub todos: todo_write::TodoList,
    /// How commands are run.
    pub bash: Arc<bash::Settings>,
    /// The session's background tasks.
    pub tasks: tasks::Tasks,
    /// Interpreters may be run.
    pub repl: bool,
    /// How Glob behaves.
    pub glob: glob::Settings,
    /// How foreign bytes are parsed; without it, pictures, PDF documents and notebooks are refused.
    pub worker: Option<worker::WorkerCommand>,
    /// Finds names of files in what commands print, beside what is plain to see.
    pub finder: Option<bash::Finder>,
}

/// Every built-in tool, in order of name.
pub fn all(services: &Services) -> Vec<Arc<dyn DynTool>> {
    let tasks = || services.tasks.clone();
    let bash = || bash::Bash::new(services.bash.clone(), tasks());
    vec![
        erase(bash().with_finder(services.finder.clone())),
        erase(bash_output::BashOutput::new(tasks())),
        erase(edit::Edit),
        erase(glob::Glob::new(services.glob)),
        erase(grep::Grep::default()),
        erase(kill_shell::KillShell::new(tasks())),
        erase(monitor::Monitor::new(bash(), tasks())),
        erase(multi_edit::MultiEdit),
        erase(notebook_edit::NotebookEdit),
        erase(power_shell::PowerShell::new(bash(), services.bash.clone())),
        erase(repl::Repl::new(services.bash.clone(), services.repl)),
        erase(read::Read::new(services.worker.clone())),
        erase(sleep::Sleep),
        erase(task_output::TaskOutput::new(tasks())),
        erase(todo_write::TodoWrite::new(services.todos.clone())),
        erase(tool_search::ToolSearch),
        erase(write::Write),
        erase(apply_patch::ApplyPatch),
    ]
}
