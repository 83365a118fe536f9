use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;

use rstest::rstest;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use rustix::io::Errno;
use tempfile::TempDir;

use super::{missing_or_refused, open_regular};

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
#[case::symlink_loop("loop", "cannot read F/loop: Too many levels of symbolic links")]
#[case::file_as_folder("file/inner", "cannot read F/file/inner: Not a directory")]
#[case::missing("zzz", "no file at F/zzz: check the name, or look for it with Glob")]
#[case::missing_alike("file.txt", "no file at F/file.txt: similar names in the same folder are file")]
#[case::missing_folder("a/b", "no file at F/a/b: the folder F/a does not exist either, check the path")]
fn each_kind_has_its_own_message(#[case] name: &str, #[case] expected: &str) {
    let (folder, _listener) = folder();
    let message = open_regular(&folder.path().join(name)).unwrap_err().to_string();
    let message = message.replace(&folder.path().display().to_string(), "F");
    assert!(message.starts_with(expected), "{message}");
}

#[rstest]
#[case::device("/dev/zero", "/dev/zero is a character device")]
#[case::name_with_nul("/tmp/a\0b", "cannot read /tmp/a\0b: ")]
#[case::root("/", "/ is a directory")]
fn paths_of_the_system(#[case] path: &str, #[case] expected: &str) {
    let message = open_regular(&PathBuf::from(path)).unwrap_err().to_string();
    assert!(message.starts_with(expected), "{message}");
}

#[test]
fn a_name_too_long_is_named_with_its_cause() {
    let path = PathBuf::from("/").join("x".repeat(300));
    let message = open_regular(&path).unwrap_err().to_string();
    assert!(message.contains("File name too long"), "{message}");
}

/// Whoever runs the tests may be allowed everything, so the refusal itself is not staged.
#[test]
fn a_refusal_is_named_with_its_cause() {
    let message = missing_or_refused("/secret".as_ref(), Errno::ACCESS).to_string();
    assert!(message.starts_with("cannot read /secret: Permission denied"), "{message}");
}

#[test]
fn files_and_links_to_them_open_with_their_size() {
    let (folder, _listener) = folder();
    for name in ["file", "link"] {
        assert_eq!(open_regular(&folder.path().join(name)).unwrap().1, 4, "{name}");
    }
}
