//! What is refused, and where.

use rstest::rstest;

use crate::syntax::parse;

#[rstest]
#[case::semicolons("a;; b", 1)]
#[case::semicolon_first("; a", 0)]
#[case::two_semicolons("a ; ; b", 4)]
#[case::pipe_first("| sh", 0)]
#[case::pipe_last("a |", 3)]
#[case::ampersands("ls & & x", 5)]
#[case::and_first("&& a", 0)]
#[case::and_pipe("a &&| b", 4)]
#[case::and_last("a &&\n", 5)]
#[case::background_then_and("a & && b", 4)]
#[case::parenthesis("a )", 2)]
#[case::word_parenthesis("a b(c)", 3)]
#[case::extended_glob("ls @(a|b)", 4)]
#[case::qualifier("ls *(.)", 4)]
#[case::reserved("then a", 0)]
#[case::reserved_in("in", 0)]
#[case::not_after_pipe("a | ! b", 4)]
#[case::empty_group("{ }", 2)]
#[case::empty_subshell("( )", 2)]
#[case::empty_then("if a; then fi", 11)]
#[case::no_fi("if a; then b", 12)]
#[case::no_done("for x in a; do b", 16)]
#[case::brace_after_redirection("{ a; } >f }", 10)]
#[case::word_after_group("{ a; } b", 7)]
#[case::open_single("a 'b", 2)]
#[case::open_double("a \"b", 2)]
#[case::open_backtick("a `b", 2)]
#[case::open_command("a $(b", 5)]
#[case::open_brace("a ${b", 5)]
#[case::open_arithmetic("a $((b", 2)]
#[case::open_ansi_c("a $'b", 2)]
#[case::backslash_at_end("a \\", 2)]
#[case::redirection_nowhere("ls >", 4)]
#[case::redirection_twice("cat < < x", 6)]
#[case::redirection_to_number("a > 2>f", 5)]
#[case::bad_name("for 1 in a; do b; done", 4)]
#[case::bad_function("f() a", 4)]
#[case::function_arguments("f(a) { b; }", 2)]
#[case::case_without_in("case a b) c;; esac", 7)]
#[case::case_brace("case a in }) c;; esac", 10)]
#[case::case_pipe("case a in b|) c;; esac", 12)]
#[case::test_open("[[ a", 4)]
#[case::test_two_words("[[ a b ]]", 5)]
#[case::test_line_before_operator("[[ a\n== b ]]", 4)]
#[case::test_number("[[ 1<2 ]]", 4)]
#[case::test_empty("[[ ]]", 3)]
#[case::array_operator("a=(b;c)", 4)]
#[case::array_text("a=(b)c", 5)]
#[case::array_argument("a b=(c)", 4)]
#[case::array_in_element("a[1]=(b)", 5)]
#[case::array_not_declared("command declare a=(b)", 18)]
#[case::bad_substitution("a ${b!c}", 5)]
#[case::empty_substring("a ${b:}", 6)]
#[case::unknown_transform("a ${b@Z}", 6)]
#[case::unclear_length("a ${#b:-c}", 6)]
#[case::null("a\0b", 1)]
#[case::in_backticks("a `b |`", 6)]
#[case::in_escaped_backticks("a `b \\`c |\\``", 3)]
#[case::not_utf8("a $'\\xff'", 2)]
#[case::time_and_ampersand("time &", 5)]
#[case::time_in_substitution("$(time { a; })", 2)]
#[case::time_in_subshell("(time)", 5)]
#[case::for_two_expressions("for ((a;b)); do c; done", 6)]
#[case::double_parenthesis_line("((a)\n)", 3)]
#[case::case_in_arithmetic("a $(( $(case b in b) c;; esac) ))", 2)]
#[case::backslash_in_array("$(a=(\\;b))", 5)]
#[case::time_after_lines("a |\n\ntime b", 5)]
#[case::time_after_errors_and_line("a |&\ntime b", 5)]
#[case::loose_brackets("a=1 >f b[1 2]=3", 7)]
#[case::brace_in_quotes_in_quotes("a \"${b:-\"{c,d}\"}\"", 2)]
#[case::brace_in_backticks_in_quotes("a \"`b \"{c,d}\"`\"", 2)]
#[case::reserved_in_array_of_coprocess("coproc { a=(in); }", 12)]
#[case::key_that_would_run("a['$(b)']=1", 8)]
fn refused(#[case] text: &str, #[case] at: u32) {
    let parsed = parse(text);
    let error = parsed.error.expect(text);
    assert_eq!(error.span.start, at, "{error} in {text:?}");
    assert!(parsed.list.items.is_empty(), "{:?}", parsed.list);
}

#[rstest]
#[case::line("a; b\nc ;; d", 2)]
#[case::same_line("a; b ;; c", 0)]
#[case::lines("a\n\nb &&\nc\n)", 2)]
#[case::after_document("cat <<E\nx\nE\n)", 1)]
#[case::in_compound("a\nif b; then\nc\n)", 1)]
#[case::open_quote_later("a\nb\nc 'd", 2)]
fn lines_before_an_error_are_kept(#[case] text: &str, #[case] items: usize) {
    let parsed = parse(text);
    assert!(parsed.error.is_some());
    assert_eq!(parsed.list.items.len(), items);
}

#[test]
fn an_error_tells_what_and_where() {
    let error = parse("a\nthen").error.unwrap();
    assert_eq!(error.to_string(), "unexpected `then` at byte 2");
    assert_eq!(error.span.of("a\nthen"), "then");
}
