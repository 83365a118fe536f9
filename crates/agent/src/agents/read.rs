//! From files and JSON to kinds of agents.

use std::{collections::BTreeMap, fs, path::Path};

use gripper_runtime::{
    front_matter,
    permissions::{Diagnostic, Mode, Rule, Scope, Source},
};
use serde_json::{Map, Value};

use super::Definition;

/// Fields of the contract that do nothing here yet.
const LATER: [&str; 4] = ["skills", "mcpservers", "hooks", "isolation"];

/// Collects kinds and what is wrong with them.
pub(super) struct Reader {
    pub(super) kinds: BTreeMap<String, Definition>,
    pub(super) found: Vec<Diagnostic>,
}

impl Reader {
    pub(super) fn new(kinds: BTreeMap<String, Definition>) -> Self {
        Self { kinds, found: Vec::new() }
    }

    /// Reads the files of a folder, by name.
    pub(super) fn folder(&mut self, scope: Scope, folder: &Path, trusted: bool) {
        let Ok(listed) = fs::read_dir(folder) else { return };
        let mut files: Vec<_> = listed.flatten().map(|entry| entry.path()).collect();
        files.retain(|file| file.extension().is_some_and(|ending| ending == "md") && file.is_file());
        files.sort();
        if !trusted && !files.is_empty() {
            let source = Source { file: Some(folder.to_owned()), ..Source::of(scope) };
            let what = "the agents of this folder are not used: the project is not trusted";
            return self.found.push(Diagnostic::warning(source, what).fix("gripper trust changes that"));
        }
        let mut names: Vec<String> = Vec::new();
        for file in files {
            let source = Source { file: Some(file.clone()), ..Source::of(scope) };
            let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let read = front_matter::text(&file).and_then(|text| front_matter::split(&text));
            let kind = read.and_then(|(fields, prompt)| self.kind(stem, fields, Some(prompt), &source));
            let kind = match kind {
                Ok(kind) => kind,
                Err(why) => {
                    let what = format!("this agent does not count: {why}");
                    self.found.push(Diagnostic::error(source, what));
                    continue;
                }
            };
            if names.contains(&kind.name) {
                let what = format!("another file of the folder already describes the agent {}", kind.name);
                self.found.push(Diagnostic::error(source, what).fix("give one of them another name"));
                continue;
            }
            names.push(kind.name.clone());
            self.kinds.insert(kind.name.clone(), kind);
        }
    }

    /// Takes what the command line gives: objects by name.
    pub(super) fn given(&mut self, given: &Value) {
        let source = Source::command_line();
        let Some(given) = given.as_object() else {
            let what = "agents must be an object with their names as keys";
            return self.found.push(Diagnostic::error(source, what));
        };
        for (name, fields) in given {
            let fields = fields.as_object().cloned().ok_or_else(|| "it must be an object".to_owned());
            match fields.and_then(|fields| self.kind(name, fields, None, &source)) {
                Ok(kind) => {
                    self.kinds.insert(name.clone(), Definition { name: name.clone(), ..kind });
                }
                Err(why) => {
                    let what = format!("the agent {name} does not count: {why}");
                    self.found.push(Diagnostic::error(source.clone(), what));
                }
            }
        }
    }

    fn kind(
        &mut self,
        usual_name: &str,
        fields: Map<String, Value>,
        prompt: Option<String>,
        source: &Source,
    ) -> Result<Definition, String> {
        let mut kind = Definition::new(usual_name, prompt.unwrap_or_default(), Some(source.clone()));
        for (key, value) in fields {
            if value.is_null() {
                continue;
            }
            if let Some(ignored) = kind.take(&key, &value)? {
                let what = format!("of the agent {usual_name}: {ignored}");
                self.found.push(Diagnostic::warning(source.clone(), what));
            }
        }
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
        if kind.name.is_empty() || kind.name.len() > 64 || !kind.name.chars().all(plain) {
            let name = kind.name.chars().take(64).collect::<String>();
            return Err(format!("\"{name}\" is no name: use up to 64 letters, digits, _ and -"));
        }
        if kind.description.is_empty() {
            return Err("it has no description, so no model would know when to use it".to_owned());
        }
        if kind.prompt.is_empty() {
            return Err("it has no prompt".to_owned());
        }
        Ok(kind)
    }
}

impl Definition {
    /// Takes one field in. What it means is an error where leaving it out would let the agent do more; where it
    /// would not, it is ignored, with the words for that.
    fn take(&mut self, key: &str, value: &Value) -> Result<Option<String>, String> {
        let plain: String = key.chars().filter(char::is_ascii_alphanumeric).collect();
        let text = || value.as_str().map(str::trim).ok_or_else(|| format!("{key} must be a text"));
        match plain.to_ascii_lowercase().as_str() {
            "name" => self.name = text()?.to_owned(),
            "description" => self.description = text()?.to_owned(),
            "prompt" if self.prompt.is_empty() => self.prompt = text()?.to_owned(),
            "tools" => return self.restrict(list(key, value)?),
            "disallowedtools" => {
                let rule = |text: &String| Rule::parse(text).map_err(|error| format!("{key}: {error}"));
                self.denied = list(key, value)?.iter().map(rule).collect::<Result<_, _>>()?;
            }
            "model" => self.model = text()?.into(),
            "permissionmode" => {
                let mode: Mode = text()?.parse().map_err(|error| format!("{key}: {error}"))?;
                if mode == Mode::BypassPermissions {
                    return Ok(Some("no agent gets bypassPermissions by its description".to_owned()));
                }
                self.mode = Some(mode);
            }
            "maxturns" => {
                let number = value.as_u64().filter(|number| *number > 0);
                let wrong = || format!("{key} must be a whole number above 0");
                self.max_turns =
                    Some(number.and_then(|number| u32::try_from(number).ok()).ok_or_else(wrong)?);
            }
            "background" => {
                self.background = value.as_bool().ok_or_else(|| format!("{key} must be true or false"))?;
            }
            // How a front end paints it.
            "color" => {}
            later if LATER.contains(&later) => return Ok(Some(format!("{key} is not supported yet"))),
            _ => return Ok(Some(format!("there is no field {key}"))),
        }
        Ok(None)
    }

    fn restrict(&mut self, names: Vec<String>) -> Result<Option<String>, String> {
        if names.iter().any(|name| name == "*") {
            return Ok(None);
        }
        let (partly, whole): (Vec<String>, Vec<String>) =
            names.into_iter().partition(|name| name.contains('('));
        self.tools = Some(whole);
        Ok(partly.first().map(|rule| {
            format!(
                "tools takes names, and {rule} is a rule: the tool is left out; disallowedTools takes rules"
            )
        }))
    }
}

/// A list, or a text with commas.
fn list(key: &str, value: &Value) -> Result<Vec<String>, String> {
    let wrong = || format!("{key} must be a list of names, or a text with commas between them");
    let items: Vec<String> = match value {
        Value::String(text) => split_outside_parentheses(text),
        Value::Array(items) => items
            .iter()
            .map(|item| item.as_str().map(str::to_owned))
            .collect::<Option<_>>()
            .ok_or_else(wrong)?,
        _ => return Err(wrong()),
    };
    Ok(items.iter().map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect())
}

fn split_outside_parentheses(text: &str) -> Vec<String> {
    let (mut items, mut depth) = (vec![String::new()], 0_u32);
    for character in text.chars() {
        match character {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                items.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(item) = items.last_mut() {
            item.push(character);
        }
    }
    items
}
