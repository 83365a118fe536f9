//! Contents by their hash, and how long they stay.

use std::{
    collections::HashSet,
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use super::{Line, journals, lines_of, private_folder};
use crate::audit::sha256;

/// How much history there may be, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryLimits {
    /// Bytes of contents, of all sessions together.
    pub quota_bytes: u64,
    /// How long a session's history is kept after its last change.
    pub max_age: Duration,
}

impl Default for HistoryLimits {
    fn default() -> Self {
        Self { quota_bytes: 2 * 1024 * 1024 * 1024, max_age: Duration::from_secs(30 * 24 * 60 * 60) }
    }
}

/// Contents younger than this are never swept: their journal line may not be written yet.
const GRACE: Duration = Duration::from_secs(60 * 60);

#[derive(Debug)]
pub(super) struct Store {
    folder: PathBuf,
}

impl Store {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    /// Puts a content away. One that is there already is not written again.
    pub(super) fn keep(&self, hash: &str, bytes: &[u8]) -> io::Result<()> {
        let path = self.path(hash);
        if path.is_file() {
            return Ok(());
        }
        if let Some(folder) = path.parent() {
            private_folder(folder)?;
        }
        let draft = path.with_extension(format!("{}.part", uuid::Uuid::now_v7().simple()));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)
            .and_then(|mut file| file.write_all(bytes))
            .and_then(|()| fs::rename(&draft, &path));
        if written.is_err() {
            fs::remove_file(&draft).ok();
        }
        written
    }

    /// A content, if it is there and is what its name says.
    pub(super) fn get(&self, wanted: &str) -> Option<Vec<u8>> {
        let bytes = fs::read(self.path(wanted)).ok()?;
        (hash(&bytes) == wanted).then_some(bytes)
    }

    fn path(&self, hash: &str) -> PathBuf {
        let (shelf, name) = hash.split_at_checked(2).unwrap_or(("", hash));
        self.folder.join(shelf).join(name)
    }
}

/// A content's name in the store.
pub(super) fn hash(bytes: &[u8]) -> String {
    sha256(bytes)
}

/// Removes the journals of sessions that are too old, then the oldest ones until the contents fit the
/// quota, and with them every content that no journal speaks of. Gives how many contents went.
pub fn sweep(folder: &Path, limits: &HistoryLimits, now: SystemTime) -> usize {
    let age = |path: &Path| {
        let modified = fs::metadata(path).and_then(|found| found.modified()).ok()?;
        // A time in the future counts as new: a wrong clock must not delete.
        Some(now.duration_since(modified).unwrap_or_default())
    };
    let mut kept: Vec<(Duration, PathBuf)> = Vec::new();
    for journal in journals(folder) {
        match age(&journal) {
            Some(age) if age > limits.max_age => {
                fs::remove_file(&journal).ok();
            }
            Some(age) => kept.push((age, journal)),
            None => {}
        }
    }
    kept.sort();
    let contents = contents(folder);
    let (mut used, mut needed) = (0, HashSet::new());
    for (_, journal) in kept {
        let hashes: Vec<String> = named_in(&journal);
        let size: u64 = hashes
            .iter()
            .filter(|hash| !needed.contains(*hash))
            .filter_map(|hash| contents.get(hash))
            .map(|(_, size)| size)
            .sum();
        if used > 0 && used + size > limits.quota_bytes {
            fs::remove_file(&journal).ok();
            continue;
        }
        used += size;
        needed.extend(hashes);
    }
    let needless = contents.iter().filter(|(hash, _)| !needed.contains(*hash));
    let old = needless.filter(|(_, (path, _))| age(path).is_some_and(|age| age > GRACE));
    old.filter(|(_, (path, _))| fs::remove_file(path).is_ok()).count()
}

fn named_in(journal: &Path) -> Vec<String> {
    let lines = lines_of(journal).unwrap_or_default();
    let kept = lines.into_iter().filter_map(|line| match line {
        Line::Change(entry) => Some([entry.before, entry.after]),
        _ => None,
    });
    kept.flatten().flatten().map(|kept| kept.hash).collect()
}

/// Everything in the store: by name, its path and size.
fn contents(folder: &Path) -> std::collections::HashMap<String, (PathBuf, u64)> {
    let shelves = fs::read_dir(folder.join("contents")).into_iter().flatten().flatten();
    let files = shelves.flat_map(|shelf| {
        let name = shelf.file_name();
        fs::read_dir(shelf.path()).into_iter().flatten().flatten().map(move |file| (name.clone(), file))
    });
    files
        .filter_map(|(shelf, file)| {
            let hash = format!("{}{}", shelf.to_string_lossy(), file.file_name().to_string_lossy());
            Some((hash, (file.path(), file.metadata().ok()?.len())))
        })
        .collect()
}
