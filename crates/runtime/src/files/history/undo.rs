//! Taking back what calls have changed, and nothing else.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    path::{Path, PathBuf},
};

use super::{Entry, History, Kept, Line, PathText, journals, lines_of, store};
use crate::files::swap::Snapshot;
use crate::place::Located;

/// A turn that changed files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PastTurn {
    /// Its id.
    pub turn: String,
    /// The session it belongs to.
    pub session: String,
    /// When it began, in milliseconds since 1970.
    pub at: u64,
    /// The files it changed.
    pub paths: Vec<PathBuf>,
    /// It took back others.
    pub is_undo: bool,
    /// A later turn took it back.
    pub undone: bool,
    entries: Vec<Entry>,
}

/// How far to go back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// The newest turn that was not taken back yet.
    Newest,
    /// To how things were before this turn; the beginning of its id is enough.
    Before(String),
}

/// What undoing would do.
#[derive(Debug)]
pub struct Plan {
    /// The turns that are taken back, the newest first.
    pub turns: Vec<PastTurn>,
    /// What happens to each file.
    pub steps: Vec<Step>,
}

/// What happens to one file.
#[derive(Debug)]
pub struct Step {
    /// The file.
    pub path: PathBuf,
    /// What happens to it.
    pub back: Back,
    pub(in crate::files) made: Vec<PathBuf>,
}

/// What undoing does to a file.
#[derive(Debug)]
pub enum Back {
    /// It gets its old content again, and its mode.
    Restore {
        /// What is there now.
        now: Option<Box<Snapshot>>,
        /// What was there.
        bytes: Vec<u8>,
        /// Its mode.
        mode: u32,
    },
    /// It was made, and goes.
    Remove {
        /// What is there now.
        now: Box<Snapshot>,
    },
    /// A folder without files was removed, and is made again.
    MakeFolder,
    /// A folder without files was made, and goes if it is empty.
    RemoveFolder,
    /// It is as it was already.
    Nothing,
    /// Someone else has changed it since; it is left alone.
    Conflict {
        /// What calls left there, if that is known and was not nothing.
        left: Option<Vec<u8>>,
        /// What is there now.
        now: Option<Vec<u8>>,
    },
    /// The old content is not in the store any more.
    Lost,
    /// It cannot be looked at.
    Unreadable(String),
}

impl History {
    /// The turns that changed files of this project, the newest first.
    pub fn turns(&self) -> Vec<PastTurn> {
        let mut turns: Vec<PastTurn> = Vec::new();
        let mut taken_back: HashMap<String, Vec<String>> = HashMap::new();
        for journal in journals(&self.folder) {
            let lines = lines_of(&journal).unwrap_or_default();
            let Some(Line::Session { id, root }) = lines.first().cloned() else { continue };
            if root.path() != self.root {
                continue;
            }
            for line in lines {
                match line {
                    Line::Change(entry) => add(&mut turns, &id, entry),
                    Line::Undoes { turn, turns } => taken_back.entry(turn).or_default().extend(turns),
                    Line::Session { .. } => {}
                }
            }
        }
        turns.sort_by(|a, b| (b.at, &b.turn).cmp(&(a.at, &a.turn)));
        // One that had no file to change is no turn, and stands. An undo that was itself taken back has taken
        // nothing back.
        let known: HashSet<&String> = turns.iter().map(|past| &past.turn).collect();
        let idle = taken_back.iter().filter(|(turn, _)| !known.contains(turn));
        let mut undone: HashSet<String> = idle.flat_map(|(_, targets)| targets.iter().cloned()).collect();
        for past in &mut turns {
            past.undone = undone.contains(&past.turn);
            let targets = taken_back.remove(&past.turn);
            past.is_undo = targets.is_some();
            undone.extend(targets.into_iter().flatten().filter(|_| !past.undone));
        }
        turns
    }

    /// What has to happen to take turns back; `Err` says why none are.
    pub fn plan(&self, target: &Target) -> Result<Plan, String> {
        let all = self.turns();
        let turns = chosen(all, target)?;
        // Entries of one turn are in order; turns are the newest first.
        let mut entries: BTreeMap<PathBuf, Vec<&Entry>> = BTreeMap::new();
        for entry in turns.iter().rev().flat_map(|past| &past.entries) {
            entries.entry(entry.path.path()).or_default().push(entry);
        }
        // Sessions may have worked on one file in turn.
        entries.values_mut().for_each(|entries| entries.sort_by_key(|entry| entry.at));
        let steps = entries.into_iter().map(|(path, entries)| self.step(path, &entries)).collect();
        Ok(Plan { turns, steps })
    }

