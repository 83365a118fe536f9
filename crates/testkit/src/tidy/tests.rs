//! Each rule is tried on small made-up trees: at least one that breaks it and one that comes close.
//!
//! A tree is written as one text, in which a line `=== PATH` starts a file. [`broken`] lays it out beside the
//! required documents and answers with `PATH:LINE rule` for each violation.

use std::fs;

use anyhow::Result;
use rstest::rstest;

use super::{Rule, check, report};

const DOCUMENTS: &str = "=== README.md\n=== CHANGELOG.md\n";

fn broken(tree: &str) -> Result<Vec<String>> {
    let found = lay_out_and_check(&format!("{DOCUMENTS}{tree}"))?;
    Ok(found.iter().map(|found| format!("{}:{} {}", found.path, found.line, found.rule.name())).collect())
}

fn lay_out_and_check(tree: &str) -> Result<Vec<super::Violation>> {
    let root = tempfile::tempdir()?;
    for file in tree.split("=== ").skip(1) {
        let (path, text) = file.split_once('\n').unwrap_or((file, ""));
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap())?;
        fs::write(path, text)?;
    }
    check(root.path())
}

/// A function of exactly so many lines.
fn function(lines: usize) -> String {
    format!("fn long() {{\n{}}}\n", "    work();\n".repeat(lines - 2))
}

#[rstest]
#[case::function_at_the_limit(function(100), &[])]
#[case::function_over_it(function(101), &["f.rs:1 function-length"])]
#[case::its_attributes_are_free(format!("#[a]\n#[b]\n{}", function(100)), &[])]
#[case::method(format!("impl A {{\n{}}}", function(101)), &["f.rs:2 function-length"])]
#[case::trait_method(format!("trait A {{\n{}}}", function(101)), &["f.rs:2 function-length"])]
#[case::function_in_a_function(format!("fn f() {{\n{}}}", function(101)),
    &["f.rs:1 function-length", "f.rs:2 function-length"])]
#[case::test_function(format!("#[cfg(test)]\nmod tests;\n#[test]\n{}", function(101)),
    &["f.rs:4 function-length"])]
#[case::macro_body(format!("many! {{\n{}}}", function(101)), &[])]
#[case::file_at_the_limit("// A line.\n".repeat(500), &[])]
#[case::file_over_it("// A line.\n".repeat(501), &["f.rs:1 file-length"])]
#[case::inline_tests_are_not_counted(
    format!("{}#[cfg(test)]\nmod tests {{\n}}\n", "// A line.\n".repeat(500)), &[])]
#[case::code_after_inline_tests_is_counted(
    format!("#[cfg(test)]\nmod tests {{\n}}\n{}", "// A line.\n".repeat(501)), &["f.rs:1 file-length"])]
#[case::inline_tests_at_the_limit(format!("#[cfg(test)]\nmod tests {{\n{}}}", "\n".repeat(57)), &[])]
#[case::inline_tests_over_it(format!("\n#[cfg(test)]\nmod tests {{\n{}}}", "\n".repeat(58)),
    &["f.rs:2 inline-tests"])]
#[case::inline_tests_under_a_wider_condition(
    format!("#[cfg(all(unix, test))]\nmod tests {{\n{}}}", "\n".repeat(58)), &["f.rs:1 inline-tests"])]
#[case::a_module_for_everything_but_tests(format!("#[cfg(not(test))]\nmod a {{\n{}}}", "\n".repeat(99)), &[])]
#[case::struct_at_the_limit(format!("struct A {{ {} }}", fields(16)), &[])]
#[case::struct_over_it(format!("\nstruct A {{ {} }}", fields(17)), &["f.rs:2 struct-fields"])]
#[case::tuple_struct(format!("struct A({});", "u8,".repeat(17)), &["f.rs:1 struct-fields"])]
#[case::variant(format!("enum A {{\nB {{ {} }} }}", fields(17)), &["f.rs:2 struct-fields"])]
fn sizes(#[case] text: String, #[case] expected: &[&str]) -> Result<()> {
    let found = broken(&format!("{CRATE}=== crates/tools/src/f.rs\n{text}"))?;
    assert_eq!(found, expected.iter().map(|place| format!("crates/tools/src/{place}")).collect::<Vec<_>>());
    Ok(())
}

