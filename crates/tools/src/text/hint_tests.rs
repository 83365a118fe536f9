use rstest::rstest;

use super::nearest;

const FILE: &str = "fn main() {\n\tlet first = \"one\";\n\tlet second = call(first);  \n    deeper(second);\n}\n\
                    const TEXT: &str = \"a\\nb\";\nnot so common words\n";

#[rstest]
#[case::tabs("    let first = \"one\";", "line 2: the file indents with tabs, old_string with spaces")]
#[case::spaces("\tdeeper(second);\n}", "line 4: the file indents with spaces, old_string with tabs")]
#[case::depth(
    "      deeper(second);",
    "indentation differs: 4 characters in the file, 6 characters in old_string"
)]
#[case::trailing("call(first);\n    deeper", "line 3: the spaces at the end of a line differ")]
#[case::inside("let first  = \"one\"", "line 2: the white space inside a line differs")]
#[case::case("let First = \"one\"", "line 2: upper and lower case differ")]
#[case::first_character("let first = \"two\";", "line 2: at column 15 the file has 'o', old_string 't'")]
#[case::longer(
    "not so common words at all",
    "line 7: at column 20 the file has the end of the line, old_string a space"
)]
#[case::odd(
    "let first =\u{200B} \"one\";",
    "at column 13 the file has a space, old_string '\\u{200b}' (U+200B)"
)]
#[case::second_line(
    "fn main() {\n\tlet third = \"one\";",
    "line 2: at column 6 the file has 'f', old_string 't'"
)]
#[case::beyond_the_end("not so common words\n\nmore", "line 9: the file ends before old_string does")]
#[case::numbers("     1\tfn main() {\n     2\t\tlet first", "without the line numbers that Read puts")]
#[case::numbers_with_arrows("1→fn main() {\n2→\tlet first", "without the line numbers that Read puts")]
#[case::spelt_out("fn main() {\\n\\tlet first = \\\"one\\\"", "spells out escapes")]
#[case::should_be_spelt_out("a\nb", "the file has escapes such as \\n")]
#[case::around("\n\nlet second = call(first);\n\n", "without the empty lines before or after it")]
#[case::nothing_like_it("zzzzqqqq", "nothing in it is like it")]
#[case::too_short("q", "nothing in it is like it")]
fn hints(#[case] old: &str, #[case] expected: &str) {
    assert!(!FILE.contains(old));
    let hint = nearest(FILE, old);
    assert!(hint.contains(expected), "{hint}");
}

#[test]
fn both_lines_are_shown() {
    let hint = nearest("one\n\tlet value = compute();\n", "  let value = compute();");
    assert_eq!(
        hint,
        "the places most like it are\n- line 2: the file indents with tabs, old_string with spaces\n  \
         file:       \"\\tlet value = compute();\"\n  old_string: \"  let value = compute();\"\n\
         copy the text exactly as it is in the file, without line numbers"
    );
}

#[test]
fn the_three_best_places_come_in_order() {
    let text = "call(alpha, beta)\nother\ncall(alpha, bets)\ncall(alpha, data)\ncall(alpha, beta9)\n";
    let hint = nearest(text, "call(alpha, beta8)");
    let lines: Vec<&str> =
        hint.lines().filter_map(|line| line.strip_prefix("- line ")).map(|line| &line[..1]).collect();
    assert_eq!(lines.len(), 3, "{hint}");
    assert_eq!(&lines[..2], ["1", "5"], "{hint}");
}
