//! Keys of providers. They are never printed, and a command may give them.

use std::{ffi::OsString, path::PathBuf, sync::Arc, time::Duration};

use gripper_process::{Spec, Status};
use gripper_runtime::environment::inherited;
use secrecy::SecretString;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::{ModelError, Trouble};

/// How long a command may take to give a key.
const LIMIT: Duration = Duration::from_secs(10);
/// Bytes of what it prints that are kept.
const KEEP: usize = 64 * 1024;

/// Where the key of a provider comes from.
#[derive(Debug, Clone)]
pub enum Key {
    /// None is needed.
    None,
    /// It is known.
    Fixed(SecretString),
    /// A program prints it.
    Command {
        /// The program and its arguments; no shell sees them.
        words: Vec<String>,
        /// Where it runs.
        cwd: PathBuf,
        /// What it printed, until that is refused.
        known: Arc<Mutex<Option<SecretString>>>,
    },
}

impl Key {
    /// The key, and whether it is one from before that a newer one might replace.
    pub(super) async fn get(&self) -> Result<(Option<SecretString>, bool), ModelError> {
        match self {
            Key::None => Ok((None, false)),
            Key::Fixed(key) => Ok((Some(key.clone()), false)),
            Key::Command { words, cwd, known } => {
                let mut known = known.lock().await;
                if let Some(key) = &*known {
                    return Ok((Some(key.clone()), true));
                }
                let key = printed(words, cwd.clone()).await.map_err(|why| {
                    let what = format!("the command that gives the key, {}, {why}", words.join(" "));
                    ModelError::new(Trouble::Unauthorized, format!("{what}; see apiKeyHelper in settings"))
                })?;
                *known = Some(key.clone());
                Ok((Some(key), false))
            }
        }
    }

    /// Makes the next request ask for a new key.
    pub(super) async fn forget(&self) {
        if let Key::Command { known, .. } = self {
            *known.lock().await = None;
        }
    }
}

async fn printed(words: &[String], cwd: PathBuf) -> Result<SecretString, String> {
    let (program, args) = words.split_first().ok_or("is empty")?;
    let spec = Spec::exec(program, args.iter().map(OsString::from).collect(), cwd);
    let spec = Spec { env: inherited(), keep: KEEP, limit: LIMIT, ..spec };
    let ended = gripper_process::run(spec, &CancellationToken::new())
        .await
        .map_err(|error| format!("did not start: {error}"))?;
    match ended.status {
        Status::Exited(0) => {}
        Status::Exited(code) => return Err(format!("failed with code {code}")),
        Status::TimedOut => return Err(format!("took longer than {} seconds", LIMIT.as_secs())),
        Status::Signalled(_) | Status::Cancelled => return Err("was ended".to_owned()),
    }
    let text = ended.stdout.text();
    let key = text.trim();
    if key.is_empty() || key.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err("printed no key: one word on standard output is expected".to_owned());
    }
    Ok(key.into())
}
