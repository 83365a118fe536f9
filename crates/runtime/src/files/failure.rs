//! Why a file was not changed. Each message stands alone: what, why, what to do.

use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::open::OpenFailure;
use crate::{
    place::Located,
    tool::{ErrorCode, ToolError},
};

/// Why a change was not made. The file is then as it was.
#[derive(Debug, thiserror::Error)]
pub enum WriteFailure {
    /// It is not any more what was looked at.
    #[error(
        "{} was changed by someone else at the very moment of writing, so nothing was written: read it again",
        path.display()
    )]
    Changed {
        /// The file.
        path: PathBuf,
    },
    /// It was removed meanwhile.
    #[error("{} was removed by someone else, so nothing was written: check whether it is still wanted", path.display())]
    Gone {
        /// The file.
        path: PathBuf,
    },
    /// It was made meanwhile.
    #[error("{} exists already, so it was not created: read it first, then change it", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Somebody has it open for writing.
    #[error(
        "another program has {} open for writing, and one of the two changes would be lost; \
         nothing was written: try again when that program is done",
        path.display()
    )]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// Several wrote at once, and one content had to give way.
    #[error("several programs wrote to the file at the same moment; one of the contents is kept as {}: compare both", path.display())]
    Displaced {
        /// Where it is now.
        path: PathBuf,
    },
    /// Its mode forbids writing.
    #[error("{} is read-only, so it was not changed: make it writable first if it should change", path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
    },
    /// It belongs to somebody else.
    #[error("{} belongs to another user and would change its owner, so it was not replaced", path.display())]
    Owner {
        /// The file.
        path: PathBuf,
    },
    /// The path names a folder.
    #[error("{} is a directory, not a file", path.display())]
    Directory {
        /// The path.
        path: PathBuf,
    },
    /// The operating system refused.
    #[error("{} was not written: {}", path.display(), reason(*errno, folder))]
    System {
        /// The file.
        path: PathBuf,
        /// The folder it is in.
        folder: PathBuf,
        /// The cause.
        errno: Errno,
    },
    /// It could not be looked at.
    #[error(transparent)]
    Open(#[from] OpenFailure),
    /// The change could not be journalled, and what cannot be undone is not done.
    #[error("{} was not written, because its old content could not be kept for undo: {why}", path.display())]
    History {
        /// The file.
        path: PathBuf,
        /// The cause.
        why: std::io::Error,
    },
    /// The file holds settings, and what would stand there is no good.
    #[error("{} holds settings and would be broken by this: {why}; nothing was written", path.display())]
    Settings {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
}

impl WriteFailure {
    pub(super) fn of(errno: Errno, file: &Located, folder: &Path) -> Self {
        let path = file.written.clone();
        match errno {
            Errno::ISDIR => Self::Directory { path },
            Errno::LOOP => Self::Open(OpenFailure::Moved { path }),
            _ => Self::System { path, folder: folder.to_owned(), errno },
        }
    }

    /// The stable name for models.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Changed { .. }
            | Self::Exists { .. }
            | Self::Busy { .. }
            | Self::Displaced { .. }
            | Self::Settings { .. } => ErrorCode::Failed,
            Self::Gone { .. } => ErrorCode::NotFound,
            Self::Directory { .. } => ErrorCode::Unsupported,
            Self::Open(failure) => failure.code(),
            Self::ReadOnly { .. } | Self::Owner { .. } | Self::System { .. } | Self::History { .. } => {
                ErrorCode::Io
            }
        }
    }
}

impl From<WriteFailure> for ToolError {
    fn from(failure: WriteFailure) -> Self {
        ToolError::new(failure.code(), failure.to_string())
    }
}

impl From<OpenFailure> for ToolError {
    fn from(failure: OpenFailure) -> Self {
        ToolError::new(failure.code(), failure.to_string())
    }
}

fn reason(errno: Errno, folder: &Path) -> String {
    let folder = folder.display();
    match errno {
        Errno::NOSPC | Errno::DQUOT => {
            format!("there is no room left where {folder} is; the old content is untouched")
        }
        Errno::ROFS => format!("{folder} is on a read-only file system"),
        Errno::ACCESS | Errno::PERM => format!("new content needs a writable folder, and {folder} is not"),
        Errno::NOTDIR => format!("part of {folder} is a file and not a folder"),
        Errno::NAMETOOLONG => "the name is too long".to_owned(),
        errno => std::io::Error::from(errno).to_string(),
    }
}
