//! Read: a page of a text file, numbered; pictures, PDF documents and notebooks as models take them.

mod failure;
mod foreign;
mod lines;
pub mod page;
mod seen;

use std::{
    fmt,
    path::{Path, PathBuf},
};

use gripper_runtime::{
    Access, Block, Call, ErrorCode, Facts, Place, Tool, ToolError,
    schema::Problem,
    tool::{Background, Done, Hints, Kind, ResultBound, SessionEffect},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::disk;
use crate::worker::WorkerCommand;
use failure::ReadFailure;
pub use foreign::Foreign;
use page::{Page, Wanted};
use seen::Shown;

/// The tool.
#[derive(Default)]
pub struct Read {
    worker: Option<WorkerCommand>,
}

impl Read {
    /// With the way to start a worker for what is not text.
    pub fn new(worker: Option<WorkerCommand>) -> Self {
        Self { worker }
    }
}

/// What a call carries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The file, as an absolute path.
    #[schemars(length(min = 1))]
    pub file_path: String,
    /// The first line wanted, counting from 1.
    #[schemars(range(min = 1))]
    pub offset: Option<u64>,
    /// How many lines are wanted.
    #[schemars(range(min = 1))]
    pub limit: Option<u64>,
    /// Which pages of a PDF are wanted: "3", "1-5", or "7-" for all from page 7 on.
    pub pages: Option<String>,
}

/// The structured result.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum Output {
    /// Lines of text.
    Text(Text),
    /// What a worker made of a file that is not text.
    Foreign(Foreign),
    /// Nothing new.
    Unchanged(Unchanged),
}

/// The lines are those that an earlier read has shown.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Unchanged {
    /// What kind of content it is.
    pub r#type: &'static str,
    /// The file, absolute.
    pub file_path: PathBuf,
    /// The first line asked for.
    pub start_line: u64,
}

impl fmt::Display for Unchanged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.file_path.display();
        write!(f, "(unchanged since you last read it: what you were shown of {path} still holds)")
    }
}

/// Lines of a text file.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Text {
    /// What kind of content it is.
    pub r#type: &'static str,
    /// The file, absolute.
    pub file_path: PathBuf,
    /// The numbered lines.
    pub content: String,
    /// How many lines there are in `content`.
    pub num_lines: u64,
    /// The number of the first of them.
    pub start_line: u64,
    /// How many the file has; absent where counting would mean reading very much more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_lines: Option<u64>,
    /// How the file is encoded.
    pub encoding: &'static str,
    /// Lines that were shortened.
    pub shortened_lines: u64,
    /// Where to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
    /// The path was relative, and this is what it was taken for.
    pub relative: bool,
}

impl Tool for Read {
    const NAME: &'static str = "Read";
    const DESCRIPTION: &'static str = include_str!("description.md");
    const FACTS: Facts = Facts {
        title: "Read file",
        search_hint: "read show open file text lines image picture pdf notebook",
        kind: Kind::Read,
        bound: ResultBound::SelfBounded,
        background: Background::Always,
        hints: Hints::READS,
        ..Facts::DEFAULT
    };

    type Input = Input;
    type Output = Output;

    fn examples() -> Vec<Value> {
        vec![
            json!({"file_path": "/project/src/main.rs"}),
            json!({"file_path": "/project/a.log", "offset": 5000, "limit": 200}),
            json!({"file_path": "/project/paper.pdf", "pages": "1-5"}),
        ]
    }

    fn check(&self, input: &Input) -> Vec<Problem> {
        let problems = disk::path_problems("/file_path", &input.file_path);
        if !problems.is_empty() {
            return problems;
        }
        match &input.pages {
            Some(pages) if foreign::page_range(pages).is_none() => {
                let expected = "pages such as \"3\", \"1-5\" or \"7-\", counted from 1";
                vec![Problem::found("/pages", "bad_range", expected, pages)]
            }
            _ => Vec::new(),
        }
    }

    fn access(&self, input: &Input, place: &Place) -> Access {
        Access::nothing().reads_path(&place.locate(Path::new(&input.file_path)))
    }

    fn summary(&self, input: &Input) -> String {
        if let Some(pages) = &input.pages {
            return format!("read {} pages {pages}", input.file_path);
        }
        match (input.offset, input.limit) {
            (None, None) => format!("read {}", input.file_path),
            (offset, None) => format!("read {} from line {}", input.file_path, offset.unwrap_or(1)),
            (offset, Some(limit)) => {
                let first = offset.unwrap_or(1);
                format!(
                    "read {} lines {first} to {}",
                    input.file_path,
                    first.saturating_add(limit.saturating_sub(1))
                )
            }
        }
    }

