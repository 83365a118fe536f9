//! Opening a path for reading without ever waiting on it or waking a device.

use std::fs::File;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, Stat, fstat, open, stat};
use rustix::io::Errno;

use super::failure::ReadFailure;
use super::similar::similar_names;

/// Opens a regular file and returns it with its size; anything else is its own failure.
///
/// The type is looked at before the open, because opening is not harmless everywhere: it starts a watchdog,
/// rewinds a tape and lets the writer of a FIFO go on into a broken pipe. It is looked at again on the
/// descriptor, because the name may mean something else by then; the non-blocking open makes sure that even
/// so nothing waits.
pub(super) fn open_regular(path: &Path) -> Result<(File, u64), ReadFailure> {
    let failed = |errno| missing_or_refused(path, errno);
    check_regular(path, &stat(path).map_err(failed)?)?;
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let descriptor = open(path, flags, Mode::empty()).map_err(failed)?;
    let status = fstat(&descriptor).map_err(|errno| ReadFailure::io(path, errno))?;
    check_regular(path, &status)?;
    Ok((File::from(descriptor), u64::try_from(status.st_size).unwrap_or(0)))
}

fn check_regular(path: &Path, status: &Stat) -> Result<(), ReadFailure> {
    let kind = match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => return Ok(()),
        FileType::Directory => return Err(ReadFailure::Directory { path: path.to_owned() }),
        FileType::Fifo => "named pipe",
        FileType::Socket => "socket",
        FileType::CharacterDevice => "character device",
        FileType::BlockDevice => "block device",
        _ => "special file",
    };
    Err(ReadFailure::NotRegular { path: path.to_owned(), kind })
}

fn missing_or_refused(path: &Path, errno: Errno) -> ReadFailure {
    if errno != Errno::NOENT {
        return ReadFailure::io(path, errno);
    }
    match std::fs::read_link(path) {
        Ok(target) => ReadFailure::DanglingLink { path: path.to_owned(), target },
        Err(_) => ReadFailure::NotFound {
            path: path.to_owned(),
            similar: similar_names(path),
            folder_exists: path
                .parent()
                .is_none_or(|folder| folder.as_os_str().is_empty() || folder.is_dir()),
        },
    }
}

#[cfg(test)]
mod tests;
