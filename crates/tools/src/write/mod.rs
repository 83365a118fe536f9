//! Write: a whole file.

use std::path::Path;

use gripper_runtime::{
    Access, Block, Call, ErrorCode, Facts, Place, Tool, ToolError,
    files::Change,
    schema::Problem,
    tool::{Done, Hints},
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    disk,
    editing::{self, Attempt, Changed, Target},
    text,
};

/// The tool.
pub struct Write;

/// What a call carries.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The file, as an absolute path.
    #[schemars(length(min = 1))]
    pub file_path: String,
    /// All that the file is to hold.
    pub content: String,
}

impl Tool for Write {
    const NAME: &'static str = "Write";
    const DESCRIPTION: &'static str = include_str!("description.md");
    const FACTS: Facts = Facts {
        title: "Write file",
        aliases: &["FileWrite", "Replace", "write_file"],
        search_hint: "write create save new file content",
        hints: Hints { idempotent: true, ..Hints::CHANGES },
        ..editing::FACTS
    };

    type Input = Input;
    type Output = Changed;

    fn examples() -> Vec<Value> {
        vec![json!({"file_path": "/project/notes.md", "content": "# Notes\n"})]
    }

    fn check(&self, input: &Input) -> Vec<Problem> {
        disk::path_problems("/file_path", &input.file_path)
    }

    fn access(&self, input: &Input, place: &Place) -> Access {
        editing::access(&input.file_path, place)
    }

    fn summary(&self, input: &Input) -> String {
        format!("write {}", input.file_path)
    }

    fn observable(&self, input: &Input, place: &Place) -> Option<Value> {
        Some(json!({ "file_path": place.absolute(Path::new(&input.file_path)), "content": input.content }))
    }

    async fn run(&self, input: &Input, call: &Call) -> Result<Done<Changed>, ToolError> {
        let (target, input) = (Target::of(call, &input.file_path), input.clone());
        disk::off_thread(move || Ok(target.persist(|| write(&target, &input.content))?.into())).await?
    }

    fn map(&self, output: &Changed) -> Vec<Block> {
        let path = output.file_path.display();
        let done = match output.r#type {
            "create" => format!("created {path}"),
            _ if output.structured_patch.is_empty() => format!("{path} holds exactly this already"),
            _ => format!("wrote {path}"),
        };
        vec![Block::text(output.words(&done))]
    }
}

fn write(target: &Target, content: &str) -> Result<Changed, Attempt> {
    let changed = |r#type, structured_patch, notes| Changed {
        r#type,
        file_path: target.path.written.clone(),
        structured_patch,
        changed_by_others: false,
        notes,
    };
    let Some(known) = target.known()? else {
        let bytes = content.as_bytes().to_vec();
        target.apply(Change::Create { path: target.path.clone(), bytes, mode: None }, true)?;
        return Ok(changed("create", text::hunks("", content), target.notes(None)));
    };
    if known.changed.is_some() {
        return Err(target.changed(&known).into());
    }
    let bytes = text::rewrite(&known.file.bytes, content)
        .map_err(|error| ToolError::new(ErrorCode::Failed, error.to_string()))?;
    let mut notes = target.notes(Some(&known));
    if known.partly {
        notes.push("only part of the old content had been read; gripper undo brings it back".to_owned());
    }
    if bytes == known.file.bytes {
        return Ok(changed("update", Vec::new(), notes));
    }
    let patch = text::hunks_of_bytes(&known.file.bytes, &bytes);
    target.apply(Change::Replace { old: known.file, bytes }, true)?;
    Ok(changed("update", patch, notes))
}

#[cfg(test)]
mod tests;
