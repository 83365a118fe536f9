//! What was a confined child refused?
//!
//! No back end tells it: a filter of system calls and Landlock refuse in silence, and the kernel's
//! audit is for root. So it is read from standard error, but nothing is believed that does not hold: a
//! line has to carry the system's own words for a refusal and a path that this profile forbids and that
//! would have been open without it. A program that says nothing, or says it in another language, is
//! not reported.

use std::{collections::BTreeSet, path::Path, path::PathBuf};

use rustix::fs::{Access, access};

use super::{
    Network, Profile,
    profile::{plain, real},
};
use crate::proxy::Refusal;

/// What a confined child wanted and did not get.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Denial {
    /// To read this.
    Read(PathBuf),
    /// To create, change or remove this.
    Write(PathBuf),
    /// To talk to somebody without a proxy, where only that leads anywhere.
    Network,
    /// To reach this host through its proxy, which knows what it was asked for.
    Host(Refusal),
}

/// Refusals of a path: `EACCES`, `EPERM`, `EROFS`, and `EBUSY` for what is held in its place.
const REFUSED: [&str; 4] =
    ["Permission denied", "Operation not permitted", "Read-only file system", "Device or resource busy"];
/// What a resolver and a connection say in a network with nobody in it.
const ALONE: [&str; 4] = [
    "Network is unreachable",
    "Temporary failure in name resolution",
    "Name or service not known",
    "Could not resolve host",
];
/// More would help nobody.
const MOST: usize = 20;

/// The refusals that standard error tells of.
pub(super) fn denied(profile: &Profile, cwd: &Path, stderr: &str) -> Vec<Denial> {
    let mut found = BTreeSet::new();
    for line in stderr.lines() {
        if profile.network != Network::Full && ALONE.iter().any(|words| line.contains(words)) {
            found.insert(Denial::Network);
        }
        if let Some(at) = REFUSED.iter().find_map(|words| line.find(words)) {
            let locate = |path| real(&plain(&cwd.join(path)));
            found.extend(paths(line, at).find_map(|path| refused(profile, locate(path))));
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

fn refused(profile: &Profile, path: PathBuf) -> Option<Denial> {
    let there = access(&path, Access::EXISTS).is_ok();
    // A word that is no file, in a folder that is not writable either, is a word.
    let known = there || path.parent().is_some_and(Path::exists);
    if !known {
        None
    } else if !profile.may_read(&path) {
        Some(Denial::Read(path))
    } else if !profile.may_write(&path) {
        // Without the cage it would have been ours to change, or its folder ours to change it in.
        let target = if there { path.as_path() } else { path.parent()? };
        access(target, Access::WRITE_OK).ok()?;
        Some(Denial::Write(path))
    } else {
        None
    }
}
