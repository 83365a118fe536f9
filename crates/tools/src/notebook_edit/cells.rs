//! One cell of a notebook replaced, inserted or deleted in the text of the file.

use std::ops::Range;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::json::{BLANK, Layout, List, Object, decoded, span, spliced};
use super::source::{Source, escapes, render};

const BOM: &str = "\u{feff}";
/// The members of a cell in the order in which notebooks are written.
const ORDER: [&str; 6] = ["cell_type", "execution_count", "id", "metadata", "outputs", "source"];
/// So many cells are named when one is not found.
const NAMED: usize = 5;
/// The longest id the format allows.
const LONGEST_ID: usize = 64;

/// What a cell holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CellType {
    /// Code that is run.
    Code,
    /// Text in Markdown.
    Markdown,
    /// Text that is left as it is.
    Raw,
}

impl CellType {
    fn quoted(self) -> String {
        serde_json::json!(self).to_string()
    }

    fn of(cell: &Object<'_>) -> Option<Self> {
        serde_json::from_str(cell.get("cell_type")?).ok()
    }
}

/// What is done to the notebook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// The cell gets another source.
    #[default]
    Replace,
    /// A new cell comes after the cell, or first if none is named.
    Insert,
    /// The cell goes.
    Delete,
}

/// A notebook after an edit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The new content of the file.
    pub bytes: Vec<u8>,
    /// The id of the cell in question, or `cell-N` if it has none.
    pub cell_id: String,
    /// Where the cell is, or was before it was deleted, counted from 0.
    pub index: usize,
    /// What it holds now, or held.
    pub cell_type: CellType,
    /// The language of the notebook's code.
    pub language: String,
    /// The source before; none for a new cell.
    pub before_source: Option<String>,
    /// How many cells there are now.
    pub cells: usize,
}

/// Why a notebook was not edited, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct NotebookProblem(String);

fn problem<T>(message: impl Into<String>) -> Result<T, NotebookProblem> {
    Err(NotebookProblem(message.into()))
}

fn broken<T>(what: &str) -> Result<T, NotebookProblem> {
    problem(format!("{what}: this is no notebook as Jupyter writes it, repair the file first"))
}

struct Notebook<'a> {
    text: &'a str,
    top: Object<'a>,
    list: List<'a>,
    cells: Vec<Object<'a>>,
    /// Whether this version of the format gives ids to cells.
    has_ids: bool,
}

/// Edits one cell; every byte that need not change stays as it is.
///
/// `cell` is an id or an index from 0, also as `cell-N`; an id wins. The source is ignored by a deletion.
pub fn edit(
    bytes: &[u8],
    cell: Option<&str>,
    new_source: &str,
    cell_type: Option<CellType>,
    mode: Mode,
) -> Result<Edited, NotebookProblem> {
    let text = std::str::from_utf8(bytes).or_else(|error| {
        problem(format!(
            "the notebook is not UTF-8 from byte {} on: convert the file first",
            error.valid_up_to()
        ))
    })?;
    let notebook = Notebook::parse(text.strip_prefix(BOM).unwrap_or(text))?;
    let target = cell.map(|asked| notebook.find(asked)).transpose()?;
    let count = notebook.cells.len();
    let (index, cells) = match (mode, target) {
        (Mode::Insert, after) => (after.map_or(0, |at| at + 1), count + 1),
        (Mode::Replace, Some(at)) => (at, count),
        (Mode::Delete, Some(at)) => (at, count - 1),
        (_, None) => return problem("cell_id is missing: name the cell, only insert works without one"),
    };
    let change = match mode {
        Mode::Insert => notebook.insert(index, new_source, cell_type.unwrap_or(CellType::Code)),
        Mode::Replace => notebook.replace(index, new_source, cell_type)?,
        Mode::Delete => notebook.delete(index)?,
    };
    let bom = text.len() - notebook.text.len();
    let range = change.range.start + bom..change.range.end + bom;
    Ok(Edited {
        bytes: spliced(text, range, &change.text).into_bytes(),
        cell_id: change.cell_id,
        index,
        cell_type: change.cell_type,
        language: notebook.language(),
        before_source: change.before_source,
        cells,
    })
}

/// What of the text to replace by what, and what to tell about it.
struct Change {
    range: Range<usize>,
    text: String,
    cell_id: String,
    cell_type: CellType,
    before_source: Option<String>,
}

