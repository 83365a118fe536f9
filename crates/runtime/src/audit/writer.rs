//! Appending under the lock: finding the end of the chain, recovering from a crash, rotating.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use chrono::Utc;
use serde_json::{Map, Value, json};

use super::line::{self, LINE_BYTES, Mark};
use super::{AuditError, Limits};

/// The file that is appended to.
pub(super) const CURRENT: &str = "audit.jsonl";

/// The file that is locked; it says where the chain ends.
pub(super) const HEAD: &str = "audit.head";

/// How much of a file's end is read to find its last line.
const TAIL_BYTES: u64 = 4 * LINE_BYTES as u64;

/// Pause between two attempts to lock.
const LOCK_PAUSE: Duration = Duration::from_millis(1);

/// The end of the chain and the length of the current file there, as `audit.head` has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) mark: Mark,
    pub(super) length: u64,
}

impl Head {
    /// The only text for a head. It has always the same size, so that writing it in place cannot run out of space.
    pub(super) fn text(&self) -> String {
        format!("{:020} {:020} {}\n", self.mark.seq, self.length, self.mark.hash)
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut words = text.split_whitespace();
        let seq = words.next()?.parse().ok()?;
        let length = words.next()?.parse().ok()?;
        let head = Self { mark: Mark { seq, hash: words.next()?.to_owned() }, length };
        (head.text() == text).then_some(head)
    }
}

/// What the writing thread keeps between batches: nothing that another process could make untrue.
pub(super) struct Writer {
    folder: PathBuf,
    limits: Limits,
    /// Records that could not be written since the last success.
    lost: u64,
}

/// The log while this process holds its lock.
struct Held {
    head_file: File,
    file: File,
    end: Mark,
    length: u64,
    /// Lines sealed but not yet written, and how many of the caller's records are among them.
    pending: String,
    pending_records: u64,
    /// Files to remove once the line that says so is written.
    doomed: Vec<PathBuf>,
}

impl Writer {
    pub(super) fn new(folder: &Path, limits: Limits) -> Result<Self, AuditError> {
        let writer = Self { folder: folder.to_owned(), limits, lost: 0 };
        writer.open_private(HEAD, false)?;
        Ok(writer)
    }

    /// Appends records as one group of lines. What could not be written is counted and reported in the log later.
    pub(super) fn append(&mut self, session: &str, records: &[String]) -> Result<(), AuditError> {
        if records.is_empty() {
            return Ok(());
        }
        let mut written = 0;
        let outcome = self.append_counting(session, records, &mut written);
        if written > 0 {
            self.lost = 0;
        }
        self.lost += records.len() as u64 - written;
        outcome
    }

    /// Makes what was written survive a power failure, as far as that is possible now.
    pub(super) fn close(&self) {
        if let Ok(file) = File::open(self.folder.join(CURRENT)) {
            let _ = file.sync_data();
        }
    }

    fn append_counting(
        &self,
        session: &str,
        records: &[String],
        written: &mut u64,
    ) -> Result<(), AuditError> {
        let head_file = self.lock()?;
        let (mut held, recovered) = self.find_end(head_file)?;
        let own = |kind: &str, body: Map<String, Value>| line::middle(&Utc::now(), session, kind, body);
        let mut notices: Vec<String> = recovered.into_iter().map(|body| own(line::RECOVERED, body)).collect();
        if self.lost > 0 {
            let body =
                object(json!({"records": self.lost, "why": "they could not be written at their time"}));
            notices.push(own(line::LOST, body));
        }
        for (record, is_callers) in
            notices.iter().map(|notice| (notice, false)).chain(records.iter().map(|record| (record, true)))
        {
            let mut end = held.end.clone();
            let sealed = line::seal(&mut end, record);
            let size = held.length + (held.pending.len() + sealed.len()) as u64;
            if size > self.limits.file_bytes && size > sealed.len() as u64 {
                self.commit(&mut held, written)?;
                for body in self.rotate(&mut held)? {
                    held.pending += &line::seal(&mut held.end, &own(line::PRUNED, body));
                }
                held.pending += &line::seal(&mut held.end, record);
            } else {
                held.pending += &sealed;
                held.end = end;
            }
            held.pending_records += u64::from(is_callers);
        }
        self.commit(&mut held, written)
    }

