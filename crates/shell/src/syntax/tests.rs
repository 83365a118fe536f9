//! What the parser understands, what it refuses, and that it always comes to an end.

mod documents;
mod errors;
mod expansions;
mod grammar;
mod limits;
mod places;
mod random;

use super::tree::List;
use super::{parse, print, same};

/// The tree of a text that must parse, after a look at whether printing it loses anything.
fn parsed(text: &str) -> List {
    let parsed = parse(text);
    assert_eq!(parsed.error, None, "in {text:?}");
    let printed = print(&parsed.list);
    let again = parse(&printed);
    assert_eq!(again.error, None, "in {printed:?}, printed from {text:?}");
    assert!(same(&parsed.list, &again.list), "{printed:?}, printed from {text:?}, says something else");
    parsed.list
}

/// The canonical form of a text, on one line.
fn canonical(text: &str) -> String {
    print(&parsed(text)).trim_end_matches('\n').to_owned()
}
