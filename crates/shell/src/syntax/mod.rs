//! Parses bash command text into a syntax tree.
//!
//! The whole grammar of non-interactive `bash -c` is understood, without extended globs outside
//! `[[ ]]`, without aliases and without POSIX mode. What is not understood exactly as bash does
//! is an error, never a guess: a decision about permissions stands on this tree.

mod arithmetic;
mod assignment;
mod command;
mod compound;
mod cursor;
mod dollar;
mod heredoc;
mod list;
mod parameter;
mod print;
mod quote;
mod redirect;
mod scan;
mod test;
pub mod tree;
mod walk;
mod word;

use std::borrow::Cow;
use std::fmt;

pub use print::print;

use crate::span::Span;
use cursor::Parser;

/// Longer texts are not looked at.
pub const MAX_TEXT: usize = 64 * 1024;

/// What was parsed, and where it stopped making sense.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parsed {
    /// The commands. On an error: those of the lines before the one with the error, which bash
    /// runs before it finds out.
    pub list: tree::List,
    /// What is wrong, if anything is.
    pub error: Option<SyntaxError>,
    /// Where the comments are.
    pub comments: Vec<Span>,
}

/// What the parser did not understand, or what bash does not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// What is wrong.
    pub message: Cow<'static, str>,
    /// Where.
    pub span: Span,
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} at byte {}", self.message, self.span.start)
    }
}

impl std::error::Error for SyntaxError {}

/// Parses the text of a command. Never panics; time and memory are bounded by the caps.
pub fn parse(text: &str) -> Parsed {
    if let Some(error) = refuse(text) {
        return Parsed { list: tree::List::default(), error: Some(error), comments: Vec::new() };
    }
    let mut parser = Parser::new(text);
    let (mut list, error) = parser.program();
    parser.fill_documents(&mut list);
    let mut comments = parser.comments;
    comments.sort_unstable();
    comments.dedup();
    Parsed { list, error, comments }
}

/// Whether two trees say the same, wherever their parts stand.
pub fn same(left: &tree::List, right: &tree::List) -> bool {
    let (mut left, mut right) = (left.clone(), right.clone());
    walk::erase_spans(&mut left);
    walk::erase_spans(&mut right);
    left == right
}

/// What is refused before anything is parsed.
fn refuse(text: &str) -> Option<SyntaxError> {
    if text.len() > MAX_TEXT {
        return Some(SyntaxError {
            message: Cow::Borrowed("the text is too long"),
            span: Span::new(MAX_TEXT, text.len()),
        });
    }
    // A null byte cannot be passed to a shell. Bash uses the other two as marks inside words and
    // treats them in ways that depend on the place.
    let at = text.bytes().position(|byte| matches!(byte, 0 | 1 | 0x7f))?;
    Some(SyntaxError { message: Cow::Borrowed("control character"), span: Span::new(at, at + 1) })
}

#[cfg(test)]
mod tests;
