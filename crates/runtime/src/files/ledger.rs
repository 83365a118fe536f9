//! What the model has seen of each file.
//!
//! A change is only made to what the model knows: never read means "read it first", and content that is
//! another now than the model was shown is named with the difference. Records are dropped when the model
//! no longer has what they stand for ([`Ledger::evict`]).

use std::{
    collections::{HashMap, HashSet, VecDeque},
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use sha2::{Digest as _, Sha256};

use super::{stamp::Stamp, swap::Snapshot};
use crate::sync::{Mutex, lock};

/// Content up to this size is kept, so that a difference can be shown; of more, only the hash.
pub const KEPT_BYTES: usize = 1024 * 1024;

/// Files read ahead that are kept; the oldest make room.
const MOST_AHEAD: usize = 40;

/// Files remembered; the ones used longest ago make room.
const MOST_FILES: usize = 10_000;

/// The identity of a content.
pub type ContentHash = [u8; 32];

/// The hash of a content.
pub fn content_hash(bytes: &[u8]) -> ContentHash {
    Sha256::digest(bytes).into()
}

/// The hash of everything that is left to read.
pub fn content_hash_of(reader: &mut impl Read) -> io::Result<ContentHash> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 128 * 1024];
    loop {
        match reader.read(&mut buffer)? {
            0 => return Ok(hash.finalize().into()),
            count => hash.update(&buffer[..count]),
        }
    }
}

/// How the model came to know a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evidence {
    /// It was shown.
    Read,
    /// A command printed it as it is.
    Shell,
    /// What it holds was shown, though not its lines: a notebook, a picture.
    Parsed,
    /// The model wrote it.
    Written,
    /// A change by someone else was shown.
    Attached,
}

impl Evidence {
    /// Whether lines of it were shown.
    fn is_by_lines(self) -> bool {
        matches!(self, Self::Read | Self::Shell)
    }
}

/// Content as far as it is remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// All of it.
    Whole(Arc<[u8]>),
    /// Its hash.
    Hash(ContentHash),
    /// Too large to have been looked through; only the stamp speaks.
    Unknown,
}

impl Content {
    /// Remembers what fits.
    pub fn of(bytes: &[u8]) -> Self {
        if bytes.len() <= KEPT_BYTES { Self::Whole(bytes.into()) } else { Self::Hash(content_hash(bytes)) }
    }

    /// The same with a hash that is known.
    pub(super) fn hashed(bytes: &[u8], hash: ContentHash) -> Self {
        if bytes.len() <= KEPT_BYTES { Self::Whole(bytes.into()) } else { Self::Hash(hash) }
    }
}

/// What a call has shown the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// The file, links followed.
    pub path: PathBuf,
    /// What the system said of it.
    pub stamp: Stamp,
    /// What it held.
    pub content: Content,
    /// The first and the last line shown; `None` for all of it.
    pub lines: Option<(u64, u64)>,
    /// How it was shown.
    pub evidence: Evidence,
}

/// What is known of a file.
#[derive(Debug, Clone)]
struct Record {
    stamp: Stamp,
    content: Content,
    /// Stretches of lines that earlier turns have shown since the content last changed. Empty for what the
    /// model wrote itself.
    shown: Vec<(u64, u64)>,
    /// Those that this turn has shown. Calls of one turn run side by side, and what they return must not
    /// depend on who was quicker.
    fresh: Vec<(u64, u64)>,
    /// The model has had all of it before its eyes.
    whole: bool,
    evidence: Evidence,
    accesses: u64,
    turn: Arc<str>,
}

/// How a file stands to what the model knows of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// The model has never seen it.
    Unread,
    /// As the model knows it; `partly` if only some of it was shown.
    Known {
        /// Only some lines were shown.
        partly: bool,
    },
    /// Another content than the model knows, which was this, if it is remembered.
    Changed {
        /// The content the model knows.
        before: Option<Arc<[u8]>>,
    },
}

/// A file as it was when it was read ahead.
type Ahead = (PathBuf, Stamp, Arc<[u8]>);

/// The record of a session.
#[derive(Debug, Default)]
pub struct Ledger {
    files: Mutex<Files>,
    /// Files that were read before anybody asked for them. The model has not seen these.
    ahead: Mutex<VecDeque<Ahead>>,
}

#[derive(Debug, Default)]
struct Files {
    records: HashMap<PathBuf, Record>,
    accesses: u64,
}

