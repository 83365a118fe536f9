//! Transcripts: what was said and done in a session, as append-only JSON Lines.
//!
//! A line is written before what it tells of takes effect: a call's block before the call runs, a result before
//! the next request carries it. Whatever moment a process dies at, [`resume`] finds a conversation that any
//! provider accepts. Sessions lie side by side in one folder, each in a folder named by its id; they stay until
//! [`delete`] takes them, and sweeping stored results does not touch them.

mod check;
mod entry;
mod find;
mod log;
mod recover;
#[cfg(test)]
mod tests;

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io::{self, ErrorKind, Write},
    path::{Path, PathBuf},
};

pub use check::check;
pub use entry::{Entry, Header, Origin, Parent, Totals};
pub use find::{Summary, delete, find, latest, list};
pub use log::{Dated, Log, read};
pub use recover::{Recovered, fork, resume};

use entry::{Line, now};

/// The transcript's name in the folder of its session.
const FILE: &str = "transcript.jsonl";

/// Why a session cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// No transcript has this id.
    #[error("there is no session {0}: `gripper sessions` lists those there are")]
    NotFound(String),
    /// The beginning of several ids.
    #[error("{given} is the beginning of {} ids, {} among them: give more of it", matches.len(), matches[..2].join(" and "))]
    Ambiguous {
        /// What was given.
        given: String,
        /// The ids it fits.
        matches: Vec<String>,
    },
    /// Another process has it open.
    #[error(
        "the session {0} is open in another process: end that one first, or fork the session and continue the copy"
    )]
    InUse(String),
    /// The operating system refused.
    #[error("the transcript {} cannot be used: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl SessionError {
    fn io(path: &Path, source: io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }
}

/// A session's transcript, open for more. No other process can continue the session as long as this one lives.
#[derive(Debug)]
pub struct Transcript {
    file: File,
    path: PathBuf,
    id: String,
    totals: Totals,
    /// The last line has no end, so the next begins with one.
    torn: bool,
}

impl Transcript {
    /// Begins the transcript of a session below `root`, the folder of all sessions.
    pub fn create(root: &Path, header: &Header) -> io::Result<Self> {
        let mut name = Path::new(&header.id).components();
        if !matches!((name.next(), name.next()), (Some(std::path::Component::Normal(_)), None)) {
            return Err(io::Error::new(ErrorKind::InvalidInput, "the id of a session must be a plain name"));
        }
        let folder = root.join(&header.id);
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&folder)?;
        let path = folder.join(FILE);
        let mut options = OpenOptions::new();
        options.read(true).append(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path)?;
        lock(&file, &header.id, &path).map_err(io::Error::other)?;
        let mut new = Self { file, path, id: header.id.clone(), totals: Totals::default(), torn: false };
        new.append(&Entry::Session(header.clone()))?;
        Ok(new)
    }

    /// Adds a line, in one write, so that it is there whole or torn but never mixed with another.
    pub fn append(&mut self, entry: &Entry) -> io::Result<()> {
        self.append_dated(entry, now())
    }

    fn append_dated(&mut self, entry: &Entry, at: String) -> io::Result<()> {
        let mut totals = self.totals;
        totals.count(entry);
        let mut line = if self.torn { vec![b'\n'] } else { Vec::new() };
        serde_json::to_writer(&mut line, &Line { at, totals, entry })?;
        line.push(b'\n');
        // Only a write that came to its end leaves a whole line behind.
        self.torn = true;
        self.file.write_all(&line)?;
        (self.torn, self.totals) = (false, totals);
        Ok(())
    }

    /// Waits until everything is on the disk.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_all()?;
        self.path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The session.
    pub fn id(&self) -> &str {
        &self.id
    }
}

/// Keeps other processes from continuing the session, where the file system can do that.
fn lock(file: &File, id: &str, path: &Path) -> Result<(), SessionError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(SessionError::InUse(id.to_owned())),
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => Ok(()),
        Err(TryLockError::Error(error)) => Err(SessionError::io(path, error)),
    }
}

/// Opens a transcript that exists. A pipe or a link under its name is nobody's transcript, and opening it could
/// wait for ever.
fn open(root: &Path, id: &str, more: bool) -> Result<(File, PathBuf), SessionError> {
    let path = root.join(id).join(FILE);
    let failed = |source| SessionError::io(&path, source);
    if !fs::symlink_metadata(&path).map_err(failed)?.is_file() {
        return Err(failed(io::Error::new(ErrorKind::InvalidInput, "it is not a regular file")));
    }
    let file = OpenOptions::new().read(true).append(more).open(&path).map_err(failed)?;
    Ok((file, path))
}
