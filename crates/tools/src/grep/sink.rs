//! What the searcher reports about one file, turned into lines of results.

use std::{fmt::Write as _, io, ops::Range, path::Path};

use grep_matcher::Matcher;
use grep_regex::RegexMatcher;
use grep_searcher::{LineIter, Searcher, Sink, SinkContext, SinkMatch};

use super::{page::Piece, query::Mode, search::Engine};

/// The most characters of a line that are shown.
const COLUMNS: usize = 500;
/// Stands where the rest of a line was cut off.
const CUT: &str = " [cut]";
/// How far behind a match that may span lines is looked for what follows it.
const LOOK_AHEAD: usize = 128;

/// The results of one file.
pub(super) struct Lines<'a, 't> {
    engine: &'a Engine<'t>,
    matcher: &'a RegexMatcher,
    /// The file's place in the order.
    number: usize,
    path: &'a Path,
    /// The path as it is shown, once there is something to show.
    shown: String,
    piece: Piece,
    /// The next line does not follow the one before.
    breaks: bool,
    matches: u64,
    /// The file turned out to be no text.
    pub(super) binary: bool,
}

impl<'a, 't> Lines<'a, 't> {
    pub(super) fn new(
        engine: &'a Engine<'t>,
        matcher: &'a RegexMatcher,
        number: usize,
        path: &'a Path,
    ) -> Self {
        let breaks = engine.task().query.has_context();
        let (shown, piece) = (String::new(), Piece::default());
        Self { engine, matcher, number, path, shown, piece, breaks, matches: 0, binary: false }
    }

    /// What is to be put on the page when the file has been searched, and the file's name.
    pub(super) fn into_piece(mut self) -> Option<(String, Piece)> {
        let matches = self.matches;
        if matches == 0 {
            return None;
        }
        self.name();
        let Self { shown, mut piece, .. } = self;
        match self.engine.task().query.mode {
            Mode::FilesWithMatches => piece.line(false, 1, |text| text.push_str(&shown)),
            Mode::Count => piece.line(false, matches, |text| {
                let _ = write!(text, "{shown}:{matches}");
            }),
            Mode::Content => {}
        }
        Some((shown, piece))
    }

    fn name(&mut self) {
        if self.shown.is_empty() {
            self.shown = self.engine.task().root.shown(self.path);
        }
    }

    /// Adds one line of the file, its terminator left off.
    fn line(&mut self, sign: char, number: Option<u64>, bytes: &[u8]) {
        let breaks = std::mem::take(&mut self.breaks);
        let shown = &self.shown;
        self.piece.line(breaks, u64::from(sign == ':'), |text| {
            text.push_str(shown);
            text.push(sign);
            if let Some(number) = number {
                let _ = write!(text, "{number}{sign}");
            }
            push_cut(text, bytes);
        });
    }

    /// Adds lines of the file. Where only matches are shown, empty ones are not.
    fn lines(&mut self, sign: char, mut number: Option<u64>, bytes: &[u8]) {
        let all = sign == '-' || !self.engine.task().query.only_matching;
        for line in LineIter::new(b'\n', bytes) {
            if all || line != b"\n" {
                self.line(sign, number, line);
            }
            number = number.map(|number| number + 1);
        }
    }

    /// Calls `each` with every match in what the searcher reported.
    fn each_match(
        &self,
        searcher: &Searcher,
        found: &SinkMatch<'_>,
        mut each: impl FnMut(Range<usize>),
    ) -> Result<(), io::Error> {
        let range = found.bytes_range_in_buffer();
        let end = if searcher.multi_line_with_matcher(self.matcher) {
            found.buffer().len().min(range.end + LOOK_AHEAD)
        } else {
            range.start + without_terminator(found.bytes()).len()
        };
        let bytes = found.buffer().get(..end).unwrap_or_default();
        self.matcher.find_iter_at(bytes, range.start, |hit| {
            if hit.start() < range.end {
                each(hit.start()..hit.end());
            }
            hit.start() < range.end
        })?;
        Ok(())
    }
}

impl Sink for Lines<'_, '_> {
    type Error = io::Error;

    fn matched(&mut self, searcher: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let query = self.engine.task().query;
        self.matches += 1;
        match query.mode {
            Mode::FilesWithMatches => return Ok(false),
            Mode::Count if searcher.multi_line_with_matcher(self.matcher) => {
                let mut matches = 0;
                self.each_match(searcher, found, |_| matches += 1)?;
                // One has been counted.
                self.matches = self.matches + matches - 1;
                return Ok(true);
            }
            Mode::Count => return Ok(true),
            Mode::Content => self.name(),
        }
        if query.only_matching {
            let mut hits = Vec::new();
            self.each_match(searcher, found, |hit| hits.push(hit))?;
            let start = found.bytes_range_in_buffer().start;
            for hit in hits {
                let before = found.buffer().get(start..hit.start).unwrap_or_default();
                let newlines = memchr::memchr_iter(b'\n', before).count() as u64;
                let number = found.line_number().map(|number| number + newlines);
                let bytes = found.buffer().get(hit).unwrap_or_default();
                self.lines(':', number, bytes);
            }
        } else {
            self.lines(':', found.line_number(), found.bytes());
        }
        Ok(self.engine.pass_on(self.number, &self.shown, &mut self.piece))
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        self.name();
        self.lines('-', context.line_number(), context.bytes());
        Ok(self.engine.pass_on(self.number, &self.shown, &mut self.piece))
    }

    fn context_break(&mut self, _: &Searcher) -> Result<bool, io::Error> {
        self.breaks = true;
        Ok(true)
    }

    fn binary_data(&mut self, _: &Searcher, _: u64) -> Result<bool, io::Error> {
        self.binary = true;
        Ok(false)
    }
}

fn without_terminator(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\n").unwrap_or(line)
}

/// Appends a line, cut where it is too long to be of use. What is not UTF-8 becomes replacement characters.
fn push_cut(text: &mut String, line: &[u8]) {
    let line = without_terminator(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    if line.len() <= COLUMNS {
        text.push_str(&String::from_utf8_lossy(line));
        return;
    }
    // No character has more than four bytes, so this is enough of them.
    let start = String::from_utf8_lossy(line.get(..4 * COLUMNS + 4).unwrap_or(line)).into_owned();
    match start.char_indices().nth(COLUMNS) {
        Some((end, _)) => {
            text.push_str(start.get(..end).unwrap_or(&start));
            text.push_str(CUT);
        }
        None => text.push_str(&start),
    }
}
