//! Where calls work, and the one resolver of paths.

use std::path::{Component, Path, PathBuf};

use gripper_permissions::{PathUse, Subject};

/// The working directory of a call. Which directories it may touch is the policy's business.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The working directory, absolute.
    pub cwd: PathBuf,
}

/// A path as written and as it resolves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// Absolute, `.` and `..` taken out by spelling alone. This is the path to open.
    pub written: PathBuf,
    /// Links followed as far as the path exists.
    pub real: PathBuf,
}

impl Place {
    /// Absolute and tidy, without looking at the disk.
    pub fn absolute(&self, path: &Path) -> PathBuf {
        let mut tidy = PathBuf::new();
        for component in self.cwd.join(path).components() {
            match component {
                Component::CurDir => {}
                Component::ParentDir => {
                    tidy.pop();
                }
                other => tidy.push(other),
            }
        }
        tidy
    }

    /// Both identities of a path.
    pub fn locate(&self, path: &Path) -> Located {
        // Tools open `written`, so `real` must be where exactly that leads: were `..` taken out of
        // one and followed through links in the other, what is judged would not be what is opened.
        let written = self.absolute(path);
        let real = real_path(&written, LINK_HOPS);
        Located { written, real }
    }
}

impl Located {
    /// As a permission subject.
    pub fn subject(&self, write: bool) -> Subject {
        Subject::Path(self.path_use(write))
    }

    /// As rules look at it.
    pub fn path_use(&self, write: bool) -> PathUse {
        PathUse::new(&self.written, &self.real, write)
    }
}

/// As many links as the system itself would follow.
const LINK_HOPS: usize = 40;
/// Longer paths cannot be opened anyway, and following them would only cost time.
const LONGEST_PATH: usize = 4096;

/// Follows links through the longest part of `path` that exists; what does not exist yet is
/// appended as spelled.
fn real_path(path: &Path, hops: usize) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    if path.as_os_str().len() > LONGEST_PATH {
        return path.to_owned();
    }
    let Some(parent) = path.parent() else { return path.to_owned() };
    let mut real = real_path(parent, hops);
    match path.components().next_back() {
        Some(Component::ParentDir) => {
            real.pop();
        }
        Some(Component::Normal(name)) => {
            let candidate = real.join(name);
            // A dangling link still leads where it points: writing to it would create that file.
            match (hops.checked_sub(1), std::fs::read_link(&candidate)) {
                (Some(left), Ok(target)) => real = real_path(&real.join(target), left),
                _ => real = candidate,
            }
        }
        _ => {}
    }
    real
}

#[cfg(test)]
mod tests {
    use super::Place;
    use std::path::Path;

    #[test]
    fn spelling() {
        let place = Place { cwd: "/a/b".into() };
        for (path, expected) in
            [("c", "/a/b/c"), ("./c/../d", "/a/b/d"), ("../../../..", "/"), ("/x//y/", "/x/y"), ("..", "/a")]
        {
            assert_eq!(place.absolute(Path::new(path)), Path::new(expected), "{path}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_as_far_as_they_exist() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("in/deep")).unwrap();
        std::fs::create_dir_all(root.join("out")).unwrap();
        std::os::unix::fs::symlink(root.join("out"), root.join("in/link")).unwrap();
        std::os::unix::fs::symlink("/nowhere/at/all", root.join("in/dangling")).unwrap();
        std::os::unix::fs::symlink("link/hop", root.join("in/twice")).unwrap();
        std::os::unix::fs::symlink("loop", root.join("in/loop")).unwrap();
        let place = Place { cwd: root.join("in") };
        let real = |path: &str| place.locate(Path::new(path)).real;
        assert_eq!(real("link/new.txt"), root.join("out/new.txt"));
        assert_eq!(real("deep/new/newer"), root.join("in/deep/new/newer"));
        assert_eq!(real("dangling"), Path::new("/nowhere/at/all"));
        assert_eq!(real("twice"), root.join("out/hop"));
        assert!(real("loop").ends_with("in/loop"));
        // By spelling, this is in/x, whatever the link says; and that is what gets opened.
        assert_eq!(real("link/../x"), root.join("in/x"));
        assert_eq!(place.locate(Path::new("link/../x")).written, root.join("in/x"));
        std::os::unix::fs::symlink("/etc/passwd", root.join("in/out")).unwrap();
        assert_eq!(real("link/../out"), Path::new("/etc/passwd"));
        assert_eq!(real(&format!("{}out", "n/../".repeat(1000))), Path::new("/etc/passwd"));
    }
}
