use std::{fs, path::Path};

use gripper_permissions::Scope;
use gripper_testkit::Workspace;
use rstest::rstest;
use serde_json::{Value, json};

use super::{Argument, PromptWatch, Prompts, arguments::words, assign};
use crate::{environment::Environment, settings::Sources};

fn sources(workspace: &Workspace, cwd: &Path) -> Sources {
    let home = workspace.home().to_string_lossy().into_owned();
    let environment = Environment::from_lookup(|name| (name == "HOME").then(|| home.clone()));
    Sources::discover(&environment, cwd, None)
}

fn load(workspace: &Workspace) -> Prompts {
    Prompts::load(&sources(workspace, &workspace.project()))
}

fn own(workspace: &Workspace, name: &str, text: &str) {
    let file = workspace.home().join(name);
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(file, text).unwrap();
}

fn trust(workspace: &Workspace) {
    own(workspace, ".gripper/trust.json", &json!({ "trusted": [workspace.project()] }).to_string());
}

fn names(prompts: &Prompts) -> Vec<&str> {
    prompts.iter().map(|prompt| prompt.name.as_str()).collect()
}

fn said(prompts: &Prompts) -> String {
    prompts.diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_nearer_counts_and_one_bad_file_harms_no_other() {
    let workspace = Workspace::new();
    trust(&workspace);
    own(&workspace, ".claude/commands/review.md", "the person's");
    own(&workspace, ".claude/commands/git/commit.md", "# Commit\n\nCommit it.");
    own(&workspace, ".gripper/commands/both.md", "as a command");
    own(&workspace, ".gripper/skills/both/SKILL.md", "---\ndescription: as a skill\n---\nDo both.");
    workspace.write(".claude/commands/review.md", "the project's");
    workspace
        .write(".claude/skills/pdf/SKILL.md", "---\nname: make-pdf\ndescription: Makes: PDF\n---\nMake it.");
    workspace.write(".claude/skills/odd/SKILL.md", "---\nname: not a name\n---\nOdd.");
    workspace.write(".claude/skills/hidden/SKILL.md", "---\nuser-invocable: false\n---\nFor models.");
    workspace
        .write(".claude/skills/person/SKILL.md", "---\ndisable-model-invocation: true\n---\nFor people.");
    workspace.write(".claude/skills/none/README.md", "no skill");
    workspace.write(".claude/commands/empty.md", "---\ndescription: x\n---\n");
    workspace.write(".claude/commands/two words.md", "x");
    workspace.write(".claude/commands/mcp__a__b.md", "x");
    workspace.write(".claude/commands/large.md", "x".repeat(300 * 1024));
    workspace.write(".claude/commands/binary.md", [0xff, 0xfe]);
    workspace.write(".claude/commands/broken.md", "---\n- a\n  b: [\n---\nStill there.");
    workspace.write(".claude/commands/.hidden.md", "x");
    workspace.write(".claude/commands/notes.txt", "x");
    let prompts = load(&workspace);
    assert_eq!(names(&prompts), ["both", "broken", "git:commit", "make-pdf", "odd", "person", "review"]);
    let text = |name: &str| prompts.get(name).unwrap().filled_from("").unwrap();
    assert_eq!(
        (text("review"), text("both"), text("broken")),
        ("the project's".to_owned(), "Do both.".to_owned(), "Still there.".to_owned())
    );
    let about = |name: &str| prompts.get(name).unwrap().description.as_str();
    assert_eq!((about("git:commit"), about("make-pdf")), ("Commit", "Makes: PDF"));
    let said = said(&prompts);
    for words in [
        "empty.md: this command does not count: it has no text",
        "\"two words\" is no name",
        "\"mcp__a__b\" is no name",
        "larger than 256 KiB",
        "binary.md: this command does not count: it cannot be read",
        "of the skill odd: \"not a name\" is no name",
        "of the command broken: its fields are not YAML",
    ] {
        assert!(said.contains(words), "{words} is not in\n{said}");
    }
    assert_eq!(prompts.near("reveiw"), ["review"]);
}

#[test]
fn a_project_that_is_not_trusted_has_none() {
    let workspace = Workspace::new();
    own(&workspace, ".claude/commands/mine.md", "mine");
    workspace.write(".claude/commands/theirs.md", "theirs");
    workspace.write(".gripper/skills/skill/SKILL.md", "theirs");
    let prompts = load(&workspace);
    assert_eq!(names(&prompts), ["mine"]);
    let said = said(&prompts);
    assert!(said.matches("not trusted").count() == 2 && said.contains("gripper trust"), "{said}");
    trust(&workspace);
    assert_eq!(names(&load(&workspace)), ["mine", "skill", "theirs"]);
    let mut only = sources(&workspace, &workspace.project());
    only.scopes = Some(vec![Scope::Project]);
    assert_eq!(names(&Prompts::load(&only)), ["skill", "theirs"]);
}

#[test]
fn changes_are_seen_at_the_next_look() {
    let workspace = Workspace::new();
    let mut watch = PromptWatch::start(sources(&workspace, &workspace.project()));
    let empty = watch.look().clone();
    own(&workspace, ".gripper/commands/one.md", "one");
    let one = watch.look().clone();
    assert!(names(&one) == ["one"] && !one.list_alike(&empty));
    own(&workspace, ".gripper/commands/one.md", "one\nand more");
    let more = watch.look().clone();
    assert!(more != one && more.list_alike(&one), "another text, the same list");
    workspace.write(".gripper/commands/two.md", "two");
    assert_eq!(names(watch.look()), ["one"]);
    trust(&workspace);
    assert_eq!(names(watch.look()), ["one", "two"]);
    fs::remove_dir_all(workspace.home().join(".gripper/commands")).unwrap();
    assert_eq!(names(watch.look()), ["two"]);
}

#[test]
fn folders_without_an_end_are_not_followed_for_ever() {
    let workspace = Workspace::new();
    own(&workspace, ".gripper/commands/one.md", "one");
    let folder = workspace.home().join(".gripper/commands");
    for name in ["a", "b", "c", "d", "e", "f", "g", "h"] {
        std::os::unix::fs::symlink(&folder, folder.join(name)).unwrap();
    }
    let prompts = load(&workspace);
    assert!(prompts.iter().count() <= 1_000 && prompts.get("a:a:one").is_some());
    assert!(said(&prompts).contains("left out"), "{}", said(&prompts));
}

/// A prompt with these fields and this text.
fn only(workspace: &Workspace, fields: &str, text: &str) -> super::Prompt {
    own(workspace, ".gripper/commands/x.md", &format!("---\n{fields}\n---\n{text}"));
    load(workspace).get("x").unwrap().clone()
}

#[rstest]
#[case::whole("d: 1", "Do $ARGUMENTS!", "a 'b c'", "Do a 'b c'!")]
#[case::words("d: 1", "$1|$2|$3|$10|$0", "a 'b c'", "a|b c||$10|$0")]
#[case::nothing_asks("d: 1", "Do it.", "a b", "Do it.\n\nArguments: a b")]
#[case::none("d: 1", "Do it.", " ", "Do it.")]
#[case::not_looked_at_twice("d: 1", "$1 $2", "$2 $1", "$2 $1")]
#[case::escaped(
    "d: 1",
    r"\$1 costs \$5, \$ARGUMENTS $x $ARGUMENTS2",
    "a",
    "$1 costs $5, $ARGUMENTS $x $ARGUMENTS2\n\nArguments: a"
)]
#[case::left_alone("d: 1", "@src/$1 and !`git log $1`", "a", "@src/a and !`git log a`")]
#[case::named("arguments: file branch", "$file on $branch ($2, $3)", "a b c", "a on b c (b, c)")]
#[case::by_name(
    "arguments: [file, branch]",
    "$file on $branch|$1|$ARGUMENTS",
    "branch='b c' file=d",
    "d on b c|d|d b c"
)]
#[case::longest_name("arguments: a a-b", "$a $a-b $a_b", "1 2", "1 2 $a_b")]
#[case::absent("argument-hint: [file] [branch]", "$file on $branch.", "a", "a on .")]
#[case::hint_of_words("argument-hint: add [tag] | list", "$1: $tag", "add x", "add: $tag")]
fn arguments_go_where_the_text_asks_for_them(
    #[case] fields: &str,
    #[case] text: &str,
    #[case] line: &str,
    #[case] expected: &str,
) {
    let workspace = Workspace::new();
    assert_eq!(only(&workspace, fields, text).filled_from(line).unwrap(), expected);
}

