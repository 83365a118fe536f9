//! What Grep and Glob share: the walk through folders, what ends it early, and how paths are shown.

mod folders;

use std::{
    cmp::{Ordering, Reverse},
    ffi::OsStr,
    fs, io,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{Mutex, PoisonError},
    time::{Instant, SystemTime},
};

use gripper_runtime::{
    Located, ToolError,
    files::{OpenFailure, open_regular, open_without_links},
    permissions::{PathUse, visible},
};
use ignore::{DirEntry, ParallelVisitor, ParallelVisitorBuilder, WalkBuilder, WalkState};
use rustix::fs::OFlags;

/// What version control keeps for itself is never a result.
const VERSION_CONTROL: [&str; 4] = [".git", ".svn", ".hg", ".bzr"];

/// Why a search ended before it was through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// The caller wants no more.
    Cancelled,
    /// The time is up; what was found until then counts.
    OutOfTime,
}

/// What a search looks at now and then to know whether it may go on.
pub struct Limit<'a> {
    /// Whether the caller wants no more.
    pub cancelled: &'a (dyn Fn() -> bool + Sync),
    /// When to be done.
    pub deadline: Instant,
}

impl Limit<'_> {
    /// Why the search must end now, if it must.
    pub fn reached(&self) -> Option<Halt> {
        if (self.cancelled)() {
            return Some(Halt::Cancelled);
        }
        (Instant::now() >= self.deadline).then_some(Halt::OutOfTime)
    }
}

/// Where a search starts. Everything is done with real paths; they are shown as they were written.
#[derive(Debug, Clone)]
pub struct Root {
    /// The folder or file.
    pub at: Located,
    /// Paths inside it are shown relative to it.
    pub cwd: PathBuf,
}

impl Root {
    /// A path below the root as rules see it.
    pub fn path_use(&self, real: &Path) -> PathUse {
        PathUse::new(self.written(real), real, false)
    }

    /// A path below the root on one line: relative to the working directory if it is inside, and without
    /// characters that would break the line or deceive.
    pub fn shown(&self, real: &Path) -> String {
        let written = self.written(real);
        let relative = written.strip_prefix(&self.cwd).unwrap_or(&written);
        let shown = if relative.as_os_str().is_empty() { Path::new(".") } else { relative };
        let text = shown.to_string_lossy();
        if text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
            return text.into_owned();
        }
        visible(&text).replace('\n', "\\n").replace('\t', "\\t")
    }

    fn written(&self, real: &Path) -> PathBuf {
        // Comparing paths part by part would cost more than all the rest that is done for a file.
        if self.at.written.as_os_str() == self.at.real.as_os_str() {
            return real.to_owned();
        }
        match real.strip_prefix(&self.at.real) {
            Ok(below) if below.as_os_str().is_empty() => self.at.written.clone(),
            Ok(below) => self.at.written.join(below),
            Err(_) => real.to_owned(),
        }
    }
}

/// A walk that includes hidden files, follows no links and leaves out what version control keeps.
/// `ignores` says whether `.gitignore` and its like count, in the way of ripgrep.
pub fn builder(root: &Root, ignores: bool) -> WalkBuilder {
    let mut builder = WalkBuilder::new(&root.at.real);
    builder.standard_filters(ignores).hidden(false).current_dir(&root.cwd).threads(threads());
    if ignores {
        builder.add_custom_ignore_filename(".rgignore");
    }
    builder.filter_entry(|entry| !is_version_control(Some(entry.file_name())));
    builder
}

/// Whether a name is one that version control keeps for itself.
pub fn is_version_control(name: Option<&OsStr>) -> bool {
    VERSION_CONTROL.iter().any(|own| name == Some(OsStr::new(own)))
}

/// Opens a file that a walk came to. A link that took its place meanwhile, there or in a folder above, is not
/// followed, and nothing waits for a pipe.
pub fn open(path: &Path) -> io::Result<fs::File> {
    Ok(open_without_links(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?.into())
}

/// How many threads work at once. More than a dozen only wait for each other.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, |cores| cores.get().min(12))
}

/// Files with the time of their last change.
pub type Dated = (SystemTime, PathBuf);

