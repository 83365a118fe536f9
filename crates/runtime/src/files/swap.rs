//! Replacing a file only if it still is what was looked at, whole or not at all.
//!
//! New content is written beside the old under a name of its own and synced. Then nobody may open the old
//! file for writing for a moment ([`Lease`]), it is compared with what had been looked at, and the two names
//! are exchanged in one step. Whoever came in between shows: a program that waits to write to the old file,
//! or another file that stood under the name at the exchange. Then the names are exchanged back.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
    sync::OnceLock,
    time::Duration,
};

use gripper_process::{Lease, NoLease};
use rustix::{
    fs::{
        Access, AtFlags, Gid, Mode, OFlags, RenameFlags, Uid, accessat, chmodat, fchmod, fchown, fgetxattr,
        flistxattr, fsetxattr, fstat, fsync, mkdirat, openat, renameat, renameat_with, statat, unlinkat,
    },
    io::Errno,
};

use super::{
    failure::WriteFailure,
    ledger::{ContentHash, content_hash},
    open::{OpenFailure, open_regular, open_without_links},
    stamp::Stamp,
};
use crate::place::Located;

/// How long a program that is writing to the file has to finish, and how often that is looked at.
const PATIENCE: (u32, Duration) = (60, Duration::from_millis(5));
/// How often something may be put in the way before it is given up.
const TRIES: usize = 100;

/// A file as it was when it was looked at.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// Where it is.
    pub path: Located,
    /// All of it.
    pub bytes: Vec<u8>,
    /// What the system says of it.
    pub stamp: Stamp,
    hash: OnceLock<ContentHash>,
}

impl Snapshot {
    /// A file that is known without having been read.
    pub(super) fn new(path: Located, bytes: Vec<u8>, stamp: Stamp) -> Self {
        Self { path, bytes, stamp, hash: OnceLock::new() }
    }

    /// The hash of its content, worked out when it is first asked for.
    pub fn hash(&self) -> ContentHash {
        *self.hash.get_or_init(|| content_hash(&self.bytes))
    }

    /// Reads a whole file of at most `limit` bytes.
    pub fn take(path: &Located, limit: u64) -> Result<Self, OpenFailure> {
        let (file, status) = open_regular(path)?;
        let size = u64::try_from(status.st_size).unwrap_or(0);
        let too_large = |size| OpenFailure::TooLarge { path: path.written.clone(), size, limit };
        if size > limit {
            return Err(too_large(size));
        }
        let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
        // It may grow while it is read.
        let taken = file.take(limit + 1).read_to_end(&mut bytes);
        taken.map_err(|error| OpenFailure::io(&path.written, error))?;
        match bytes.len() as u64 {
            size if size > limit => Err(too_large(size)),
            _ => Ok(Self::new(path.clone(), bytes, Stamp::of(&status))),
        }
    }
}

/// Makes changes to files. Drafts are announced in a folder, so that those of a process that was killed
/// can be cleared away.
#[derive(Debug, Default)]
pub(super) struct Swap {
    announcements: Option<PathBuf>,
}

impl Swap {
    /// One that announces its drafts in `folder`.
    pub(super) fn announced_in(folder: PathBuf) -> Self {
        Self { announcements: Some(folder) }
    }

