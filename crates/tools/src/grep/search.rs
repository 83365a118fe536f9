//! The search itself: many files at once, their results in order, and an end as soon as the page is full.
//!
//! Threads take the next file from one ordered list, search it and hand in what they found under the file's
//! number. Results are put on the page in the order of numbers, so the page does not depend on who was quick.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use grep_regex::RegexMatcher;
use grep_searcher::Searcher;
use gripper_runtime::permissions::Behavior;
use ignore::WalkBuilder;

use super::{
    page::{Page, Piece, Wanted},
    query::{Mode, Query},
    sink::Lines,
};
use crate::walk::{self, Halt, Limit, Root};

/// How many files the quickest thread may be ahead of the page.
const WINDOW: usize = 256;
/// With more bytes than this a file waits for its turn, so that results in hand stay few.
const IN_HAND: usize = 64 * 1024;
/// Files that are searched as the walk comes to them, before all the others are looked for at once.
const STREAMED: usize = 500;
/// A file that does not fill this much is searched where it was read to, with one call of the system where a
/// reader needs three. The searcher decides about binary files by as much.
const WHOLE: usize = 64 * 1024;
/// How often who waits looks whether the search goes on.
const PATIENCE: Duration = Duration::from_millis(50);

/// What a search is about.
pub(super) struct Task<'a> {
    /// Where.
    pub root: &'a Root,
    /// The files below a folder; none for a root that is a file.
    pub walk: Option<&'a WalkBuilder>,
    /// What is looked for, and in which form.
    pub query: &'a Query,
    /// Whether a file may be searched.
    pub judge: &'a (dyn Fn(&Path) -> Behavior + Sync),
    /// When to end.
    pub limit: &'a Limit<'a>,
}

/// What a search brought.
#[derive(Debug)]
pub struct Found {
    /// The results.
    pub page: Page,
    /// Files that were left out.
    pub left_out: LeftOut,
    /// Why it ended before the page was full and before everything was searched.
    pub halt: Option<Halt>,
}

/// Files that were not searched.
#[derive(Debug, Default)]
pub struct LeftOut {
    /// May not be read.
    pub denied: usize,
    /// Reading them is asked about; as shown.
    pub asked: Vec<String>,
    /// Are no text. Only those named as the root count: there are always some.
    pub binary: bool,
    /// Could not be read, and what the system said of the first.
    pub failed: usize,
    /// The first of them.
    pub failure: Option<String>,
}

/// What became of one file. Most have nothing to show, so names are only made where they are needed.
enum Outcome {
    Nothing,
    Lines(String, Piece),
    Denied,
    Asked(String),
    Binary,
    Failed(String),
}

struct State {
    /// The file whose turn it is.
    next: usize,
    waiting: BTreeMap<usize, Outcome>,
    /// How many threads wait for their turn. Waking nobody would still cost a call of the system for each file.
    sleepers: usize,
    page: Page,
    left_out: LeftOut,
}

type Files<'t> = Box<dyn Iterator<Item = Result<PathBuf, String>> + Send + 't>;

/// Files by path: the first of them as a walk comes to them, so that a page which they fill costs no more in a
/// larger tree; the rest from all threads at once, which is quicker when the whole tree is searched.
struct Streamed<'t, I> {
    walk: &'t WalkBuilder,
    limit: &'t Limit<'t>,
    first: I,
    last: Option<PathBuf>,
    rest: Option<std::vec::IntoIter<walk::Dated>>,
}

impl<I: Iterator<Item = Result<PathBuf, String>>> Iterator for Streamed<'_, I> {
    type Item = Result<PathBuf, String>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(next) = self.first.next() {
            self.last = next.as_ref().ok().cloned().or(self.last.take());
            return Some(next);
        }
        let last = self.last.as_ref()?;
        let rest = self.rest.get_or_insert_with(|| walk::rest(self.walk, self.limit, last).files.into_iter());
        rest.next().map(|(_, path)| Ok(path))
    }
}

pub(super) struct Engine<'a> {
    task: &'a Task<'a>,
    files: Mutex<std::iter::Enumerate<Files<'a>>>,
    state: Mutex<State>,
    /// Someone's turn came, or the search is over.
    moved: Condvar,
    /// Set once the search is over; says why if it is not complete.
    over: OnceLock<Option<Halt>>,
}

/// Searches until the page is full or nothing is left.
pub(super) fn search(task: &Task<'_>, wanted: Wanted) -> Found {
    let over = OnceLock::new();
    let mut left_out = LeftOut::default();
    let files = files(task, &over, &mut left_out).enumerate();
    let state = State { next: 0, waiting: BTreeMap::new(), sleepers: 0, page: Page::new(wanted), left_out };
    let (files, state) = (Mutex::new(files), Mutex::new(state));
    let engine = Engine { task, files, state, moved: Condvar::new(), over };
    let threads = if task.walk.is_some() { walk::threads() } else { 1 };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|| engine.work());
        }
        engine.work();
    });
    let State { page, left_out, .. } = engine.state.into_inner().unwrap_or_else(PoisonError::into_inner);
    Found { page, left_out, halt: engine.over.into_inner().flatten() }
}

