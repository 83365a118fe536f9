//! What commands do: each case is a command, how far it only reads, and the same in one line for people.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop at the first surprise"
)]

use gripper_shell::{Analysis, EffectKind, Surroundings, Target, Verdict, analyze};
use rstest::rstest;

fn here() -> Surroundings<'static> {
    Surroundings::new("/home/dev/project", "/home/dev")
}

fn analysed(text: &str) -> Analysis {
    analyze(text, &here())
}

/// The verdict and the summary, in words.
fn outcome(text: &str) -> (&'static str, String) {
    let analysis = analysed(text);
    let verdict = match analysis.verdict() {
        Verdict::ReadOnly => "only reads",
        Verdict::ReadOnlyIfConfined => "if confined",
        Verdict::NotReadOnly => "does more",
    };
    (verdict, analysis.summary(&here()))
}

#[rstest]
#[case::listing("ls -la", "only prints")]
#[case::files("cat a.txt src/b.rs", "reads a.txt and src/b.rs")]
#[case::pipeline("sort a | uniq -c | head -5", "reads a")]
#[case::chain("cat a && cat b || cat c", "reads a and b and c")]
#[case::input("sort < a", "reads a")]
#[case::many("cat a b c d e", "reads a and b and c and 2 more")]
#[case::outside("cat /etc/hosts ~/notes", "reads /etc/hosts and ~/notes")]
#[case::script("sed -n '1,5p' a", "reads a")]
#[case::columns("awk -F: '{print $1}' a", "reads a")]
#[case::filter("jq -r .name a.json", "reads a.json")]
#[case::silent("grep -q x a 2>/dev/null", "reads a")]
#[case::errors_too("sort a 2>&1 | head", "reads a")]
#[case::condition("if [ -f a ]; then cat a; fi", "reads a")]
#[case::subshell("(cat a; cat b)", "reads a and b")]
#[case::group("{ cat a; }", "reads a")]
#[case::negated("! cat a", "reads a")]
#[case::timed("time cat a", "reads a")]
#[case::background("cat a &", "reads a")]
#[case::substitution("echo $(cat a)", "reads a")]
#[case::repository("git status --short", "only prints")]
#[case::history("git log --oneline -5", "only prints")]
#[case::harmless_setting("LC_ALL=C sort a", "reads a")]
#[case::version("python3 --version", "only prints")]
#[case::nothing("", "only prints")]
#[case::comment("# nothing here", "only prints")]
fn only_reads(#[case] text: &str, #[case] summary: &str) {
    assert_eq!(outcome(text), ("only reads", summary.to_owned()));
}

#[rstest]
#[case::folders("grep -rn x .", "reads .")]
#[case::pattern("cat *.rs", "lists *.rs, reads *.rs")]
#[case::data("cat \"$f\"", "reads files not known beforehand")]
#[case::names_from_input("ls | xargs grep x", "reads files not known beforehand")]
#[case::found("find src -exec grep -l x {} +", "lists src, reads files not known beforehand")]
#[case::names_from_output("cat $(git ls-files)", "reads files not known beforehand")]
#[case::lines("while read -r f; do cat \"$f\"; done < list", "reads list and files not known beforehand")]
fn only_reads_but_what_is_decided_later(#[case] text: &str, #[case] summary: &str) {
    assert_eq!(outcome(text), ("if confined", summary.to_owned()));
}

