//! Text in which straight and typographic quotes, and composed and decomposed characters, are the same.

use std::ops::Range;

use memchr::memmem;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

/// Folded text with the way back to the text it was made from.
pub(super) struct Folded {
    text: String,
    /// In order; the last one stands for the end.
    pieces: Vec<Piece>,
}

/// A stretch of ASCII, in which both sides advance together, or one character with the marks on it, which an
/// edit must not cut.
struct Piece {
    folded: usize,
    source: usize,
    ascii: bool,
}

impl Folded {
    pub(super) fn of(source: &str) -> Self {
        let mut folded = Self { text: String::with_capacity(source.len()), pieces: Vec::new() };
        let mut at = 0;
        while at < source.len() {
            let rest = &source[at..];
            let mut plain = rest.bytes().position(|byte| !byte.is_ascii()).unwrap_or(rest.len());
            if plain > 0 && rest[plain..].starts_with(is_mark) {
                plain -= 1;
            }
            if plain > 0 {
                folded.open(at, true);
                folded.text.push_str(&rest[..plain]);
                at += plain;
                continue;
            }
            let more = rest.char_indices().skip(1).find(|(_, character)| !is_mark(*character));
            let width = more.map_or(rest.len(), |(width, _)| width);
            folded.open(at, false);
            folded.text.extend(rest[..width].nfd().map(straight));
            at += width;
        }
        folded.open(source.len(), false);
        folded
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    fn open(&mut self, source: usize, ascii: bool) {
        self.pieces.push(Piece { folded: self.text.len(), source, ascii });
    }

    /// The places in the source that read as `needle` and begin and end with whole characters.
    pub(super) fn find(&self, needle: &Self) -> Vec<Range<usize>> {
        let finder = memmem::Finder::new(needle.text.as_bytes());
        let mut found = Vec::new();
        let mut at = 0;
        while let Some(next) = finder.find(&self.text.as_bytes()[at..]) {
            let range = at + next..at + next + needle.text.len();
            match (self.source_of(range.start), self.source_of(range.end)) {
                (Some(start), Some(end)) => {
                    found.push(start..end);
                    at = range.end;
                }
                _ => at = self.text.ceil_char_boundary(range.start + 1),
            }
        }
        found
    }

    /// The place in the source, unless the offset is inside a character.
    fn source_of(&self, folded: usize) -> Option<usize> {
        let piece =
            &self.pieces[self.pieces.partition_point(|piece| piece.folded <= folded).checked_sub(1)?];
        (piece.ascii || piece.folded == folded).then_some(piece.source + folded - piece.folded)
    }

    /// The place in the folded text, unless the offset is inside a character.
    fn folded_of(&self, source: usize) -> Option<usize> {
        let piece =
            &self.pieces[self.pieces.partition_point(|piece| piece.source <= source).checked_sub(1)?];
        (piece.ascii || piece.source == source).then_some(piece.folded + source - piece.source)
    }

    /// Moves a change of `old`, whose folded text is this one too, to here: where both have whole characters
    /// at its ends, else a little further out, the new text growing by what is added.
    pub(super) fn moved(&self, old: (&str, &Self), change: (Range<usize>, &str)) -> (Range<usize>, String) {
        let (text, folded) = old;
        let (range, new) = change;
        let here = |offset: usize| self.source_of(folded.folded_of(offset)?);
        let (mut start, mut end) = (range.start, range.end);
        while here(start).is_none() && start > 0 {
            start = text.floor_char_boundary(start - 1);
        }
        while here(end).is_none() && end < text.len() {
            end = text.ceil_char_boundary(end + 1);
        }
        let new = [&text[start..range.start], new, &text[range.end..end]].concat();
        let whole = self.pieces.last().map_or(0, |piece| piece.source);
        (here(start).unwrap_or(0)..here(end).unwrap_or(whole), new)
    }
}

fn is_mark(character: char) -> bool {
    canonical_combining_class(character) != 0
}

fn straight(character: char) -> char {
    match character {
        '\u{2018}'..='\u{201B}' => '\'',
        '\u{201C}'..='\u{201F}' => '"',
        other => other,
    }
}