/// The files in the order of results: by path, or the newest first where only names are wanted.
fn files<'t>(task: &'t Task<'_>, over: &OnceLock<Option<Halt>>, left_out: &mut LeftOut) -> Files<'t> {
    let Some(walk) = task.walk else {
        return Box::new(std::iter::once(Ok(task.root.at.real.clone())));
    };
    if task.query.mode == Mode::FilesWithMatches {
        let regular = |file: walk::Candidate<'_>| !file.link;
        let found = walk::newest(walk, task.limit, None, &regular);
        if found.halt.is_some() {
            over.get_or_init(|| found.halt);
        }
        left_out.failed = found.unreadable;
        return Box::new(found.files.into_iter().map(|(_, path)| Ok(path)));
    }
    Box::new(Streamed {
        walk,
        limit: task.limit,
        first: walk::sorted(walk).take(STREAMED),
        last: None,
        rest: None,
    })
}

impl Engine<'_> {
    fn work(&self) {
        let mut searcher = self.task.query.searcher();
        let mut buffer = vec![0; WHOLE];
        // Each thread has its own, or they would wait for each other's scratch space.
        let matcher = self.task.query.matcher.clone();
        while let Some((number, file)) = self.next_file() {
            let outcome = match file {
                Ok(path) => self.look_into((&mut searcher, &mut buffer), &matcher, number, &path),
                Err(error) => Outcome::Failed(error),
            };
            self.hand_in(number, outcome);
        }
    }

    fn next_file(&self) -> Option<(usize, Result<PathBuf, String>)> {
        if self.is_over() {
            return None;
        }
        let next = self.files.lock().unwrap_or_else(PoisonError::into_inner).next()?;
        drop(self.wait(|state| next.0 < state.next + WINDOW)?);
        Some(next)
    }

    fn look_into(
        &self,
        (searcher, buffer): (&mut Searcher, &mut [u8]),
        matcher: &RegexMatcher,
        number: usize,
        path: &Path,
    ) -> Outcome {
        let shown = || self.task.root.shown(path);
        match (self.task.judge)(path) {
            Behavior::Allow => {}
            Behavior::Ask => return Outcome::Asked(shown()),
            Behavior::Deny => return Outcome::Denied,
        }
        let opened = walk::open(path).and_then(|mut file| Ok((file.read(buffer)?, file)));
        let (start, file) = match opened {
            Ok((read, file)) => (buffer.get(..read).unwrap_or_default(), file),
            Err(error) => return Outcome::Failed(format!("{}: {error}", shown())),
        };
        let mut lines = Lines::new(self, matcher, number, path);
        let searched = if start.len() < WHOLE {
            searcher.search_slice(matcher, start, &mut lines)
        } else {
            searcher.search_reader(matcher, start.chain(Watched { file, engine: self }), &mut lines)
        };
        match searched {
            _ if lines.binary => Outcome::Binary,
            Ok(()) => {
                lines.into_piece().map_or(Outcome::Nothing, |(shown, piece)| Outcome::Lines(shown, piece))
            }
            Err(_) if self.is_over() => Outcome::Nothing,
            Err(error) => Outcome::Failed(format!("{}: {error}", shown())),
        }
    }

    /// Puts on the page what a file has so far, once it is its turn. Says whether to go on.
    pub(super) fn pass_on(&self, number: usize, shown: &str, piece: &mut Piece) -> bool {
        if piece.len() < IN_HAND {
            return true;
        }
        let Some(mut state) = self.wait(|state| state.next == number) else { return false };
        state.page.take(shown, piece);
        *piece = Piece::default();
        if state.page.full {
            self.end(None);
        }
        !state.page.full
    }

    fn hand_in(&self, number: usize, outcome: Outcome) {
        let mut guard = self.lock();
        let state = &mut *guard;
        state.waiting.insert(number, outcome);
        while !self.is_over()
            && let Some(outcome) = state.waiting.remove(&state.next)
        {
            state.next += 1;
            match outcome {
                Outcome::Nothing => {}
                Outcome::Lines(shown, piece) => state.page.take(&shown, &piece),
                Outcome::Denied => state.left_out.denied += 1,
                Outcome::Asked(shown) => state.left_out.asked.push(shown),
                Outcome::Binary => state.left_out.binary = self.task.walk.is_none(),
                Outcome::Failed(error) => {
                    state.left_out.failed += 1;
                    state.left_out.failure.get_or_insert(error);
                }
            }
            if state.page.full {
                self.end(None);
            }
        }
        let sleepers = state.sleepers;
        drop(guard);
        if sleepers > 0 {
            self.moved.notify_all();
        }
    }

    /// Waits until `ready`; nothing if the search ends before.
    fn wait(&self, ready: impl Fn(&State) -> bool) -> Option<MutexGuard<'_, State>> {
        let mut state = self.lock();
        while !ready(&state) {
            if self.is_over() {
                return None;
            }
            // Waking now and then keeps a thread that failed from holding up the others for ever.
            state.sleepers += 1;
            state = self.moved.wait_timeout(state, PATIENCE).unwrap_or_else(PoisonError::into_inner).0;
            state.sleepers -= 1;
        }
        Some(state)
    }

    /// Whether the search is over, for whatever reason.
    fn is_over(&self) -> bool {
        if self.over.get().is_some() {
            return true;
        }
        let halt = self.task.limit.reached();
        if halt.is_some() {
            self.end(halt);
        }
        halt.is_some()
    }

    fn end(&self, halt: Option<Halt>) {
        self.over.get_or_init(|| halt);
        self.moved.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn task(&self) -> &Task<'_> {
        self.task
    }
}

/// A file that seems broken off once the search is over, so that no file, however large, goes on being read.
struct Watched<'a, 't> {
    file: File,
    engine: &'a Engine<'t>,
}

impl Read for Watched<'_, '_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.engine.is_over() {
            return Err(io::Error::other("the search is over"));
        }
        self.file.read(buffer)
    }
}
