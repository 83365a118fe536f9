//! Notebooks: cells with their ids, sources and outputs.

use std::borrow::Cow;

use base64::{Engine, engine::general_purpose::STANDARD};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::{
    Found, Parsed, Refusal, Why, image,
    pieces::{Pieces, shortened},
};

/// Characters of one output.
const LONGEST_OUTPUT: usize = 10_000;
/// Characters kept free for the note that says what is missing.
const NOTE: usize = 200;
/// How to see what is not shown.
const RAW: &str = "`offset` and `limit` show its raw text, and Grep finds places in it";

#[derive(Deserialize)]
struct Notebook {
    #[serde(default)]
    metadata: Map<String, Value>,
    cells: Vec<Cell>,
}

#[derive(Deserialize)]
struct Cell {
    id: Option<String>,
    cell_type: String,
    #[serde(default)]
    source: Lines,
    execution_count: Option<u64>,
    #[serde(default)]
    outputs: Vec<Output>,
}

/// Text, which notebooks write as one string or as a list of lines.
#[derive(Default, Deserialize)]
#[serde(untagged)]
enum Lines {
    #[default]
    None,
    One(String),
    Many(Vec<String>),
}

impl Lines {
    fn text(&self) -> Cow<'_, str> {
        match self {
            Lines::None => "".into(),
            Lines::One(text) => text.into(),
            Lines::Many(lines) => lines.concat().into(),
        }
    }
}

#[derive(Deserialize)]
#[serde(tag = "output_type", rename_all = "snake_case")]
enum Output {
    Stream {
        name: Option<String>,
        text: Lines,
    },
    Error {
        #[serde(default)]
        ename: String,
        #[serde(default)]
        evalue: String,
        #[serde(default)]
        traceback: Vec<String>,
    },
    #[serde(alias = "execute_result")]
    DisplayData {
        data: Map<String, Value>,
    },
    #[serde(other)]
    Unknown,
}

pub(super) fn parse(bytes: &[u8]) -> Result<Parsed, Refusal> {
    let damaged = |what: &str| Refusal::new(Why::Damaged, format!("{what}; {RAW}"));
    // Some editors put a byte order mark at the start of a file.
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    let whole: Value = serde_json::from_slice(bytes)
        .map_err(|error| damaged(&format!("it is not proper JSON ({error})")))?;
    // Older formats keep their cells elsewhere, so the number is looked at before the form.
    match whole.get("nbformat").and_then(Value::as_u64) {
        Some(4) => {}
        Some(other) => {
            let words = format!("its format is nbformat {other}, and only 4 is known; convert it, or {RAW}");
            return Err(Refusal::new(Why::Unsupported, words));
        }
        None => return Err(damaged("it is JSON, but it has no `nbformat`, so it is not a notebook")),
    }
    let notebook: Notebook = serde_json::from_value(whole)
        .map_err(|error| damaged(&format!("it is JSON, but not in the form of a notebook ({error})")))?;
    let language = ["language_info", "kernelspec"]
        .iter()
        .zip(["name", "language"])
        .find_map(|(part, key)| Some(notebook.metadata.get(*part)?.get(key)?.as_str()?.to_owned()));
    let (mut pieces, total_cells) = (Pieces::default(), notebook.cells.len());
    let mut num_cells = 0;
    for (number, cell) in notebook.cells.iter().enumerate() {
        if !show(&mut pieces, number, cell) {
            break;
        }
        num_cells += 1;
    }
    if num_cells < total_cells {
        let (from, to) = (num_cells, total_cells - 1);
        pieces.text(&format!("(cells {from} to {to} did not fit: {RAW})"));
    } else if total_cells == 0 {
        pieces.text("(the notebook has no cells)");
    }
    Ok(Parsed { found: Found::Notebook { language, num_cells, total_cells }, pieces: pieces.done() })
}

/// Adds a cell; false if there is no room for it.
fn show(pieces: &mut Pieces, number: usize, cell: &Cell) -> bool {
    let mut heading = format!("[cell {number}");
    if let Some(id) = &cell.id {
        heading.push_str(&format!(", id {id}"));
    }
    heading.push_str(&format!(", {}", cell.cell_type));
    if let Some(count) = cell.execution_count {
        heading.push_str(&format!(", run {count}"));
    }
    heading.push(']');
    let source = cell.source.text();
    let outputs: Vec<(String, Option<Value>)> = cell.outputs.iter().map(Output::shown).collect();
    let chars = outputs.iter().map(|(text, _)| text.chars().count() + 1).sum::<usize>();
    let size = heading.chars().count() + source.chars().count() + chars + NOTE;
    // A first cell that is too long by itself is better cut than left out.
    if number > 0 && !pieces.has_room(size) {
        return false;
    }
    pieces.text(&heading);
    pieces.text(source.trim_end_matches('\n'));
    for (text, picture) in outputs {
        if !text.is_empty() {
            pieces.text(&text);
        }
        if let Some(note) = picture.and_then(|data| add_picture(pieces, &data).err()) {
            pieces.text(&format!("[image left out: {note}]"));
        }
    }
    pieces.text("");
    true
}

fn add_picture(pieces: &mut Pieces, data: &Value) -> Result<(), String> {
    let lines = Lines::deserialize(data).map_err(|error| error.to_string())?;
    let packed: String = lines.text().split_whitespace().collect();
    let bytes = STANDARD.decode(packed).map_err(|error| format!("it is not base64 ({error})"))?;
    let (picture, _) = image::fitted(&bytes).map_err(|refusal| refusal.words)?;
    if pieces.picture(picture) { Ok(()) } else { Err("the pictures before it filled the result".to_owned()) }
}

impl Output {
    /// The text of an output and, where it has one, its picture.
    fn shown(&self) -> (String, Option<Value>) {
        let (name, text) = match self {
            Output::Stream { name, text } => (name.as_deref().unwrap_or("stdout"), text.text()),
            Output::Error { ename, evalue, traceback } => {
                let traced =
                    if traceback.is_empty() { format!("{ename}: {evalue}") } else { traceback.join("\n") };
                ("error", traced.into())
            }
            Output::DisplayData { data } => {
                let picture = ["image/png", "image/jpeg"].iter().find_map(|kind| data.get(*kind));
                let text = data.get("text/plain").and_then(|text| Lines::deserialize(text).ok());
                let text = match (text, picture) {
                    (Some(text), _) => text.text().into_owned(),
                    (None, Some(_)) => return (String::new(), picture.cloned()),
                    (None, None) => format!("({})", data.keys().cloned().collect::<Vec<_>>().join(", ")),
                };
                return (labelled("result", &text), picture.cloned());
            }
            Output::Unknown => ("output", "(of a kind that is not known)".into()),
        };
        (labelled(name, &text), None)
    }
}

fn labelled(name: &str, text: &str) -> String {
    let text = without_colours(text);
    format!("[{name}]\n{}", shortened(text.trim_end_matches('\n'), LONGEST_OUTPUT))
}

/// Without the escape sequences that colour tracebacks.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end =
            part.find(|character: char| ('@'..='~').contains(&character)).map_or(part.len(), |at| at + 1);
        plain.push_str(&part[end..]);
    }
    plain
}
