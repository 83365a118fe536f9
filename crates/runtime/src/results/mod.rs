//! Results too large for the model: stored whole in a file, shown as a window that says what is missing.
//!
//! [`ResultsStore::bound`] is called for each result, [`share`] divides a turn's budget among its fresh
//! results, and [`ResultsStore::sweep`] keeps the stored files of all sessions within age and quota.

mod window;

#[cfg(test)]
mod tests;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, SystemTime};

pub use window::NOTE_CHARS;

/// Fewest characters [`share`] leaves of a result that it cuts; less would tell the model nothing.
pub const MIN_WINDOW: usize = 1_000;

/// Longest part of a stored file's name that is taken from the call id.
const NAME_CHARS: usize = 80;

/// How often another file name is tried when the wanted one is taken.
const NAME_TRIES: u32 = 100;

/// Which part of an oversized text the model sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// The beginning: listings and searches, where the best comes first.
    KeepStart,
    /// The end: logs, where the newest comes last.
    KeepEnd,
    /// Half of the window from each end: commands, which begin with context and end with the outcome.
    KeepBoth,
}

/// An oversized text after bounding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bounded {
    /// The window: kept parts and, in one line, a note about the rest.
    pub text: String,
    /// Where the whole text is, unless it could not be stored.
    pub stored: Option<PathBuf>,
    /// Lines of the whole text that the window does not show completely, 1-based and inclusive.
    pub omitted_lines: Option<(u64, u64)>,
    /// Length of the whole text.
    pub total_chars: usize,
}

/// How much may be stored, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreLimits {
    /// Bytes of stored results, of all sessions together.
    pub quota_bytes: u64,
    /// Age at which a stored result is removed.
    pub max_age: Duration,
    /// Bytes of one stored result; a larger one is not stored.
    pub max_file_bytes: u64,
}

impl Default for StoreLimits {
    fn default() -> Self {
        Self {
            quota_bytes: 512 * 1024 * 1024,
            max_age: Duration::from_secs(7 * 24 * 60 * 60),
            max_file_bytes: 64 * 1024 * 1024,
        }
    }
}

/// What a sweep did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Files removed.
    pub removed_files: u64,
    /// Bytes those files held.
    pub removed_bytes: u64,
    /// Files left in place.
    pub kept_files: u64,
    /// Bytes those files hold.
    pub kept_bytes: u64,
    /// Files or folders that could not be read or removed.
    pub failed: u64,
}

/// The results folder of one session.
#[derive(Debug)]
pub struct ResultsStore {
    folder: PathBuf,
    limits: StoreLimits,
    /// Bytes in the folder; unknown until the first store, because most sessions never store anything.
    used: Mutex<Option<u64>>,
}

impl ResultsStore {
    /// A store in `folder`, which is created when the first result is stored. With an empty path nothing is ever
    /// stored and results are only shortened.
    #[must_use]
    pub fn new(folder: PathBuf, limits: StoreLimits) -> Self {
        Self { folder, limits, used: Mutex::new(None) }
    }

    /// Bounds `text` to `max_chars` characters plus a note, storing the whole text in a file named after
    /// `name`. `None` when the text fits as it is.
    ///
    /// The note is not counted: it has at most [`NOTE_CHARS`] characters and the path. A text that cannot be
    /// stored is cut all the same, and the note says why there is no file.
    #[must_use]
    pub fn bound(&self, name: &str, text: &str, max_chars: usize, strategy: Strategy) -> Option<Bounded> {
        // A character has at least one byte, so most results need no counting.
        if text.len() <= max_chars {
            return None;
        }
        let total_chars = text.chars().count();
        if total_chars <= max_chars {
            return None;
        }
        let cut = window::cut(text, max_chars, strategy);
        let stored = self.store(name, text);
        let outcome = match &stored {
            Ok(path) => window::Stored::At(path),
            Err(why) => window::Stored::Not(why),
        };
        let text = window::render(text, &cut, &outcome);
        Some(Bounded { text, stored: stored.ok(), omitted_lines: Some(cut.omitted), total_chars })
    }

    /// Removes stored results under `root`, which holds one folder per session, each with a folder `results`:
    /// first those past their age, then the oldest until the rest fits the quota. Links are never followed.
    #[must_use]
    pub fn sweep(root: &Path, limits: &StoreLimits, now: SystemTime) -> SweepReport {
        let mut report = SweepReport::default();
        let mut files = stored_files(root, &mut report);
        files.sort_by(|a, b| (a.modified, &a.path).cmp(&(b.modified, &b.path)));
        let mut total: u64 = files.iter().map(|file| file.bytes).sum();
        for file in files {
            // A time in the future counts as new: a wrong clock must not delete.
            let age = now.duration_since(file.modified).unwrap_or_default();
            let must_go = age > limits.max_age || total > limits.quota_bytes;
            if must_go && fs::remove_file(&file.path).is_ok() {
                total -= file.bytes;
                report.removed_files += 1;
                report.removed_bytes += file.bytes;
            } else {
                report.failed += u64::from(must_go);
                report.kept_files += 1;
                report.kept_bytes += file.bytes;
            }
        }
        report
    }

