use std::fs::File;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use rstest::rstest;
use rustix::fs::{CWD, FileType, Mode, Stat, mknodat};
use rustix::io::Errno;
use tempfile::TempDir;

use super::{Located, OpenFailure, missing_or_refused, open_regular};
use crate::place::Place;

fn open(path: impl AsRef<Path>) -> Result<(File, Stat), OpenFailure> {
    open_regular(&located(path))
}

fn located(path: impl AsRef<Path>) -> Located {
    Place { cwd: "/".into() }.locate(path.as_ref())
}

/// One of each thing a path can name; the listener keeps its socket there.
fn folder() -> (TempDir, UnixListener) {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("file"), "text").unwrap();
    std::fs::create_dir(at("dir")).unwrap();
    mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    let listener = UnixListener::bind(at("socket")).unwrap();
    symlink("file", at("link")).unwrap();
    symlink("pipe", at("link-to-pipe")).unwrap();
    symlink("nowhere", at("dangling")).unwrap();
    symlink("loop", at("loop")).unwrap();
    (folder, listener)
}

#[rstest]
#[case::directory("dir", "F/dir is a directory, not a file: list it with Glob or with `ls` instead")]
#[case::pipe("pipe", "F/pipe is a named pipe, and only")]
#[case::link_to_pipe("link-to-pipe", "F/link-to-pipe is a named pipe, and only")]
#[case::socket("socket", "F/socket is a socket, and only")]
#[case::dangling("dangling", "F/dangling is a symbolic link to nowhere, which does not exist")]
#[case::symlink_loop("loop", "cannot open F/loop: Too many levels of symbolic links")]
#[case::file_as_folder("file/inner", "cannot open F/file/inner: Not a directory")]
#[case::missing("zzz", "no file at F/zzz: check the name, or look for it with Glob")]
#[case::missing_alike("file.txt", "no file at F/file.txt: similar names in the same folder are file")]
#[case::missing_folder("a/b", "no file at F/a/b: the folder F/a does not exist either, check the path")]
fn each_kind_has_its_own_message(#[case] name: &str, #[case] expected: &str) {
    let (folder, _listener) = folder();
    let message = open(folder.path().join(name)).unwrap_err().to_string();
    let message = message.replace(&folder.path().display().to_string(), "F");
    assert!(message.starts_with(expected), "{message}");
}

#[rstest]
#[case::device("/dev/zero", "/dev/zero is a character device")]
#[case::name_with_nul("/tmp/a\0b", "cannot open /tmp/a\0b: ")]
#[case::root("/", "/ is a directory")]
fn paths_of_the_system(#[case] path: &str, #[case] expected: &str) {
    let message = open(path).unwrap_err().to_string();
    assert!(message.starts_with(expected), "{message}");
}

#[test]
fn a_name_too_long_is_named_with_its_cause() {
    let path = PathBuf::from("/").join("x".repeat(300));
    let message = open(&path).unwrap_err().to_string();
    assert!(message.contains("File name too long"), "{message}");
}

/// Whoever runs the tests may be allowed everything, so the refusal itself is not staged.
#[test]
fn a_refusal_is_named_with_its_cause() {
    let message = missing_or_refused(&located("/secret"), Errno::ACCESS).to_string();
    assert!(message.starts_with("cannot open /secret: Permission denied"), "{message}");
}

#[test]
fn files_and_links_to_them_open_with_their_size() {
    let (folder, _listener) = folder();
    for name in ["file", "link"] {
        assert_eq!(open(folder.path().join(name)).unwrap().1.st_size, 4, "{name}");
    }
}

/// What was judged is opened, and not what a link put there since leads to.
#[test]
fn a_link_that_came_later_is_not_followed() {
    let (folder, _listener) = folder();
    let at = |name: &str| folder.path().canonicalize().unwrap().join(name);
    std::fs::write(at("dir/inner"), "inner").unwrap();
    let (file, inner) = (located(at("file")), located(at("dir/inner")));
    std::fs::rename(at("file"), at("moved")).unwrap();
    symlink("moved", at("file")).unwrap();
    std::fs::rename(at("dir"), at("other")).unwrap();
    symlink("other", at("dir")).unwrap();
    for judged in [file, inner] {
        let message = open_regular(&judged).unwrap_err().to_string();
        assert!(message.contains("leads somewhere else than when it was judged"), "{message}");
        assert!(super::step_by_step(&judged.real, super::OFlags::RDONLY).is_err());
    }
    assert!(super::step_by_step(&at("moved"), super::OFlags::RDONLY).is_ok());
}
