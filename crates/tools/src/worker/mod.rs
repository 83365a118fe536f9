//! Foreign bytes are parsed in a process of their own.
//!
//! A file made to do harm lets a parser spin, overflow its stack or ask for all the memory there is, and none
//! of that can be stopped from within the process. So the program runs itself once more, as a worker: it takes
//! limits on itself, reads one request and the bytes of one file, answers with one line, and ends. Whatever
//! happens to it, the caller has one clear error.

mod image;
mod notebook;
#[cfg(feature = "pdf")]
mod pdf;
mod pieces;

use std::{
    ffi::OsString,
    io::{self, BufRead, BufReader, Read, Write},
    time::Duration,
};

use gripper_process::{Ended, Spec, Status};
use gripper_runtime::{ErrorCode, ToolError};
use rustix::process::{Resource, Rlimit, Signal, getrlimit, setrlimit};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

pub(crate) use pieces::Piece;

/// What a worker takes from itself before it looks at the first foreign byte. Without room for another
/// descriptor it can open no file and no connection.
const LIMITS: &[(Resource, u64)] = &[
    (Resource::As, 1024 * 1024 * 1024),
    (Resource::Cpu, 20),
    (Resource::Core, 0),
    (Resource::Fsize, 0),
    (Resource::Nofile, 3),
];
/// How long a worker may take, waiting for the processor included.
const TIME: Duration = Duration::from_secs(30);
/// The longest answer; the bounds on text and pictures keep proper ones well below it.
const ANSWER: usize = 32 * 1024 * 1024;

/// Address space that is set aside beforehand counts, and would leave nothing of the limit: allocators are told to do
/// without.
const ALLOCATOR: [(&str, &str); 1] = [("MIMALLOC_ARENA_RESERVE", "0")];

/// How workers are started: the program and the arguments that make it call [`serve`].
#[derive(Debug, Clone)]
pub struct WorkerCommand {
    /// The program.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// How long one may take.
    pub limit: Duration,
}

/// What is to be parsed, and as what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub(crate) enum Request {
    Image,
    Notebook,
    Pdf { pages: Option<PageRange> },
}

/// Some pages of a document, counted from 1, or all from the first on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PageRange {
    pub(crate) first: usize,
    pub(crate) last: Option<usize>,
}

/// What a file turned out to be.
#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Found {
    /// One picture.
    Image {
        /// Its type, as it is returned.
        media_type: String,
        /// Its width in pixels, as it is returned.
        width: u32,
        /// Its height in pixels, as it is returned.
        height: u32,
        /// The width in the file.
        original_width: u32,
        /// The height in the file.
        original_height: u32,
    },
    /// Cells of a notebook.
    Notebook {
        /// The language of its code cells, where it is named.
        #[serde(skip_serializing_if = "Option::is_none")]
        language: Option<String>,
        /// How many cells are returned.
        num_cells: usize,
        /// How many there are.
        total_cells: usize,
    },
    /// Pages of a PDF document.
    Pdf {
        /// The first page that is returned.
        first_page: usize,
        /// How many pages are returned.
        num_pages: usize,
        /// How many there are.
        total_pages: usize,
    },
}

/// What the worker made of a file.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Parsed {
    pub(crate) found: Found,
    pub(crate) pieces: Vec<Piece>,
}

/// Why a file gives nothing; the words go on from "… could not be read: ".
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Refusal {
    pub(crate) why: Why,
    pub(crate) words: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Why {
    Damaged,
    TooLarge,
    Range,
    Unsupported,
}

impl Refusal {
    fn new(why: Why, words: impl Into<String>) -> Self {
        Self { why, words: words.into() }
    }
}

impl Request {
    /// What the file is called in messages.
    pub(crate) fn noun(self) -> &'static str {
        match self {
            Request::Image => "image",
            Request::Notebook => "notebook",
            Request::Pdf { .. } => "PDF",
        }
    }

    fn answer(self, bytes: Vec<u8>) -> Result<Parsed, Refusal> {
        match self {
            Request::Image => image::parse(&bytes),
            Request::Notebook => notebook::parse(&bytes),
            #[cfg(feature = "pdf")]
            Request::Pdf { pages } => pdf::parse(bytes, pages),
            #[cfg(not(feature = "pdf"))]
            Request::Pdf { .. } => Err(Refusal::new(
                Why::Unsupported,
                "this build has no PDF reader: use a program such as pdftotext",
            )),
        }
    }
}