impl Ledger {
    /// Takes down that the model has seen something.
    pub fn note(&self, seen: Seen, turn: &Arc<str>) {
        let mut files = lock(&self.files);
        files.accesses += 1;
        let accesses = files.accesses;
        let record = files.records.remove(&seen.path).filter(|known| {
            known.evidence.is_by_lines()
                && seen.evidence.is_by_lines()
                && seen.stamp.unchanged_since(&known.stamp)
        });
        let (mut shown, mut fresh, whole) = match record {
            None => (Vec::new(), Vec::new(), false),
            Some(mut known) if known.turn != *turn => {
                known.fresh.into_iter().for_each(|stretch| merge(&mut known.shown, stretch));
                (known.shown, Vec::new(), known.whole)
            }
            Some(known) => (known.shown, known.fresh, known.whole),
        };
        if seen.evidence.is_by_lines() {
            merge(&mut fresh, seen.lines.unwrap_or((1, u64::MAX)));
        } else {
            shown.clear();
        }
        let whole = whole || seen.lines.is_none();
        let record = Record {
            stamp: seen.stamp,
            content: seen.content,
            shown,
            fresh,
            whole,
            evidence: seen.evidence,
            accesses,
            turn: turn.clone(),
        };
        files.records.insert(seen.path, record);
        if files.records.len() > MOST_FILES
            && let Some(oldest) = files.oldest()
        {
            files.records.remove(&oldest);
        }
    }

    /// Takes down that a change by someone else was shown; how much of the file is known stays.
    pub(super) fn attach(&self, seen: Seen, turn: &Arc<str>) {
        let whole = lock(&self.files).records.get(&seen.path).is_some_and(|known| known.whole);
        self.note(Seen { lines: (!whole).then_some((1, 1)), ..seen }, turn);
    }

    /// Takes down what a call has written; `all` says that the model knows the whole of it.
    pub(super) fn wrote(&self, path: &Path, stamp: Stamp, content: Content, all: bool, turn: &Arc<str>) {
        let partly = !all && lock(&self.files).records.get(path).is_none_or(|known| !known.whole);
        let seen = Seen {
            path: path.to_owned(),
            stamp,
            content,
            lines: partly.then_some((1, 1)),
            evidence: Evidence::Written,
        };
        self.note(seen, turn);
    }

    /// Compares a file with what the model knows of it.
    pub fn standing(&self, file: &Snapshot) -> Standing {
        let files = lock(&self.files);
        let Some(record) = files.records.get(&file.path.real) else { return Standing::Unread };
        // Two writes within one tick of a coarse clock leave the same stamp; bytes at hand are compared.
        let same = match &record.content {
            Content::Whole(known) => **known == *file.bytes,
            Content::Hash(hash) => file.stamp.unchanged_since(&record.stamp) || *hash == file.hash(),
            Content::Unknown => file.stamp.unchanged_since(&record.stamp),
        };
        if same {
            return Standing::Known { partly: !record.whole };
        }
        Standing::Changed { before: record.kept() }
    }

    /// Whether an earlier turn has shown these lines, all of them, and they are the same still.
    pub fn has_shown(&self, path: &Path, stamp: &Stamp, lines: (u64, u64), turn: &str) -> bool {
        let files = lock(&self.files);
        files.records.get(path).is_some_and(|record| {
            record.evidence.is_by_lines()
                && stamp.unchanged_since(&record.stamp)
                && record.shown_before(turn).iter().any(|(first, last)| *first <= lines.0 && lines.1 <= *last)
        })
    }

    /// Keeps what a file holds for when it is asked for. It counts as unread until then.
    pub fn read_ahead(&self, path: &Path, stamp: Stamp, bytes: Arc<[u8]>) {
        let mut ahead = lock(&self.ahead);
        ahead.retain(|(known, ..)| known != path);
        ahead.push_back((path.to_owned(), stamp, bytes));
        if ahead.len() > MOST_AHEAD {
            ahead.pop_front();
        }
    }

    /// What a file holds, if it was read ahead and is the same still.
    pub fn was_read_ahead(&self, path: &Path, stamp: &Stamp) -> Option<Arc<[u8]>> {
        let ahead = lock(&self.ahead);
        let (_, _, bytes) =
            ahead.iter().find(|(known, then, _)| known == path && stamp.unchanged_since(then))?;
        Some(bytes.clone())
    }

    /// The files the model knows.
    pub fn known(&self) -> HashSet<PathBuf> {
        lock(&self.files).records.keys().cloned().collect()
    }

    /// What the model knows a file to hold, if that is remembered.
    pub fn content(&self, path: &Path) -> Option<Content> {
        lock(&self.files).records.get(path).map(|record| record.content.clone())
    }