#[rstest]
#[case::nothing("d: 1", json!({}), Ok("| |"))]
#[case::whole("d: 1", json!({ "arguments": "a 'b c'" }), Ok("a 'b c'|a b c|"))]
#[case::unknown("d: 1", json!({ "file": "a" }), Err("x takes no argument \"file\": it takes arguments"))]
#[case::no_text("d: 1", json!({ "arguments": 5 }), Err("must be a text"))]
#[case::named("argument-hint: <file> [branch]", json!({ "file": "a b" }), Ok("a b|a b |a b"))]
#[case::missing("argument-hint: <file> [branch]", json!({ "branch": "a" }), Err("x needs file"))]
#[case::required("arguments: [{name: file, required: true}]", json!({}), Err("x needs file"))]
#[case::too_long("arguments: file", json!({ "file": "y".repeat(600_000) }), Err("more than 1024 KiB"))]
fn clients_give_arguments_by_name(
    #[case] fields: &str,
    #[case] given: Value,
    #[case] expected: Result<&str, &str>,
) {
    let workspace = Workspace::new();
    let text = if fields.contains("file") { "$ARGUMENTS|$1 $2|$file" } else { "$ARGUMENTS|$1 $2|" };
    let filled = only(&workspace, fields, text).filled(given.as_object().unwrap());
    match (filled, expected) {
        (Ok(filled), Ok(expected)) => assert_eq!(filled, expected),
        (Err(why), Err(words)) => assert!(why.contains(words), "{why}"),
        (filled, _) => panic!("{filled:?}"),
    }
}

