//! Changing a settings file without losing anything in it.

use std::{
    fs::{self, File},
    io::{self, Write},
    path::{Path, PathBuf},
};

use gripper_permissions::{RuleList, Scope, Source};
use jsonc_parser::cst::{CstNode, CstRootNode};

use super::{Broken, Kind, Node, node::dialect, read};
use crate::Place;

/// How often a change is tried again when others keep changing the file.
const ATTEMPTS: usize = 20;

/// Why a file was left as it is.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// What stands there cannot be read, so nothing is put into it.
    #[error("{} was not changed, as it cannot be read: {broken}; correct that first", file.display())]
    Broken {
        /// The file.
        file: PathBuf,
        /// Where and why.
        broken: Broken,
    },
    /// A value is in the way.
    #[error("{} was not changed: \"{key}\" holds something other than {expected}", file.display())]
    Shape {
        /// The file.
        file: PathBuf,
        /// The key.
        key: &'static str,
        /// What belongs there.
        expected: &'static str,
    },
    /// Others changed the file faster than we could.
    #[error("{} was not changed: others keep changing it; try again", .0.display())]
    Contended(PathBuf),
    /// The disk says no.
    #[error("{} was not changed: {error}", file.display())]
    Io {
        /// The file.
        file: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// Adds a rule to a list of a settings file, which is made if there is none. Comments, order and indentation
/// stay. Gives whether anything changed: a rule that is there already is not added again.
pub fn add_rule(file: &Path, kind: Kind, list: RuleList, rule: &str) -> Result<bool, WriteError> {
    update(file, |text| {
        let shape = |key, expected| WriteError::Shape { file: file.to_owned(), key, expected };
        let root = CstRootNode::parse(text.unwrap_or("{\n}\n"), &dialect()).map_err(|error| {
            let (line, column) = (error.line_display() as u32, error.column_display() as u32);
            let broken = Broken { line, column, what: error.kind().to_string().to_lowercase() };
            WriteError::Broken { file: file.to_owned(), broken }
        })?;
        let mut object = root.object_value().ok_or_else(|| shape("the file", "an object"))?;
        if kind == Kind::Settings || object.get("permissions").is_some() {
            let inner = object.object_value_or_create("permissions");
            object = inner.ok_or_else(|| shape("permissions", "an object"))?;
        }
        let rules = object.array_value_or_create(list.name()).ok_or_else(|| shape(list.name(), "a list"))?;
        let has = |node: &CstNode| {
            let text = match node.as_object() {
                Some(entry) => entry.get("rule").and_then(|rule| rule.value()),
                None => Some(node.clone()),
            };
            text.and_then(|text| text.as_string_lit()?.decoded_value().ok()).as_deref() == Some(rule)
        };
        if rules.elements().iter().any(has) {
            return Ok(None);
        }
        rules.ensure_multiline();
        rules.append(rule.into());
        Ok(Some(root.to_string()))
    })
}

/// Replaces a file by what `change` makes of its text, all at once. Others that go through here wait; if
/// anyone else changes it meanwhile, `change` is applied to what they wrote.
pub(super) fn update(
    file: &Path,
    change: impl Fn(Option<&str>) -> Result<Option<String>, WriteError>,
) -> Result<bool, WriteError> {
    let io = |error| WriteError::Io { file: file.to_owned(), error };
    // A link stays a link: what it leads to is replaced.
    let target = Place { cwd: "/".into() }.locate(file).real;
    let folder = target.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(folder).map_err(io)?;
    // The folder itself is the lock, so no file of ours is left in it.
    let lock = File::open(folder).map_err(io)?;
    lock.lock().map_err(io)?;
    for _ in 0..ATTEMPTS {
        let before = current(file, &target)?;
        let body = before.as_deref().map(|text| text.strip_prefix('\u{feff}').unwrap_or(text));
        let Some(after) = change(body)? else { return Ok(false) };
        let mark = before.as_ref().filter(|text| text.starts_with('\u{feff}')).map_or("", |_| "\u{feff}");
        let mut temporary = temporary(folder).map_err(io)?;
        temporary.write_all(format!("{mark}{after}").as_bytes()).map_err(io)?;
        keep_mode(temporary.as_file(), &target).map_err(io)?;
        temporary.as_file().sync_all().map_err(io)?;
        if current(file, &target)? == before {
            temporary.persist(&target).map_err(|error| io(error.error))?;
            lock.sync_all().map_err(io)?;
            return Ok(true);
        }
    }
    Err(WriteError::Contended(file.to_owned()))
}

/// The text of a file that can be read as settings; anything else is an error.
fn current(file: &Path, target: &Path) -> Result<Option<String>, WriteError> {
    let text = read::text(target).and_then(|text| {
        if let Some(text) = &text {
            Node::parse(text, &Source::of(Scope::User))?;
        }
        Ok(text)
    });
    text.map_err(|broken| WriteError::Broken { file: file.to_owned(), broken })
}

/// A new file with the mode that an editor would give it.
fn temporary(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.prefix(".gripper-").tempfile_in(folder)
}

/// The mode and, where that is possible, the owner of the file that is replaced.
fn keep_mode(new: &File, old: &Path) -> io::Result<()> {
    let Ok(metadata) = old.metadata() else { return Ok(()) };
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        // Only root can give a file away, and only root needs to.
        std::os::unix::fs::fchown(new, Some(metadata.uid()), Some(metadata.gid())).ok();
    }
    new.set_permissions(metadata.permissions())
}
