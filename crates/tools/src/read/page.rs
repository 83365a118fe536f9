//! One page of a text file in the layout of `cat -n`, read without loading the file.
//!
//! Memory depends on the page and on one buffer, never on the file: lines before the page are counted and
//! dropped chunk by chunk, a line longer than the buffer is decoded in passing, and lines after the page are
//! counted only when the rest is small.

use gripper_runtime::{Located, files::open_regular};
use memchr::memchr;

pub use super::failure::ReadFailure;
use super::lines::{Lines, Source};
use crate::text::sniff::{SAMPLE, sniff};

/// Bytes taken from a file at a time. Larger ones leave the nearest caches and bring nothing.
const CHUNK: usize = 128 * 1024;
const _: () = assert!(CHUNK > SAMPLE && CHUNK.is_multiple_of(2));
/// The lines behind a page are counted when they are no more bytes than this.
const COUNTED_REST: u64 = 64 * 1024 * 1024;
/// What stands for a NUL character, which some consumers would end the text at.
const NUL_SIGN: &str = "\u{2400}";

/// Which lines are wanted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Wanted {
    /// The first line, counted from 1; the first of the file when absent or zero.
    pub offset: Option<u64>,
    /// How many lines; [`Limits::lines`] when absent. A given number is taken at its word: if so many lines
    /// do not fit, that is a failure and not a shorter page.
    pub limit: Option<u64>,
}

/// How much a page may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Lines of a page when no number is asked for.
    pub lines: u64,
    /// Characters of a line, the mark that says what was left out not counted.
    pub line_chars: usize,
    /// Characters of a page, numbers and marks counted.
    pub page_chars: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { lines: 2_000, line_chars: 2_000, page_chars: 100_000 }
    }
}

/// Some lines of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Each line as its number (right-aligned in six columns), a tab and its text; no line feed after the
    /// last.
    pub text: String,
    /// The number of the first line.
    pub start_line: u64,
    /// How many lines there are in `text`.
    pub lines: u64,
    /// How many lines the file has, zero only for an empty one; unknown when counting would mean a long scan.
    pub total_lines: Option<u64>,
    /// The encoding by its usual name.
    pub encoding: &'static str,
    /// How many lines were cut.
    pub shortened_lines: u64,
    /// The first line behind the page, when there is one.
    pub next_offset: Option<u64>,
}

/// Reads the wanted lines of a file; `stop` is asked once per chunk whether to give up.
///
/// A read without a limit that would pass [`Limits::page_chars`] ends with the last line that fits and says
/// where to go on; with a limit it is [`ReadFailure::TooLarge`]. The first line of a page is always returned.
///
/// # Errors
///
/// See [`ReadFailure`]: the path is no regular file or cannot be opened, the content is not text, the range
/// is not there or too large, or `stop` said so.
pub fn read_page(
    path: &Located,
    wanted: &Wanted,
    limits: &Limits,
    stop: &dyn Fn() -> bool,
) -> Result<Page, ReadFailure> {
    let (mut file, status) = open_regular(path)?;
    let (size, path) = (u64::try_from(status.st_size).unwrap_or(0), &path.written);
    let mut source = Source::new(&mut file, size, path, stop);
    let head = source.head(CHUNK)?;
    let form = sniff(&head).map_err(|kind| ReadFailure::Binary { path: path.to_owned(), kind })?;
    page_of(Lines::new(source, form, head, CHUNK), wanted, limits)
}

fn page_of(mut lines: Lines<'_>, wanted: &Wanted, limits: &Limits) -> Result<Page, ReadFailure> {
    let first = wanted.offset.unwrap_or(1).max(1);
    lines.skip(first - 1)?;
    if first > 1 && !lines.more()? {
        return Err(ReadFailure::PastEnd {
            path: lines.path().to_owned(),
            asked: first,
            total: lines.passed(),
        });
    }
    let limit = wanted.limit.unwrap_or(limits.lines);
    let mut text = String::new();
    let mut tally = Tally::default();
    let mut more = true;
    while tally.lines < limit {
        let before = (text.len(), tally);
        if !tally.add_line(first, &mut lines, &mut text, limits.line_chars)? {
            more = false;
            break;
        }
        if tally.chars > limits.page_chars && tally.lines > 1 {
            if wanted.limit.is_some() {
                return Err(too_large(tally, &mut lines, first, limit, limits)?);
            }
            text.truncate(before.0);
            tally = before.1;
            break;
        }
    }
    // A line that did not fit has been passed already, so whether the source goes on says nothing about the
    // page then.
    let next_offset = first + tally.lines;
    let more = more && (lines.passed() >= next_offset || lines.more()?);
    text.pop();
    Ok(Page {
        text: if memchr(0, text.as_bytes()).is_some() { text.replace('\0', NUL_SIGN) } else { text },
        start_line: first,
        lines: tally.lines,
        total_lines: lines.count_all(COUNTED_REST)?,
        encoding: lines.encoding(),
        shortened_lines: tally.shortened,
        next_offset: more.then_some(next_offset),
    })
}

/// Measures the rest of a range that does not fit.
fn too_large(
    mut tally: Tally,
    lines: &mut Lines<'_>,
    first: u64,
    limit: u64,
    limits: &Limits,
) -> Result<ReadFailure, ReadFailure> {
    let fits = tally.lines - 1;
    let enough = lines.taken().saturating_add(COUNTED_REST);
    let mut scratch = String::new();
    let mut complete = true;
    while tally.lines < limit {
        if lines.taken() > enough {
            complete = false;
            break;
        }
        scratch.clear();
        if !tally.add_line(first, lines, &mut scratch, limits.line_chars)? {
            break;
        }
    }
    Ok(ReadFailure::TooLarge {
        path: lines.path().to_owned(),
        first,
        last: first + tally.lines - 1,
        chars: tally.chars,
        complete,
        limit: limits.page_chars,
        fits,
    })
}

/// What has been taken so far.
#[derive(Debug, Clone, Copy, Default)]
struct Tally {
    lines: u64,
    chars: usize,
    shortened: u64,
}

impl Tally {
    /// Appends the next line in the layout of a page, and says whether there was one.
    fn add_line(
        &mut self,
        first: u64,
        lines: &mut Lines<'_>,
        text: &mut String,
        most_chars: usize,
    ) -> Result<bool, ReadFailure> {
        let before = text.len();
        push_number(text, first + self.lines);
        let Some(left_out) = lines.next_line(text, most_chars)? else {
            text.truncate(before);
            return Ok(false);
        };
        text.push('\n');
        self.lines += 1;
        self.chars += text[before..].chars().count();
        self.shortened += u64::from(left_out > 0);
        Ok(true)
    }
}

/// Writes the digits by hand, because the formatter takes longer over them than all the rest of a line takes.
fn push_number(text: &mut String, mut number: u64) {
    // The largest number has twenty digits; of the spaces only those within six columns are used.
    let mut columns = [b' '; 20];
    let mut start = columns.len();
    while number > 0 {
        start -= 1;
        columns[start] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    text.extend(columns[start.min(14)..].iter().map(|column| char::from(*column)));
    text.push('\t');
}

#[cfg(test)]
mod tests;