    /// Puts `new` in the place of a file that still is what it was.
    pub(super) fn replace(&self, old: &Snapshot, new: &[u8]) -> Result<Stamp, WriteFailure> {
        let (folder, name) = Folder::of(&old.path)?;
        folder.must_be_writable(name)?;
        // Nothing is written for a file that is known to be another; how it stands in the end is seen later.
        let (file, now) = folder.open(name)?;
        if !now.unchanged_since(&old.stamp) {
            folder.must_hold(file, &now, old)?;
        }
        let mut draft = self.draft(&folder, new, Some(old))?;
        let (file, _) = folder.open(name)?;
        let lease = leased(&file).map_err(|()| WriteFailure::Busy { path: old.path.written.clone() })?;
        folder.still(&file, name, old)?;
        match renameat_with(&folder.fd, &*draft.name, &folder.fd, name, RenameFlags::EXCHANGE) {
            Ok(()) => {}
            Err(Errno::NOENT) => return Err(WriteFailure::Gone { path: old.path.written.clone() }),
            // Some file systems cannot exchange; a file put there at this very moment is overwritten.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                renameat(&folder.fd, &*draft.name, &folder.fd, name).map_err(|errno| folder.failed(errno))?;
                draft.is_gone();
                return folder.settled(name, draft.stamp);
            }
            Err(errno) => return Err(folder.failed(errno)),
        }
        // While this takes its time, who was just opening the old file gets as far as to wait for it.
        let stamp = folder.settled(name, draft.stamp)?;
        let taken = folder.inode(&draft.name)?;
        if taken == inode_of(&file, &folder)? && !lease.as_ref().is_some_and(Lease::is_wanted) {
            draft.discard();
            return Ok(stamp);
        }
        folder.put_back(&mut draft, name)?;
        Err(WriteFailure::Changed { path: old.path.written.clone() })
    }

    /// Makes a file where there is none, and the folders on the way.
    pub(super) fn create(
        &self,
        path: &Located,
        new: &[u8],
        mode: Option<u32>,
    ) -> Result<Stamp, WriteFailure> {
        let made = make_folders(path)?;
        let attempt = || {
            let (folder, name) = Folder::of(path)?;
            let mut draft = self.draft(&folder, new, None)?;
            if let Some(mode) = mode {
                chmodat(&folder.fd, &*draft.name, Mode::from_raw_mode(mode), AtFlags::empty())
                    .map_err(|errno| folder.failed(errno))?;
            }
            let moved = renameat_with(&folder.fd, &*draft.name, &folder.fd, name, RenameFlags::NOREPLACE);
            let moved = match moved {
                Err(Errno::INVAL | Errno::NOSYS) => {
                    let linked =
                        rustix::fs::linkat(&folder.fd, &*draft.name, &folder.fd, name, AtFlags::empty());
                    linked.map(|()| draft.discard())
                }
                moved => moved.map(|()| draft.is_gone()),
            };
            match moved {
                Ok(()) => folder.settled(name, draft.stamp),
                Err(Errno::EXIST) => Err(WriteFailure::Exists { path: path.written.clone() }),
                Err(errno) => Err(folder.failed(errno)),
            }
        };
        attempt().inspect_err(|_| remove_folders(&made))
    }

    /// Removes a file that still is what it was.
    pub(super) fn remove(&self, old: &Snapshot) -> Result<(), WriteFailure> {
        let (folder, name) = Folder::of(&old.path)?;
        folder.must_be_writable(name)?;
        let (file, _) = folder.open(name)?;
        let lease = leased(&file).map_err(|()| WriteFailure::Busy { path: old.path.written.clone() })?;
        folder.still(&file, name, old)?;
        let mut draft = self.announce(&folder);
        renameat(&folder.fd, name, &folder.fd, &*draft.name).map_err(|errno| folder.failed(errno))?;
        fsync(&folder.fd).map_err(|errno| folder.failed(errno))?;
        let taken = folder.inode(&draft.name)?;
        if taken == inode_of(&file, &folder)? && !lease.as_ref().is_some_and(Lease::is_wanted) {
            draft.discard();
            return Ok(());
        }
        draft.is_gone();
        renameat_with(&folder.fd, &*draft.name, &folder.fd, name, RenameFlags::NOREPLACE)
            .map_err(|_| WriteFailure::Displaced { path: folder.path.join(&draft.name) })?;
        Err(WriteFailure::Changed { path: old.path.written.clone() })
    }

    fn announce<'f>(&self, folder: &'f Folder<'_>) -> Draft<'f> {
        let id = uuid::Uuid::now_v7().simple().to_string();
        let name = format!(".gripper-{id}.tmp");
        let announcement = self.announcements.as_ref().map(|folder| folder.join(&id));
        if let Some(note) = &announcement {
            let path = folder.path.join(&name);
            // Without a note a killed process may leave its draft behind, which is all that is lost.
            let _ = fs::write(
                note,
                [std::process::id().to_string().as_bytes(), b"\n", path.as_os_str().as_bytes()].concat(),
            );
        }
        Draft { folder: &folder.fd, name, announcement, stamp: Stamp::default(), stands: true }
    }

    /// Writes the new content beside the old, with the same mode, owner and extended attributes.
    fn draft<'f>(
        &self,
        folder: &'f Folder<'_>,
        bytes: &[u8],
        like: Option<&Snapshot>,
    ) -> Result<Draft<'f>, WriteFailure> {
        let mut draft = self.announce(folder);
        let failed = |errno| folder.failed(errno);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // What is kept private stays private while it is written.
        let mode = if like.is_some() { Mode::RUSR | Mode::WUSR } else { Mode::from_raw_mode(0o666) };
        let descriptor = openat(&folder.fd, &*draft.name, flags, mode).map_err(failed)?;
        let mut file = File::from(descriptor);
        file.write_all(bytes).map_err(|error| folder.failed_io(error))?;
        if let Some(old) = like {
            dress(&file, old, folder)?;
        }
        file.sync_all().map_err(|error| folder.failed_io(error))?;
        draft.stamp = Stamp::of(&fstat(&file).map_err(failed)?);
        Ok(draft)
    }

    /// Clears away the drafts of processes that are gone. What such a process had in hand may be
    /// somebody's newest content, so `keep` gets it first.
    pub(super) fn tidy(&self, keep: impl Fn(&[u8]) -> std::io::Result<()>) {
        let Some(notes) = self.announcements.as_ref().and_then(|folder| fs::read_dir(folder).ok()) else {
            return;
        };
        for note in notes.flatten().map(|entry| entry.path()) {
            let Ok(content) = fs::read(&note) else { continue };
            let Some(end) = content.iter().position(|byte| *byte == b'\n') else { continue };
            let (pid, path) = (&content[..end], Path::new(OsStr::from_bytes(&content[end + 1..])));
            let alive = std::str::from_utf8(pid).is_ok_and(|pid| Path::new("/proc").join(pid).exists());
            let ours = path.file_name().is_some_and(|name| name.as_bytes().starts_with(b".gripper-"));
            if alive || !ours {
                continue;
            }
            match fs::read(path).and_then(|bytes| keep(&bytes)).and_then(|()| fs::remove_file(path)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {}
                _ => drop(fs::remove_file(&note)),
            }
        }
    }
}