/// The manifest that makes `crates/tools` a crate.
const CRATE: &str = "=== crates/tools/Cargo.toml\n";

fn fields(count: usize) -> String {
    (0..count).map(|number| format!("f{number}: u8,")).collect()
}

#[rstest]
#[case::tests_folder("tests/a.rs")]
#[case::tests_file("src/a/tests.rs")]
#[case::tests_of_one_file("src/a_tests.rs")]
#[case::benches("benches/a.rs")]
fn a_file_of_tests_may_have_a_thousand_lines(#[case] path: &str) -> Result<()> {
    let tree = |lines| {
        let tool = "=== crates/cli/Cargo.toml\n";
        format!("{tool}=== crates/cli/{path}\n{}", "// A line.\n".repeat(lines))
    };
    assert_eq!(broken(&tree(1_000))?, [""; 0]);
    assert_eq!(broken(&tree(1_001))?, [format!("crates/cli/{path}:1 file-length")]);
    Ok(())
}

#[rstest]
#[case::drawn("permissions", "[dependencies]\ngripper-shell.workspace = true", &[])]
#[case::foreign("shell", "[dependencies]\nserde = '1'", &[])]
#[case::not_drawn("shell", "[dependencies]\nserde = '1'\ngripper-permissions.workspace = true", &[3])]
#[case::round_a_corner("runtime", "[dependencies]\ngripper-shell.workspace = true", &[2])]
#[case::between_siblings("tools", "[dependencies.gripper-mcp]\npath = '../mcp'", &[1])]
#[case::under_another_name("tui", "[dependencies]\nhands = { package = 'gripper-tools', path = '' }", &[2])]
#[case::for_one_platform("tui", "[target.'cfg(unix)'.dependencies]\ngripper-tools = '1'", &[2])]
#[case::for_the_build("tui", "[build-dependencies]\ngripper-tools = '1'", &[2])]
#[case::test_kit_for_tests("shell", "[dev-dependencies]\ngripper-testkit = '1'", &[])]
#[case::test_kit_for_use("cli", "[dependencies]\ngripper-testkit = '1'", &[2])]
#[case::unknown_crate("utils", "", &[1])]
#[case::not_toml("shell", "[[", &[1])]
fn dependency_arrows(#[case] name: &str, #[case] manifest: &str, #[case] lines: &[usize]) -> Result<()> {
    let path = format!("crates/{name}/Cargo.toml");
    let expected: Vec<String> = lines.iter().map(|line| format!("{path}:{line} dependency-arrow")).collect();
    assert_eq!(broken(&format!("=== {path}\n{manifest}"))?, expected);
    Ok(())
}

#[test]
fn a_folder_among_the_crates_is_a_crate() -> Result<()> {
    assert_eq!(broken("=== crates/shell/notes.txt\n")?, ["crates/shell/Cargo.toml:1 dependency-arrow"]);
    Ok(())
}

#[rstest]
#[case::complete("=== crates/tools/src/read/schema.json\n", &[])]
#[case::incomplete("", &["crates/tools/src/read/schema.json:1 tool-folder"])]
#[case::shared("=== crates/tools/src/read/schema.json\n=== crates/tools/src/text/mod.rs\n", &[])]
fn tool_folders(#[case] rest: &str, #[case] expected: &[&str]) -> Result<()> {
    let tree = "=== crates/tools/src/read/mod.rs\n=== crates/tools/src/read/tests.rs\n\
                === crates/tools/src/read/description.md\n=== crates/tools/src/lib.rs\n";
    assert_eq!(broken(&format!("{CRATE}{tree}{rest}"))?, expected);
    Ok(())
}

