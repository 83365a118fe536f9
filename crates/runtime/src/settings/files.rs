//! Which files hold settings, weakest first.

use std::{
    ffi::OsStr,
    fs, io,
    path::{Path, PathBuf},
};

use gripper_permissions::{Diagnostic, Scope, Source};

use super::{Kind, trust::TrustStore};
use crate::environment::Environment;

/// The folders of a project and of a person. Inside a scope the later one is the stronger.
const FOLDERS: [&str; 2] = [".claude", ".gripper"];
/// The files of such a folder that are shared, weakest first.
const SHARED: [&str; 3] = ["hooks.json", "permissions.json", "settings.json"];
const LOCAL: &str = "settings.local.json";
/// The servers of a project, beside its folders.
const SERVERS: &str = ".mcp.json";
const MANAGED: &str = "managed-settings.json";
const MANAGED_PARTS: &str = "managed-settings.d";
/// What marks the folder of a project.
const MARKS: [&str; 3] = [".gripper", ".claude", ".git"];

/// Settings given on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Given {
    /// A file.
    File(PathBuf),
    /// The settings themselves.
    Text(String),
}

impl Given {
    /// A file, or an object as JSON.
    pub fn read(given: &str, cwd: &Path) -> Self {
        match given.trim_start().starts_with('{') {
            true => Given::Text(given.to_owned()),
            false => Given::File(cwd.join(given)),
        }
    }
}

/// Where the settings of one run are looked for.
#[derive(Debug, Clone)]
pub struct Sources {
    /// The working directory.
    pub cwd: PathBuf,
    /// The project's folder.
    pub root: PathBuf,
    /// The person's home.
    pub home: Option<PathBuf>,
    /// What the command line adds.
    pub given: Option<Given>,
    /// The servers that the command line adds.
    pub servers: Vec<Given>,
    /// Files of the person, of the project and of this checkout count only if their scope is among these. Managed
    /// policy and the command line always count.
    pub scopes: Option<Vec<Scope>>,
    user: Vec<PathBuf>,
    managed: Vec<PathBuf>,
    trust: Option<PathBuf>,
}

/// One file that may hold settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Candidate {
    pub(super) scope: Scope,
    pub(super) kind: Kind,
    pub(super) path: PathBuf,
}

impl Sources {
    /// The places that belong to a working directory. `given` is what `--settings` says: a file, or an object.
    pub fn discover(environment: &Environment, cwd: &Path, given: Option<&str>) -> Self {
        let home = environment.home.as_ref().map(|home| home.canonicalize().unwrap_or_else(|_| home.clone()));
        let given = given.map(|given| Given::read(given, cwd));
        Self {
            root: project_root(cwd, home.as_deref()),
            cwd: cwd.to_owned(),
            home,
            given,
            servers: Vec::new(),
            scopes: None,
            // Links followed, as the working directory is: the two are compared.
            user: (environment.claude_dir.iter().chain(&environment.config_dir))
                .map(|folder| folder.canonicalize().unwrap_or_else(|_| folder.clone()))
                .collect(),
            managed: environment.managed_dirs.clone(),
            trust: environment.config_dir.as_ref().map(|folder| folder.join("trust.json")),
        }
    }

    /// Which folders the person vouches for, and what is wrong with that list.
    pub fn trust(&self) -> (TrustStore, Option<Diagnostic>) {
        TrustStore::load(self.trust.clone(), self.home.clone())
    }

    /// Every file that is looked at, weakest first, and what kept a folder from being listed.
    pub(super) fn candidates(&self) -> (Vec<Candidate>, Vec<Diagnostic>) {
        let mut found = Vec::new();
        let mut add = |scope, folder: &Path, name: &str| {
            let path = folder.join(name);
            found.push(Candidate { scope, kind: Kind::of_name(OsStr::new(name)), path });
        };
        for folder in &self.user {
            SHARED.iter().for_each(|name| add(Scope::User, folder, name));
        }
        for (scope, names) in [(Scope::Project, &SHARED[..]), (Scope::Local, &[LOCAL])] {
            // In the home directory itself the person's own folders are not a project's.
            let folders = FOLDERS.iter().map(|folder| self.root.join(folder));
            for folder in folders.filter(|folder| !self.user.contains(folder)) {
                names.iter().for_each(|name| add(scope, &folder, name));
            }
        }
        let path = self.root.join(SERVERS);
        found.push(Candidate { scope: Scope::Project, kind: Kind::Servers, path });
        if let Some(scopes) = &self.scopes {
            found.retain(|file| scopes.contains(&file.scope));
        }
        if let Some(Given::File(path)) = &self.given {
            let kind = Kind::of_name(path.file_name().unwrap_or_default());
            found.push(Candidate { scope: Scope::CommandLine, kind, path: path.clone() });
        }
        for given in &self.servers {
            if let Given::File(path) = given {
                let (scope, kind) = (Scope::CommandLine, Kind::Servers);
                found.push(Candidate { scope, kind, path: path.clone() });
            }
        }
        let mut trouble = Vec::new();
        // The first folder is the machine's own, so it comes last: nothing may outrank it.
        for folder in self.managed.iter().rev() {
            found.push(Candidate { scope: Scope::Managed, kind: Kind::Settings, path: folder.join(MANAGED) });
            match parts(&folder.join(MANAGED_PARTS)) {
                Ok(paths) => found.extend(paths.into_iter().map(|path| Candidate {
                    scope: Scope::Managed,
                    kind: Kind::Settings,
                    path,
                })),
                Err(error) => {
                    let file = Some(folder.join(MANAGED_PARTS));
                    let source = Source { file, ..Source::of(Scope::Managed) };
                    trouble.push(Diagnostic::error(source, format!("the folder cannot be listed: {error}")));
                }
            }
        }
        (found, trouble)
    }

