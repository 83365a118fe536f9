//! What the tools that change files have in common: a file is changed only as the model knows it.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use gripper_runtime::{
    Access, Call, ErrorCode, Facts, Located, Place, ToolError,
    files::{Change, Files, OpenFailure, Snapshot, WriteFailure, ledger::Standing},
    tool::{Background, Hints, Interrupt},
};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::text::{self, Hunk};

/// Larger files are not taken into memory to be changed.
pub(crate) const MOST_BYTES: u64 = 512 * 1024 * 1024;
/// Lines of a difference that a message shows.
const DIFF_LINES: usize = 100;
/// How often a change is made anew when somebody else writes at the same moment.
const TRIES: usize = 5;

/// The facts that all of them share.
pub(crate) const FACTS: Facts = Facts {
    // Half a change would be worse than all of it.
    interrupt: Interrupt::Block,
    background: Background::WhenGranted,
    edits_files: true,
    hints: Hints::CHANGES,
    ..Facts::DEFAULT
};

/// The structured result of a change to one file.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Changed {
    /// `create` for a new file, else `update`.
    pub r#type: &'static str,
    /// The file, absolute.
    pub file_path: PathBuf,
    /// What changed, as lines.
    pub structured_patch: Vec<Hunk>,
    /// Someone else had changed other parts of the file since it was read.
    pub changed_by_others: bool,
    /// What the model should know besides.
    pub notes: Vec<String>,
}

impl Changed {
    /// The result in words for the model.
    pub(crate) fn words(&self, done: &str) -> String {
        let mut words = done.to_owned();
        for note in &self.notes {
            words.push_str(&format!("\n({note})"));
        }
        words
    }
}

/// A file that is about to be changed.
pub(crate) struct Target {
    pub(crate) path: Located,
    files: Arc<Files>,
    turn: Arc<str>,
    relative: bool,
}

/// A file as it is and as the model knows it.
pub(crate) struct Known {
    pub(crate) file: Snapshot,
    /// Only part of it was shown.
    pub(crate) partly: bool,
    /// It is another than the model knows, and this is what the model knows, if that is remembered.
    pub(crate) changed: Option<Option<Arc<[u8]>>>,
}

/// What a change of one file touches. Failures show what is in it, so it is read as well.
pub(crate) fn access(path: &str, place: &Place) -> Access {
    let path = place.locate(Path::new(path));
    Access::nothing().writes_path(&path).reads_path(&path)
}

impl Target {
    /// The file that a call names.
    pub(crate) fn of(call: &Call, path: &str) -> Self {
        let path = Path::new(path);
        let relative = !path.is_absolute();
        Self { path: call.located(path), files: call.files.clone(), turn: call.turn.clone(), relative }
    }

    /// The file, if it is there and the model has seen it; `None` if there is none.
    pub(crate) fn known(&self) -> Result<Option<Known>, ToolError> {
        let file = match Snapshot::take(&self.path, MOST_BYTES) {
            Ok(file) => file,
            Err(OpenFailure::NotFound { .. }) => return Ok(None),
            Err(failure) => return Err(failure.into()),
        };
        Ok(Some(match self.files.ledger.standing(&file) {
            Standing::Unread => return Err(self.unread()),
            Standing::Known { partly } => Known { file, partly, changed: None },
            Standing::Changed { before } => Known { file, partly: false, changed: Some(before) },
        }))
    }

    /// The failure that says there is no such file, with names that look alike.
    pub(crate) fn missing(&self) -> ToolError {
        match Snapshot::take(&self.path, MOST_BYTES) {
            Err(failure) => failure.into(),
            // It has come in the meantime.
            Ok(_) => self.unread(),
        }
    }

    fn unread(&self) -> ToolError {
        let path = self.path.written.display();
        let words = format!(
            "{path} has not been read yet, and what is not known cannot be changed safely: read it first, then try again"
        );
        ToolError::new(ErrorCode::Failed, words)
            .with(json!({ "reason": "not_read", "path": self.path.written }))
    }

    /// The failure that says what someone else has changed.
    pub(crate) fn changed(&self, known: &Known) -> ToolError {
        let path = self.path.written.display();
        let mut words = format!(
            "{path} is not what it was when it was last read, so nothing was written: read it again, then try again"
        );
        if let Some(Some(before)) = &known.changed {
            let difference = text::unified_bytes(before, &known.file.bytes, DIFF_LINES);
            words.push_str(&format!("; this has changed since:\n{difference}"));
        }
        ToolError::new(ErrorCode::Failed, words)
            .with(json!({ "reason": "changed", "path": self.path.written }))
    }

    /// Makes one change, `all` of whose content the model knows.
    pub(crate) fn apply(&self, change: Change, all: bool) -> Result<(), WriteFailure> {
        self.files.apply(&self.turn, &[change], all)
    }

    /// Does `work` again when somebody else was quicker, so that it starts from what they wrote.
    pub(crate) fn persist<T>(&self, mut work: impl FnMut() -> Result<T, Attempt>) -> Result<T, ToolError> {
        for _ in 1..TRIES {
            match work() {
                Ok(done) => return Ok(done),
                Err(Attempt::Write(WriteFailure::Changed { .. } | WriteFailure::Exists { .. })) => {}
                Err(other) => return Err(other.into()),
            }
        }
        work().map_err(ToolError::from)
    }

    /// Notes on where and how it was written.
    pub(crate) fn notes(&self, known: Option<&Known>) -> Vec<String> {
        let mut notes = Vec::new();
        if self.relative {
            notes.push(format!("the relative path was taken as {}", self.path.written.display()));
        }
        if let Some(known) = known {
            if known.file.stamp.links() > 1 {
                notes.push("the file had other names (hard links); they keep the old content".to_owned());
            }
            if known.changed.is_some() {
                let mut note =
                    "someone else has changed other parts of the file since you read it".to_owned();
                if let Some(Some(before)) = &known.changed {
                    let difference = text::unified_bytes(before, &known.file.bytes, DIFF_LINES);
                    note.push_str(&format!(":\n{}", difference.trim_end()));
                }
                notes.push(note);
            }
        }
        notes
    }
}

/// Why one attempt came to nothing.
pub(crate) enum Attempt {
    /// For good.
    Failed(ToolError),
    /// In the write, which may go better the next time.
    Write(WriteFailure),
}

impl From<ToolError> for Attempt {
    fn from(error: ToolError) -> Self {
        Self::Failed(error)
    }
}

impl From<WriteFailure> for Attempt {
    fn from(failure: WriteFailure) -> Self {
        Self::Write(failure)
    }
}

impl From<Attempt> for ToolError {
    fn from(attempt: Attempt) -> Self {
        match attempt {
            Attempt::Failed(error) => error,
            Attempt::Write(failure) => failure.into(),
        }
    }
}
