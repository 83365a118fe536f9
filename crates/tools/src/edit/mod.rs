//! Edit: one text in a file replaced by another, every other byte left as it is.

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
    text::{NoMatch, Replacement, hunks, replace},
};

/// The tool.
pub struct Edit;

/// What a call carries.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The file, as an absolute path.
    #[schemars(length(min = 1))]
    pub file_path: String,
    /// The text to replace, exactly as it stands in the file. Empty makes a new file.
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
    /// The text that was replaced.
    pub old_string: String,
    /// The text in its place.
    pub new_string: String,
    /// How many places were changed.
    pub replacements: usize,
}

impl Tool for Edit {
    const NAME: &'static str = "Edit";
    const DESCRIPTION: &'static str = include_str!("description.md");
    const FACTS: Facts = Facts {
        title: "Edit file",
        aliases: &["FileEdit", "edit_file"],
        search_hint: "edit change replace text in file",
        ..editing::FACTS
    };

    type Input = Input;
    type Output = Output;

    fn examples() -> Vec<Value> {
        vec![
            json!({"file_path": "/project/src/main.rs", "old_string": "let a = 1;", "new_string": "let a = 2;"}),
        ]
    }

    fn check(&self, input: &Input) -> Vec<Problem> {
        let mut problems = disk::path_problems("/file_path", &input.file_path);
        if input.old_string == input.new_string {
            let expected = "another text than old_string";
            problems.push(Problem::found("/new_string", "no_change", expected, "the same text"));
        }
        problems
    }

    fn access(&self, input: &Input, place: &Place) -> Access {
        editing::access(&input.file_path, place)
    }

    fn summary(&self, input: &Input) -> String {
        format!("edit {}", input.file_path)
    }

    fn observable(&self, input: &Input, place: &Place) -> Option<Value> {
        Some(json!({
            "file_path": place.absolute(Path::new(&input.file_path)), "old_string": input.old_string,
            "new_string": input.new_string, "replace_all": input.replace_all,
        }))
    }

    async fn run(&self, input: &Input, call: &Call) -> Result<Done<Output>, ToolError> {
        let (target, input) = (Target::of(call, &input.file_path), input.clone());
        disk::off_thread(move || {
            let edit = Replacement { old: &input.old_string, new: &input.new_string, all: input.replace_all };
            let (changed, replacements) = target.persist(|| edit_file(&target, &[edit]))?;
            let (old_string, new_string) = (input.old_string, input.new_string);
            Ok(Output { changed, old_string, new_string, replacements }.into())
        })
        .await?
    }

    fn map(&self, output: &Output) -> Vec<Block> {
        vec![Block::text(output.changed.words(&done(&output.changed, output.replacements)))]
    }
}

/// What was done, in words.
pub(crate) fn done(changed: &Changed, replacements: usize) -> String {
    let path = changed.file_path.display();
    match (changed.r#type, replacements) {
        ("create", _) => format!("created {path}"),
        (_, 1) => format!("edited {path}"),
        (_, count) => format!("edited {path} in {count} places"),
    }
}

/// Makes replacements in a file the model knows, all or none. The first may make the file.
pub(crate) fn edit_file(target: &Target, edits: &[Replacement<'_>]) -> Result<(Changed, usize), Attempt> {
    let known = target.known()?;
    let creates = edits.first().is_some_and(|edit| edit.old.is_empty());
    match known {
        None if creates => create(target, edits),
        None => Err(target.missing().into()),
        Some(known) if creates && !known.file.bytes.is_empty() => {
            let words = format!(
                "{} exists and is not empty, and an empty old_string makes a new file: give the text to replace, or \
                 use Write to put other content in its place",
                target.path.written.display()
            );
            Err(ToolError::new(ErrorCode::InvalidInput, words).into())
        }
        Some(known) => {
            let (start, rest) = begun(&known.file.bytes, edits, creates);
            let replaced = match replace(start, rest) {
                Ok(replaced) => replaced,
                Err(_) if known.changed.is_some() => return Err(target.changed(&known).into()),
                Err(no_match) => return Err(explain(&no_match, edits.len(), usize::from(creates)).into()),
            };
            // What the model wants to change must be what it saw.
            if let Some(Some(before)) = &known.changed
                && replace(before, rest).is_err()
            {
                return Err(target.changed(&known).into());
            }
            let mut notes = target.notes(Some(&known));
            notes.extend(replaced.notes);
            let changed = Changed {
                r#type: "update",
                file_path: target.path.written.clone(),
                structured_patch: replaced.hunks,
                changed_by_others: known.changed.is_some(),
                notes,
            };
            target.apply(Change::Replace { old: known.file, bytes: replaced.bytes }, false)?;
            Ok((changed, replaced.count + usize::from(creates)))
        }
    }
}

/// The content that the first edit makes, if it makes any, and the edits that are left.
fn begun<'e, 'a>(
    bytes: &'e [u8],
    edits: &'e [Replacement<'a>],
    creates: bool,
) -> (&'e [u8], &'e [Replacement<'a>]) {
    match edits.split_first() {
        Some((first, rest)) if creates => (first.new.as_bytes(), rest),
        _ => (bytes, edits),
    }
}

fn create(target: &Target, edits: &[Replacement<'_>]) -> Result<(Changed, usize), Attempt> {
    let (start, rest) = begun(&[], edits, true);
    let replaced = replace(start, rest).map_err(|no_match| explain(&no_match, edits.len(), 1))?;
    let changed = Changed {
        r#type: "create",
        file_path: target.path.written.clone(),
        structured_patch: hunks("", &String::from_utf8_lossy(&replaced.bytes)),
        changed_by_others: false,
        notes: target.notes(None),
    };
    target.apply(Change::Create { path: target.path.clone(), bytes: replaced.bytes, mode: None }, true)?;
    Ok((changed, replaced.count + 1))
}

/// Says which of several edits does not fit, and why.
fn explain(no_match: &NoMatch, total: usize, skipped: usize) -> ToolError {
    let number = no_match.edit + skipped + 1;
    let words = match total {
        1 => no_match.to_string(),
        _ => format!("edit {number} of {total}: {no_match}; none of the edits was made"),
    };
    ToolError::new(ErrorCode::Failed, words).with(json!({ "edit": number }))
}

#[cfg(test)]
mod tests;
