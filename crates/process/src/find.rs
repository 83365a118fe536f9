//! Which file a program's name means.

use std::{
    ffi::{OsStr, OsString},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

/// Why a program cannot be run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotFound {
    /// There is no such file.
    #[error("there is no program {0}")]
    Missing(String),
    /// The file is there, but may not be run.
    #[error("{0} is not executable: run chmod +x on it")]
    NotExecutable(String),
    /// The folder to run in is gone.
    #[error("the folder {0} does not exist")]
    NoFolder(String),
}

/// The file that would be run for `program` in `cwd` under the environment `env`.
pub fn find_program(program: &OsStr, cwd: &Path, env: &[(OsString, OsString)]) -> Result<PathBuf, NotFound> {
    if !cwd.is_dir() {
        return Err(NotFound::NoFolder(cwd.display().to_string()));
    }
    let shown = program.to_string_lossy().into_owned();
    if program.as_bytes().contains(&b'/') {
        return runnable(cwd.join(program)).ok_or_else(|| {
            if cwd.join(program).is_file() {
                NotFound::NotExecutable(shown)
            } else {
                NotFound::Missing(shown)
            }
        });
    }
    let search = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let search = search.unwrap_or(OsStr::new("/usr/local/bin:/usr/bin:/bin")).as_bytes();
    let mut folders = search.split(|byte| *byte == b':').filter(|folder| !folder.is_empty());
    folders
        .find_map(|folder| runnable(cwd.join(OsStr::from_bytes(folder)).join(program)))
        .filter(|_| !program.is_empty())
        .ok_or(NotFound::Missing(shown))
}

fn runnable(path: PathBuf) -> Option<PathBuf> {
    (path.is_file() && access(&path, Access::EXEC_OK).is_ok()).then_some(path)
}
