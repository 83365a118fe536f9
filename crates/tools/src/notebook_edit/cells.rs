//! One cell of a notebook replaced, inserted or deleted in the text of the file.

use std::{fmt::Write, ops::Range};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::json::{Layout, List, Object, decoded, span, spliced};
use super::source::{Source, escapes, render};

const BOM: &str = "\u{feff}";
/// The members of a cell in the order in which notebooks are written.
const ORDER: [&str; 6] = ["cell_type", "execution_count", "id", "metadata", "outputs", "source"];
/// So many cells are named when one is not found.
const NAMED: usize = 5;

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
    fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Markdown => "markdown",
            Self::Raw => "raw",
        }
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

/// Why a notebook was not edited.
#[derive(Debug, thiserror::Error)]
pub enum NotebookProblem {
    /// Some bytes are no characters.
    #[error("the notebook is not UTF-8 from byte {at} on: convert the file first")]
    NotUtf8 {
        /// Where the text ends.
        at: usize,
    },
    /// The text is not JSON, or not an object.
    #[error("the notebook is not a JSON object ({0}): repair the file first")]
    NotJson(serde_json::Error),
    /// A key is there twice.
    #[error("{place} has the key {key:?} twice, so what it says is unclear: repair the file first")]
    RepeatedKey {
        /// Which object.
        place: String,
        /// The key.
        key: String,
    },
    /// Another version of the format.
    #[error(
        "the notebook has nbformat {found}, and only 4 can be edited: convert it with `jupyter nbconvert`"
    )]
    Format {
        /// What it says.
        found: String,
    },
    /// Cells are missing, or one is no cell.
    #[error("{what}: this is not a notebook as Jupyter writes it, repair the file first")]
    NoCells {
        /// What is wrong.
        what: String,
    },
    /// A cell is to be changed and none is named.
    #[error("cell_id is missing: only insert works without it, name the cell to {0}")]
    NoTarget(&'static str),
    /// No cell has this id or index.
    #[error("no cell {asked:?} among the {count} of the notebook{hint}")]
    UnknownCell {
        /// What was asked for.
        asked: String,
        /// How many cells there are.
        count: usize,
        /// What could be meant.
        hint: String,
    },
    /// Several cells have this id.
    #[error("{count} cells have the id {asked:?}: name the cell by its index instead, such as cell-{first}")]
    RepeatedId {
        /// What was asked for.
        asked: String,
        /// How many have it.
        count: usize,
        /// The first of them.
        first: usize,
    },
    /// The cell is as asked for already.
    #[error("nothing to change: cell {0} has this source and type already")]
    Unchanged(String),
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
    let text =
        std::str::from_utf8(bytes).map_err(|error| NotebookProblem::NotUtf8 { at: error.valid_up_to() })?;
    let notebook = Notebook::parse(text.strip_prefix(BOM).unwrap_or(text))?;
    let target = cell.map(|asked| notebook.find(asked)).transpose()?;
    let (range, replacement, mut edited) = match (mode, target) {
        (Mode::Insert, after) => {
            notebook.insert(after.map_or(0, |at| at + 1), new_source, cell_type.unwrap_or(CellType::Code))
        }
        (Mode::Replace, Some(at)) => notebook.replace(at, new_source, cell_type)?,
        (Mode::Delete, Some(at)) => notebook.delete(at)?,
        (Mode::Replace, None) => return Err(NotebookProblem::NoTarget("replace")),
        (Mode::Delete, None) => return Err(NotebookProblem::NoTarget("delete")),
    };
    let bom = text.len() - notebook.text.len();
    edited.bytes = spliced(text, range.start + bom..range.end + bom, &replacement).into_bytes();
    Ok(edited)
}

/// What of the text to replace by what, and the report without the bytes.
type Change = (Range<usize>, String, Edited);

