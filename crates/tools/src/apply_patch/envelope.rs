//! The patch envelope: which files a patch adds, deletes, changes and moves.
//!
//! What models wrap around it or get slightly wrong is forgiven where it cannot change the meaning: code
//! fences, here-documents, CRLF, blank lines between sections, empty context lines without their blank.
//! A missing end is an error, since the patch may have been cut.

use std::collections::HashMap;

const BEGIN: &str = "*** Begin Patch";
const END: &str = "*** End Patch";
const ADD: &str = "*** Add File:";
const DELETE: &str = "*** Delete File:";
const UPDATE: &str = "*** Update File:";
const MOVE: &str = "*** Move to:";
const END_OF_FILE: &str = "*** End of File";

/// What a patch does to one file. Paths are as written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// A new file.
    Add {
        /// Where.
        path: String,
        /// Its text; every line ends with a line feed.
        content: String,
    },
    /// A file goes.
    Delete {
        /// Which.
        path: String,
    },
    /// A file is changed, moved, or both.
    Update {
        /// Which.
        path: String,
        /// Its new path.
        move_to: Option<String>,
        /// The changes, in the order of the file; empty only if it is moved.
        hunks: Vec<Hunk>,
    },
}

/// A change at one place of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Hunk {
    /// Lines that come before it in the file, outermost first, such as the header of a class.
    pub contexts: Vec<String>,
    /// The lines of the place, without their prefixes.
    pub lines: Vec<HunkLine>,
    /// Whether the place is the end of the file.
    pub at_end: bool,
    /// Where the hunk begins in the patch, counted from 1.
    pub line: usize,
}

/// A line of a hunk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HunkLine {
    /// There before and after.
    Keep(String),
    /// There before only.
    Remove(String),
    /// There after only.
    Add(String),
}

/// Why a text is no patch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the patch: {problem}")]
pub struct EnvelopeProblem {
    /// Where, counted from 1.
    pub line: usize,
    /// What was found and what was expected.
    pub problem: String,
}

/// A line of the patch and its number.
type Numbered<'a> = (usize, &'a str);

fn problem<T>(line: usize, problem: impl Into<String>) -> Result<T, EnvelopeProblem> {
    Err(EnvelopeProblem { line, problem: problem.into() })
}

/// Reads a patch. A file may occur once only, as what is changed or as where something is moved, so that the
/// order of sections does not matter.
pub fn parse(patch: &str) -> Result<Vec<Operation>, EnvelopeProblem> {
    let lines: Vec<Numbered<'_>> =
        (1..).zip(patch.split('\n').map(|line| line.strip_suffix('\r').unwrap_or(line))).collect();
    let mut rest = unwrapped(&lines)?;
    let mut operations = Vec::new();
    let mut seen: HashMap<String, usize> = HashMap::new();
    while let [(number, line), after @ ..] = rest {
        rest = after;
        if line.trim().is_empty() {
            continue;
        }
        let operation = if let Some(path) = header(line, ADD, *number)? {
            Operation::Add { path, content: added(&mut rest)? }
        } else if let Some(path) = header(line, DELETE, *number)? {
            Operation::Delete { path }
        } else if let Some(path) = header(line, UPDATE, *number)? {
            update(path, *number, &mut rest)?
        } else {
            return problem(
                *number,
                format!("expected `{ADD} PATH`, `{DELETE} PATH` or `{UPDATE} PATH`, found {}", shown(line)),
            );
        };
        let (path, target) = match &operation {
            Operation::Add { path, .. } | Operation::Delete { path } => (path, None),
            Operation::Update { path, move_to, .. } => (path, move_to.as_ref()),
        };
        for path in [Some(path), target].into_iter().flatten() {
            if let Some(first) = seen.insert(path.clone(), *number) {
                return problem(
                    *number,
                    format!(
                        "{path} occurs already in the section at line {first}: put all changes of a file into one section, in the order of the file"
                    ),
                );
            }
        }
        operations.push(operation);
    }
    if operations.is_empty() {
        return problem(lines.len(), "the patch has no sections: it changes nothing");
    }
    Ok(operations)
}

/// The lines between the marks of the envelope. Outside there may be what it was quoted with, but nothing
/// that could be meant as a part of it.
fn unwrapped<'a, 'b>(lines: &'b [Numbered<'a>]) -> Result<&'b [Numbered<'a>], EnvelopeProblem> {
    let is_quoting = |line: &str| line.is_empty() || line.starts_with("```") || line.contains("<<");
    let Some(begin) = lines.iter().position(|(_, line)| !is_quoting(line.trim())) else {
        return problem(1, format!("expected `{BEGIN}`, found nothing"));
    };
    if lines[begin].1.trim() != BEGIN {
        return problem(begin + 1, format!("expected `{BEGIN}`, found {}", shown(lines[begin].1)));
    }
    let inside = &lines[begin + 1..];
    let Some(end) = inside.iter().position(|(_, line)| line.trim_end() == END) else {
        return problem(lines.len(), format!("expected `{END}`, found the end of the text: was it cut?"));
    };
    let tag = lines[..begin].iter().find_map(|(_, line)| line.split_once("<<")).map(|(_, tag)| tag);
    let tag = tag.map(|tag| {
        tag.trim_matches(|character: char| "-'\"\\".contains(character) || character.is_whitespace())
    });
    for (number, line) in &inside[end + 1..] {
        if !(line.trim().is_empty() || line.starts_with("```") || Some(line.trim()) == tag) {
            return problem(*number, format!("expected nothing after `{END}`, found {}", shown(line)));
        }
    }
    Ok(&inside[..end])
}

