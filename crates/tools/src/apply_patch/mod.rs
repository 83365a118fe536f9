//! apply_patch: several files added, changed, moved and deleted by one patch, all or nothing.

pub mod envelope;
pub mod place;

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use gripper_runtime::{
    Access, Block, Call, ErrorCode, Facts, Located, Place, Tool, ToolError,
    files::{Change, Files, Snapshot},
    schema::Problem,
    tool::Done,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    disk,
    editing::{self, Changed},
    text,
};
use envelope::{Hunk, Operation};

/// The tool.
pub struct ApplyPatch;

/// What a call carries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The patch, from `*** Begin Patch` to `*** End Patch`.
    #[serde(alias = "patch")]
    #[schemars(length(min = 1))]
    pub input: String,
}

/// The structured result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Output {
    /// What became of each file, in the order of the patch.
    pub files: Vec<FileOutput>,
}

/// What became of one file.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileOutput {
    /// What changed; `type` is also `delete` or `move` here.
    #[serde(flatten)]
    pub changed: Changed,
    /// Where a moved file is now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<PathBuf>,
}

impl Tool for ApplyPatch {
    const NAME: &'static str = "apply_patch";
    const DESCRIPTION: &'static str = include_str!("description.md");
    const FACTS: Facts = Facts {
        title: "Apply patch",
        aliases: &["ApplyPatch"],
        search_hint: "apply patch diff add delete move several files",
        ..editing::FACTS
    };

    type Input = Input;
    type Output = Output;

    fn examples() -> Vec<Value> {
        let patch = "*** Begin Patch\n*** Update File: src/main.rs\n@@\n-old\n+new\n*** End Patch\n";
        vec![json!({ "input": patch })]
    }

    fn check(&self, input: &Input) -> Vec<Problem> {
        match envelope::parse(&input.input) {
            Err(problem) => {
                vec![Problem::found("/input", "bad_patch", problem.to_string(), "something else there")]
            }
            Ok(operations) => {
                let paths = operations.iter().flat_map(paths);
                paths.flat_map(|path| disk::path_problems("/input", path)).collect()
            }
        }
    }

    fn access(&self, input: &Input, place: &Place) -> Access {
        // A patch that cannot be read was refused before; unknown is never less careful.
        let Ok(operations) = envelope::parse(&input.input) else { return Access::unknown() };
        let located = operations.iter().flat_map(paths).map(|path| place.locate(Path::new(path)));
        located.fold(Access::nothing(), |access, path| access.writes_path(&path).reads_path(&path))
    }

