//! Something to mount on where there is nothing.
//!
//! What must not be created needs a mount over its name, and a mount needs something below it. So a
//! marker is put there for as long as a cage needs it: an empty folder, or a socket without any
//! permission, because git and its kin pass over sockets. Every cage holds a shared lock on the folders
//! in which it has markers; who can have such a folder for itself at the end is the last one, and
//! removes them. What a killed process left is known by its looks, used, and removed by the next.

use std::{
    collections::BTreeMap,
    ffi::{OsStr, OsString},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, RawMode, Stat, Timespec, Timestamps, flock,
    mkdirat, mknodat, open, statat, unlinkat, utimensat,
};

/// The folders with markers, and the markers' names.
#[derive(Default)]
pub(super) struct Markers(BTreeMap<PathBuf, Folder>);

struct Folder {
    locked: OwnedFd,
    names: Vec<OsString>,
}

/// What stands at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Folder,
    Other,
    Link,
    Missing,
    /// An empty folder that a cage put there.
    FolderMarker,
    /// The same for a file.
    FileMarker,
}

const FOLDER: RawMode = 0o555;

impl Found {
    pub(super) fn at(path: &Path) -> Self {
        statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).map_or(Self::Missing, |stat| Self::of(&stat))
    }

    fn of(stat: &Stat) -> Self {
        let mode = stat.st_mode & 0o7777;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory if mode == FOLDER && stat.st_mtime == 0 => Self::FolderMarker,
            FileType::Directory => Self::Folder,
            FileType::Socket if mode == 0 => Self::FileMarker,
            FileType::Symlink => Self::Link,
            _ => Self::Other,
        }
    }
}

impl Markers {
    /// Keeps markers in this folder from being removed by others.
    pub(super) fn hold(&mut self, folder: &Path) {
        if self.0.contains_key(folder) {
            return;
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        if let Ok(locked) = open(folder, flags, Mode::empty())
            && flock(&locked, FlockOperation::LockShared).is_ok()
        {
            self.0.insert(folder.to_path_buf(), Folder { locked, names: Vec::new() });
        }
    }

    /// Puts a marker where nothing is, or takes over the one that is there. Gives what is there now:
    /// nothing, if this user cannot create anything there, and then no child of ours can.
    pub(super) fn place(&mut self, path: &Path, folder: bool) -> Found {
        let parts = path.parent().zip(path.file_name());
        let Some((parent, name)) = parts else { return Found::at(path) };
        let Some(at) = self.0.get_mut(parent) else { return Found::at(path) };
        if folder {
            let long_ago = Timespec { tv_sec: 0, tv_nsec: 0 };
            let times = Timestamps { last_access: long_ago, last_modification: long_ago };
            if mkdirat(&at.locked, name, Mode::from_raw_mode(FOLDER)).is_ok() {
                utimensat(&at.locked, name, &times, AtFlags::SYMLINK_NOFOLLOW).ok();
            }
        } else {
            mknodat(&at.locked, name, FileType::Socket, Mode::empty(), 0).ok();
        }
        let found = look(at, name);
        if matches!(found, Found::FolderMarker | Found::FileMarker) {
            at.names.push(name.to_os_string());
        }
        found
    }
}

fn look(at: &Folder, name: &OsStr) -> Found {
    statat(&at.locked, name, AtFlags::SYMLINK_NOFOLLOW).map_or(Found::Missing, |stat| Found::of(&stat))
}

impl Drop for Markers {
    fn drop(&mut self) {
        // From the innermost outwards.
        for at in self.0.values().rev() {
            // Who asks in vain has lost the shared lock too, so of two that ask at once one is the last.
            if flock(&at.locked, FlockOperation::NonBlockingLockExclusive).is_ok() {
                for name in &at.names {
                    // What has become something else since is not ours; a folder in use is not empty.
                    match look(at, name) {
                        Found::FolderMarker => unlinkat(&at.locked, name, AtFlags::REMOVEDIR).ok(),
                        Found::FileMarker => unlinkat(&at.locked, name, AtFlags::empty()).ok(),
                        _ => None,
                    };
                }
            }
            // A child that is being started may hold a copy of the descriptor; closing would not unlock.
            flock(&at.locked, FlockOperation::Unlock).ok();
        }
    }
}