/// What a walk found.
#[derive(Debug, Default)]
pub struct Newest {
    /// The newest first; those of the same time by path.
    pub files: Vec<Dated>,
    /// How many there were, also those that were not kept.
    pub total: usize,
    /// Folders that could not be read.
    pub unreadable: usize,
    /// Folders right below the root that the walk came to.
    pub begun: Vec<PathBuf>,
    /// Why the walk is not complete.
    pub halt: Option<Halt>,
}

/// A file that a walk came to, or a link that may lead to one, or, in [`look_at_all`], a folder.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// Where it is.
    pub path: &'a Path,
    /// Whether it is a link.
    pub link: bool,
    /// Whether it is a folder.
    pub folder: bool,
}

/// Whether a file counts.
pub type Wish<'a> = &'a (dyn Fn(Candidate<'_>) -> bool + Sync);

/// Collects the `most` newest files, or all, that `wanted` takes. Links count as what they lead to.
pub fn newest(walk: &WalkBuilder, limit: &Limit<'_>, most: Option<usize>, wanted: Wish<'_>) -> Newest {
    let shared = Collection { limit, most, dated: true, folders: false, wanted, found: Mutex::default() };
    walk.build_parallel().visit(&mut &shared);
    shared.by_time()
}

/// The same whatever ignore files say, down to a depth.
pub fn newest_of_all(
    root: &Root,
    deepest: Option<usize>,
    limit: &Limit<'_>,
    most: Option<usize>,
    wanted: Wish<'_>,
) -> Newest {
    let shared = Collection { limit, most, dated: true, folders: false, wanted, found: Mutex::default() };
    folders::walk(&shared, &root.at.real, deepest);
    shared.by_time()
}

/// Shows every file and folder below the root, those of version control too, which it does not go into.
pub fn look_at_all(root: &Path, limit: &Limit<'_>, seen: &(dyn Fn(Candidate<'_>) + Sync)) -> Option<Halt> {
    let wanted = |found: Candidate<'_>| {
        seen(found);
        false
    };
    let found = Mutex::default();
    let shared = Collection { limit, most: None, dated: false, folders: true, wanted: &wanted, found };
    folders::walk(&shared, root, None);
    shared.by_time().halt
}

/// All files below the root that come after `after`, in the order in which [`sorted`] gives them.
pub fn rest(walk: &WalkBuilder, limit: &Limit<'_>, after: &Path) -> Newest {
    let regular = |file: Candidate<'_>| !file.link;
    let found = Mutex::default();
    let shared = Collection { limit, most: None, dated: false, folders: false, wanted: &regular, found };
    walk.build_parallel().visit(&mut &shared);
    let mut found = shared.found.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.files.retain(|(_, path)| path_order(path, after) == Ordering::Greater);
    found.files.sort_by(newer);
    found
}

/// The files below the root one by one: folder after folder, each by name.
pub fn sorted(walk: &WalkBuilder) -> impl Iterator<Item = Result<PathBuf, String>> + Send + use<> {
    let mut walk = walk.clone();
    walk.sort_by_file_name(|a, b| a.cmp(b));
    walk.build().filter_map(|entry| match entry {
        Ok(entry) => entry.file_type().is_some_and(|kind| kind.is_file()).then(|| Ok(entry.into_path())),
        Err(error) => Some(Err(error.to_string())),
    })
}

/// Bytes that compare like the parts of a path one after the other, and much more quickly.
fn path_key(path: &Path) -> Vec<u8> {
    path.as_os_str().as_bytes().iter().map(|byte| if *byte == b'/' { 0 } else { *byte }).collect()
}

/// The newest first, those of the same time by path.
fn newer(a: &Dated, b: &Dated) -> Ordering {
    b.0.cmp(&a.0).then_with(|| path_order(&a.1, &b.1))
}

fn path_order(a: &Path, b: &Path) -> Ordering {
    let (a, b) = (a.as_os_str().as_bytes(), b.as_os_str().as_bytes());
    let rank = |byte: &u8| if *byte == b'/' { 0 } else { *byte };
    match a.iter().zip(b).find(|(a, b)| a != b) {
        Some((a, b)) => rank(a).cmp(&rank(b)),
        None => a.len().cmp(&b.len()),
    }
}

