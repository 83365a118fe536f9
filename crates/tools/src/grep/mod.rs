//! Grep: searches file contents in process, with ripgrep's libraries.

mod page;
mod query;
mod search;
mod sink;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use gripper_runtime::{
    Access, Block, Call, ErrorCode, Facts, Place, Tool, ToolError,
    permissions::{Behavior, Sieve},
    schema::Problem,
    tool::{Background, Done, Hints, Kind, ResultBound},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::disk;
use crate::walk::{self, Halt, Limit, Root};

pub use page::{Page, Wanted};
pub use query::{Mode, Query};
pub use search::{Found, LeftOut};
use search::{Task, search};

/// The most characters of results.
const CHARS: usize = 20_000;
/// The most names of files left out that are told.
const NAMED: usize = 3;

/// The tool.
pub struct Grep {
    /// How long a search may take; then what was found until then is the result.
    pub budget: Duration,
}

impl Default for Grep {
    fn default() -> Self {
        Self { budget: Duration::from_secs(40) }
    }
}

/// What a call carries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The regular expression to look for (Rust syntax; a literal brace is written \{).
    #[schemars(length(min = 1))]
    pub pattern: String,
    /// The file or folder to search, as an absolute path; the working directory if left out.
    #[schemars(length(min = 1))]
    pub path: Option<String>,
    /// Only files that fit: "*.rs", "src/**/*.{ts,tsx}", "!*.min.js". Several are separated by spaces or commas;
    /// one with a slash starts at `path`.
    pub glob: Option<String>,
    /// Only files of a type, such as rust, py, js or go.
    pub r#type: Option<String>,
    /// What is returned: the paths of files with a match, the matching lines, or their number for each file.
    #[serde(default)]
    pub output_mode: Mode,
    /// Ignore case.
    #[serde(default, rename = "-i")]
    pub ignore_case: bool,
    /// Show line numbers; with content only.
    #[serde(default = "yes", rename = "-n")]
    pub line_numbers: bool,
    /// Lines to show after each match; with content only.
    #[serde(rename = "-A")]
    pub after: Option<u32>,
    /// Lines to show before each match; with content only.
    #[serde(rename = "-B")]
    pub before: Option<u32>,
    /// Lines to show on both sides of each match; with content only.
    #[serde(rename = "-C")]
    pub context: Option<u32>,
    /// Show only what matches of each line; with content only.
    #[serde(default, rename = "-o")]
    pub only_matching: bool,
    /// Let matches span lines, and the dot match line breaks.
    #[serde(default)]
    pub multiline: bool,
    /// The most results: lines, files or counts, depending on output_mode. 0 sets no limit.
    pub head_limit: Option<u64>,
    /// How many results to skip, to go on where an earlier call stopped.
    #[serde(default)]
    pub offset: u64,
}

fn yes() -> bool {
    true
}

/// The structured result.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// What the results show.
    pub mode: Mode,
    /// How many files they are from.
    pub num_files: usize,
    /// Those files.
    pub filenames: Vec<String>,
    /// The lines, or the counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// How many lines there are in `content`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_lines: Option<usize>,
    /// How many lines match, as far as shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub num_matches: Option<u64>,
    /// The limit that cut the results off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied_limit: Option<usize>,
    /// How many results were skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub applied_offset: Option<u64>,
    /// Where to go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<usize>,
    /// What else is to be known.
    pub notes: Vec<String>,
}

impl Tool for Grep {
    const NAME: &'static str = "Grep";
    const DESCRIPTION: &'static str = include_str!("description.md");
    const FACTS: Facts = Facts {
        title: "Search contents",
        aliases: &["GrepTool"],
        search_hint: "search find text in files regular expression ripgrep",
        kind: Kind::Search,
        bound: ResultBound::SelfBounded,
        time_limit: Duration::from_secs(60),
        background: Background::Always,
        hints: Hints::READS,
        ..Facts::DEFAULT
    };

    type Input = Input;
    type Output = Output;

    fn examples() -> Vec<Value> {
        vec![
            json!({"pattern": "fn main", "type": "rust"}),
            json!({"pattern": "TODO", "path": "/project/src", "output_mode": "content", "-C": 2, "head_limit": 20}),
        ]
    }

    fn check(&self, input: &Input) -> Vec<Problem> {
        disk::path_problems("/path", input.path.as_deref().unwrap_or_default())
    }

    fn access(&self, input: &Input, place: &Place) -> Access {
        Access::nothing().reads_path(&place.locate(path(input)))
    }

    fn summary(&self, input: &Input) -> String {
        let place = input.path.as_ref().map_or_else(String::new, |path| format!(" in {path}"));
        format!("search for {}{place}", input.pattern)
    }

    fn observable(&self, input: &Input, place: &Place) -> Option<Value> {
        Some(json!({
            "pattern": input.pattern, "path": place.absolute(path(input)), "glob": input.glob,
            "type": input.r#type, "output_mode": input.output_mode,
        }))
    }

