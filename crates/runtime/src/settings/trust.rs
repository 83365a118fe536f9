//! The folders whose settings the person vouches for.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
};

use gripper_permissions::{Diagnostic, Scope, Source};
use serde_json::json;

use super::{
    Node, read,
    write::{self, WriteError},
};

/// The list of trusted folders, in the person's own Gripper folder.
#[derive(Debug, Clone, Default)]
pub struct TrustStore {
    file: Option<PathBuf>,
    home: Option<PathBuf>,
    folders: BTreeSet<PathBuf>,
}

/// Why a folder's trust was not changed.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    /// Too much would be trusted at once.
    #[error(
        "{} holds everything of yours: trust the folders of single projects, or use --force", .0.display()
    )]
    TooWide(PathBuf),
    /// There is nowhere to remember it.
    #[error("HOME is not set, so there is nowhere to remember it: set HOME or GRIPPER_CONFIG_DIR")]
    Nowhere,
    /// The folder cannot be found.
    #[error("{} cannot be found: {error}", folder.display())]
    Missing {
        /// The folder.
        folder: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// The list could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
}

impl TrustStore {
    pub(super) fn load(file: Option<PathBuf>, home: Option<PathBuf>) -> (Self, Option<Diagnostic>) {
        let source = Source { file: file.clone(), ..Source::of(Scope::User) };
        let read = file.as_deref().map_or(Ok(None), read::text);
        let parsed = read.and_then(|text| text.map(|text| Node::parse(&text, &source)).transpose());
        let (folders, trouble) = match parsed {
            Ok(node) => (node.map(|(node, _)| listed(&node)).unwrap_or_default(), None),
            Err(broken) => {
                let source = Source { line: Some(broken.line), ..source };
                let what = format!("no folder counts as trusted: {broken}");
                (BTreeSet::new(), Some(Diagnostic::error(source, what).fix("correct or remove the file")))
            }
        };
        (Self { file, home, folders }, trouble)
    }

    /// Whether a folder, or one it lies in, is trusted.
    pub fn trusts(&self, folder: &Path) -> bool {
        let Ok(real) = folder.canonicalize() else { return false };
        self.folders.iter().any(|trusted| real.starts_with(trusted))
    }

    /// The trusted folders.
    pub fn folders(&self) -> impl Iterator<Item = &PathBuf> {
        self.folders.iter()
    }

    /// Trusts a folder and everything in it. Gives its real path and whether that is new.
    pub fn add(&self, folder: &Path, force: bool) -> Result<(PathBuf, bool), TrustError> {
        let real = folder
            .canonicalize()
            .map_err(|error| TrustError::Missing { folder: folder.to_owned(), error })?;
        // A folder above the home directory trusts the home with it.
        let wide = real.parent().is_none() || self.home.as_ref().is_some_and(|home| home.starts_with(&real));
        if wide && !force {
            return Err(TrustError::TooWide(real));
        }
        let changed = self.rewrite(|folders| folders.insert(real.clone()))?;
        Ok((real, changed))
    }

    /// Takes a folder off the list. Gives whether it was on it.
    pub fn remove(&self, folder: &Path) -> Result<(PathBuf, bool), TrustError> {
        // It may have been deleted since.
        let real = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        let changed = self.rewrite(|folders| folders.remove(&real))?;
        Ok((real, changed))
    }

    fn rewrite(&self, change: impl Fn(&mut BTreeSet<PathBuf>) -> bool) -> Result<bool, TrustError> {
        let file = self.file.as_deref().ok_or(TrustError::Nowhere)?;
        let changed = write::update(file, |text| {
            let source = Source::of(Scope::User);
            let parsed = text.map(|text| Node::parse(text, &source)).transpose();
            let parsed = parsed.map_err(|broken| WriteError::Broken { file: file.to_owned(), broken })?;
            let mut folders = parsed.map(|(node, _)| listed(&node)).unwrap_or_default();
            Ok(change(&mut folders).then(|| format!("{:#}\n", json!({ "trusted": folders }))))
        })?;
        Ok(changed)
    }
}

fn listed(node: &Node) -> BTreeSet<PathBuf> {
    let items = node.get("trusted").map(Node::items).unwrap_or_default();
    items.iter().filter_map(Node::text).map(PathBuf::from).filter(|folder| folder.is_absolute()).collect()
}
