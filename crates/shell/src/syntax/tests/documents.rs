//! Here-documents.

use rstest::rstest;

use super::{canonical, parsed};
use crate::syntax::parse;
use crate::syntax::tree::{HereDocument, List, PieceKind, RedirectTarget};

/// The here-documents of the first command.
fn documents(list: &List) -> Vec<&HereDocument> {
    let redirects = &list.items[0].chain.first.stages[0].command.redirects;
    redirects
        .iter()
        .filter_map(|redirect| match &redirect.target {
            RedirectTarget::HereDocument(document) => Some(document),
            RedirectTarget::Word(_) => None,
        })
        .collect()
}

/// The text of a body without expansions.
fn body(document: &HereDocument) -> &str {
    match document.body.pieces.as_slice() {
        [] => "",
        [piece] => match &piece.kind {
            PieceKind::Literal(text) => text,
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    }
}

#[rstest]
#[case::plain("a <<E\nb\nE\n", "E", false, "b\n")]
#[case::empty("a <<E\nE\n", "E", false, "")]
#[case::without_a_last_newline("a <<E\nb\nE", "E", false, "b\n")]
#[case::single("a <<'E F'\n$b `c` \\\nE F\n", "E F", true, "$b `c` \\\n")]
#[case::double("a <<\"E\"\n$b\nE\n", "E", true, "$b\n")]
#[case::escaped("a <<\\E\n$b\nE\n", "E", true, "$b\n")]
#[case::partly("a <<E'F'\n$b\nEF\n", "EF", true, "$b\n")]
#[case::empty_tag("a <<''\nb\n\nc", "", true, "b\n")]
#[case::tabs("a <<-E\n\t\tb\n c\n\tE\n", "E", false, "b\n c\n")]
#[case::tabs_kept("a <<E\n\tb\n\tE\nE\n", "E", false, "\tb\n\tE\n")]
#[case::quotes_are_text("a <<E\n'b' \"c\" \\d # e\nE\n", "E", false, "'b' \"c\" \\d # e\n")]
#[case::almost_the_tag("a <<E\nE \n E\nEE\nE\n", "E", false, "E \n E\nEE\n")]
#[case::continued_line("a <<E\nb\\\nc\nE\n", "E", false, "bc\n")]
#[case::continued_tag("a <<EF\nb\nE\\\nF\n", "EF", false, "b\n")]
#[case::continued_after_tabs("a <<-E\n\tb\\\n\tc\n\tE\n", "E", false, "b\tc\n")]
#[case::tag_over_two_lines("a <<E\\\nF\nb\nEF\n", "EF", false, "b\n")]
fn bodies(#[case] text: &str, #[case] tag: &str, #[case] quoted: bool, #[case] expected: &str) {
    let list = parsed(text);
    let found = documents(&list);
    assert_eq!((found[0].tag.as_str(), found[0].quoted, body(found[0])), (tag, quoted, expected));
}

#[test]
fn several_on_a_line_follow_one_another() {
    let list = parsed("a <<A <<-B c; d\n1\nA\n\t2\n\tB\ne");
    let found = documents(&list);
    assert_eq!((body(found[0]), body(found[1])), ("1\n", "2\n"));
    assert_eq!(list.items.len(), 3);
}

#[rstest]
#[case::then_more("cat <<E | a && b\nx\nE\nc", "<< E cat | a && b\nx\nE\nc")]
#[case::in_group("{ cat <<E; }\nx\nE\n", "{ << E cat\nx\nE\n}")]
#[case::in_substitution("a \"$(cat <<'E'\n)\"'$x\nE\n)\" b", "a \"$( << 'E' cat\n)\"'$x\nE\n)\" b")]
#[case::in_loop("while a; do cat <<E\nx\nE\ndone", "while a; do << E cat\nx\nE\ndone")]
#[case::in_backticks("`cat <<E\nx\nE`", "`<< E cat\nx\nE`")]
#[case::line_in_quotes_first("cat <<E \"a\nb\"\nx\nE\n", "<< E cat \"a\nb\"\nx\nE")]
#[case::substitution_lines_first("cat <<E $(a\nb)\nx\nE\n", "<< E cat $( a; b; )\nx\nE")]
#[case::expansions(
    "cat <<E\n$a ${b:-c} $(d) `e` $((f)) \\$g \\`h \\\\ $\nE",
    "<< E cat\n${a} ${b:-c} $( d; ) `e; ` $((f)) \\$g \\`h \\\\ $\nE"
)]
#[case::document_in_document("cat <<A\n$(cat <<B\nx\nB\n)\nA\n", "<< A cat\n$( << B cat\nx\nB\n)\nA")]
#[case::after_compound("while a; do b; done <<E\nx\nE\n", "while a; do b; done << E\nx\nE")]
#[case::descriptor("a 3<<E\nx\nE\n", "3<< E a\nx\nE")]
fn places_of_documents(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(canonical(text), expected);
}

#[rstest]
#[case::no_end("a <<E\nb\n")]
#[case::no_body("a <<E")]
#[case::closed_before_body("a $(cat <<E)\nx\nE\n")]
#[case::tag_with_expansion("a <<$E\n$E\n")]
#[case::tag_of_two_lines("a <<'E\nF'\nE\nF\n")]
#[case::tag_and_parenthesis("a $(cat <<E\nx\nE)")]
#[case::bad_expansion("a <<E\n${\nE\n")]
#[case::unclosed_command("a <<E\n$(b\nE\n")]
#[case::array_line("a <<E b=(\nx\nE\n)")]
#[case::in_double_parenthesis("((cat <<E) ; a\nx\nE\n)")]
fn refused(#[case] text: &str) {
    assert!(parse(text).error.is_some());
}

#[rstest]
#[case::at_the_end_of_backticks("cat <<E\n`cat <<E\nx\nE`y\nE\n")]
#[case::behind_tabs("cat <<E\n`cat <<-E\nx\n\tE\nls`\nE\n")]
fn one_in_another_with_the_same_tag_is_printed_so_that_it_does_not_end_it(#[case] text: &str) {
    assert_eq!(documents(&parsed(text)).len(), 1);
}