struct Collection<'a> {
    limit: &'a Limit<'a>,
    most: Option<usize>,
    /// Whether it matters when files were changed.
    dated: bool,
    /// Whether folders are shown as well.
    folders: bool,
    wanted: Wish<'a>,
    found: Mutex<Newest>,
}

impl Collection<'_> {
    fn by_time(self) -> Newest {
        let mut found = self.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        keep(&mut found.files, self.most);
        // Each thread has sorted its own: what is left is to merge.
        found.files.sort_by(newer);
        found
    }
}

/// What one thread found so far; goes to the others when the thread ends.
struct Share<'a> {
    all: &'a Collection<'a>,
    found: Newest,
}

impl<'a> Share<'a> {
    fn new(all: &'a Collection<'a>) -> Self {
        Self { all, found: Newest::default() }
    }

    /// Whether the walk must end, for a reason that is then known.
    fn is_halted(&mut self) -> bool {
        self.found.halt = self.found.halt.or_else(|| self.all.limit.reached());
        self.found.halt.is_some()
    }

    fn add(&mut self, changed: SystemTime, path: PathBuf) {
        self.found.total += 1;
        self.found.files.push((changed, path));
        // Keeping all until the end would make memory depend on the tree.
        if self.all.most.is_some_and(|most| self.found.files.len() > 2 * most + 1024) {
            keep(&mut self.found.files, self.all.most);
        }
    }
}

impl<'a> ParallelVisitorBuilder<'a> for &'a Collection<'a> {
    fn build(&mut self) -> Box<dyn ParallelVisitor + 'a> {
        Box::new(Share::new(self))
    }
}

impl ParallelVisitor for Share<'_> {
    fn visit(&mut self, entry: Result<DirEntry, ignore::Error>) -> WalkState {
        if self.is_halted() {
            return WalkState::Quit;
        }
        let Ok(entry) = entry else {
            self.found.unreadable += 1;
            return WalkState::Continue;
        };
        let Some(kind) = entry.file_type() else { return WalkState::Continue };
        if kind.is_dir() && entry.depth() == 1 {
            self.found.begun.push(entry.path().to_owned());
        }
        if (kind.is_file() || kind.is_symlink())
            && (self.all.wanted)(Candidate { path: entry.path(), link: kind.is_symlink(), folder: false })
            && let Some(changed) = if self.all.dated { changed(&entry) } else { Some(SystemTime::UNIX_EPOCH) }
        {
            self.add(changed, entry.into_path());
        }
        WalkState::Continue
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        keep(&mut self.found.files, self.all.most);
        self.found.files.sort_by_cached_key(|(changed, path)| (Reverse(*changed), path_key(path)));
        let mut found = self.all.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.files.append(&mut self.found.files);
        found.begun.append(&mut self.found.begun);
        found.total += self.found.total;
        found.unreadable += self.found.unreadable;
        found.halt = found.halt.or(self.found.halt);
    }
}

/// When a file, or the file a link leads to, was last changed; nothing for what is no file.
fn changed(entry: &DirEntry) -> Option<SystemTime> {
    let metadata =
        if entry.path_is_symlink() { fs::metadata(entry.path()).ok()? } else { entry.metadata().ok()? };
    metadata.is_file().then(|| metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH))
}

fn keep(files: &mut Vec<Dated>, most: Option<usize>) {
    if let Some(most) = most.filter(|most| *most < files.len()) {
        files.select_nth_unstable_by(most, newer);
        files.truncate(most);
    }
}

/// Whether the root of a search is a folder; anything but a file or folder that can be read is an error.
pub fn is_folder(root: &Located) -> Result<bool, ToolError> {
    match open_regular(root) {
        Ok(_) => Ok(false),
        Err(OpenFailure::Directory { path }) => match fs::read_dir(&root.real) {
            Ok(_) => Ok(true),
            Err(error) => Err(OpenFailure::io(&path, error)),
        },
        Err(failure) => Err(failure),
    }
    .map_err(|failure| ToolError::new(failure.code(), failure.to_string()))
}

/// Results, and below them what else is to be known.
pub fn with_notes(mut text: String, notes: &[String]) -> String {
    for note in notes {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("({note})"));
    }
    text
}
