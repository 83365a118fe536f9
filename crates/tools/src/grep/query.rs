//! What is looked for: the pattern, and which files of a folder count. Every mistake is one clear error.

use grep_regex::{ErrorKind, RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder};
use gripper_runtime::{ErrorCode, ToolError};
use ignore::{WalkBuilder, overrides::OverrideBuilder, types::TypesBuilder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Input;
use crate::walk::{self, Root};

/// The most memory that one file may take while it is searched: with `multiline` all of it is held.
const MOST_HEAP: usize = 64 * 1024 * 1024;
/// The most memory of a compiled pattern.
const MOST_PATTERN: usize = 32 * 1024 * 1024;
const NEAR_TYPES: usize = 3;

/// What a result shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The lines that match.
    Content,
    /// The paths of files with a match.
    #[default]
    FilesWithMatches,
    /// How many lines match in each file.
    Count,
}

/// A search, prepared.
pub struct Query {
    /// The pattern.
    pub matcher: RegexMatcher,
    /// What results show.
    pub mode: Mode,
    pub(super) only_matching: bool,
    line_numbers: bool,
    multiline: bool,
    before: usize,
    after: usize,
}

impl Query {
    /// Prepares the search that a call asks for.
    pub fn new(input: &Input) -> Result<Self, ToolError> {
        let both = input.context.unwrap_or(0);
        Ok(Self {
            matcher: matcher(input).map_err(|error| bad_pattern(input, &error))?,
            mode: input.output_mode,
            only_matching: input.only_matching,
            line_numbers: input.line_numbers,
            multiline: input.multiline,
            before: input.before.unwrap_or(both) as usize,
            after: input.after.unwrap_or(both) as usize,
        })
    }

    pub(super) fn has_context(&self) -> bool {
        self.mode == Mode::Content && (self.before > 0 || self.after > 0)
    }

    pub(super) fn searcher(&self) -> Searcher {
        let mut builder = SearcherBuilder::new();
        builder
            .binary_detection(BinaryDetection::quit(0))
            .heap_limit(Some(MOST_HEAP))
            .line_number(self.mode == Mode::Content && self.line_numbers)
            .multi_line(self.multiline);
        if self.mode == Mode::Content {
            builder.before_context(self.before).after_context(self.after);
        }
        builder.build()
    }
}

fn matcher(input: &Input) -> Result<RegexMatcher, grep_regex::Error> {
    matcher_of(&input.pattern, input.ignore_case, input.multiline)
}

fn matcher_of(pattern: &str, ignore_case: bool, multiline: bool) -> Result<RegexMatcher, grep_regex::Error> {
    let mut builder = RegexMatcherBuilder::new();
    builder.multi_line(true).case_insensitive(ignore_case).size_limit(MOST_PATTERN);
    if multiline {
        builder.dot_matches_new_line(true);
    } else {
        builder.line_terminator(Some(b'\n'));
    }
    builder.build(pattern)
}

fn bad_pattern(input: &Input, error: &grep_regex::Error) -> ToolError {
    let message = if let ErrorKind::NotAllowed(_) = error.kind() {
        "the pattern contains a line break, and lines are searched one by one: \
         set multiline to true to match across lines"
            .to_owned()
    } else {
        // The matcher wraps the pattern, which would put the caret in the wrong place.
        let plain = regex_syntax::ast::parse::Parser::new().parse(&input.pattern).err();
        let shown = plain.map_or_else(|| error.to_string(), |plain| plain.to_string());
        let hint = escaped(&input.pattern).map_or_else(String::new, |escaped| {
            format!("\nif the braces are meant as they stand, use: {escaped}")
        });
        format!("the pattern is not a valid regular expression: {shown}{hint}")
    };
    ToolError::new(ErrorCode::InvalidInput, message)
}

/// A pattern that fails because of braces, with the braces escaped; where nothing else in it looks like a
/// regular expression, parentheses too.
fn escaped(pattern: &str) -> Option<String> {
    let plain = !pattern.contains(['\\', '.', '*', '+', '?', '^', '$', '|', '[', ']']);
    let mut text = String::new();
    let mut after_backslash = false;
    for letter in pattern.chars() {
        let special = matches!(letter, '{' | '}') || (plain && matches!(letter, '(' | ')'));
        if special && !after_backslash {
            text.push('\\');
        }
        after_backslash = letter == '\\' && !after_backslash;
        text.push(letter);
    }
    let braces = pattern.contains(['{', '}']);
    (braces && matcher_of(&text, false, true).is_ok()).then_some(text)
}

/// The walk through a folder: ignore files count as for ripgrep, then globs and types.
pub(super) fn walk(root: &Root, input: &Input) -> Result<WalkBuilder, ToolError> {
    let mut builder = walk::builder(root, true);
    if let Some(globs) = &input.glob {
        let bad = |error: ignore::Error| {
            let message = format!("glob is not valid: {error}; several are separated by spaces or commas");
            ToolError::new(ErrorCode::InvalidInput, message)
        };
        let mut overrides = OverrideBuilder::new(&root.at.real);
        for glob in split(globs) {
            overrides.add(glob).map_err(bad)?;
        }
        builder.overrides(overrides.build().map_err(bad)?);
    }
    if let Some(names) = &input.r#type {
        let mut types = TypesBuilder::new();
        types.add_defaults();
        let known = types.definitions();
        for name in split(names) {
            if !known.iter().any(|known| known.name() == name) {
                let known: Vec<&str> = known.iter().map(ignore::types::FileTypeDef::name).collect();
                return Err(unknown_type(name, &known));
            }
            types.select(name);
        }
        builder.types(types.build().map_err(|error| {
            ToolError::new(ErrorCode::InvalidInput, format!("type is not valid: {error}"))
        })?);
    }
    Ok(builder)
}

fn unknown_type(name: &str, known: &[&str]) -> ToolError {
    let far = |known: &str| strsim::damerau_levenshtein(known, name);
    let mut near: Vec<&str> = known.to_vec();
    near.sort_by_key(|known| (!known.starts_with(name), far(known)));
    near.truncate(NEAR_TYPES);
    let message = format!(
        "there is no file type called \"{name}\": near ones are {}; or use glob, such as *.{name}",
        near.join(", ")
    );
    ToolError::new(ErrorCode::InvalidInput, message)
}

/// Splits on spaces and commas, but not inside braces.
fn split(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    let apart = move |letter: char| {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && matches!(letter, ' ' | ',')
    };
    list.split(apart).filter(|glob| !glob.is_empty())
}
