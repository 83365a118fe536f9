//! The source of a cell, which is one string or an array of lines, in the form the notebook gives it.

use std::{collections::HashMap, fmt::Write};

use super::json::{Layout, List, Object, decoded};

/// A source as it is written.
pub(super) struct Source<'a> {
    pub(super) raw: &'a str,
    /// The lines, when it is an array.
    pub(super) list: Option<List<'a>>,
}

impl<'a> Source<'a> {
    pub(super) fn of(cell: &Object<'a>) -> Option<Self> {
        let raw = cell.get("source")?;
        Some(Self { raw, list: List::parse(raw).ok() })
    }

    /// Whether there is so little of it that it shows no form.
    pub(super) fn is_empty(&self) -> bool {
        self.raw == "\"\"" || self.list.as_ref().is_some_and(|list| list.items().len() == 0)
    }

    /// Each line, and how it is written between its quotes.
    pub(super) fn lines(&self) -> Vec<(String, &'a str)> {
        let inside =
            |raw: &'a str| raw.strip_prefix('"').and_then(|raw| raw.strip_suffix('"')).unwrap_or(raw);
        match &self.list {
            Some(list) => list.items().map(|item| (decoded(item), inside(item))).collect(),
            None => split(inside(self.raw)).map(|line| (decoded(&format!("\"{line}\"")), line)).collect(),
        }
    }

    pub(super) fn text(&self) -> String {
        match &self.list {
            Some(list) => list.items().map(decoded).collect(),
            None => decoded(self.raw),
        }
    }
}

/// The inside of a JSON string in pieces that end with a written line feed.
fn split(mut inside: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        let (mut at, mut cut) = (0, inside.len());
        while let Some(escape) = memchr::memchr(b'\\', &inside.as_bytes()[at..]) {
            at += escape + 2;
            if inside.as_bytes()[at - 1] == b'n' {
                cut = at;
                break;
            }
        }
        let (line, rest) = inside.split_at(cut);
        inside = rest;
        (!line.is_empty()).then_some(line)
    })
}

/// Whether characters beyond ASCII are written as escapes, as far as a piece of JSON shows it.
pub(super) fn escapes(json: &str) -> Option<bool> {
    let bytes = json.as_bytes();
    let raw = bytes.iter().position(|byte| !byte.is_ascii());
    let mut at = 0;
    while let Some(escape) = memchr::memchr(b'\\', &bytes[at..raw.unwrap_or(bytes.len())]) {
        at += escape;
        let code = json.get(at + 2..at + 6).filter(|_| bytes.get(at + 1) == Some(&b'u'));
        if code.and_then(|code| u32::from_str_radix(code, 16).ok()).is_some_and(|code| code >= 0x80) {
            return Some(true);
        }
        // The character after a backslash begins nothing of its own.
        at = (at + 2).min(raw.unwrap_or(bytes.len()));
    }
    raw.map(|_| false)
}

/// A source as JSON: an array of lines if it has a layout, else one string. Lines that were there before
/// keep the very escapes they were written with.
pub(super) fn render(source: &str, old: &[(String, &str)], layout: Option<&Layout>, ascii: bool) -> String {
    let old: HashMap<&str, &str> = old.iter().map(|(text, raw)| (text.as_str(), *raw)).collect();
    let lines = source.split_inclusive('\n').map(|line| match old.get(line) {
        Some(raw) => (*raw).to_owned(),
        None => escaped(line, ascii),
    });
    match layout {
        Some(layout) => {
            let quoted: Vec<String> = lines.map(|line| format!("\"{line}\"")).collect();
            layout.render(['[', ']'], &quoted)
        }
        None => format!("\"{}\"", lines.collect::<String>()),
    }
}

fn escaped(line: &str, ascii: bool) -> String {
    let quoted = serde_json::Value::from(line).to_string();
    let inside = &quoted[1..quoted.len() - 1];
    if !ascii {
        return inside.to_owned();
    }
    inside.chars().fold(String::with_capacity(inside.len()), |mut out, character| {
        if character.is_ascii() {
            out.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
        out
    })
}
