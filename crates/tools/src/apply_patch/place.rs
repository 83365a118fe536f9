//! Finding the place of each hunk in a file, and changing only the lines it adds and removes.

use std::ops::Range;

use memchr::memmem;

use super::envelope::{Hunk, HunkLine};
use crate::text::{CannotSplice, NotText, View};

/// What of a line is compared, and what to say when that is not the whole.
type Level = (fn(&str) -> &str, &'static str);
/// How lines may differ from what a hunk says, the strictest first.
const LEVELS: [Level; 3] = [
    (|line| line, ""),
    (str::trim_end, "white space at the ends of lines is ignored"),
    (str::trim, "indentation and white space at the ends of lines are ignored"),
];
/// So many lines of a hunk are compared to find what is most like it.
const COMPARED: usize = 20;

/// A file after a patch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Applied {
    /// The new content; encoding and line ends are those of the file.
    pub bytes: Vec<u8>,
    /// What the author of the patch should know, such as a match that was not exact.
    pub notes: Vec<String>,
}

/// Why a file was not patched.
#[derive(Debug, thiserror::Error)]
pub enum HunkProblem {
    /// The file is no text.
    #[error(transparent)]
    NotText(#[from] NotText),
    /// The new text cannot be stored.
    #[error(transparent)]
    CannotSplice(#[from] CannotSplice),
    /// A hunk has no place in the file.
    #[error("the hunk at line {line} of the patch does not fit the file: {reason}")]
    NoPlace {
        /// Where in the patch.
        line: usize,
        /// What was looked for, and what is most like it.
        reason: String,
    },
}

/// Applies hunks to a file, in order, or changes nothing.
pub fn apply(bytes: &[u8], hunks: &[Hunk]) -> Result<Applied, HunkProblem> {
    let view = View::of(bytes)?;
    let (edits, notes) = plan(view.text(), hunks)?;
    let edits: Vec<(Range<usize>, &str)> =
        edits.iter().map(|(range, text)| (range.clone(), text.as_str())).collect();
    Ok(Applied { bytes: view.splice(&edits)?, notes })
}

/// The ranges of a text to replace, in order, and notes.
type Plan = (Vec<(Range<usize>, String)>, Vec<String>);

fn plan(text: &str, hunks: &[Hunk]) -> Result<Plan, HunkProblem> {
    let mut file = File::new(text);
    let mut runs: Vec<Run<'_>> = Vec::new();
    let mut from = 0;
    for hunk in hunks {
        let start =
            file.place_of(hunk, from).map_err(|reason| HunkProblem::NoPlace { line: hunk.line, reason })?;
        for run in runs_of(hunk, start) {
            // The next hunk may repeat the lines after this change as its context.
            from = run.at + run.removed;
            match runs.last_mut() {
                Some(last) if last.at + last.removed == run.at => {
                    last.removed += run.removed;
                    last.added.extend(run.added);
                }
                _ => runs.push(run),
            }
        }
    }
    let edits = runs.iter().flat_map(|run| file.edits(run)).collect();
    Ok((edits, file.notes))
}

/// Neighbouring lines that go, and those that come in their place.
struct Run<'a> {
    at: usize,
    removed: usize,
    added: Vec<&'a str>,
}

fn runs_of(hunk: &Hunk, start: usize) -> Vec<Run<'_>> {
    let mut runs = vec![Run { at: start, removed: 0, added: Vec::new() }];
    for line in &hunk.lines {
        let Some(run) = runs.last_mut() else { break };
        match line {
            HunkLine::Remove(_) => run.removed += 1,
            HunkLine::Add(line) => run.added.push(line),
            HunkLine::Keep(_) => {
                let at = run.at + run.removed + 1;
                runs.push(Run { at, removed: 0, added: Vec::new() });
            }
        }
    }
    runs.retain(|run| run.removed > 0 || !run.added.is_empty());
    runs
}

/// The lines of a text as one level sees them, each after a line feed, so that lines are found by their text.
struct Folded {
    text: String,
    /// Where each line begins, and the end.
    starts: Vec<usize>,
}

struct File<'a> {
    text: &'a str,
    lines: Vec<&'a str>,
    levels: [Option<Folded>; LEVELS.len()],
    notes: Vec<String>,
}