    /// Writes the pending lines in one go and then the head. If either fails, the file is cut back to what it was.
    fn commit(&self, held: &mut Held, written: &mut u64) -> Result<(), AuditError> {
        let length = held.length + held.pending.len() as u64;
        let head = Head { mark: held.end.clone(), length };
        let outcome = held.file.write_all(held.pending.as_bytes()).and_then(|()| {
            held.head_file.seek(SeekFrom::Start(0))?;
            held.head_file.write_all(head.text().as_bytes())
        });
        if let Err(source) = outcome {
            // If this fails as well, the next writer sets the rest aside as after a crash.
            let _ = held.file.set_len(held.length);
            return Err(AuditError::Write { path: self.folder.join(CURRENT), source });
        }
        *written += std::mem::take(&mut held.pending_records);
        held.length = length;
        held.pending.clear();
        for path in held.doomed.drain(..) {
            // A file that cannot be removed is tried again, and announced again, at the next rotation.
            let _ = fs::remove_file(path);
        }
        Ok(())
    }

    /// Sets the full file aside and begins a new one. Returns what to log about files that are now too many.
    fn rotate(&self, held: &mut Held) -> Result<Vec<Map<String, Value>>, AuditError> {
        let mut finished = self.finished();
        let number = finished.last().map_or(1, |(number, _)| number + 1);
        let aside = self.folder.join(format!("audit-{number:06}.jsonl"));
        let _ = held.file.sync_data();
        fs::rename(self.folder.join(CURRENT), &aside).map_err(|source| self.failed(CURRENT, source))?;
        held.file = self.open_private(CURRENT, true)?;
        held.length = 0;
        finished.push((number, aside));

        let too_many = finished.len().saturating_sub(self.limits.kept_files);
        let mut bodies = Vec::new();
        for (position, (_, path)) in finished.iter().enumerate().take(too_many) {
            // The next file knows how the removed one ended; if it does not, nothing is removed.
            let last = match finished.get(position + 1) {
                Some((_, next)) => match first_line(next) {
                    Some(frame) => Mark { seq: frame.seq.saturating_sub(1), hash: frame.prev },
                    None => break,
                },
                None => held.end.clone(),
            };
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            bodies.push(object(json!({"file": name, "last_seq": last.seq, "last_hash": last.hash})));
            held.doomed.push(path.clone());
        }
        Ok(bodies)
    }

    /// Finds the end of the chain: from the head if it fits the file, else from the file itself.
    fn find_end(&self, mut head_file: File) -> Result<(Held, Option<Map<String, Value>>), AuditError> {
        let mut text = String::new();
        // A head that is not text is as good as none.
        let head = head_file.read_to_string(&mut text).ok().and_then(|_| Head::parse(&text));
        let file = self.open_private(CURRENT, true)?;
        let length = file.metadata().map_err(|source| self.failed(CURRENT, source))?.len();
        let held = |end, length| Held {
            head_file,
            file,
            end,
            length,
            pending: String::new(),
            pending_records: 0,
            doomed: Vec::new(),
        };
        if let Some(head) = head.as_ref().filter(|head| head.length == length) {
            return Ok((held(head.mark.clone(), length), None));
        }
        let tail = read_tail(&self.folder.join(CURRENT)).map_err(|source| self.failed(CURRENT, source))?;
        let head = head.map(|head| head.mark);
        let unreadable = || AuditError::Unreadable { path: self.folder.join(CURRENT) };
        let last = match &tail.last_line {
            Some(line) => line::open(line).ok().map(|frame| Mark { seq: frame.seq, hash: frame.hash }),
            None if tail.begins_file => Some(self.end_of_finished(head.as_ref())),
            None => return Err(unreadable()),
        };
        if tail.torn.is_empty() {
            // Whole lines that the head knows and the file lacks were not lost by a crash of ours. The chain goes
            // on from the head, so that a verifier finds the gap.
            let end = match (last, head) {
                (Some(last), Some(head)) if last.seq < head.seq => head,
                (Some(last), _) => last,
                (None, head) => head.ok_or_else(unreadable)?,
            };
            return Ok((held(end, length), None));
        }
        let end = last.or_else(|| head.clone()).ok_or_else(unreadable)?;
        let body = self.set_aside(&tail.torn, head.map_or(0, |head| head.seq.saturating_sub(end.seq)))?;
        let held = held(end, length - tail.torn.len() as u64);
        held.file.set_len(held.length).map_err(|source| self.failed(CURRENT, source))?;
        Ok((held, Some(body)))
    }

