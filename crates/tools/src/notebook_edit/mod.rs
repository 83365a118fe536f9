//! NotebookEdit: one cell of a Jupyter notebook replaced, inserted or deleted.

pub mod cells;
mod json;
mod source;

use schemars::JsonSchema;
use serde::Deserialize;

use cells::{CellType, Mode};

/// What a call carries.
#[derive(Debug, Deserialize, JsonSchema)]
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

#[cfg(test)]
mod tests;