    async fn run(&self, input: &Input, call: &Call) -> Result<Done<Output>, ToolError> {
        let root = Root { at: call.located(path(input)), cwd: call.place.cwd.clone() };
        let query = Query::new(input)?;
        let walk = if walk::is_folder(&root.at)? { Some(query::walk(&root, input)?) } else { None };
        let (policy, cancel) = (call.policy.clone(), call.cancel.clone());
        let deadline = Instant::now() + self.budget;
        let limit = input.head_limit.filter(|limit| *limit > 0).map_or(usize::MAX, |limit| limit as usize);
        let wanted = Wanted { offset: input.offset as usize, lines: limit, chars: CHARS };
        let mode = query.mode;
        let searched = root.clone();
        let work = move || {
            let sieve = Sieve::new(&policy, searched.path_use(&searched.at.real));
            // A file that is searched itself is what the call was decided about.
            let judge = |file: &Path| match walk {
                Some(_) => sieve.judge(&searched.path_use(file)),
                None => Behavior::Allow,
            };
            let limit = Limit { cancelled: &|| cancel.is_cancelled(), deadline };
            let task =
                Task { root: &searched, walk: walk.as_ref(), query: &query, judge: &judge, limit: &limit };
            search(&task, wanted)
        };
        let found = disk::off_thread(work).await?;
        if found.halt == Some(Halt::Cancelled) {
            return Err(ToolError::new(ErrorCode::Cancelled, "the search was cancelled"));
        }
        let mut notes = notes(&found, mode, wanted.offset, self.budget);
        if input.path.as_deref().is_some_and(|path| !Path::new(path).is_absolute()) {
            notes.push(format!("the relative path was taken as {}", root.at.written.display()));
        }
        Ok(output(found, mode, wanted, notes).into())
    }

    fn map(&self, output: &Output) -> Vec<Block> {
        let shown = output.content.clone().unwrap_or_else(|| output.filenames.join("\n"));
        vec![Block::text(walk::with_notes(shown, &output.notes))]
    }
}

/// Searches without a call, and so without rules: for comparisons.
pub fn search_all(root: &Root, input: &Input, wanted: Wanted, deadline: Instant) -> Result<Found, ToolError> {
    let (query, walk) = (Query::new(input)?, query::walk(root, input)?);
    let limit = Limit { cancelled: &|| false, deadline };
    let judge = |_: &Path| Behavior::Allow;
    Ok(search(&Task { root, walk: Some(&walk), query: &query, judge: &judge, limit: &limit }, wanted))
}

fn path(input: &Input) -> &Path {
    Path::new(input.path.as_deref().unwrap_or("."))
}

fn output(found: Found, mode: Mode, wanted: Wanted, notes: Vec<String>) -> Output {
    let page = found.page;
    let cut = page.full || found.halt.is_some();
    let lines = mode != Mode::FilesWithMatches;
    Output {
        mode,
        num_files: page.files.len(),
        next_offset: cut.then(|| page.next_offset()),
        applied_limit: (page.full && page.lines == wanted.lines).then_some(wanted.lines),
        applied_offset: (wanted.offset > 0).then_some(wanted.offset as u64),
        num_lines: (mode == Mode::Content).then_some(page.lines),
        num_matches: lines.then_some(page.matches),
        content: lines.then_some(page.text),
        filenames: page.files,
        notes,
    }
}

/// What the model should know besides the results.
fn notes(found: &Found, mode: Mode, offset: usize, budget: Duration) -> Vec<String> {
    let (page, left_out) = (&found.page, &found.left_out);
    let mut notes = Vec::new();
    let (first, last) = (offset + 1, page.next_offset());
    if found.halt.is_some() {
        notes.push(format!(
            "time ran out after {} s, so this is not all: narrow the search with path, glob or type, \
             or go on with offset {last}",
            budget.as_secs()
        ));
    } else if page.full {
        notes.push(format!("results {first} to {last}; if there are more, they begin at offset {last}"));
    } else if page.lines == 0 && page.seen() > 0 {
        notes.push(format!("nothing at offset {offset}: there are {} results", page.seen()));
    } else if page.lines == 0 {
        notes.push("no matches".to_owned());
    } else if offset > 0 {
        notes.push(format!("results {first} to {last} of {last}"));
    } else if mode == Mode::FilesWithMatches {
        notes.push(counted(page.files.len(), "file"));
    } else {
        let (matches, files) = (page.matches as usize, page.files.len());
        notes.push(format!("{} in {}", counted(matches, "match"), counted(files, "file")));
    }
    if left_out.binary {
        notes.push("the file is binary, so it was not searched".to_owned());
    }
    if left_out.denied > 0 {
        let files = counted(left_out.denied, "file");
        notes.push(format!("{files} left out: a rule forbids reading them"));
    }
    if let Some(first) =
        left_out.asked.get(..left_out.asked.len().min(NAMED)).filter(|asked| !asked.is_empty())
    {
        let files = counted(left_out.asked.len(), "file");
        let names = first.join(", ");
        notes.push(format!(
            "{files} left out that may hold secrets or need a yes ({names}): name one as path to search it"
        ));
    }
    if left_out.failed > 0 {
        let what = counted(left_out.failed, "place");
        let first =
            left_out.failure.as_ref().map_or_else(String::new, |first| format!(", the first: {first}"));
        notes.push(format!("{what} could not be read{first}"));
    }
    notes
}

fn counted(number: usize, what: &str) -> String {
    let ending = match number {
        1 => "",
        _ if what.ends_with("ch") => "es",
        _ => "s",
    };
    format!("{number} {what}{ending}")
}

#[cfg(test)]
mod tests;
