//! Commands: how they are put together, and where words end.

use rstest::rstest;

use super::{canonical, parsed};
use crate::syntax::tree::{CommandKind, Descriptor, RedirectOperator};

#[rstest]
#[case::list("a;b;c", "a\nb\nc")]
#[case::lines("a\n\n  b\n", "a\nb")]
#[case::background("a& b &\nc", "a &\nb &\nc")]
#[case::chain("a&&b||c", "a && b || c")]
#[case::chain_over_lines("a &&\n\n b ||\n c", "a && b || c")]
#[case::pipes("a|b|&c", "a | b |& c")]
#[case::pipe_over_lines("a |\n # why\n b", "a | b")]
#[case::negated("! a", "! a")]
#[case::twice_negated("! ! a | b", "a | b")]
#[case::only_negation("!", "!")]
#[case::only_double_negation("! !", "! !")]
#[case::time("time -p -- a | b", "time a | b")]
#[case::only_time("time; a", "time\na")]
#[case::time_and_not("! time ! ! a", "time ! a")]
#[case::time_after_pipe("a | time b", "a | time b")]
#[case::time_after_pipe_and_line("a |\ntime b", "a | time b")]
#[case::not_time("a time", "a time")]
#[case::time_with_a_word("time -a", "time -a")]
#[case::comment("a # b; c\nd#e #", "a\nd#e")]
#[case::comment_after_operator("a;#b\nc&&#d\ne", "a\nc && e")]
#[case::comment_keeps_backslash("a # b \\\nc", "a\nc")]
#[case::reserved_as_argument("echo if then { } ! time in", "echo if then { } ! time in")]
#[case::reserved_after_assignment("a=1 if", "a=1 if")]
#[case::reserved_after_redirection(">f if x", "> f if x")]
#[case::quoted_reserved("\\if 'then'", "\\if 'then'")]
#[case::carriage_return("then\r x\r", "then\r x\r")]
#[case::unicode("é\u{a0}ü ö", "é\u{a0}ü ö")]
fn lists(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(canonical(text), expected);
}

#[rstest]
#[case::in_a_word("r\\\nm x", "rm x")]
#[case::between_words("a \\\n b\\\n c", "a b c")]
#[case::alone_on_a_line("ls\n\\\nrm -rf x", "ls\nrm -rf x")]
#[case::in_and("a &\\\n& b", "a && b")]
#[case::in_or("a |\\\n| b", "a || b")]
#[case::in_append("a >\\\n> b", ">> b a")]
#[case::in_both("a &\\\n> b", "&> b a")]
#[case::after_operator("a > \\\n b", "> b a")]
#[case::in_descriptor("a 2\\\n> b", "2> b a")]
#[case::in_dollar("$\\\n(a) $\\\nx $\\\n{x} $(\\\n(1))", "$( a; ) ${x} ${x} $((1))")]
#[case::in_a_name("$a\\\nb ${a\\\nb}", "${ab} ${ab}")]
#[case::in_reserved("i\\\nf a; th\\\nen b; f\\\ni", "if a; then b; fi")]
#[case::in_assignment("a\\\n=b a+\\\n=c", "a=b a+=c")]
#[case::in_double("\"a\\\nb\"", "\"ab\"")]
#[case::kept_in_single("'a\\\nb'", "'a\\\nb'")]
#[case::kept_in_ansi_c("$'a\\\nb'", "$'a\\\\\\x0ab'")]
#[case::not_after_backslash("a\\\\\nb", "a\\\\\nb")]
#[case::not_with_carriage_return("a\\\r\nb", "a\\\r\nb")]
#[case::joins_comment_sign("a\\\n#b", "a#b")]
#[case::before_comment("a \\\n#b\nc", "a\nc")]
fn continuations(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(canonical(text), expected);
}

