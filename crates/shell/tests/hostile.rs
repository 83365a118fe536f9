//! Texts made to break the analysis: it comes to an end, allows nothing, and says what is wrong and where.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop at the first surprise"
)]

use std::thread;

use gripper_shell::{Analysis, LONGEST, Part, Surroundings, Verdict, analyze, hidden};
use rstest::rstest;

/// More parts than this would mean that nothing bounds them.
const MOST_PARTS: usize = 10_000;

/// Judges a text on the stack that a thread gets when nobody says otherwise.
fn judged(text: &str) -> Analysis {
    let text = text.to_owned();
    let here = || Surroundings::new("/home/dev/project", "/home/dev");
    let small = thread::Builder::new().stack_size(2 * 1024 * 1024);
    small.spawn(move || analyze(&text, &here())).unwrap().join().expect("the analysis does not panic")
}

/// The text must not count as reading, and the first reason must point into the text.
fn refused(text: &str) -> Analysis {
    let analysis = judged(text);
    let start: String = text.chars().take(60).collect();
    assert_eq!(analysis.verdict(), Verdict::NotReadOnly, "{start}");
    assert!(analysis.parts().len() <= MOST_PARTS, "{} parts: {start}", analysis.parts().len());
    assert!(!analysis.unresolved().is_empty(), "nothing says why: {start}");
    for doubt in analysis.unresolved() {
        assert!(text.get(doubt.span.range()).is_some(), "{:?} is not in the text: {start}", doubt.span);
        assert!(!doubt.why.is_empty(), "no reason: {start}");
    }
    analysis
}

/// `text` as often as it fits into what is looked at.
fn full(text: &str) -> String {
    text.repeat(LONGEST / text.len())
}

/// `open` nested `times` deep around `inside`.
fn nested(times: usize, open: &str, inside: &str, close: &str) -> String {
    [open.repeat(times).as_str(), inside, close.repeat(times).as_str()].concat()
}

/// `code` as the operand of `command`, quoted anew on each of `times` levels.
fn quoted(times: usize, command: &str, code: &str) -> String {
    (0..times).fold(code.to_owned(), |code, _| format!("{command} '{}'", code.replace('\'', r"'\''")))
}

#[rstest]
#[case::single("cat 'a", 4)]
#[case::double("cat \"a", 4)]
#[case::double_with_substitution("cat \"a $(ls", 11)]
#[case::backtick("cat `ls", 4)]
#[case::command("cat $(ls", 8)]
#[case::parameter("cat ${a", 7)]
#[case::arithmetic("echo $((1 + 2", 5)]
#[case::ansi("cat $'a", 4)]
#[case::process("cat <(ls", 8)]
#[case::escaped_quote(r#"cat "a\""#, 4)]
fn what_is_opened_and_not_closed_is_named_with_its_place(#[case] text: &str, #[case] at: usize) {
    let analysis = refused(text);
    assert_eq!(analysis.unresolved()[0].span.start as usize, at, "{:?}", analysis.unresolved());
    assert!(analysis.risks().iter().any(|risk| risk.kind.name() == "MalformedTokens"));
}

#[rstest]
#[case::lone_bracket("ls )")]
#[case::lone_brace("ls; }")]
#[case::unfinished_if("if true; then ls")]
#[case::unfinished_loop("while true; do ls")]
#[case::unfinished_case("case a in a) ls")]
#[case::missing_command("ls && && ls")]
#[case::leading_pipe("| ls")]
#[case::missing_target("ls >")]
#[case::test_without_end("[[ -f a")]
#[case::function_without_body("f()")]
fn text_that_no_shell_accepts(#[case] text: &str) {
    refused(text);
}

#[rstest]
#[case::null("cat a\0b", 5)]
#[case::null_first("\0ls", 0)]
#[case::start_of_heading("cat a\u{1}b", 5)]
#[case::delete("cat a\u{7f}b", 5)]
fn characters_that_no_shell_can_be_given(#[case] text: &str, #[case] at: usize) {
    assert_eq!(refused(text).unresolved()[0].span.start as usize, at);
}

#[rstest]
#[case::product("ls {a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}".to_owned())]
#[case::range("ls {1..100000000}".to_owned())]
#[case::range_of_ranges("ls {1..500}{1..500}".to_owned())]
#[case::tiny_step("ls {1..100000000..1}".to_owned())]
#[case::deep(format!("ls {}", nested(5_000, "{a,", "b", "}")))]
#[case::wide(format!("ls {{{}}}", "a,".repeat(20_000)))]
#[case::many_open(format!("ls {}", "{".repeat(20_000)))]
#[case::many_products(format!("ls {}", "{a,b}".repeat(12_000)))]
fn brace_bombs(#[case] text: String) {
    refused(&text);
}

