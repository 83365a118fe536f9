//! Which sessions are there?

use std::{
    fs::{self, File},
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    time::SystemTime,
};

use serde::Serialize;

use super::{Entry, FILE, Header, Origin, SessionError, Totals, entry::Line, lock, open};

/// How much of each end of a transcript is read at first, and at most.
const FIRST_LOOK: u64 = 16 * 1024;
const LAST_LOOK: u64 = 4 * 1024 * 1024;

/// Characters of a prompt that serve as a title.
const TITLE_CHARS: usize = 80;

/// A session in a list.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// What it is.
    #[serde(flatten)]
    pub header: Header,
    /// Its name, else the beginning of its first prompt.
    pub title: String,
    /// When something was last written.
    #[serde(skip)]
    pub changed: SystemTime,
    /// What it has come to.
    #[serde(flatten)]
    pub totals: Totals,
}

/// All sessions with a transcript, the one changed last first. Only the ends of each transcript are read.
pub fn list(root: &Path) -> Vec<Summary> {
    files(root).into_iter().filter_map(|(id, path, changed)| summary(id, &path, changed).ok()).collect()
}

/// The session that was worked on last in a folder, sub-agents aside, and those in which nobody has said anything.
pub fn latest(root: &Path, cwd: &Path) -> Option<String> {
    let here = |path: &Path| {
        let mut file = File::open(path).ok()?;
        let (lines, _) = ends(&mut file, FIRST_LOOK).ok()?;
        let begun = lines.len() > 1 || file.metadata().ok()?.len() > 2 * FIRST_LOOK;
        let header = lines.into_iter().find_map(|line| match line.entry {
            Entry::Session(header) => Some(header),
            _ => None,
        })?;
        // A name that is no Unicode was not written as it is.
        let same = header.cwd.to_string_lossy() == cwd.to_string_lossy();
        (begun && same && header.agent_type.is_none()).then_some(())
    };
    files(root).into_iter().find_map(|(id, path, _)| here(&path).map(|()| id))
}

/// The whole id of the session whose id is or begins with `given`.
pub fn find(root: &Path, given: &str) -> Result<String, SessionError> {
    let mut ids: Vec<String> = files(root).into_iter().map(|(id, ..)| id).collect();
    if let Some(at) = ids.iter().position(|id| id == given) {
        return Ok(ids.swap_remove(at));
    }
    ids.retain(|id| !given.is_empty() && id.starts_with(given));
    ids.sort();
    match ids.len() {
        0 => Err(SessionError::NotFound(given.to_owned())),
        1 => Ok(ids.swap_remove(0)),
        _ => Err(SessionError::Ambiguous { given: given.to_owned(), matches: ids }),
    }
}

/// Removes a session and all that is stored with it. One that is open stays.
pub fn delete(root: &Path, given: &str) -> Result<String, SessionError> {
    let id = find(root, given)?;
    let (file, path) = open(root, &id, false)?;
    lock(&file, &id, &path)?;
    fs::remove_dir_all(root.join(&id)).map_err(|error| SessionError::io(&path, error))?;
    Ok(id)
}

/// Transcripts with their ids, the one changed last first. Links are not followed.
fn files(root: &Path) -> Vec<(String, PathBuf, SystemTime)> {
    let Ok(entries) = fs::read_dir(root) else { return Vec::new() };
    let transcript = |entry: fs::DirEntry| {
        let path = entry.path().join(FILE);
        let data = entry.file_type().ok()?.is_dir().then(|| fs::symlink_metadata(&path))?.ok()?;
        let id = entry.file_name().into_string().ok()?;
        data.is_file().then(|| (id, path, data.modified().unwrap_or(SystemTime::UNIX_EPOCH)))
    };
    let mut files: Vec<_> = entries.flatten().filter_map(transcript).collect();
    files.sort_by(|a, b| (b.2, &b.0).cmp(&(a.2, &a.0)));
    files
}

fn summary(id: String, path: &Path, changed: SystemTime) -> io::Result<Summary> {
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut look = FIRST_LOOK;
    loop {
        let (lines, last) = ends(&mut file, look)?;
        let totals = lines.get(last..).and_then(<[_]>::last).map(|line| line.totals);
        let (mut header, mut prompt) = (None, None);
        for Line { entry, .. } in lines {
            match entry {
                Entry::Session(found) => header = Some(found),
                Entry::User { message, origin: Origin::Prompt } if prompt.is_none() => {
                    prompt = Some(message.text());
                }
                _ => {}
            }
        }
        let whole = look.saturating_mul(2) >= length;
        if (totals.is_some() && prompt.is_some()) || whole || look >= LAST_LOOK {
            let header = header.unwrap_or_default();
            let title = shorten(&prompt.unwrap_or_default());
            let header = Header { id, ..header };
            return Ok(Summary { header, title, changed, totals: totals.unwrap_or_default() });
        }
        look *= 4;
    }
}

/// The whole lines in the first and the last `look` bytes, and which of them is the first of the end.
fn ends(file: &mut File, look: u64) -> io::Result<(Vec<Line<Entry>>, usize)> {
    let length = file.metadata()?.len();
    let mut piece = |from: u64, bytes: u64| {
        let mut piece = Vec::new();
        file.seek(SeekFrom::Start(from))?;
        file.take(bytes).read_to_end(&mut piece)?;
        io::Result::Ok(piece)
    };
    let (head, tail) = if look.saturating_mul(2) >= length {
        (Vec::new(), piece(0, length)?)
    } else {
        (piece(0, look)?, piece(length - look, look)?)
    };
    let parse = |piece: &[u8]| -> Vec<Line<Entry>> {
        piece.split(|byte| *byte == b'\n').filter_map(|line| serde_json::from_slice(line).ok()).collect()
    };
    let mut lines = parse(&head);
    let last = lines.len();
    lines.extend(parse(&tail));
    Ok((lines, last))
}

/// One line of a prompt.
fn shorten(text: &str) -> String {
    let mut words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((cut, _)) = words.char_indices().nth(TITLE_CHARS) {
        words.truncate(cut);
        words.push('…');
    }
    words
}
