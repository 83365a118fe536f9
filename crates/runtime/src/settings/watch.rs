//! Noticing that settings changed.

use std::{
    path::{Path, PathBuf},
    time::SystemTime,
};

use super::{Loaded, Reader, Sources, read::FRESH};

/// Looks at the files of all sources, and reads them again when one has changed, came or went.
///
/// Files are looked at rather than watched: a look costs a few microseconds a file, needs no thread, works on
/// every file system, and a change made before a call is always seen by it.
#[derive(Debug)]
pub struct Watch {
    sources: Sources,
    reader: Reader,
    seen: Stamps,
}

/// How some files looked at one moment.
#[derive(Debug, Default)]
pub(crate) struct Stamps {
    seen: Vec<(PathBuf, Option<Stamp>)>,
    settled: bool,
}

#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    modified: SystemTime,
    length: u64,
    identity: u64,
}

impl Watch {
    /// Reads the settings for the first time.
    pub fn start(sources: Sources) -> (Self, Loaded) {
        let mut watch = Self { sources, reader: Reader::default(), seen: Stamps::default() };
        let loaded = watch.read();
        (watch, loaded)
    }

    /// The settings, if they changed since the last look.
    pub fn changed(&mut self) -> Option<Loaded> {
        (!self.seen.still_hold(self.paths())).then(|| self.read())
    }

    fn read(&mut self) -> Loaded {
        // Looked at first: a change while reading is seen at the next look.
        self.seen = Stamps::of(self.paths());
        self.reader.load(&self.sources)
    }

    fn paths(&self) -> impl Iterator<Item = PathBuf> + use<'_> {
        let (candidates, _) = self.sources.candidates();
        let paths = candidates.into_iter().map(|candidate| candidate.path);
        paths.chain(self.sources.trust_file().map(Path::to_owned))
    }
}

impl Stamps {
    /// How these files look now.
    pub(crate) fn of(paths: impl Iterator<Item = PathBuf>) -> Self {
        let seen = stamps(paths);
        // Two changes within one tick of the file system's clock have one stamp.
        let now = SystemTime::now();
        let ticking = |stamp: &Stamp| match now.duration_since(stamp.modified) {
            Ok(age) => age < FRESH,
            Err(ahead) => ahead.duration() < FRESH,
        };
        let settled = !seen.iter().filter_map(|(_, stamp)| stamp.as_ref()).any(ticking);
        Self { seen, settled }
    }

    /// Whether these are the same files, and none has changed since.
    pub(crate) fn still_hold(&self, paths: impl Iterator<Item = PathBuf>) -> bool {
        self.settled && stamps(paths) == self.seen
    }
}

fn stamps(paths: impl Iterator<Item = PathBuf>) -> Vec<(PathBuf, Option<Stamp>)> {
    let stamped = |path: PathBuf| {
        let stamp = Stamp::of(&path);
        (path, stamp)
    };
    paths.map(stamped).collect()
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let metadata = path.metadata().ok()?;
        #[cfg(unix)]
        let identity = std::os::unix::fs::MetadataExt::ino(&metadata);
        #[cfg(not(unix))]
        let identity = 0;
        Some(Self { modified: metadata.modified().ok()?, length: metadata.len(), identity })
    }
}