#[rstest]
#[case::substitutions("$(", "ls", ")")]
#[case::quoted_substitutions("\"$(", "ls", ")\"")]
#[case::subshells("( ", "ls", " )")]
#[case::groups("{ ", "ls", "; }")]
#[case::parameters("${a:-", "x", "}")]
#[case::quoted_parameters("\"${a:-", "x", "}\"")]
#[case::arithmetic("$((", "1", "))")]
#[case::brackets_in_arithmetic("$(( (", "1", ") ))")]
#[case::processes("cat <(", "ls", ")")]
#[case::branches("if true; then ", "ls", "; fi")]
#[case::conditions("if ", "ls", "; then ls; fi")]
#[case::loops("while true; do ", "ls", "; done")]
#[case::lists("for a in 1 2; do ", "ls", "; done")]
#[case::choices("case a in a) ", "ls", ";; esac")]
#[case::functions("f() { ", "ls", "; }")]
#[case::tests("[[ ( ", "a", " ) ]]")]
#[case::negations("! ", "ls", "")]
fn depth_bombs(#[case] open: &str, #[case] inside: &str, #[case] close: &str) {
    let times = (LONGEST - inside.len()) / (open.len() + close.len());
    for times in [times, times / 8, 500] {
        let whole = nested(times, open, inside, close);
        let analysis = judged(&whole);
        // Any number of `!` is one `!`, so that one is followed to its end.
        if open != "! " {
            refused(&whole);
        }
        assert!(analysis.parts().len() <= MOST_PARTS);
        refused(&format!("{}'", open.repeat(times.min(30_000))));
    }
}

#[rstest]
#[case::eval("eval", 9)]
#[case::inner_shell("bash -c", 9)]
fn code_in_code_in_code(#[case] command: &str, #[case] times: usize) {
    // Each level makes the quotes three times as many, so a few levels are a long text.
    let deep = quoted(times, command, "rm -rf .");
    assert!(deep.len() < LONGEST, "{}", deep.len());
    assert_eq!(judged(&deep).verdict(), Verdict::NotReadOnly);
    assert!(judged(&deep).parts().len() <= MOST_PARTS);
}

#[rstest]
#[case::calls(format!("f0() {{ ls; }}; {}f40", (1..=40).map(|n| format!("f{n}() {{ f{0}; f{0}; }}; ", n - 1)).collect::<String>()))]
#[case::endless_call("f() { f; f; f; }; f".to_owned())]
#[case::mutual_calls("f() { g; g; }; g() { f; f; }; f".to_owned())]
#[case::values(format!("for a in 1 2 3 4 5 6 7 8; do ls {}; done", "$a".repeat(50)))]
#[case::lists(format!("for a in 1 2 3; do for b in 1 2 3; do ls {}; done; done", "$a $b ".repeat(50)))]
#[case::own_arguments("f() { f \"$@\" ''\"$@\"; }; f ''".to_owned())]
#[case::arguments(format!("set -- {}; ls {}", "a ".repeat(200), "\"$@\" ".repeat(5_000)))]
#[case::braces(format!("ls {}", "{1..256} ".repeat(5_000)))]
fn what_grows_by_doubling_is_given_up(#[case] text: String) {
    refused(&text);
}

#[rstest]
#[case::text("a=xxxxxxxx", "a=$a$a", "cat \"$a\"")]
#[case::quoted_text("a=xxxxxxxx", "a=\"$a$a\"", "cat $a")]
#[case::words("set -- a b", "set -- \"$@\" \"$@\"", "cat \"$@\"")]
#[case::array("a=(x y)", "a=(\"${a[@]}\" \"${a[@]}\")", "cat \"${a[@]}\"")]
fn values_that_double_are_forgotten(#[case] first: &str, #[case] double: &str, #[case] last: &str) {
    let few = judged(&format!("{first}; {double}; {double}; {last}"));
    assert_eq!(few.verdict(), Verdict::ReadOnly, "a few times they are known");
    // Often enough to be found out, and not so often that a lapse takes all the memory of the machine.
    let analysis = judged(&format!("{first}; {}{last}", format!("{double}; ").repeat(18)));
    assert_ne!(analysis.verdict(), Verdict::ReadOnly);
    let size = |part: &Part| part.argv.iter().map(|word| word.text.shown().len() + 1).sum::<usize>();
    assert!(
        analysis.parts().iter().all(|part| size(part) <= 4 * LONGEST),
        "{}",
        analysis.parts().iter().map(size).max().unwrap()
    );
}

#[rstest]
#[case::commands(full("ls;"))]
#[case::pipeline(full("ls|"))]
#[case::chain(full("a&&"))]
#[case::background(full("ls&"))]
#[case::expansions(format!("ls {}", full("$a").get(..60_000).unwrap()))]
#[case::substitutions(full("$(a)"))]
#[case::backticks(full("`a`"))]
#[case::globs(format!("./x {}", "*".repeat(60_000)))]
#[case::brackets(format!("./x {}", "[".repeat(60_000)))]
#[case::backslashes("\\".repeat(LONGEST))]
#[case::quotes(full("''\"\""))]
#[case::dollars("$".repeat(LONGEST))]
#[case::documents(full("<<A "))]
#[case::redirections(full(">a "))]
#[case::newlines_and_words(full("a\n"))]
#[case::assignments(format!("{}./x", full("a=b ").get(..60_000).unwrap()))]
#[case::other_script("\u{65e5}".repeat(LONGEST / 3))]
#[case::one_word("x".repeat(LONGEST))]
fn long_texts_are_followed_to_their_end_or_given_up(#[case] text: String) {
    assert!(text.len() <= LONGEST);
    let analysis = judged(&text);
    assert_eq!(analysis.verdict(), Verdict::NotReadOnly);
    assert!(analysis.parts().len() <= MOST_PARTS);
}

