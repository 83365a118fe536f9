//! Bounded lines from a file or standard input.

use std::io::{self, BufRead, Read};

/// One line, or why it cannot be used. The rest of the input is not affected.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// The text, without its line ending.
    Text(String),
    /// It has more bytes than allowed and was skipped.
    TooLong,
    /// It is not UTF-8.
    NotText,
}

/// The next line; `None` at the end.
pub(crate) fn next_line(reader: &mut impl BufRead, limit: usize) -> io::Result<Option<Line>> {
    let mut bytes = Vec::new();
    let read = reader.by_ref().take(limit as u64 + 1).read_until(b'\n', &mut bytes)?;
    if read == 0 {
        return Ok(None);
    }
    let ended = bytes.last() == Some(&b'\n');
    if !ended && read > limit {
        drop(bytes);
        skip_line(reader)?;
        return Ok(Some(Line::TooLong));
    }
    while matches!(bytes.last(), Some(b'\n' | b'\r')) {
        bytes.pop();
    }
    Ok(Some(String::from_utf8(bytes).map_or(Line::NotText, Line::Text)))
}

fn skip_line(reader: &mut impl BufRead) -> io::Result<()> {
    loop {
        let buffer = reader.fill_buf()?;
        if buffer.is_empty() {
            return Ok(());
        }
        let (used, found) = match buffer.iter().position(|&byte| byte == b'\n') {
            Some(at) => (at + 1, true),
            None => (buffer.len(), false),
        };
        reader.consume(used);
        if found {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, next_line};

    fn all(mut text: &[u8], limit: usize) -> Vec<Line> {
        std::iter::from_fn(|| next_line(&mut text, limit).unwrap()).collect()
    }

    #[test]
    fn lines_are_bounded_and_the_next_one_is_whole() {
        let lines = all(b"ab\r\nabcdefgh\nx\n\xff\nlast", 4);
        let text = |text: &str| Line::Text(text.into());
        assert_eq!(lines, [text("ab"), Line::TooLong, text("x"), Line::NotText, text("last")]);
    }

    #[test]
    fn a_line_of_exactly_the_limit_fits() {
        assert_eq!(all(b"abcd\nabcd", 4), [Line::Text("abcd".into()), Line::Text("abcd".into())]);
        assert_eq!(all(b"", 4), []);
    }
}
