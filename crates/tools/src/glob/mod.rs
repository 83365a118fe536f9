//! Glob: finds files by name, the newest first.

use std::{
    ffi::OsStr,
    fs,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use gripper_runtime::{
    Access, Block, Call, ErrorCode, Facts, Place, Tool, ToolError,
    permissions::{Behavior, PathUse, Policy, Sieve},
    schema::Problem,
    tool::{Background, Done, Hints, Kind, ResultBound},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::disk;
use crate::walk::{self, Candidate, Halt, Limit, Newest, Root};

/// The most characters of results.
const CHARS: usize = 30_000;
/// The most folders told that were not reached in time.
const UNREACHED: usize = 10;

/// What a person may set.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// The most files in a result.
    pub most: usize,
    /// Whether files that `.gitignore` names are left out.
    pub respect_ignore: bool,
    /// How long a walk may take; then what was found until then is the result.
    pub budget: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Self { most: 100, respect_ignore: false, budget: Duration::from_secs(40) }
    }
}

/// The tool.
pub struct Glob {
    settings: Settings,
}

impl Glob {
    /// The tool as a person wants it.
    pub fn new(settings: Settings) -> Self {
        Self { settings }
    }
}

/// What a call carries.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Input {
    /// The pattern of paths: "**/*.rs", "src/**/*.{ts,tsx}", "[!a-c]*.md". A relative one starts at `path`.
    #[schemars(length(min = 1))]
    pub pattern: String,
    /// The folder to look in, as an absolute path; the working directory if left out.
    #[schemars(length(min = 1))]
    pub path: Option<String>,
}

/// The structured result.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// How long it took.
    pub duration_ms: u64,
    /// How many files are listed.
    pub num_files: usize,
    /// The files, the newest first.
    pub filenames: Vec<String>,
    /// Whether there are more than listed, or may be.
    pub truncated: bool,
    /// How many files match, as far as it is known.
    pub total_matches: usize,
    /// Folders that were not reached in time, to go on with as `path`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_reached: Vec<String>,
    /// What else is to be known.
    pub notes: Vec<String>,
}

impl Tool for Glob {
    const NAME: &'static str = "Glob";
    const DESCRIPTION: &'static str = include_str!("description.md");
    const FACTS: Facts = Facts {
        title: "Find files",
        aliases: &["GlobTool"],
        search_hint: "find list files by name pattern wildcard",
        kind: Kind::Search,
        bound: ResultBound::SelfBounded,
        time_limit: Duration::from_secs(60),
        background: Background::Always,
        hints: Hints::READS,
        ..Facts::DEFAULT
    };

    type Input = Input;
    type Output = Output;

    fn examples() -> Vec<Value> {
        vec![json!({"pattern": "**/*.rs"}), json!({"pattern": "src/**/*.{ts,tsx}", "path": "/project/web"})]
    }

    fn check(&self, input: &Input) -> Vec<Problem> {
        let mut problems = disk::path_problems("/path", input.path.as_deref().unwrap_or_default());
        if input.pattern.contains('\0') {
            problems.push(Problem::found("/pattern", "bad_path", "no NUL characters", "a NUL character"));
        }
        problems
    }

    fn access(&self, input: &Input, place: &Place) -> Access {
        let access = Access::nothing().reads_path(&place.locate(&Target::new(input).folder));
        match &input.path {
            Some(path) => access.reads_path(&place.locate(Path::new(path))),
            None => access,
        }
    }

    fn summary(&self, input: &Input) -> String {
        let place = input.path.as_ref().map_or_else(String::new, |path| format!(" in {path}"));
        format!("find {}{place}", input.pattern)
    }

    fn observable(&self, input: &Input, place: &Place) -> Option<Value> {
        let path = place.absolute(Path::new(input.path.as_deref().unwrap_or(".")));
        Some(json!({ "pattern": input.pattern, "path": path }))
    }

    async fn run(&self, input: &Input, call: &Call) -> Result<Done<Output>, ToolError> {
        let began = Instant::now();
        let mut notes = Vec::new();
        if let Some(path) = &input.path {
            let given = call.located(Path::new(path));
            if !walk::is_folder(&given)? {
                let message = format!(
                    "{} is a file, and files are looked for in folders: name one",
                    given.written.display()
                );
                return Err(ToolError::new(ErrorCode::InvalidInput, message));
            }
            if !Path::new(path).is_absolute() {
                notes.push(format!("the relative path was taken as {}", given.written.display()));
            }
        }
        let at = call.located(&Target::new(input).folder);
        let search = Search::new(input, Root { at, cwd: call.place.cwd.clone() }, self.settings)?;
        let (policy, cancel) = (call.policy.clone(), call.cancel.clone());
        let deadline = began + self.settings.budget;
        let work = move || {
            let limit = Limit { cancelled: &|| cancel.is_cancelled(), deadline };
            let found = search.run(&policy, &limit);
            (search, found)
        };
        let (search, found) = disk::off_thread(work).await?;
        if found.halt == Some(Halt::Cancelled) {
            return Err(ToolError::new(ErrorCode::Cancelled, "the walk was cancelled"));
        }
        Ok(search.output(found, began.elapsed(), notes, &input.pattern).into())
    }

    fn map(&self, output: &Output) -> Vec<Block> {
        vec![Block::text(walk::with_notes(output.filenames.join("\n"), &output.notes))]
    }
}

/// A pattern, taken apart.
struct Target {
    /// Where the wildcards begin: the walk need not start above.
    folder: PathBuf,
    /// The rest of the pattern.
    rest: String,
}

