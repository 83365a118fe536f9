//! Read: a page of a text file, numbered.

mod failure;
mod lines;
pub mod page;

use std::path::{Path, PathBuf};

use gripper_runtime::{
    Access, Block, Call, ErrorCode, Facts, Place, Tool, ToolError,
    schema::Problem,
    tool::{Background, Done, Kind, ResultBound, SessionEffect},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use failure::ReadFailure;
use page::{Limits, Page, Wanted, read_page};

/// The tool.
pub struct Read;

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
}

/// The structured result.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
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
        search_hint: "read show open file text lines",
        kind: Kind::Read,
        bound: ResultBound::SelfBounded,
        background: Background::Always,
        ..Facts::DEFAULT
    };

    type Input = Input;
    type Output = Output;

    fn examples() -> Vec<Value> {
        vec![
            json!({"file_path": "/project/src/main.rs"}),
            json!({"file_path": "/project/a.log", "offset": 5000, "limit": 200}),
        ]
    }

    fn check(&self, input: &Input) -> Vec<Problem> {
        if input.file_path.contains('\0') {
            return vec![Problem::found(
                "/file_path",
                "bad_path",
                "a path without NUL characters",
                "a NUL character",
            )];
        }
        Vec::new()
    }

    fn access(&self, input: &Input, place: &Place) -> Access {
        Access::nothing().reads_path(&place.locate(Path::new(&input.file_path)))
    }

    fn summary(&self, input: &Input) -> String {
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
        Some(json!({ "file_path": path, "offset": input.offset, "limit": input.limit }))
    }

    async fn run(&self, input: &Input, call: &Call) -> Result<Done<Output>, ToolError> {
        let file = call.located(Path::new(&input.file_path));
        let path = file.written.clone();
        let wanted = Wanted { offset: input.offset, limit: input.limit };
        let cancel = call.cancel.clone();
        let work = move || read_page(&file, &wanted, &Limits::default(), &|| cancel.is_cancelled());
        let page = tokio::task::spawn_blocking(work)
            .await
            .map_err(|error| ToolError::new(ErrorCode::Panic, format!("reading stopped: {error}")))?
            .map_err(|failure| explain(&path, failure))?;
        let relative = !Path::new(&input.file_path).is_absolute();
        let effects = vec![SessionEffect::FileSeen { path: path.clone() }];
        Ok(Done { value: output(path, page, relative), effects })
    }

    fn map(&self, output: &Output) -> Vec<Block> {
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

fn output(file_path: PathBuf, page: Page, relative: bool) -> Output {
    Output {
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
fn notices(output: &Output) -> Vec<String> {
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
