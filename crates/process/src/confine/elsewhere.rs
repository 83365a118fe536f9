//! Systems that are not Linux: the sandbox of macOS, or nothing.

use std::{ffi::OsString, path::Path, sync::Arc};

use tokio::process::Command;

use super::{Backend, Layer, Network, Profile, denied::Seen, seatbelt};

const PROGRAM: &str = "/usr/bin/sandbox-exec";

pub(super) fn layers() -> Vec<Layer> {
    let there = cfg!(target_os = "macos") && Path::new(PROGRAM).exists();
    let state = if there { Ok(PROGRAM.to_owned()) } else { Err(format!("there is no {PROGRAM}")) };
    vec![Layer { name: "seatbelt", state }]
}

/// Nothing is left to do between fork and exec.
pub(super) struct Entry;

impl Entry {
    pub(super) fn enter(self, _command: &mut Command) {}
}

/// Nothing is left to tidy up.
pub(super) struct Held;

impl Held {
    pub(super) fn started(&mut self, _network: &Network) -> Result<(), String> {
        Ok(())
    }
}

pub(super) fn proxy_variables(_home: bool) -> Result<Vec<(OsString, OsString)>, String> {
    Err("without a network of its own a command cannot be led to a proxy".into())
}

pub(super) fn prepare(
    _backend: Backend,
    profile: &Profile,
    _cwd: &Path,
    _weaker: &mut Vec<String>,
    _seen: &Arc<Seen>,
) -> Result<(Vec<OsString>, Entry, Held), String> {
    Ok((vec![PROGRAM.into(), "-p".into(), seatbelt(profile).into()], Entry, Held))
}
