//! What has happened since the model last heard.

use std::fmt::Write as _;

use gripper_runtime::{
    FinishedTask,
    files::{ChangedFile, FileChange},
    permissions::visible,
};

use super::{clip, tagged};

/// Characters of one piece, and of all together.
const PIECE_CHARS: usize = 4_000;
const ALL_CHARS: usize = 24_000;

/// What there may be to tell.
#[derive(Debug, Clone, Copy, Default)]
pub struct News<'a> {
    /// Files that somebody else has changed.
    pub changed: &'a [ChangedFile],
    /// The to-do list: what and how far. Empty if there is nothing to be reminded of.
    pub todos: &'a [(String, String)],
    /// Background tasks that have ended.
    pub tasks: &'a [FinishedTask],
    /// What hooks and tools have to say.
    pub messages: &'a [String],
}

/// The news as one text for the model, or nothing if there are none.
pub fn reminders(news: &News<'_>) -> Option<String> {
    let mut pieces: Vec<String> = Vec::new();
    for message in news.messages {
        pieces.push(message.clone());
    }
    for file in news.changed {
        let path = file.path.display();
        pieces.push(match &file.change {
            FileChange::Deleted => format!("{path} was deleted by someone else. It is gone on purpose, most likely."),
            FileChange::Modified { diff, cut } => {
                let more = if *cut { "\nThere is more to it: read the file before you change it." } else { "" };
                format!("{path} was changed by someone else. Take that into account and leave it in place:\n{diff}{more}")
            }
        });
    }
    for task in news.tasks {
        let what = clip(task.description.as_ref().unwrap_or(&task.command), 200);
        let code = task.exit_code.map(|code| format!(", exit code {code}")).unwrap_or_default();
        let mut piece =
            format!("The background task {} ({what}) has ended: {}{code}.", task.task_id, task.status);
        if !task.last_lines.is_empty() {
            write!(piece, " Its output ends with:\n{}", task.last_lines).ok();
        }
        pieces.push(piece);
    }
    if !news.todos.is_empty() {
        let mut piece = String::from("The to-do list now; keep it true:");
        for (content, status) in news.todos {
            write!(piece, "\n- [{status}] {}", clip(content, 200)).ok();
        }
        pieces.push(piece);
    }
    let (mut text, total) = (String::new(), pieces.len());
    for (told, piece) in pieces.into_iter().enumerate() {
        let piece = clip(&visible(&piece), PIECE_CHARS);
        if text.len() + piece.len() > ALL_CHARS {
            write!(text, "{} more that would be too long to tell.", total - told).ok();
            break;
        }
        write!(text, "{piece}\n\n").ok();
    }
    (total > 0).then(|| tagged(&text))
}
