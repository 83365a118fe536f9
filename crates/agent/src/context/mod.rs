//! What the model is told besides the conversation: who it is, where it works, what the project and the person
//! want of it, and what has happened meanwhile.

mod instructions;
mod news;
#[cfg(test)]
mod tests;

use std::{
    fmt::Write as _,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

use chrono::NaiveDate;
use gripper_runtime::{
    Located, Place,
    environment::platform,
    files::open_regular,
    permissions::{Mode, visible},
};

pub use instructions::{InstructionFile, Instructions, instructions, nested, told};
pub use news::{News, reminders};

/// Who it is and how it works.
const SYSTEM: &str = include_str!("system.md");

/// Encloses what Gripper itself says in the conversation.
const TAG: &str = "gripper-context";

/// What the environment looks like.
#[derive(Debug, Clone)]
pub struct Facts<'a> {
    /// The working directory.
    pub cwd: &'a Path,
    /// The project's folder.
    pub root: &'a Path,
    /// Further folders it works in.
    pub additional: &'a [PathBuf],
    /// The model's name.
    pub model: &'a str,
    /// What happens to calls that no rule speaks of.
    pub mode: Mode,
    /// The shell that runs commands.
    pub shell: &'a str,
    /// The date where the person is.
    pub today: NaiveDate,
    /// What the command line adds to the prompt.
    pub append: Option<&'a str>,
}

/// The system prompt in parts, the most lasting first; what differs from day to day and place to place comes last.
pub fn system_prompt(facts: &Facts<'_>) -> Vec<Arc<str>> {
    let mut parts: Vec<Arc<str>> = vec![SYSTEM.into()];
    parts.extend(facts.append.filter(|text| !text.trim().is_empty()).map(Arc::from));
    parts.push(environment(facts).into());
    parts
}

fn environment(facts: &Facts<'_>) -> String {
    let mut text = String::from("# Where you are\n\n");
    let mut fact = |name: &str, value: &str| {
        // Names of folders and branches are chosen by others; each stays on its line.
        let value = visible(value).replace('\n', "\\n");
        writeln!(text, "- {name}: {value}").ok();
    };
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    fact("Working directory", &shown(facts.cwd));
    fact("Project", &shown(facts.root));
    for folder in facts.additional {
        fact("Also works in", &shown(folder));
    }
    fact("Git", &branch(facts.root).unwrap_or_else(|| "not a repository".to_owned()));
    fact("Platform", &platform());
    fact("Shell of commands", facts.shell);
    fact("Date", &facts.today.to_string());
    fact("Model", facts.model);
    fact("Permission mode", facts.mode.name());
    text
}

/// The branch, as files tell it. Starting git would cost more than all the rest of the prompt.
fn branch(root: &Path) -> Option<String> {
    let git = root.join(".git");
    let small = |path: &Path| read_some(&Place { cwd: "/".into() }.locate(path), 4096).ok();
    let folder = if git.is_dir() {
        git
    } else {
        // A worktree has a file that says where its folder is.
        root.join(small(&git)?.0.strip_prefix("gitdir:")?.trim())
    };
    let (head, _) = small(&folder.join("HEAD"))?;
    let head = head.trim();
    Some(match head.strip_prefix("ref: refs/heads/") {
        Some(branch) => format!("branch {}", clip(branch, 200)),
        None => format!("no branch, at {}", clip(head, 12)),
    })
}

/// The beginning of a regular file, hidden characters made visible, and whether that is all of it. Never waits, also
/// not for a pipe.
fn read_some(at: &Located, most: u64) -> Result<(String, bool), String> {
    let (file, _) = open_regular(at).map_err(|failure| failure.to_string())?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(|error| error.to_string())?;
    let whole = bytes.len() as u64 <= most;
    bytes.truncate(most as usize);
    let text = String::from_utf8_lossy(&bytes);
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    Ok((visible(&text).into_owned(), whole))
}

/// At most so many characters.
pub(crate) fn clip(text: &str, most: usize) -> String {
    let mut clipped: String = text.chars().take(most).collect();
    if clipped.len() < text.len() {
        clipped.push('…');
    }
    clipped
}

/// What Gripper itself says. Nothing inside can pretend that it ends earlier.
pub(crate) fn tagged(text: &str) -> String {
    let text = text.replace(TAG, "gripper context");
    format!("<{TAG}>\n{}\n</{TAG}>", text.trim_end())
}
