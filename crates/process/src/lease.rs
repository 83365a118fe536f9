//! Keeping others from writing to a file for a moment.

use std::{fs::File, io, os::fd::AsRawFd};

/// A read lease: while it is held nobody has the file open for writing, and who wants to open it so waits
/// until it is given back. Held for milliseconds; the system takes it away from who keeps it for long.
#[derive(Debug)]
pub struct Lease<'f> {
    file: &'f File,
}

/// Why there is no lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoLease {
    /// Somebody has the file open for writing.
    InUse,
    /// The system gives none: for files of other people, or on some file systems.
    Unsupported,
}

/// Chooses the signal of a lease; the bindings lack it.
#[cfg(target_os = "linux")]
const F_SETSIG: libc::c_int = 10;

#[cfg(target_os = "linux")]
fn control(file: &File, command: libc::c_int, value: libc::c_int) -> libc::c_int {
    // SAFETY: the descriptor is open for as long as `file` is borrowed, and the commands used here take a
    // plain number.
    unsafe { libc::fcntl(file.as_raw_fd(), command, value) }
}

#[cfg(target_os = "linux")]
impl<'f> Lease<'f> {
    /// Takes a lease on a file that is open for reading only.
    pub fn take(file: &'f File) -> Result<Self, NoLease> {
        // Who opens the file for writing makes the system signal us; by default that would end the
        // process, and this signal is one that it ignores.
        control(file, F_SETSIG, libc::SIGURG);
        if control(file, libc::F_SETLEASE, libc::F_RDLCK) == 0 {
            return Ok(Self { file });
        }
        match io::Error::last_os_error().kind() {
            io::ErrorKind::WouldBlock => Err(NoLease::InUse),
            _ => Err(NoLease::Unsupported),
        }
    }

    /// Whether somebody waits to write.
    pub fn is_wanted(&self) -> bool {
        control(self.file, libc::F_GETLEASE, 0) != libc::F_RDLCK
    }
}

#[cfg(target_os = "linux")]
impl Drop for Lease<'_> {
    fn drop(&mut self) {
        control(self.file, libc::F_SETLEASE, libc::F_UNLCK);
    }
}

#[cfg(not(target_os = "linux"))]
impl<'f> Lease<'f> {
    /// Other systems give none.
    pub fn take(_file: &'f File) -> Result<Self, NoLease> {
        Err(NoLease::Unsupported)
    }

    /// Nobody can be known to wait.
    pub fn is_wanted(&self) -> bool {
        let _ = self.file;
        false
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::{Lease, NoLease};
    use std::fs::{File, OpenOptions};

    #[test]
    fn a_writer_has_no_lease_beside_it_and_waits_for_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, "x").unwrap();
        let file = File::open(&path).unwrap();
        let writer = OpenOptions::new().append(true).open(&path).unwrap();
        assert_eq!(Lease::take(&file).unwrap_err(), NoLease::InUse);
        drop(writer);
        let lease = Lease::take(&file).unwrap();
        assert!(!lease.is_wanted());
        std::thread::scope(|threads| {
            let waits = threads.spawn(|| OpenOptions::new().append(true).open(&path).is_ok());
            while !lease.is_wanted() {
                std::thread::yield_now();
            }
            drop(lease);
            assert!(waits.join().unwrap());
        });
    }
}
