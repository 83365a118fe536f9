//! Output on disk, of which the newest part stays.
//!
//! The file is cut in two: when it holds half of the quota it becomes the older part, under its
//! name with `.1` added, in place of the one before, and a new file is begun. So nothing is ever
//! copied, up to the quota nothing is lost, and beyond it at least half of the quota is there.

use std::{
    ffi::OsString,
    fs::{self, File},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt},
    path::PathBuf,
};

#[derive(Debug)]
pub(super) struct Spool {
    file: PathBuf,
    half: u64,
    /// The older part, if any, and the newer one, with the bytes in each.
    parts: [Option<(File, u64)>; 2],
    /// How many bytes went before the parts.
    before: u64,
    /// After one failure nothing more is written: a hole in the middle would go unnoticed.
    failed: bool,
    /// Room for what is written next.
    pub(super) spare: Vec<u8>,
}

impl Spool {
    pub(super) fn new(file: PathBuf, quota: u64) -> Self {
        Self { file, half: quota / 2, parts: [None, None], before: 0, failed: false, spare: Vec::new() }
    }

    /// How many bytes of the stream came before what is on disk, if anything is.
    pub(super) fn begin(&self) -> Option<u64> {
        (!self.failed && self.parts[1].is_some()).then_some(self.before)
    }

    pub(super) fn write(&mut self, mut chunk: &[u8]) {
        while !chunk.is_empty() && !self.failed {
            match self.write_some(chunk) {
                Ok(count) => chunk = &chunk[count..],
                Err(_) => self.failed = true,
            }
        }
    }

    fn write_some(&mut self, chunk: &[u8]) -> io::Result<usize> {
        if self.parts[1].as_ref().is_none_or(|(_, size)| *size >= self.half) {
            self.turn()?;
        }
        let Some((file, size)) = &mut self.parts[1] else { return Err(io::ErrorKind::NotFound.into()) };
        let room = usize::try_from(self.half - *size).unwrap_or(usize::MAX);
        let part = &chunk[..chunk.len().min(room)];
        file.write_all_at(part, *size)?;
        *size += part.len() as u64;
        Ok(part.len())
    }

    /// Begins a new part; the one before the last goes.
    fn turn(&mut self) -> io::Result<()> {
        let newer = self.parts[1].take();
        if newer.is_some() {
            let mut older = OsString::from(&self.file);
            older.push(".1");
            fs::rename(&self.file, older)?;
            self.before += self.parts[0].take().map_or(0, |(_, size)| size);
            self.parts[0] = newer;
        }
        // Never through a link that somebody put there, and never into a file that others may read.
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = File::options();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(&self.file)?;
        self.parts[1] = Some((file, 0));
        Ok(())
    }

    /// Up to `most` bytes of the stream from `offset` on, which must not lie before the beginning.
    pub(super) fn read(&self, offset: u64, most: usize) -> Option<Vec<u8>> {
        let mut at = offset - self.before;
        for (file, size) in self.parts.iter().flatten() {
            if at < *size {
                let count = usize::try_from(size - at).unwrap_or(most).min(most);
                let mut bytes = vec![0; count];
                file.read_exact_at(&mut bytes, at).ok()?;
                return Some(bytes);
            }
            at -= size;
        }
        None
    }
}