impl Target {
    fn new(input: &Input) -> Self {
        let base = Path::new(input.path.as_deref().unwrap_or("."));
        let mut parts: Vec<&str> = input.pattern.split('/').collect();
        let last = parts.pop().unwrap_or_default();
        let wild = |part: &&str| part.contains(['*', '?', '[', ']', '{', '}', '\\']);
        let fixed = parts.iter().position(wild).unwrap_or(parts.len());
        let rest = parts.split_off(fixed);
        let rest: Vec<&str> =
            rest.into_iter().chain([last]).filter(|part| !matches!(*part, "" | ".")).collect();
        let start =
            if parts.first() == Some(&"") { "/".to_owned() + &parts.join("/") } else { parts.join("/") };
        Self { folder: base.join(start), rest: rest.join("/") }
    }

    fn set(&self) -> Result<GlobSet, ToolError> {
        let bad = |why: String| {
            let message =
                format!("the pattern is not valid: {why}; a backslash makes the next character literal");
            ToolError::new(ErrorCode::InvalidInput, message)
        };
        if self.rest.split('/').any(|part| part == "..") {
            return Err(bad("`..` may only stand before the first wildcard".to_owned()));
        }
        let glob = GlobBuilder::new(&self.rest).literal_separator(true).backslash_escape(true).build();
        let glob = glob.map_err(|error| bad(error.to_string()))?;
        // A set of one is quicker than one alone: it knows the common shapes.
        GlobSetBuilder::new().add(glob).build().map_err(|error| bad(error.to_string()))
    }

    /// How deep a match can lie, if there is a limit.
    fn depth(&self) -> Option<usize> {
        (!self.rest.contains("**") && !self.rest.contains('{')).then(|| self.rest.split('/').count())
    }
}

/// A walk, prepared.
pub struct Search {
    set: GlobSet,
    depth: Option<usize>,
    settings: Settings,
    root: Root,
}

impl Search {
    /// Prepares the walk that a call asks for; the root is where the wildcards of its pattern begin.
    pub fn new(input: &Input, root: Root, settings: Settings) -> Result<Self, ToolError> {
        let target = Target::new(input);
        Ok(Self { set: target.set()?, depth: target.depth(), settings, root })
    }

    /// Walks, and leaves out what the policy keeps from being read.
    pub fn run(&self, policy: &Policy, limit: &Limit<'_>) -> Newest {
        let real = &self.root.at.real;
        let skipped = real.as_os_str().len() + usize::from(real.parent().is_some());
        let sieve = Sieve::new(policy, PathUse { names_only: true, ..self.root.path_use(real) });
        let wanted = |found: Candidate<'_>| {
            let below = found.path.as_os_str().as_bytes().get(skipped..).unwrap_or_default();
            self.set.is_match(Path::new(OsStr::from_bytes(below)))
                && (!sieve.hides_names() || {
                    let mut file = PathUse { names_only: true, ..self.root.path_use(found.path) };
                    // What a link leads to is not shown if it may not be read itself.
                    if found.link {
                        file.real = found.path.canonicalize().unwrap_or(file.real);
                    }
                    sieve.judge(&file) != Behavior::Deny
                })
        };
        let most = Some(self.settings.most);
        if !self.settings.respect_ignore {
            return walk::newest_of_all(&self.root, self.depth, limit, most, &wanted);
        }
        let mut walk = walk::builder(&self.root, true);
        walk.max_depth(self.depth);
        walk::newest(&walk, limit, most, &wanted)
    }

    fn output(&self, found: Newest, took: Duration, mut notes: Vec<String>, pattern: &str) -> Output {
        let mut chars = 0;
        let shown = found.files.iter().map(|(_, path)| self.root.shown(path));
        let filenames: Vec<String> = shown
            .take_while(|name| {
                chars += name.chars().count() + 1;
                chars <= CHARS
            })
            .collect();
        let (num_files, total_matches) = (filenames.len(), found.total);
        let late = found.halt.is_some();
        let not_reached = if late { self.not_reached(&found) } else { Vec::new() };
        let truncated = late || num_files < total_matches;
        if late {
            let seconds = self.settings.budget.as_secs();
            let mut note =
                format!("time ran out after {seconds} s, so there may be more: use a narrower pattern");
            if !not_reached.is_empty() {
                note.push_str(&format!(
                    ", or go on with path set to what was not reached: {}",
                    not_reached.join(", ")
                ));
            }
            notes.insert(0, note);
        }
        if num_files < total_matches {
            let note = format!(
                "the newest {num_files} of {total_matches} files; a narrower pattern shows the others"
            );
            notes.insert(0, note);
        } else if total_matches == 0 {
            let hint = if pattern.contains('/') || pattern.starts_with("**") {
                String::new()
            } else {
                format!("; **/{pattern} looks in all folders below")
            };
            notes.insert(0, format!("no files match{hint}"));
        }
        if found.unreadable > 0 && self.root.at.real.exists() {
            notes.push(format!("{} folders could not be read", found.unreadable));
        }
        let duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        Output { duration_ms, num_files, filenames, truncated, total_matches, not_reached, notes }
    }

    /// The folders right below the root that the walk had not come to.
    fn not_reached(&self, found: &Newest) -> Vec<String> {
        let folders = fs::read_dir(&self.root.at.real).into_iter().flatten().flatten();
        let mut missed: Vec<PathBuf> = folders
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.path())
            .filter(|path| !found.begun.contains(path) && !walk::is_version_control(path.file_name()))
            .collect();
        missed.sort();
        missed.iter().take(UNREACHED).map(|path| self.root.shown(path)).collect()
    }
}

#[cfg(test)]
mod tests;