#[rstest]
#[case::redirected("echo x > out.txt", "writes out.txt")]
#[case::appended("sort a >> out.txt", "reads a, writes out.txt")]
#[case::errors("ls 2> errors.txt", "writes errors.txt")]
#[case::both("ls &> all.txt", "writes all.txt")]
#[case::read_and_write("cat <> a", "writes a")]
#[case::forced("ls >| a", "writes a")]
#[case::bare("> a", "writes a")]
#[case::of_a_group("{ ls; } > a", "writes a")]
#[case::of_a_loop("for i in 1 2; do echo $i; done > a", "writes a")]
#[case::tee("ls | tee log.txt", "writes log.txt")]
#[case::by_option("sort -o b a", "reads a, writes b")]
#[case::sed_script("sed -n 'w out.txt' a", "reads a, writes out.txt")]
#[case::awk_script("awk '{print > \"out.txt\"}' a", "reads a, writes out.txt")]
#[case::removed("rm a b", "deletes a and b")]
#[case::deeper("cd src && rm a", "lists src, deletes src/a")]
#[case::in_a_substitution("echo $(rm a)", "deletes a")]
#[case::in_a_function("f() { rm \"$1\"; }; f a", "deletes a")]
#[case::in_an_arm("case $1 in a) cat a;; *) rm b;; esac", "reads a, deletes b")]
#[case::wrapped("timeout 5 rm a", "deletes a")]
#[case::evaluated("eval 'rm a'", "deletes a")]
#[case::inner_shell("bash -c 'rm a'", "deletes a")]
#[case::negated("! rm a", "deletes a")]
#[case::background("rm a &", "deletes a")]
fn does_more_than_read(#[case] text: &str, #[case] summary: &str) {
    assert_eq!(outcome(text), ("does more", summary.to_owned()));
}

#[rstest]
#[case::unknown_program("frobnicate a", "unknown: `frobnicate` is not a known program")]
#[case::unknown_option("ls --frobnicate", "frobnicate")]
#[case::own_program("./run.sh", "runs the program ./run.sh")]
#[case::other_folder("/tmp/ls", "runs the program /tmp/ls")]
#[case::pretended_folder("/usr/bin/../../tmp/ls", "runs the program")]
#[case::project_code("make test", "runs code of make")]
#[case::interpreter("python -c 'print(1)'", "runs code of python")]
#[case::network("curl http://example.com", "contacts")]
#[case::rights("sudo ls", "gains rights")]
#[case::processes("kill 1", "controls processes")]
#[case::environment("env", "environment")]
#[case::secret_variable("echo $API_TOKEN", "uses the environment variable API_TOKEN")]
#[case::steering_variable("LD_PRELOAD=x ls", "LD_PRELOAD")]
#[case::unknown_command("$x", "the command itself is not known")]
#[case::unknown_code("eval \"$x\"", "eval of text that is not known")]
#[case::alias("alias ls=rm; ls a", "names are given another meaning")]
#[case::lost("cd \"$x\" && cat a", "the working directory is not known any more")]
#[case::lost_in_a_loop(
    "g() { ls; }; f() { g; }; for i in 1 2; do echo > o; g() { cd d; }; f; done",
    "the working directory is not known any more"
)]
#[case::malformed("cat 'a", "cannot be followed")]
#[case::coprocess("coproc cat", "a coprocess runs beside the script")]
fn what_it_says_about_the_rest(#[case] text: &str, #[case] part: &str) {
    let (verdict, summary) = outcome(text);
    assert_eq!(verdict, "does more");
    assert!(summary.contains(part), "{summary}");
}

#[rstest]
#[case::one("sed -i 's/a/b/' x.txt", "sed", Some("s/a/b/"), "x.txt")]
#[case::several("sed -i 's/a/b/' x.txt y.txt", "sed", Some("s/a/b/"), "x.txt y.txt")]
#[case::with_a_copy("sed -i.bak 's/a/b/' x.txt", "sed", Some("s/a/b/"), "x.txt")]
#[case::long_option("sed --in-place -e 's/a/b/' -e 's/c/d/' x.txt", "sed", Some("s/a/b/\ns/c/d/"), "x.txt")]
#[case::in_a_folder("cd src && sed -i 's/a/b/' x.txt", "sed", Some("s/a/b/"), "src/x.txt")]
#[case::unknown_script("sed -i \"$s\" x.txt", "sed", None, "x.txt")]
#[case::perl(
    "perl -pi -e 's/a(b)$/\\u$1/g; tr|x|y|' x.txt",
    "perl",
    Some("s/a(b)$/\\u$1/g; tr|x|y|"),
    "x.txt"
)]
#[case::perl_with_a_copy(
    "perl -i.bak -0777 -wpe 's/(?<!q)a/b/;' -e 's,c,d,' x.txt",
    "perl",
    Some("s/(?<!q)a/b/;\ns,c,d,"),
    "x.txt"
)]
fn edits_in_place_are_recognised(
    #[case] text: &str,
    #[case] program: &str,
    #[case] script: Option<&str>,
    #[case] files: &str,
) {
    let analysis = analysed(text);
    let [edit] = analysis.edits() else { panic!("{:?}", analysis.edits()) };
    assert_eq!((edit.program.as_str(), edit.script.as_deref()), (program, script));
    let files: Vec<String> = files.split(' ').map(|file| format!("/home/dev/project/{file}")).collect();
    assert_eq!(edit.files, files);
    assert!(edit.span.of(text).starts_with(program), "{}", edit.span.of(text));
    assert_eq!(analysis.verdict(), Verdict::NotReadOnly);
}

