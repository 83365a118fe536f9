//! Noticing what others do to files the model knows.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::{
        Arc,
        mpsc::{Sender, channel},
    },
    time::{Duration, Instant},
};

use notify::{RecursiveMode, Watcher};
use serde::Serialize;

use super::{
    Files,
    ledger::{Content, Evidence, Seen, Standing},
    open::OpenFailure,
    swap::Snapshot,
};
use crate::{
    place::Located,
    sync::{Mutex, lock},
};

/// A file is left alone for so long before its change counts as finished.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// Folders that are watched; beyond, every known file is looked at instead.
const MOST_FOLDERS: usize = 1_000;
/// Lines of a difference that are shown.
const DIFF_LINES: usize = 100;
/// Files that are compared are no larger than this.
const MOST_BYTES: u64 = 16 * 1024 * 1024;

/// Shows the difference between two contents in at most so many lines; false if that is not all of it.
pub type ShowDifference = fn(&[u8], &[u8], usize) -> (String, bool);

/// A file that somebody else has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangedFile {
    /// The file.
    pub path: PathBuf,
    /// What happened to it.
    #[serde(flatten)]
    pub change: FileChange,
}

/// What somebody else did to a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum FileChange {
    /// It has other content.
    Modified {
        /// The difference to what the model knows.
        diff: String,
        /// There is more to it than `diff` shows; the model should read the file again.
        cut: bool,
    },
    /// It is gone.
    Deleted,
}

/// Watches the folders of files the model knows.
pub(super) struct Watch {
    show: ShowDifference,
    state: Arc<Mutex<State>>,
    /// Folders for the thread that adds them. Adding one waits for the system, and where very much happens
    /// at once that may be for ever; no call waits with it.
    wanted: Mutex<Option<Sender<PathBuf>>>,
}

#[derive(Default)]
struct State {
    /// Files that something happened to, and when.
    dirty: HashMap<PathBuf, Instant>,
    /// Folders that are on their way to the watcher.
    asked: HashSet<PathBuf>,
    /// Folders that are watched. Files of other folders are looked at instead.
    watched: HashSet<PathBuf>,
    /// Folders that have just begun to be watched: what happened before is looked for once.
    fresh: HashSet<PathBuf>,
    /// Events were lost: all files are looked at once.
    lost: bool,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Watch {
    pub(super) fn new(show: ShowDifference) -> Self {
        Self { show, state: Arc::default(), wanted: Mutex::default() }
    }

    /// The model knows this file now.
    pub(super) fn add(&self, file: &Path) {
        let Some(folder) = file.parent() else { return };
        {
            let mut state = lock(&self.state);
            if state.asked.len() >= MOST_FOLDERS || !state.asked.insert(folder.to_owned()) {
                return;
            }
        }
        let mut wanted = lock(&self.wanted);
        let sender = wanted.get_or_insert_with(|| start(self.state.clone()));
        // A thread that has ended watches nothing more, so those files are looked at.
        sender.send(folder.to_owned()).ok();
    }

    /// The files that may have changed and have settled since.
    fn settled(&self, known: &HashSet<PathBuf>) -> Vec<PathBuf> {
        let mut state = lock(&self.state);
        if std::mem::take(&mut state.lost) {
            return known.iter().cloned().collect();
        }
        let State { dirty, watched, fresh, .. } = &mut *state;
        // Other files of the same folders are nobody's business here.
        dirty.retain(|path, _| known.contains(path));
        let settled = dirty.extract_if(|_, since| since.elapsed() >= DEBOUNCE).map(|(path, _)| path);
        let mut settled: Vec<PathBuf> = settled.collect();
        let fresh = std::mem::take(fresh);
        let unwatched = |path: &&PathBuf| {
            path.parent().is_none_or(|folder| !watched.contains(folder) || fresh.contains(folder))
        };
        settled.extend(known.iter().filter(unwatched).cloned());
        settled
    }
}

/// Starts the thread that hands folders to the watcher.
fn start(state: Arc<Mutex<State>>) -> Sender<PathBuf> {
    let (sender, folders) = channel::<PathBuf>();
    std::thread::spawn(move || {
        let noticed = state.clone();
        let take = move |event: notify::Result<notify::Event>| {
            let mut state = lock(&noticed);
            match event {
                Ok(event) if event.need_rescan() => state.lost = true,
                Ok(event) if event.kind.is_access() => {}
                Ok(event) => {
                    let now = Instant::now();
                    state.dirty.extend(event.paths.into_iter().map(|path| (path, now)));
                }
                Err(_) => state.lost = true,
            }
        };
        let Ok(mut watcher) = notify::recommended_watcher(take) else { return };
        for folder in folders {
            if watcher.watch(&folder, RecursiveMode::NonRecursive).is_ok() {
                let mut state = lock(&state);
                state.fresh.insert(folder.clone());
                state.watched.insert(folder);
            }
        }
    });
    sender
}

impl Files {
    /// What others have done to files the model knows, each change told once. The model knows it then.
    pub fn changed_files(&self, turn: &Arc<str>) -> Vec<ChangedFile> {
        let Some(watch) = &self.watch else { return Vec::new() };
        let mut paths = watch.settled(&self.ledger.known());
        paths.sort();
        paths.into_iter().filter_map(|path| self.changed_file(watch, path, turn)).collect()
    }

    fn changed_file(&self, watch: &Watch, path: PathBuf, turn: &Arc<str>) -> Option<ChangedFile> {
        let located = Located { written: path.clone(), real: path.clone() };
        let now = match Snapshot::take(&located, MOST_BYTES) {
            Ok(now) => now,
            Err(OpenFailure::NotFound { .. } | OpenFailure::DanglingLink { .. }) => {
                self.ledger.evict([path.as_path()]);
                return Some(ChangedFile { path, change: FileChange::Deleted });
            }
            // What cannot be looked at is compared when it is to be changed.
            Err(_) => return None,
        };
        let Standing::Changed { before } = self.ledger.standing(&now) else { return None };
        let (diff, whole) = match before {
            Some(before) => (watch.show)(&before, &now.bytes, DIFF_LINES),
            None => (String::new(), false),
        };
        if whole {
            let content = Content::of(&now.bytes);
            let seen = Seen {
                path: path.clone(),
                stamp: now.stamp,
                content,
                lines: None,
                evidence: Evidence::Attached,
            };
            self.ledger.attach(seen, turn);
        } else {
            self.ledger.evict([path.as_path()]);
        }
        Some(ChangedFile { path, change: FileChange::Modified { diff, cut: !whole } })
    }
}
