//! Words: quotes and expansions.

use rstest::rstest;

use super::{canonical, parsed};
use crate::syntax::tree::{CommandKind, Operation, Parameter, PieceKind, Word};

/// The first word of the first command.
fn word(text: &str) -> Word {
    let list = parsed(text);
    match &list.items[0].chain.first.stages[0].command.kind {
        CommandKind::Simple(simple) => simple.words[0].clone(),
        other => panic!("{other:?}"),
    }
}

/// The only piece of the first word.
fn piece(text: &str) -> PieceKind {
    let word = word(text);
    assert_eq!(word.pieces.len(), 1, "{word:?}");
    word.pieces[0].kind.clone()
}

/// The parameter that is the first word.
fn parameter(text: &str) -> Parameter {
    match piece(text) {
        PieceKind::Parameter(parameter) => *parameter,
        other => panic!("{other:?}"),
    }
}

#[rstest]
#[case::simple(r"$'a b'", "a b")]
#[case::letters(r"$'\a\b\e\E\f\n\r\t\v'", "\u{7}\u{8}\u{1b}\u{1b}\u{c}\n\r\t\u{b}")]
#[case::quotes(r#"$'\'\"\?\\'"#, "'\"?\\")]
#[case::octal(r"$'\1011\60\501'", "A10A")]
#[case::hexadecimal(r"$'\x41\x4g\x'", "A\u{4}g\\x")]
#[case::unicode(r"$'\u41\u00e9\U1F600\u'", "Aé😀\\u")]
#[case::control(r"$'\cA\cz\c[\c?'", "\u{1}\u{1a}\u{1b}\u{7f}")]
#[case::control_backslash(r"$'\c\\x'", "\u{1c}x")]
#[case::unknown(r"$'\q\é'", "\\q\\é")]
#[case::bytes_of_a_character(r"$'\xc3\xa9\303\251'", "éé")]
#[case::ends_at_null(r"$'ab\0cd'", "ab")]
#[case::ends_at_null_byte(r"$'ab\x00\xff'", "ab")]
#[case::dollars(r"$'$x`y`'", "$x`y`")]
fn ansi_c(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(piece(text), PieceKind::AnsiC(expected.to_owned()));
}

#[rstest]
#[case::escapes(r#"a\ b\;\$x\'"#, r#"a\ b\;\$x\'"#)]
#[case::single("a'b $c `d`'e", "a'b $c `d`'e")]
#[case::double(r#""a\$b\`c\"d\\e\f 'g'""#, r#""a\$b\`c\"d\\e\f 'g'""#)]
#[case::locale("$\"a $b\"", "$\"a ${b}\"")]
#[case::ansi_c_in_double("\"$'a'\"", "\"$'a'\"")]
#[case::parameters("$a$b_1$1$10$@$*$#$?$-$$$!$0$_", "${a}${b_1}${1}${1}0$@$*$#$?$-$$$!${0}${_}")]
#[case::bare_dollars("$ a$ \"$\" $% $= \"$ $\"", "$ a$ \"$\" $% $= \"$ $\"")]
#[case::arithmetic("$((1+2)) $(( (1) )) \"$((a))\" $[1+2]", "$((1+2)) $(( (1) )) \"$((a))\" $[1+2]")]
#[case::arithmetic_expansions("$((a+$b+$(c)+`d`+${e[1]}))", "$((a+${b}+$( c; )+`d; `+${e[1]}))")]
#[case::not_arithmetic("$((a);(b))", "$( ( a; ); ( b; ); )")]
#[case::not_arithmetic_space("$((a) )", "$( ( a; ); )")]
#[case::commands("$(a;b) \"$(c \"d e\")\" $()", "$( a; b; ) \"$( c \"d e\"; )\" $( )")]
#[case::command_with_case("$(case a in b) c;; esac)", "$( case a in (b) c; ;; esac; )")]
#[case::command_with_comment("$(a # )\n)", "$( a; )")]
#[case::timed_command("$(\ntime a)", "$( \ntime a; )")]
#[case::read_file("$(<f)", "$( < f; )")]
#[case::backticks("`a b`c\"`d`\"", "`a b; `c\"`d; `\"")]
#[case::nested_backticks("`a \\`b\\``", "`a \\`b; \\`; `")]
#[case::backtick_escapes("`a \\$b \\\\$c \\d`", "`a ${b} \\\\$c \\\\d; `")]
#[case::backtick_quotes_in_double("\"`a \\\"b c\\\"`\"", "\"`a \\\"b c\\\"; `\"")]
#[case::backtick_quotes("`a \\\"b`", "`a \\\\\"b; `")]
#[case::processes("<(a) >(b) c<(d)e", "<( a; ) >( b; ) c<( d; )e")]
#[case::quoted_process("\"<(a)\" '>(b)'", "\"<(a)\" '>(b)'")]
#[case::braces("a{b,c} {1..3} { }", "a{b,c} {1..3} { }")]
#[case::hidden_braces(
    "\"$(a \"{b,c}\")\" \"`a \\\"{b,c}\\\"`\"",
    "\"$( a \"{b,c}\"; )\" \"`a \\\"{b,c}\\\"; `\""
)]
#[case::bang("!a a!b !", "!a a!b !")]
fn words(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(canonical(text), expected);
}

