//! NotebookEdit: one cell of a Jupyter notebook replaced, inserted or deleted.

pub mod cells;
mod json;
mod source;

use std::path::Path;

use gripper_runtime::{
    Access, Block, Call, ErrorCode, Facts, Place, Tool, ToolError, files::Change, schema::Problem, tool::Done,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    disk,
    editing::{self, Attempt, Changed, Target},
    text,
};
use cells::{CellType, Mode};

/// The tool.
pub struct NotebookEdit;

/// What a call carries.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The notebook (.ipynb), as an absolute path.
    #[schemars(length(min = 1))]
    pub notebook_path: String,
    /// The cell: its id, or its index from 0, also as `cell-3`. With `insert` the new cell comes after it, or
    /// first if it is left out.
    pub cell_id: Option<String>,
    /// The whole new source of the cell; not used by `delete`.
    #[serde(default)]
    pub new_source: String,
    /// What the cell holds. Left out, a replaced cell keeps its type and an inserted one is code.
    pub cell_type: Option<CellType>,
    /// What is done; `replace` if left out.
    #[serde(default)]
    pub edit_mode: Mode,
}

/// The structured result.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// What changed in the file.
    #[serde(flatten)]
    pub changed: Changed,
    /// The id of the cell, or `cell-N` if it has none.
    pub cell_id: String,
    /// Where it is, or was, counted from 0.
    pub index: usize,
    /// What it holds.
    pub cell_type: CellType,
    /// The language of the notebook's code.
    pub language: String,
    /// What was done.
    pub edit_mode: Mode,
    /// The source it has now.
    pub new_source: String,
}

impl Tool for NotebookEdit {
    const NAME: &'static str = "NotebookEdit";
    const DESCRIPTION: &'static str = include_str!("description.md");
    const FACTS: Facts = Facts {
        title: "Edit notebook",
        aliases: &["NotebookEditCell"],
        search_hint: "jupyter notebook cell replace insert delete",
        ..editing::FACTS
    };

    type Input = Input;
    type Output = Output;

    fn examples() -> Vec<Value> {
        vec![json!({"notebook_path": "/project/plot.ipynb", "cell_id": "cell-3", "new_source": "print(1)"})]
    }

    fn check(&self, input: &Input) -> Vec<Problem> {
        disk::path_problems("/notebook_path", &input.notebook_path)
    }

    fn access(&self, input: &Input, place: &Place) -> Access {
        editing::access(&input.notebook_path, place)
    }

    fn summary(&self, input: &Input) -> String {
        let cell = input.cell_id.as_deref().unwrap_or("the first cell");
        let place = match input.edit_mode {
            Mode::Replace => format!("edit {cell} of"),
            Mode::Insert if input.cell_id.is_none() => "insert a first cell in".to_owned(),
            Mode::Insert => format!("insert a cell after {cell} in"),
            Mode::Delete => format!("delete {cell} of"),
        };
        format!("{place} {}", input.notebook_path)
    }

    fn observable(&self, input: &Input, place: &Place) -> Option<Value> {
        Some(json!({
            "notebook_path": place.absolute(Path::new(&input.notebook_path)), "cell_id": input.cell_id,
            "new_source": input.new_source, "cell_type": input.cell_type, "edit_mode": input.edit_mode,
        }))
    }

    async fn run(&self, input: &Input, call: &Call) -> Result<Done<Output>, ToolError> {
        let (target, input) = (Target::of(call, &input.notebook_path), input.clone());
        disk::off_thread(move || Ok(target.persist(|| edit(&target, &input))?.into())).await?
    }

    fn map(&self, output: &Output) -> Vec<Block> {
        let verb = match output.edit_mode {
            Mode::Replace => "edited",
            Mode::Insert => "inserted",
            Mode::Delete => "deleted",
        };
        let path = output.changed.file_path.display();
        let done = format!("{verb} cell {} (index {}) of {path}", output.cell_id, output.index);
        vec![Block::text(output.changed.words(&done))]
    }
}

fn edit(target: &Target, input: &Input) -> Result<Output, Attempt> {
    let Some(known) = target.known()? else { return Err(target.missing().into()) };
    if known.changed.is_some() {
        return Err(target.changed(&known).into());
    }
    let Input { cell_id, new_source, cell_type, edit_mode, .. } = input;
    let edited = cells::edit(&known.file.bytes, cell_id.as_deref(), new_source, *cell_type, *edit_mode)
        .map_err(|problem| ToolError::new(ErrorCode::Failed, problem.to_string()))?;
    let changed = Changed {
        r#type: "update",
        file_path: target.path.written.clone(),
        structured_patch: text::hunks_of_bytes(&known.file.bytes, &edited.bytes),
        changed_by_others: false,
        notes: target.notes(Some(&known)),
    };
    target.apply(Change::Replace { old: known.file, bytes: edited.bytes }, false)?;
    Ok(Output {
        changed,
        cell_id: edited.cell_id,
        index: edited.index,
        cell_type: edited.cell_type,
        language: edited.language,
        edit_mode: *edit_mode,
        new_source: new_source.clone(),
    })
}

#[cfg(test)]
mod tests;
