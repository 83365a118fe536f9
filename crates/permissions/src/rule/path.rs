//! Rules about paths, in the syntax of `.gitignore` files.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
};

use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::patterns;

/// Where patterns start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Anchors {
    /// Rules that begin with `/`.
    pub root: PathBuf,
    /// Rules that begin with `~/`.
    pub home: PathBuf,
    /// All others; the first is the working directory.
    pub directories: Vec<PathBuf>,
    /// Whether names that differ in case only are one file.
    pub fold_case: bool,
}

/// The specifier of a rule such as `Edit(src/**)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PathPattern {
    text: String,
}

impl PathPattern {
    pub(crate) fn new(text: &str) -> Self {
        Self { text: text.to_owned() }
    }

    /// Whether it has no wildcard, so that it names one file or folder.
    pub(crate) fn is_literal(&self) -> bool {
        !self.text.contains(['*', '?', '[', '\\'])
    }

    /// Whether it is a mere name, which counts at any depth.
    pub(crate) fn is_bare(&self) -> bool {
        let inner = self.text.strip_suffix('/').unwrap_or(&self.text);
        !inner.contains('/') && !inner.starts_with('~') && inner != "." && inner != ".." && inner != "**"
    }

    /// The pattern as lines of a `.gitignore` file in `/`. A mere name means that name anywhere
    /// for rules that forbid, and only below the working directories for rules that allow.
    /// `own` says whether the rule is the person's own, whose `/` is their home.
    pub(crate) fn lines(&self, anchors: &Anchors, (allow, edit): (bool, bool), own: bool) -> Vec<String> {
        if self.is_bare() {
            let name = &self.text;
            return if allow {
                anchors.directories.iter().map(|folder| format!("{}/**/{name}", spelt(folder))).collect()
            } else {
                vec![format!("**/{name}")]
            };
        }
        let (base, rest): (&Path, &str) = if let Some(rest) = self.text.strip_prefix("//") {
            (Path::new("/"), rest)
        } else if self.text == "~" {
            (&anchors.home, "")
        } else if let Some(rest) = self.text.strip_prefix("~/") {
            (&anchors.home, rest)
        } else if let Some(rest) = self.text.strip_prefix('/') {
            (if own { &anchors.home } else { &anchors.root }, rest)
        } else {
            (anchors.directories.first().map_or(Path::new("/"), PathBuf::as_path), self.text.as_str())
        };
        let line = join(&spelt(base), rest);
        let mut lines = Vec::new();
        // Who means all that is in a folder means the folder: searching it is reading what it holds.
        if let Some(folder) =
            line.strip_suffix("/**").or(line.strip_suffix("/*")).filter(|_| !(allow && edit))
            && !folder.ends_with("**")
            && !folder.is_empty()
        {
            lines.push(folder.to_owned());
        }
        // One slash where two were meant is the commonest slip, and a slip must not open a door.
        let slip = |folder: &Path| folder != Path::new("/") && Path::new(&self.text).starts_with(folder);
        if !allow && !self.text.starts_with("//") && (slip(&anchors.root) || slip(&anchors.home)) {
            lines.push(join("", &self.text));
        }
        lines.push(line);
        lines
    }
}

/// A path as a pattern that only it fits, without a slash at its end.
fn spelt(path: &Path) -> String {
    let mut text = String::new();
    for letter in path.to_string_lossy().trim_end_matches('/').chars() {
        if matches!(letter, '*' | '?' | '[' | ']' | '{' | '}' | '\\' | '!' | '#' | ' ') {
            text.push('\\');
        }
        text.push(letter);
    }
    text
}

/// Appends a pattern, `.` and `..` taken out of it.
fn join(base: &str, pattern: &str) -> String {
    let mut parts: Vec<&str> = base.split('/').filter(|part| !part.is_empty()).collect();
    for part in pattern.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            other => parts.push(other),
        }
    }
    let folder = if pattern.ends_with('/') { "/" } else { "" };
    match parts.is_empty() {
        true => "/**".to_owned(),
        false => format!("/{}{folder}", parts.join("/")),
    }
}

/// One pattern as it is.
#[derive(Debug)]
struct Line {
    number: usize,
    text: String,
    /// The folder below which it can match at all.
    fixed: PathBuf,
}

/// Many path rules, prepared to be tested together.
#[derive(Debug)]
pub(crate) struct PathSet {
    rules: Option<Gitignore>,
    /// The rule that has no specifier.
    whole: Option<usize>,
    /// Files that are named without wildcards.
    literal: HashMap<PathBuf, usize>,
    /// Mere names without wildcards.
    named: HashMap<String, usize>,
    /// The patterns as they are, to be compared with the patterns of commands.
    lines: Vec<Line>,
    /// Some of them are about folders only.
    folders: bool,
    /// A pattern could not be prepared: the set fits everything it is asked about.
    broken: Option<usize>,
}

