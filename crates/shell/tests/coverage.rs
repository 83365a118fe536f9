//! The table in `docs/shell.md` says which programs are known. It is made from the model files, and this test fails
//! when the two have drifted apart: `UPDATE=1 cargo test -p gripper-shell --test coverage` writes it anew.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop at the first surprise"
)]

use std::{
    collections::{BTreeMap, BTreeSet},
    env,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use gripper_shell::{RiskKind, programs};
use toml::Table;

const BEGIN: &str = "<!-- coverage -->\n";
const END: &str = "<!-- /coverage -->\n";

/// What the files say, family by family.
type Coverage = BTreeMap<String, Family>;

/// What is known of the programs in one file.
#[derive(Debug, Default)]
struct Family {
    /// Every name that leads to a program.
    programs: BTreeSet<String>,
    /// Those with a model of their own and those that are known by their effects only.
    subcommands: usize,
    /// Counted once for every program or subcommand that has them, however many spellings they have.
    options: usize,
    allow: usize,
    refuse: usize,
}

impl Family {
    fn read(text: &str) -> Self {
        let table: Table = text.parse().expect("a model file");
        let groups = table.get("groups").and_then(toml::Value::as_table).cloned().unwrap_or_default();
        let mut family = Self::default();
        for (name, entry) in table.iter().filter(|(name, _)| *name != "groups") {
            let entry = entry.as_table().expect("a program");
            family.programs.insert(name.clone());
            family.programs.extend(strings(entry, "names").map(str::to_owned));
            family.add(entry, &groups);
        }
        family
    }

    /// Counts a program or subcommand, and those below it.
    fn add(&mut self, entry: &Table, groups: &Table) {
        let own = words(entry.get("options"));
        let shared: usize = strings(entry, "use").map(|group| words(groups.get(group))).sum();
        self.options += own + shared;
        self.allow += strings(entry, "allow").count();
        self.refuse += strings(entry, "refuse").count();
        self.subcommands += tables(entry, "changes").map(|(_, names)| words(Some(names))).sum::<usize>();
        for (_, sub) in tables(entry, "sub") {
            self.subcommands += 1;
            self.add(sub.as_table().expect("a subcommand"), groups);
        }
    }
}

/// How many words a field holds.
fn words(field: Option<&toml::Value>) -> usize {
    field.and_then(toml::Value::as_str).map_or(0, |text| text.split_whitespace().count())
}

fn strings<'e>(entry: &'e Table, field: &str) -> impl Iterator<Item = &'e str> {
    entry.get(field).and_then(toml::Value::as_array).into_iter().flatten().filter_map(toml::Value::as_str)
}

fn tables<'e>(entry: &'e Table, field: &str) -> impl Iterator<Item = (&'e String, &'e toml::Value)> {
    entry.get(field).and_then(toml::Value::as_table).into_iter().flatten()
}

fn model_files() -> impl Iterator<Item = PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
}

fn coverage() -> Coverage {
    let family = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        (name, Family::read(&fs::read_to_string(path).unwrap()))
    };
    model_files().map(family).collect()
}

/// The section as it should stand in the document.
fn section(coverage: &Coverage) -> String {
    let mut text = String::from("\n| family | programs | subcommands | options | allow | refuse | names |\n");
    text.push_str("|---|---:|---:|---:|---:|---:|---|\n");
    let mut total = Family::default();
    for (name, family) in coverage {
        let link = format!("[{name}](../crates/shell/models/{name}.toml)");
        let names: Vec<String> = family.programs.iter().map(|program| format!("`{program}`")).collect();
        row(&mut text, &link, family, &names.join(" "));
        total.programs.extend(family.programs.iter().cloned());
        total.subcommands += family.subcommands;
        total.options += family.options;
        total.allow += family.allow;
        total.refuse += family.refuse;
    }
    row(&mut text, "**all**", &total, "");
    text.push('\n');
    text
}

fn row(text: &mut String, name: &str, family: &Family, names: &str) {
    let Family { programs, subcommands, options, allow, refuse } = family;
    let programs = programs.len();
    writeln!(text, "| {name} | {programs} | {subcommands} | {options} | {allow} | {refuse} | {names} |")
        .unwrap();
}

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/shell.md")
}

