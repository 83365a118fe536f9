//! Which paths (`std::fs::read`, …) a Rust file mentions.
//!
//! Works on tokens rather than on the syntax tree, because a path inside a macro call counts too. Names are
//! resolved only through the file's own `use` lines; that is enough against slips, not against intent.

use std::collections::HashMap;
use std::iter::Peekable;

use proc_macro2::token_stream::IntoIter;
use proc_macro2::{Delimiter, Ident, TokenStream, TokenTree};

use super::tree::RustFile;

pub(super) struct Mention {
    /// The segments joined with `::`.
    pub(super) path: String,
    pub(super) line: usize,
    /// The name a `use` line gives to it.
    import: Option<String>,
}

impl Mention {
    /// Whether the path is `prefix` or lies below it.
    pub(super) fn is_below(&self, prefix: &str) -> bool {
        self.path.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    }
}

/// The paths that the file mentions outside its test modules, with imported first segments spelt out.
pub(super) fn outside_tests(file: &RustFile) -> Vec<Mention> {
    let mut found = Vec::new();
    collect(file.tokens.clone(), "", false, &mut found);
    found.retain(|mention| !file.is_test_line(mention.line));
    let imports: HashMap<String, String> =
        found.iter().filter_map(|mention| Some((mention.import.clone()?, mention.path.clone()))).collect();
    for mention in found.iter_mut().filter(|mention| mention.import.is_none()) {
        let (first, rest) = mention.path.split_once("::").unwrap_or((&mention.path, ""));
        if let (Some(full), false) = (imports.get(first), rest.is_empty()) {
            mention.path = format!("{full}::{rest}");
        }
    }
    found
}

fn collect(tokens: TokenStream, prefix: &str, mut in_use: bool, found: &mut Vec<Mention>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            // `use<'a>` in a return type captures lifetimes and imports nothing.
            TokenTree::Ident(word) if word == "use" => in_use = !next_is(&mut tokens, '<'),
            TokenTree::Ident(word) => path(&word, &mut tokens, prefix, in_use, found),
            TokenTree::Group(group) => {
                let inner_use = in_use && group.delimiter() == Delimiter::Brace;
                collect(group.stream(), if inner_use { prefix } else { "" }, inner_use, found);
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => in_use = false,
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// Follows one path from its first word; a braced list after `::` is followed into.
fn path(
    first: &Ident,
    tokens: &mut Peekable<IntoIter>,
    prefix: &str,
    in_use: bool,
    found: &mut Vec<Mention>,
) {
    let mut path = if prefix.is_empty() { first.to_string() } else { format!("{prefix}::{first}") };
    while next_is(tokens, ':') {
        tokens.next();
        if !next_is(tokens, ':') {
            break;
        }
        tokens.next();
        match tokens.peek() {
            Some(TokenTree::Ident(word)) => {
                path = format!("{path}::{word}");
                tokens.next();
            }
            Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Brace => {
                collect(group.stream(), &path, in_use, found);
                tokens.next();
                return;
            }
            _ => break,
        }
    }
    let path = path.strip_suffix("::self").map_or(path.clone(), str::to_owned);
    let import = in_use.then(|| renamed(tokens).unwrap_or_else(|| last_segment(&path)));
    found.push(Mention { path, line: first.span().start().line, import });
}

fn renamed(tokens: &mut Peekable<IntoIter>) -> Option<String> {
    tokens.next_if(|token| matches!(token, TokenTree::Ident(word) if word == "as"))?;
    tokens.next().map(|name| name.to_string())
}

fn last_segment(path: &str) -> String {
    path.rsplit("::").next().unwrap_or(path).to_owned()
}

fn next_is(tokens: &mut Peekable<IntoIter>, sign: char) -> bool {
    matches!(tokens.peek(), Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}
