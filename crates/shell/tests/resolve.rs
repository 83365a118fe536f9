//! What the words of a command become before a program sees them: each case is a command, and the argument lists
//! that follow from it. `|` stands between the arguments, ` ; ` between the commands, `…` for what is not known
//! beforehand, and `N` for some number.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop at the first surprise"
)]

use gripper_shell::{Analysis, Surroundings, Verdict, Via, analyze};
use rstest::rstest;

fn analysed(text: &str) -> Analysis {
    analyze(text, &Surroundings::new("/home/dev/project", "/home/dev"))
}

/// The argument lists, in the order of the text.
fn given(text: &str) -> String {
    let analysis = analysed(text);
    let shown = |words: Vec<String>| words.join("|");
    let parts = analysis.parts().iter().filter(|part| !part.argv.is_empty());
    parts
        .map(|part| shown(part.argv.iter().map(|word| word.shown()).collect()))
        .collect::<Vec<_>>()
        .join(" ; ")
}

#[rstest]
#[case::single_quotes("cat 'a b'", "cat|a b")]
#[case::double_quotes("cat \"a b\"", "cat|a b")]
#[case::escaped_blank(r"cat a\ b", "cat|a b")]
#[case::quotes_in_a_word("cat a'b'\"c\"", "cat|abc")]
#[case::empty_word("cat '' a", "cat||a")]
#[case::quoted_dollar("cat '$x'", "cat|$x")]
#[case::escaped_dollar(r#"cat "\$x""#, "cat|$x")]
#[case::backslash_kept(r#"cat "\a""#, r"cat|\a")]
#[case::tab_and_code(r"cat $'a\tb\x63'", "cat|a\tbc")]
#[case::octal(r"cat $'\101'", "cat|A")]
#[case::continued_line("cat \\\n  a", "cat|a")]
#[case::continued_word("cat a\\\nb", "cat|ab")]
#[case::comment("cat a # b c", "cat|a")]
#[case::no_comment("cat a#b", "cat|a#b")]
#[case::leading_backslash(r"\ls", "ls")]
fn quotes_are_taken_off(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(given(text), expected);
}

#[rstest]
#[case::choice("cat {a,b}.txt", "cat|a.txt|b.txt")]
#[case::product("cat {a,b}{1,2}", "cat|a1|a2|b1|b2")]
#[case::nested("cat {a,{b,c}}", "cat|a|b|c")]
#[case::numbers("cat {1..3}", "cat|1|2|3")]
#[case::steps("cat {1..7..3}", "cat|1|4|7")]
#[case::padded("cat {08..10}", "cat|08|09|10")]
#[case::padded_at_the_end("cat {3..01}", "cat|03|02|01")]
#[case::backwards("cat {3..1}", "cat|3|2|1")]
#[case::letters("cat {a..c}", "cat|a|b|c")]
#[case::quoted("cat '{a,b}'", "cat|{a,b}")]
#[case::alone("cat {a}", "cat|{a}")]
#[case::empty("cat {}", "cat|{}")]
#[case::as_a_command("{cat,a.txt}", "cat|a.txt")]
fn braces_become_several_words(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(given(text), expected);
}

#[rstest]
#[case::alone("ls ~", "ls|/home/dev")]
#[case::below("ls ~/a", "ls|/home/dev/a")]
#[case::quoted("ls '~/a'", "ls|~/a")]
#[case::in_the_middle("ls a~b", "ls|a~b")]
#[case::variable("ls $HOME/a", "ls|/home/dev/a")]
#[case::braces("ls ${HOME}/a", "ls|/home/dev/a")]
#[case::working_directory("ls \"$PWD/a\"", "ls|/home/dev/project/a")]
fn home_and_here_are_known(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(given(text), expected);
}

#[rstest]
#[case::one("f=a.txt; cat $f", "cat|a.txt")]
#[case::split("f='a b'; cat $f", "cat|a|b")]
#[case::not_split("f='a b'; cat \"$f\"", "cat|a b")]
#[case::the_last_counts("f=a; f=b; cat $f", "cat|b")]
#[case::from_another("a=x; b=$a/y; cat $b", "cat|x/y")]
#[case::empty("f=; cat $f a", "cat|a")]
#[case::unset("f=a; unset f; cat $f b", "unset|f ; cat|b")]
#[case::default_used("f=; cat ${f:-b} c", "cat|b|c ; cat|c")]
#[case::default_not_used("f=a; cat ${f:-b}", "cat|a")]
#[case::as_the_command("x='ls -l'; $x src", "ls|-l|src")]
#[case::array("f=(a 'b c'); cat \"${f[@]}\"", "cat|a|b c")]
#[case::unknown("cat \"$f\"", "cat|…")]
#[case::unknown_and_split("cat $f", "cat|……")]
#[case::perhaps_gone("shopt -s nullglob; cat o$f*", "shopt|-s|nullglob ; cat|o……|……")]
#[case::quoted_stays("shopt -s nullglob; cat o\"$f\"", "shopt|-s|nullglob ; cat|o…")]
#[case::unknown_part("cat src/\"$f\".rs", "cat|src/….rs")]
#[case::output("cat \"$(ls)\"", "cat|… ; ls")]
#[case::not_behind_the_command("f=a cat $f", "cat|……")]
#[case::subshell("f=a; (f=b); cat $f", "cat|a")]
#[case::pipeline("f=a; f=b | cat; cat $f", "cat ; cat|a")]
fn variables_are_followed(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(given(text), expected);
}