impl PathSet {
    /// Prepares rules, each with its number, the strongest last.
    pub(crate) fn new<'r>(
        rules: impl Iterator<Item = (usize, Option<&'r PathPattern>, bool)>,
        anchors: &Anchors,
        allow: bool,
        edit: bool,
    ) -> Self {
        let mut set = Self {
            rules: None,
            whole: None,
            literal: HashMap::new(),
            named: HashMap::new(),
            lines: Vec::new(),
            folders: false,
            broken: None,
        };
        let mut builder = GitignoreBuilder::new("/");
        // The answer is only unreadable rules if this fails, and those count as fitting.
        let _ = builder.case_insensitive(anchors.fold_case);
        for (number, pattern, own) in rules {
            let Some(pattern) = pattern else {
                set.whole = Some(number);
                continue;
            };
            if pattern.is_bare() && pattern.is_literal() {
                set.named.insert(pattern.text.clone(), number);
            }
            for line in pattern.lines(anchors, (allow, edit), own) {
                // The number travels as the file that the line came from.
                let from = PathBuf::from(number.to_string());
                if builder.add_line(Some(from), &line).is_err() && !allow {
                    set.broken = Some(number);
                }
                if pattern.is_literal() {
                    set.literal.insert(PathBuf::from(line.replace('\\', "")), number);
                }
                let plain = |part: &std::path::Component<'_>| {
                    !part.as_os_str().to_string_lossy().contains(['*', '?', '['])
                };
                let fixed = Path::new(&line).components().take_while(plain).collect();
                set.folders |= line.ends_with('/');
                set.lines.push(Line { number, fixed, text: line });
            }
        }
        if !set.lines.is_empty() {
            set.rules = builder.build().ok();
            if set.rules.is_none() && !allow {
                set.broken = set.lines.first().map(|line| line.number);
            }
        }
        set
    }

    /// Whether there are no rules.
    pub(crate) fn is_empty(&self) -> bool {
        self.whole.is_none() && self.broken.is_none() && self.lines.is_empty()
    }

    /// The rule that fits a path, absolute and tidy.
    pub(crate) fn find(&self, path: &Path, maybe_folder: bool) -> Option<usize> {
        if let Some(number) = self.broken.or(self.whole) {
            return Some(number);
        }
        let rules = self.rules.as_ref()?;
        let below = path.strip_prefix("/").ok()?;
        if below.as_os_str().is_empty() {
            return None;
        }
        let number = |folder| {
            let found = rules.matched_path_or_any_parents(below, folder);
            found.inner().and_then(|glob| glob.from()?.to_str()?.parse().ok())
        };
        // Only patterns that end in a slash ask whether it is a folder.
        number(false).or_else(|| (maybe_folder && self.folders).then(|| number(true)).flatten())
    }

    /// The rule that names exactly this path.
    pub(crate) fn names(&self, path: &Path) -> Option<usize> {
        let name = || path.file_name().and_then(|name| self.named.get(&*name.to_string_lossy()));
        self.literal.get(path).or_else(name).copied().filter(|_| self.find(path, false).is_some())
    }

    /// The rule that a pattern of a command aims at.
    pub(crate) fn aimed_at(&self, pattern: &str) -> Option<usize> {
        let found = self.lines.iter().find(|line| {
            let text = line.text.trim_end_matches("/**").trim_end_matches('/').to_lowercase();
            patterns::reaches(pattern, std::slice::from_ref(&text))
        });
        found.map(|line| line.number).or(self.broken).or(self.whole)
    }

    /// A rule that something which a pattern of a command stands for may fall under.
    pub(crate) fn met_by(&self, pattern: &str) -> Option<usize> {
        self.lines.iter().find(|line| patterns::meet(pattern, &line.text)).map(|line| line.number)
    }

    /// Any rule at all.
    pub(crate) fn any(&self) -> Option<usize> {
        self.broken.or(self.whole).or_else(|| self.lines.first().map(|line| line.number))
    }

    /// The rule about something inside a folder that would go as a whole.
    pub(crate) fn inside(&self, folder: &Path) -> Option<usize> {
        let inside = |line: &&Line| line.fixed.starts_with(folder) && line.fixed != Path::new("/");
        self.lines.iter().find(inside).map(|line| line.number)
    }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
