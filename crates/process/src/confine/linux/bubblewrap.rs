//! A profile as arguments of `bwrap`.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::{Path, PathBuf},
};

use super::{
    Network, Profile,
    markers::{Found, Markers},
    memory_file,
    profile::{below, names_folder},
};

/// Where a trustworthy `bwrap` is; a search path could lead into the project.
const PROGRAMS: [&str; 4] =
    ["/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap", "/run/current-system/sw/bin/bwrap"];

/// What every cage has. Not a session of its own: ours began one, and by it the tree is found.
pub(super) const BASE: [&str; 7] = [
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--die-with-parent",
    "--cap-drop",
    "ALL",
];

pub(super) fn program() -> Option<&'static str> {
    PROGRAMS.into_iter().find(|program| Path::new(program).exists())
}

/// What is mounted over a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Mount {
    /// Itself, so that it can be changed, but neither moved nor removed.
    Write,
    /// Itself, read-only.
    ReadOnly,
    /// An empty file, read-only.
    Blank,
    /// A device that cannot be opened.
    HiddenFile,
    /// An empty folder that cannot be looked into.
    HiddenFolder,
}

/// The mounts of a cage, outer ones first.
pub(super) struct Plan {
    mounts: BTreeMap<PathBuf, Mount>,
    pub(super) markers: Markers,
}

impl Plan {
    pub(super) fn new(profile: &Profile, weaker: &mut Vec<String>) -> Self {
        let mut plan = Self { mounts: BTreeMap::new(), markers: Markers::default() };
        for root in &profile.writable {
            plan.mount(root, Mount::Write);
        }
        // What lies in something shut is shut with it; the way there would be mounts that open it again.
        let shut = |path: &PathBuf| {
            below(path, &profile.hidden)
                || profile.read_only.iter().any(|held| path != held && path.starts_with(held))
        };
        for path in profile.read_only.iter().filter(|path| !shut(path)) {
            if let Some(root) = profile.writable.iter().find(|root| path.starts_with(root)) {
                plan.protect(root, path, profile, weaker);
            }
        }
        for path in &profile.hidden {
            plan.mount(path, if path.is_dir() { Mount::HiddenFolder } else { Mount::HiddenFile });
        }
        plan
    }

    /// The stricter mount wins.
    fn mount(&mut self, path: &Path, mount: Mount) {
        let there = self.mounts.entry(path.to_path_buf()).or_insert(mount);
        *there = mount.max(*there);
    }

    /// Walks from the root to what is to be protected. Every folder on the way becomes a mount, or else
    /// it could be moved away and made anew without the protection.
    fn protect(&mut self, root: &Path, path: &Path, profile: &Profile, weaker: &mut Vec<String>) {
        let Ok(rest) = path.strip_prefix(root) else { return };
        let (mut at, mut parts) = (root.to_path_buf(), rest.components().peekable());
        while let Some(part) = parts.next() {
            self.markers.hold(&at);
            at.push(part);
            let last = parts.peek().is_none();
            let mut found = Found::at(&at);
            if matches!(found, Found::Missing | Found::FolderMarker | Found::FileMarker) {
                found = self.markers.place(&at, !last || names_folder(path));
            }
            match found {
                Found::Folder if !last => self.mount(&at, Mount::Write),
                Found::Link => {
                    let why = "is a symbolic link in a writable folder, so it can be replaced";
                    weaker.push(format!("{} {why}", at.display()));
                    if let Ok(real) = path.canonicalize()
                        && below(&real, &profile.writable)
                    {
                        self.mount(&real, Mount::ReadOnly);
                    }
                    return;
                }
                Found::FileMarker => return self.mount(&at, Mount::Blank),
                Found::Missing => return,
                Found::Folder | Found::Other | Found::FolderMarker => {
                    return self.mount(&at, Mount::ReadOnly);
                }
            }
        }
    }

    /// The arguments up to the program, and the files that they mean.
    pub(super) fn arguments(
        &self,
        profile: &Profile,
        cwd: &Path,
        filters: &[i32],
    ) -> io::Result<(Vec<OsString>, Vec<OwnedFd>)> {
        let program = program().ok_or(io::ErrorKind::NotFound)?;
        let mut arguments: Vec<OsString> = [program].into_iter().chain(BASE).map(OsString::from).collect();
        let mut add = |words: &[&dyn AsRef<std::ffi::OsStr>]| {
            arguments.extend(words.iter().map(|word| word.as_ref().to_os_string()));
        };
        if profile.network == Network::None {
            add(&[&"--unshare-net"]);
        }
        let root = self.mounts.get(Path::new("/"));
        add(&[if root.is_some() { &"--bind" } else { &"--ro-bind" }, &"/", &"/"]);
        add(&[&"--dev", &"/dev", &"--proc", &"/proc"]);
        let mut blanks = Vec::new();
        for (path, mount) in self.mounts.iter().filter(|(path, _)| path.as_os_str() != "/") {
            match mount {
                Mount::Write => add(&[&"--bind", path, path]),
                Mount::ReadOnly => add(&[&"--ro-bind", path, path]),
                Mount::Blank => {
                    let file = OwnedFd::from(memory_file()?);
                    add(&[&"--perms", &"0444", &"--ro-bind-data", &file.as_raw_fd().to_string(), path]);
                    blanks.push(file);
                }
                Mount::HiddenFile => add(&[&"--ro-bind", &"/dev/null", path]),
                Mount::HiddenFolder => add(&[&"--perms", &"0000", &"--tmpfs", path]),
            }
        }
        // Only now, because a writable folder may lie in a hidden one.
        for (path, _) in self.mounts.iter().filter(|(_, mount)| **mount == Mount::HiddenFolder) {
            add(&[&"--remount-ro", path]);
        }
        for filter in filters {
            add(&[&"--add-seccomp-fd", &filter.to_string()]);
        }
        add(&[&"--chdir", &cwd, &"--"]);
        Ok((arguments, blanks))
    }
}
