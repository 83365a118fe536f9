//! Spans.

use rstest::rstest;

use crate::syntax::parse;
use crate::syntax::tree::{CommandKind, PieceKind, Simple};

/// The simple command an item starts with.
fn simple(text: &str, item: usize) -> Simple {
    match &parse(text).list.items[item].chain.first.stages[0].command.kind {
        CommandKind::Simple(simple) => simple.clone(),
        other => panic!("{other:?}"),
    }
}

#[rstest]
#[case::plain("a  'b c'\\d  $e", &["a", "'b c'\\d", "$e"])]
#[case::continuations("\\\na\\\nb \\\n c\\\n", &["a\\\nb", "c"])]
#[case::between_redirections("a >b c", &["a", "c"])]
#[case::unicode("é ü", &["é", "ü"])]
fn words(#[case] text: &str, #[case] expected: &[&str]) {
    let found: Vec<_> = simple(text, 0).words.iter().map(|word| word.span.of(text).to_owned()).collect();
    assert_eq!(found, expected);
}

#[rstest]
#[case::simple("  a b >c ; d", "a b >c")]
#[case::compound("if a; then b; fi >c # d", "if a; then b; fi >c")]
#[case::document("a <<E b\nx\nE\n", "a <<E b")]
#[case::function("f() { a; } >b; c", "f() { a; } >b")]
fn commands(#[case] text: &str, #[case] expected: &str) {
    let parsed = parse(text);
    let pipeline = &parsed.list.items[0].chain.first;
    assert_eq!(pipeline.stages[0].command.span.of(text), expected);
    assert_eq!(pipeline.span.of(text), expected);
}

#[test]
fn pieces() {
    let text = "a\"b $c\"`d`${e:-f}";
    let word = &simple(text, 0).words[0];
    let found: Vec<_> = word.pieces.iter().map(|piece| piece.span.of(text)).collect();
    assert_eq!(found, ["a", "\"b $c\"", "`d`", "${e:-f}"]);
    let PieceKind::Parameter(parameter) = &word.pieces[3].kind else { panic!("{word:?}") };
    let Some(crate::syntax::tree::Operation::Default(word)) = &parameter.operation else {
        panic!("no default")
    };
    assert_eq!(word.span.of(text), "f");
}

#[rstest]
#[case::as_written("a `b c`", "b c")]
#[case::escapes_taken_out("a `b \\$c`", "b \\$c")]
fn commands_in_backticks(#[case] text: &str, #[case] expected: &str) {
    let PieceKind::Command(substitution) = &simple(text, 0).words[1].pieces[0].kind else {
        panic!("no substitution");
    };
    assert_eq!(substitution.list.items[0].chain.first.span.of(text), expected);
}

#[test]
fn expansions_in_a_document() {
    let text = "cat <<E\nx $(a b)\nE\n";
    let parsed = parse(text);
    let command = &parsed.list.items[0].chain.first.stages[0].command;
    let crate::syntax::tree::RedirectTarget::HereDocument(document) = &command.redirects[0].target else {
        panic!("no document");
    };
    assert_eq!(document.body.span.of(text), "x $(a b)\n");
    assert_eq!(document.body.pieces[1].span.of(text), "$(a b)");
}

#[test]
fn assignments() {
    let text = "a[1]+=b c=(d e) f";
    let found: Vec<_> =
        simple(text, 0).assignments.iter().map(|assignment| assignment.span.of(text).to_owned()).collect();
    assert_eq!(found, ["a[1]+=b", "c=(d e)"]);
}