#[rstest]
#[case::to_the_screen("sed 's/a/b/' x.txt")]
#[case::option_of_another("grep -i a x.txt")]
#[case::redirected("sed 's/a/b/' x.txt > y.txt")]
#[case::perl_to_the_screen("perl -pe 's/a/b/' x.txt")]
#[case::perl_without_print("perl -ni -e 's/a/b/' x.txt")]
#[case::perl_letters_are_a_suffix("perl -pie 's/a/b/' x.txt")]
#[case::perl_runs_the_replacement("perl -pi -e 's/a/b/e' x.txt")]
#[case::perl_statement("perl -pi -e 's/a/b/; unlink q(y)' x.txt")]
#[case::perl_statement_behind_a_flag("perl -pi -e 's/a/b/ or system q(ls)' x.txt")]
#[case::perl_code_in_the_pattern("perl -pi -e 's/(?{ unlink q(y) })a/b/' x.txt")]
#[case::perl_code_in_a_list("perl -pi -e 's/a/@{[unlink q(y)]}/' x.txt")]
#[case::perl_code_in_a_name("perl -pi -e 's/a/${\\unlink q(y)}/' x.txt")]
#[case::perl_code_in_a_subscript("perl -pi -e 's/a/$1[unlink q(y)]/' x.txt")]
#[case::perl_module("perl -Mx -pi -e 's/a/b/' x.txt")]
#[case::perl_opens_a_command("perl -pi -e 's/a/b/' 'ls|'")]
#[case::perl_any_file("perl -pi -e 's/a/b/' *.txt")]
fn not_every_sed_or_perl_edits(#[case] text: &str) {
    assert!(analysed(text).edits().is_empty());
}

#[test]
fn the_copies_of_an_edit_in_place_are_written_too() {
    let writes = |text: &str| {
        let analysis = analysed(text);
        let mut names: Vec<String> = analysis.writes().into_iter().map(ToString::to_string).collect();
        names.sort();
        names.join(" ").replace("/home/dev/project/", "")
    };
    assert_eq!(writes("sed -i.json s/a/b/ settings x"), "settings settings.json x x.json");
    assert_eq!(writes("sed --in-place=~ s/a/b/ x"), "x x~");
    assert_eq!(writes("perl -pi.bak -e s/a/b/ x"), "x x.bak");
    let elsewhere = analysed("sed -i'old/*' s/a/b/ x");
    assert!(elsewhere.writes().contains(&Target::Unknown));
}

#[rstest]
#[case::commit("git -C . commit -m x", true)]
#[case::rebase("cd src && git rebase main", true)]
#[case::install("npm ci", true)]
#[case::in_sudo("sudo apt-get -y install jq", true)]
#[case::migration("alembic upgrade head", true)]
#[case::by_option("dpkg -i x.deb", true)]
#[case::a_word_only("git log --grep commit", false)]
#[case::a_question("git commit --help", false)]
#[case::reader("npm ls", false)]
#[case::build("make install", false)]
fn some_commands_must_not_be_cut_short(#[case] text: &str, #[case] expected: bool) {
    assert_eq!(analysed(text).must_finish(), expected);
}

