//! A page together with what the model knows of the file then.

use std::{
    borrow::Cow,
    fs::File,
    io::{Read, Seek},
};

use gripper_runtime::{
    Located,
    files::{
        Stamp,
        ledger::{Content, Evidence, KEPT_BYTES, Ledger, Seen, content_hash_of},
        open_regular,
    },
};

use memchr::memchr;

use super::page::{Limits, Page, ReadFailure, Wanted, page_in};

/// Larger files are known by their stamp alone: hashing them would take longer than finding the page.
const HASHED_BYTES: u64 = 16 * 1024 * 1024;

/// What a read comes to.
pub(super) enum Shown {
    /// The lines, and what is to be taken down about them.
    Page(Page, Box<Seen>),
    /// The model has these lines already.
    Unchanged {
        /// The first line asked for.
        first: u64,
    },
}

/// Reads the wanted lines, unless they are the same as when they were last shown.
pub(super) fn show(
    path: &Located,
    wanted: &Wanted,
    (ledger, turn): (&Ledger, &str),
    stop: &dyn Fn() -> bool,
) -> Result<Shown, ReadFailure> {
    let (mut file, status) = open_regular(path)?;
    let (stamp, limits) = (Stamp::of(&status), Limits::default());
    let first = wanted.offset.unwrap_or(1).max(1);
    let last = first.saturating_add(wanted.limit.unwrap_or(limits.lines) - 1);
    if ledger.has_shown(&path.real, &stamp, (first, last), turn) {
        return Ok(Shown::Unchanged { first });
    }
    let failed = |error| ReadFailure::io(&path.written, error);
    let ahead = ledger.was_read_ahead(&path.real, &stamp);
    let mut start = ahead.as_deref().map(<[u8]>::to_vec).unwrap_or_default();
    if ahead.is_none() {
        start.reserve(usize::try_from(stamp.size()).unwrap_or(0).min(KEPT_BYTES) + 1);
        file.by_ref().take(KEPT_BYTES as u64 + 1).read_to_end(&mut start).map_err(failed)?;
    }
    let whole = start.len() <= KEPT_BYTES;
    let lines = if whole { with_line_feeds(&start) } else { Cow::Borrowed(start.as_slice()) };
    // What was read ahead is all there is.
    let mut reader = lines.chain((&mut file).take(if ahead.is_some() { 0 } else { u64::MAX }));
    let page = page_in(&mut reader, stamp.size(), path, wanted, &limits, stop)?;
    let content = match whole {
        true => Content::Whole(start.into()),
        false => hashed(&mut file, stamp.size()).map_err(failed)?,
    };
    // What was read while somebody wrote is neither the old content nor the new one.
    let calm = is_same(&file, &stamp);
    let lines = (page.start_line, page.next_offset.map_or(u64::MAX, |next| next - 1));
    let seen = Seen {
        path: path.real.clone(),
        stamp,
        content: if calm { content } else { Content::Unknown },
        lines: Some(lines).filter(|lines| *lines != (1, u64::MAX)),
        evidence: Evidence::Read,
    };
    Ok(Shown::Page(page, Box::new(seen)))
}

/// Content whose lines all end with a carriage return alone, shown as lines.
fn with_line_feeds(content: &[u8]) -> Cow<'_, [u8]> {
    if memchr(b'\n', content).is_some() || memchr(b'\r', content).is_none() || memchr(0, content).is_some() {
        return Cow::Borrowed(content);
    }
    Cow::Owned(content.iter().map(|byte| if *byte == b'\r' { b'\n' } else { *byte }).collect())
}

fn hashed(file: &mut File, size: u64) -> std::io::Result<Content> {
    if size > HASHED_BYTES {
        return Ok(Content::Unknown);
    }
    file.rewind()?;
    content_hash_of(file).map(Content::Hash)
}

fn is_same(file: &File, stamp: &Stamp) -> bool {
    rustix::fs::fstat(file).is_ok_and(|status| Stamp::of(&status).unchanged_since(stamp))
}