#[rstest]
#[case::either("if true; then f=a; else f=b; fi; cat $f", "true ; cat|a ; cat|b")]
#[case::perhaps("f=a; if true; then f=b; fi; cat $f", "true ; cat|a ; cat|b")]
#[case::and("f=a; true && f=b; cat $f", "true ; cat|a ; cat|b")]
#[case::case_arms("f=a; case x in y) f=b;; z) f=c;; esac; cat $f", "cat|a ; cat|b ; cat|c")]
fn all_ways_are_followed(#[case] text: &str, #[case] expected: &str) {
    let mut ways: Vec<String> = given(text).split(" ; ").map(str::to_owned).collect();
    ways.sort();
    let mut expected: Vec<&str> = expected.split(" ; ").collect();
    expected.sort_unstable();
    assert_eq!(ways, expected);
}

#[rstest]
#[case::literals("for f in a b; do cat $f.txt; done", "cat|a.txt ; cat|b.txt")]
#[case::pattern("for f in *.rs; do cat \"$f\"; done", "cat|*.rs")]
#[case::braces("for i in {1..2}; do cat $i; done", "cat|1 ; cat|2")]
#[case::positional("set -- a b; for f; do cat $f; done", "set|--|a|b ; cat|a ; cat|b")]
#[case::output("for f in $(ls); do cat \"$f\"; done", "ls ; cat|…")]
#[case::counted("for ((i = 0; i < 3; i++)); do cat part$i; done", "cat|partN ; cat|part")]
#[case::lines("while read -r f; do cat \"$f\"; done < list", "read|-r|f ; cat|…")]
#[case::changed_inside("f=a; for i in 1 2; do cat \"$f\"; f=$(ls); done", "cat|… ; ls")]
#[case::left_over("for f in a b; do true; done; cat \"$f\"", "true ; cat|…")]
fn loops_are_followed(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(given(text), expected);
}

#[rstest]
#[case::all("set -- a 'b c'; cat \"$@\"", "set|--|a|b c ; cat|a|b c")]
#[case::second("set -- a b; cat $2", "set|--|a|b ; cat|b")]
#[case::count("set -- a b; echo $#", "set|--|a|b ; echo|N")]
#[case::joined("set -- a b; cat \"$*\"", "set|--|a|b ; cat|a b")]
#[case::shifted("set -- a b; shift; cat $1", "set|--|a|b ; shift ; cat|b")]
#[case::missing("set -- a; cat $2 b", "set|--|a ; cat|b")]
fn positional_parameters_are_followed(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(given(text), expected);
}

#[rstest]
#[case::argument("show() { cat \"$1\"; }; show a.txt", "cat|a.txt ; show|a.txt")]
#[case::all_arguments("show() { cat \"$@\"; }; show a b", "cat|a|b ; show|a|b")]
#[case::variable("f() { x=b; }; x=a; f; cat $x", "f ; cat|b")]
#[case::shadowed("ls() { rm x; }; ls", "rm|x ; ls")]
#[case::not_called("f() { rm x; }; ls", "ls")]
#[case::past_the_function("ls() { rm x; }; command ls", "command|ls ; ls")]
fn functions_are_followed(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(given(text), expected);
}

#[rstest]
#[case::literal("cat <<'E'\n$(rm x)\nE", "cat")]
#[case::followed("cat <<E\n$(rm x)\nE", "cat ; rm|x")]
#[case::tabs("cat <<-E\n\ta\n\tE", "cat")]
#[case::two("cat <<A <<B\na\nA\nb\nB\nls", "cat ; ls")]
#[case::here_string("cat <<< \"a $(date)\"", "cat ; date")]
fn here_documents_are_data_and_what_they_expand(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(given(text), expected);
}

#[rstest]
#[case::sum("echo $((1 + 2))", "echo|N")]
#[case::name("i=1; cat part$((i + 1)).txt", "cat|partN.txt")]
#[case::statement("((i = 1)); cat \"$i\"", "cat|N ; cat|")]
#[case::status("ls; echo $?", "ls ; echo|N")]
#[case::length("x=abc; echo ${#x}", "echo|N")]
fn arithmetic_gives_some_number(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(given(text), expected);
}

