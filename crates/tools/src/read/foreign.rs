//! Files that are not text: pictures, PDF documents and notebooks. A worker parses them.

use std::{
    io::Read,
    path::{Path, PathBuf},
};

use gripper_runtime::{
    Block, ErrorCode, Located, ToolError,
    files::{
        Stamp,
        ledger::{Content, Evidence, Seen},
        open_regular,
    },
    tool::{Done, SessionEffect},
};
use memchr::memmem;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::{Input, explain, failure::ReadFailure};
use crate::text::sniff::{SAMPLE, sniff};
use crate::worker::{Found, PageRange, Piece, Request, WorkerCommand};

/// Bytes of a file that are handed to a worker.
const MOST_BYTES: u64 = 32 * 1024 * 1024;
const MOST_PDF_BYTES: u64 = 64 * 1024 * 1024;
/// How far into a file the head of a PDF may stand.
const PDF_REACH: usize = 1024;

/// Names that promise something else than text. What the content is decides.
const NAMES: &[(&str, Request)] = &[
    ("gif", Request::Image),
    ("ipynb", Request::Notebook),
    ("jpeg", Request::Image),
    ("jpg", Request::Image),
    ("pdf", Request::Pdf { pages: None }),
    ("png", Request::Image),
    ("webp", Request::Image),
];

/// What a worker made of a file that is not text.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Foreign {
    /// What it is, and its counts.
    #[serde(flatten)]
    pub found: Found,
    /// The file, absolute.
    pub file_path: PathBuf,
    /// Its text.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub content: String,
    /// How many pictures the result has.
    pub num_images: usize,
    /// The path was relative, and this is what it was taken for.
    pub relative: bool,
    #[serde(skip)]
    blocks: Vec<Block>,
}

impl Foreign {
    /// The result as the model reads it.
    pub(super) fn blocks(&self) -> Vec<Block> {
        let mut blocks = self.blocks.clone();
        if let Found::Image { width, height, original_width, original_height, .. } = self.found
            && (width, height) != (original_width, original_height)
        {
            blocks.push(Block::text(format!(
                "(scaled to {width}×{height} from {original_width}×{original_height})"
            )));
        }
        if self.relative {
            blocks
                .push(Block::text(format!("(the relative path was taken as {})", self.file_path.display())));
        }
        blocks
    }
}

fn by_name(path: &Path) -> Option<Request> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    NAMES.iter().find(|(name, _)| *name == extension).map(|(_, request)| *request)
}

fn by_content(head: &[u8], name: Option<Request>) -> Option<Request> {
    // A notebook is text, and nothing in its first bytes tells it from other JSON.
    if name == Some(Request::Notebook) {
        return name;
    }
    let early = &head[..head.len().min(PDF_REACH)];
    match infer::get(head).map(|kind| kind.mime_type()) {
        Some("image/png" | "image/jpeg" | "image/gif" | "image/webp") => Some(Request::Image),
        Some("application/pdf") => Some(Request::Pdf { pages: None }),
        // Only a name makes it worth looking further: text may speak of PDF.
        _ if memmem::find(early, b"%PDF-").is_some() => {
            name.filter(|name| matches!(name, Request::Pdf { .. }))
        }
        _ => None,
    }
}

/// Whether a call is about a file that a worker has to parse. Who names lines wants text.
pub(super) fn is_expected(input: &Input, path: &Path) -> bool {
    let lines = input.offset.is_some() || input.limit.is_some();
    input.pages.is_some() || (!lines && by_name(path).is_some())
}

/// Reads `3`, `1-5` or `7-`.
pub(super) fn page_range(text: &str) -> Option<PageRange> {
    let number = |text: &str| text.trim().parse().ok().filter(|number| *number > 0);
    let (first, last) = match text.split_once('-') {
        None => (number(text)?, Some(number(text)?)),
        Some((first, rest)) if rest.trim().is_empty() => (number(first)?, None),
        Some((first, last)) => (number(first)?, Some(number(last)?)),
    };
    last.is_none_or(|last| last >= first).then_some(PageRange { first, last })
}

/// A file that may be for a worker.
pub(super) struct Loaded {
    name: Option<Request>,
    content: Result<Request, String>,
    /// Its bytes; only the first if it is for no worker or too large.
    bytes: Vec<u8>,
    size: u64,
    seen: Box<Seen>,
}