    fn summary(&self, input: &Input) -> String {
        let operations = envelope::parse(&input.input).unwrap_or_default();
        let names: Vec<&str> = operations.iter().flat_map(paths).take(4).collect();
        let more = operations.len().saturating_sub(names.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        format!("patch {}{more}", names.join(", "))
    }

    async fn run(&self, input: &Input, call: &Call) -> Result<Done<Output>, ToolError> {
        let operations = envelope::parse(&input.input)
            .map_err(|problem| ToolError::new(ErrorCode::InvalidInput, problem.to_string()))?;
        let operations: Vec<Placed> = operations.into_iter().map(|one| Placed::of(one, call)).collect();
        let (files, turn) = (call.files.clone(), call.turn.clone());
        disk::off_thread(move || apply(&files, &turn, &operations).map(Done::from)).await?
    }

    fn map(&self, output: &Output) -> Vec<Block> {
        let lines = output.files.iter().map(|file| {
            let path = file.changed.file_path.display();
            let done = match (file.changed.r#type, &file.moved_to) {
                (_, Some(to)) => format!("moved {path} to {}", to.display()),
                ("create", _) => format!("created {path}"),
                ("delete", _) => format!("deleted {path}"),
                _ => format!("edited {path}"),
            };
            file.changed.words(&done)
        });
        vec![Block::text(lines.collect::<Vec<_>>().join("\n"))]
    }
}

fn paths(operation: &Operation) -> Vec<&str> {
    match operation {
        Operation::Add { path, .. } | Operation::Delete { path } => vec![path],
        Operation::Update { path, move_to, .. } => {
            [Some(path), move_to.as_ref()].into_iter().flatten().map(String::as_str).collect()
        }
    }
}

/// An operation with its files as they were judged.
struct Placed {
    path: Located,
    move_to: Option<Located>,
    operation: Operation,
}

impl Placed {
    fn of(operation: Operation, call: &Call) -> Self {
        let mut located = paths(&operation).into_iter().map(|path| call.located(Path::new(path)));
        let nowhere = || Located { written: PathBuf::new(), real: PathBuf::new() };
        let path = located.next().unwrap_or_else(nowhere);
        let move_to = located.next();
        Self { path, move_to, operation }
    }
}

/// Works everything out before the first file is touched. A patch carries what it knows of its files in its
/// own lines, so it need not have read them.
fn apply(files: &Files, turn: &Arc<str>, operations: &[Placed]) -> Result<Output, ToolError> {
    let (mut changes, mut outputs) = (Vec::new(), Vec::new());
    let mut touched = HashSet::new();
    for placed in operations {
        for path in std::iter::once(&placed.path).chain(&placed.move_to) {
            // Two spellings of one file: each change would start from the same old content.
            if !touched.insert(&path.real) {
                let words =
                    format!("{} is in the patch twice: put its changes together", path.written.display());
                return Err(ToolError::new(ErrorCode::InvalidInput, words));
            }
        }
        let (made, output) = placed.work_out()?;
        changes.extend(made);
        outputs.push(output);
    }
    files.apply(turn, &changes, false)?;
    Ok(Output { files: outputs })
}

impl Placed {
    fn work_out(&self) -> Result<(Vec<Change>, FileOutput), ToolError> {
        match &self.operation {
            Operation::Add { content, .. } => {
                let change = Change::Create {
                    path: self.path.clone(),
                    bytes: content.clone().into_bytes(),
                    mode: None,
                };
                Ok((vec![change], self.output("create", text::hunks("", content), Vec::new())))
            }
            Operation::Delete { .. } => {
                self.must_be_no_link()?;
                let old = self.old()?;
                let patch = text::hunks_of_bytes(&old.bytes, b"");
                Ok((vec![Change::Remove { old }], self.output("delete", patch, Vec::new())))
            }
            Operation::Update { hunks, .. } => self.update(hunks),
        }
    }

    fn update(&self, hunks: &[Hunk]) -> Result<(Vec<Change>, FileOutput), ToolError> {
        let old = self.old()?;
        let applied = place::apply(&old.bytes, hunks).map_err(|problem| {
            let words = format!("{}: {problem}; no file was changed", self.path.written.display());
            ToolError::new(ErrorCode::Failed, words)
        })?;
        let patch = text::hunks_of_bytes(&old.bytes, &applied.bytes);
        let output =
            self.output(if self.move_to.is_some() { "move" } else { "update" }, patch, applied.notes);
        let changes = match &self.move_to {
            None => vec![Change::Replace { old, bytes: applied.bytes }],
            Some(to) => {
                self.must_be_no_link()?;
                let mode = Some(old.stamp.permissions());
                let create = Change::Create { path: to.clone(), bytes: applied.bytes, mode };
                vec![create, Change::Remove { old }]
            }
        };
        Ok((changes, output))
    }

    /// Removing what a link leads to would leave the link, which is hardly what anybody means.
    fn must_be_no_link(&self) -> Result<(), ToolError> {
        let path = self.path.written.display();
        match std::fs::read_link(&self.path.written) {
            Err(_) => Ok(()),
            Ok(target) => {
                let words = format!(
                    "{path} is a symbolic link to {}; no file was changed: name the file itself, or change the link \
                     with a command",
                    target.display()
                );
                Err(ToolError::new(ErrorCode::Unsupported, words))
            }
        }
    }

    fn old(&self) -> Result<Snapshot, ToolError> {
        Ok(Snapshot::take(&self.path, editing::MOST_BYTES)?)
    }

    fn output(
        &self,
        r#type: &'static str,
        structured_patch: Vec<text::Hunk>,
        notes: Vec<String>,
    ) -> FileOutput {
        let file_path = self.path.written.clone();
        let changed = Changed { r#type, file_path, structured_patch, changed_by_others: false, notes };
        FileOutput { changed, moved_to: self.move_to.as_ref().map(|to| to.written.clone()) }
    }
}

#[cfg(test)]
mod tests;