#[rstest]
#[case::harmless("use std::{fmt, time::Duration};", &[])]
#[case::files("use std::fs;", &[1])]
#[case::grouped("use std::{\n    fmt,\n    fs::{self, File},\n};", &[3, 3])]
#[case::spelt_out("fn f() {\n    std::fs::read(p);\n}", &[2])]
#[case::in_a_macro("fn f() {\n    assert!(std::env::var(\"A\").is_ok());\n}", &[2])]
#[case::clock("use std::time::{Duration, Instant};", &[1])]
#[case::clock_through_its_module("use std::time;\nfn f() { time::SystemTime::now(); }", &[2])]
#[case::clock_after_captured_lifetimes(
    "use std::time;\nfn f<'a>() -> impl A + use<'a> { time::Instant::now() }", &[2])]
#[case::clock_under_another_name("use std::time as t;\nfn f() { t::Instant::now(); }", &[2])]
#[case::async_runtime("fn f() { ::tokio::spawn(g()); }", &[1])]
#[case::a_field_of_that_name("struct A { tokio: bool }", &[])]
#[case::a_module_of_ours_of_that_name("use crate::fs;\nfn f() { fs::read(); }", &[])]
#[case::a_look_at_the_disk("fn f(p: &Path) -> bool {\n    p.exists()\n}", &[2])]
#[case::a_method_of_that_name("fn f() -> bool { rules.exists(name) }", &[])]
#[case::in_a_text("const HELP: &str = \"std::fs\"; // std::fs", &[])]
#[case::in_inline_tests("#[cfg(test)]\nmod tests {\n    use std::fs;\n    fn f() { p.exists() }\n}", &[])]
fn purity(#[case] text: &str, #[case] lines: &[usize]) -> Result<()> {
    let path = "crates/shell/src/lib.rs";
    let expected: Vec<String> = lines.iter().map(|line| format!("{path}:{line} purity")).collect();
    assert_eq!(broken(&format!("=== crates/shell/Cargo.toml\n=== {path}\n{text}"))?, expected);
    Ok(())
}

#[rstest]
#[case::the_owner("runtime/src/environment.rs", "use std::env;", false)]
#[case::somebody_else("runtime/src/lib.rs", "use std::env;", true)]
#[case::arguments_in_main("cli/src/main.rs", "fn main() { std::env::args_os(); }", false)]
#[case::arguments_elsewhere("cli/src/wiring.rs", "fn f() { std::env::args(); }", true)]
#[case::variables_in_main("cli/src/main.rs", "fn main() { std::env::var(\"A\"); }", true)]
#[case::compile_time("cli/src/main.rs", "const V: &str = env!(\"V\");", false)]
#[case::child("runtime/src/hooks.rs", "fn f() { std::process::Command::new(\"a\"); }", true)]
#[case::child_of_tokio("runtime/src/hooks.rs", "use tokio::{process::Command, sync};", true)]
#[case::child_of_its_owner("process/src/lib.rs", "use tokio::process::Command;", false)]
#[case::exit_code("cli/src/main.rs", "use std::process::ExitCode;", false)]
#[case::tests_are_free("cli/tests/a.rs", "use std::process::Command;", false)]
#[case::test_kit_is_free("testkit/src/lib.rs", "use std::env;", false)]
fn reserved_paths(#[case] path: &str, #[case] text: &str, #[case] breaks: bool) -> Result<()> {
    let name = path.split('/').next().unwrap();
    let found = broken(&format!("=== crates/{name}/Cargo.toml\n=== crates/{path}\n{text}"))?;
    let expected = if breaks { vec![format!("crates/{path}:1 reserved-path")] } else { Vec::new() };
    assert_eq!(found, expected);
    Ok(())
}

