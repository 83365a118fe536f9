//! The files that calls work on: opened as judged, known by what the model has seen of them, replaced
//! whole or not at all, and put back when somebody wants that.

mod failure;
pub mod history;
pub mod ledger;
mod open;
mod similar;
mod stamp;
mod survey;
mod swap;
mod watch;

use std::{
    collections::{BTreeSet, HashMap},
    path::PathBuf,
    sync::Arc,
};

pub use failure::WriteFailure;
pub use open::{OpenFailure, open_regular, open_without_links};
pub use stamp::Stamp;
pub use survey::{Account, Found, Survey};
pub use swap::Snapshot;
pub use watch::{ChangedFile, FileChange, ShowDifference};

use crate::{
    place::Located,
    schema,
    settings::{self, Sources},
    sync::Mutex,
};
use history::{Back, History, Kept, Plan, Planned};
use ledger::{Content, ContentHash, Ledger, Seen, content_hash};
use swap::{Swap, missing_folders, remove_folders};
use watch::Watch;

/// Everything about files that the calls of a session share.
#[derive(Debug, Default)]
pub struct Files {
    /// What the model has seen.
    pub ledger: Ledger,
    history: Option<Arc<History>>,
    swap: Arc<Swap>,
    settings: Option<Sources>,
    watch: Option<Watch>,
    /// What surveys have found, so that unchanged files are not read again.
    surveyed: Mutex<HashMap<PathBuf, (Stamp, Kept)>>,
}

/// A change of one file.
#[derive(Debug, Clone)]
pub enum Change {
    /// A file where there is none.
    Create {
        /// Where.
        path: Located,
        /// What it holds.
        bytes: Vec<u8>,
        /// Its mode; the usual one unless given.
        mode: Option<u32>,
    },
    /// Another content for a file.
    Replace {
        /// The file as it was looked at.
        old: Snapshot,
        /// What it holds then.
        bytes: Vec<u8>,
    },
    /// No file any more.
    Remove {
        /// The file as it was looked at.
        old: Snapshot,
    },
}

impl Change {
    /// The file it is about.
    pub fn path(&self) -> &Located {
        match self {
            Self::Create { path, .. } => path,
            Self::Replace { old, .. } | Self::Remove { old } => &old.path,
        }
    }

    /// What is there before and after.
    fn contents(&self) -> (Option<&Snapshot>, Option<&[u8]>) {
        match self {
            Self::Create { bytes, .. } => (None, Some(bytes)),
            Self::Replace { old, bytes } => (Some(old), Some(bytes)),
            Self::Remove { old } => (Some(old), None),
        }
    }
}

/// What became of a file when a turn was taken back.
#[derive(Debug)]
pub struct Undone {
    /// The file.
    pub path: PathBuf,
    /// What was to happen to it.
    pub back: Back,
    /// Why it did not happen, if it did not.
    pub failure: Option<WriteFailure>,
}

impl Files {
    /// Files whose changes can be taken back. Clears away what a killed process may have left.
    pub fn with_history(history: History, settings: Option<Sources>) -> Self {
        let swap = history.drafts().map(Swap::announced_in).unwrap_or_default();
        swap.tidy(|bytes| history.rescue(bytes));
        Self { history: Some(Arc::new(history)), swap: Arc::new(swap), settings, ..Self::default() }
    }

    /// Files for an agent that has seen none of them yet. Changes are kept where they are kept here.
    pub(crate) fn below(&self) -> Self {
        let (history, swap) = (self.history.clone(), self.swap.clone());
        Self { history, swap, settings: self.settings.clone(), ..Self::default() }
    }

    /// Also notices what others do to files the model knows.
    #[must_use]
    pub fn watching(mut self, show: ShowDifference) -> Self {
        self.watch = Some(Watch::new(show));
        self
    }

    /// Takes down that the model has seen something.
    pub(crate) fn note(&self, seen: Seen, turn: &Arc<str>) {
        if let Some(watch) = &self.watch {
            watch.add(&seen.path);
        }
        self.ledger.note(seen, turn);
    }

    /// The turns that changed files.
    pub fn history(&self) -> Option<&History> {
        self.history.as_deref()
    }

    /// Makes changes, all or none of them: each only if its file still is what was looked at. What was there
    /// is kept first. `known` says that the model knows all that is written, and not only what it changed.
    pub fn apply(&self, turn: &Arc<str>, changes: &[Change], known: bool) -> Result<(), WriteFailure> {
        for change in changes {
            self.check_settings(change)?;
        }
        let hashes: Vec<Option<ContentHash>> =
            changes.iter().map(|change| change.contents().1.map(content_hash)).collect();
        self.record(turn, changes, &hashes)?;
        let mut done: Vec<(&Change, Option<Stamp>)> = Vec::new();
        for change in changes {
            match self.carry_out(change) {
                Ok(stamp) => done.push((change, stamp)),
                Err(failure) => {
                    for (change, stamp) in done.into_iter().rev() {
                        self.take_back(change, stamp);
                    }
                    return Err(failure);
                }
            }
        }
        for ((change, stamp), hash) in done.into_iter().zip(hashes) {
            let path = &change.path().real;
            match (stamp, change.contents().1.zip(hash)) {
                (Some(stamp), Some((bytes, hash))) => {
                    let content = Content::hashed(bytes, hash);
                    self.ledger.wrote(path, stamp, content, known, turn);
                    self.watch.iter().for_each(|watch| watch.add(path));
                }
                _ => self.ledger.evict([path.as_path()]),
            }
        }
        Ok(())
    }

