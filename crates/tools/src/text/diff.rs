//! What differs between two texts: as splices, as a structured patch, as text for a message.

use std::fmt::Write;
use std::ops::Range;
use std::time::{Duration, Instant};

use memchr::{memchr, memchr_iter, memrchr};
use schemars::JsonSchema;
use serde::Serialize;
use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline, group_diff_ops};

use super::view::View;

/// Unchanged lines shown around a change.
const CONTEXT: usize = 3;
/// After this time what is left of the texts counts as changed as a whole, which is coarse but true.
const PATIENCE: Duration = Duration::from_millis(200);
/// The lines of a structured patch and the characters of each.
const PATCH: Bounds = Bounds { lines: 1_000, characters: 2_000 };
/// The characters of a line in a message.
const MESSAGE_CHARACTERS: usize = 300;

/// A place that changed, with the lines around it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Hunk {
    /// The first line of the place before the change, counting from 1; the line before it when it had none.
    pub old_start: usize,
    /// How many lines it had.
    pub old_lines: usize,
    /// The first line of the place after the change.
    pub new_start: usize,
    /// How many lines it has.
    pub new_lines: usize,
    /// The lines after ` `, `+` or `-`; one that begins with `\` is a remark.
    pub lines: Vec<String>,
}

/// How much of a difference is shown.
#[derive(Debug, Clone, Copy)]
struct Bounds {
    lines: usize,
    characters: usize,
}

/// The structured patch that leads from one text to the other. A very large one is cut, which its last line
/// says.
pub fn hunks(before: &str, after: &str) -> Vec<Hunk> {
    LineDiff::of(before, after).patch()
}

/// The difference as text of at most `max_lines` lines, the last of which says so when it is cut.
pub fn unified(before: &str, after: &str, max_lines: usize) -> String {
    let bounds = Bounds { lines: max_lines, characters: MESSAGE_CHARACTERS };
    let (hunks, mut left_out) = LineDiff::of(before, after).hunks(bounds);
    let total: usize = hunks.iter().map(|hunk| hunk.lines.len() + 1).sum();
    let room = if left_out > 0 || total > max_lines { max_lines.saturating_sub(1) } else { total };
    left_out += total.saturating_sub(room);
    let lines = hunks.into_iter().flat_map(|hunk| {
        let Hunk { old_start, old_lines, new_start, new_lines, lines } = hunk;
        let header = format!("@@ -{old_start},{old_lines} +{new_start},{new_lines} @@");
        std::iter::once(header).chain(lines)
    });
    let mut out = String::new();
    for line in lines.take(room) {
        out.push_str(&line);
        out.push('\n');
    }
    if left_out > 0 {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "… {left_out} more lines of the difference are left out");
    }
    out
}

/// The same for the bytes of files, as far as they are text.
pub fn unified_bytes(before: &[u8], after: &[u8], max_lines: usize) -> String {
    match (View::of(before), View::of(after)) {
        (Ok(before), Ok(after)) => unified(before.text(), after.text(), max_lines),
        _ => "(binary content)\n".to_owned(),
    }
}

/// The difference for a notice, and whether that is all of it.
pub fn shown_difference(before: &[u8], after: &[u8], max_lines: usize) -> (String, bool) {
    let diff = unified_bytes(before, after, max_lines);
    let whole = !diff.lines().next_back().is_some_and(|line| line.starts_with(['…', '(']));
    (diff, whole)
}

/// The structured patch between the bytes of files; none if one of them is not text.
pub fn hunks_of_bytes(before: &[u8], after: &[u8]) -> Vec<Hunk> {
    match (View::of(before), View::of(after)) {
        (Ok(before), Ok(after)) => hunks(before.text(), after.text()),
        _ => Vec::new(),
    }
}

/// The smallest ranges of `old`, in order, that must be replaced to get `new`.
pub(super) fn difference<'n>(old: &str, new: &'n str) -> Vec<(Range<usize>, &'n str)> {
    let diff = LineDiff::of(old, new);
    let (old_starts, new_starts) = (starts(diff.first, &diff.old), starts(diff.first, &diff.new));
    let mut found = Vec::new();
    for op in &diff.ops {
        let (tag, old_lines, new_lines) = op.as_tag_tuple();
        let pairs: Vec<_> = match tag {
            DiffTag::Equal => continue,
            // Lines that were changed one by one keep what each has in common with its like.
            DiffTag::Replace if old_lines.len() == new_lines.len() => {
                old_lines.zip(new_lines).map(|(old, new)| (old..old + 1, new..new + 1)).collect()
            }
            _ => vec![(old_lines, new_lines)],
        };
        found.extend(pairs.into_iter().map(|(old_lines, new_lines)| {
            let start = old_starts[old_lines.start];
            let new = &new[new_starts[new_lines.start]..new_starts[new_lines.end]];
            let (range, new_range) = trimmed(&old[start..old_starts[old_lines.end]], new);
            (start + range.start..start + range.end, &new[new_range])
        }));
    }
    found
}

/// Where each line begins and the last one ends.
fn starts(first: usize, lines: &[&str]) -> Vec<usize> {
    let ends = lines.iter().scan(first, |at, line| {
        *at += line.len();
        Some(*at)
    });
    std::iter::once(first).chain(ends).collect()
}

/// What is left of two texts without the characters they begin and end with in common.
fn trimmed(old: &str, new: &str) -> (Range<usize>, Range<usize>) {
    let start = old.floor_char_boundary(common_prefix(old.as_bytes(), new.as_bytes()));
    let suffix = common_suffix(&old.as_bytes()[start..], &new.as_bytes()[start..]);
    let end = old.ceil_char_boundary(old.len() - suffix);
    (start..end, start..new.len() - (old.len() - end))
}

