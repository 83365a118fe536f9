//! MultiEdit: several replacements in one file, all or none.

use std::path::Path;

use gripper_runtime::{Access, Block, Call, Facts, Place, Tool, ToolError, schema::Problem, tool::Done};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    disk,
    edit::{done, edit_file},
    editing::{self, Changed, Target},
    text::Replacement,
};

/// The tool.
pub struct MultiEdit;

/// What a call carries.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The file, as an absolute path.
    #[schemars(length(min = 1))]
    pub file_path: String,
    /// The replacements, made one after the other.
    #[schemars(length(min = 1))]
    pub edits: Vec<OneEdit>,
}

/// One replacement.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OneEdit {
    /// The text to replace, exactly as the edits before have left it. Empty in the first edit makes a new file.
    pub old_string: String,
    /// The text to put in its place.
    pub new_string: String,
    /// Replace every occurrence instead of the only one.
    #[serde(default)]
    pub replace_all: bool,
}

/// The structured result.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// What changed.
    #[serde(flatten)]
    pub changed: Changed,
    /// How many places were changed.
    pub replacements: usize,
}

impl Tool for MultiEdit {
    const NAME: &'static str = "MultiEdit";
    const DESCRIPTION: &'static str = include_str!("description.md");
    const FACTS: Facts = Facts {
        title: "Edit file in several places",
        search_hint: "several edits changes in one file",
        ..editing::FACTS
    };

    type Input = Input;
    type Output = Output;

    fn examples() -> Vec<Value> {
        let edits = json!([
            {"old_string": "fn old(", "new_string": "fn new("},
            {"old_string": "old(", "new_string": "new(", "replace_all": true},
        ]);
        vec![json!({"file_path": "/project/src/main.rs", "edits": edits})]
    }

    fn check(&self, input: &Input) -> Vec<Problem> {
        disk::path_problems("/file_path", &input.file_path)
    }

    fn access(&self, input: &Input, place: &Place) -> Access {
        editing::access(&input.file_path, place)
    }

    fn summary(&self, input: &Input) -> String {
        format!("edit {} in {} places", input.file_path, input.edits.len())
    }

    fn observable(&self, input: &Input, place: &Place) -> Option<Value> {
        let edit = |edit: &OneEdit| {
            json!({
                "old_string": edit.old_string, "new_string": edit.new_string, "replace_all": edit.replace_all,
            })
        };
        let edits: Vec<Value> = input.edits.iter().map(edit).collect();
        Some(json!({ "file_path": place.absolute(Path::new(&input.file_path)), "edits": edits }))
    }

    async fn run(&self, input: &Input, call: &Call) -> Result<Done<Output>, ToolError> {
        let (target, edits) = (Target::of(call, &input.file_path), input.edits.clone());
        disk::off_thread(move || {
            let edits: Vec<Replacement<'_>> = edits
                .iter()
                .map(|edit| Replacement {
                    old: &edit.old_string,
                    new: &edit.new_string,
                    all: edit.replace_all,
                })
                .collect();
            let (changed, replacements) = target.persist(|| edit_file(&target, &edits))?;
            Ok(Output { changed, replacements }.into())
        })
        .await?
    }

    fn map(&self, output: &Output) -> Vec<Block> {
        vec![Block::text(output.changed.words(&done(&output.changed, output.replacements)))]
    }
}

#[cfg(test)]
mod tests;
