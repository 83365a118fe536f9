//! From folders to prompts.

use std::{
    fs,
    path::{Path, PathBuf},
};

use gripper_permissions::{Diagnostic, Scope, Source};
use serde_json::{Map, Value};

use super::{Argument, Prompt, Prompts};
use crate::{front_matter, settings::Sources};

/// Most prompts, entries of folders that are looked at, and folders within folders of commands.
const MOST: usize = 1_000;
const MOST_ENTRIES: usize = 10_000;
const DEEPEST: usize = 5;
/// Most text of all together, in bytes.
const MOST_TEXT: usize = 16 * 1024 * 1024;
/// Longest name, and longest description in bytes.
const LONGEST_NAME: usize = 64;
const LONGEST_DESCRIPTION: usize = 1_024;
const SKILL: &str = "SKILL.md";

/// Files that may be prompts, weakest first.
#[derive(Default)]
pub(super) struct Found {
    files: Vec<(Kind, String, Source)>,
    diagnostics: Vec<Diagnostic>,
    looked_at: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Command,
    Skill,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Command => "command",
            Kind::Skill => "skill",
        }
    }
}

impl Found {
    /// The files.
    pub(super) fn files(&self) -> impl Iterator<Item = PathBuf> + use<'_> {
        self.files.iter().filter_map(|(_, _, source)| source.file.clone())
    }

    /// What is in a folder by name, hidden things left out, as long as not too much was looked at.
    fn listed(&mut self, folder: &Path) -> Vec<(String, PathBuf)> {
        let Ok(listed) = fs::read_dir(folder) else { return Vec::new() };
        let room = MOST_ENTRIES.saturating_sub(self.looked_at);
        let entries: Vec<PathBuf> = listed.flatten().take(room).map(|entry| entry.path()).collect();
        self.looked_at += entries.len();
        let named = |path: PathBuf| Some((path.file_name()?.to_str()?.to_owned(), path));
        let mut entries: Vec<(String, PathBuf)> = entries.into_iter().filter_map(named).collect();
        entries.retain(|(name, _)| !name.starts_with('.'));
        entries.sort();
        entries
    }

    fn add(&mut self, kind: Kind, name: String, file: PathBuf, scope: Scope) {
        self.files.push((kind, name, Source { file: Some(file), ..Source::of(scope) }));
    }

    /// Files of a folder of commands; those of folders in it have names such as `folder:name`.
    fn commands(&mut self, scope: Scope, folder: &Path, prefix: &str, depth: usize) {
        for (name, path) in self.listed(folder) {
            if path.is_dir() {
                if depth < DEEPEST {
                    self.commands(scope, &path, &format!("{prefix}{name}:"), depth + 1);
                }
            } else if let (Some(stem), true) = (name.strip_suffix(".md"), path.is_file()) {
                self.add(Kind::Command, format!("{prefix}{stem}"), path, scope);
            }
        }
    }

    fn skills(&mut self, scope: Scope, folder: &Path) {
        for (name, path) in self.listed(folder) {
            let file = path.join(SKILL);
            if file.is_file() {
                self.add(Kind::Skill, name, file, scope);
            }
        }
    }
}

/// Looks for files in the folders of the person and the project.
pub(super) fn find(sources: &Sources) -> Found {
    let trust = sources.trust().0;
    let counts = |scope: Scope| sources.scopes.as_ref().is_none_or(|scopes| scopes.contains(&scope));
    let mut found = Found::default();
    let folders = sources.folders("commands").into_iter().zip(sources.folders("skills"));
    for ((scope, commands), (_, skills)) in folders.filter(|((scope, _), _)| counts(*scope)) {
        for (kind, folder) in [(Kind::Command, commands), (Kind::Skill, skills)] {
            let before = found.files.len();
            match kind {
                Kind::Command => found.commands(scope, &folder, "", 0),
                Kind::Skill => found.skills(scope, &folder),
            }
            if found.files.len() > before && scope != Scope::User && !trust.trusts(&folder) {
                found.files.truncate(before);
                let source = Source { file: Some(folder), ..Source::of(scope) };
                let what =
                    format!("the {}s of this folder are not used: the project is not trusted", kind.word());
                let fix = "gripper trust changes that";
                found.diagnostics.push(Diagnostic::warning(source, what).fix(fix));
            }
        }
    }
    if found.looked_at >= MOST_ENTRIES {
        let source = Source { file: Some(sources.root.clone()), ..Source::of(Scope::Project) };
        let what = format!(
            "folders of commands and skills hold more than {MOST_ENTRIES} entries; the rest is left out"
        );
        found.diagnostics.push(Diagnostic::warning(source, what));
    }
    found
}