/// Gives a draft the mode, owner and extended attributes of the file it will replace.
fn dress(file: &File, old: &Snapshot, folder: &Folder<'_>) -> Result<(), WriteFailure> {
    let failed = |errno| folder.failed(errno);
    let mine = fstat(file).map_err(failed)?;
    let (uid, gid) = old.stamp.owner();
    if (mine.st_uid, mine.st_gid) != (uid, gid) {
        let changed = fchown(file, Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        changed.map_err(|_| WriteFailure::Owner { path: old.path.written.clone() })?;
    }
    // Attributes that cannot be copied are those the system keeps for itself.
    if let Ok((source, _)) = open_regular(&old.path) {
        copy_attributes(&source, file);
    }
    fchmod(file, Mode::from_raw_mode(old.stamp.permissions())).map_err(failed)
}

fn copy_attributes(from: &File, to: &File) {
    let mut names = vec![0; 64 * 1024];
    let Ok(length) = flistxattr(from, &mut names) else { return };
    let mut value = vec![0; 64 * 1024];
    for name in names[..length].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let name = OsStr::from_bytes(name);
        if let Ok(length) = fgetxattr(from, name, &mut value) {
            let _ = fsetxattr(to, name, &value[..length], rustix::fs::XattrFlags::empty());
        }
    }
}

/// Makes the folders above a path that are missing.
fn make_folders(path: &Located) -> Result<Vec<PathBuf>, WriteFailure> {
    let missing = missing_folders(&path.real);
    for (at, folder) in missing.iter().enumerate() {
        let located = Located { written: path.written.clone(), real: folder.clone() };
        let made = Folder::of(&located).and_then(|(parent, name)| {
            match mkdirat(&parent.fd, name, Mode::from_raw_mode(0o777)) {
                Err(errno) if errno != Errno::EXIST => Err(parent.failed(errno)),
                _ => Ok(()),
            }
        });
        if let Err(failure) = made {
            remove_folders(&missing[..at]);
            return Err(failure);
        }
    }
    Ok(missing)
}