/// Looks at a file, and takes it into memory if it is for a worker.
pub(super) fn load(path: &Located) -> Result<Loaded, ReadFailure> {
    let failed = |error| ReadFailure::io(&path.written, error);
    let (mut file, status) = open_regular(path)?;
    let size = u64::try_from(status.st_size).unwrap_or(0);
    let mut bytes = Vec::new();
    file.by_ref().take(SAMPLE as u64 + 1).read_to_end(&mut bytes).map_err(failed)?;
    let name = by_name(&path.written);
    let content = by_content(&bytes, name).ok_or_else(|| match sniff(&bytes) {
        _ if bytes.is_empty() => "nothing".to_owned(),
        Ok(_) => "text".to_owned(),
        Err(kind) => kind,
    });
    if let Ok(request) = content {
        file.take(most(request) + 1 - bytes.len() as u64).read_to_end(&mut bytes).map_err(failed)?;
    }
    // The lines of a file that was parsed were not shown.
    let seen = Seen {
        path: path.real.clone(),
        stamp: Stamp::of(&status),
        content: Content::of(&bytes),
        lines: None,
        evidence: Evidence::Parsed,
    };
    Ok(Loaded { name, content, size: size.max(bytes.len() as u64), bytes, seen: Box::new(seen) })
}

fn most(request: Request) -> u64 {
    if matches!(request, Request::Pdf { .. }) { MOST_PDF_BYTES } else { MOST_BYTES }
}

impl Loaded {
    pub(super) async fn parse(
        self,
        input: &Input,
        path: PathBuf,
        worker: Option<&WorkerCommand>,
        cancel: &CancellationToken,
    ) -> Result<Done<Foreign>, ToolError> {
        let failed = |code, words: String| Err(ToolError::new(code, words).with(json!({ "path": path })));
        let shown = path.display();
        let mut request = match (&self.content, self.name) {
            (Ok(request), _) => *request,
            (Err(kind), Some(name)) => {
                let words = format!(
                    "{shown} is no {}, whatever its name says: its content is {kind}; give `offset` to read text, or \
                     use another program",
                    name.noun()
                );
                return failed(ErrorCode::Unsupported, words);
            }
            (Err(kind), None) if kind != "text" => {
                return Err(explain(&path, ReadFailure::Binary { path: path.clone(), kind: kind.clone() }));
            }
            (Err(kind), None) => return failed(ErrorCode::InvalidInput, only_for_pdf(&path, kind)),
        };
        match (&mut request, input.pages.as_deref().map(page_range)) {
            (_, None) => {}
            (Request::Pdf { pages }, Some(range)) => *pages = range,
            (other, Some(_)) => return failed(ErrorCode::InvalidInput, only_for_pdf(&path, other.noun())),
        }
        let noun = request.noun();
        if self.size > most(request) {
            let (size, most) = (self.size >> 20, most(request) >> 20);
            let words = format!(
                "the {noun} {shown} could not be read: it has {size} MiB, more than the {most} that are parsed"
            );
            return failed(ErrorCode::TooLarge, words);
        }
        let Some(worker) = worker else {
            let words = format!(
                "the {noun} {shown} could not be read: this program was set up without a worker that parses such files"
            );
            return failed(ErrorCode::Unsupported, words);
        };
        let parsed = match worker.parse(request, &self.bytes, cancel).await {
            Ok(parsed) => parsed,
            Err(error) => {
                return failed(
                    error.code,
                    format!("the {noun} {shown} could not be read: {}", error.message),
                );
            }
        };
        let texts = parsed.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(text) => Some(text.as_str()),
            Piece::Image(_) => None,
        });
        let texts: Vec<&str> = texts.collect();
        let (content, num_images) = (texts.join("\n"), parsed.pieces.len() - texts.len());
        let blocks = parsed.pieces.into_iter().map(Block::from).collect();
        let relative = !Path::new(&input.file_path).is_absolute();
        let value = Foreign { found: parsed.found, file_path: path, content, num_images, relative, blocks };
        Ok(Done::with(value, vec![SessionEffect::FileSeen(self.seen)]))
    }
}

fn only_for_pdf(path: &Path, kind: &str) -> String {
    format!("`pages` is for PDF documents, and {} is {kind}: leave it out", path.display())
}