fn header(line: &str, mark: &str, number: usize) -> Result<Option<String>, EnvelopeProblem> {
    match line.strip_prefix(mark).map(str::trim) {
        Some("") => problem(number, format!("expected a path after `{mark}`")),
        path => Ok(path.map(str::to_owned)),
    }
}

/// The content of a new file: lines with `+`, up to the next section.
fn added(rest: &mut &[Numbered<'_>]) -> Result<String, EnvelopeProblem> {
    let mut content = String::new();
    let mut blank = 0;
    while let [(number, line), after @ ..] = *rest {
        if let Some(line) = line.strip_prefix('+') {
            content.extend(std::iter::repeat_n('\n', blank));
            blank = 0;
            content.push_str(line);
            content.push('\n');
        } else if line.trim().is_empty() {
            // Only within the content an empty line is a line of it.
            blank += 1;
        } else if line.starts_with("*** ") {
            break;
        } else {
            return problem(
                *number,
                format!(
                    "expected a line of the new file after `+`, or the next section, found {}",
                    shown(line)
                ),
            );
        }
        *rest = after;
    }
    Ok(content)
}

fn update(path: String, number: usize, rest: &mut &[Numbered<'_>]) -> Result<Operation, EnvelopeProblem> {
    let mut move_to = None;
    if let [(number, line), after @ ..] = *rest {
        move_to = header(line, MOVE, *number)?;
        if move_to.is_some() {
            *rest = after;
        }
    }
    let mut hunks = Vec::new();
    while let Some(hunk) = hunk(rest)? {
        hunks.push(hunk);
    }
    if hunks.is_empty() && move_to.is_none() {
        return problem(
            number,
            format!("expected changes of {path} after this line, each beginning with `@@`"),
        );
    }
    Ok(Operation::Update { path, move_to, hunks })
}

/// The next hunk of a section, if there is one.
fn hunk(rest: &mut &[Numbered<'_>]) -> Result<Option<Hunk>, EnvelopeProblem> {
    while let [(_, line), after @ ..] = *rest
        && line.trim().is_empty()
    {
        *rest = after;
    }
    let [(first, line), ..] = *rest else { return Ok(None) };
    if line.starts_with("*** ") {
        return Ok(None);
    }
    let mut hunk = Hunk { line: *first, ..Hunk::default() };
    // Empty lines without a prefix are context, but at the end of a hunk they only set sections apart.
    let mut blank = 0;
    while let [(number, line), after @ ..] = *rest {
        if line.trim_end() == END_OF_FILE {
            hunk.at_end = true;
            *rest = after;
            break;
        }
        let started = !hunk.lines.is_empty();
        if line.starts_with("*** ") || (started && line.starts_with("@@")) {
            break;
        }
        *rest = after;
        if line.trim_start_matches('\t').is_empty() {
            blank += 1;
            continue;
        }
        hunk.lines.extend(std::iter::repeat_n(HunkLine::Keep(String::new()), blank));
        blank = 0;
        match line.split_at_checked(1) {
            Some((" ", text)) => hunk.lines.push(HunkLine::Keep(text.to_owned())),
            Some(("-", text)) => hunk.lines.push(HunkLine::Remove(text.to_owned())),
            Some(("+", text)) => hunk.lines.push(HunkLine::Add(text.to_owned())),
            Some(("@", _)) if line.starts_with("@@") => hunk.contexts.extend(context(line)),
            // A remark of diff programs, which have no other way to say it.
            Some(("\\", _)) => {}
            _ => {
                return problem(
                    *number,
                    format!(
                        "expected a line that begins with a blank, `+`, `-`, `@@` or `***`, found {}",
                        shown(line)
                    ),
                );
            }
        }
    }
    if !hunk.lines.iter().any(|line| !matches!(line, HunkLine::Keep(_))) {
        return problem(hunk.line, "the hunk changes nothing: expected lines that begin with `+` or `-`");
    }
    Ok(Some(hunk))
}

/// The line that `@@` names. Line numbers as diff programs give them name none.
fn context(line: &str) -> Option<String> {
    let named = line.strip_prefix("@@")?;
    let named = named.strip_prefix(' ').unwrap_or(named).trim_end();
    let named = named.strip_suffix("@@").map_or(named, str::trim_end);
    let is_numbers = named.starts_with('-') && named.contains(" +");
    (!named.is_empty() && !is_numbers).then(|| named.to_owned())
}

fn shown(line: &str) -> String {
    let start: String = line.chars().take(60).collect();
    format!("{start:?}{}", if start.len() < line.len() { "…" } else { "" })
}
