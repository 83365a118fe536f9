//! What a command changed: files are looked at before it runs and again afterwards, and the difference goes to
//! the history as if calls had made it.
//!
//! Contents are put away before, as nobody has them afterwards. A file that was looked at by an earlier survey
//! and still has its stamp is not read again.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
};

use rustix::fs::{FileType, lstat};

use super::{Files, Snapshot, Stamp, history::Kept};
use crate::{place::Located, sync::lock};

/// Larger files are not put away, so their changes cannot be taken back.
const MOST_BYTES: u64 = 16 * 1024 * 1024;
/// More than this, all together, is not put away for one command.
const MOST_IN_ALL: u64 = 512 * 1024 * 1024;

/// Files and folders as they are found.
#[derive(Debug, Default)]
pub struct Found {
    /// Regular files, links followed.
    pub files: BTreeSet<PathBuf>,
    /// Folders.
    pub folders: BTreeSet<PathBuf>,
}

/// Files as they were before a command.
#[derive(Debug, Default)]
pub struct Survey {
    files: BTreeMap<PathBuf, (Stamp, Kept)>,
    folders: BTreeSet<PathBuf>,
    /// Files whose content could not be put away.
    left_out: BTreeSet<PathBuf>,
}

/// What became of files.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Files that were changed, made or removed, and can be had back.
    pub changed: Vec<PathBuf>,
    /// Files that were changed and cannot.
    pub lost: Vec<PathBuf>,
}

impl Files {
    /// Puts away what is there. Nothing without a history.
    pub fn survey(&self, found: Found) -> Option<Survey> {
        let history = self.history.as_ref()?;
        let mut survey = Survey { folders: found.folders, ..Survey::default() };
        let mut seen = lock(&self.surveyed);
        let mut total = 0;
        for path in found.files {
            let Some(stamp) = stamp_of(&path) else { continue };
            let known = seen.get(&path).filter(|(earlier, _)| stamp.unchanged_since(earlier)).cloned();
            let entry = known.or_else(|| {
                total += stamp.size();
                let fits = stamp.size() <= MOST_BYTES && total <= MOST_IN_ALL;
                let file = read(&path).filter(|_| fits)?;
                let kept = history.put(&file.bytes, file.hash(), file.stamp.permissions(), true).ok()?;
                Some((file.stamp, kept))
            });
            match entry {
                Some(entry) => {
                    seen.insert(path.clone(), entry.clone());
                    survey.files.insert(path, entry);
                }
                None => {
                    survey.left_out.insert(path);
                }
            }
        }
        Some(survey)
    }

    /// Writes down what is different now, as changes of a turn.
    pub fn account(&self, turn: &str, before: &Survey, now: &Found) -> Account {
        let (Some(history), mut account) = (&self.history, Account::default()) else {
            return Account::default();
        };
        let mut changes = Vec::new();
        let paths: BTreeSet<&PathBuf> =
            before.files.keys().chain(&before.left_out).chain(&now.files).collect();
        for path in paths {
            let old = before.files.get(path);
            let stamp = stamp_of(path);
            if let (Some(stamp), Some((earlier, _))) = (&stamp, old)
                && stamp.unchanged_since(earlier)
            {
                continue;
            }
            let file = stamp.and_then(|_| read(path));
            let after = file.as_ref().and_then(|file| {
                let keep = file.bytes.len() <= super::history::KEPT_AFTER;
                history.put(&file.bytes, file.hash(), file.stamp.permissions(), keep).ok()
            });
            if old.map(|(_, kept)| kept) == after.as_ref() {
                continue;
            }
            if before.left_out.contains(path) || (stamp.is_some() && after.is_none()) {
                account.lost.push(path.clone());
                continue;
            }
            changes.push((path.as_path(), old.map(|(_, kept)| kept.clone()), after, made(path, before)));
            account.changed.push(path.clone());
        }
        // A folder comes and goes with the files in it, but for one that has none.
        for folder in before.folders.difference(&now.folders).filter(|folder| !folder.exists()) {
            let files = before.files.range(folder.clone()..).map(|(path, _)| path);
            if none_below(folder, files) && none_below(folder, before.left_out.range(folder.clone()..)) {
                changes.push((folder.as_path(), Some(Kept::folder()), None, Vec::new()));
            }
        }
        for folder in now.folders.difference(&before.folders) {
            if none_below(folder, now.files.range(folder.clone()..)) {
                let made = made(&folder.join("any"), before);
                changes.push((folder.as_path(), None, Some(Kept::folder()), made));
            }
        }
        if history.record_done(turn, changes).is_err() {
            account.lost.append(&mut account.changed);
        }
        account
    }
}

/// Whether paths in order, from that of the folder on, begin with one that is not in it.
fn none_below<'a>(folder: &Path, mut from: impl Iterator<Item = &'a PathBuf>) -> bool {
    from.next().is_none_or(|path| !path.starts_with(folder))
}

/// The folders of a file that were not there before, the outermost first.
fn made(path: &Path, before: &Survey) -> Vec<PathBuf> {
    let mut made: Vec<PathBuf> = path
        .ancestors()
        .skip(1)
        .take_while(|folder| {
            !before.folders.contains(*folder) && before.folders.iter().any(|root| folder.starts_with(root))
        })
        .map(Path::to_owned)
        .collect();
    made.reverse();
    made
}

fn stamp_of(path: &Path) -> Option<Stamp> {
    let status = lstat(path).ok()?;
    (FileType::from_raw_mode(status.st_mode) == FileType::RegularFile).then(|| Stamp::of(&status))
}

fn read(path: &Path) -> Option<Snapshot> {
    Snapshot::take(&Located { written: path.to_owned(), real: path.to_owned() }, MOST_BYTES).ok()
}
