//! Command lines as the decision sees them.

use std::path::PathBuf;

use gripper_shell::{Analysis, EffectKind, Surroundings, Target, Verdict, analyze, join};
use serde::Serialize;
use serde_json::Value;

use crate::{
    PathUse, Policy, Request, Subject, sensitive,
    tools::{self, Kind},
};

/// More paths than this in one command are not looked at one by one: the command is asked about.
const MOST_PATHS: usize = 512;

/// A command line with what it would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CommandUse {
    /// The text.
    pub text: String,
    /// What it would do.
    #[serde(skip)]
    pub analysis: Box<Analysis>,
    /// The same in one line.
    #[serde(skip)]
    pub summary: String,
}

/// Where a command would run.
#[derive(Clone, Copy)]
pub struct CommandPlace<'a> {
    /// The working directory, absolute.
    pub cwd: &'a str,
    /// The home directory, absolute.
    pub home: &'a str,
    /// Where a path, absolute and tidy, really leads.
    pub real: &'a dyn Fn(&str) -> PathBuf,
}

impl<'a> Request<'a> {
    /// A request to run a command line with `tool`.
    pub fn command(tool: &'a str, text: &str, policy: &Policy, place: CommandPlace<'_>) -> Self {
        let index = policy.index();
        let own = &index.own;
        let surroundings = Surroundings {
            cwd: place.cwd.to_owned(),
            home: place.home.to_owned(),
            roots: policy.directories.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
            sensitive: &|path| own.is_secret(path) || sensitive::is_steering(path),
        };
        let analysis = analyze(text, &surroundings);
        let summary = analysis.summary(&surroundings);
        let mut paths: Vec<Subject> = Vec::new();
        for effect in analysis.effects() {
            let (target, write, names_only, whole_folder) = match &effect.kind {
                EffectKind::List(target) => (target, false, true, false),
                EffectKind::Read(target) => (target, false, false, false),
                EffectKind::Write(target) => (target, true, false, false),
                EffectKind::Delete(target) => (target, true, false, true),
                _ => continue,
            };
            let (written, pattern) = match target {
                Target::Path(path) => (path.as_str(), None),
                Target::Pattern(pattern) => (base(pattern), Some(pattern.clone())),
                Target::Unknown => continue,
            };
            // Removing a link removes the link, not what it leads to.
            let real = match (whole_folder, written.rsplit_once('/')) {
                (true, Some((folder, name))) if pattern.is_none() => {
                    (place.real)(if folder.is_empty() { "/" } else { folder }).join(name)
                }
                _ => (place.real)(written),
            };
            let path = PathUse { names_only, whole_folder, pattern, ..PathUse::new(written, real, write) };
            let path = Subject::Path(path);
            if paths.len() <= MOST_PATHS && !paths.contains(&path) {
                paths.push(path);
            }
        }
        let read_only = analysis.verdict() != Verdict::NotReadOnly && paths.len() <= MOST_PATHS;
        let command = CommandUse { text: text.to_owned(), analysis: Box::new(analysis), summary };
        let mut subjects = vec![Subject::Command(command)];
        subjects.append(&mut paths);
        Self { subjects, read_only, ..Self::new(tool) }
    }

    /// A request as any tool of the rule language would make it from its input, for explaining
    /// calls without running them. `None` when the input lacks what the tool is about.
    pub fn from_input(
        tool: &'a str,
        input: &'a Value,
        policy: &Policy,
        place: CommandPlace<'_>,
    ) -> Option<Self> {
        let Some(known) = tools::known(tool) else {
            return Some(Self { input: Some(input), ..Self::new(tool) });
        };
        let text = input.get(&known.input).and_then(Value::as_str);
        let optional = matches!(tool, "Grep" | "Glob");
        let mut request = match (known.kind, text) {
            // A tool whose rules are those of commands, where it runs one.
            (Kind::Plain, Some(text)) if !known.input.is_empty() => Self::command(tool, text, policy, place),
            (Kind::Plain, _) => Self {
                needs_person: known.person,
                read_only: known.session,
                opaque: known.opaque,
                ..Self::new(tool)
            },
            (Kind::Command, text) => Self::command(tool, text?, policy, place),
            (kind @ (Kind::Read | Kind::Edit), text) => {
                let text = if optional { text.unwrap_or(".") } else { text? };
                let text = match text.strip_prefix("~/") {
                    Some(below) => format!("{}/{below}", place.home),
                    None => text.to_owned(),
                };
                let written = join(place.cwd, &text);
                let real = (place.real)(&written);
                let edit = kind == Kind::Edit;
                let mut subjects = vec![Subject::Path(PathUse::new(written, real, edit))];
                // A search may look elsewhere than in its folder.
                let within = known.within.as_ref().and_then(|name| input.get(name)).and_then(Value::as_str);
                if let Some(within) = within.filter(|_| optional) {
                    let below = match within.strip_prefix("~/") {
                        Some(below) => format!("{}/{below}", place.home),
                        None => within.to_owned(),
                    };
                    let pattern = join(&join(place.cwd, &text), &below);
                    let folder = base(&pattern).to_owned();
                    subjects.push(Subject::Path(PathUse::new(&folder, (place.real)(&folder), false)));
                }
                Self { subjects, read_only: !edit, edits_files: edit, ..Self::new(tool) }
            }
            (Kind::Domain, text) => {
                Self { subjects: vec![Subject::Url(text?.to_owned())], ..Self::new(tool) }
            }
            (Kind::Agent | Kind::Skill, text) => {
                let name = text?.trim().trim_start_matches('/').to_owned();
                Self { subjects: vec![Subject::Name(name)], ..Self::new(tool) }
            }
        };
        request.input = Some(input);
        Some(request)
    }

    /// The command line among the subjects.
    pub fn command_use(&self) -> Option<&CommandUse> {
        self.subjects.iter().find_map(|subject| match subject {
            Subject::Command(command) => Some(command),
            _ => None,
        })
    }
}

/// The folder in which a pattern starts to match.
fn base(pattern: &str) -> &str {
    let open = pattern.find(['*', '?', '[']).unwrap_or(pattern.len());
    match pattern.get(..open).and_then(|known| known.rfind('/')) {
        Some(0) | None => "/",
        Some(end) => pattern.get(..end).unwrap_or("/"),
    }
}