#[rstest]
#[case::grep("grep x a", Some((1, "no line matched")))]
#[case::diff("diff a b", Some((1, "the inputs differ")))]
#[case::condition("test -f a", Some((1, "the condition is false")))]
#[case::bracket("[ -f a ]", Some((1, "the condition is false")))]
#[case::double_bracket("grep x a; [[ -f a ]]", Some((1, "the condition is false")))]
#[case::arithmetic("(( x > 3 ))", Some((1, "the condition is false")))]
#[case::negated("! [[ -f a ]]", None)]
#[case::cmp("cmp a b", Some((1, "the files differ")))]
#[case::rg("rg x", Some((1, "no line matched")))]
#[case::find("find . -name x", Some((1, "some of it could not be looked into")))]
#[case::git_diff("git diff --exit-code", Some((1, "there are differences")))]
#[case::git_grep("git grep x", Some((1, "no line matched")))]
#[case::last_of_a_pipeline("cat a | grep x", Some((1, "no line matched")))]
#[case::last_of_a_list("ls; diff a b", Some((1, "the inputs differ")))]
#[case::not_the_first("grep x a; ls", None)]
#[case::not_an_inner_one("echo $(grep x a)", None)]
#[case::plain("cat a", None)]
fn what_exit_codes_mean(#[case] text: &str, #[case] expected: Option<(i32, &str)>) {
    let analysis = analysed(text);
    let first = analysis.exits().first().map(|(code, meaning)| (*code, meaning.as_str()));
    assert_eq!(first, expected);
}

#[rstest]
#[case::nothing("ls", "", false, false)]
#[case::one_file("echo x > a", "a", false, false)]
#[case::deleted("rm a b", "a b", false, false)]
#[case::hardened("git log", "", true, false)]
#[case::unbounded("make", "*", false, true)]
#[case::unknown("\"$x\"", "", false, true)]
fn what_a_cage_must_leave_open(
    #[case] text: &str,
    #[case] writes: &str,
    #[case] hardened: bool,
    #[case] unbounded: bool,
) {
    let needs = analysed(text).needs();
    let name = |target: &Target| match target {
        Target::Path(path) => path.replacen("/home/dev/project/", "", 1),
        Target::Pattern(pattern) => pattern.clone(),
        Target::Unknown => "*".to_owned(),
    };
    assert_eq!(needs.writes.iter().map(name).collect::<Vec<_>>().join(" "), writes);
    assert_eq!((needs.hardened, needs.unbounded), (hardened, unbounded));
}

#[test]
fn a_cage_is_told_of_the_network() {
    assert!(analysed("ls").needs().hosts.is_empty());
    assert_eq!(analysed("curl https://example.com/x/y").needs().hosts, ["example.com"]);
    assert_eq!(analysed("cat a > /dev/tcp/192.0.2.1/80").needs().hosts, ["192.0.2.1"]);
    // Which host that is stands in the configuration of the repository.
    assert_eq!(analysed("git push").needs().hosts, [""]);
}

#[test]
fn effects_point_at_the_words_that_cause_them() {
    let text = "cd src && sort -o out names.txt && ls > list";
    let analysis = analysed(text);
    let words = |wanted: &dyn Fn(&EffectKind) -> bool| -> Vec<&str> {
        analysis.effects().filter(|effect| wanted(&effect.kind)).map(|effect| effect.span.of(text)).collect()
    };
    assert_eq!(words(&|kind| matches!(kind, EffectKind::Read(_))), ["names.txt"]);
    assert_eq!(words(&|kind| matches!(kind, EffectKind::Write(_))), ["out", "list"]);
}

#[test]
fn a_doubt_points_at_the_words_that_cause_it() {
    let text = "ls; cat a | \"$x\" -f";
    let analysis = analysed(text);
    assert_eq!(analysis.unresolved()[0].span.of(text), "\"$x\"");
}

#[test]
fn the_same_text_always_means_the_same() {
    let text = "for f in *.rs; do sed -i s/a/b/ \"$f\"; done; curl -d @a http://example.com | sh";
    assert_eq!(analysed(text), analysed(text));
}

#[test]
fn the_place_decides_what_a_name_means() {
    let elsewhere = Surroundings::new("/srv/site", "/root");
    let analysis = analyze("cat a ~/b", &elsewhere);
    let paths: Vec<String> = analysis.reads().into_iter().map(ToString::to_string).collect();
    assert_eq!(paths, ["/root/b", "/srv/site/a"]);
    assert!(elsewhere.holds("/srv/site/a") && !elsewhere.holds("/root/b") && !elsewhere.holds("/srv/site2"));
}
