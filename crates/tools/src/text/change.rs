//! Replacing text in the bytes of a file, and giving a file new content.

use std::ops::Range;

use memchr::memmem;
use thiserror::Error;

use super::decode::TextForm;
use super::diff::{Hunk, LineDiff, difference};
use super::encode;
use super::fold::Folded;
use super::hint;
use super::view::{CannotSplice, NotText, View, normalised};

/// How many places of an ambiguous text are named.
const NAMED_LINES: usize = 10;

/// One change: the text there is and the text that is to be there.
#[derive(Debug, Clone, Copy)]
pub struct Replacement<'a> {
    /// The text to look for; line breaks may be written in any way.
    pub old: &'a str,
    /// The text that comes in its place.
    pub new: &'a str,
    /// Every occurrence is meant; otherwise there must be exactly one.
    pub all: bool,
}

/// A file after its replacements.
#[derive(Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The new content.
    pub bytes: Vec<u8>,
    /// What changed, as a patch of lines.
    pub hunks: Vec<Hunk>,
    /// How many places were replaced.
    pub count: usize,
    /// From the first line that changed to the one behind the last, numbered from 1 as they are now.
    pub lines: Range<usize>,
    /// What the model should know, such as a match that was not exact.
    pub notes: Vec<String>,
}

/// A replacement that cannot be made, for which reason none is.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct NoMatch {
    /// Which of the replacements, counting from zero.
    pub edit: usize,
    /// Why.
    pub reason: Reason,
}

/// Why a replacement cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Reason {
    /// The file is binary.
    #[error(transparent)]
    NotText(#[from] NotText),
    /// The new text does not fit the file.
    #[error(transparent)]
    Splice(#[from] CannotSplice),
    /// There is nothing to look for.
    #[error("old_string is empty, which says no place in a file that exists; give the text to replace")]
    EmptyOld,
    /// The change changes nothing.
    #[error("old_string and new_string are the same, so there is nothing to change")]
    Equal,
    /// The change is one of line ends alone.
    #[error(
        "old_string and new_string differ only in line ends, and an edit keeps the line ends of the file; \
         convert them with a command"
    )]
    OnlyLineEnds,
    /// The text is not there.
    #[error("old_string was not found in the file; {0}")]
    NotFound(String),
    /// The text is there more than once.
    #[error(
        "old_string was found {total} times, on {}, and it is not clear which is meant; add text around it until \
         only one place fits, or set replace_all to change all of them",
        lines_in_words(lines, *total)
    )]
    NotUnique {
        /// The first lines it begins on, counting from 1.
        lines: Vec<usize>,
        /// How many times it is there.
        total: usize,
    },
}

/// Makes the replacements in order, each on the result of the one before, or none at all.
///
/// Only what differs between the old and the new text is touched: equal parts keep their bytes, also where a
/// match is not exact.
///
/// # Errors
/// The first replacement that cannot be made, and why.
pub fn replace(bytes: &[u8], edits: &[Replacement<'_>]) -> Result<Replaced, NoMatch> {
    replace_in(&View::of(bytes).map_err(|error| NoMatch { edit: 0, reason: error.into() })?, edits)
}

fn replace_in(original: &View<'_>, edits: &[Replacement<'_>]) -> Result<Replaced, NoMatch> {
    let mut done: Option<Applied> = None;
    let (mut count, mut notes) = (0, Vec::new());
    for (edit, replacement) in edits.iter().enumerate() {
        let applied = match &done {
            None => apply(original, replacement),
            Some(done) => apply(&View::in_form(&done.bytes, original.form), replacement),
        };
        let applied = applied.map_err(|reason| NoMatch { edit, reason })?;
        count += applied.count;
        notes.extend(applied.note.clone());
        done = Some(applied);
    }
    let (bytes, text) = done.map_or_else(
        || (original.bytes.to_vec(), original.text().to_owned()),
        |done| (done.bytes, done.text),
    );
    let diff = LineDiff::of(original.text(), &text);
    Ok(Replaced { hunks: diff.patch(), lines: diff.changed(), bytes, count, notes })
}

struct Applied {
    bytes: Vec<u8>,
    text: String,
    count: usize,
    note: Option<String>,
}

impl Applied {
    fn to(view: &View<'_>, splices: &[(Range<usize>, &str)], count: usize) -> Result<Self, Reason> {
        Ok(Self { bytes: view.splice(splices)?, text: view.text_with(splices), count, note: None })
    }
}