impl<'a> Notebook<'a> {
    fn parse(text: &'a str) -> Result<Self, NotebookProblem> {
        let top = Object::parse(text).map_err(NotebookProblem::NotJson)?;
        once("the notebook", &top)?;
        let number = |key| top.get(key).and_then(|raw| raw.parse::<u64>().ok());
        if number("nbformat") != Some(4) {
            let found = top.get("nbformat").unwrap_or("missing").chars().take(40).collect();
            return Err(NotebookProblem::Format { found });
        }
        let wrong = |what: String| NotebookProblem::NoCells { what };
        let raw = top.get("cells").ok_or_else(|| wrong("there is no key `cells`".to_owned()))?;
        let list = List::parse(raw).map_err(|_| wrong("`cells` is not an array".to_owned()))?;
        let mut cells = Vec::with_capacity(list.items().len());
        for (at, item) in list.items().enumerate() {
            let cell = Object::parse(item).map_err(|_| wrong(format!("cell {at} is not an object")))?;
            once(&format!("cell {at}"), &cell)?;
            cells.push(cell);
        }
        let has_ids = number("nbformat_minor").is_some_and(|minor| minor >= 5);
        Ok(Self { text, top, list, cells, has_ids })
    }

    fn find(&self, asked: &str) -> Result<usize, NotebookProblem> {
        let ids: Vec<Option<String>> = self.cells.iter().map(|cell| cell.get("id").map(decoded)).collect();
        let having: Vec<usize> = (0..ids.len()).filter(|at| ids[*at].as_deref() == Some(asked)).collect();
        match having[..] {
            [only] => return Ok(only),
            [first, ..] => {
                return Err(NotebookProblem::RepeatedId {
                    asked: asked.to_owned(),
                    count: having.len(),
                    first,
                });
            }
            [] => {}
        }
        let index = asked.strip_prefix("cell-").unwrap_or(asked).parse::<usize>().ok();
        if let Some(index) = index.filter(|index| *index < ids.len()) {
            return Ok(index);
        }
        let mut known: Vec<&String> = ids.iter().flatten().collect();
        known.sort_by(|one, other| {
            strsim::jaro(asked, other).total_cmp(&strsim::jaro(asked, one)).then_with(|| one.cmp(other))
        });
        let hint = match (ids.len(), &known[..known.len().min(NAMED)]) {
            (0, _) => ": insert one without cell_id".to_owned(),
            (count, []) => format!(": they have no ids, use cell-0 to cell-{}", count - 1),
            (count, near) => {
                let near: Vec<String> = near.iter().map(|id| format!("{id:?}")).collect();
                format!(": ids there are {}; an index from 0 to {} works too", near.join(", "), count - 1)
            }
        };
        Err(NotebookProblem::UnknownCell { asked: asked.to_owned(), count: ids.len(), hint })
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
        if before.as_deref() == Some(source) && new_type == old_type {
            return Err(NotebookProblem::Unchanged(self.name(at)));
        }
        let mut new = cell.text().to_owned();
        if before.as_deref() != Some(source) {
            new = with(&new, "source", &self.rendered(at, Some(cell), source));
        }
        if new_type != old_type {
            new = typed(&new, new_type);
        } else if new_type == CellType::Code {
            new = without_results(&new);
        }
        let edited = self.report(at, self.name(at), new_type, before, self.cells.len());
        Ok((span(self.text, cell.text()), new, edited))
    }

