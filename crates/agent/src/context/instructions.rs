//! Files in which people say how to work: of the person, of the project, of its folders.

use std::{
    collections::HashSet,
    fmt::Write as _,
    path::{Path, PathBuf},
};

use gripper_runtime::{
    Located, Place,
    environment::Environment,
    permissions::{Behavior, By, Check, Policy, Request, RuleList, decide, sensitive::is_secret},
};

use super::{read_some, tagged};

/// What they are called, in the order in which a folder's are read.
const NAMES: [&str; 5] =
    ["AGENTS.md", "CLAUDE.md", ".gripper/AGENTS.md", ".claude/CLAUDE.md", "CLAUDE.local.md"];

/// Bytes of one file, bytes of all, and number of files.
const FILE_BYTES: u64 = 40 * 1024;
const ALL_BYTES: usize = 200 * 1024;
const MOST_FILES: usize = 200;

/// How far files may import files that import files.
const DEPTH: usize = 5;

/// Complaints that are kept; nobody reads more.
const MOST_COMPLAINTS: usize = 50;

/// A file with instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstructionFile {
    /// Where it is, links followed.
    pub path: PathBuf,
    /// What it says, hidden characters made visible.
    pub text: String,
}

/// The instructions that hold in a session.
#[derive(Debug)]
pub struct Instructions {
    /// In the order in which they are told: the person's, then the project's from its root down to the working
    /// directory, each followed by what it imports.
    pub files: Vec<InstructionFile>,
    /// What was left out and why, for a person.
    pub complaints: Vec<String>,
    root: PathBuf,
    home: Option<PathBuf>,
    /// Files that were read or refused, links followed.
    seen: HashSet<PathBuf>,
    /// Folders whose files were looked for.
    folders: HashSet<PathBuf>,
    bytes: usize,
}

/// Whose file it is decides what it may import.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    User,
    Project,
}

/// Reads the instructions for work in `cwd`, a folder of the project at `root`. What the policy keeps from being
/// read is not read, and what a project says comes from inside the project.
pub fn instructions(environment: &Environment, policy: &Policy, cwd: &Path, root: &Path) -> Instructions {
    let real = |path: &Path| Place { cwd: "/".into() }.locate(path).real;
    let mut all = Instructions {
        files: Vec::new(),
        complaints: Vec::new(),
        root: real(root),
        home: environment.home.clone(),
        seen: HashSet::new(),
        folders: HashSet::new(),
        bytes: 0,
    };
    for (folder, name) in [(&environment.config_dir, "AGENTS.md"), (&environment.claude_dir, "CLAUDE.md")] {
        if let Some(folder) = folder {
            all.look_at(&folder.join(name), Level::User, policy);
        }
    }
    let cwd = real(cwd);
    all.look_in_folders(&cwd, policy);
    all
}

/// The instructions of folders on the way to a file that the model works with, as far as nobody has told them.
pub fn nested(known: &mut Instructions, policy: &Policy, path: &Path) -> Vec<InstructionFile> {
    let before = known.files.len();
    let real = Place { cwd: "/".into() }.locate(path).real;
    if let Some(folder) = real.parent() {
        known.look_in_folders(folder, policy);
    }
    known.files[before..].to_vec()
}

/// Instructions as the model reads them, or nothing if there are none.
pub fn told(files: &[InstructionFile]) -> Option<String> {
    let mut text = String::from(
        "Instructions kept by the person and the project, for all work here; where they differ, what comes later \
         counts. They cannot widen what you are permitted to do.\n",
    );
    for file in files {
        write!(text, "\n## {}\n\n{}\n", file.path.display(), file.text.trim()).ok();
    }
    (!files.is_empty()).then(|| tagged(&text))
}

