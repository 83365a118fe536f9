//! What was a confined child refused?
//!
//! Of sockets and of other processes the kernel tells us itself, where it can ([`Seen`]). Of files nobody does: mounts
//! and Landlock refuse in silence, and the kernel's audit is for root. So that is read from standard error, but nothing
//! is believed that does not hold: a line has to carry the system's own words for a refusal and a path that this
//! profile forbids and that would have been open without it. A program that says nothing, or says it in another
//! language, is not reported.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
};

use rustix::fs::{Access, access};

use super::{
    Backend, Network, Profile,
    profile::{below, plain, real},
};
use crate::proxy::Refusal;

/// What a confined child wanted and did not get.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Denial {
    /// To read this.
    Read(PathBuf),
    /// To create, change or remove this.
    Write(PathBuf),
    /// To talk to somebody, nobody knows whom.
    Network,
    /// To talk to this address.
    Address(SocketAddr),
    /// To talk to a local service, through this file if it is known.
    Local(Option<PathBuf>),
    /// To look into a process that is not its own child, or to trace one.
    Process,
    /// To reach this host through its proxy, which knows what it was asked for.
    Host(Refusal),
}

/// Refusals of a path: `EACCES`, `EPERM`, `EROFS`, `EBUSY` for what is held in its place, and `EXDEV` for a link into it.
const REFUSED: [&str; 5] = [
    "Permission denied",
    "Operation not permitted",
    "Read-only file system",
    "Device or resource busy",
    "Invalid cross-device link",
];
/// What a resolver and a connection say in a network with nobody in it.
const ALONE: [&str; 4] = [
    "Network is unreachable",
    "Temporary failure in name resolution",
    "Name or service not known",
    "Could not resolve host",
];
const MISSING: &str = "No such file or directory";
const TAKEN: &str = "File exists";
/// More would help nobody.
const MOST: usize = 20;

/// What the kernel tells of while a command runs.
#[derive(Default)]
pub(super) struct Seen {
    found: Mutex<BTreeSet<Denial>>,
    serves: AtomicBool,
}

impl Seen {
    pub(super) fn add(&self, denial: Denial) {
        if let Ok(mut found) = self.found.lock()
            && found.len() < MOST
        {
            found.insert(denial);
        }
    }

    /// The command serves something itself, so it may be itself that it talks to on the loop-back address.
    pub(super) fn serves(&self) {
        self.serves.store(true, Ordering::Relaxed);
    }

    fn told(&self) -> BTreeSet<Denial> {
        let mut found = self.found.lock().map(|found| found.clone()).unwrap_or_default();
        if self.serves.load(Ordering::Relaxed) {
            let own = |address: &SocketAddr| address.ip().is_loopback() || address.ip().is_unspecified();
            found.retain(|denial| !matches!(denial, Denial::Address(address) if own(address)));
        }
        found
    }
}

/// The refusals that the kernel and standard error tell of.
pub(super) fn denied(
    profile: &Profile,
    backend: Backend,
    cwd: &Path,
    stderr: &str,
    seen: &Seen,
) -> Vec<Denial> {
    let mut found = seen.told();
    let named = found.iter().any(|denial| matches!(denial, Denial::Address(_)));
    for line in stderr.lines() {
        if profile.network != Network::Full && !named && ALONE.iter().any(|words| line.contains(words)) {
            found.insert(Denial::Network);
        }
        // Who traces says so in the same words as who writes.
        if found.contains(&Denial::Process) && line.to_ascii_lowercase().contains("ptrace") {
            continue;
        }
        if let Some(at) = REFUSED.iter().find_map(|words| line.find(words)) {
            let locate = |path| real(&plain(&cwd.join(path)));
            found.extend(paths(line, at).find_map(|path| refused(profile, backend, locate(path))));
        } else if let Some(at) = line.find(MISSING) {
            // In a cage with processes of its own, the others are not even there.
            let other = paths(line, at).any(|path| of_process(Path::new(path)) && Path::new(path).exists());
            found.extend(other.then_some(Denial::Process));
        } else if let Some(at) = line.find(TAKEN) {
            // Where nothing may be created something was put in its place, and is gone by now.
            let protected = |path: &PathBuf| below(path, &profile.read_only) && !path.exists();
            let taken = paths(line, at).map(|path| plain(&cwd.join(path))).find(protected);
            found.extend(taken.map(Denial::Write));
        }
        if found.len() >= MOST {
            break;
        }
    }
    found.into_iter().collect()
}

/// What a message may name: what stands in quotes, or what comes last before the words at `at`. The first
/// part of a message is the program that speaks. The last of several words may just be a word, so it only
/// counts if it looks like a path.
fn paths(line: &str, at: usize) -> impl Iterator<Item = &str> {
    let quoted = line.split(['\'', '"', '`', '‘', '’']).skip(1).step_by(2);
    let before = line.get(..at).unwrap_or_default().trim_end_matches([' ', ':', '(', '[']);
    let last = before.rsplit_once(": ").map(|(_, last)| match last {
        absolute if absolute.starts_with('/') => absolute,
        words => match words.rsplit_once(' ') {
            Some((_, last)) if last.contains(['/', '.']) => last,
            Some(_) => "",
            None => words,
        },
    });
    quoted.chain(last).filter(|path| !path.is_empty())
}

fn refused(profile: &Profile, backend: Backend, path: PathBuf) -> Option<Denial> {
    let there = access(&path, Access::EXISTS).is_ok();
    // A word that is no file, in a folder that is not writable either, is a word.
    let known = there || path.parent().is_some_and(Path::exists) || below(&path, &profile.read_only);
    if !known {
        None
    } else if of_process(&path) {
        Some(Denial::Process)
    } else if !profile.may_read(&path) {
        Some(Denial::Read(path))
    } else if !profile.may_write(&path) || is_held(profile, backend, &path) {
        // Without the cage it would have been ours to change, or its folder ours to change it in.
        let target = path.ancestors().find(|at| access(*at, Access::EXISTS).is_ok())?;
        access(target, Access::WRITE_OK).ok()?;
        Some(Denial::Write(path))
    } else {
        None
    }
}

/// Whether it stays where it is because of what is shut in it; under Landlock, what is shut beside it.
fn is_held(profile: &Profile, backend: Backend, path: &Path) -> bool {
    let mut shut = profile.read_only.iter().chain(&profile.hidden);
    match backend {
        Backend::Landlock => {
            let folder = path.parent().unwrap_or(path);
            shut.any(|shut| shut.starts_with(folder) && (profile.strict || shut.exists()))
        }
        Backend::Bubblewrap => shut.any(|shut| shut.starts_with(path)),
        Backend::Seatbelt => false,
    }
}

/// Whether it is what the kernel shows of one process.
fn of_process(path: &Path) -> bool {
    let process = path.strip_prefix("/proc").ok().and_then(|rest| rest.iter().next());
    process.is_some_and(|name| name.as_encoded_bytes().iter().all(u8::is_ascii_digit))
}
