use std::{
    fs,
    io::Write,
    os::unix::fs::{MetadataExt, PermissionsExt, symlink},
    time::Duration,
};

use rstest::rstest;
use tempfile::TempDir;

use super::{Snapshot, Swap};
use crate::{
    files::WriteFailure,
    place::{Located, Place},
};

struct Scene {
    folder: TempDir,
    path: Located,
    swap: Swap,
}

fn scene() -> Scene {
    let folder = TempDir::new().unwrap();
    let root = folder.path().canonicalize().unwrap();
    fs::create_dir(root.join("drafts")).unwrap();
    fs::create_dir(root.join("in")).unwrap();
    fs::write(root.join("in/f"), "old").unwrap();
    let path = Place { cwd: root.clone() }.locate("in/f".as_ref());
    Scene { folder, path, swap: Swap::announced_in(root.join("drafts")) }
}

impl Scene {
    fn snapshot(&self) -> Snapshot {
        Snapshot::take(&self.path, 1000).unwrap()
    }

    fn content(&self) -> String {
        fs::read_to_string(&self.path.real).unwrap()
    }

    /// Nothing but the files that belong there.
    fn is_tidy(&self) -> bool {
        let count = |name: &str| fs::read_dir(self.folder.path().join(name)).unwrap().count();
        count("drafts") == 0 && count("in") <= 1
    }
}

#[test]
fn a_file_that_is_as_it_was_is_replaced_and_keeps_its_mode() {
    let scene = scene();
    fs::set_permissions(&scene.path.real, fs::Permissions::from_mode(0o741)).unwrap();
    let stamp = scene.swap.replace(&scene.snapshot(), b"new").unwrap();
    assert_eq!(scene.content(), "new");
    let found = fs::metadata(&scene.path.real).unwrap();
    assert_eq!((found.mode() & 0o7777, found.ino()), (0o741, stamp.inode()));
    assert!(scene.is_tidy());
}

type Meddle = fn(&Scene);

#[rstest]
#[case::changed(|s: &Scene| fs::write(&s.path.real, "theirs").unwrap(), "was changed by someone else", Some("theirs"))]
#[case::same_length(|s: &Scene| fs::write(&s.path.real, "OLD").unwrap(), "was changed by someone else", Some("OLD"))]
#[case::removed(|s: &Scene| fs::remove_file(&s.path.real).unwrap(), "was removed by someone else", None)]
#[case::a_link_now(
    |s: &Scene| {
        fs::remove_file(&s.path.real).unwrap();
        symlink("../elsewhere", &s.path.real).unwrap();
        fs::write(s.folder.path().join("elsewhere"), "far").unwrap();
    },
    "was changed by someone else",
    Some("far")
)]
fn what_someone_else_did_stays(#[case] meddle: Meddle, #[case] says: &str, #[case] stays: Option<&str>) {
    for remove in [false, true] {
        let scene = scene();
        let old = scene.snapshot();
        meddle(&scene);
        let done = if remove { scene.swap.remove(&old) } else { scene.swap.replace(&old, b"new").map(drop) };
        assert!(done.unwrap_err().to_string().contains(says));
        assert_eq!(fs::read_to_string(&scene.path.real).ok().as_deref(), stays);
        assert!(scene.is_tidy());
    }
}

#[test]
fn a_program_that_has_it_open_for_writing_keeps_it() {
    let scene = scene();
    let old = scene.snapshot();
    let mut writer = fs::OpenOptions::new().append(true).open(&scene.path.real).unwrap();
    assert!(matches!(scene.swap.replace(&old, b"new"), Err(WriteFailure::Busy { .. })));
    writer.write_all(b" and more").unwrap();
    assert_eq!(scene.content(), "old and more");
}

#[test]
fn a_file_is_made_once_with_its_folders_and_removed() {
    let scene = scene();
    let path = Place { cwd: scene.folder.path().canonicalize().unwrap() }.locate("a/b/c".as_ref());
    scene.swap.create(&path, b"new", Some(0o600)).unwrap();
    assert_eq!(fs::metadata(&path.real).unwrap().mode() & 0o777, 0o600);
    assert!(matches!(scene.swap.create(&path, b"x", None), Err(WriteFailure::Exists { .. })));
    scene.swap.remove(&Snapshot::take(&path, 10).unwrap()).unwrap();
    assert!(!path.real.exists() && path.real.parent().unwrap().exists());
    let under_a_file = Place { cwd: scene.path.real.clone() }.locate("x/y".as_ref());
    let message = scene.swap.create(&under_a_file, b"x", None).unwrap_err().to_string();
    assert!(message.contains("is a file and not a folder"), "{message}");
}

#[test]
fn drafts_of_a_killed_process_are_cleared_away_and_kept() {
    let scene = scene();
    let draft = scene.folder.path().join("in/.gripper-x.tmp");
    fs::write(&draft, "in hand").unwrap();
    let note =
        |pid: u32| fs::write(scene.folder.path().join("drafts/x"), format!("{pid}\n{}", draft.display()));
    note(std::process::id()).unwrap();
    scene.swap.tidy(|_| Ok(()));
    assert!(draft.exists(), "its process lives");
    note(u32::MAX).unwrap();
    let kept = std::cell::RefCell::new(Vec::new());
    scene.swap.tidy(|bytes| {
        kept.borrow_mut().push(bytes.to_vec());
        Ok(())
    });
    assert_eq!(*kept.borrow(), [b"in hand"]);
    assert!(scene.is_tidy());
}

/// Somebody adds lines to the file while replacements run that add theirs: no line of either side is lost.
#[test]
fn a_busy_neighbour_loses_nothing_and_neither_do_we() {
    let scene = scene();
    fs::write(&scene.path.real, "").unwrap();
    let (ours, theirs) = (20, 150);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for number in 0..theirs {
                let mut file = fs::OpenOptions::new().append(true).open(&scene.path.real).unwrap();
                writeln!(file, "theirs {number}").unwrap();
                drop(file);
                std::thread::sleep(Duration::from_micros(number * 37 % 8_000));
            }
        });
        let mut written = 0;
        while written < ours {
            let old = Snapshot::take(&scene.path, u64::MAX - 1).unwrap();
            let line = format!("ours {written}\n");
            match scene.swap.replace(&old, &[&old.bytes, line.as_bytes()].concat()) {
                Ok(_) => written += 1,
                Err(WriteFailure::Changed { .. } | WriteFailure::Busy { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    });
    let content = scene.content();
    let count = |who: &str| content.lines().filter(|line| line.starts_with(who)).count() as u64;
    assert_eq!((count("ours"), count("theirs")), (ours, theirs));
    assert!(scene.is_tidy());
}