impl WorkerCommand {
    /// With the usual time.
    pub fn new(program: impl Into<OsString>, args: impl IntoIterator<Item = OsString>) -> Self {
        Self { program: program.into(), args: args.into_iter().collect(), limit: TIME }
    }

    /// Has a worker parse a file. The error is in words that go on from "… could not be read: ".
    pub(crate) async fn parse(
        &self,
        request: Request,
        file: &[u8],
        cancel: &CancellationToken,
    ) -> Result<Parsed, ToolError> {
        let mut stdin = serde_json::to_vec(&request)
            .map_err(|error| ToolError::new(ErrorCode::Failed, error.to_string()))?;
        stdin.push(b'\n');
        stdin.extend_from_slice(file);
        let spec = Spec {
            stdin,
            env: ALLOCATOR.map(|(name, value)| (name.into(), value.into())).to_vec(),
            keep: ANSWER,
            limit: self.limit,
            ..Spec::exec(&self.program, self.args.clone(), "/")
        };
        let ended = gripper_process::run(spec, cancel).await.map_err(|error| {
            ToolError::new(ErrorCode::Io, format!("no worker could be started ({error})"))
        })?;
        let answer = match ended.status {
            Status::Exited(0) => serde_json::from_slice::<Result<Parsed, Refusal>>(&ended.stdout.bytes).ok(),
            _ => None,
        };
        match answer {
            Some(answer) => answer.map_err(|refusal| {
                let code = match refusal.why {
                    Why::Damaged => ErrorCode::Failed,
                    Why::TooLarge => ErrorCode::TooLarge,
                    Why::Range => ErrorCode::InvalidInput,
                    Why::Unsupported => ErrorCode::Unsupported,
                };
                ToolError::new(code, refusal.words)
            }),
            None => Err(lost(&ended, self.limit)),
        }
    }
}

/// Why a worker gave no answer.
fn lost(ended: &Ended, limit: Duration) -> ToolError {
    let stderr = ended.stderr.text();
    let what = match ended.status {
        Status::Cancelled => return ToolError::new(ErrorCode::Cancelled, "it was cancelled"),
        Status::TimedOut => {
            let what = format!("its parser took longer than {} s and was ended", limit.as_secs_f32());
            return ToolError::new(ErrorCode::Timeout, what);
        }
        Status::Signalled(signal) if signal == Signal::XCPU.as_raw() => {
            "its parser used up its processor time"
        }
        _ if stderr.contains("memory allocation of") => "its parser ran out of memory",
        _ if stderr.contains("overflowed its stack") => "it is nested too deeply for its parser",
        _ => "its parser failed on it",
    };
    let advice = "it may be damaged or made to do harm, so take another program to look at it";
    ToolError::new(ErrorCode::Failed, format!("{what}; {advice}"))
}

/// The whole life of a worker: limits, one request, one answer.
///
/// # Errors
///
/// A limit could not be set, the request is not one, or the caller has gone.
pub fn serve(input: impl Read, mut output: impl Write) -> io::Result<()> {
    for (resource, most) in LIMITS {
        // The limit that is there already may be lower, and may not be raised.
        let most = Some(getrlimit(*resource).maximum.map_or(*most, |maximum| maximum.min(*most)));
        setrlimit(*resource, Rlimit { current: most, maximum: most })?;
    }
    let mut input = BufReader::new(input);
    let mut header = String::new();
    input.by_ref().take(4096).read_line(&mut header)?;
    let request: Request = serde_json::from_str(&header)?;
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes)?;
    let answer = request.answer(bytes);
    serde_json::to_writer(&mut output, &answer)?;
    output.write_all(b"\n")
}

#[cfg(test)]
mod tests;
