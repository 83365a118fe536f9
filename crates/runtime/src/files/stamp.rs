//! What the system says of a file.

use rustix::fs::{FileType, Stat};

/// Enough of a file's status to tell whether it may have changed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
    mode: u32,
    owner: (u32, u32),
    links: u64,
}

impl Stamp {
    /// The stamp of a status.
    #[allow(clippy::unnecessary_cast, reason = "the types of these fields differ between systems")]
    pub fn of(status: &Stat) -> Self {
        Self {
            device: status.st_dev as u64,
            inode: status.st_ino as u64,
            size: u64::try_from(status.st_size).unwrap_or(0),
            modified: (status.st_mtime as i64, status.st_mtime_nsec as i64),
            changed: (status.st_ctime as i64, status.st_ctime_nsec as i64),
            mode: status.st_mode as u32,
            owner: (status.st_uid, status.st_gid),
            links: status.st_nlink as u64,
        }
    }

    /// Whether nothing says that the content is another than at the time of `earlier`. Whoever sets the time
    /// of a file back cannot set back when its status changed.
    pub fn unchanged_since(&self, earlier: &Stamp) -> bool {
        self.unwritten_since(earlier) && self.changed == earlier.changed
    }

    /// The same for a file that has been renamed since, which changes its status.
    pub(super) fn unwritten_since(&self, earlier: &Stamp) -> bool {
        let content = |stamp: &Stamp| (stamp.device, stamp.inode, stamp.size, stamp.modified);
        content(self) == content(earlier)
    }

    /// How many bytes the file has.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// How many names the file has.
    pub fn links(&self) -> u64 {
        self.links
    }

    /// Its number on its device.
    pub(super) fn inode(&self) -> u64 {
        self.inode
    }

    /// The permission bits.
    pub fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }

    /// User and group.
    pub(super) fn owner(&self) -> (u32, u32) {
        self.owner
    }

    /// Whether both are regular files, or both directories, and so on.
    pub(super) fn same_kind(&self, other: &Stamp) -> bool {
        FileType::from_raw_mode(self.mode) == FileType::from_raw_mode(other.mode)
    }
}
