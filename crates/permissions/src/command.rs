//! Command lines as the decision sees them.

use std::path::PathBuf;

use gripper_shell::{Analysis, Surroundings, Target, Verdict, analyze};
use serde::Serialize;

use crate::{PathUse, Policy, Request, Subject, sensitive};

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
        let surroundings = Surroundings {
            cwd: place.cwd.to_owned(),
            home: place.home.to_owned(),
            roots: policy.directories.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
            sensitive: &|path| sensitive::is_secret(path) || sensitive::is_steering(path),
        };
        let analysis = analyze(text, &surroundings);
        let summary = analysis.summary(&surroundings);
        let mut paths: Vec<Subject> = Vec::new();
        let lists = analysis.lists();
        for (targets, write, names_only) in
            [(lists, false, true), (analysis.reads(), false, false), (analysis.writes(), true, false)]
        {
            for target in targets {
                let written = match target {
                    Target::Path(path) => path.clone(),
                    Target::Pattern(pattern) => base(pattern).to_owned(),
                    Target::Unknown => continue,
                };
                let real = (place.real)(&written);
                paths.push(Subject::Path(PathUse { written: written.into(), real, write, names_only }));
            }
        }
        let read_only = analysis.verdict() != Verdict::NotReadOnly && paths.len() <= MOST_PATHS;
        let command = CommandUse { text: text.to_owned(), analysis: Box::new(analysis), summary };
        let mut subjects = vec![Subject::Command(command)];
        subjects.append(&mut paths);
        Self { subjects, read_only, ..Self::new(tool) }
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