#[rstest]
#[case::note("fn f() {}\n// TODO: more", &[2])]
#[case::note_in_documentation("/// Fine.\n///\n/// FIXME later.\nfn f() {}", &[3])]
#[case::note_in_a_block("/* one\n   TODO two */ fn f() {}", &[2])]
#[case::note_after_code("fn f() {} // TODO", &[1])]
#[case::note_between_umlauts("// ä\nfn ö() {} // TODO ü", &[2])]
#[case::talked_about("/// Finds `TODO` in files.\nfn f() {}", &[])]
#[case::in_a_text("const A: &str = \"// TODO\";", &[])]
#[case::part_of_a_word("// TODOS and todo lists", &[])]
#[case::macros("fn f() {\n    todo!();\n    dbg!(1);\n    unimplemented!();\n}", &[2, 3, 4])]
#[case::macro_in_a_macro("fn f() { vec![dbg!(1)]; }", &[1])]
#[case::a_function_of_that_name("fn f() { todo(); }", &[])]
#[case::ignored_test("#[test]\n#[ignore]\nfn f() {}", &[2])]
#[case::ignored_with_a_reason("#[ignore = \"slow\"]\nfn f() {}", &[1])]
#[case::ignored_somewhere("#[cfg_attr(unix, ignore)]\nfn f() {}", &[1])]
#[case::an_argument_of_that_name("#[serde(ignore)]\nfn f() {}", &[])]
#[case::dead_code("#[allow(dead_code)]\nfn f() {}", &[1])]
#[case::dead_code_for_the_file("#![allow(unused)]", &[1])]
#[case::dead_code_expected("#[expect(dead_code, reason = \"later\")]\nfn f() {}", &[1])]
#[case::dead_code_somewhere("#[cfg_attr(unix, allow(dead_code))]\nfn f() {}", &[1])]
#[case::another_lint("#[allow(clippy::too_many_arguments)]\nfn f() {}", &[])]
#[case::example_never_run("/// ```ignore\n/// f();\n/// ```\nfn f() {}", &[1])]
#[case::example_run("/// ```no_run\n/// f();\n/// ```\nfn f() {}", &[])]
fn leftovers(#[case] text: &str, #[case] lines: &[usize]) -> Result<()> {
    let path = "crates/tools/src/lib.rs";
    let expected: Vec<String> = lines.iter().map(|line| format!("{path}:{line} leftover")).collect();
    assert_eq!(broken(&format!("{CRATE}=== {path}\n{text}"))?, expected);
    Ok(())
}

#[rstest]
#[case::file("[a](b.md)", &[])]
#[case::file_with_fragment_and_title("[a](b.md#top \"B\") and [c](<b.md>)", &[])]
#[case::folder("[a](../docs)", &[])]
#[case::from_the_root("[a](/README.md)", &[])]
#[case::reference("[a]\n\n[a]: b.md", &[])]
#[case::outside_world("[a](https://example.com/x) [b](mailto:a@example.com) [c](#here)", &[])]
#[case::code("`[a](x.md)`\n```\n[a](x.md)\n```", &[])]
#[case::dead("text\n[a](b.md) [c](x.md)", &[2])]
#[case::dead_behind_code("[`a`](x.md)", &[1])]
#[case::dead_after_code("```\n```\n[a](x.md)", &[3])]
#[case::dead_picture("![a](x.png)", &[1])]
#[case::dead_reference("[a]: x.md", &[1])]
#[case::out_of_the_repository("[a](../../x.md)", &[1])]
fn links(#[case] text: &str, #[case] lines: &[usize]) -> Result<()> {
    let expected: Vec<String> = lines.iter().map(|line| format!("docs/a.md:{line} dead-link")).collect();
    assert_eq!(broken(&format!("=== docs/b.md\n=== docs/a.md\n{text}"))?, expected);
    Ok(())
}

#[rstest]
#[case::linked("=== docs/decisions/README.md\n[one](0001-one.md)\n", &[])]
#[case::linked_from_the_root("=== docs/decisions/README.md\n[one](/docs/decisions/0001-one.md)\n", &[])]
#[case::not_linked("=== docs/decisions/README.md\n0001-one.md\n", &["docs/decisions/0001-one.md:1 unlinked-decision"])]
#[case::no_index("", &["docs/decisions/0001-one.md:1 unlinked-decision"])]
fn decisions(#[case] index: &str, #[case] expected: &[&str]) -> Result<()> {
    assert_eq!(broken(&format!("=== docs/decisions/0001-one.md\n{index}"))?, expected);
    Ok(())
}

#[test]
fn required_files() -> Result<()> {
    let found = lay_out_and_check("=== README.md\n")?;
    assert_eq!(found.len(), 1);
    assert_eq!(
        found[0].to_string(),
        "CHANGELOG.md:1: [required-file] the file is missing: say in it what changed for users"
    );
    Ok(())
}