    fn observable(&self, input: &Input, place: &Place) -> Option<Value> {
        let path = place.absolute(Path::new(&input.file_path));
        Some(json!({
            "file_path": path, "offset": input.offset, "limit": input.limit, "pages": input.pages,
        }))
    }

    async fn run(&self, input: &Input, call: &Call) -> Result<Done<Output>, ToolError> {
        let file = call.located(Path::new(&input.file_path));
        let path = file.written.clone();
        let wanted = Wanted { offset: input.offset, limit: input.limit };
        let relative = !Path::new(&input.file_path).is_absolute();
        if !foreign::is_expected(input, &path) {
            let (cancel, file, files) = (call.cancel.clone(), file.clone(), call.files.clone());
            let turn = call.turn.clone();
            let work = move || seen::show(&file, &wanted, (&files.ledger, &turn), &|| cancel.is_cancelled());
            match disk::off_thread(work).await? {
                Ok(Shown::Page(page, seen)) => {
                    let value = Output::Text(output(path, page, relative));
                    return Ok(Done::with(value, vec![SessionEffect::FileSeen(seen)]));
                }
                Ok(Shown::Unchanged { first }) => {
                    let value = Unchanged { r#type: "unchanged", file_path: path, start_line: first };
                    return Ok(Output::Unchanged(value).into());
                }
                // A picture or a document may have any name.
                Err(ReadFailure::Binary { .. }) => {}
                Err(failure) => return Err(explain(&path, failure)),
            }
        }
        let loaded = disk::off_thread(move || foreign::load(&file))
            .await?
            .map_err(|failure| explain(&path, failure))?;
        let Done { value, effects, .. } =
            loaded.parse(input, path, self.worker.as_ref(), &call.cancel).await?;
        Ok(Done::with(Output::Foreign(value), effects))
    }

    fn map(&self, output: &Output) -> Vec<Block> {
        let output = match output {
            Output::Text(output) => output,
            Output::Foreign(foreign) => return foreign.blocks(),
            Output::Unchanged(output) => return vec![Block::text(output.to_string())],
        };
        let mut text = output.content.clone();
        for notice in notices(output) {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&format!("({notice})"));
        }
        vec![Block::text(text)]
    }
}

fn output(file_path: PathBuf, page: Page, relative: bool) -> Text {
    Text {
        r#type: "text",
        file_path,
        num_lines: page.lines,
        start_line: page.start_line,
        total_lines: page.total_lines,
        encoding: page.encoding,
        shortened_lines: page.shortened_lines,
        next_offset: page.next_offset,
        content: page.text,
        relative,
    }
}

/// What the model should know besides the lines.
fn notices(output: &Text) -> Vec<String> {
    let mut notices = Vec::new();
    if output.relative {
        notices.push(format!("the relative path was taken as {}", output.file_path.display()));
    }
    if output.num_lines == 0 {
        notices.push("the file is empty".to_owned());
    }
    if let Some(next) = output.next_offset {
        let last = output.start_line + output.num_lines.saturating_sub(1);
        let total = output.total_lines.map_or_else(|| "more".to_owned(), |total| total.to_string());
        notices.push(format!("lines {} to {last} of {total}; go on with offset {next}", output.start_line));
    }
    if output.shortened_lines > 0 {
        notices.push(format!("{} long lines were shortened", output.shortened_lines));
    }
    if !matches!(output.encoding, "UTF-8") {
        notices.push(format!("decoded from {}", output.encoding));
    }
    notices
}

fn explain(path: &Path, failure: ReadFailure) -> ToolError {
    let code = match &failure {
        ReadFailure::Open(failure) => failure.code(),
        ReadFailure::Binary { .. } => ErrorCode::Unsupported,
        ReadFailure::PastEnd { .. } => ErrorCode::InvalidInput,
        ReadFailure::TooLarge { .. } => ErrorCode::TooLarge,
        ReadFailure::Cancelled => ErrorCode::Cancelled,
        ReadFailure::Io { .. } => ErrorCode::Io,
    };
    ToolError::new(code, failure.to_string()).with(json!({ "path": path }))
}

#[cfg(test)]
mod tests;