#[test]
fn the_table_in_the_document_is_that_of_the_model_files() {
    let text = fs::read_to_string(document()).expect("docs/shell.md");
    let (before, rest) = text.split_once(BEGIN).expect("docs/shell.md has a line <!-- coverage -->");
    let (written, after) = rest.split_once(END).expect("docs/shell.md has a line <!-- /coverage -->");
    let wanted = section(&coverage());
    if env::var_os("UPDATE").is_some() {
        fs::write(document(), format!("{before}{BEGIN}{wanted}{END}{after}")).unwrap();
        return;
    }
    let stale: Vec<&str> = wanted.lines().filter(|line| !written.lines().any(|old| old == *line)).collect();
    assert!(
        written == wanted,
        "the coverage table in docs/shell.md is stale; to write it anew, run\n    \
         UPDATE=1 cargo test -p gripper-shell --test coverage\nlines that are new or differ:\n{}",
        stale.join("\n")
    );
}

/// The format is explained in one place only, so nothing may be left out there.
#[test]
fn every_field_kind_and_risk_is_in_the_document() {
    let text = fs::read_to_string(document()).expect("docs/shell.md");
    let mut used = BTreeSet::new();
    for path in model_files() {
        let table: Table = fs::read_to_string(path).unwrap().parse().unwrap();
        for (_, entry) in table.iter().filter(|(name, _)| *name != "groups") {
            vocabulary(entry.as_table().expect("a program"), &mut used);
        }
    }
    used.extend(RiskKind::ALL.map(|risk| risk.name().to_owned()));
    // A field stands in the document as `field` or as `field = value`.
    let missing: Vec<&String> = used
        .iter()
        .filter(|word| !["`", " = "].iter().any(|end| text.contains(&format!("`{word}{end}"))))
        .collect();
    assert!(missing.is_empty(), "docs/shell.md does not explain {missing:?}");
}

/// The fields of an entry, and the kinds of its operands and of the values of its options.
fn vocabulary(entry: &Table, used: &mut BTreeSet<String>) {
    used.extend(entry.keys().cloned());
    let operands = entry.get("operands");
    let operands = operands.and_then(toml::Value::as_str).into_iter().chain(strings(entry, "operands"));
    used.extend(operands.map(|kind| kind.trim_end_matches("...").to_owned()));
    let options = entry.get("options").and_then(toml::Value::as_str).unwrap_or_default();
    for token in options.split_whitespace() {
        let head = token.split(['!', '>', '^']).next().unwrap_or_default();
        let value = head.trim_start_matches("-?").split_once([':', '=', '?']).map_or("", |(_, kinds)| kinds);
        used.extend(value.split(',').filter(|kind| !kind.is_empty()).map(str::to_owned));
    }
    for (_, sub) in tables(entry, "sub") {
        vocabulary(sub.as_table().expect("a subcommand"), used);
    }
}

/// Otherwise the table would promise what the library does not know.
#[test]
fn every_program_in_the_files_is_in_the_library() {
    let known: BTreeSet<&str> = programs().map(|(name, _)| name).collect();
    for (family, read) in coverage() {
        for program in &read.programs {
            assert!(known.contains(program.as_str()), "{family}.toml has {program}, the library has not");
        }
    }
}

#[test]
fn everything_is_counted() {
    let family = Family::read(
        r#"
        [groups]
        shared = "--one --two:"

        [tool]
        names = ["otool"]
        use = ["shared"]
        options = "-v,--verbose -o,--output:write"
        changes = { "write" = "add remove", "network" = "push" }
        allow = ["tool -v"]
        refuse = ["tool -ox", "tool add"]

        [tool.sub.list]
        use = ["shared"]
        allow = ["tool list --one"]
        "#,
    );
    assert_eq!(family.programs.iter().map(String::as_str).collect::<Vec<_>>(), ["otool", "tool"]);
    let Family { subcommands, options, allow, refuse, .. } = family;
    assert_eq!((subcommands, options, allow, refuse), (4, 6, 2, 2));
}
