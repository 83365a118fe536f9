//! What signing in has brought, per address of a server: one file that only its owner reads, replaced whole.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write},
    path::PathBuf,
    sync::{Mutex, PoisonError},
};

use rmcp::transport::auth::StoredCredentials;
use serde::{Deserialize, Serialize};

/// What is kept for one server.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Entry {
    pub(super) credentials: StoredCredentials,
    /// The secret that came with the registration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) secret: Option<String>,
    /// The port that the registration names.
    #[serde(default)]
    pub(super) port: u16,
}

type Entries = BTreeMap<String, Entry>;

/// The tokens of all servers.
#[derive(Default)]
pub(in crate::client) struct Tokens {
    /// Without a file they end with the process.
    file: Option<PathBuf>,
    memory: Mutex<Entries>,
}

impl Tokens {
    pub(in crate::client) fn new(file: Option<PathBuf>) -> Self {
        Self { file, memory: Mutex::default() }
    }

    pub(super) fn of(&self, url: &str) -> Result<Option<Entry>, String> {
        self.read().map(|mut all| all.remove(url))
    }

    /// Keeps an entry, or forgets the one there is. Says whether there was one.
    pub(super) fn set(&self, url: &str, entry: Option<Entry>) -> Result<bool, String> {
        let alone = self.lock_file("write")?;
        alone.iter().try_for_each(File::lock).map_err(|error| error.to_string())?;
        let mut all = self.read()?;
        let before = match entry {
            Some(entry) => all.insert(url.to_owned(), entry),
            None => all.remove(url),
        };
        self.write(all).map(|()| before.is_some())
    }

    fn read(&self) -> Result<Entries, String> {
        let Some(file) = &self.file else {
            return Ok(self.memory.lock().unwrap_or_else(PoisonError::into_inner).clone());
        };
        match fs::read(file) {
            Ok(text) => serde_json::from_slice(&text)
                .map_err(|_| format!("{} is damaged: remove it, and sign in again", file.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Entries::new()),
            Err(error) => Err(format!("{}: {error}", file.display())),
        }
    }

    fn write(&self, all: Entries) -> Result<(), String> {
        let Some(file) = &self.file else {
            *self.memory.lock().unwrap_or_else(PoisonError::into_inner) = all;
            return Ok(());
        };
        let written = || {
            let folder = file.parent().ok_or(io::ErrorKind::NotFound)?;
            // A temporary file is readable by its owner only, and stays so.
            let mut temporary = tempfile::NamedTempFile::new_in(folder)?;
            serde_json::to_writer_pretty(&mut temporary, &all)?;
            temporary.flush()?;
            temporary.as_file().sync_all()?;
            temporary.persist(file).map(drop).map_err(|error| error.error)
        };
        written().map_err(|error: io::Error| format!("{} could not be written: {error}", file.display()))
    }

    /// A file to lock, so that other processes do not do the same at the same time.
    pub(super) fn lock_file(&self, what: &str) -> Result<Option<File>, String> {
        let Some(file) = &self.file else { return Ok(None) };
        let lock = file.with_extension(format!("{what}.lock"));
        let opened = || {
            fs::create_dir_all(file.parent().ok_or(io::ErrorKind::NotFound)?)?;
            File::create(&lock)
        };
        opened().map(Some).map_err(|error: io::Error| format!("{}: {error}", lock.display()))
    }
}
