//! Hostile texts: every one must come to an end, on the small stack of a test's thread.

use rstest::rstest;

use crate::syntax::{MAX_TEXT, parse, print};

#[rstest]
fn repeated_text_comes_to_an_end(
    #[values(
        "(",
        "((",
        "$(",
        "\"$(",
        "{ ",
        "if ",
        "${a:-",
        "\"${a:-",
        "`",
        "\\`",
        "$((",
        "((a) ",
        "[[ ( ",
        "[[ ! ",
        "! ",
        "time ",
        "a && ",
        "a|",
        "a[",
        "a[$(",
        "a=(",
        "<(",
        "x <<E $(",
        "<<E ",
        "<<E\n",
        "'",
        "\"",
        "\\\n",
        "a\\\n",
        "&\\\n",
        "f() ",
        "coproc ",
        "function f ",
        "for x in a; do ",
        "while a; do ",
        "case a in a) ",
        "$[",
        "$",
        "$'",
        "1",
        "1>f ",
        "{a}",
        "#",
        "\n",
        ";",
        "a;",
        "${a[",
        "${a:(",
        "${a/",
        "${a:-'",
        "(( $( ",
        "$(( $( ",
        "`\\`\\\\\\`",
        "declare a=(b) ",
        "if a; then b; elif c; then ",
        "$((a) $((a) ",
        "[[ a =~ (",
        "é",
        "$(<<E\n"
    )]
    unit: &str,
) {
    let parsed = parse(&unit.repeat(MAX_TEXT / unit.len()));
    let _ = print(&parsed.list);
}

#[rstest]
#[case::subshells("( ", " a", " )")]
#[case::groups("{ ", "a;", "}; ")]
#[case::commands("$(", "a", ")")]
#[case::quoted_commands("\"$(", "a", ")\"")]
#[case::parameters("${a:-", "b", "}")]
#[case::arithmetic("$((1+", "1", "))")]
#[case::processes("<(", "a", ")")]
#[case::subscripts("${a[", "1", "]}")]
#[case::conditions("if a; then ", "b; ", "fi; ")]
#[case::loops("for x in a; do ", "b; ", "done; ")]
#[case::arms("case a in a) ", "b", ";; esac ")]
fn nesting_has_a_limit(#[case] open: &str, #[case] inside: &str, #[case] close: &str) {
    let nested = |depth: usize| format!("{}{inside}{}", open.repeat(depth), close.repeat(depth));
    assert_eq!(parse(&nested(20)).error, None);
    let error = parse(&nested(200)).error.unwrap();
    assert_eq!(error.message, "nested too deep");
}

#[rstest]
#[case::ors("a || ")]
#[case::ands("a && ")]
#[case::nots("! ")]
fn conditions_have_a_limit(#[case] unit: &str) {
    let text = format!("[[ {}a ]]", unit.repeat(1000));
    assert_eq!(parse(&text).error.unwrap().message, "nested too deep");
}

#[test]
fn length_has_a_limit() {
    let longest = "a".repeat(MAX_TEXT);
    assert_eq!(parse(&longest).error, None);
    let error = parse(&format!("{longest}a")).error.unwrap();
    assert_eq!(error.message, "the text is too long");
}

#[rstest]
#[case::words("a ")]
#[case::commands("a;")]
#[case::pieces("$a")]
fn parts_have_a_limit(#[case] unit: &str) {
    let error = parse(&unit.repeat(25_000)).error.unwrap();
    assert_eq!(error.message, "too many words");
}