/// Two texts as lines with what happened to them, without the long equal parts at both ends.
pub(super) struct LineDiff<'b, 'a> {
    /// Where in both texts the lines begin.
    first: usize,
    /// How many lines are before that.
    lines_before: usize,
    old: Vec<&'b str>,
    new: Vec<&'a str>,
    ops: Vec<DiffOp>,
}

impl<'b, 'a> LineDiff<'b, 'a> {
    pub(super) fn of(before: &'b str, after: &'a str) -> Self {
        let (old, new) = (before.as_bytes(), after.as_bytes());
        let prefix = common_prefix(old, new);
        let suffix = common_suffix(&old[prefix..], &new[prefix..]);
        let mut first = memrchr(b'\n', &old[..prefix]).map_or(0, |at| at + 1);
        // The rest of a line that changed, then the context. What is cut off begins a line in both texts.
        let mut last = old.len() - suffix;
        for number in 0..=CONTEXT {
            last = memchr(b'\n', &old[last..]).map_or(old.len(), |at| last + at + 1);
            if number > 0 && first > 0 {
                first = memrchr(b'\n', &old[..first - 1]).map_or(0, |at| at + 1);
            }
        }
        let lines_before = memchr_iter(b'\n', &old[..first]).count();
        let kept = old.len() - last;
        let old: Vec<&str> = before[first..last].split_inclusive('\n').collect();
        let new: Vec<&str> = after[first..after.len() - kept].split_inclusive('\n').collect();
        let deadline = Instant::now().checked_add(PATIENCE);
        let ops = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, deadline);
        Self { first, lines_before, old, new, ops }
    }

    /// The lines after the change from the first that changed to the one behind the last, counting from 1.
    pub(super) fn changed(&self) -> Range<usize> {
        let mut changed = self.ops.iter().filter(|op| op.tag() != DiffTag::Equal).map(DiffOp::new_range);
        let Some(first) = changed.next() else { return 1..1 };
        let end = changed.next_back().map_or(first.end, |last| last.end);
        first.start + self.lines_before + 1..end + self.lines_before + 1
    }

    /// The structured patch.
    pub(super) fn patch(&self) -> Vec<Hunk> {
        let (mut hunks, left_out) = self.hunks(PATCH);
        if let Some(hunk) = hunks.last_mut().filter(|_| left_out > 0) {
            hunk.lines.push(format!("\\ {left_out} more lines of the patch are left out"));
        }
        hunks
    }

    /// The patch and how many lines of it are left out.
    fn hunks(&self, bounds: Bounds) -> (Vec<Hunk>, usize) {
        let mut hunks: Vec<Hunk> = Vec::new();
        let (mut room, mut left_out) = (bounds.lines, 0);
        for group in group_diff_ops(self.ops.clone(), CONTEXT) {
            let mut lines = Vec::new();
            for op in &group {
                let (tag, old, new) = op.as_tag_tuple();
                let removed =
                    self.old[old].iter().map(|line| (if tag == DiffTag::Equal { ' ' } else { '-' }, line));
                let added = self.new[new].iter().filter(|_| tag != DiffTag::Equal).map(|line| ('+', line));
                for (sign, line) in removed.chain(added) {
                    if room == 0 {
                        left_out += 1;
                        continue;
                    }
                    room -= 1;
                    push_line(&mut lines, sign, line, bounds.characters);
                }
            }
            if lines.is_empty() {
                continue;
            }
            let [old, new] = [DiffOp::old_range, DiffOp::new_range].map(|range| {
                let ranges = || group.iter().map(range);
                let start = ranges().next().map_or(0, |range| range.start);
                let count = ranges().next_back().map_or(0, |range| range.end) - start;
                (start + self.lines_before + usize::from(count > 0), count)
            });
            hunks.push(Hunk {
                old_start: old.0,
                old_lines: old.1,
                new_start: new.0,
                new_lines: new.1,
                lines,
            });
        }
        (hunks, left_out)
    }
}

fn push_line(lines: &mut Vec<String>, sign: char, line: &str, most_characters: usize) {
    let (line, ended) = line.strip_suffix('\n').map_or((line, false), |line| (line, true));
    let cut = line.char_indices().nth(most_characters).map_or(line.len(), |(cut, _)| cut);
    lines.push(format!("{sign}{}{}", &line[..cut], if cut < line.len() { "…" } else { "" }));
    if !ended {
        lines.push("\\ No newline at end of file".to_owned());
    }
}

/// Long texts are compared in blocks, which is as fast as memory.
const BLOCK: usize = 4096;

fn common_prefix(old: &[u8], new: &[u8]) -> usize {
    let blocks = old.chunks(BLOCK).zip(new.chunks(BLOCK)).take_while(|(old, new)| old == new);
    let equal = blocks.map(|(block, _)| block.len()).sum::<usize>();
    equal + old[equal..].iter().zip(&new[equal..]).take_while(|(old, new)| old == new).count()
}

fn common_suffix(old: &[u8], new: &[u8]) -> usize {
    let blocks = old.rchunks(BLOCK).zip(new.rchunks(BLOCK)).take_while(|(old, new)| old == new);
    let equal = blocks.map(|(block, _)| block.len()).sum::<usize>();
    let rest = old[..old.len() - equal].iter().rev().zip(new[..new.len() - equal].iter().rev());
    equal + rest.take_while(|(old, new)| old == new).count()
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;
