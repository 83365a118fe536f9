//! What a command is confined to, from what was decided about it.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Mutex,
    time::{Duration, Instant},
};

use gripper_process::{
    confine::{self, Backend, Profile},
    live::Live,
};
use gripper_runtime::{
    Call, ErrorCode, Located, ToolError,
    permissions::{Behavior, PathUse, Policy, Sieve, Verdict},
};

use super::Settings;
use crate::walk::{self, Candidate, Limit, Root};

/// Looking for files to hide may take so long; a tree that is larger is not searched unasked.
const PATIENCE: Duration = Duration::from_secs(5);
/// Folders of a home in which programs keep what they know.
const CONFIGURATION: [&str; 3] = ["", ".config", ".local/share"];

/// Why commands cannot be confined here, if they cannot.
pub(super) fn missing() -> Option<String> {
    let layers = confine::probe();
    layers.backend.is_none().then(|| {
        let missing =
            layers.layers.iter().filter_map(|layer| Some((layer.name, layer.state.as_ref().err()?)));
        missing.map(|(name, why)| format!("{name}: {why}")).collect::<Vec<_>>().join("; ")
    })
}

/// A command's cage.
pub(super) struct Cage {
    pub(super) profile: Option<Profile>,
    /// The same in words.
    pub(super) words: String,
}

impl Cage {
    /// The cage for a call that may run; `bare` if a person agreed to none.
    pub(super) fn of(bare: bool, call: &Call, settings: &Settings) -> Result<Self, ToolError> {
        let none = |words: &str| Ok(Self { profile: None, words: words.to_owned() });
        if bare {
            return none("none, as agreed");
        }
        let reads = call.access.read_only() && !call.approved;
        if !reads && !settings.sandbox {
            return none("none");
        }
        if let Some(why) = missing() {
            if settings.fail_if_unavailable {
                let words = format!("not run: commands cannot be confined here ({why}), and must be");
                return Err(ToolError::new(ErrorCode::Denied, words));
            }
            return none(&format!("none: {why}"));
        }
        let hidden = hidden(call)?;
        if reads {
            // Where all that is read is known and was judged, the quicker wall is enough.
            let quick = is_known(call) && confine::probe().works(Backend::Landlock).is_ok();
            let backend = quick.then_some(Backend::Landlock);
            let profile = Profile { backend, ..Profile::read_only(hidden) };
            return Ok(Self { profile: Some(profile), words: "writes nothing, no network".to_owned() });
        }
        let roots: Vec<PathBuf> = call.policy.directories.iter().map(|root| real(root)).collect();
        let shown: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
        let words = format!("writes {} and temporary files only, no network", shown.join(", "));
        let profile = Profile { hidden, ..Profile::writes(roots, Some(&call.policy.home)) };
        Ok(Self { profile: Some(profile), words })
    }
}

/// What the cage of a command kept it from, in words.
pub(super) fn denied(live: &Live) -> Vec<String> {
    let confined = live.confined();
    confined.into_iter().flat_map(|confined| confined.denied).map(|denial| denial.to_string()).collect()
}

/// Whether every file that the command reads is known, and so was judged: no pattern, nothing it might come upon.
fn is_known(call: &Call) -> bool {
    call.access.command_use().is_some_and(|command| command.analysis.verdict() == Verdict::ReadOnly)
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Files that must not be read: those in the home always, those in the working directories when the command
/// may come upon them.
fn hidden(call: &Call) -> Result<Vec<PathBuf>, ToolError> {
    let policy = &call.policy;
    let mut hidden = of_home(policy);
    if is_known(call) {
        return Ok(hidden);
    }
    for root in &policy.directories {
        let real = real(root);
        let root =
            Root { at: Located { written: root.clone(), real: real.clone() }, cwd: call.cwd().to_owned() };
        let sieve = Sieve::new(policy, root.path_use(&real));
        let found = Mutex::new(Vec::new());
        let wanted = |file: Candidate<'_>| {
            if sieve.judge(&root.path_use(file.path)) != Behavior::Allow
                && let Ok(mut found) = found.lock()
            {
                found.push(file.path.to_owned());
            }
            false
        };
        let limit = Limit { cancelled: &|| call.cancel.is_cancelled(), deadline: Instant::now() + PATIENCE };
        let walked = walk::newest_of_all(&root, None, &limit, Some(0), &wanted);
        if walked.halt.is_some() {
            let words = "not run: there are too many files to find those that must stay hidden; name the files, or ask for permission";
            return Err(ToolError::new(ErrorCode::Failed, words));
        }
        hidden.append(&mut found.into_inner().unwrap_or_default());
    }
    Ok(hidden)
}

/// What in the person's home holds secrets.
pub(super) fn of_home(policy: &Policy) -> Vec<PathBuf> {
    let sieve = Sieve::new(policy, PathUse::new(&policy.home, &policy.home, false));
    let secret = |path: &Path| sieve.judge(&PathUse::new(path, path, false)) != Behavior::Allow;
    let mut hidden = Vec::new();
    for folder in CONFIGURATION {
        for entry in fs::read_dir(policy.home.join(folder)).into_iter().flatten().flatten() {
            let path = entry.path();
            let folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
            if secret(&path) || folder && secret(&path.join("any")) {
                hidden.push(path);
            } else if folder {
                let inside = fs::read_dir(&path).into_iter().flatten().flatten();
                // One level deeper, for those with a single file of credentials; not in ordinary folders.
                let dotted = entry.file_name().as_encoded_bytes().starts_with(b".");
                hidden.extend(inside.map(|file| file.path()).filter(|file| dotted && secret(file)));
            }
        }
    }
    hidden
}