/// The folders above a path that are not there, the outermost first.
pub(super) fn missing_folders(path: &Path) -> Vec<PathBuf> {
    let missing = path.ancestors().skip(1).take_while(|folder| fs::symlink_metadata(folder).is_err());
    let mut missing: Vec<PathBuf> = missing.map(Path::to_owned).collect();
    missing.reverse();
    missing
}

/// Removes folders that are empty, the deepest first.
pub(super) fn remove_folders(folders: &[PathBuf]) {
    for folder in folders.iter().rev() {
        fs::remove_dir(folder).ok();
    }
}

/// An open folder, through which everything in it is reached.
struct Folder<'a> {
    fd: OwnedFd,
    path: &'a Path,
    file: &'a Located,
}

impl<'a> Folder<'a> {
    /// The folder of a path, and the name in it.
    fn of(file: &'a Located) -> Result<(Self, &'a OsStr), WriteFailure> {
        let directory = || WriteFailure::Directory { path: file.written.clone() };
        let name = file.real.file_name().ok_or_else(directory)?;
        let path = file.real.parent().ok_or_else(directory)?;
        let fd = open_without_links(path, OFlags::RDONLY | OFlags::DIRECTORY)
            .map_err(|errno| WriteFailure::of(errno, file, path))?;
        Ok((Self { fd, path, file }, name))
    }

    fn failed(&self, errno: Errno) -> WriteFailure {
        WriteFailure::of(errno, self.file, self.path)
    }

    fn failed_io(&self, error: std::io::Error) -> WriteFailure {
        let errno = error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error);
        self.failed(errno)
    }

    /// A file that may not be written is not replaced either, although the folder would permit it.
    fn must_be_writable(&self, name: &OsStr) -> Result<(), WriteFailure> {
        match accessat(&self.fd, name, Access::WRITE_OK, AtFlags::EACCESS) {
            Err(Errno::ACCESS | Errno::PERM) => {
                Err(WriteFailure::ReadOnly { path: self.file.written.clone() })
            }
            Err(Errno::NOENT) => Err(WriteFailure::Gone { path: self.file.written.clone() }),
            Err(errno) => Err(self.failed(errno)),
            Ok(()) => Ok(()),
        }
    }

    /// Opens what stands under a name, and says what it is.
    fn open(&self, name: &OsStr) -> Result<(File, Stamp), WriteFailure> {
        let path = || self.file.written.clone();
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = match openat(&self.fd, name, flags, Mode::empty()) {
            Ok(descriptor) => File::from(descriptor),
            Err(Errno::NOENT) => return Err(WriteFailure::Gone { path: path() }),
            Err(Errno::LOOP) => return Err(WriteFailure::Changed { path: path() }),
            Err(errno) => return Err(self.failed(errno)),
        };
        let status = fstat(&file).map_err(|errno| self.failed(errno))?;
        Ok((file, Stamp::of(&status)))
    }

    /// A file must be what was looked at.
    fn must_hold(&self, mut file: File, now: &Stamp, old: &Snapshot) -> Result<(), WriteFailure> {
        let same = now.same_kind(&old.stamp)
            && same_bytes(&mut file, &old.bytes).map_err(|error| self.failed_io(error))?;
        if same { Ok(()) } else { Err(WriteFailure::Changed { path: self.file.written.clone() }) }
    }

    /// Now that nobody can write: what stands under the name is this file, with the content that was looked at.
    fn still(&self, file: &File, name: &OsStr, old: &Snapshot) -> Result<(), WriteFailure> {
        let (now, stamp) = self.open(name)?;
        if inode_of(&now, self)? != inode_of(file, self)? {
            return Err(WriteFailure::Changed { path: self.file.written.clone() });
        }
        self.must_hold(now, &stamp, old)
    }

    fn inode(&self, name: impl rustix::path::Arg) -> Result<u64, WriteFailure> {
        let status = statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|errno| self.failed(errno))?;
        Ok(status.st_ino)
    }

    /// Undoes an exchange. Whatever somebody has put there meanwhile is newer and stays.
    fn put_back(&self, draft: &mut Draft<'_>, name: &OsStr) -> Result<(), WriteFailure> {
        let mut there = draft.stamp.inode();
        for _ in 0..TRIES {
            let put = self.inode(&*draft.name)?;
            match renameat_with(&self.fd, &*draft.name, &self.fd, name, RenameFlags::EXCHANGE) {
                // Removed meanwhile: that is the newest state.
                Err(Errno::NOENT) => return Ok(()),
                other => other.map_err(|errno| self.failed(errno))?,
            }
            if self.inode(&*draft.name)? == there {
                return self.must_be_untouched(draft);
            }
            there = put;
        }
        draft.is_gone();
        Err(WriteFailure::Displaced { path: self.path.join(&draft.name) })
    }

    /// A new content that was taken back may have been written to while it stood there.
    fn must_be_untouched(&self, draft: &mut Draft<'_>) -> Result<(), WriteFailure> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let taken =
            openat(&self.fd, &*draft.name, flags, Mode::empty()).map_err(|errno| self.failed(errno))?;
        let taken = File::from(taken);
        let free = leased(&taken).is_ok();
        let stamp = Stamp::of(&fstat(&taken).map_err(|errno| self.failed(errno))?);
        if free && (stamp.inode() != draft.stamp.inode() || stamp.unwritten_since(&draft.stamp)) {
            return Ok(());
        }
        draft.is_gone();
        Err(WriteFailure::Displaced { path: self.path.join(&draft.name) })
    }

    /// The new name reaches the disk. Gives the stamp of what has it, unless somebody was quicker.
    fn settled(&self, name: &OsStr, draft: Stamp) -> Result<Stamp, WriteFailure> {
        fsync(&self.fd).map_err(|errno| self.failed(errno))?;
        let now = statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW).map(|status| Stamp::of(&status));
        Ok(now.ok().filter(|now| now.unwritten_since(&draft)).unwrap_or(draft))
    }
}