impl<'a> Notebook<'a> {
    fn parse(text: &'a str) -> Result<Self, NotebookProblem> {
        let top = Object::parse(text).or_else(|error| {
            problem(format!("the notebook is not a JSON object ({error}): repair the file first"))
        })?;
        let check = |place: &str, object: &Object<'_>| match object.repeated() {
            Some(key) => broken(&format!("{place} has the key {:?} twice", cut(key))),
            None => Ok(()),
        };
        check("the notebook", &top)?;
        let number = |key| top.get(key).and_then(|raw| raw.parse::<u64>().ok());
        if number("nbformat") != Some(4) {
            let found = cut(top.get("nbformat").unwrap_or("missing"));
            return problem(format!(
                "the notebook has nbformat {found}, and only 4 can be edited: convert it with `jupyter nbconvert`"
            ));
        }
        let Some(raw) = top.get("cells") else { return broken("there is no key `cells`") };
        let Ok(list) = List::parse(raw) else { return broken("`cells` is not an array") };
        let mut cells = Vec::with_capacity(list.items().len());
        for (at, item) in list.items().enumerate() {
            let Ok(cell) = Object::parse(item) else { return broken(&format!("cell {at} is not an object")) };
            check(&format!("cell {at}"), &cell)?;
            cells.push(cell);
        }
        let has_ids = number("nbformat_minor").is_some_and(|minor| minor >= 5);
        Ok(Self { text, top, list, cells, has_ids })
    }

    fn ids(&self) -> impl Iterator<Item = Option<String>> {
        self.cells.iter().map(|cell| cell.get("id").map(decoded))
    }

    fn find(&self, asked: &str) -> Result<usize, NotebookProblem> {
        let mut having =
            self.ids().enumerate().filter(|(_, id)| id.as_deref() == Some(asked)).map(|(at, _)| at);
        match (having.next(), having.next()) {
            (Some(first), Some(_)) => {
                return problem(format!(
                    "several cells have the id {asked:?}: name the cell by its index, such as cell-{first}"
                ));
            }
            (Some(only), None) => return Ok(only),
            _ => {}
        }
        let count = self.cells.len();
        let index = asked.strip_prefix("cell-").unwrap_or(asked).parse::<usize>().ok();
        if let Some(index) = index.filter(|index| *index < count) {
            return Ok(index);
        }
        let asked = cut(asked);
        // Longer ones are not valid, and comparing them would take long.
        let mut known: Vec<String> = self.ids().flatten().filter(|id| id.len() <= LONGEST_ID).collect();
        known.sort_by_cached_key(|id| (strsim::damerau_levenshtein(asked, id), id.clone()));
        known.truncate(NAMED);
        let hint = match (count, known.is_empty()) {
            (0, _) => "insert one without cell_id".to_owned(),
            (_, true) => format!("use an index from cell-0 to cell-{}", count - 1),
            (_, false) => {
                format!("ids there are {}; an index from 0 to {} works too", known.join(", "), count - 1)
            }
        };
        problem(format!("no cell {asked:?} among the {count} of the notebook: {hint}"))
    }

    fn replace(
        &self,
        at: usize,
        source: &str,
        cell_type: Option<CellType>,
    ) -> Result<Change, NotebookProblem> {
        let cell = &self.cells[at];
        let old_type = self.type_of(at)?;
        let new_type = cell_type.unwrap_or(old_type);
        let before = Source::of(cell).map(|source| source.text());
        let cell_id = self.name(at);
        let mut text = cell.text().to_owned();
        if before.as_deref() != Some(source) {
            text = with(&text, "source", &self.rendered(at, Some(cell), source));
        } else if new_type == old_type {
            return problem(format!("nothing to change: cell {cell_id} has this source and type already"));
        }
        if new_type != old_type {
            text = typed(&text, new_type);
        } else if new_type == CellType::Code {
            text = without_results(&text);
        }
        let range = span(self.text, cell.text());
        Ok(Change { range, text, cell_id, cell_type: new_type, before_source: before })
    }

    fn insert(&self, at: usize, source: &str, cell_type: CellType) -> Change {
        // The nearest cell of the same type, or of any, is the pattern for the look of the new one.
        let alike = self.nearest(at, |cell| CellType::of(cell) == Some(cell_type));
        let mut new = match alike.or_else(|| self.nearest(at, |_| true)) {
            Some(pattern) => {
                let foreign = pattern.keys().filter(|key| !ORDER.contains(key));
                foreign.fold(pattern.text().to_owned(), |text, key| without(&text, key))
            }
            None => {
                let layout = self.empty_layout().nested();
                let colon = if layout.between == "," { ":" } else { ": " };
                layout.render(['{', '}'], &[format!("\"cell_type\"{colon}0"), format!("\"source\"{colon}0")])
            }
        };
        let id = self.has_ids.then(|| self.fresh_id(at, source, cell_type));
        new = match &id {
            Some(id) => with(&new, "id", &format!("\"{id}\"")),
            None => without(&new, "id"),
        };
        new = with(&new, "metadata", "{}");
        new = with(&new, "source", &self.rendered(at, None, source));
        let layout = match self.cells.is_empty() {
            true => self.empty_layout(),
            false => self.list.layout(&self.top.list().layout(", ").between),
        };
        let (range, text) = self.list.insertion(at, &typed(&new, cell_type), &layout);
        let cell_id = id.unwrap_or_else(|| format!("cell-{at}"));
        Change { range: self.in_cells(range), text, cell_id, cell_type, before_source: None }
    }

    fn delete(&self, at: usize) -> Result<Change, NotebookProblem> {
        Ok(Change {
            range: self.in_cells(self.list.removal(at)),
            text: String::new(),
            cell_id: self.name(at),
            cell_type: self.type_of(at)?,
            before_source: Source::of(&self.cells[at]).map(|source| source.text()),
        })
    }

    /// A range of the array of cells as one of the whole text.
    fn in_cells(&self, range: Range<usize>) -> Range<usize> {
        let start = span(self.text, self.list.text()).start;
        range.start + start..range.end + start
    }

    fn name(&self, at: usize) -> String {
        self.cells[at].get("id").map_or_else(|| format!("cell-{at}"), decoded)
    }

    fn type_of(&self, at: usize) -> Result<CellType, NotebookProblem> {
        CellType::of(&self.cells[at])
            .map_or_else(|| broken(&format!("the cell_type of cell {at} is none of code, markdown, raw")), Ok)
    }

    /// The cell nearest to a place of which something holds; of two, the one before.
    fn nearest(&self, at: usize, holds: impl Fn(&Object<'a>) -> bool) -> Option<&Object<'a>> {
        let fitting = self.cells.iter().enumerate().filter(|(_, cell)| holds(cell));
        fitting.min_by_key(|(place, _)| (2 * at + 1).abs_diff(2 * place + 2)).map(|(_, cell)| cell)
    }

    fn language(&self) -> String {
        let metadata = self.top.get("metadata").and_then(|raw| Object::parse(raw).ok());
        let named = |group: &str, key: &str| {
            let group = Object::parse(metadata.as_ref()?.get(group)?).ok()?;
            serde_json::from_str(group.get(key)?).ok()
        };
        named("language_info", "name")
            .or_else(|| named("kernelspec", "language"))
            .unwrap_or_else(|| "python".to_owned())
    }

    /// How cells would be laid out in a notebook that has none.
    fn empty_layout(&self) -> Layout {
        self.top.list().layout(", ").nested()
    }

    /// A new id, the same for the same edit of the same notebook.
    fn fresh_id(&self, at: usize, source: &str, cell_type: CellType) -> String {
        let taken: Vec<String> = self.ids().flatten().collect();
        let ids = (0_u64..).map(|attempt| {
            let text = format!("{at} {} {attempt} {source}", cell_type.quoted());
            let digest = Sha256::digest(text.as_bytes());
            format!("{:08x}", u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]))
        });
        ids.filter(|id| !taken.contains(id)).take(1).collect()
    }

    /// A source for the cell at a place, in the form of `own`, the cell it had so far, or of the nearest
    /// that shows one.
    fn rendered(&self, at: usize, own: Option<&Object<'a>>, source: &str) -> String {
        let own = own.and_then(Source::of);
        let near = |holds: fn(&Source<'_>) -> bool| {
            self.nearest(at, |cell| Source::of(cell).as_ref().is_some_and(holds)).and_then(Source::of)
        };
        let form = match &own {
            Some(own) => own.list.is_some(),
            None => near(|source| !source.is_empty()).is_none_or(|source| source.list.is_some()),
        };
        let layout = form.then(|| {
            let members = match self.cells.get(at).or(self.cells.last()) {
                Some(cell) => cell.list().layout(", "),
                None => self.empty_layout().nested(),
            };
            let separator = if members.between.contains('\n') { ", " } else { &members.between };
            let own = own.as_ref().filter(|own| !own.is_empty()).and_then(|own| own.list.as_ref());
            match own {
                Some(list) => list.layout(separator),
                None => near(|source| source.list.is_some() && !source.is_empty())
                    .and_then(|source| source.list)
                    .map_or_else(|| members.nested(), |list| list.layout(separator)),
            }
        });
        let ascii =
            own.as_ref().and_then(|own| escapes(own.raw)).or_else(|| escapes(self.text)) == Some(true);
        let old = own.as_ref().map(Source::lines).unwrap_or_default();
        render(source, &old, layout.as_ref(), ascii)
    }
}

