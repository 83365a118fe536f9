//! Reading a transcript, whatever state it is in.

use std::{
    fs::File,
    io::{self, BufRead, BufReader, Read},
    path::Path,
};

use super::{
    SessionError,
    entry::{Entry, Line, Totals},
    find::find,
    open,
};

/// Longest line that is read. Pictures are the largest things in a transcript and stay far below.
const LINE_BYTES: u64 = 64 * 1024 * 1024;

/// Complaints about single lines; of more, the number is enough.
const MOST_COMPLAINTS: usize = 20;

/// An entry and when it was written.
#[derive(Debug, Clone, PartialEq)]
pub struct Dated {
    /// When, as RFC 3339 writes it.
    pub at: String,
    /// What.
    pub entry: Entry,
}

/// What could be read of a transcript.
#[derive(Debug, Default)]
pub struct Log {
    /// The entries, in order. Those of newer versions are left out.
    pub entries: Vec<Dated>,
    /// What could not be read, in words for a person.
    pub complaints: Vec<String>,
    pub(super) totals: Totals,
    pub(super) torn: bool,
}

/// Reads the transcript of the session with this id or unique beginning of an id, and leaves it as it is. The
/// session may be running.
pub fn read(root: &Path, id: &str) -> Result<Log, SessionError> {
    let (file, path) = open(root, &find(root, id)?, false)?;
    Log::of(&file).map_err(|error| SessionError::io(&path, error))
}

impl Log {
    pub(super) fn of(file: &File) -> io::Result<Self> {
        let (mut log, mut reader, mut line) = (Self::default(), BufReader::new(file), Vec::new());
        let mut skipped = 0;
        for number in 1_u64.. {
            line.clear();
            if reader.by_ref().take(LINE_BYTES).read_until(b'\n', &mut line)? == 0 {
                break;
            }
            log.torn = line.last() != Some(&b'\n');
            if let Err(why) = log.take(&line) {
                skipped += 1;
                if skipped <= MOST_COMPLAINTS {
                    log.complaints.push(format!("line {number} of the transcript was skipped: {why}"));
                }
            }
        }
        if skipped > MOST_COMPLAINTS {
            log.complaints.push(format!("{skipped} lines of the transcript were skipped in all"));
        }
        Ok(log)
    }

    fn take(&mut self, line: &[u8]) -> Result<(), String> {
        // Blocks that never reached the disk before the power went are full of these.
        let empty = |byte: &u8| *byte == 0 || byte.is_ascii_whitespace();
        let from = line.iter().position(|byte| !empty(byte)).unwrap_or(line.len());
        let to = line.iter().rposition(|byte| !empty(byte)).map_or(from, |last| last + 1);
        let text = &line[from..to];
        if text.is_empty() {
            return if line.contains(&0) { Err("it is full of NUL bytes".to_owned()) } else { Ok(()) };
        }
        let Line { at, entry, .. }: Line<Entry> =
            serde_json::from_slice(text).map_err(|error| format!("it is torn or damaged ({error})"))?;
        self.totals.count(&entry);
        if entry != Entry::Unknown {
            self.entries.push(Dated { at, entry });
        }
        Ok(())
    }
}