/// Keeps others from writing to a file. Waits a little for who is writing just now; where there are no
/// leases it goes without.
fn leased(file: &File) -> Result<Option<Lease<'_>>, ()> {
    for _ in 0..PATIENCE.0 {
        match Lease::take(file) {
            Ok(lease) => return Ok(Some(lease)),
            Err(NoLease::Unsupported) => return Ok(None),
            Err(NoLease::InUse) => std::thread::sleep(PATIENCE.1),
        }
    }
    Err(())
}

fn inode_of(file: &File, folder: &Folder<'_>) -> Result<u64, WriteFailure> {
    fstat(file).map(|status| status.st_ino).map_err(|errno| folder.failed(errno))
}

fn same_bytes(file: &mut File, bytes: &[u8]) -> std::io::Result<bool> {
    let mut buffer = vec![0; 256 * 1024];
    let mut rest = bytes;
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok(rest.is_empty());
        }
        match rest.strip_prefix(&buffer[..count]) {
            Some(left) => rest = left,
            None => return Ok(false),
        }
    }
}

/// A name of our own in the folder; gone when it is dropped, unless it has moved.
struct Draft<'f> {
    folder: &'f OwnedFd,
    name: String,
    announcement: Option<PathBuf>,
    stamp: Stamp,
    stands: bool,
}

impl Draft<'_> {
    /// What had this name has another now.
    fn is_gone(&mut self) {
        self.stands = false;
    }

    /// A draft that stays is cleared away by the next session.
    fn discard(&mut self) {
        self.stands = false;
        unlinkat(self.folder.as_fd(), &*self.name, AtFlags::empty()).ok();
    }
}

impl Drop for Draft<'_> {
    fn drop(&mut self) {
        if self.stands {
            self.discard();
        }
        if let Some(note) = &self.announcement {
            fs::remove_file(note).ok();
        }
    }
}

#[cfg(test)]
#[path = "swap_tests.rs"]
mod tests;