    /// Stores the text, or says in a few words why not. The words go to the model.
    fn store(&self, name: &str, text: &str) -> Result<PathBuf, String> {
        if self.folder.as_os_str().is_empty() {
            // An empty path would mean the current folder.
            return Err("there is no results folder".to_owned());
        }
        let bytes = text.len() as u64;
        if bytes > self.limits.max_file_bytes {
            return Err(format!("over the limit of {} bytes for one file", self.limits.max_file_bytes));
        }
        // The count stays right even if a thread panicked while it held the lock.
        let mut used = self.used.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let before = used.unwrap_or_else(|| folder_bytes(&self.folder));
        if before.saturating_add(bytes) > self.limits.quota_bytes {
            return Err(format!("over the quota of {} bytes for stored results", self.limits.quota_bytes));
        }
        let path = self.write(name, text).map_err(|error| describe(&error))?;
        *used = Some(before + bytes);
        Ok(path)
    }

    fn write(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        private_folder(&self.folder)?;
        let (mut file, path) = create_new(&self.folder, &safe_name(name))?;
        if let Err(error) = file.write_all(text.as_bytes()) {
            // Half a text under the name of the whole one would mislead; a failure to remove it changes nothing.
            let _ = fs::remove_file(&path);
            return Err(error);
        }
        Ok(path)
    }
}

/// Divides what is left of `budget` after `already` characters among fresh results of the given sizes.
///
/// The largest are cut first, all down to one level, so that a small result is never cut while a larger one
/// stays larger. Nothing is cut below [`MIN_WINDOW`]; only then can the sum exceed the budget.
#[must_use]
pub fn share(budget: usize, already: usize, fresh: &[usize]) -> Vec<usize> {
    let level = level(budget.saturating_sub(already), fresh).max(MIN_WINDOW);
    fresh.iter().map(|size| *size.min(&level)).collect()
}

/// The highest level at which sizes cut to it fit into `room` together.
fn level(room: usize, sizes: &[usize]) -> usize {
    let mut ascending = sizes.to_vec();
    ascending.sort_unstable();
    let mut room = room;
    for (position, size) in ascending.iter().enumerate() {
        let each = room / (ascending.len() - position);
        if *size > each {
            return each;
        }
        room -= size;
    }
    usize::MAX
}

/// Turns a call id, which comes from a model, into a file name without separators, dots in front or control
/// characters.
fn safe_name(name: &str) -> String {
    let kept: String = name
        .chars()
        .take(NAME_CHARS)
        .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '_' })
        .collect();
    let kept = kept.trim_start_matches(['.', '-']);
    if kept.is_empty() { "result".to_owned() } else { kept.to_owned() }
}

/// Creates a file that did not exist, so that neither a link nor an earlier result is written through.
fn create_new(folder: &Path, name: &str) -> io::Result<(File, PathBuf)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    for number in 1..=NAME_TRIES {
        let file_name = if number == 1 { format!("{name}.txt") } else { format!("{name}-{number}.txt") };
        let path = folder.join(file_name);
        match options.open(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, "every name for the file is taken"))
}

fn private_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

/// The reason without the operating system's number, in one line.
fn describe(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "the disk is full".to_owned(),
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "the results folder is not writable".to_owned()
        }
        kind => kind.to_string(),
    }
}

struct StoredFile {
    path: PathBuf,
    bytes: u64,
    modified: SystemTime,
}

/// All plain files in `root/*/results`.
fn stored_files(root: &Path, report: &mut SweepReport) -> Vec<StoredFile> {
    let mut found = Vec::new();
    for session in entries(root, report).into_iter().filter(|path| is_real_folder(path)) {
        let results = session.join("results");
        if !is_real_folder(&results) {
            continue;
        }
        for path in entries(&results, report) {
            match fs::symlink_metadata(&path) {
                Ok(meta) if meta.is_file() => found.push(StoredFile {
                    bytes: meta.len(),
                    // Without a time a file counts as oldest, else it could never be removed.
                    modified: meta.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                    path,
                }),
                Ok(_) => {}
                Err(_) => report.failed += 1,
            }
        }
    }
    found
}

fn entries(folder: &Path, report: &mut SweepReport) -> Vec<PathBuf> {
    match fs::read_dir(folder) {
        Ok(read) => read.flatten().map(|entry| entry.path()).collect(),
        // Nothing was stored yet.
        Err(error) if error.kind() == ErrorKind::NotFound => Vec::new(),
        Err(_) => {
            report.failed += 1;
            Vec::new()
        }
    }
}

fn is_real_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}

fn folder_bytes(folder: &Path) -> u64 {
    let Ok(read) = fs::read_dir(folder) else { return 0 };
    read.flatten().filter_map(|entry| entry.metadata().ok()).map(|meta| meta.len()).sum()
}