fn apply(view: &View<'_>, replacement: &Replacement<'_>) -> Result<Applied, Reason> {
    let Replacement { old, new, all } = *replacement;
    if old == new {
        return Err(Reason::Equal);
    }
    let (old, new) = (normalised(old), normalised(new));
    if old.is_empty() {
        return Err(Reason::EmptyOld);
    }
    if old == new {
        return Err(Reason::OnlyLineEnds);
    }
    let places = occurrences(view.text(), &old, all);
    if places.is_empty() {
        return apply_folded(view, &old, &new, all);
    }
    check_unique(view, places.iter().copied(), all)?;
    let changes = difference(&old, &new);
    let splices: Vec<_> = places
        .iter()
        .flat_map(|at| changes.iter().map(move |(range, new)| (at + range.start..at + range.end, *new)))
        .collect();
    Applied::to(view, &splices, places.len())
}

/// Where `old` is in the text. Two that overlap are one place to replace, but not one that is clear.
fn occurrences(text: &str, old: &str, all: bool) -> Vec<usize> {
    let finder = memmem::Finder::new(old);
    let mut places: Vec<usize> = finder.find_iter(text.as_bytes()).collect();
    if let ([only], false) = (places.as_slice(), all) {
        let next = text.ceil_char_boundary(only + 1);
        places.extend(finder.find(&text.as_bytes()[next..]).map(|found| next + found));
    }
    places
}

fn check_unique(
    view: &View<'_>,
    places: impl ExactSizeIterator<Item = usize>,
    all: bool,
) -> Result<(), Reason> {
    let total = places.len();
    if all || total == 1 {
        return Ok(());
    }
    Err(Reason::NotUnique { lines: places.take(NAMED_LINES).map(|at| view.line_of(at)).collect(), total })
}

/// The second try: quotes and the form of characters do not count.
fn apply_folded(view: &View<'_>, old: &str, new: &str, all: bool) -> Result<Applied, Reason> {
    let needle = Folded::of(old);
    let places = Folded::of(view.text()).find(&needle);
    if places.is_empty() {
        return Err(Reason::NotFound(hint::nearest(view.text(), old)));
    }
    check_unique(view, places.iter().map(|place| place.start), all)?;
    let changes = difference(old, new);
    let mut moved = Vec::new();
    for place in &places {
        let here = Folded::of(&view.text()[place.clone()]);
        moved.extend(changes.iter().map(|change| {
            let (range, new) = here.moved((old, &needle), change.clone());
            (place.start + range.start..place.start + range.end, new)
        }));
    }
    let splices: Vec<_> = moved.iter().map(|(range, new)| (range.clone(), new.as_str())).collect();
    let lines = places.iter().take(NAMED_LINES).map(|place| view.line_of(place.start)).collect::<Vec<_>>();
    let note = format!(
        "old_string is in the file with other quotes or another form of accented characters (on {}); the file \
         keeps its own wherever nothing changed",
        lines_in_words(&lines, places.len())
    );
    Ok(Applied { note: Some(note), ..Applied::to(view, &splices, places.len())? })
}

/// `line 3`, or `lines 3, 5, 9 and 12 more`.
fn lines_in_words(lines: &[usize], total: usize) -> String {
    let numbers: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let noun = if total == 1 { "line" } else { "lines" };
    match total.saturating_sub(lines.len()) {
        0 => format!("{noun} {}", numbers.join(", ")),
        more => format!("{noun} {} and {more} more", numbers.join(", ")),
    }
}

/// The bytes of a file that is to have this content.
///
/// Encoding, byte order mark and the most frequent line end of the old file are kept, and lines that stay keep
/// their bytes. Content with carriage returns says itself what its line ends are. A file that was empty or not
/// text becomes UTF-8.
///
/// # Errors
/// The encoding of the file lacks a character.
pub fn rewrite(old: &[u8], content: &str) -> Result<Vec<u8>, CannotSplice> {
    let Some(view) = View::of(old).ok().filter(|_| !old.is_empty()) else {
        return Ok(content.as_bytes().to_vec());
    };
    let marked = view.form.bom > 0;
    let content = content.strip_prefix('\u{FEFF}').filter(|_| marked).unwrap_or(content);
    let mark = &old[..view.form.bom];
    if content.contains('\r') {
        return whole(mark, view.form, content, None);
    }
    let ending = view.dominant_ending();
    let changes = difference(view.text(), content);
    let out = view.assemble(&changes, Some(ending))?;
    if view.confirm(&changes, &out).is_ok() { Ok(out) } else { whole(mark, view.form, content, Some(ending)) }
}

/// Content in the form of a file, none of whose bytes but the mark are kept.
fn whole(mark: &[u8], form: TextForm, content: &str, ending: Option<&[u8]>) -> Result<Vec<u8>, CannotSplice> {
    let mut out = mark.to_vec();
    for line in content.split_inclusive('\n') {
        match (line.strip_suffix('\n'), ending) {
            (Some(line), Some(ending)) => {
                encode::push(form, line, &mut out)?;
                out.extend_from_slice(ending);
            }
            _ => encode::push(form, line, &mut out)?,
        }
    }
    Ok(out)
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
