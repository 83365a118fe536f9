//! One page of results: lines in order, some skipped, some shown, until it is full.

/// Where two groups of lines with something left out between them meet.
const BREAK: &str = "--";

/// The lines that one file adds, or the next part of them.
#[derive(Debug, Default)]
pub(super) struct Piece {
    text: String,
    lines: Vec<Line>,
}

#[derive(Debug, Clone, Copy)]
struct Line {
    /// Where in the text it ends.
    end: usize,
    /// Something is left out before it.
    breaks: bool,
    matches: u64,
}

impl Piece {
    /// Adds a line: `write` writes it, `matches` is what it counts for.
    pub(super) fn line(&mut self, breaks: bool, matches: u64, write: impl FnOnce(&mut String)) {
        write(&mut self.text);
        self.lines.push(Line { end: self.text.len(), breaks, matches });
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }
}

/// How much is wanted.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Lines to skip.
    pub offset: usize,
    /// The most lines.
    pub lines: usize,
    /// The most characters.
    pub chars: usize,
}

impl Wanted {
    /// Everything there is.
    pub const ALL: Wanted = Wanted { offset: 0, lines: usize::MAX, chars: usize::MAX };
}

/// The page as far as it is filled.
#[derive(Debug)]
pub struct Page {
    wanted: Wanted,
    seen: usize,
    chars: usize,
    /// The lines, one after the other.
    pub text: String,
    /// How many they are.
    pub lines: usize,
    /// The files they are from, as shown.
    pub files: Vec<String>,
    /// What the lines count for.
    pub matches: u64,
    /// Nothing more fits.
    pub full: bool,
}

impl Page {
    pub(super) fn new(wanted: Wanted) -> Self {
        let (text, files) = (String::new(), Vec::new());
        Self { wanted, seen: 0, chars: 0, text, lines: 0, files, matches: 0, full: wanted.lines == 0 }
    }

    /// Takes lines of a file until the page is full.
    pub(super) fn take(&mut self, file: &str, piece: &Piece) {
        let mut start = 0;
        for line in &piece.lines {
            if line.breaks && self.seen > 0 && !self.full {
                self.add(BREAK);
            }
            if self.full {
                return;
            }
            let text = piece.text.get(start..line.end).unwrap_or_default();
            start = line.end;
            if self.add(text) {
                self.matches += line.matches;
                if self.files.last().is_none_or(|last| last != file) {
                    self.files.push(file.to_owned());
                }
            }
        }
    }

    /// Where the next page begins.
    pub fn next_offset(&self) -> usize {
        self.wanted.offset.saturating_add(self.lines)
    }

    /// How many lines there were before this page ended.
    pub fn seen(&self) -> usize {
        self.seen
    }

    /// Whether the line is on the page.
    fn add(&mut self, line: &str) -> bool {
        if self.seen < self.wanted.offset {
            self.seen += 1;
            return false;
        }
        let chars = line.chars().count() + 1;
        if self.chars + chars > self.wanted.chars {
            self.full = true;
            return false;
        }
        if self.lines > 0 {
            self.text.push('\n');
        }
        self.text.push_str(line);
        self.seen += 1;
        self.lines += 1;
        self.chars += chars;
        self.full = self.lines >= self.wanted.lines;
        true
    }
}
