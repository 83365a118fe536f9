//! Edits in place, such as `sed -i`: tried out on copies, shown as a difference, and made like any other edit.

use std::{
    fs, io,
    path::{Component, Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use gripper_process::{Ended, Spec, Status, confine::Profile};
use gripper_runtime::{
    Call, Located, ToolError,
    files::{Change, Snapshot, WriteFailure, ledger::Standing},
    permissions::{EffectKind, Target, Via},
};
use memchr::memmem;
use tempfile::TempDir;

use super::{Bash, Input, Output, cage, mentioned::may_be_shown, plain};
use crate::{disk, editing::Changed, text};

/// Files that are larger are changed by the program itself.
const MOST_BYTES: u64 = 16 * 1024 * 1024;
/// Lines of a difference that a question shows, for each file.
const DIFF_LINES: usize = 100;
/// How long a trial may take.
const PATIENCE: Duration = Duration::from_secs(4);
/// How often an edit is tried anew when somebody else writes at the same moment.
const TRIES: usize = 5;

/// A command line that is one edit in place and nothing else.
#[derive(Debug, PartialEq, Eq)]
struct InPlace {
    /// The words, the files last.
    argv: Vec<String>,
    /// The files, as many as words at the end.
    files: Vec<Located>,
    /// What it leaves of the files as they were: by the number of the file.
    backups: Vec<(usize, Located)>,
}

/// What an edit came to when it was tried on copies.
#[derive(Debug)]
pub(super) struct Trial {
    edit: Arc<InPlace>,
    before: Vec<Snapshot>,
    after: Vec<Vec<u8>>,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl InPlace {
    /// The edit that a call makes, if that is all it does: every word is known, nothing but the files and
    /// their backups is written, and those lie in the working directories.
    fn of(input: &Input, call: &Call) -> Option<Self> {
        if input.run_in_background == Some(true) || input.dangerously_disable_sandbox == Some(true) {
            return None;
        }
        let command = call.access.command_use()?;
        let analysis = &command.analysis;
        let ([part], [edit]) = (analysis.parts(), analysis.edits()) else { return None };
        // Only then is there no loop, no pipe and no sign around it.
        let whole = part.span.of(&command.text) == command.text.trim();
        if !whole || part.via != Via::Line || !part.settings.is_empty() || !analysis.unresolved().is_empty() {
            return None;
        }
        let argv: Vec<String> =
            part.argv.iter().map(|word| word.literal().map(str::to_owned)).collect::<Option<_>>()?;
        let words = argv.len().checked_sub(edit.files.len()).filter(|program| *program > 0)?;
        let mut files: Vec<Located> = Vec::new();
        for (word, file) in argv[words..].iter().zip(&edit.files) {
            let file = call.located(Path::new(file));
            let spelt = call.place.absolute(Path::new(word));
            let inside = call.policy.directories.iter().any(|root| file.written.starts_with(root));
            let once = files.iter().all(|other| other.written != file.written);
            if spelt != file.written || !inside || !once || below_a_folder(word).is_none() {
                return None;
            }
            files.push(file);
        }
        let mut backups = Vec::new();
        for effect in analysis.effects() {
            let EffectKind::Write(Target::Path(path)) = &effect.kind else { return None };
            let path = call.located(Path::new(path));
            if files.iter().any(|file| file.written == path.written) {
                continue;
            }
            let name = path.written.to_str()?;
            let of =
                files.iter().position(|file| file.written.to_str().is_some_and(|f| name.starts_with(f)))?;
            backups.push((of, path));
        }
        Some(Self { argv, files, backups })
    }

    /// The files as they are. Links are the program's business, which treats them in its own way.
    fn look(&self) -> Option<Vec<Snapshot>> {
        let take = |file: &Located| {
            let plain = fs::symlink_metadata(&file.written).ok()?.is_file();
            Snapshot::take(file, MOST_BYTES).ok().filter(|found| plain && found.stamp.links() == 1)
        };
        self.files.iter().map(take).collect()
    }

    /// Where the copy of a file is.
    fn copy(&self, scratch: &Path, number: usize) -> Option<PathBuf> {
        let word = self.argv.get(self.argv.len() - self.files.len() + number)?;
        Some(scratch.join(below_a_folder(word)?))
    }

    /// Copies of the files, below a folder of their own as they lie below the working directory.
    fn copies(&self, before: &[Snapshot]) -> io::Result<TempDir> {
        let scratch = tempfile::Builder::new().prefix("gripper-edit-").tempdir()?;
        for (number, file) in before.iter().enumerate() {
            let copy = self.copy(scratch.path(), number).ok_or(io::ErrorKind::InvalidInput)?;
            copy.parent().map(fs::create_dir_all).transpose()?;
            fs::write(&copy, &file.bytes)?;
        }
        Ok(scratch)
    }

    /// What became of the copies; nothing if the program did anything that was not foreseen.
    fn outcome(self: Arc<Self>, scratch: &Path, before: Vec<Snapshot>, ended: Ended) -> Option<Trial> {
        let mut foreseen = Vec::new();
        for number in 0..self.files.len() {
            foreseen.push(self.copy(scratch, number)?);
        }
        let after: Vec<Vec<u8>> = foreseen.iter().map(|copy| fs::read(copy).ok()).collect::<Option<_>>()?;
        for (number, backup) in &self.backups {
            let kept = foreseen.get(*number)?.with_file_name(backup.written.file_name()?);
            if fs::read(&kept).ok()? != before.get(*number)?.bytes {
                return None;
            }
            foreseen.push(kept);
        }
        let name = scratch.file_name()?.as_encoded_bytes();
        let (stdout, stderr) = (ended.stdout.bytes, ended.stderr.bytes);
        // What depends on where the files lie would be another there.
        let tells = |bytes: &[u8]| memmem::find(bytes, name).is_some();
        let placed = after.iter().any(|bytes| tells(bytes)) || tells(&stdout) || tells(&stderr);
        let sound = ended.status == Status::Exited(0) && ended.stdout.dropped + ended.stderr.dropped == 0;
        let all = files_below(scratch)?;
        (sound && !placed && all == foreseen.len()).then_some(Trial {
            edit: self,
            before,
            after,
            stdout,
            stderr,
        })
    }

    /// Runs the program on copies of the files, where it can change nothing else.
    async fn attempt(self: &Arc<Self>, bash: &Bash, call: &Call, before: Vec<Snapshot>) -> Option<Trial> {
        if cage::missing().is_some() {
            return None;
        }
        let edit = self.clone();
        let (scratch, before) =
            disk::off_thread(move || edit.copies(&before).map(|scratch| (scratch, before)))
                .await
                .ok()?
                .ok()?;
        let folder = scratch.path().canonicalize().ok()?;
        let (program, words) = self.argv.split_first()?;
        let mut args: Vec<_> = words.iter().map(Into::into).collect();
        let first = args.len() - self.files.len();
        for number in 0..self.files.len() {
            if Path::new(&args[first + number]).is_absolute() {
                args[first + number] = self.copy(&folder, number)?.into();
            }
        }
        let hidden = cage::of_home(&call.policy);
        let profile = Profile { writable: vec![folder.clone()], hidden, ..Profile::default() };
        let spec = Spec {
            env: bash.settings.environment(),
            limit: PATIENCE,
            cage: Some(profile),
            ..Spec::exec(program, args, &folder)
        };
        let ended = gripper_process::run(spec, &call.cancel).await.ok()?;
        let edit = self.clone();
        disk::off_thread(move || {
            let trial = edit.outcome(&folder, before, ended);
            drop(scratch);
            trial
        })
        .await
        .ok()?
    }

    /// What has to be written for it.
    fn changes(&self, trial: &Trial) -> Vec<Change> {
        let mut changes = Vec::new();
        for (number, path) in &self.backups {
            let Some(old) = trial.before.get(*number) else { continue };
            changes.push(match Snapshot::take(path, MOST_BYTES) {
                Ok(there) => Change::Replace { old: there, bytes: old.bytes.clone() },
                Err(_) => {
                    let mode = Some(old.stamp.permissions());
                    Change::Create { path: path.clone(), bytes: old.bytes.clone(), mode }
                }
            });
        }
        for (old, bytes) in trial.before.iter().zip(&trial.after) {
            if old.bytes != *bytes {
                changes.push(Change::Replace { old: old.clone(), bytes: bytes.clone() });
            }
        }
        changes
    }
}

impl Bash {
    /// What an edit in place would do, as a difference.
    pub(super) async fn preview_edit(&self, input: &Input, call: &Call) -> Option<String> {
        let edit = Arc::new(InPlace::of(input, call)?);
        let before = edit.look()?;
        let trial = edit.attempt(self, call, before).await?;
        let shown = trial.difference();
        let mut trials = self.trials.lock().ok()?;
        // Those of questions that were answered with no are left over.
        if trials.len() > 16 {
            trials.clear();
        }
        trials.insert((call.turn.clone(), call.id.clone()), trial);
        Some(shown)
    }

    /// Makes an edit in place; nothing if the program itself has to do it.
    pub(super) async fn edit(&self, input: &Input, call: &Call) -> Result<Option<Output>, ToolError> {
        let key = (call.turn.clone(), call.id.clone());
        let shown = self.trials.lock().ok().and_then(|mut trials| trials.remove(&key));
        // Nobody was asked: it is for the cage to say what may be written.
        if self.settings.sandbox && !call.approved {
            return Ok(None);
        }
        let Some(edit) = InPlace::of(input, call).map(Arc::new) else { return Ok(None) };
        // Whoever was asked may have put another command in its place.
        let (mut shown, mut stale) = (shown.filter(|trial| trial.edit == edit), false);
        for _ in 0..TRIES {
            let Some(before) = edit.look() else { return Ok(None) };
            let trial = match shown.take() {
                Some(trial) if trial.is_of(&before) => trial,
                other => {
                    stale |= other.is_some();
                    match edit.attempt(self, call, before).await {
                        Some(trial) => trial,
                        None => return Ok(None),
                    }
                }
            };
            let (work, files, turn) = (edit.clone(), call.files.clone(), call.turn.clone());
            let (done, trial) = disk::off_thread(move || {
                let known = |old: &&Snapshot| matches!(files.ledger.standing(old), Standing::Known { .. });
                let unknown: Vec<_> = trial.before.iter().filter(|old| !known(old)).collect();
                let done = files.apply(&turn, &work.changes(&trial), false);
                // The model does not know a file because it has replaced some words in it.
                files.ledger.evict(unknown.iter().map(|old| old.path.real.as_path()));
                files.ledger.evict(work.backups.iter().map(|(_, path)| path.real.as_path()));
                (done, trial)
            })
            .await?;
            match done {
                Ok(()) => return Ok(Some(trial.output(call, stale))),
                Err(WriteFailure::Changed { .. } | WriteFailure::Exists { .. }) => shown = Some(trial),
                Err(failure) => return Err(failure.into()),
            }
        }
        Ok(None)
    }
}

impl Trial {
    fn is_of(&self, now: &[Snapshot]) -> bool {
        self.before.len() == now.len()
            && self.before.iter().zip(now).all(|(old, new)| old.path == new.path && old.bytes == new.bytes)
    }

    fn difference(&self) -> String {
        let mut shown = String::new();
        for (old, new) in self.before.iter().zip(&self.after) {
            let path = old.path.written.display();
            match old.bytes == *new {
                true => shown.push_str(&format!("{path}: nothing would change\n")),
                false => {
                    let lines = text::unified_bytes(&old.bytes, new, DIFF_LINES);
                    shown.push_str(&format!("--- {path}\n+++ {path}\n{lines}"));
                }
            }
        }
        shown
    }

    fn output(self, call: &Call, stale: bool) -> Output {
        let mut notes = Vec::new();
        let mut edits = Vec::new();
        for (old, new) in self.before.iter().zip(&self.after) {
            let path = old.path.written.display();
            if old.bytes == *new {
                notes.push(format!("nothing changed in {path}"));
                continue;
            }
            notes.push(format!("edited {path}"));
            edits.push(Changed {
                r#type: "update",
                file_path: old.path.written.clone(),
                structured_patch: match may_be_shown(&call.policy, &old.path) {
                    true => text::hunks_of_bytes(&old.bytes, new),
                    // It was allowed to be written, not to be read.
                    false => Vec::new(),
                },
                changed_by_others: false,
                notes: Vec::new(),
            });
        }
        let kept = self
            .edit
            .backups
            .iter()
            .map(|(_, path)| format!("{} holds what was there", path.written.display()));
        notes.extend(kept);
        if stale {
            let words = "someone else changed the file after the question was shown, so the edit was made anew on what it holds now";
            notes.push(words.to_owned());
        }
        let (stdout, stderr) = (plain(&self.stdout, ""), plain(&self.stderr, ""));
        Output {
            text: format!("{stdout}{stderr}"),
            stdout,
            stderr,
            exit_code: Some(0),
            cwd: call.cwd().to_owned(),
            confinement: "tried on copies, then written as an edit".to_owned(),
            simulated_edit: Some(edits),
            notes,
            ..Output::default()
        }
    }
}

/// A path as one below some folder; nothing if it leads up.
fn below_a_folder(word: &str) -> Option<PathBuf> {
    let mut below = PathBuf::new();
    for component in Path::new(word).components() {
        match component {
            Component::Normal(name) => below.push(name),
            Component::CurDir | Component::RootDir => {}
            Component::ParentDir | Component::Prefix(_) => return None,
        }
    }
    Some(below).filter(|below| !below.as_os_str().is_empty())
}

/// How many things other than folders there are.
fn files_below(folder: &Path) -> Option<usize> {
    let mut count = 0;
    for entry in fs::read_dir(folder).ok()? {
        let entry = entry.ok()?;
        count += if entry.file_type().ok()?.is_dir() { files_below(&entry.path())? } else { 1 };
    }
    Some(count)
}