    /// The model no longer has what it was shown of these files.
    pub fn evict<'p>(&self, paths: impl IntoIterator<Item = &'p Path>) {
        let mut files = lock(&self.files);
        for path in paths {
            files.records.remove(path);
        }
    }

    /// The model no longer has what these turns have shown: files that it knows from nowhere later count as
    /// unread. Of the others it has what their last turn has shown or written, and no more; which of the earlier
    /// turns are gone is not known any more, and a line shown twice does no harm.
    pub fn forget_turns(&self, turns: &HashSet<Arc<str>>) {
        if turns.is_empty() {
            return;
        }
        lock(&self.files).records.retain(|_, record| {
            record.shown.clear();
            if record.evidence.is_by_lines() {
                record.whole = record.fresh.contains(&(1, u64::MAX));
            }
            // A difference says little to whoever has lost what it is a difference to.
            record.evidence != Evidence::Attached && !turns.contains(&record.turn)
        });
    }

    /// The results of a turn never reached the model.
    pub(crate) fn evict_turn(&self, turn: &str) {
        lock(&self.files).records.retain(|_, record| *record.turn != *turn);
    }
}

impl Files {
    fn oldest(&self) -> Option<PathBuf> {
        self.records.iter().min_by_key(|(_, record)| record.accesses).map(|(path, _)| path.clone())
    }
}

impl Record {
    fn shown_before(&self, turn: &str) -> Vec<(u64, u64)> {
        let mut shown = self.shown.clone();
        self.fresh.iter().filter(|_| *self.turn != *turn).for_each(|stretch| merge(&mut shown, *stretch));
        shown
    }

    fn kept(&self) -> Option<Arc<[u8]>> {
        match &self.content {
            Content::Whole(bytes) => Some(bytes.clone()),
            Content::Hash(_) | Content::Unknown => None,
        }
    }
}

/// Adds a stretch to others; those that touch become one.
fn merge(stretches: &mut Vec<(u64, u64)>, mut new: (u64, u64)) {
    stretches.retain(|old| {
        let apart = old.1.saturating_add(1) < new.0 || new.1.saturating_add(1) < old.0;
        if !apart {
            new = (new.0.min(old.0), new.1.max(old.1));
        }
        apart
    });
    stretches.push(new);
}

#[cfg(test)]
mod tests {
    use super::{Content, Evidence, Ledger, Seen, Snapshot, Stamp, Standing, merge};
    use crate::place::{Located, Place};
    use std::{fs, sync::Arc};

    fn seen(file: &Snapshot, lines: Option<(u64, u64)>) -> Seen {
        Seen {
            path: file.path.real.clone(),
            stamp: file.stamp,
            content: Content::of(&file.bytes),
            lines,
            evidence: Evidence::Read,
        }
    }

    #[test]
    fn a_file_stands_as_the_model_knows_it() {
        let folder = tempfile::tempdir().unwrap();
        let path: Located = Place { cwd: folder.path().into() }.locate("f".as_ref());
        let take = |content: &str| {
            fs::write(&path.real, content).unwrap();
            Snapshot::take(&path, 100).unwrap()
        };
        let (ledger, turn): (_, Arc<str>) = (Ledger::default(), "t".into());
        let first = take("a\nb\n");
        assert_eq!(ledger.standing(&first), Standing::Unread);
        ledger.note(seen(&first, Some((1, 1))), &turn);
        assert_eq!(ledger.standing(&first), Standing::Known { partly: true });
        assert!(ledger.has_shown(&path.real, &first.stamp, (1, 1), "u"));
        assert!(
            !ledger.has_shown(&path.real, &first.stamp, (1, 1), "t"),
            "calls of one turn run side by side"
        );
        assert!(!ledger.has_shown(&path.real, &first.stamp, (1, 2), "u"));
        ledger.note(seen(&first, Some((2, 2))), &turn);
        assert!(ledger.has_shown(&path.real, &first.stamp, (1, 2), "u"));
        let touched = Snapshot::new(first.path.clone(), first.bytes.clone(), Stamp::default());
        assert_eq!(ledger.standing(&touched), Standing::Known { partly: true }, "only the time is another");
        let changed = take("a\nc and more\n");
        assert_eq!(ledger.standing(&changed), Standing::Changed { before: Some(first.bytes[..].into()) });
        ledger.evict_turn("t");
        assert_eq!(ledger.standing(&changed), Standing::Unread);
    }

    #[test]
    fn stretches_that_touch_become_one() {
        let mut lines = vec![(1, 10), (20, 30)];
        merge(&mut lines, (40, 50));
        assert_eq!(lines, [(1, 10), (20, 30), (40, 50)]);
        merge(&mut lines, (11, 25));
        assert_eq!(lines, [(40, 50), (1, 30)]);
    }
}
