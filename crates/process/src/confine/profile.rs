//! What a confined command may do, as plain data.

use std::{
    ffi::OsStr,
    os::unix::ffi::OsStrExt,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use super::Backend;
use crate::proxy::Proxy;

/// What a confined command may do. What is not said here it may not: only reading is open by itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    /// Files and folders it may change, with all below. They must exist.
    pub writable: Vec<PathBuf>,
    /// Files and folders it may not read. Those that do not exist are passed over.
    pub hidden: Vec<PathBuf>,
    /// Inside what is writable: what stays as it is, also if it is not there yet. Absolute; a slash at
    /// the end says that a missing one would be a folder.
    pub read_only: Vec<PathBuf>,
    /// Whom it may talk to.
    pub network: Network,
    /// Whether it gets an empty temporary folder of its own, which `TMPDIR` names and which goes with it.
    pub private_tmp: bool,
    /// Whether root keeps the right to read the kernel's log, as far as the back end can leave it. For programs
    /// that are known: it shows where the kernel is in memory.
    pub kernel_log: bool,
    /// Whether what this machine cannot enforce precisely is forbidden widely, or not started at all,
    /// instead of being let through and told in [`Confined::weaker`](super::Confined).
    pub strict: bool,
    /// The back end to use; without one, the best that works.
    pub backend: Option<Backend>,
}

/// Whom a confined command may talk to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Network {
    /// Nobody.
    #[default]
    None,
    /// This filtering proxy. The command finds it through the usual variables (`HTTPS_PROXY` and its
    /// kin), on a port in a network of its own.
    Proxy(Arc<Proxy>),
    /// Everybody, local sockets included.
    Full,
}

/// What makes other programs run something later, in any project.
const IN_PROJECTS: &str = ".git/commondir .git/config .git/config.worktree .git/hooks/ .git/info/ \
    .git/modules/ .claude/ .gripper/ .mcp.json .vscode/ .idea/ .envrc .husky/ .cargo/config \
    .cargo/config.toml .npmrc .yarnrc .yarnrc.yml";

/// The same, in a home folder.
const IN_HOMES: &str = ".bash_login .bash_logout .bash_profile .bashrc .inputrc .profile .pam_environment \
    .xprofile .zlogin .zprofile .zshenv .zshrc .gitconfig .ssh/ .config/autostart/ .config/environment.d/ \
    .config/fish/ .config/git/ .config/systemd/ .local/share/systemd/";

/// What stays read-only in a writable root whatever was decided: what others run later without being
/// asked. The names of a home folder count if the home folder is the root or lies in it.
pub fn protected_names(root: &Path, home: Option<&Path>) -> Vec<PathBuf> {
    let home = home.filter(|home| home.starts_with(root));
    let homes = home.into_iter().flat_map(|home| IN_HOMES.split(' ').map(|name| home.join(name)));
    IN_PROJECTS.split(' ').map(|name| root.join(name)).chain(homes).collect()
}

/// What stays read-only because `entry` is there, in whatever folder: the names of a project that begin with
/// it. A repository within a project is one too, and a command may be told to work there next.
pub fn protected_at(entry: &Path) -> Vec<PathBuf> {
    let Some((folder, name)) = entry.parent().zip(entry.file_name()) else { return Vec::new() };
    let names = IN_PROJECTS.split(' ').filter(|path| path.split('/').next().map(OsStr::new) == Some(name));
    names.map(|path| folder.join(path)).collect()
}

impl Profile {
    /// Reads everything but `hidden`, changes nothing but its own temporary folder, talks to nobody.
    pub fn read_only(hidden: Vec<PathBuf>) -> Self {
        Self { hidden, private_tmp: true, ..Self::default() }
    }

    /// Changes what lies in `roots`, but for the names that are protected there.
    pub fn writes(roots: Vec<PathBuf>, home: Option<&Path>) -> Self {
        let read_only = roots.iter().flat_map(|root| protected_names(root, home)).collect();
        Self { writable: roots, read_only, private_tmp: true, ..Self::default() }
    }

    /// Whether it may read this path.
    pub(super) fn may_read(&self, path: &Path) -> bool {
        !below(path, &self.hidden)
    }

    /// Whether it may change this path.
    pub(super) fn may_write(&self, path: &Path) -> bool {
        below(path, &self.writable) && !below(path, &self.read_only) && self.may_read(path)
    }
}

/// Whether a path is one of these or lies in one.
pub(super) fn below(path: &Path, roots: &[PathBuf]) -> bool {
    roots.iter().any(|root| path.starts_with(root))
}

/// Moves a path from one spelling of its root to another.
pub(super) fn rebase(path: &mut PathBuf, root: &Path, real: &Path) {
    if let Ok(rest) = path.strip_prefix(root) {
        let moved = real.join(rest);
        // To join an empty part is to put a slash at the end.
        *path = if names_folder(path) { moved.join("") } else { moved };
    }
}

/// Whether a path is written as one of a folder.
pub(super) fn names_folder(path: &Path) -> bool {
    path.as_os_str().as_bytes().ends_with(b"/")
}

/// A path without `.` and `..`, as far as letters tell.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

/// The real path of what exists of `path`, with the rest as it is written.
pub(super) fn real(path: &Path) -> PathBuf {
    let mut rest: Vec<&OsStr> = Vec::new();
    for base in path.ancestors() {
        if let Ok(base) = base.canonicalize() {
            return rest.iter().rev().fold(base, |path, part| path.join(part));
        }
        rest.extend(base.file_name());
    }
    plain(path)
}
