//! What a child prints: the beginning and the end in memory, all of it on disk within a quota.

mod spool;

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::watch;

use crate::live::Keep;
use spool::Spool;

/// The most that one look at new output brings.
const LOOK: usize = 1024 * 1024;

/// Where output came from.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source {
    Stdout,
    Stderr,
}

/// The output of a child, which may still grow.
#[derive(Debug)]
pub struct Output {
    kept: Mutex<Kept>,
    filed: bool,
    /// How many bytes came, and whether that is all.
    progress: watch::Sender<(u64, bool)>,
}

#[derive(Debug)]
struct Kept {
    both: Stream,
    stdout: Stream,
    stderr: Stream,
    spool: Option<Spool>,
}

/// What is kept of an output, at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Shown {
    /// How it begins.
    pub head: Vec<u8>,
    /// How it ends, as far as that is not in `head`.
    pub tail: Vec<u8>,
    /// How many bytes between the two are left out.
    pub omitted: u64,
    /// How many bytes there were.
    pub bytes: u64,
    /// How many line feeds there were.
    pub lines: u64,
    /// How many bytes went before those on disk: none means that the file holds all. Absent when
    /// nothing is on disk, be it because nothing was wanted, printed or could be written.
    pub before_file: Option<u64>,
}

impl Output {
    pub(crate) fn new(keep: Keep) -> Self {
        let stream = || Stream::new(keep.head, keep.tail);
        let (both, stdout, stderr) = (stream(), stream(), stream());
        let spool = keep.file.filter(|_| keep.quota > 1).map(|file| Spool::new(file, keep.quota));
        let filed = spool.is_some();
        let kept = Mutex::new(Kept { both, stdout, stderr, spool });
        Self { kept, filed, progress: watch::Sender::new((0, false)) }
    }

    /// True when taking something in may touch the disk.
    pub(crate) fn has_file(&self) -> bool {
        self.filed
    }

    pub(crate) fn take(&self, source: Source, chunk: &[u8]) {
        let lines = memchr::memchr_iter(b'\n', chunk).count() as u64;
        let mut kept = self.kept();
        if let Some(spool) = &mut kept.spool {
            spool.write(chunk);
        }
        kept.both.take(chunk, lines);
        match source {
            Source::Stdout => kept.stdout.take(chunk, lines),
            Source::Stderr => kept.stderr.take(chunk, lines),
        }
        let bytes = kept.both.bytes;
        drop(kept);
        self.progress.send_replace((bytes, false));
    }

    /// Says that nothing more will come.
    pub(crate) fn close(&self) {
        self.progress.send_modify(|(_, closed)| *closed = true);
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Both streams, in the order in which they came.
    pub fn snapshot(&self) -> Shown {
        let kept = self.kept();
        let before_file = kept.spool.as_ref().and_then(Spool::begin);
        Shown { before_file, ..kept.both.shown() }
    }

    /// Standard output alone.
    pub fn stdout(&self) -> Shown {
        self.kept().stdout.shown()
    }

    /// Standard error alone.
    pub fn stderr(&self) -> Shown {
        self.kept().stderr.shown()
    }

    /// How many bytes came so far.
    pub fn bytes(&self) -> u64 {
        self.progress.borrow().0
    }

    /// What came after the first `cursor` bytes, at most a mebibyte, and where to go on; and whether
    /// something in between is no longer kept anywhere.
    pub fn since(&self, cursor: u64) -> (Vec<u8>, u64, bool) {
        let mut kept = self.kept();
        let cursor = cursor.min(kept.both.bytes);
        if let Some(bytes) = kept.both.since(cursor) {
            return (bytes, kept.both.bytes.min(cursor + LOOK as u64), false);
        }
        let spooled = kept.spool.as_mut().and_then(|spool| {
            let from = cursor.max(spool.begin()?);
            Some((spool.read(from, LOOK).filter(|bytes| !bytes.is_empty())?, from))
        });
        match spooled {
            Some((bytes, from)) => {
                let next = from + bytes.len() as u64;
                (bytes, next, from > cursor)
            }
            None => {
                let from = kept.both.bytes - kept.both.tail.len() as u64;
                let bytes = kept.both.since(from).unwrap_or_default();
                let next = from + bytes.len() as u64;
                (bytes, next, true)
            }
        }
    }

    /// The last `count` lines, as far as they are in memory; an unfinished one counts.
    pub fn last_lines(&self, count: usize) -> Vec<u8> {
        let mut shown = self.kept().both.shown();
        let mut text = if shown.omitted == 0 {
            shown.head.append(&mut shown.tail);
            shown.head
        } else {
            shown.tail
        };
        let body = text.strip_suffix(b"\n").unwrap_or(&text);
        let start = match count.checked_sub(1) {
            Some(before) => memchr::memrchr_iter(b'\n', body).nth(before).map_or(0, |at| at + 1),
            None => text.len(),
        };
        text.drain(..start);
        text
    }

    /// Waits until more than `seen` bytes came, or until it is certain that no more will.
    pub async fn changed(&self, seen: u64) {
        self.progress.subscribe().wait_for(|(bytes, closed)| *bytes > seen || *closed).await.ok();
    }
}

/// The beginning and the end of a stream of bytes.
#[derive(Debug)]
struct Stream {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    most: (usize, usize),
    bytes: u64,
    lines: u64,
}

impl Stream {
    fn new(head: usize, tail: usize) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), most: (head, tail), bytes: 0, lines: 0 }
    }

    fn take(&mut self, chunk: &[u8], lines: u64) {
        self.bytes += chunk.len() as u64;
        self.lines += lines;
        let (first, rest) = chunk.split_at(chunk.len().min(self.most.0 - self.head.len()));
        self.head.extend_from_slice(first);
        let rest = &rest[rest.len().saturating_sub(self.most.1)..];
        let over = (self.tail.len() + rest.len()).saturating_sub(self.most.1);
        self.tail.drain(..over);
        self.tail.extend(rest);
    }

    fn omitted(&self) -> u64 {
        self.bytes - (self.head.len() + self.tail.len()) as u64
    }

    fn shown(&self) -> Shown {
        Shown {
            head: self.head.clone(),
            tail: self.tail.iter().copied().collect(),
            omitted: self.omitted(),
            bytes: self.bytes,
            lines: self.lines,
            before_file: None,
        }
    }

    /// What came after the first `cursor` bytes, unless some of it is not kept.
    fn since(&self, cursor: u64) -> Option<Vec<u8>> {
        let after = self.bytes - cursor;
        let missing = usize::try_from(after).ok()?.saturating_sub(self.tail.len());
        if missing > 0 && self.omitted() > 0 {
            return None;
        }
        let head = &self.head[self.head.len() - missing..];
        let skip = self.tail.len().saturating_sub(usize::try_from(after).ok()?);
        Some(head.iter().chain(self.tail.range(skip..)).take(LOOK).copied().collect())
    }
}

#[cfg(test)]
mod tests;