/// A name short enough for a message.
fn cut(name: &str) -> &str {
    &name[..name.floor_char_boundary(LONGEST_ID)]
}

/// The text of a cell with a member set. Texts made here always parse, and one that did not would stay.
fn with(cell: &str, key: &str, value: &str) -> String {
    Object::parse(cell).map_or_else(|_| cell.to_owned(), |object| object.with(key, value, &ORDER))
}

fn without(cell: &str, key: &str) -> String {
    Object::parse(cell).map_or_else(|_| cell.to_owned(), |object| object.without(key))
}

/// The text of a cell with the members that its type demands, and without those it forbids.
fn typed(cell: &str, cell_type: CellType) -> String {
    let cell = with(cell, "cell_type", &cell_type.quoted());
    if cell_type == CellType::Code {
        let cell = with(&without(&cell, "attachments"), "execution_count", "null");
        return with(&cell, "outputs", "[]");
    }
    without(&without(&cell, "execution_count"), "outputs")
}

/// The text of a code cell without the results of the source it had.
fn without_results(cell: &str) -> String {
    [("outputs", "[]"), ("execution_count", "null")].into_iter().fold(cell.to_owned(), |cell, (key, none)| {
        let old = Object::parse(&cell).ok().and_then(|object| object.get(key));
        let stale = old.is_some_and(|old| old.replace(BLANK, "") != none);
        if stale { with(&cell, key, none) } else { cell }
    })
}
