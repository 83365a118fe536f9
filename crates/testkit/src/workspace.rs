//! A throw-away project with a home of its own.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tempfile::TempDir;

/// A temporary folder with a `project` and a `home`, gone when dropped.
pub struct Workspace {
    root: TempDir,
}

impl Default for Workspace {
    fn default() -> Self {
        Self::new()
    }
}

impl Workspace {
    /// An empty project.
    pub fn new() -> Self {
        let root = tempfile::Builder::new().prefix("gripper-test-").tempdir().expect("a temporary folder");
        for folder in ["project", "home"] {
            fs::create_dir(root.path().join(folder)).expect("a folder in it");
        }
        Self { root }
    }

    /// The folder that holds both, links followed.
    pub fn root(&self) -> PathBuf {
        self.root.path().canonicalize().expect("the folder exists")
    }

    /// Where calls work.
    pub fn project(&self) -> PathBuf {
        self.root().join("project")
    }

    /// The fake home.
    pub fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    /// The path of a file in the project.
    pub fn path(&self, name: &str) -> PathBuf {
        self.project().join(name)
    }

    /// Writes a file of the project, folders included, and gives its path.
    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).expect("its folders");
        fs::write(&path, content).expect("the file");
        path
    }
}

/// Where cargo keeps the unpacked sources of what we depend on: a large tree that is always at hand.
pub fn registry_sources() -> PathBuf {
    let home = std::env::var_os("CARGO_HOME").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").expect("a home")).join(".cargo"),
        PathBuf::from,
    );
    let sources = fs::read_dir(home.join("registry/src")).expect("cargo fetch has run");
    let sources = sources.flatten().map(|entry| entry.path());
    sources.max_by_key(|path| fs::read_dir(path).map_or(0, Iterator::count)).expect("a registry")
}

/// A program for python3 that is a server of tools, honest or not as its arguments say.
pub fn mcp_peer() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/mcp_peer.py")
}