    /// The folders called `name` beside settings files, weakest first: the person's own, then those of the project
    /// and of what it lies in, up to the root of the repository.
    pub fn folders(&self, name: &str) -> Vec<(Scope, PathBuf)> {
        let mut found: Vec<_> = self.user.iter().map(|folder| (Scope::User, folder.join(name))).collect();
        let below = |folder: &&Path| folder.parent().is_some() && Some(*folder) != self.home.as_deref();
        let above: Vec<&Path> = self.cwd.ancestors().take_while(below).collect();
        let top = above.iter().position(|folder| folder.join(".git").exists());
        let top = top.or_else(|| above.iter().position(|folder| *folder == self.root));
        for folder in above.iter().take(top.map_or(1, |top| top + 1)).rev() {
            let own = FOLDERS.map(|own| folder.join(own)).into_iter().filter(|own| !self.user.contains(own));
            found.extend(own.map(|own| (Scope::Project, own.join(name))));
        }
        found
    }

    /// What the command line holds itself, with its kind.
    pub(super) fn given_texts(&self) -> impl Iterator<Item = (Kind, &str)> {
        let given = self.given.iter().map(|given| (Kind::Settings, given));
        let servers = self.servers.iter().map(|given| (Kind::Servers, given));
        given.chain(servers).filter_map(|(kind, given)| match given {
            Given::Text(text) => Some((kind, text.as_str())),
            Given::File(_) => None,
        })
    }

    /// Whether `file` belongs to the machine's own managed policy, which no variable adds to.
    pub(super) fn is_machine_policy(&self, file: Option<&Path>) -> bool {
        file.zip(self.managed.first()).is_some_and(|(file, folder)| file.starts_with(folder))
    }

    /// The file of the list of trusted folders.
    pub(crate) fn trust_file(&self) -> Option<&Path> {
        self.trust.as_deref()
    }

    /// The file that a scope's new entries go to: an existing one, else ours.
    pub fn file_to_write(&self, scope: Scope) -> Option<PathBuf> {
        let (folders, name): (Vec<PathBuf>, _) = match scope {
            Scope::User => (self.user.clone(), SHARED[2]),
            Scope::Project => (FOLDERS.map(|folder| self.root.join(folder)).to_vec(), SHARED[2]),
            Scope::Local => (FOLDERS.map(|folder| self.root.join(folder)).to_vec(), LOCAL),
            _ => return None,
        };
        let files: Vec<PathBuf> = folders.iter().rev().map(|folder| folder.join(name)).collect();
        files.iter().find(|file| file.exists()).or(files.first()).cloned()
    }

    /// What kind of settings file a path is, if it is one: of this run, or of any other project.
    pub fn settings_file(&self, path: &Path) -> Option<Kind> {
        let (candidates, _) = self.candidates();
        if let Some(candidate) = candidates.iter().find(|candidate| candidate.path == path) {
            return Some(candidate.kind);
        }
        let (folder, name) = (path.parent()?.file_name()?, path.file_name()?);
        let known = SHARED.iter().chain(&[LOCAL]).any(|known| name == *known);
        (known && FOLDERS.iter().any(|known| folder == *known)).then(|| Kind::of_name(name))
    }
}

/// The nearest folder upwards that is marked as a project. The home directory holds the person's own
/// settings, so it is no project because of them, and nothing above it is looked at.
fn project_root(cwd: &Path, home: Option<&Path>) -> PathBuf {
    cwd.ancestors()
        .take_while(|folder| folder.parent().is_some() && Some(*folder) != home)
        .find(|folder| MARKS.iter().any(|mark| folder.join(mark).exists()))
        .unwrap_or(cwd)
        .to_owned()
}

/// The files of a folder of managed parts, by name.
fn parts(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let listed = match fs::read_dir(folder) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(Vec::new());
        }
        listed => listed?,
    };
    let mut paths = Vec::new();
    for entry in listed {
        let path = entry?.path();
        let hidden = path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."));
        if !hidden && path.extension() == Some(OsStr::new("json")) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}