    /// Keeps an unfinished line in a file of its own, and returns what to log about it.
    fn set_aside(&self, torn: &[u8], lines_lost: u64) -> Result<Map<String, Value>, AuditError> {
        let hash = line::sha256(torn);
        let name = format!("torn-{}.part", &hash[..16]);
        // The name comes from the content: a file that exists already holds the same bytes.
        let mut file = self.open_private(&name, false)?;
        file.write_all(torn).map_err(|source| self.failed(&name, source))?;
        Ok(object(json!({
            "why": "an unfinished line was found at the end of the log",
            "bytes": torn.len(),
            "sha256": hash,
            "lines_lost": lines_lost,
            "file": name,
        })))
    }

    /// Where the newest finished file ends, for a current file that has no line yet.
    fn end_of_finished(&self, head: Option<&Mark>) -> Mark {
        let last = self.finished().pop().and_then(|(_, path)| read_tail(&path).ok()?.last_line);
        let last = last.and_then(|line| line::open(&line).ok());
        let last = last.map(|frame| Mark { seq: frame.seq, hash: frame.hash });
        last.or_else(|| head.cloned()).unwrap_or_else(Mark::genesis)
    }

    fn finished(&self) -> Vec<(u64, PathBuf)> {
        finished_files(&self.folder).unwrap_or_default()
    }

    /// Waits for the lock, but not for ever: a stopped process must not stop this one.
    fn lock(&self) -> Result<File, AuditError> {
        let file = self.open_private(HEAD, false)?;
        let start = Instant::now();
        // Waited for once in vain, the lock is only tried until it comes free: a queue behind a stuck
        // process would fill up and hold back calls, wait after wait.
        let patience = if self.lost > 0 { Duration::ZERO } else { self.limits.lock_wait };
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if start.elapsed() < patience => {
                    std::thread::sleep(LOCK_PAUSE);
                }
                Err(TryLockError::WouldBlock) => {
                    let path = self.folder.join(HEAD);
                    return Err(AuditError::Locked { path, waited: patience });
                }
                Err(TryLockError::Error(source)) => return Err(self.failed(HEAD, source)),
            }
        }
    }

    /// Opens a file of the log, creating it and the folder for their owner only.
    fn open_private(&self, name: &str, append: bool) -> Result<File, AuditError> {
        let mut builder = DirBuilder::new();
        builder.recursive(true);
        let mut options = OpenOptions::new();
        options.read(true).write(!append).append(append).create(true);
        #[cfg(unix)]
        {
            std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        let open = || options.open(self.folder.join(name));
        open()
            .or_else(|error| match error.kind() {
                ErrorKind::NotFound => builder.create(&self.folder).and_then(|()| open()),
                _ => Err(error),
            })
            .map_err(|source| self.failed(name, source))
    }

    fn failed(&self, name: &str, source: io::Error) -> AuditError {
        AuditError::Write { path: self.folder.join(name), source }
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        _ => Map::new(),
    }
}

/// The end of a log file.
struct Tail {
    /// The last line that has its newline, without it.
    last_line: Option<Vec<u8>>,
    /// What stands behind it.
    torn: Vec<u8>,
    /// Whether everything up to the beginning of the file was seen.
    begins_file: bool,
}

fn read_tail(path: &Path) -> io::Result<Tail> {
    let mut file = File::open(path)?;
    let start = file.metadata()?.len().saturating_sub(TAIL_BYTES);
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    let newline = bytes.iter().rposition(|byte| *byte == b'\n');
    let torn = bytes.split_off(newline.map_or(0, |newline| newline + 1));
    // Without its own newline, the last line is what follows the newline before it.
    let last_line = bytes.strip_suffix(b"\n").map(|lines| {
        let begin = lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
        lines[begin..].to_vec()
    });
    Ok(Tail { last_line, torn, begins_file: start == 0 })
}

fn first_line(path: &Path) -> Option<line::Frame> {
    let mut bytes = Vec::new();
    let file = File::open(path).ok()?;
    BufReader::new(file).take(LINE_BYTES as u64).read_until(b'\n', &mut bytes).ok()?;
    line::open(bytes.strip_suffix(b"\n")?).ok()
}

/// Files that were rotated away, in their order.
pub(super) fn finished_files(folder: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str());
        let number = name.and_then(|name| name.strip_prefix("audit-")?.strip_suffix(".jsonl"));
        if let Some(number) = number.and_then(|number| number.parse().ok()) {
            files.push((number, path));
        }
    }
    files.sort();
    Ok(files)
}