#[test]
fn what_a_prompt_takes_is_told() {
    let workspace = Workspace::new();
    let told = |fields: &str| {
        let prompt = only(&workspace, fields, "x");
        let one =
            |argument: Argument| format!("{}{}", argument.name, if argument.required { "!" } else { "" });
        (prompt.arguments().into_iter().map(one).collect::<Vec<_>>().join(" "), prompt.hint())
    };
    assert_eq!(told("argument-hint: [file]"), ("file".to_owned(), "[file]".to_owned()));
    assert_eq!(told("argument-hint: <a> [b]").0, "a! b");
    assert_eq!(told("argument-hint: [a] [a]"), ("arguments".to_owned(), "[a] [a]".to_owned()));
    assert_eq!(told("arguments: [{name: a, required: true}, b]").1, "<a> [b]");
    assert_eq!(told("arguments: [1]").0, "arguments");
    assert!(said(&load(&workspace)).contains("arguments must be names"), "{}", said(&load(&workspace)));
    own(&workspace, ".gripper/skills/s/SKILL.md", "Look at $1.");
    own(&workspace, ".gripper/skills/s/table.csv", "");
    let filled = load(&workspace).get("s").unwrap().filled_from("it").unwrap();
    assert!(filled.starts_with("(The files of this skill are in ") && filled.ends_with("\n\nLook at it."));
}

#[rstest]
#[case::by_name("a=1 b=\"2 3\"", Ok("a=1 b=2 3"))]
#[case::in_order("1 2 3 '4'", Ok("a=1 b=2 3 '4'"))]
#[case::exactly("1 'two words'", Ok("a=1 b=two words"))]
#[case::an_equals_sign("x=1 2", Ok("a=x=1 b=2"))]
#[case::apostrophe("it's don't", Ok("a=it's b=don't"))]
#[case::only_one("1", Ok("a=1"))]
#[case::missing("", Err("needs a"))]
#[case::second_by_name("b=1", Err("needs a"))]
#[case::mixed("a=1 2", Err("has no argument for \"2\""))]
#[case::twice("a=1 a=2", Err("has a twice"))]
fn a_line_becomes_arguments(#[case] line: &str, #[case] expected: Result<&str, &str>) {
    let declared = [Argument { required: true, ..Argument::new("a") }, Argument::new("b")];
    let assigned = assign(&declared, line);
    let assigned = assigned.map(|all| {
        let pairs: Vec<String> = all.iter().map(|(name, value)| format!("{name}={value}")).collect();
        pairs.join(" ")
    });
    match expected {
        Ok(expected) => assert_eq!(assigned.as_deref(), Ok(expected)),
        Err(words) => assert!(assigned.unwrap_err().contains(words)),
    }
}

#[test]
fn a_server_prompt_without_arguments_takes_none() {
    assert_eq!(assign(&[], " "), Ok(Vec::new()));
    assert_eq!(assign(&[], "x"), Err("takes no arguments".to_owned()));
}

proptest::proptest! {
    #[test]
    fn any_line_has_words_where_they_say(line in ".{0,60}") {
        for (at, _) in words(&line) {
            proptest::prop_assert!(!line[at..].starts_with(char::is_whitespace));
        }
    }
}