#[rstest]
#[case::plain("${a}", "${a}")]
#[case::numbers("${1} ${10}", "${1} ${10}")]
#[case::specials("${#} ${!} ${?} ${-} ${$} ${@} ${*}", "$# $! $? $- $$ $@ $*")]
#[case::lengths("${#a} ${#a[@]} ${#1} ${##} ${#@} ${#?}", "${#a} ${#a[@]} ${#1} ${##} ${#@} ${#?}")]
#[case::indirect(
    "${!a} ${!a*} ${!a@} ${!a[@]} ${!#} ${!a:-b}",
    "${!a} ${!a*} ${!a*} ${!a[@]} ${!#} ${!a:-b}"
)]
#[case::elements(
    "${a[1]} ${a[$i+1]} ${a['b c']} \"${a[\"b\"]}\"",
    "${a[1]} ${a[${i}+1]} ${a['b c']} \"${a[\"b\"]}\""
)]
#[case::defaults("${a-b} ${a:=b} ${a?b} ${a:+b} ${a:-}", "${a:-b} ${a:=b} ${a:?b} ${a:+b} ${a:-}")]
#[case::default_with_blanks("${a:-b c;d}", "${a:-b c;d}")]
#[case::trims("${a#b} ${a##*/} ${a%.c} ${a%%'*'}", "${a#b} ${a##*/} ${a%.c} ${a%%'*'}")]
#[case::replaces(
    "${a/b} ${a//b/c} ${a/#b/} ${a/%b/c/d} ${a///x}",
    "${a/b} ${a//b/c} ${a/#b/} ${a/%b/c/d} ${a///x}"
)]
#[case::escaped_slash("${a//\\//b} \"${a//\\//b}\"", "${a//\\//b} \"${a//\\//b}\"")]
#[case::substrings(
    "${a:1} ${a:1:2} ${a: -1} ${a:(-1):$b} ${a::2} ${@:2}",
    "${a:1} ${a:1:2} ${a: -1} ${a:(-1):${b}} ${a::2} ${@:2}"
)]
#[case::cases("${a^} ${a^^b} ${a,} ${a,,} ${a~} ${a~~}", "${a^} ${a^^b} ${a,} ${a,,} ${a~} ${a~~}")]
#[case::transforms("${a@Q} ${a[@]@A} ${!a@P}", "${a@Q} ${a[@]@A} ${!a@P}")]
#[case::quotes("${a:-\"b}c\"} ${a:-'b}c'}", "${a:-\"b}c\"} ${a:-'b}c'}")]
#[case::quotes_in_double("\"${a:-\"b}c\"}\" \"${a:-'b}c'}\"", "\"${a:-\"b}c\"}\" \"${a:-'b}c'}\"")]
#[case::nested("${a:-${b:-$(c \"${d}\")}}", "${a:-${b:-$( c \"${d}\"; )}}")]
#[case::nested_in_double("\"${a:-\"${b}\"}\"", "\"${a:-\"${b}\"}\"")]
#[case::escaped_brace("${a:-b\\}c} \"${a:-b\\}c}\"", "${a:-b\\}c} \"${a:-b\\}c}\"")]
#[case::open_brace("${a:-{b}c", "${a:-{b}c")]
fn parameters(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(canonical(text), expected);
}

#[test]
fn apostrophes_between_double_quotes_are_plain_text() {
    let PieceKind::Double(pieces) = piece("\"${a:-'$(b)'}\"") else { panic!("not quoted") };
    let PieceKind::Parameter(parameter) = &pieces[0].kind else { panic!("no parameter") };
    let Some(Operation::Default(word)) = &parameter.operation else { panic!("no default") };
    assert_eq!(word.pieces[0].kind, PieceKind::Literal("'".to_owned()));
    assert!(matches!(word.pieces[1].kind, PieceKind::Command(_)));
}

#[test]
fn apostrophes_in_a_pattern_are_quotes() {
    let PieceKind::Double(pieces) = piece("\"${a#'$(b)'}\"") else { panic!("not quoted") };
    let PieceKind::Parameter(parameter) = &pieces[0].kind else { panic!("no parameter") };
    let Some(Operation::Trim { pattern, .. }) = &parameter.operation else { panic!("no pattern") };
    assert_eq!(pattern.pieces[0].kind, PieceKind::Single("$(b)".to_owned()));
}

#[rstest]
#[case("${a}", false, false)]
#[case("${#a}", true, false)]
#[case("${!a}", false, true)]
#[case("${#}", false, false)]
#[case("${!}", false, false)]
fn marks_of_parameters(#[case] text: &str, #[case] length: bool, #[case] indirect: bool) {
    let parameter = parameter(text);
    assert_eq!((parameter.length, parameter.indirect), (length, indirect));
}

#[test]
fn quotes_make_pieces_of_their_own() {
    let kinds: Vec<PieceKind> = word("a'b'\\c\"d\"$'e'").pieces.into_iter().map(|piece| piece.kind).collect();
    let PieceKind::Double(inside) = &kinds[3] else { panic!("{kinds:?}") };
    assert_eq!(inside[0].kind, PieceKind::Literal("d".to_owned()));
    assert_eq!(
        (&kinds[0], &kinds[1], &kinds[2], &kinds[4]),
        (
            &PieceKind::Literal("a".to_owned()),
            &PieceKind::Single("b".to_owned()),
            &PieceKind::Escaped('c'),
            &PieceKind::AnsiC("e".to_owned())
        )
    );
}