impl<'a> File<'a> {
    fn new(text: &'a str) -> Self {
        let body = text.strip_suffix('\n').unwrap_or(text);
        let lines = if text.is_empty() { Vec::new() } else { body.split('\n').collect() };
        Self { text, lines, levels: Default::default(), notes: Vec::new() }
    }

    /// The first line from `from` on where these lines are.
    fn find(&mut self, level: usize, wanted: &[&str], from: usize) -> Option<usize> {
        let (fold, _) = LEVELS[level];
        let folded = self.levels[level].get_or_insert_with(|| {
            let mut folded =
                Folded { text: "\n".to_owned(), starts: Vec::with_capacity(self.lines.len() + 1) };
            for line in &self.lines {
                folded.starts.push(folded.text.len());
                folded.text.push_str(fold(line));
                folded.text.push('\n');
            }
            folded.starts.push(folded.text.len());
            folded
        });
        let mut needle = "\n".to_owned();
        for line in wanted {
            needle.push_str(fold(line));
            needle.push('\n');
        }
        let before = folded.starts.get(from)? - 1;
        let at = before + memmem::find(&folded.text.as_bytes()[before..], needle.as_bytes())?;
        folded.starts.binary_search(&(at + 1)).ok()
    }

    /// The line where the old lines of a hunk begin, or why there is none.
    fn place_of(&mut self, hunk: &Hunk, from: usize) -> Result<usize, String> {
        let below = self.below_contexts(hunk, from)?;
        let wanted: Vec<&str> = hunk.lines.iter().filter_map(old).collect();
        if wanted.is_empty() {
            return match below {
                Some(below) if below < from => {
                    Err(format!("its context is at line {below}, above the hunk before it: {IN_ORDER}"))
                }
                Some(below) if !hunk.at_end => Ok(below),
                _ => Ok(self.lines.len()),
            };
        }
        let below = below.unwrap_or(from).max(from);
        let mut found = self.locate(hunk, &wanted, below)?;
        // Some repeat the line that `@@` names as the first line of the hunk.
        if found.is_none() && below > from {
            found = self.locate(hunk, &wanted, below - 1)?;
        }
        // Some take the end of the last line for an empty line after it.
        if let ([shorter @ .., ""], Some(HunkLine::Keep(_)), None) = (&wanted[..], hunk.lines.last(), found) {
            let start = self.lines.len().checked_sub(shorter.len()).filter(|start| *start >= below);
            found =
                start.filter(|start| !shorter.is_empty() && self.find(0, shorter, *start) == Some(*start));
        }
        found.ok_or_else(|| self.missing(&wanted, below))
    }

    /// The line after the contexts of a hunk; none if it has none.
    fn below_contexts(&mut self, hunk: &Hunk, from: usize) -> Result<Option<usize>, String> {
        let mut below = None;
        for context in &hunk.contexts {
            let start = below.unwrap_or(from).max(from);
            let exact = |file: &mut Self, from: usize| {
                (0..LEVELS.len()).find_map(|level| file.find(level, &[context], from))
            };
            // A context above the hunk before is that of both.
            let found = exact(self, start).or_else(|| self.beginning_with(context, start));
            let found = found.or_else(|| exact(self, 0).filter(|line| *line < from && below.is_none()));
            let Some(line) = found else { return Err(self.missing(&[context], start)) };
            below = Some(line + 1);
        }
        Ok(below)
    }

