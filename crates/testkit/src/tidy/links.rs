//! The rule about Markdown links: one that names a file leads to a file of this repository.

use std::path::{Component, Path};

use super::tree::Tree;
use super::{Rule, Violation};

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    tree.files
        .iter()
        .filter(|path| path.ends_with(".md"))
        .flat_map(|document| {
            local_links(tree, document).into_iter().filter_map(|(line, link)| {
                let leads_somewhere =
                    resolve(document, &link).is_some_and(|target| tree.root.join(target).exists());
                (!leads_somewhere).then(|| Violation {
                    path: document.clone(),
                    line,
                    rule: Rule::DeadLink,
                    message: format!("nothing is at `{link}`: mend the link or remove it"),
                })
            })
        })
        .collect()
}

/// The files that a document links to, relative to the root; none if there is no such document.
pub(super) fn targets(tree: &Tree, document: &str) -> Vec<String> {
    local_links(tree, document).iter().filter_map(|(_, link)| resolve(document, link)).collect()
}

/// The links of a document that name a file, each with its line and without the fragment.
fn local_links(tree: &Tree, document: &str) -> Vec<(usize, String)> {
    let text = tree.text(document).unwrap_or_default();
    let mut links = Vec::new();
    let mut in_code = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_code = !in_code;
        } else if !in_code {
            let prose: String = line.split('`').step_by(2).collect::<Vec<_>>().join("code");
            links.extend(destinations(&prose).filter_map(local).map(|link| (index + 1, link)));
        }
    }
    links
}

/// The destinations in one line: `[text](destination "title")` and `[label]: destination`.
fn destinations(line: &str) -> impl Iterator<Item = &str> {
    let inline = line.split("](").skip(1).map(|rest| rest.split([')', ' ']).next().unwrap_or(rest));
    let definition = line.strip_prefix('[').and_then(|rest| rest.split_once("]: ")).map(|(_, rest)| rest);
    inline.chain(definition.and_then(|rest| rest.split_whitespace().next()))
}

fn local(destination: &str) -> Option<String> {
    let path = destination.trim_matches(['<', '>']);
    let path = path.split_once('#').map_or(path, |(path, _)| path);
    let is_url = path.contains("://") || path.starts_with("mailto:");
    (!path.is_empty() && !is_url).then(|| path.to_owned())
}

/// The place a link leads to, relative to the root, or nothing if it leads out of the repository.
fn resolve(document: &str, link: &str) -> Option<String> {
    let from = if link.starts_with('/') { Path::new("") } else { Path::new(document).parent()? };
    let mut parts: Vec<&str> = Vec::new();
    let path = from.join(link.trim_start_matches('/'));
    for part in path.components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::ParentDir => drop(parts.pop()?),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Some(parts.join("/"))
}
