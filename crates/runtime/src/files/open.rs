//! Opening exactly what was judged, without ever waiting on it or waking a device.

use std::{
    fs::File,
    io,
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat, fstat, openat, statat},
    io::Errno,
};

use super::similar::similar_names;
use crate::{place::Located, tool::ErrorCode};

/// Why a file was not opened. Each message stands alone: what, why, what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenFailure {
    /// Nothing has this name.
    #[error("no file at {}{}", path.display(), hint(path, similar, *folder_exists))]
    NotFound {
        /// The path asked for.
        path: PathBuf,
        /// Names in the same folder that look alike, best first, at most three.
        similar: Vec<String>,
        /// Whether at least the folder is there.
        folder_exists: bool,
    },
    /// The name is a symbolic link whose target is missing.
    #[error("{} is a symbolic link to {}, which does not exist: use another path", path.display(), target.display())]
    DanglingLink {
        /// The path asked for.
        path: PathBuf,
        /// What the link says.
        target: PathBuf,
    },
    /// The path names a folder.
    #[error("{} is a directory, not a file: list it with Glob or with `ls` instead", path.display())]
    Directory {
        /// The path asked for.
        path: PathBuf,
    },
    /// The path names something whose content has no end or no lines.
    #[error(
        "{} is a {kind}, and only regular files can be opened: \
         use a shell command with a time limit if you need its data",
        path.display(),
    )]
    NotRegular {
        /// The path asked for.
        path: PathBuf,
        /// What it is, in words.
        kind: &'static str,
    },
    /// A link was put into the path since it was judged.
    #[error("{} leads somewhere else than when it was judged, so it was not opened: call again", path.display())]
    Moved {
        /// The path asked for.
        path: PathBuf,
    },
    /// Larger than the caller can take in.
    #[error("{} has {size} bytes, more than the {limit} that can be changed in one piece", path.display())]
    TooLarge {
        /// The path asked for.
        path: PathBuf,
        /// Its size.
        size: u64,
        /// The most that is possible.
        limit: u64,
    },
    /// The operating system refused.
    #[error("cannot open {}: {source}", path.display())]
    Io {
        /// The path asked for.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl OpenFailure {
    /// The stable name for models.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotFound { .. } | Self::DanglingLink { .. } => ErrorCode::NotFound,
            Self::Directory { .. } | Self::NotRegular { .. } => ErrorCode::Unsupported,
            Self::TooLarge { .. } => ErrorCode::TooLarge,
            Self::Moved { .. } | Self::Io { .. } => ErrorCode::Io,
        }
    }

    /// The system's refusal, with the path it was about.
    pub fn io(path: &Path, source: impl Into<io::Error>) -> Self {
        Self::Io { path: path.to_owned(), source: source.into() }
    }
}

/// Opens the regular file that was judged; anything else is its own failure.
///
/// The type is looked at before the open, because opening is not harmless everywhere: it starts a watchdog,
/// rewinds a tape and lets the writer of a FIFO go on into a broken pipe. It is looked at again on the
/// descriptor, because the name may mean something else by then; the non-blocking open makes sure that even
/// so nothing waits. No link is followed: [`Located::real`] is where links led when the path was judged.
pub fn open_regular(path: &Located) -> Result<(File, Stat), OpenFailure> {
    let failed = |errno| missing_or_refused(path, errno);
    check_regular(path, &statat(CWD, &path.real, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let descriptor = open_without_links(&path.real, flags).map_err(failed)?;
    let status = fstat(&descriptor).map_err(|errno| OpenFailure::io(&path.written, errno))?;
    check_regular(path, &status)?;
    Ok((File::from(descriptor), status))
}

/// Opens an absolute path in which nothing is a link.
pub fn open_without_links(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{ResolveFlags, openat2};
        let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        match openat2(CWD, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve) {
            // Old kernels do not know the call, and some sandboxes refuse what they do not know.
            Err(Errno::NOSYS | Errno::PERM) => {}
            other => return other,
        }
    }
    step_by_step(path, flags)
}

/// The same in more calls: each part of the path is opened beneath the one before.
fn step_by_step(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let step = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut at = openat(CWD, "/", step, Mode::empty())?;
    let mut names = path.components().filter(|part| matches!(part, Component::Normal(_))).peekable();
    while let Some(name) = names.next() {
        let how = match names.peek() {
            Some(_) => step,
            None => flags | OFlags::NOFOLLOW | OFlags::CLOEXEC,
        };
        at = openat(&at, name.as_os_str(), how, Mode::empty())?;
    }
    Ok(at)
}

fn check_regular(path: &Located, status: &Stat) -> Result<(), OpenFailure> {
    let path = path.written.clone();
    let kind = match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => return Err(OpenFailure::Directory { path }),
        FileType::Symlink => return Err(looped_or_moved(&path)),
        FileType::Fifo => "named pipe",
        FileType::Socket => "socket",
        FileType::CharacterDevice => "character device",
        FileType::BlockDevice => "block device",
        _ => "special file",
    };
    Err(OpenFailure::NotRegular { path, kind })
}

/// A link where none should be: a circle of them, which leads nowhere, or one that came later.
fn looped_or_moved(path: &Path) -> OpenFailure {
    match path.canonicalize() {
        Err(error) => OpenFailure::io(path, error),
        Ok(_) => OpenFailure::Moved { path: path.to_owned() },
    }
}

pub(super) fn missing_or_refused(path: &Located, errno: Errno) -> OpenFailure {
    let written = &path.written;
    match errno {
        Errno::LOOP => return looped_or_moved(written),
        Errno::NOENT => {}
        _ => return OpenFailure::io(written, errno),
    }
    match std::fs::read_link(written) {
        Ok(target) => OpenFailure::DanglingLink { path: written.clone(), target },
        Err(_) => OpenFailure::NotFound {
            path: written.clone(),
            similar: similar_names(written),
            folder_exists: written
                .parent()
                .is_none_or(|folder| folder.as_os_str().is_empty() || folder.is_dir()),
        },
    }
}

fn hint(path: &Path, similar: &[String], folder_exists: bool) -> String {
    if !similar.is_empty() {
        return format!(": similar names in the same folder are {}", similar.join(", "));
    }
    match path.parent() {
        Some(folder) if !folder_exists => {
            format!(": the folder {} does not exist either, check the path", folder.display())
        }
        _ => ": check the name, or look for it with Glob".to_owned(),
    }
}

#[cfg(test)]
#[path = "open_tests.rs"]
mod tests;
