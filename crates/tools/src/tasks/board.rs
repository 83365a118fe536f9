//! Where a session tells other processes of its tasks, and hears that one should stop.
//!
//! A folder for each session that has tasks: a list, and a file that the session holds locked. Tasks end with
//! their session, so a lock that can be had means that the list is of the past, and it is removed.

use std::{
    fs::{self, DirBuilder, File},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::State;

const LIST: &str = "tasks.json";
const LOCK: &str = "lock";

/// A task as other processes see it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Posted {
    /// Its name, which other sessions may use as well.
    pub id: String,
    /// The command line.
    pub command: String,
    /// What it is for.
    pub description: Option<String>,
    /// How it stands.
    pub status: State,
    /// How it ended.
    pub exit_code: Option<i32>,
    /// When it was started, in seconds since 1970.
    pub started: u64,
    /// Where its output is, once there is any.
    pub output: Option<PathBuf>,
}

/// The tasks of one session.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Posting {
    /// The process that owns them.
    pub pid: u32,
    /// The project it works in.
    pub root: PathBuf,
    /// The tasks, oldest first.
    pub tasks: Vec<Posted>,
    /// Where this was found.
    #[serde(skip)]
    pub folder: PathBuf,
}

impl Posting {
    /// Asks the owner to end a task.
    pub fn ask_to_stop(&self, id: &str) -> io::Result<()> {
        fs::write(request(&self.folder, id), "")
    }
}

/// The tasks of all sessions that live, `sessions` being the folder of their folders. What dead ones left is
/// removed.
pub fn postings(sessions: &Path) -> Vec<Posting> {
    let mut found = Vec::new();
    for session in fs::read_dir(sessions).into_iter().flatten().flatten() {
        let folder = session.path().join("tasks");
        let Ok(lock) = File::open(folder.join(LOCK)) else { continue };
        if lock.try_lock_shared().is_ok() {
            fs::remove_dir_all(&folder).ok();
            continue;
        }
        let list = fs::read(folder.join(LIST)).ok().and_then(|text| serde_json::from_slice(&text).ok());
        found.extend(list.map(|posting: Posting| Posting { folder, ..posting }));
    }
    found.sort_by_key(|posting| posting.pid);
    found
}

fn request(folder: &Path, id: &str) -> PathBuf {
    folder.join(format!("{id}.stop"))
}

/// The owner's side.
pub(super) struct Board {
    folder: PathBuf,
    root: PathBuf,
    lock: Option<File>,
}

impl Board {
    pub(super) fn new(folder: PathBuf, root: PathBuf) -> Self {
        Self { folder, root, lock: None }
    }

    /// Shows the tasks. Nothing depends on it, so a disk that is full costs only this.
    pub(super) fn post(&mut self, tasks: Vec<Posted>) {
        if self.write(tasks).is_err() {
            // Whoever looked while the lock was not yet held may have swept the folder away.
            self.lock = None;
        }
    }

    fn write(&mut self, tasks: Vec<Posted>) -> io::Result<()> {
        if self.lock.is_none() {
            DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
            let lock = File::create(self.folder.join(LOCK))?;
            lock.try_lock().map_err(io::Error::from)?;
            self.lock = Some(lock);
        }
        let posting =
            Posting { pid: std::process::id(), root: self.root.clone(), tasks, folder: PathBuf::new() };
        // Whoever reads it meanwhile finds the old list or the new one.
        let fresh = self.folder.join("tasks.new");
        fs::write(&fresh, serde_json::to_vec(&posting)?)?;
        fs::rename(&fresh, self.folder.join(LIST))
    }

    /// Whether somebody asked for the end of a task.
    pub(super) fn asks_to_stop(&self, id: &str) -> bool {
        self.lock.is_some() && fs::remove_file(request(&self.folder, id)).is_ok()
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        if self.lock.is_some() {
            fs::remove_dir_all(&self.folder).ok();
        }
    }
}