/// Reads them.
pub(super) fn all(found: Found) -> Prompts {
    let mut prompts = Prompts { diagnostics: found.diagnostics, ..Prompts::default() };
    let mut length = 0;
    for (kind, name, source) in found.files {
        let file = source.file.clone().unwrap_or_default();
        let read = front_matter::text(&file).and_then(|text| prompt(kind, &name, &text, &source));
        match read {
            Ok((prompt, complaints)) => {
                let warning = |what: String| {
                    let what = format!("of the {} {name}: {what}", kind.word());
                    Diagnostic::warning(source.clone(), what)
                };
                prompts.diagnostics.extend(complaints.into_iter().map(warning));
                let Some(prompt) = prompt else { continue };
                length += prompt.text.len();
                let room = prompts.all.len() < MOST || prompts.all.contains_key(&prompt.name);
                if room && length <= MOST_TEXT {
                    prompts.all.insert(prompt.name.clone(), prompt);
                } else {
                    let most = format!("{MOST} prompts, or {} MiB of text", MOST_TEXT / (1024 * 1024));
                    let what = format!("this {} is left out: there are {most} already", kind.word());
                    prompts.diagnostics.push(Diagnostic::error(source, what));
                }
            }
            Err(why) => {
                let what = format!("this {} does not count: {why}", kind.word());
                prompts.diagnostics.push(Diagnostic::error(source, what));
            }
        }
    }
    prompts
}

/// The prompt, unless no person is to call it, and what is wrong with it.
fn prompt(
    kind: Kind,
    usual_name: &str,
    text: &str,
    source: &Source,
) -> Result<(Option<Prompt>, Vec<String>), String> {
    let (fields, text, wrong) = front_matter::split_if_any(text);
    let mut complaints: Vec<String> = wrong.into_iter().collect();
    let field = |key: &str| field(&fields, key);
    let said = |key: &str| field(key).and_then(Value::as_str).map(str::trim).filter(|said| !said.is_empty());
    if field("userinvocable") == Some(&Value::Bool(false)) {
        return Ok((None, complaints));
    }
    let name = match said("name").filter(|_| kind == Kind::Skill) {
        Some(name) if is_name(name) => name,
        Some(name) => {
            complaints.push(format!("{:?} is no name, so that of its folder counts", short(name, 64)));
            usual_name
        }
        None => usual_name,
    };
    if !is_name(name) {
        let rule = format!("use up to {LONGEST_NAME} letters, digits, _, - and .; mcp__ is for servers");
        return Err(format!("{:?} is no name: {rule}", short(name, 64)));
    }
    if text.is_empty() {
        return Err("it has no text".to_owned());
    }
    let hint = field("argumenthint").and_then(hint).map(|hint| short(&hint, LONGEST_DESCRIPTION));
    let declared = match field("arguments").map(Argument::read) {
        Some(Ok(declared)) => declared,
        Some(Err(why)) => {
            complaints.push(why);
            Vec::new()
        }
        None => hint.as_deref().and_then(Argument::of_hint).unwrap_or_default(),
    };
    let first = || text.lines().map(|line| line.trim_start_matches('#').trim()).find(|line| !line.is_empty());
    let description = said("description").or_else(first).unwrap_or_default();
    let prompt = Prompt {
        name: name.to_owned(),
        description: short(description, LONGEST_DESCRIPTION),
        source: source.clone(),
        declared,
        hint,
        folder: source.file.as_deref().filter(|_| kind == Kind::Skill).and_then(folder_of),
        text,
    };
    Ok((Some(prompt), complaints))
}

/// A field in whichever of the usual ways it is written.
fn field<'f>(fields: &'f Map<String, Value>, key: &str) -> Option<&'f Value> {
    let plain = |name: &str| {
        name.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase()
    };
    fields.iter().find(|(name, value)| plain(name) == key && !value.is_null()).map(|(_, value)| value)
}

/// A hint; `[file]` without quotes is a list to YAML.
fn hint(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.trim().to_owned(),
        Value::Array(items) => {
            let items: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            format!("[{}]", items.join(", "))
        }
        _ => return None,
    };
    (!text.is_empty()).then_some(text)
}

fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    !name.is_empty()
        && name.chars().count() <= LONGEST_NAME
        && name.chars().all(plain)
        && !name.starts_with("mcp__")
}

fn short(text: &str, most: usize) -> String {
    let end = text.floor_char_boundary(most);
    if end < text.len() { format!("{}…", &text[..end]) } else { text.to_owned() }
}

/// The folder of a skill, if there is more in it than the skill itself.
fn folder_of(file: &Path) -> Option<PathBuf> {
    let folder = file.parent()?;
    let more = fs::read_dir(folder).ok()?.flatten().any(|entry| entry.file_name() != SKILL);
    more.then(|| folder.to_owned())
}
