//! The rule about which of our crates may depend on which.

use toml::de::{DeTable, DeValue};

use super::tree::Tree;
use super::{Rule, Violation};

const PREFIX: &str = "gripper-";

/// The folders of the crates, each with those it may depend on. The drawing is in `docs/architecture.md`;
/// a new arrow is drawn there first. No row names the test kit: it is a dev-dependency only.
const ARROWS: &[(&str, &[&str])] = &[
    ("agent", &["process", "runtime"]),
    ("cli", &["agent", "mcp", "permissions", "process", "runtime", "shell", "tools", "tui"]),
    ("mcp", &["process", "runtime"]),
    ("permissions", &["shell"]),
    ("process", &[]),
    ("runtime", &["permissions", "process"]),
    ("shell", &[]),
    ("testkit", &["agent", "cli", "mcp", "permissions", "process", "runtime", "shell", "tools", "tui"]),
    ("tools", &["process", "runtime"]),
    ("tui", &["agent"]),
];

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    tree.folders("crates").into_iter().flat_map(|name| check_crate(tree, name)).collect()
}

fn check_crate(tree: &Tree, name: &str) -> Vec<Violation> {
    let path = format!("crates/{name}/Cargo.toml");
    let violation =
        |line, message| Violation { path: path.clone(), line, rule: Rule::DependencyArrow, message };
    let Some((_, allowed)) = ARROWS.iter().find(|(from, _)| *from == name) else {
        return vec![violation(
            1,
            "this crate is not in the table of arrows: draw it there first".to_owned(),
        )];
    };
    let Ok(text) = tree.text(&path) else {
        return vec![violation(1, "every folder of crates/ is a crate and has a manifest".to_owned())];
    };
    let manifest = match DeTable::parse(&text) {
        Ok(manifest) => manifest,
        Err(error) => return vec![violation(1, format!("this is not TOML: {}", error.message()))],
    };
    let mut ours = Vec::new();
    dependencies(manifest.get_ref(), &mut ours);
    ours.into_iter()
        .filter(|(to, _)| !allowed.contains(&to.as_str()))
        .map(|(to, offset)| {
            let line = text[..offset].matches('\n').count() + 1;
            violation(line, format!("{name} may not depend on {to}: move the code, or pass it in from cli"))
        })
        .collect()
}

/// Collects our own crates, with their byte offsets, from every table of dependencies but the one for tests.
fn dependencies(manifest: &DeTable<'_>, ours: &mut Vec<(String, usize)>) {
    for (key, value) in manifest {
        let DeValue::Table(table) = value.get_ref() else { continue };
        match key.get_ref().as_ref() {
            "dependencies" | "build-dependencies" => {
                for (name, entry) in table {
                    let package = renamed_package(entry.get_ref()).unwrap_or(name.get_ref());
                    ours.extend(package.strip_prefix(PREFIX).map(|to| (to.to_owned(), name.span().start)));
                }
            }
            "target" => {
                table
                    .values()
                    .filter_map(|target| target.get_ref().as_table())
                    .for_each(|t| dependencies(t, ours));
            }
            _ => {}
        }
    }
}

fn renamed_package<'a>(entry: &'a DeValue<'_>) -> Option<&'a str> {
    entry.as_table()?.get("package")?.get_ref().as_str()
}