    fn step(&self, path: PathBuf, entries: &[&Entry]) -> Step {
        let made = entries.iter().flat_map(|entry| entry.made.iter().map(PathText::path)).collect();
        let back = self.back(&path, entries);
        Step { path, back, made }
    }

    fn back(&self, path: &Path, entries: &[&Entry]) -> Back {
        // What was a file and a folder in turn is looked at as a file.
        let files: Vec<&Entry> = entries.iter().copied().filter(|entry| !entry.is_folder()).collect();
        let (Some(first), Some(last)) = (files.first(), files.last()) else {
            let was = entries.first().is_some_and(|entry| entry.before.is_some());
            return match (was, path.is_dir()) {
                (true, false) => Back::MakeFolder,
                (false, true) => Back::RemoveFolder,
                _ => Back::Nothing,
            };
        };
        let located = Located { written: path.to_owned(), real: path.to_owned() };
        let now = match Snapshot::take(&located, u64::MAX - 1) {
            Ok(now) => Some(Box::new(now)),
            Err(crate::files::OpenFailure::NotFound { .. }) => None,
            Err(failure) => return Back::Unreadable(failure.to_string()),
        };
        let is = now.as_ref().map(|now| store::hash(&now.bytes));
        let name = |kept: &Option<Kept>| kept.as_ref().map(|kept| kept.hash.clone());
        if is == name(&first.before) {
            return Back::Nothing;
        }
        // Each change began with what the one before it left, or, if that was never carried out, with
        // what that one began with; and what is there now is what the last one left.
        let joined = files.windows(2).all(|pair| {
            let begins = name(&pair[1].before);
            begins == name(&pair[0].after) || begins == name(&pair[0].before)
        });
        if !joined || (is != name(&last.after) && is != name(&last.before)) {
            let left = last.after.as_ref().and_then(|kept| self.store.get(&kept.hash));
            return Back::Conflict { left, now: now.map(|now| now.bytes) };
        }
        match (&first.before, now) {
            (None, Some(now)) => Back::Remove { now },
            (None, None) => Back::Nothing,
            (Some(kept), now) => match self.store.get(&kept.hash) {
                Some(bytes) => Back::Restore { now, bytes, mode: kept.mode },
                None => Back::Lost,
            },
        }
    }

    /// Writes down that a turn takes back others.
    pub(in crate::files) fn undoes(&self, turn: &str, turns: &[PastTurn]) -> std::io::Result<()> {
        let turns = turns.iter().map(|past| past.turn.clone()).collect();
        self.write(&[Line::Undoes { turn: turn.to_owned(), turns }])
    }
}

fn add(turns: &mut Vec<PastTurn>, session: &str, entry: Entry) {
    let path = entry.path.path();
    match turns.iter_mut().find(|past| past.turn == entry.turn) {
        Some(past) => {
            if !past.paths.contains(&path) {
                past.paths.push(path);
            }
            past.entries.push(entry);
        }
        None => turns.push(PastTurn {
            turn: entry.turn.clone(),
            session: session.to_owned(),
            at: entry.at,
            paths: vec![path],
            is_undo: false,
            undone: false,
            entries: vec![entry],
        }),
    }
}

/// The turns that a target names, the newest first.
fn chosen(all: Vec<PastTurn>, target: &Target) -> Result<Vec<PastTurn>, String> {
    let listed = "gripper undo --list shows them";
    match target {
        Target::Newest => {
            let newest = all.into_iter().find(|past| !past.is_undo && !past.undone);
            newest.map(|past| vec![past]).ok_or_else(|| "there is nothing to undo in this project".to_owned())
        }
        Target::Before(id) => {
            let found: BTreeSet<&str> =
                all.iter().filter(|past| past.turn.starts_with(id)).map(|past| &*past.turn).collect();
            match found.len() {
                1 => {
                    let end = all.iter().position(|past| past.turn.starts_with(id)).unwrap_or(0);
                    Ok(all.into_iter().take(end + 1).collect())
                }
                0 => {
                    Err(format!("no turn that changed files here has an id that begins with {id}: {listed}"))
                }
                more => Err(format!("{more} turns have an id that begins with {id}: give more of it")),
            }
        }
    }
}