#[test]
fn a_file_that_does_not_parse_hides_nothing_else() -> Result<()> {
    let found = broken(&format!(
        "{CRATE}=== crates/tools/src/a.rs\nfn f() {{}}\nfn 1() {{}}\n=== crates/tools/src/b.rs\nfn f() {{ todo!() }}\n"
    ))?;
    assert_eq!(found, ["crates/tools/src/a.rs:2 rust-syntax", "crates/tools/src/b.rs:1 leftover"]);
    Ok(())
}

#[rstest]
#[case::build_output("target/debug/a.md", true)]
#[case::test_data("crates/tools/tests/cases/one/before/a.md", true)]
#[case::a_folder_called_target("docs/target/a.md", false)]
fn folders_that_are_not_looked_at(#[case] path: &str, #[case] skipped: bool) -> Result<()> {
    assert_eq!(broken(&format!("{CRATE}=== {path}\n[a](nowhere.md)\n"))?.is_empty(), skipped);
    Ok(())
}

#[test]
fn code_does_not_hide_in_a_folder_of_test_data() -> Result<()> {
    let tree = "=== crates/cli/Cargo.toml\n=== crates/cli/src/cases/mod.rs\nfn f() { todo!() }\n";
    assert_eq!(broken(tree)?, ["crates/cli/src/cases/mod.rs:1 leftover"]);
    Ok(())
}

/// A tree with one violation and a list of exceptions.
fn with_exceptions(list: &str) -> Result<Vec<String>> {
    broken(&format!(
        "{CRATE}=== crates/tools/src/lib.rs\nfn f() {{ todo!() }}\n\
         === crates/testkit/Cargo.toml\n=== crates/testkit/tidy-exceptions.toml\n{list}"
    ))
}

const EXCUSE: &str = "[[exception]]\nrule = 'leftover'\npath = 'crates/tools/src/lib.rs'\nwhy = 'soon'\n";

#[rstest]
#[case::empty_list(String::new(), &["crates/tools/src/lib.rs:1 leftover"])]
#[case::excused(EXCUSE.to_owned(), &[])]
#[case::another_file(EXCUSE.replace("lib.rs", "other.rs"),
    &["crates/testkit/tidy-exceptions.toml:1 stale-exception", "crates/tools/src/lib.rs:1 leftover"])]
#[case::another_rule(EXCUSE.replace("leftover", "purity"),
    &["crates/testkit/tidy-exceptions.toml:1 stale-exception", "crates/tools/src/lib.rs:1 leftover"])]
#[case::one_too_many(format!("{EXCUSE}{}", EXCUSE.replace("leftover", "purity")),
    &["crates/testkit/tidy-exceptions.toml:1 stale-exception"])]
fn exceptions(#[case] list: String, #[case] expected: &[&str]) -> Result<()> {
    assert_eq!(with_exceptions(&list)?, expected);
    Ok(())
}

#[rstest]
#[case::unknown_rule(EXCUSE.replace("leftover", "colour"), "there is no rule `colour`")]
#[case::no_reason(EXCUSE.replace("soon", " "), "say why")]
#[case::unknown_field(format!("{EXCUSE}until = 'then'"), "unknown field `until`")]
fn malformed_exceptions(#[case] list: String, #[case] message: &str) {
    let error = format!("{:#}", with_exceptions(&list).unwrap_err());
    assert!(error.contains(message), "{error}");
}

#[test]
fn the_report_names_everything_at_once() -> Result<()> {
    let found = lay_out_and_check("=== docs/a.md\n[a](x.md)\n")?;
    let text = report(&found);
    assert!(text.starts_with("3 house rules are broken:"), "{text}");
    for line in
        ["CHANGELOG.md:1: [required-file]", "README.md:1: [required-file]", "docs/a.md:1: [dead-link]"]
    {
        assert!(text.contains(line), "{text}");
    }
    Ok(())
}

#[test]
fn rules_are_listed_once_and_in_order() {
    let names: Vec<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    assert!(names.is_sorted_by(|a, b| a < b), "{names:?}");
}
