//! The comments of a Rust file, documentation included.

use proc_macro2::{Span, TokenStream, TokenTree};

use super::tree::RustFile;

/// Every line of every comment with its number. Comments are what lies between the tokens, so text inside
/// strings is never mistaken for one.
pub(super) fn lines(file: &RustFile) -> Vec<(usize, &str)> {
    let mut spans = Vec::new();
    leaves(file.tokens.clone(), &mut spans);
    let mut found = Vec::new();
    let (mut end, mut end_line) = (0, 1);
    for span in spans {
        let token = span.byte_range();
        if token.end <= end {
            continue;
        }
        numbered(&file.text[end..token.start], end_line, &mut found);
        // A documentation comment arrives as an attribute whose tokens all span the comment itself.
        let text = &file.text[token.clone()];
        if text.starts_with("//") || text.starts_with("/*") {
            numbered(text, span.start().line, &mut found);
        }
        (end, end_line) = (token.end, span.end().line);
    }
    numbered(&file.text[end..], end_line, &mut found);
    found
}

fn numbered<'a>(text: &'a str, first: usize, found: &mut Vec<(usize, &'a str)>) {
    let lines = text.lines().enumerate().map(|(index, line)| (first + index, line));
    found.extend(lines.filter(|(_, line)| !line.trim().is_empty()));
}

fn leaves(tokens: TokenStream, spans: &mut Vec<Span>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => {
                spans.push(group.span_open());
                leaves(group.stream(), spans);
                spans.push(group.span_close());
            }
            leaf => spans.push(leaf.span()),
        }
    }
}
