//! All files below a folder, whatever ignore files say of them. Glob needs the time of each file it finds, and
//! asking for it by a name within the open folder costs a fraction of what it costs by a whole path.

use std::{
    ffi::OsStr,
    mem::MaybeUninit,
    os::{fd::AsFd, unix::ffi::OsStrExt as _},
    path::{Path, PathBuf},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, SystemTime},
};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawDir, RawDirEntry, open, statat};

use super::{Candidate, Collection, Share, is_version_control, threads};

/// Entries of a folder that are asked for at once.
const CHUNK: usize = 32 * 1024;

/// Folders that wait for a thread.
#[derive(Default)]
struct Waiting {
    folders: Vec<(PathBuf, usize)>,
    /// Threads that are in a folder, and may find more.
    busy: usize,
    /// Threads that wait for one of those.
    sleepers: usize,
}

/// A walk below one folder.
pub(super) struct Folders<'a> {
    all: &'a Collection<'a>,
    deepest: usize,
    waiting: Mutex<Waiting>,
    moved: Condvar,
}

/// Hands every file to the collection, down to a depth.
pub(super) fn walk(all: &Collection<'_>, root: &Path, deepest: Option<usize>) {
    let waiting = Waiting { folders: vec![(root.to_owned(), 1)], ..Waiting::default() };
    let deepest = deepest.unwrap_or(usize::MAX);
    let folders = Folders { all, deepest, waiting: Mutex::new(waiting), moved: Condvar::new() };
    std::thread::scope(|scope| {
        for _ in 1..threads() {
            scope.spawn(|| folders.work());
        }
        folders.work();
    });
}

impl Folders<'_> {
    fn work(&self) {
        let mut share = Share::new(self.all);
        let mut buffer = vec![MaybeUninit::uninit(); CHUNK];
        while let Some((folder, depth)) = self.next() {
            let mut below = Vec::new();
            if !share.is_halted() && read(&mut share, &mut buffer, &folder, depth, &mut below).is_err() {
                share.found.unreadable += 1;
            }
            let mut waiting = self.lock();
            waiting.busy -= 1;
            if depth < self.deepest && share.found.halt.is_none() {
                waiting.folders.extend(below.into_iter().map(|folder| (folder, depth + 1)));
            }
            let wake = waiting.sleepers > 0 && (waiting.busy == 0 || waiting.folders.len() > 1);
            drop(waiting);
            if wake {
                self.moved.notify_all();
            }
        }
    }

    fn next(&self) -> Option<(PathBuf, usize)> {
        let mut waiting = self.lock();
        loop {
            if let Some(folder) = waiting.folders.pop() {
                waiting.busy += 1;
                return Some(folder);
            }
            if waiting.busy == 0 {
                return None;
            }
            waiting.sleepers += 1;
            waiting = self.moved.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            waiting.sleepers -= 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks at the entries of one folder; folders among them go to `below`.
fn read(
    share: &mut Share<'_>,
    buffer: &mut [MaybeUninit<u8>],
    folder: &Path,
    depth: usize,
    below: &mut Vec<PathBuf>,
) -> rustix::io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open_folder = open(folder, flags, Mode::empty())?;
    let mut entries = RawDir::new(&open_folder, buffer);
    let mut bytes = folder.as_os_str().as_bytes().to_owned();
    if !bytes.ends_with(b"/") {
        bytes.push(b'/');
    }
    let start = bytes.len();
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        let ends = is_version_control(Some(name));
        if name == "." || name == ".." || ends && !share.all.folders {
            continue;
        }
        if share.is_halted() {
            return Ok(());
        }
        bytes.truncate(start);
        bytes.extend_from_slice(name.as_bytes());
        let path = Path::new(OsStr::from_bytes(&bytes));
        let kind = kind(&open_folder, &entry);
        if share.all.folders && kind == FileType::Directory {
            (share.all.wanted)(Candidate { path, link: false, folder: true });
        }
        match kind {
            FileType::Directory if ends => {}
            FileType::Directory => {
                if depth == 1 {
                    share.found.begun.push(path.to_owned());
                }
                below.push(path.to_owned());
            }
            kind @ (FileType::RegularFile | FileType::Symlink) => {
                let link = kind == FileType::Symlink;
                if (share.all.wanted)(Candidate { path, link, folder: false })
                    && let Some(changed) = changed(&open_folder, &entry, link)
                {
                    share.add(changed, path.to_owned());
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// What an entry is. Some file systems only say it when they are asked again.
fn kind(folder: impl AsFd, entry: &RawDirEntry<'_>) -> FileType {
    match entry.file_type() {
        FileType::Unknown => statat(folder, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW)
            .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
        known => known,
    }
}

/// When a file, or the file a link leads to, was last changed; nothing for what is no file.
fn changed(folder: impl AsFd, entry: &RawDirEntry<'_>, link: bool) -> Option<SystemTime> {
    let follow = if link { AtFlags::empty() } else { AtFlags::SYMLINK_NOFOLLOW };
    let stat = statat(folder, entry.file_name(), follow).ok()?;
    let seconds = u64::try_from(stat.st_mtime).unwrap_or(0);
    let changed = Duration::new(seconds, u32::try_from(stat.st_mtime_nsec).unwrap_or(0));
    (FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then(|| SystemTime::UNIX_EPOCH + changed)
}