#[rstest]
#[case::group("{ a;b; }", "{ a; b; }")]
#[case::group_at_break("{(a);}", "{ ( a; ); }")]
#[case::nested_groups("{ { a; } }", "{ { a; }; }")]
#[case::not_a_group("{a }", "{a }")]
#[case::subshell("(a;b)", "( a; b; )")]
#[case::subshells("( (a) )", "( ( a; ); )")]
#[case::touching_subshells("((a) )", "( ( a; ); )")]
#[case::two_touching_subshells("((a);(b))", "( ( a; ); ( b; ); )")]
#[case::arithmetic("(( a+1 ))", "(( a+1 ))")]
#[case::arithmetic_with_parentheses("(((a+1)*(b)))", "(((a+1)*(b)))")]
#[case::arithmetic_over_lines("((a\n+1))", "((a\n+1))")]
#[case::if_elif_else("if a;then b;elif c\nthen d;else e;fi", "if a; then b; elif c; then d; else e; fi")]
#[case::if_after_group("if { a; } then b; fi", "if { a; }; then b; fi")]
#[case::if_after_subshell("if (a) then (b) fi", "if ( a; ); then ( b; ); fi")]
#[case::if_after_test("if [[ a ]] then b; fi", "if [[ a ]]; then b; fi")]
#[case::if_after_arithmetic("if ((1)) then b; fi", "if ((1)); then b; fi")]
#[case::if_in_if("if a; then if b; then c; fi fi", "if a; then if b; then c; fi; fi")]
#[case::background_in_if("if a & then b & fi", "if a & then b & fi")]
#[case::while_loop("while a;do b;done", "while a; do b; done")]
#[case::until_loop("until a\ndo b\ndone", "until a; do b; done")]
#[case::loop_with_redirections("while a; do b; done <f >g", "while a; do b; done < f > g")]
#[case::for_words("for x in a 'b c';do d;done", "for x in a 'b c'; do d; done")]
#[case::for_nothing("for x in; do a; done", "for x in ; do a; done")]
#[case::for_arguments("for x;do a;done", "for x; do a; done")]
#[case::for_directly("for x do a;done", "for x; do a; done")]
#[case::for_over_lines("for x\n\nin a\n\ndo b;done", "for x in a; do b; done")]
#[case::for_reserved("for if in in do; do a; done", "for if in in do; do a; done")]
#[case::for_group("for x in a; { b; }", "for x in a; do b; done")]
#[case::for_arithmetic("for ((i=0;i<3;i++)); do a; done", "for ((i=0;i<3;i++)); do a; done")]
#[case::for_ever("for ((;;)) { a; }", "for ((;;)); do a; done")]
#[case::for_arithmetic_directly("for (( ; ; )) do a; done", "for (( ; ; )); do a; done")]
#[case::select("select x in a;do b;done", "select x in a; do b; done")]
#[case::case_arms(
    "case x in a|b) c;;(d) e;& f) ;;& g) h\nesac",
    "case x in (a | b) c; ;; (d) e; ;& (f) ;;& (g) h; ;; esac"
)]
#[case::case_empty("case x in esac", "case x in esac")]
#[case::case_in("case in in in) in=1;; esac", "case in in (in) in=1; ;; esac")]
#[case::case_esac_pattern(
    "case x in (esac) a;; b|esac) c; esac",
    "case x in (esac) a; ;; (b | esac) c; ;; esac"
)]
#[case::case_reserved_pattern("case x in if) a;; esac", "case x in (if) a; ;; esac")]
#[case::case_over_lines("case x\nin\n\na)\nb\n;;\n\nesac", "case x in (a) b; ;; esac")]
#[case::function_parentheses("f(){ a;}", "function f () { a; }")]
#[case::function_spaces("f ( ) \n (a)", "function f () ( a; )")]
#[case::function_keyword("function f { a; }", "function f () { a; }")]
#[case::function_both("function f() if a; then b; fi", "function f () if a; then b; fi")]
#[case::function_subshell("function f (a)", "function f () ( a; )")]
#[case::function_reserved_name("function if { a; }", "function if () { a; }")]
#[case::function_foreign_name(
    "\u{7d9}(){ a;}; function \u{e9} { a; }",
    "function \u{7d9} () { a; }\nfunction \u{e9} () { a; }"
)]
#[case::function_long_name(&format!("{}(){{ a;}}", "f".repeat(300)), &format!("function {} () {{ a; }}", "f".repeat(300)))]
#[case::function_test("f() [[ a ]]", "function f () [[ a ]]")]
#[case::function_redirections("f() { a; } >g 2>&1", "function f () { a; } > g 2>& 1")]
#[case::coprocess("coproc a b", "coproc a b")]
#[case::coprocess_group("coproc { a; }", "coproc { a; }")]
#[case::coprocess_named("coproc N { a; } >f", "coproc N { a; } > f")]
#[case::coprocess_assignment("coproc a=b c", "coproc a=b c")]
fn compound(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(canonical(text), expected);
}

#[rstest]
#[case::after_words("rm >out x", "> out rm x")]
#[case::before(">out <in rm", "> out < in rm")]
#[case::alone(">out", "> out")]
#[case::numbers("a 2>f 10<g", "2> f 10< g a")]
#[case::number_apart("a 2 >f", "> f a 2")]
#[case::number_in_word("a x2>f", "> f a x2")]
#[case::number_too_large("a 99999999999>f", "> f a 99999999999")]
#[case::variable("exec {fd}>f", "{fd}> f exec")]
#[case::not_a_variable("a {1}>f {a }>f", "> f > f a {1} {a }")]
#[case::both("a &>f &>>g", "&> f &>> g a")]
#[case::both_after_number("a 2&>f", "&> f a 2")]
#[case::duplicates("a >&2 2>&1 <&3 >&f >& 4", ">& 2 2>& 1 <& 3 >& f >& 4 a")]
#[case::close("a >&- 3<&- x", ">& - 3<& - a x")]
#[case::close_ends_the_word("a >&-x", ">& - a x")]
#[case::move_descriptor("a >&2-", ">& 2- a")]
#[case::duplicate_then_write("a >&2>f", ">& 2 > f a")]
#[case::others("a >|f <>g <<<h", ">| f <> g <<< h a")]
#[case::process_as_file("a < <(b) > >(c)", "< <( b; ) > >( c; ) a")]
fn redirections(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(canonical(text), expected);
}

