//! Checking the chain from the first line to the last.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use super::line::{self, Frame, LINE_BYTES, Mark};
use super::writer::{CURRENT, HEAD, Head, finished_files};

/// What an undamaged log holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Files of the log.
    pub files: usize,
    /// Lines in them.
    pub lines: u64,
    /// Time of the first line.
    pub first_time: Option<String>,
    /// Time of the last line.
    pub last_time: Option<String>,
    /// What the log says about itself, in plain words: recoveries after a crash, lost records, removed files.
    pub notes: Vec<String>,
}

/// Where and how a log was found damaged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1; 0 when the whole file is meant.
    pub line: u64,
    /// What is wrong, in plain words.
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file.display(), self.what),
            line => write!(f, "{}, line {line}: {}", self.file.display(), self.what),
        }
    }
}

/// Checks the log in a folder, or one file of it.
///
/// In a folder everything is checked: each line, the order of the files, and that nothing is missing at either end. Of
/// a single file only what it can show alone.
///
/// # Errors
/// The first damage found.
pub fn verify(folder_or_file: &Path) -> Result<Report, Damage> {
    if !folder_or_file.is_dir() {
        let mut chain = Chain::default();
        chain.check_file(folder_or_file)?;
        return Ok(chain.report);
    }
    // A writer in the middle of a line would look like damage.
    let head_file = File::open(folder_or_file.join(HEAD)).ok();
    let _ = head_file.as_ref().map(File::lock_shared);
    let mut chain = Chain { head: read_head(folder_or_file, head_file)?, ..Chain::default() };
    let mut files = finished_files(folder_or_file).map_err(|error| unreadable(folder_or_file, &error))?;
    let current = folder_or_file.join(CURRENT);
    if current.exists() {
        files.push((u64::MAX, current));
    }
    for (_, file) in &files {
        chain.check_file(file)?;
    }
    chain.check_beginning()?;
    chain.check_end(folder_or_file)?;
    Ok(chain.report)
}

/// The head, or nothing if it is missing or empty, as before the first record.
fn read_head(folder: &Path, file: Option<File>) -> Result<Option<Head>, Damage> {
    let path = folder.join(HEAD);
    let mut text = String::new();
    let Some(mut file) = file else { return Ok(None) };
    file.read_to_string(&mut text).map_err(|error| unreadable(&path, &error))?;
    match Head::parse(&text) {
        None if !text.is_empty() => Err(Damage {
            file: path,
            line: 0,
            what: "this file was changed: it should hold one number, one length and one hash".to_owned(),
        }),
        head => Ok(head),
    }
}

fn unreadable(file: &Path, error: &io::Error) -> Damage {
    let what = match error.kind() {
        ErrorKind::NotFound => "there is no such file or folder".to_owned(),
        _ => format!("cannot be read: {error}"),
    };
    Damage { file: file.to_owned(), line: 0, what }
}

/// The chain as far as it was followed.
#[derive(Default)]
struct Chain {
    report: Report,
    /// The last line, and the length of its file.
    end: Option<Mark>,
    length: u64,
    /// What comes before the first line, and the file that line is in.
    beginning: Option<(Mark, PathBuf)>,
    /// Ends of removed files that the log itself mentions.
    removed: HashSet<(u64, String)>,
    head: Option<Head>,
    /// Whether the line that the head names was met with the hash it names.
    head_met: bool,
}

impl Chain {
    fn check_file(&mut self, path: &Path) -> Result<(), Damage> {
        let file = File::open(path).map_err(|error| unreadable(path, &error))?;
        let mut reader = BufReader::new(file);
        self.report.files += 1;
        self.length = 0;
        for number in 1.. {
            let mut bytes = Vec::new();
            let most = LINE_BYTES as u64 + 1;
            let read = reader.by_ref().take(most).read_until(b'\n', &mut bytes);
            if read.map_err(|error| unreadable(path, &error))? == 0 {
                break;
            }
            let damage = |what| Damage { file: path.to_owned(), line: number, what };
            self.check_line(path, &bytes).map_err(damage)?;
            self.length += bytes.len() as u64;
        }
        Ok(())
    }