    fn insert(&self, at: usize, source: &str, cell_type: CellType) -> Change {
        let id = self.has_ids.then(|| self.fresh_id(at, source, cell_type));
        // The nearest cell of the same type, or of any, is the pattern for the look of the new one.
        let alike = |wanted: Option<CellType>| {
            self.nearest(at, |cell| wanted.is_none() || CellType::of(cell) == wanted)
        };
        let pattern = alike(Some(cell_type)).or_else(|| alike(None));
        let mut new = match pattern {
            Some(pattern) => {
                let foreign = pattern.keys().filter(|key| !ORDER.contains(key));
                foreign.fold(pattern.text().to_owned(), |text, key| without(&text, key))
            }
            None => {
                let layout = self.empty_layout().nested();
                let colon = if layout.between == "," { ":" } else { ": " };
                let members = [format!("\"cell_type\"{colon}\"\""), format!("\"source\"{colon}[]")];
                layout.render(['{', '}'], &members)
            }
        };
        new = match &id {
            Some(id) => with(&new, "id", &format!("\"{id}\"")),
            None => without(&new, "id"),
        };
        new = with(&new, "metadata", "{}");
        new = with(&new, "source", &self.rendered(at, None, source));
        new = typed(&new, cell_type);
        let layout = match self.cells.is_empty() {
            true => self.empty_layout(),
            false => self.list.layout(&self.top.list().layout(", ").between),
        };
        let (range, replacement) = self.list.insertion(at, &new, &layout);
        let start = span(self.text, self.list.text()).start;
        let name = id.unwrap_or_else(|| format!("cell-{at}"));
        let edited = self.report(at, name, cell_type, None, self.cells.len() + 1);
        (range.start + start..range.end + start, replacement, edited)
    }

    fn delete(&self, at: usize) -> Result<Change, NotebookProblem> {
        let before = Source::of(&self.cells[at]).map(|source| source.text());
        let range = self.list.removal(at);
        let start = span(self.text, self.list.text()).start;
        let edited = self.report(at, self.name(at), self.type_of(at)?, before, self.cells.len() - 1);
        Ok((range.start + start..range.end + start, String::new(), edited))
    }

    fn report(
        &self,
        index: usize,
        cell_id: String,
        cell_type: CellType,
        before_source: Option<String>,
        cells: usize,
    ) -> Edited {
        Edited {
            bytes: Vec::new(),
            cell_id,
            index,
            cell_type,
            language: self.language(),
            before_source,
            cells,
        }
    }

    fn name(&self, at: usize) -> String {
        self.cells[at].get("id").map_or_else(|| format!("cell-{at}"), decoded)
    }

    fn type_of(&self, at: usize) -> Result<CellType, NotebookProblem> {
        CellType::of(&self.cells[at]).ok_or_else(|| NotebookProblem::NoCells {
            what: format!("the cell_type of cell {at} is none of code, markdown, raw"),
        })
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
        let taken: Vec<String> = self.cells.iter().filter_map(|cell| cell.get("id").map(decoded)).collect();
        let mut attempt = 0_u64;
        loop {
            let text = format!("{at} {} {attempt} {source}", cell_type.name());
            let digest = Sha256::digest(text.as_bytes());
            let id = digest[..4].iter().fold(String::new(), |mut id, byte| {
                // Writing to a string cannot fail.
                let _ = write!(id, "{byte:02x}");
                id
            });
            if !taken.contains(&id) {
                return id;
            }
            attempt += 1;
        }
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

fn once(place: &str, object: &Object<'_>) -> Result<(), NotebookProblem> {
    object.repeated().map_or(Ok(()), |key| {
        Err(NotebookProblem::RepeatedKey { place: place.to_owned(), key: key.to_owned() })
    })
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
    let cell = with(cell, "cell_type", &format!("\"{}\"", cell_type.name()));
    if cell_type == CellType::Code {
        let cell = with(&without(&cell, "attachments"), "execution_count", "null");
        return with(&cell, "outputs", "[]");
    }
    without(&without(&cell, "execution_count"), "outputs")
}

/// The text of a code cell without the results of the source it had.
fn without_results(cell: &str) -> String {
    let Ok(object) = Object::parse(cell) else { return cell.to_owned() };
    let is_empty = |raw: &str| List::parse(raw).is_ok_and(|list| list.items().len() == 0);
    let stale = object.get("outputs").is_some_and(|raw| !is_empty(raw));
    let cell = if stale { object.with("outputs", "[]", &ORDER) } else { cell.to_owned() };
    if object.get("execution_count").is_some() { with(&cell, "execution_count", "null") } else { cell }
}
