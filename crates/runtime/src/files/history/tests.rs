use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime},
};

use tempfile::TempDir;

use super::{Back, History, HistoryLimits, Target, sweep};
use crate::{
    files::{Change, Files, Snapshot},
    place::{Located, Place},
};

struct Scene {
    folder: TempDir,
    root: PathBuf,
    files: Files,
}

fn scene() -> Scene {
    let folder = TempDir::new().unwrap();
    let root = folder.path().canonicalize().unwrap().join("project");
    fs::create_dir(&root).unwrap();
    let files = Files::with_history(History::new(folder.path().join("history"), "s1", &root), None);
    Scene { folder, root, files }
}

impl Scene {
    fn at(&self, name: &str) -> Located {
        Place { cwd: self.root.clone() }.locate(Path::new(name))
    }

    fn write(&self, turn: &str, name: &str, content: &str) {
        let path = self.at(name);
        let bytes = content.as_bytes().to_vec();
        let change = match Snapshot::take(&path, 1000) {
            Ok(old) => Change::Replace { old, bytes },
            Err(_) => Change::Create { path, bytes, mode: None },
        };
        self.files.apply(&Arc::from(turn), &[change], true).unwrap();
    }

    fn remove(&self, turn: &str, name: &str) {
        let old = Snapshot::take(&self.at(name), 1000).unwrap();
        self.files.apply(&Arc::from(turn), &[Change::Remove { old }], true).unwrap();
    }

    fn undo(&self, target: &Target) -> Vec<(String, String)> {
        let plan = self.files.history().unwrap().plan(target).unwrap();
        let name = |path: &Path| path.strip_prefix(&self.root).unwrap().to_string_lossy().into_owned();
        let word = |back: &Back| format!("{back:?}").split([' ', '(']).next().unwrap().to_owned();
        self.files.undo(plan).iter().map(|undone| (name(&undone.path), word(&undone.back))).collect()
    }

    fn read(&self, name: &str) -> Option<String> {
        fs::read_to_string(self.root.join(name)).ok()
    }
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect()
}

#[test]
fn turns_are_taken_back_one_by_one_and_put_back_again() {
    let scene = scene();
    fs::write(scene.root.join("kept"), "1").unwrap();
    scene.write("t1", "kept", "2");
    scene.write("t1", "kept", "3");
    scene.write("t1", "new/deep/file", "n");
    scene.write("t2", "kept", "4");
    scene.remove("t2", "new/deep/file");
    assert_eq!(scene.undo(&Target::Newest), pairs(&[("kept", "Restore"), ("new/deep/file", "Restore")]));
    assert_eq!((scene.read("kept").unwrap(), scene.read("new/deep/file").unwrap()), ("3".into(), "n".into()));
    assert_eq!(scene.undo(&Target::Newest), pairs(&[("kept", "Restore"), ("new/deep/file", "Remove")]));
    assert_eq!((scene.read("kept").unwrap(), scene.read("new/deep/file")), ("1".into(), None));
    assert!(!scene.root.join("new").exists(), "folders that were made go too");
    assert!(scene.files.history().unwrap().plan(&Target::Newest).unwrap_err().contains("nothing to undo"));
    let undo = scene.files.history().unwrap().turns().remove(0);
    assert!(undo.is_undo && !undo.undone);
    scene.undo(&Target::Before(undo.turn));
    assert_eq!((scene.read("kept").unwrap(), scene.read("new/deep/file").unwrap()), ("3".into(), "n".into()));
}

#[test]
fn what_someone_else_changed_since_is_left_alone() {
    let scene = scene();
    for name in ["after", "between", "fine", "gone"] {
        fs::write(scene.root.join(name), "old").unwrap();
        scene.write("t1", name, "ours");
    }
    fs::write(scene.root.join("after"), "theirs").unwrap();
    fs::write(scene.root.join("between"), "theirs").unwrap();
    scene.write("t2", "between", "ours again");
    fs::remove_file(scene.root.join("gone")).unwrap();
    let undone = scene.undo(&Target::Before("t1".into()));
    let expected =
        [("after", "Conflict"), ("between", "Conflict"), ("fine", "Restore"), ("gone", "Conflict")];
    assert_eq!(undone, pairs(&expected));
    let read = |name: &str| scene.read(name);
    assert_eq!(read("after").unwrap(), "theirs");
    assert_eq!(read("between").unwrap(), "ours again");
    assert_eq!((read("fine").unwrap(), read("gone")), ("old".into(), None));
}

#[test]
fn changes_of_one_call_are_made_all_or_not_at_all() {
    let scene = scene();
    fs::write(scene.root.join("a"), "a").unwrap();
    fs::write(scene.root.join("b"), "b").unwrap();
    let (a, b) = (Snapshot::take(&scene.at("a"), 9).unwrap(), Snapshot::take(&scene.at("b"), 9).unwrap());
    fs::write(scene.root.join("b"), "B").unwrap();
    let changes = [
        Change::Create { path: scene.at("n/new"), bytes: b"n".to_vec(), mode: None },
        Change::Remove { old: a },
        Change::Replace { old: b, bytes: b"bb".to_vec() },
    ];
    assert!(scene.files.apply(&Arc::from("t"), &changes, true).is_err());
    assert_eq!((scene.read("a").unwrap(), scene.read("b").unwrap()), ("a".into(), "B".into()));
    assert_eq!(scene.read("n/new"), None);
    let plan = scene.files.history().unwrap().plan(&Target::Newest).unwrap();
    let words: Vec<String> = plan.steps.iter().map(|step| format!("{:?}", step.back)).collect();
    assert_eq!(words[0], "Nothing", "what was never done needs no undoing");
}

#[test]
fn old_history_goes_and_what_is_needed_stays() {
    let scene = scene();
    fs::write(scene.root.join("f"), "old").unwrap();
    scene.write("t1", "f", "new");
    let folder = scene.folder.path().join("history");
    let later = SystemTime::now() + Duration::from_secs(2 * 60 * 60);
    assert_eq!(sweep(&folder, &HistoryLimits::default(), later), 0);
    assert!(matches!(
        scene.files.history().unwrap().plan(&Target::Newest).unwrap().steps[0].back,
        Back::Restore { .. }
    ));
    let limits = HistoryLimits { max_age: Duration::from_secs(60), ..HistoryLimits::default() };
    assert_eq!(sweep(&folder, &limits, later), 2);
    assert!(scene.files.history().unwrap().turns().is_empty());
}