    /// A line of which the context is the first words.
    fn beginning_with(&mut self, context: &str, from: usize) -> Option<usize> {
        let begins = |line: &&str| {
            let rest = line.trim_start().strip_prefix(context.trim());
            rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_alphanumeric() || next == '_'))
        };
        let line = from + self.lines[from..].iter().position(begins)?;
        self.notes.push(format!("context {context:?} was taken for the beginning of line {}", line + 1));
        Some(line)
    }

    /// The place of lines from `from` on. A match that is not exact, or not at the end where it should be,
    /// counts only if there is no other.
    fn locate(&mut self, hunk: &Hunk, wanted: &[&str], from: usize) -> Result<Option<usize>, String> {
        for (level, (_, how)) in LEVELS.into_iter().enumerate() {
            let last = self.lines.len().checked_sub(wanted.len()).filter(|last| *last >= from);
            let at_end = last.filter(|last| hunk.at_end && self.find(level, wanted, *last).is_some());
            let Some(first) = at_end.or_else(|| self.find(level, wanted, from)) else { continue };
            let second = self.find(level, wanted, first + 1);
            let range = format!("line {}", first + 1);
            let line = hunk.line;
            match second {
                Some(second) if level > 0 || hunk.at_end => {
                    return Err(format!(
                        "it does not fit exactly, and lines {} and {} are equally near: copy the lines as they are, or \
                         name a line above them after `@@`",
                        first + 1,
                        second + 1,
                    ));
                }
                Some(second) if hunk.contexts.is_empty() => self.notes.push(format!(
                    "the hunk at line {line} of the patch fits at {range} and again at line {}: the first was changed",
                    second + 1
                )),
                _ => {}
            }
            if level > 0 {
                self.notes
                    .push(format!("the hunk at line {line} of the patch fits at {range} only if {how}"));
            }
            if hunk.at_end && at_end.is_none() {
                self.notes.push(format!(
                    "the hunk at line {line} of the patch fits at {range}, which is not the end of the file"
                ));
            }
            return Ok(Some(first));
        }
        Ok(None)
    }

    /// Says that lines were not found, and what is most like them.
    fn missing(&mut self, wanted: &[&str], from: usize) -> String {
        if let Some(line) = self.find(0, wanted, 0) {
            return format!(
                "its lines are at line {}, above line {}, where its context or the hunk before it ends: {IN_ORDER}",
                line + 1,
                from + 1
            );
        }
        let same = |at: usize, index: usize| {
            self.lines.get(at + index).is_some_and(|line| line.trim() == wanted[index].trim())
        };
        let compared = wanted.len().min(COMPARED);
        let score = |at: usize| {
            (0..compared).filter(|index| same(at, *index) && !wanted[*index].trim().is_empty()).count()
        };
        let best = (0..self.lines.len()).map(|at| (score(at), at)).rev().max_by_key(|(score, _)| *score);
        let Some((_, at)) = best.filter(|(score, _)| *score > 0) else {
            return format!("no line is like {:?}, read the file again", cut(wanted[0]));
        };
        let differs = (0..wanted.len()).find(|index| self.lines.get(at + index) != Some(&wanted[*index]));
        let index = differs.unwrap_or(0);
        let there = self
            .lines
            .get(at + index)
            .map_or("the end of the file".to_owned(), |line| format!("{:?}", cut(line)));
        format!(
            "most like it is line {}, but line {} is {there} where the hunk has {:?}",
            at + 1,
            at + index + 1,
            cut(wanted[index])
        )
    }

    /// Where line number `at` begins, or the end.
    fn start(&self, at: usize) -> usize {
        self.lines.get(at).map_or(self.text.len(), |line| line.as_ptr().addr() - self.text.as_ptr().addr())
    }

    /// What to replace for a run. A line that takes the place of another keeps its line end.
    fn edits(&self, run: &Run<'_>) -> Vec<(Range<usize>, String)> {
        let open_end = !self.text.is_empty() && !self.text.ends_with('\n');
        let paired = run.removed.min(run.added.len());
        let mut edits: Vec<(Range<usize>, String)> = (run.at..)
            .zip(&run.added[..paired])
            .map(|(at, new)| (self.start(at)..self.start(at) + self.lines[at].len(), (*new).to_owned()))
            .collect();
        let at = run.at + paired;
        if paired < run.removed {
            let to_end = run.at + run.removed == self.lines.len();
            // What is last now has no line end either, if the last line had none.
            let start = self.start(at) - usize::from(to_end && open_end && at > 0);
            edits.push((start..self.start(run.at + run.removed), String::new()));
        } else if paired < run.added.len() {
            let (before, after) = if at == self.lines.len() && open_end { ("\n", "") } else { ("", "\n") };
            let new = format!("{before}{}{after}", run.added[paired..].join("\n"));
            edits.push((self.start(at)..self.start(at), new));
        }
        edits
    }
}

const IN_ORDER: &str = "hunks come in the order of the file";

fn old(line: &HunkLine) -> Option<&str> {
    match line {
        HunkLine::Keep(line) | HunkLine::Remove(line) => Some(line),
        HunkLine::Add(_) => None,
    }
}

fn cut(line: &str) -> &str {
    line.char_indices().nth(120).map_or(line, |(end, _)| &line[..end])
}
