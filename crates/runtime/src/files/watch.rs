//! Noticing what others do to files the model knows.

use std::{
    collections::{HashMap, HashSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
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
    dirty: Arc<Mutex<HashMap<PathBuf, Instant>>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    watcher: Option<RecommendedWatcher>,
    folders: HashSet<PathBuf>,
    /// There is no watcher that could be relied on: files are looked at instead.
    failed: bool,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").finish_non_exhaustive()
    }
}

impl Watch {
    pub(super) fn new(show: ShowDifference) -> Self {
        Self { show, dirty: Arc::default(), state: Mutex::default() }
    }

    /// The model knows this file now.
    pub(super) fn add(&self, file: &Path) {
        let Some(folder) = file.parent() else { return };
        let mut state = lock(&self.state);
        if state.failed || state.folders.contains(folder) {
            return;
        }
        if state.watcher.is_none() {
            state.watcher = self.start();
        }
        let watched = state
            .watcher
            .as_mut()
            .is_some_and(|watcher| watcher.watch(folder, RecursiveMode::NonRecursive).is_ok());
        if !watched || state.folders.len() >= MOST_FOLDERS {
            *state = State { failed: true, ..State::default() };
            return;
        }
        state.folders.insert(folder.to_owned());
    }

    fn start(&self) -> Option<RecommendedWatcher> {
        let dirty = self.dirty.clone();
        let take = move |event: notify::Result<notify::Event>| {
            if let Ok(event) = event
                && !event.kind.is_access()
            {
                let now = Instant::now();
                lock(&dirty).extend(event.paths.into_iter().map(|path| (path, now)));
            }
        };
        notify::recommended_watcher(take).ok()
    }

    /// The files that may have changed and have settled since.
    fn settled(&self, known: &HashSet<PathBuf>) -> Vec<PathBuf> {
        if lock(&self.state).failed {
            return known.iter().cloned().collect();
        }
        let mut dirty = lock(&self.dirty);
        // Other files of the same folders are nobody's business here.
        dirty.retain(|path, _| known.contains(path));
        let settled = dirty.extract_if(|_, since| since.elapsed() >= DEBOUNCE);
        settled.map(|(path, _)| path).collect()
    }
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
