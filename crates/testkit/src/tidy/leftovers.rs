//! Rules against what is easily left behind: unfinished code, switched-off tests, silenced dead code.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::tree::{RustFile, Tree};
use super::{Rule, Violation, comments};

const NOTES: &[&str] = &["FIXME", "TODO"];
const MACROS: &[&str] = &["dbg", "todo", "unimplemented"];
/// Lints that say "nobody calls this"; silencing one keeps code that should go.
const DEAD: &[&str] = &["dead_code", "unused"];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    tree.rust.iter().flat_map(check_file).collect()
}

fn check_file(file: &RustFile) -> Vec<Violation> {
    let mut found = Vec::new();
    scan(file, file.tokens.clone(), &mut found);
    for (line, text) in comments::lines(file) {
        found.extend(comment(text).map(|message| file.violation(Rule::Leftover, line, message)));
    }
    found
}

fn comment(line: &str) -> Option<String> {
    let words = line.trim_start_matches(['/', '!', '*', ' ']);
    if words.starts_with("```") && words.contains("ignore") {
        return Some("this example is never run: make it compile, or mark it `text`".to_owned());
    }
    // What stands between backticks is talked about, not left behind.
    let prose: Vec<&str> = line.split('`').step_by(2).collect();
    let note = prose
        .iter()
        .flat_map(|part| part.split(|c: char| !c.is_alphanumeric()))
        .find(|word| NOTES.contains(word))?;
    Some(format!("a {note} is left: do it now, or write it down outside the code"))
}

fn scan(file: &RustFile, tokens: TokenStream, found: &mut Vec<Violation>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    for (index, token) in tokens.iter().enumerate() {
        let line = token.span().start().line;
        let next = tokens.get(index + 1);
        match token {
            TokenTree::Ident(word) if MACROS.iter().any(|name| word == name) && is_sign(next, '!') => {
                let message = format!("`{word}!` is left: write the real thing or remove it");
                found.push(file.violation(Rule::Leftover, line, message));
            }
            TokenTree::Punct(sign) if sign.as_char() == '#' => {
                let inner = usize::from(is_sign(next, '!'));
                if let Some(TokenTree::Group(attribute)) = tokens.get(index + 1 + inner)
                    && attribute.delimiter() == Delimiter::Bracket
                {
                    let messages = attribute_messages(attribute.stream());
                    found.extend(messages.into_iter().map(|text| file.violation(Rule::Leftover, line, text)));
                }
            }
            TokenTree::Group(group) => scan(file, group.stream(), found),
            _ => {}
        }
    }
}

/// Looks at one attribute, and inside it too: `cfg_attr` wraps others.
fn attribute_messages(tokens: TokenStream) -> Vec<String> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let mut messages = Vec::new();
    let wraps = matches!(tokens.first(), Some(TokenTree::Ident(word)) if word == "cfg_attr");
    for (index, token) in tokens.iter().enumerate() {
        let TokenTree::Ident(word) = token else { continue };
        if word == "ignore" && index == 0 {
            messages.push("an ignored test proves nothing: mend it or remove it".to_owned());
        }
        let Some(TokenTree::Group(arguments)) = tokens.get(index + 1) else { continue };
        if wraps {
            messages.extend(alternatives(arguments.stream()).into_iter().flat_map(attribute_messages));
        } else if word == "allow" || word == "expect" {
            messages.extend(silenced(arguments.stream()));
        }
    }
    messages
}

fn silenced(lints: TokenStream) -> Option<String> {
    let lint = lints.into_iter().map(|token| token.to_string()).find(|lint| DEAD.contains(&lint.as_str()))?;
    Some(format!("`{lint}` is silenced: code that nobody calls is deleted"))
}

/// The comma-separated parts of the arguments of an attribute.
fn alternatives(tokens: TokenStream) -> Vec<TokenStream> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    tokens
        .split(|token| matches!(token, TokenTree::Punct(sign) if sign.as_char() == ','))
        .map(|part| part.iter().cloned().collect())
        .collect()
}

fn is_sign(token: Option<&TokenTree>, sign: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == sign)
}