/// One long value, used as often as the text allows.
#[rstest]
#[case::in_one_word("ls ", "$a", "")]
#[case::in_quotes("ls \"", "$a", "\"")]
#[case::in_many_commands("", "ls $a$a$a$a;", "")]
#[case::as_code("", "eval \"$a\";", "")]
#[case::as_code_of_another_shell("", "bash -c \"$a\";", "")]
fn long_values_cannot_be_multiplied(#[case] start: &str, #[case] again: &str, #[case] end: &str) {
    let text = format!("a='{}';{start}{}{end}", "x;".repeat(15_000), again.repeat(30_000 / again.len()));
    let analysis = judged(&text);
    assert_ne!(analysis.verdict(), Verdict::ReadOnly);
    assert!(analysis.parts().len() <= MOST_PARTS);
}

/// Many of everything that the analysis keeps in tables.
#[rstest]
#[case::variables("vN=1;")]
#[case::branches("if a;then vN=1;fi;")]
#[case::loops("for vN in 1 2;do v=1;done;")]
#[case::functions("fN(){ :;};")]
#[case::folders("cd aN;")]
#[case::arms("case a in a)vN=1;;esac;")]
#[case::subshells("(vN=1);")]
fn tables_do_not_grow_without_bound(#[case] item: &str) {
    let mut text = String::new();
    for number in 0.. {
        let item = item.replace('N', &number.to_string());
        if text.len() + item.len() > LONGEST {
            break;
        }
        text.push_str(&item);
    }
    assert!(judged(&text).parts().len() <= MOST_PARTS);
}

#[test]
fn one_byte_too_long_is_not_looked_at() {
    let fits = format!("cat a #{}", "x".repeat(LONGEST - 7));
    assert_eq!(judged(&fits).verdict(), Verdict::ReadOnly);
    let analysis = judged(&format!("{fits}x"));
    assert_eq!(analysis.verdict(), Verdict::NotReadOnly);
    assert!(analysis.parts().is_empty());
    assert_eq!(analysis.unresolved()[0].span.start as usize, LONGEST);
    assert_eq!(judged(&"ls;".repeat(LONGEST)).verdict(), Verdict::NotReadOnly);
}

#[rstest]
#[case::null("cat a\0b", 5, "control character")]
#[case::bell("cat a\u{7}b", 5, "control character")]
#[case::escape("cat a\u{1b}[2Jb", 5, "control character")]
#[case::carriage_return("ls # \rrm x", 5, "control character")]
#[case::windows_line_end("ls\r\ncat a\r\n", 2, "control character")]
#[case::second_control_block("cat a\u{9b}b", 5, "control character")]
#[case::soft_hyphen("cat a\u{ad}b", 5, "soft hyphen")]
#[case::zero_width_space("cat a\u{200b}b", 5, "zero-width space")]
#[case::zero_width_joiner("cat a\u{200d}b", 5, "zero-width joiner")]
#[case::right_to_left("cat \u{202e}txt.a", 4, "right-to-left override")]
#[case::isolate("cat \u{2066}a\u{2069}", 4, "bidirectional isolate")]
#[case::byte_order_mark("\u{feff}ls", 0, "byte order mark")]
#[case::line_separator("ls \u{2028}rm x", 3, "Unicode line separator")]
#[case::tags("ls \u{e0072}\u{e006d}", 3, "tag character")]
#[case::filler("ls \u{3164}", 3, "Hangul filler")]
fn hidden_characters_are_found_by_name_and_place(#[case] text: &str, #[case] at: usize, #[case] name: &str) {
    let found = hidden::find(text);
    assert_eq!((found[0].at, found[0].name()), (at, name));
    assert!(hidden::find(&hidden::visible(text)).is_empty());
    judged(text);
}

#[rstest]
#[case::before_the_name("\u{200b}ls")]
#[case::in_the_name("l\u{200b}s")]
#[case::behind_the_name("ls\r\nls\r\n")]
#[case::no_break_space("ls\u{a0}-l")]
#[case::look_alike("\u{0441}at a")]
#[case::wide_letters("\u{ff4c}\u{ff53}")]
fn a_name_with_a_foreign_character_is_another_program(#[case] text: &str) {
    assert_eq!(judged(text).verdict(), Verdict::NotReadOnly);
}

#[rstest]
#[case::wrong_byte(b"cat a\xff.txt")]
#[case::overlong(b"cat \xc0\xaf")]
#[case::half_a_character(b"cat \xe6\x97")]
fn bytes_that_are_no_text_are_judged_as_their_replacement(#[case] bytes: &[u8]) {
    assert!(std::str::from_utf8(bytes).is_err());
    let analysis = judged(&String::from_utf8_lossy(bytes));
    assert!(analysis.parts()[0].shown().contains('\u{fffd}'));
}