#[test]
fn redirections_keep_their_parts() {
    let list = parsed("a 3>>f {x}<>g");
    let redirects = &list.items[0].chain.first.stages[0].command.redirects;
    assert_eq!(redirects[0].descriptor, Some(Descriptor::Number(3)));
    assert_eq!(redirects[0].operator, RedirectOperator::Append);
    assert_eq!(redirects[1].descriptor, Some(Descriptor::Variable("x".to_owned())));
    assert_eq!(redirects[1].operator, RedirectOperator::ReadWrite);
}

#[rstest]
#[case::scalar("a=b c= d+=e", 3, 0)]
#[case::before_command("a=b c=d cmd e=f", 2, 2)]
#[case::element("a[i+1]=x a[ 1 ]+=y", 2, 0)]
#[case::array("a=(x \"y z\" [3]=w) b+=(\n# no\n1\n)", 2, 0)]
#[case::quoted_name("'a'=b", 0, 1)]
#[case::escaped_equals("a\\=b", 0, 1)]
#[case::number("1=b", 0, 1)]
#[case::after_redirection(">f a=b >g c=d e", 2, 1)]
#[case::element_after_redirection("a=1 >f b[1]=c d", 2, 1)]
#[case::glob("a[1] b", 0, 2)]
#[case::bracket_command("[ a ]", 0, 3)]
fn assigned_and_words(#[case] text: &str, #[case] assignments: usize, #[case] words: usize) {
    let list = parsed(text);
    let CommandKind::Simple(simple) = &list.items[0].chain.first.stages[0].command.kind else {
        panic!("not a simple command");
    };
    assert_eq!((simple.assignments.len(), simple.words.len()), (assignments, words));
}

#[rstest]
#[case::values("a=b[1]=c a[x y]=z", "a=b[1]=c a[x y]=z")]
#[case::arrays("a=( x\n'y' [2]=$z )", "a=(x 'y' [2]=${z})")]
#[case::declared("declare -a a=(x y) b+=(z) c", "declare -a a=(x y) b+=(z) c")]
#[case::exported("x=1 export a=(b)", "x=1 export a=(b)")]
#[case::keys("m['a b']=1 m[\"$k\"]=2 m[$(a)]=3", "m['a b']=1 m[\"${k}\"]=2 m[$( a; )]=3")]
fn assigned_values(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(canonical(text), expected);
}

#[rstest]
#[case::word("[[ a ]]", "[[ a ]]")]
#[case::unary("[[ -f a ]]", "[[ -f a ]]")]
#[case::binary("[[ a == b ]]", "[[ a == b ]]")]
#[case::order("[[ a<b && c>d ]]", "[[ a < b && c > d ]]")]
#[case::precedence("[[ a && b || ! c && d ]]", "[[ a && b || ! c && d ]]")]
#[case::groups("[[ (a || b) && ((c)) ]]", "[[ ( a || b ) && ( ( c ) ) ]]")]
#[case::lines("[[\na == b\n&&\n-n c\n]]", "[[ a == b && -n c ]]")]
#[case::not_group("[[ !(a) ]]", "[[ ! ( a ) ]]")]
#[case::extended_glob("[[ a == @(b|c d)* ]]", "[[ a == @(b|c d)* ]]")]
#[case::regex("[[ $a =~ ^(b|c d)+$ ]]", "[[ ${a} =~ ^(b|c d)+$ ]]")]
#[case::regex_bar("[[ a =~ b|c ]]", "[[ a =~ b|c ]]")]
#[case::regex_class("[[ a =~ [[:space:]]* ]]", "[[ a =~ [[:space:]]* ]]")]
#[case::regex_quotes("[[ a =~ \"$b\"\\.(\"x)y\") ]]", "[[ a =~ \"${b}\"\\.(\"x)y\") ]]")]
#[case::comparison("[[ a -nt b || 1 -lt 2 ]]", "[[ a -nt b || 1 -lt 2 ]]")]
#[case::as_argument("echo [[ a ]]", "echo [[ a ]]")]
fn tests(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(canonical(text), expected);
}