    fn check_line(&mut self, path: &Path, bytes: &[u8]) -> Result<(), String> {
        let Some(line) = bytes.strip_suffix(b"\n") else {
            return Err(if bytes.len() > LINE_BYTES {
                "the line is longer than any the log writes".to_owned()
            } else {
                format!("the line has no end: {} bytes of it are here", bytes.len())
            });
        };
        let frame = line::open(line)?;
        match &self.end {
            None => {
                let before = Mark { seq: frame.seq.saturating_sub(1), hash: frame.prev.clone() };
                if frame.seq == 0 || (frame.seq == 1 && before != Mark::genesis()) {
                    return Err("the first line names a line before it".to_owned());
                }
                self.beginning = Some((before, path.to_owned()));
            }
            Some(end) => follows(end, &frame)?,
        }
        if let Some(head) = &self.head
            && head.mark.seq == frame.seq
        {
            self.head_met = head.mark.hash == frame.hash;
        }
        self.report.lines += 1;
        self.report.first_time.get_or_insert_with(|| frame.time.clone());
        self.note(&frame, line);
        self.report.last_time = Some(frame.time);
        self.end = Some(Mark { seq: frame.seq, hash: frame.hash });
        Ok(())
    }

    /// Takes down what the log says about itself.
    fn note(&mut self, frame: &Frame, line: &[u8]) {
        #[derive(Deserialize)]
        struct Recovered {
            bytes: u64,
            lines_lost: u64,
        }
        #[derive(Deserialize)]
        struct Lost {
            records: u64,
        }
        #[derive(Deserialize)]
        struct Pruned {
            file: String,
            last_seq: u64,
            last_hash: String,
        }
        fn body<'a, T: Deserialize<'a>>(line: &'a [u8]) -> Option<T> {
            serde_json::from_slice(line).ok()
        }
        let note = match frame.kind.as_str() {
            line::RECOVERED => body(line).map(|Recovered { bytes, lines_lost }| {
                format!("an unfinished line of {bytes} bytes was set aside; {lines_lost} finished lines were lost with it")
            }),
            line::LOST => body(line).map(|Lost { records }| format!("{records} records could not be written")),
            line::PRUNED => body(line).map(|Pruned { file, last_seq, last_hash }| {
                let note = format!("{file}, up to number {last_seq}, was removed to keep the log small");
                self.removed.insert((last_seq, last_hash));
                note
            }),
            _ => None,
        };
        self.report.notes.extend(note.map(|note| format!("{}: {note}", frame.time)));
    }

    /// Lines may be missing before the first only if the log says that it removed them.
    fn check_beginning(&self) -> Result<(), Damage> {
        let Some((before, file)) = &self.beginning else { return Ok(()) };
        if before.seq == 0 || self.removed.contains(&(before.seq, before.hash.clone())) {
            return Ok(());
        }
        let what =
            format!("the lines up to number {} are missing, and the log did not remove them", before.seq);
        Err(Damage { file: file.clone(), line: 1, what })
    }

    /// The head must name the last line, or one before it when a writer crashed before it could write the head.
    fn check_end(&self, folder: &Path) -> Result<(), Damage> {
        let damage = |file: &str, what: String| Err(Damage { file: folder.join(file), line: 0, what });
        let last = self.end.as_ref().map_or(0, |end| end.seq);
        match &self.head {
            None if last == 0 => Ok(()),
            None => {
                damage(HEAD, "this file is missing, so lines may be missing at the end of the log".to_owned())
            }
            Some(head) if head.mark.seq > last => {
                let first = last + 1;
                damage(
                    CURRENT,
                    format!("the lines from number {first} to {} are missing at the end", head.mark.seq),
                )
            }
            Some(head) if !self.head_met => damage(
                HEAD,
                format!("the hash of line number {} is not the one that was written", head.mark.seq),
            ),
            // Right after a rotation that a crash interrupted, the head still has the length of the finished file.
            Some(head) if head.mark.seq == last && head.length != self.length && self.length != 0 => {
                damage(HEAD, format!("the log had {} bytes and now has {}", head.length, self.length))
            }
            Some(_) => Ok(()),
        }
    }
}

/// Whether a line follows the one before it.
fn follows(end: &Mark, frame: &Frame) -> Result<(), String> {
    let (expected, found) = (end.seq + 1, frame.seq);
    if found > expected {
        return Err(format!("the lines from number {expected} to {} are missing before this one", found - 1));
    }
    if found < expected {
        return Err(format!("line number {found} stands where number {expected} belongs"));
    }
    if frame.prev != end.hash {
        return Err("the line follows another line than the one before it".to_owned());
    }
    Ok(())
}
