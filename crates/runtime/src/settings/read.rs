//! From one file to a tree of what in it counts.

use std::{
    fs::{self, File},
    io::{self, Read},
    path::Path,
    thread,
    time::{Duration, SystemTime},
};

use gripper_permissions::{Diagnostic, Source};

use super::{Broken, Kind, Node, Tree, keys};

/// Larger files are not read: rules are for people to read, and every call is judged by all of them.
pub(super) const LARGEST: u64 = 1024 * 1024;
/// A file changed this recently may still be in the middle of being written.
pub(super) const FRESH: Duration = Duration::from_millis(100);
/// How often a file that is broken and fresh is looked at again.
const SECOND_LOOKS: usize = 5;
/// Rounds of taking bad entries out; a round takes up to fifty.
const ROUNDS: usize = 20;
/// How alike two keys must be for one to be a slip of the other.
const SLIP: f64 = 0.8;
/// Older names that also stood at the top of files.
const OLDER: [&str; 3] = ["allowed_tools", "disabled_tools", "pre_approval"];

/// The text of a file; nothing if there is none.
pub(super) fn text(path: &Path) -> Result<Option<String>, Broken> {
    let refuse = |what: String| Broken { line: 1, column: 1, what };
    let metadata = match fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            let dangling = path.symlink_metadata().is_ok();
            return if dangling { Err(refuse("the link leads nowhere".into())) } else { Ok(None) };
        }
        Err(error) => return Err(refuse(format!("it cannot be read: {error}"))),
    };
    if !metadata.is_file() {
        return Err(refuse("it is not a plain file".into()));
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_end(&mut bytes));
    read.map_err(|error| refuse(format!("it cannot be read: {error}")))?;
    if bytes.len() as u64 > LARGEST {
        return Err(refuse(format!("it is larger than {} MB", LARGEST / (1024 * 1024))));
    }
    String::from_utf8(bytes).map(Some).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let before = &error.as_bytes()[..at];
        let line = before.iter().filter(|byte| **byte == b'\n').count() as u32 + 1;
        let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        Broken { line, column: (at - start) as u32 + 1, what: "it is not UTF-8 text".into() }
    })
}

/// Reads one file, and puts what is wrong with its entries into `found`.
pub(super) fn file(
    path: &Path,
    kind: Kind,
    source: &Source,
    found: &mut Vec<Diagnostic>,
) -> Result<Option<Node>, Broken> {
    for look in 0.. {
        let read = text(path).and_then(|text| text.map(|text| tree(&text, kind, source, found)).transpose());
        // Whoever writes in place leaves half a file for a moment.
        if read.is_ok() || look == SECOND_LOOKS || !is_fresh(path) {
            return read;
        }
        thread::sleep(FRESH / 10);
    }
    Ok(None)
}

fn is_fresh(path: &Path) -> bool {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|modified| SystemTime::now().duration_since(modified).is_ok_and(|age| age < FRESH))
}

/// Parses, takes out what does not fit the schema, and gives every kind of file the shape of a settings file.
pub(super) fn tree(
    text: &str,
    kind: Kind,
    source: &Source,
    found: &mut Vec<Diagnostic>,
) -> Result<Node, Broken> {
    let (mut node, repeated) = Node::parse(text, source)?;
    for (source, key) in repeated {
        let what = format!("\"{key}\" is written twice, and only the last one counts");
        found.push(Diagnostic::warning(source, what).fix("join the two"));
    }
    node = unwrapped(node, kind);
    if kind == Kind::Settings {
        modernise(&mut node);
    }
    take_out_misfits(&mut node, kind, found)?;
    hint_at_slips(&node, kind, found);
    Ok(match kind.key() {
        None => node,
        Some(key) => {
            let source = Source { line: Some(1), ..source.clone() };
            Node { source, tree: Tree::Object([(key.to_owned(), node)].into()) }
        }
    })
}

/// A stand-alone file may also have its object under the key it has in settings files.
pub(super) fn unwrapped(mut node: Node, kind: Kind) -> Node {
    let inner = kind.key().and_then(|key| node.map_mut()?.remove(key));
    inner.unwrap_or(node)
}

/// Older keys at the top of a file belong to its permissions.
fn modernise(node: &mut Node) {
    let source = node.source.clone();
    let Some(map) = node.map_mut() else { return };
    for key in OLDER {
        let Some(older) = map.remove(key) else { continue };
        let wrapped =
            Node { source: older.source.clone(), tree: Tree::Object([(key.to_owned(), older)].into()) };
        map.entry("permissions".into()).or_insert_with(|| Node::empty(source.clone())).overlay(wrapped);
    }
}

/// Takes out entries of the wrong type, each with a diagnostic. A name that a list of choices does not
/// know stays: it may be of a newer version, and whoever uses the value says so.
fn take_out_misfits(node: &mut Node, kind: Kind, found: &mut Vec<Diagnostic>) -> Result<(), Broken> {
    for _ in 0..ROUNDS {
        let Err(problems) = keys::schema(kind).check(&node.value()) else { return Ok(()) };
        let mut taken = 0;
        // From the end, so that places in lists stay what they were.
        for problem in problems.iter().rev().filter(|problem| problem.code != "not_in_list") {
            let path = match problem.code {
                // Without it the whole entry means nothing.
                "missing" => problem.path.rsplit_once('/').map_or("", |(entry, _)| entry),
                _ => &problem.path,
            };
            if problem.code == "too_complex" {
                found.push(Diagnostic::warning(node.source.clone(), format!("the file {}", problem.message)));
            } else if let Some(bad) = node.take(path) {
                taken += 1;
                let what = format!("{} does not count: {}", problem.path, problem.message);
                found.push(Diagnostic::error(bad.source, what));
            }
        }
        if taken == 0 {
            return Ok(());
        }
    }
    Err(Broken { line: 1, column: 1, what: "too many entries do not fit the schema".into() })
}

/// Unknown keys are other programs' business, unless they look like a slip of one of ours.
fn hint_at_slips(node: &Node, kind: Kind, found: &mut Vec<Diagnostic>) {
    let places: &[(&str, &str)] = match kind {
        Kind::Settings => &[("", ""), ("permissions", "/properties/permissions")],
        Kind::Permissions => &[("", "")],
        Kind::Hooks | Kind::Servers => &[],
    };
    for (key, place) in places {
        let part = if key.is_empty() { Some(node) } else { node.get(key) };
        for (name, value) in part.into_iter().flat_map(Node::entries) {
            if keys::known(kind, place).any(|known| known == name) {
                continue;
            }
            let near = keys::known(kind, place).find(|known| likeness(known, name) >= SLIP);
            if let Some(near) = near {
                let what = format!("\"{name}\" is not a known key and does nothing here");
                let fix = format!("did you mean \"{near}\"?");
                found.push(Diagnostic::warning(value.source.clone(), what).fix(fix));
            }
        }
    }
}

fn likeness(one: &str, other: &str) -> f64 {
    let plain = |text: &str| -> String {
        text.chars().take(64).filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    strsim::normalized_damerau_levenshtein(&plain(one), &plain(other))
}