    fn carry_out(&self, change: &Change) -> Result<Option<Stamp>, WriteFailure> {
        match change {
            Change::Create { path, bytes, mode } => self.swap.create(path, bytes, *mode).map(Some),
            Change::Replace { old, bytes } => self.swap.replace(old, bytes).map(Some),
            Change::Remove { old } => self.swap.remove(old).map(|()| None),
        }
    }

    /// Takes a change back because one behind it failed. Somebody else may have been quicker; then theirs stays.
    fn take_back(&self, change: &Change, stamp: Option<Stamp>) {
        let now =
            |bytes: &[u8]| Snapshot::new(change.path().clone(), bytes.to_vec(), stamp.unwrap_or_default());
        match change {
            Change::Create { bytes, .. } => drop(self.swap.remove(&now(bytes))),
            Change::Replace { old, bytes } => drop(self.swap.replace(&now(bytes), &old.bytes)),
            Change::Remove { old } => {
                drop(self.swap.create(&old.path, &old.bytes, Some(old.stamp.permissions())));
            }
        }
    }

    fn record(
        &self,
        turn: &str,
        changes: &[Change],
        hashes: &[Option<ContentHash>],
    ) -> Result<(), WriteFailure> {
        let Some(history) = &self.history else { return Ok(()) };
        let planned: Vec<Planned<'_>> = changes
            .iter()
            .zip(hashes)
            .map(|(change, hash)| {
                let (before, after) = change.contents();
                let mode = before.map_or(0o644, |file| file.stamp.permissions());
                let made = if before.is_none() { missing_folders(&change.path().real) } else { Vec::new() };
                Planned {
                    path: &change.path().real,
                    before,
                    after: after.zip(*hash).map(|(bytes, hash)| (bytes, hash, mode)),
                    made,
                }
            })
            .collect();
        history.record(turn, &planned).map_err(|why| WriteFailure::History {
            path: changes.first().map(|change| change.path().written.clone()).unwrap_or_default(),
            why,
        })
    }

    /// Settings that no longer parse would put rules out of force.
    fn check_settings(&self, change: &Change) -> Result<(), WriteFailure> {
        let path = change.path();
        let kind = self.settings.as_ref().and_then(|sources| sources.settings_file(&path.real));
        let (Some(kind), (before, Some(after))) = (kind, change.contents()) else { return Ok(()) };
        let before = before.map(|file| String::from_utf8_lossy(&file.bytes)).unwrap_or("{}".into());
        settings::check_edit(kind, &before, &String::from_utf8_lossy(after)).map(drop).map_err(|problems| {
            let why = schema::describe("the file", &problems);
            WriteFailure::Settings { path: path.written.clone(), why }
        })
    }

    /// Takes turns back as planned, each file for itself.
    pub fn undo(&self, plan: Plan) -> Vec<Undone> {
        let turn: Arc<str> = uuid::Uuid::now_v7().to_string().into();
        let (mut undone, mut made) = (Vec::new(), BTreeSet::new());
        for step in plan.steps {
            let path = Located { written: step.path.clone(), real: step.path.clone() };
            let change = match &step.back {
                Back::Restore { now: Some(now), bytes, .. } => {
                    Some(Change::Replace { old: (**now).clone(), bytes: bytes.clone() })
                }
                Back::Restore { now: None, bytes, mode } => {
                    Some(Change::Create { path, bytes: bytes.clone(), mode: Some(*mode) })
                }
                Back::Remove { now } => Some(Change::Remove { old: (**now).clone() }),
                _ => None,
            };
            let mut failure = change.and_then(|change| self.apply(&turn, &[change], false).err());
            if matches!(step.back, Back::MakeFolder)
                && let Err(error) = std::fs::create_dir_all(&step.path)
            {
                failure = Some(OpenFailure::io(&step.path, error).into());
            }
            made.extend(step.made);
            undone.push(Undone { path: step.path, back: step.back, failure });
        }
        // Those that are empty now; the deepest come last.
        remove_folders(&made.into_iter().collect::<Vec<_>>());
        for left in undone.iter_mut().filter(|undone| undone.path.exists()) {
            if matches!(left.back, Back::RemoveFolder) {
                left.back = Back::Nothing;
            }
        }
        let stays = |undone: &Undone| {
            undone.failure.is_some()
                || matches!(undone.back, Back::Conflict { .. } | Back::Lost | Back::Unreadable(_))
        };
        if let Some(history) = self.history.as_ref().filter(|_| !undone.iter().any(stays)) {
            // What is left of turns with conflicts can be taken back once those are settled.
            let _ = history.undoes(&turn, &plan.turns);
        }
        undone
    }
}