impl Instructions {
    /// Looks in the folders of the project down to this one.
    fn look_in_folders(&mut self, to: &Path, policy: &Policy) {
        let mut folders: Vec<PathBuf> = to
            .ancestors()
            .take_while(|folder| folder.starts_with(&self.root))
            .filter(|folder| !self.folders.contains(*folder))
            .map(Path::to_owned)
            .collect();
        folders.reverse();
        for folder in folders {
            NAMES.iter().for_each(|name| self.look_at(&folder.join(name), Level::Project, policy));
            self.folders.insert(folder);
        }
    }

    /// Reads a file if it is there.
    fn look_at(&mut self, path: &Path, level: Level, policy: &Policy) {
        if path.symlink_metadata().is_ok() {
            self.read(path, level, policy, 0);
        }
    }

    fn read(&mut self, path: &Path, level: Level, policy: &Policy, depth: usize) {
        let at = Place { cwd: "/".into() }.locate(path);
        if self.seen.len() >= MOST_FILES * 2 || !self.seen.insert(at.real.clone()) {
            return;
        }
        if let Some(why) = self.refused(&at, level, policy) {
            return self.complain(format!("{} is not read: {why}", path.display()));
        }
        let (mut text, whole) = match read_some(&at, FILE_BYTES) {
            Ok(read) => read,
            Err(why) => return self.complain(format!("instructions are missing: {why}")),
        };
        if self.bytes + text.len() > ALL_BYTES || self.files.len() >= MOST_FILES {
            let most = ALL_BYTES / 1024;
            return self
                .complain(format!("{} is left out: instructions have {most} KiB at most", path.display()));
        }
        if !whole {
            let most = FILE_BYTES / 1024;
            let words = format!("only the first {most} KiB of {} are used: make it shorter", path.display());
            text.push_str("\n[The rest of this file is left out: it is too long.]\n");
            self.complain(words);
        }
        self.bytes += text.len();
        let imports = imports(&text);
        self.files.push(InstructionFile { path: at.real.clone(), text });
        for name in imports {
            let target = match (name.strip_prefix("~/"), &self.home) {
                (Some(rest), Some(home)) => home.join(rest),
                _ => at.real.parent().unwrap_or(Path::new("/")).join(&name),
            };
            if depth == DEPTH {
                self.complain(format!(
                    "{} imports {name} too deep: {DEPTH} levels are followed",
                    path.display()
                ));
            } else {
                self.read(&target, level, policy, depth + 1);
            }
        }
    }

    /// Why a file may not be read. It would be told to a model, so what the policy keeps secret stays out.
    fn refused(&self, at: &Located, level: Level, policy: &Policy) -> Option<String> {
        if level == Level::Project && !at.real.starts_with(&self.root) {
            return Some("a project's instructions come from inside the project, links followed".to_owned());
        }
        if [&at.written, &at.real].into_iter().any(|path| is_secret(&path.to_string_lossy())) {
            return Some("it may hold secrets".to_owned());
        }
        let request = Request { read_only: true, subjects: vec![at.subject(false)], ..Request::new("Read") };
        let decision = decide(policy, &request);
        let settled = matches!(
            decision.by,
            By::Rule { list: RuleList::Deny, .. } | By::Check(Check::SensitivePath | Check::ProtectedPath)
        );
        (settled && decision.behavior != Behavior::Allow).then(|| decision.reason.into_owned())
    }

    fn complain(&mut self, words: String) {
        if self.complaints.len() < MOST_COMPLAINTS {
            self.complaints.push(words);
        }
    }
}

/// The files that a text imports: `@path` at the start of a word, outside of code.
fn imports(text: &str) -> Vec<String> {
    let (mut found, mut fence) = (Vec::new(), None::<&str>);
    for line in text.lines() {
        let start = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (None, None) => {
                // Between an odd and an even backtick is code.
                let prose = line.split('`').step_by(2).flat_map(str::split_whitespace);
                found.extend(prose.filter_map(import));
            }
            _ => {}
        }
    }
    found
}

/// The path behind the sign, if it looks like one; people are mentioned the same way.
fn import(word: &str) -> Option<String> {
    let name = word.strip_prefix('@')?.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
    (name.contains(['/', '.']) && !name.contains('@')).then(|| name.to_owned())
}
