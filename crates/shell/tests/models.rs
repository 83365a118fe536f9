//! The examples in the model files: what they allow only reads, what they refuse does not.
//! `FAMILY=git cargo test -p gripper-shell --test models` looks at one file only.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test may stop at the first surprise"
)]

use std::{collections::BTreeSet, fs, path::Path};

use gripper_shell::{Surroundings, Verdict, analyze, programs};

/// An example and where it comes from.
struct Example {
    family: String,
    place: String,
    line: String,
    allowed: bool,
}

fn examples() -> Vec<Example> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let only = std::env::var("FAMILY").ok();
    let mut examples = Vec::new();
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for path in files {
        let family = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if only.as_ref().is_some_and(|only| *only != family) {
            continue;
        }
        let table: toml::Table = fs::read_to_string(&path).unwrap().parse().unwrap();
        for (name, entry) in &table {
            if name != "groups" {
                collect(&family, name, entry.as_table().unwrap(), &mut examples);
            }
        }
    }
    examples
}

fn collect(family: &str, place: &str, entry: &toml::Table, examples: &mut Vec<Example>) {
    for (field, allowed) in [("allow", true), ("refuse", false)] {
        for line in entry.get(field).and_then(toml::Value::as_array).into_iter().flatten() {
            examples.push(Example {
                family: family.to_owned(),
                place: place.to_owned(),
                line: line.as_str().unwrap().to_owned(),
                allowed,
            });
        }
    }
    for (name, sub) in entry.get("sub").and_then(toml::Value::as_table).into_iter().flatten() {
        collect(family, &format!("{place} {name}"), sub.as_table().unwrap(), examples);
    }
}

#[test]
fn every_example_comes_out_as_labelled() {
    let here = Surroundings::new("/home/dev/project", "/home/dev");
    let mut wrong = Vec::new();
    let mut count = 0;
    for example in examples() {
        count += 1;
        let analysis = analyze(&example.line, &here);
        let reads = analysis.verdict() != Verdict::NotReadOnly;
        let named = analysis.reads().into_iter().chain(analysis.lists()).map(ToString::to_string);
        let outside = named.into_iter().any(|path| path.starts_with('/') && !here.holds(&path));
        if (reads && !outside) != example.allowed {
            let label = if example.allowed { "allow" } else { "refuse" };
            wrong.push(format!(
                "{}.toml [{}] {label}: {}\n      {}",
                example.family,
                example.place,
                example.line,
                analysis.summary(&here)
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {count} examples are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn every_program_has_an_example() {
    let families: BTreeSet<(String, String)> = examples()
        .into_iter()
        .map(|example| (example.family, example.place.split(' ').next().unwrap().to_owned()))
        .collect();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let mut bare = Vec::new();
    for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        let family = path.file_stem().unwrap().to_str().unwrap().to_owned();
        let table: toml::Table = fs::read_to_string(&path).unwrap().parse().unwrap();
        for name in table.keys().filter(|name| *name != "groups") {
            if std::env::var("FAMILY").is_err() && !families.contains(&(family.clone(), name.clone())) {
                bare.push(format!("{family}.toml [{name}]"));
            }
        }
    }
    assert!(bare.is_empty(), "without an example: {bare:?}");
}

#[test]
fn there_are_many_programs() {
    let count = programs().count();
    assert!(count >= 300, "only {count} programs");
}
