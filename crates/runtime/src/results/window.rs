//! Where an oversized text is cut: pure functions from text and budget to byte ranges and line numbers.

use std::fmt::Write;
use std::path::Path;

use super::Strategy;

/// Most characters the note between head and tail has, apart from the path of the stored file.
pub const NOTE_CHARS: usize = 400;

/// The parts of a text that stay: bytes `..head` and bytes `tail..`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cut {
    /// End of the head, a character boundary.
    pub(super) head: usize,
    /// Start of the tail, a character boundary at or after `head`.
    pub(super) tail: usize,
    /// Lines that are not shown whole, 1-based and inclusive.
    pub(super) omitted: (u64, u64),
    /// All lines of the text.
    pub(super) lines: u64,
}

/// Chooses the cut for a text of more than `max_chars` characters.
pub(super) fn cut(text: &str, max_chars: usize, strategy: Strategy) -> Cut {
    let (for_head, for_tail) = match strategy {
        Strategy::KeepStart => (max_chars, 0),
        Strategy::KeepEnd => (0, max_chars),
        Strategy::KeepBoth => (max_chars / 2, max_chars - max_chars / 2),
    };
    let head = head_end(text, for_head);
    let tail = tail_start(text, for_tail).max(head);
    let lines = newlines(text) + u64::from(!text.ends_with('\n'));
    let before_tail = newlines(&text[..tail]);
    let cut_inside_line = !text[..tail].ends_with('\n');
    let last = (before_tail + u64::from(cut_inside_line)).min(lines);
    Cut { head, tail, omitted: ((newlines(&text[..head]) + 1).min(last), last), lines }
}

/// End of the longest head of at most `chars` characters. It ends behind a newline unless that would waste
/// more than half of the budget, which happens when a huge line begins in it.
fn head_end(text: &str, chars: usize) -> usize {
    let most = text.char_indices().nth(chars).map_or(text.len(), |(at, _)| at);
    match text[..most].rfind('\n') {
        Some(newline) if (newline + 1) * 2 >= most => newline + 1,
        _ => most,
    }
}

/// Start of the longest tail of at most `chars` characters, by the same rule as [`head_end`].
fn tail_start(text: &str, chars: usize) -> usize {
    if chars == 0 {
        return text.len();
    }
    let most = text.char_indices().nth_back(chars - 1).map_or(0, |(at, _)| at);
    if most == 0 || text[..most].ends_with('\n') {
        return most;
    }
    match text[most..].find('\n') {
        Some(newline) if (newline + 1) * 2 <= text.len() - most => most + newline + 1,
        _ => most,
    }
}

fn newlines(text: &str) -> u64 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u64
}

/// What became of the whole text, for the note.
pub(super) enum Stored<'a> {
    At(&'a Path),
    Not(&'a str),
}

/// Joins head, note and tail.
pub(super) fn render(text: &str, cut: &Cut, stored: &Stored<'_>) -> String {
    let mut out = String::with_capacity(cut.head + text.len() - cut.tail + NOTE_CHARS);
    out.push_str(&text[..cut.head]);
    if cut.head > 0 && !out.ends_with('\n') {
        out.push('\n');
    }
    note(&mut out, text, cut, stored);
    if cut.tail < text.len() {
        out.push('\n');
        out.push_str(&text[cut.tail..]);
    }
    out
}

fn note(out: &mut String, text: &str, cut: &Cut, stored: &Stored<'_>) {
    let chars = text[cut.head..cut.tail].chars().count();
    let (first, last) = cut.omitted;
    let lines = cut.lines;
    // Writing to a String cannot fail, so the results of write! are of no use.
    let _ = if first == last {
        write!(out, "[left out: {chars} characters of line {first} (of {lines}). ")
    } else {
        write!(out, "[left out: lines {first}-{last} of {lines}, {chars} characters. ")
    };
    let _ = match stored {
        Stored::At(path) => write!(
            out,
            "The whole text is in {}; Read it with offset {first} and a limit to see the missing lines]",
            path.display()
        ),
        Stored::Not(why) => {
            write!(out, "The whole text could not be stored ({why}); narrow the request to see more]")
        }
    };
}
