//! The audit log: what was decided and done, in a file that shows when it was changed.
//!
//! All processes of a user append to one log. Each line is a JSON object that ends with the hash of the line before
//! it (`prev`) and its own (`hash`), so a changed, added or missing byte breaks the chain where it happened.
//! `audit.head` holds number, hash and file length of the newest line: it is what the processes lock, it spares them
//! reading the log before appending, and it shows when lines are missing at the end, which no chain can.
//!
//! The chain has no key. It shows accidents and careless edits; whoever may write the folder can also make a new
//! chain.
//!
//! Kinds the log writes by itself: `recovered` (an unfinished line, left by a crash, was set aside), `lost` (records
//! could not be written earlier), `pruned` (the oldest file was removed).

mod line;
pub(crate) use line::{hex, sha256};
mod verify;
mod writer;

#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

pub use verify::{Damage, Report, verify};

use writer::Writer;

/// Most records written under one lock.
const BATCH_RECORDS: usize = 256;

/// Bytes after which a batch takes no more records.
const BATCH_BYTES: usize = 1024 * 1024;

/// Bounds of the log and of the wait for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Bytes after which a new file is begun.
    pub file_bytes: u64,
    /// Finished files that are kept beside the current one.
    pub kept_files: usize,
    /// Records that may wait for the writing thread before [`AuditLog::record`] blocks.
    pub queue: usize,
    /// How long to wait for another process that holds the log, before records count as lost.
    pub lock_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { file_bytes: 16 * 1024 * 1024, kept_files: 16, queue: 1024, lock_wait: Duration::from_secs(5) }
    }
}

/// Why the log cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// A file or folder of the log cannot be used.
    #[error("cannot write the audit log at {path}: {source}; check its permissions and the free space")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// Another process did not let go of the log in time.
    #[error(
        "the audit log at {path} was locked by another process for {waited:?}; look for a stopped gripper"
    )]
    Locked {
        /// The locked file.
        path: PathBuf,
        /// How long this process waited.
        waited: Duration,
    },
    /// The log ends with something that is no line of it.
    #[error(
        "the end of {path} is not readable as an audit log; run `gripper audit verify`, then move the file away"
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
    },
    /// The writing thread could not be started.
    #[error("cannot start the thread that writes the audit log: {0}; close other programs and try again")]
    Thread(io::Error),
}

/// The log of one session. Cheap to write to: a thread of its own redacts, hashes and appends.
#[derive(Debug)]
pub struct AuditLog {
    queue: Option<SyncSender<Message>>,
    thread: Option<JoinHandle<()>>,
    trouble: Trouble,
}

/// The first failure, shared with the writing thread.
type Trouble = Arc<Mutex<Option<String>>>;

enum Message {
    Record { time: DateTime<Utc>, kind: String, body: Map<String, Value> },
    Flush(SyncSender<()>),
}

impl AuditLog {
    /// Opens the log in `folder`, creating folder and files readable by their owner only.
    ///
    /// # Errors
    /// When the folder cannot be created or written, or the thread cannot be started.
    pub fn open(folder: &Path, session: &str, limits: Limits) -> Result<Self, AuditError> {
        let (queue, messages) = sync_channel(limits.queue);
        let writer = Writer::new(folder, limits)?;
        let trouble = Trouble::default();
        let (session, reported) = (session.to_owned(), Arc::clone(&trouble));
        let thread = std::thread::Builder::new()
            .name("audit".to_owned())
            .spawn(move || write_all(&messages, writer, &session, &reported))
            .map_err(AuditError::Thread)?;
        Ok(Self { queue: Some(queue), thread: Some(thread), trouble })
    }

    /// Hands a record to the writing thread. Blocks while the queue is full; never fails. See [`Self::trouble`].
    pub fn record(&self, kind: &str, body: Map<String, Value>) {
        self.send(Message::Record { time: Utc::now(), kind: kind.to_owned(), body });
    }

    /// Returns when everything recorded so far is in the file or has failed.
    pub fn flush(&self) {
        let (done, wait) = sync_channel(1);
        self.send(Message::Flush(done));
        // An error means that the thread ended and nothing is left to wait for.
        let _ = wait.recv();
    }

    /// The first failure to write, for front ends to show. Calls go on without a log.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn send(&self, message: Message) {
        let Some(queue) = &self.queue else { return };
        if queue.send(message).is_err() {
            note_trouble(
                &self.trouble,
                "the thread that writes the audit log has ended; restart to log again",
            );
        }
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        // The thread writes what is queued and ends when the queue closes.
        self.queue = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn note_trouble(trouble: &Trouble, what: &str) {
    let mut first = trouble.lock().unwrap_or_else(PoisonError::into_inner);
    first.get_or_insert_with(|| what.to_owned());
}

/// The writing thread: takes what waits, up to the size of a batch, and appends it under one lock.
fn write_all(messages: &Receiver<Message>, mut writer: Writer, session: &str, trouble: &Trouble) {
    while let Ok(first) = messages.recv() {
        let mut batch = Vec::new();
        let mut bytes = 0;
        let mut flushes = Vec::new();
        let mut next = Some(first);
        while let Some(message) = next {
            match message {
                Message::Record { time, kind, body } => {
                    let record = line::middle(&time, session, &line::callers_kind(&kind), body);
                    bytes += record.len();
                    batch.push(record);
                }
                Message::Flush(done) => flushes.push(done),
            }
            let full = batch.len() >= BATCH_RECORDS || bytes >= BATCH_BYTES;
            next = if full { None } else { messages.try_recv().ok() };
        }
        if let Err(error) = writer.append(session, &batch) {
            note_trouble(trouble, &error.to_string());
        }
        for done in flushes {
            // Nobody waits any more if this fails.
            let _ = done.send(());
        }
    }
    writer.close();
}
