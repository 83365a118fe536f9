//! What a command changes, so that it can be taken back.

use std::{fs, path::Path, sync::Arc};

use gripper_runtime::{
    Call, Located,
    files::{Files, Found, Survey},
    permissions::Target,
};

use crate::{
    disk,
    walk::{self, Root},
};

/// Trees with more files are not looked through for a command.
const MOST_FILES: usize = 50_000;

/// Where a command may change files.
#[derive(Clone)]
enum Scope {
    /// Only what it names.
    Named(Vec<Located>),
    /// Anywhere below the working directories, but for what ignore files name.
    Anywhere(Vec<Root>),
}

/// The files before a command.
pub(crate) struct Journal {
    files: Arc<Files>,
    turn: Arc<str>,
    scope: Scope,
    before: Survey,
}

impl Journal {
    /// Looks at what the command of a call may change; nothing for one that only reads.
    pub(crate) async fn begin(call: &Call) -> Option<Self> {
        if call.access.read_only() {
            return None;
        }
        let scope = scope(call)?;
        let (files, turn) = (call.files.clone(), call.turn.clone());
        let work = move || {
            let before = files.survey(found(&scope)?)?;
            Some(Self { files, turn, scope, before })
        };
        disk::off_thread(work).await.ok()?
    }

    /// Writes down what is different, and says what cannot be taken back.
    pub(crate) async fn end(self) -> Option<String> {
        let work = move || {
            let now = found(&self.scope)?;
            let account = self.files.account(&self.turn, &self.before, &now);
            let lost: Vec<String> = account.lost.iter().map(|path| path.display().to_string()).collect();
            (!lost.is_empty()).then(|| format!("these changes cannot be undone: {}", lost.join(", ")))
        };
        disk::off_thread(work).await.ok()?
    }
}

fn scope(call: &Call) -> Option<Scope> {
    // What nobody took apart may change anything.
    let Some(command) = call.access.command_use() else { return Some(anywhere(call)) };
    let analysis = &command.analysis;
    let inside = |path: &Located| call.policy.directories.iter().any(|root| path.real.starts_with(root));
    let mut named = Vec::new();
    let needs = analysis.needs();
    for target in &needs.writes {
        match target {
            Target::Path(path) => named.push(call.place.locate(Path::new(path))),
            _ => return Some(anywhere(call)),
        }
    }
    if needs.unbounded {
        return Some(anywhere(call));
    }
    named.retain(inside);
    (!named.is_empty()).then_some(Scope::Named(named))
}

fn anywhere(call: &Call) -> Scope {
    let mut roots: Vec<Root> = Vec::new();
    for written in &call.policy.directories {
        let at = call.place.locate(written);
        if !roots.iter().any(|root| at.real.starts_with(&root.at.real)) {
            roots.push(Root { cwd: at.real.clone(), at });
        }
    }
    Scope::Anywhere(roots)
}

/// The files and folders there; nothing if they are too many.
fn found(scope: &Scope) -> Option<Found> {
    let mut found = Found::default();
    match scope {
        Scope::Anywhere(roots) => {
            for root in roots {
                gather(&mut found, root, true)?;
            }
        }
        Scope::Named(paths) => {
            for path in paths {
                let folders = path.real.ancestors().skip(1).filter(|folder| folder.is_dir());
                found.folders.extend(folders.map(Path::to_owned));
                match fs::symlink_metadata(&path.real) {
                    Ok(meta) if meta.is_dir() => {
                        gather(&mut found, &Root { cwd: path.real.clone(), at: path.clone() }, false)?;
                    }
                    Ok(_) => {
                        found.files.insert(path.real.clone());
                    }
                    Err(_) => {}
                }
            }
        }
    }
    Some(found)
}

fn gather(found: &mut Found, root: &Root, ignores: bool) -> Option<()> {
    for entry in walk::builder(root, ignores).build().flatten() {
        match entry.file_type() {
            Some(kind) if kind.is_dir() => found.folders.insert(entry.into_path()),
            Some(kind) if kind.is_file() => found.files.insert(entry.into_path()),
            _ => continue,
        };
        if found.files.len() > MOST_FILES {
            return None;
        }
    }
    Some(())
}
