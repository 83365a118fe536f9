//! Why a file could not be shown as text. Each message stands alone: what, why, what to do.

use std::io;
use std::path::{Path, PathBuf};

use gripper_runtime::files::OpenFailure;

/// Why no page was returned.
#[derive(Debug, thiserror::Error)]
pub enum ReadFailure {
    /// It was not opened.
    #[error(transparent)]
    Open(#[from] OpenFailure),
    /// The content is not text.
    #[error("{} cannot be shown as text ({kind}): use a program made for this type, or `xxd` to see its bytes", path.display())]
    Binary {
        /// The path asked for.
        path: PathBuf,
        /// The type in words, such as "PNG image".
        kind: String,
    },
    /// The first line asked for does not exist.
    #[error(
        "line {asked} is past the end of {}, which has {total} {}: use a smaller offset",
        path.display(),
        if *total == 1 { "line" } else { "lines" },
    )]
    PastEnd {
        /// The path asked for.
        path: PathBuf,
        /// The first line asked for, counted from 1.
        asked: u64,
        /// How many lines the file has.
        total: u64,
    },
    /// An explicit range holds more characters than one result may.
    #[error(
        "lines {first} to {last} of {} make {}{chars} characters, more than the {limit} that fit one result: \
         use a limit of at most {fits} lines, or find the place with Grep",
        path.display(),
        if *complete { "" } else { "at least " },
    )]
    TooLarge {
        /// The path asked for.
        path: PathBuf,
        /// The first line of the range.
        first: u64,
        /// The last line of the range that exists and was measured.
        last: u64,
        /// The characters of those lines in the layout of a page.
        chars: usize,
        /// Whether the whole range was measured; a very long one is not.
        complete: bool,
        /// The most characters a page may hold.
        limit: usize,
        /// How many lines from `first` on do fit.
        fits: u64,
    },
    /// The caller asked to stop.
    #[error("reading was cancelled before it was done: call again if the content is still needed")]
    Cancelled,
    /// The operating system refused.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The path asked for.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl ReadFailure {
    pub(super) fn io(path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io { path: path.to_owned(), source: source.into() }
    }
}
