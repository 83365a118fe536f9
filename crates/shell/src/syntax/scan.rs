//! Finds the end of arithmetic the way bash does before it knows what is inside.
//!
//! Bash counts brackets and skips quotes, but knows nothing of `case`, comments or here-documents
//! at this point. Where this scan and the real parser do not end at the same place the text
//! is refused, so that both readings of bash agree with ours.

use super::cursor::Parser;

/// What the scan found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scan {
    /// The closing bracket, at this place.
    Found(usize),
    /// No end.
    Open,
    /// Something at this place that the scan does not understand.
    Unclear(usize),
}

impl Parser<'_> {
    /// The closing bracket for one that was opened just before `at`.
    pub(super) fn closing(&self, mut at: usize, open: u8, close: u8) -> Scan {
        let mut depth = 1_usize;
        while let Some(byte) = self.byte(at) {
            match byte {
                b'\\' => at += 1,
                b'\'' if at > 0 && self.byte(at - 1) == Some(b'$') => return Scan::Unclear(at),
                b'\'' => match self.find(at + 1, b'\'') {
                    Some(end) => at = end,
                    None => return Scan::Open,
                },
                b'"' | b'`' => match self.quoted_end(at + 1, byte) {
                    Scan::Found(end) => at = end,
                    other => return other,
                },
                _ if byte == close => depth -= 1,
                _ if byte == open => depth += 1,
                _ => {}
            }
            if depth == 0 {
                return Scan::Found(at);
            }
            at += 1;
        }
        Scan::Open
    }

    /// Whether `#` stands in a part of the text where bash might see a comment.
    pub(super) fn may_hold_comment(&self, start: usize, end: usize) -> bool {
        (start..end).any(|at| {
            self.byte(at) == Some(b'#')
                && (at == start || matches!(self.byte(at - 1), Some(b' ' | b'\t' | b'\n')))
        })
    }

    /// The next place of a byte.
    fn find(&self, at: usize, byte: u8) -> Option<usize> {
        let rest = self.text.as_bytes().get(at..)?;
        rest.iter().position(|other| *other == byte).map(|offset| at + offset)
    }

    /// The end of double quotes or backticks with nothing in them that could hold quotes itself.
    fn quoted_end(&self, mut at: usize, quote: u8) -> Scan {
        // Inside of `${ }`, and of backticks, other quotes and parentheses may mean something.
        let mut careful = quote == b'`';
        while let Some(byte) = self.byte(at) {
            match byte {
                b'\\' => at += 1,
                _ if byte == quote => return Scan::Found(at),
                b'$' if matches!(self.byte(at + 1), Some(b'(' | b'[' | b'\\')) => return Scan::Unclear(at),
                b'$' => careful = true,
                b'`' => return Scan::Unclear(at),
                b'(' | b')' | b'"' | b'\'' if careful => return Scan::Unclear(at),
                _ => {}
            }
            at += 1;
        }
        Scan::Open
    }

    /// Whether no brace inside of double quotes is visible to bash when it looks for braces to
    /// expand. It then knows quotes, but not how they nest; only substitutions with parentheses,
    /// whose places are given, are left alone.
    pub(super) fn braces_are_hidden(
        &self,
        start: usize,
        end: usize,
        substitutions: &[(usize, usize)],
    ) -> bool {
        let mut substitutions = substitutions.iter().peekable();
        let mut quote = Some(b'"');
        let mut at = start + 1;
        while at + 1 < end {
            while substitutions.next_if(|(first, _)| *first < at).is_some() {}
            let Some(byte) = self.byte(at) else { return false };
            match (quote, byte) {
                (Some(b'"') | None, b'$') if substitutions.peek().is_some_and(|(first, _)| *first == at) => {
                    at = substitutions.peek().map_or(end, |(_, last)| *last);
                    continue;
                }
                (Some(b'"' | b'`') | None, b'\\') => at += 1,
                (Some(b'"' | b'`') | None, b'$') if self.byte(at + 1) == Some(b'{') => at += 1,
                (Some(open), _) if open == byte => quote = None,
                (None, b'"' | b'\'' | b'`') => quote = Some(byte),
                (None, b'{') => return false,
                _ => {}
            }
            at += 1;
        }
        quote == Some(b'"')
    }
}