#[rstest]
#[case::command("command ls -l", "command|ls|-l ; ls|-l")]
#[case::builtin("builtin echo a", "builtin|echo|a ; echo|a")]
#[case::eval("eval 'cat a; cat b'", "eval|cat a; cat b ; cat|a ; cat|b")]
#[case::eval_joins("eval cat a", "eval|cat|a ; cat|a")]
#[case::bash("bash -c 'cat \"$1\"' _ a", "bash|-c|cat \"$1\"|_|a ; cat|a")]
#[case::bash_forgets("x=a; bash -c 'cat \"$x\"'", "bash|-c|cat \"$x\" ; cat|…")]
#[case::xargs("xargs grep x", "xargs|grep|x ; grep|x|……")]
#[case::xargs_replaces("xargs -I{} cat {}.txt", "xargs|-I{}|cat|{}.txt ; cat|….txt")]
#[case::find("find src -exec cat {} +", "find|src|-exec|cat|{}|+ ; cat|src…")]
#[case::env("env LC_ALL=C sort a", "env|LC_ALL=C|sort|a ; sort|a")]
#[case::timeout("timeout 5 cat a", "timeout|5|cat|a ; cat|a")]
#[case::timeout_in_env("env timeout -k 1 5 cat a", "env|timeout|-k|1|5|cat|a ; timeout|-k|1|5|cat|a ; cat|a")]
#[case::nice("nice -n 5 ls", "nice|-n|5|ls ; ls")]
fn commands_inside_commands_are_followed(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(given(text), expected);
}

#[test]
fn parts_say_how_they_came_to_be_run() {
    let analysis = analysed("f() { ls; }; f; echo $(pwd); timeout 5 cat a");
    let vias: Vec<(String, &Via)> = analysis.parts().iter().map(|part| (part.shown(), &part.via)).collect();
    let via =
        |shown: &str| vias.iter().find(|(name, _)| name == shown).map(|(_, via)| (*via).clone()).unwrap();
    assert_eq!(via("ls"), Via::Function("f".to_owned()));
    assert_eq!(via("pwd"), Via::Substitution);
    assert_eq!(via("cat a"), Via::Program("timeout".to_owned()));
    assert_eq!(via("timeout 5 cat a"), Via::Line);
}

#[rstest]
#[case::short_cluster("ls -la", "ls -l --all")]
#[case::long("ls --all", "ls --all")]
#[case::folder_of_the_program("/usr/bin/git status", "git status")]
#[case::quotes("grep \"-i\" 'a b' c", "grep --ignore-case a b c")]
#[case::value_in_the_word("sort -oout a", "sort --output=out a")]
#[case::value_in_the_next("sort -o out a", "sort --output=out a")]
#[case::operands_last("sort a -o out", "sort --output=out a")]
#[case::end_of_options("rm -- -f", "rm -f")]
#[case::number("git log -5", "git log -5")]
#[case::code("bash -c 'ls -l'", "bash -c ls -l")]
#[case::recursive("rm -rf build", "rm --recursive --force build")]
fn argument_lists_have_one_spelling_for_rules(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(analysed(text).parts()[0].normal.words().join(" "), expected);
}

#[rstest]
#[case::nothing("ls", Some("/home/dev/project"))]
#[case::subshell("(cd src)", Some("/home/dev/project"))]
#[case::pipeline("cd src | cat", Some("/home/dev/project"))]
#[case::background("cd src &", Some("/home/dev/project"))]
#[case::substitution("echo $(cd src; pwd)", Some("/home/dev/project"))]
#[case::inner_shell("bash -c 'cd src'", Some("/home/dev/project"))]
#[case::may_fail("cd src", None)]
#[case::or_leave("cd src || exit 1", None)]
#[case::unknown("cd \"$x\"", None)]
fn where_the_shell_stands_afterwards(#[case] text: &str, #[case] expected: Option<&str>) {
    assert_eq!(analysed(text).cwd(), expected);
}

/// Files that are read, relative to the project, however the folder came about.
#[rstest]
#[case::and("cd src && cat a", "src/a")]
#[case::or("cd src || cat a", "a")]
#[case::then("cd src; cat a", "a src/a")]
#[case::there_and_back("cd src && cd .. && cat a", "a")]
#[case::back("cd src && cd - && cat a", "a")]
#[case::twice("cd a && cd b && cat c", "a/b/c")]
#[case::absolute("cd /home/dev/project/x && cat a", "x/a")]
#[case::subshell("(cd src && cat a); cat b", "b src/a")]
#[case::pipeline("cd src | cat; cat a", "a")]
#[case::group("{ cd src && cat a; } && cat b", "src/a src/b")]
#[case::stack("pushd src && cat a && popd && cat b", "b src/a")]
#[case::function("go() { cd src; }; go && cat a", "a src/a")]
#[case::eval("eval 'cd src' && cat a", "src/a")]
#[case::condition("if cd src; then cat a; else cat b; fi", "b src/a")]
#[case::negated("! cd src && cat a", "a")]
#[case::redirection("cd src && sort < a", "src/a")]
#[case::builtin("builtin cd src && cat a", "src/a")]
fn cd_is_followed(#[case] text: &str, #[case] expected: &str) {
    let analysis = analysed(text);
    assert_eq!(analysis.verdict(), Verdict::ReadOnly, "{:?}", analysis.unresolved());
    let paths = analysis.reads().into_iter().map(ToString::to_string);
    let names: Vec<String> = paths.map(|path| path.replacen("/home/dev/project/", "", 1)).collect();
    assert_eq!(names.join(" "), expected);
}
