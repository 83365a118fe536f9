//! What calls have changed, and what was there before.
//!
//! Contents go to a store by their hash, and a journal per session says which file had which content
//! before and after each change. An entry is written before the change it is about: a process that is
//! killed in between leaves a file that still has the content from before, which undoing takes as done.

mod store;
mod undo;

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead, BufReader, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use serde::{Deserialize, Serialize};

pub use store::{HistoryLimits, sweep};
pub use undo::{Back, PastTurn, Plan, Step, Target};

use super::{ledger::ContentHash, swap::Snapshot};
use crate::{
    audit::hex,
    sync::{Mutex, lock},
};
use store::Store;

/// Contents that calls write are kept up to this size, so that a later change by someone else can be
/// told apart; what was there before is kept at any size.
pub(super) const KEPT_AFTER: usize = 1024 * 1024;

/// Stands in the place of a hash where a folder was or is.
const FOLDER: &str = "folder";

/// A content in the store and the mode of the file that had it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// SHA-256, as hexadecimal digits.
    pub hash: String,
    /// Permission bits.
    pub mode: u32,
}

impl Kept {
    /// A folder, of which nothing but its being there is kept.
    pub(super) fn folder() -> Self {
        Self { hash: FOLDER.to_owned(), mode: 0 }
    }
}

/// One line of a journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    /// The first: whose journal it is.
    Session { id: String, root: PathText },
    /// A file is about to be changed.
    Change(Entry),
    /// The turn takes back others.
    Undoes { turn: String, turns: Vec<String> },
}

/// A change of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) turn: String,
    /// Milliseconds since 1970.
    pub(super) at: u64,
    pub(super) path: PathText,
    /// What was there, if anything was.
    pub(super) before: Option<Kept>,
    /// What should be there now, if anything.
    pub(super) after: Option<Kept>,
    /// Folders that the change would make.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) made: Vec<PathText>,
}

impl Entry {
    fn is_folder(&self) -> bool {
        self.before.iter().chain(&self.after).any(|kept| kept.hash == FOLDER)
    }
}

/// A path in JSON: text where it is text, else its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub(super) enum PathText {
    Text(String),
    Bytes(Vec<u8>),
}

impl From<&Path> for PathText {
    fn from(path: &Path) -> Self {
        use std::os::unix::ffi::OsStrExt;
        match path.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes(path.as_os_str().as_bytes().to_vec()),
        }
    }
}

impl PathText {
    fn path(&self) -> PathBuf {
        use std::os::unix::ffi::OsStringExt;
        match self {
            Self::Text(text) => text.into(),
            Self::Bytes(bytes) => std::ffi::OsString::from_vec(bytes.clone()).into(),
        }
    }
}

/// A change that is about to be made.
pub(super) struct Planned<'a> {
    pub(super) path: &'a Path,
    pub(super) before: Option<&'a Snapshot>,
    /// The new content, its hash and its mode.
    pub(super) after: Option<(&'a [u8], ContentHash, u32)>,
    pub(super) made: Vec<PathBuf>,
}

/// A change that has been made: where, what was there, what is there now, and the folders it made.
pub(super) type Done<'a> = (&'a Path, Option<Kept>, Option<Kept>, Vec<PathBuf>);

/// The history of one session.
#[derive(Debug)]
pub struct History {
    folder: PathBuf,
    session: String,
    root: PathBuf,
    store: Store,
    journal: Mutex<Option<File>>,
}

impl History {
    /// The history of a session in a project. Nothing is written before the first change.
    pub fn new(folder: PathBuf, session: &str, root: &Path) -> Self {
        Self {
            store: Store::new(folder.join("contents")),
            folder,
            session: session.to_owned(),
            root: root.to_owned(),
            journal: Mutex::new(None),
        }
    }

    /// Where drafts are announced.
    pub(super) fn drafts(&self) -> io::Result<PathBuf> {
        let folder = self.folder.join("drafts");
        private_folder(&folder)?;
        Ok(folder)
    }

    /// Keeps what is there, and writes down what is about to happen.
    pub(super) fn record(&self, turn: &str, changes: &[Planned<'_>]) -> io::Result<()> {
        let mut lines = Vec::new();
        for change in changes {
            let entry = Entry {
                turn: turn.to_owned(),
                at: now(),
                path: change.path.into(),
                before: change
                    .before
                    .map(|file| self.put(&file.bytes, file.hash(), file.stamp.permissions(), true))
                    .transpose()?,
                after: change
                    .after
                    .map(|(bytes, hash, mode)| self.put(bytes, hash, mode, bytes.len() <= KEPT_AFTER))
                    .transpose()?,
                made: change.made.iter().map(|folder| folder.as_path().into()).collect(),
            };
            lines.push(Line::Change(entry));
        }
        self.write(&lines)
    }

    /// Writes down changes that have been made; their contents have been put away.
    pub(super) fn record_done(&self, turn: &str, changes: Vec<Done<'_>>) -> io::Result<()> {
        let lines: Vec<Line> = changes
            .into_iter()
            .map(|(path, before, after, made)| {
                let made = made.iter().map(|folder| folder.as_path().into()).collect();
                Line::Change(Entry {
                    turn: turn.to_owned(),
                    at: now(),
                    path: path.into(),
                    before,
                    after,
                    made,
                })
            })
            .collect();
        if lines.is_empty() { Ok(()) } else { self.write(&lines) }
    }

    /// Names a content, and keeps it if wanted.
    pub(super) fn put(&self, bytes: &[u8], hash: ContentHash, mode: u32, keep: bool) -> io::Result<Kept> {
        let hash = hex(&hash);
        if keep {
            self.store.keep(&hash, bytes)?;
        }
        Ok(Kept { hash, mode })
    }

    /// Puts a content away that no journal speaks of.
    pub(super) fn rescue(&self, bytes: &[u8]) -> io::Result<()> {
        self.store.keep(&store::hash(bytes), bytes)
    }

    fn write(&self, lines: &[Line]) -> io::Result<()> {
        let mut journal = lock(&self.journal);
        if journal.is_none() {
            *journal = Some(self.open_journal()?);
        }
        let mut text = Vec::new();
        for line in lines {
            serde_json::to_writer(&mut text, line)?;
            text.push(b'\n');
        }
        match journal.as_mut() {
            // One call: the line of a killed process is there or is not.
            Some(file) => file.write_all(&text),
            None => Ok(()),
        }
    }

    fn open_journal(&self) -> io::Result<File> {
        let folder = self.folder.join("journals");
        private_folder(&folder)?;
        let path = folder.join(format!("{}.jsonl", self.session));
        let mut file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        if file.metadata()?.len() == 0 {
            let line = Line::Session { id: self.session.clone(), root: self.root.as_path().into() };
            file.write_all(&[&serde_json::to_vec(&line)?[..], b"\n"].concat())?;
        }
        Ok(file)
    }
}

/// The lines of a journal that can be read; a torn one is no line.
fn lines_of(path: &Path) -> io::Result<Vec<Line>> {
    let reader = BufReader::new(File::open(path)?);
    let lines = reader.split(b'\n').map_while(Result::ok);
    Ok(lines.filter_map(|line| serde_json::from_slice(&line).ok()).collect())
}

/// The journals in a history folder.
fn journals(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.join("journals")).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "jsonl"));
    paths.sort();
    paths
}

/// A folder that only its owner can look into.
fn private_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
