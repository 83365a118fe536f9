//! What a command is confined to, from what was decided about it.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use gripper_process::{
    confine::{self, Backend, Network, Profile},
    live::Live,
    proxy::{Proxy, Rules},
};
use gripper_runtime::{
    Call, ErrorCode, Located, ToolError,
    permissions::{Behavior, CommandUse, PathUse, Policy, Sieve, Verdict, web::is_public},
};
use tokio_util::sync::CancellationToken;

use super::Settings;
use crate::{
    disk,
    walk::{self, Candidate, Limit, Root},
};

/// Looking for files to hide may take so long; a tree that is larger is not searched unasked.
const PATIENCE: Duration = Duration::from_secs(5);
/// What a back end cannot hold is told so far.
const SHOWN: usize = 3;
/// So many names below the root are held at most.
const HELD: usize = 120;
/// Folders of a home in which programs keep what they know.
const CONFIGURATION: [&str; 3] = ["", ".config", ".local/share"];

/// Why commands cannot be confined here, if they cannot.
pub(crate) fn missing() -> Option<String> {
    let layers = confine::probe();
    layers.backend.is_none().then(|| layers.missing())
}

/// What is said where commands must be confined and cannot be.
pub(crate) fn refusal(why: &str) -> String {
    format!(
        "commands must be confined here (sandbox.failIfUnavailable) and cannot be: {why}; install bubblewrap \
         or use a kernel with Landlock (gripper doctor looks again), or have a person turn that setting off"
    )
}

/// A command's cage.
pub(crate) struct Cage {
    pub(crate) profile: Option<Profile>,
    /// The same in words.
    pub(crate) words: String,
    /// What the model and the person have to know of it.
    pub(crate) note: Option<String>,
}

impl Cage {
    /// The cage for a call that may run; `bare` if a person agreed to none.
    pub(crate) async fn of(bare: bool, call: &Call, settings: &Settings) -> Result<Self, ToolError> {
        let none = |words: &str| Ok(Self { profile: None, words: words.to_owned(), note: None });
        if bare {
            return none("none, as agreed");
        }
        let reads = call.access.read_only() && !call.approved;
        let queries = queries(call);
        if let Some(why) = missing().filter(|_| settings.sandbox || queries || call.access.read_only()) {
            if settings.fail_if_unavailable {
                return Err(ToolError::new(ErrorCode::Denied, format!("not run: {}", refusal(&why))));
            }
            let note = Some(format!("nothing confined this command, because nothing here can: {why}"));
            return Ok(Self { note, ..none("none: this machine cannot confine")? });
        }
        if queries {
            // Programs that ask others show them who we are, so what they may read stays open.
            let profile = Profile { network: Network::Full, ..Profile::read_only(Vec::new()) };
            return Ok(Self { profile: Some(profile), ..none("writes nothing, the network as allowed")? });
        }
        if !reads && !settings.sandbox {
            return none("none");
        }
        let (hidden, nested) = Search::of(call, !reads).found().await?;
        let (profile, allowed) = if reads {
            // Where all that is read is known and was judged, the quicker wall is enough.
            let known = is_known(call);
            let quick = known && confine::probe().works(Backend::Landlock).is_ok();
            let backend = quick.then_some(Backend::Landlock);
            let profile = Profile { backend, kernel_log: known, ..Profile::read_only(hidden) };
            (profile, "writes nothing, no network".to_owned())
        } else {
            let roots: Vec<PathBuf> = call.policy.directories.iter().map(|root| real(root)).collect();
            let shown: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
            let (network, reach) = network(call, settings)?;
            let mut profile = Profile { hidden, network, ..Profile::writes(roots, Some(&call.policy.home)) };
            profile.read_only.extend(nested);
            (profile, format!("writes {} and temporary files only, {reach}", shown.join(", ")))
        };
        Ok(Self { profile: Some(profile), words: allowed, note: None })
    }
}

/// Whether it was let through as one that only asks others on the network.
pub(super) fn queries(call: &Call) -> bool {
    let only =
        |command: &CommandUse| !command.analysis.needs().hosts.is_empty() && command.analysis.only_queries();
    !call.approved && call.policy.flags.network_reads && call.access.command_use().is_some_and(only)
}

/// Whom a command in the sandbox may talk to: the hosts of the settings, and those that a person saw in the
/// command and agreed to.
fn network(call: &Call, settings: &Settings) -> Result<(Network, String), ToolError> {
    let needs = call.access.command_use().map(|command| command.analysis.needs()).unwrap_or_default();
    let approved = if call.approved { needs.hosts } else { Vec::new() };
    if approved.iter().any(String::is_empty) {
        return Ok((Network::Full, "the network as approved".to_owned()));
    }
    let hosts: Vec<String> = settings.allowed_hosts.iter().cloned().chain(approved).collect();
    if let Err(why) = confine::probe().state("user namespaces") {
        let lost = if hosts.is_empty() { String::new() } else { format!(", not even {}", hosts.join(", ")) };
        return Ok((Network::None, format!("no network{lost}, as there are no user namespaces: {why}")));
    }
    let failed = |why: String| ToolError::new(ErrorCode::Failed, format!("not run: {why}"));
    let rules = Rules::naming(&hosts, &settings.denied_hosts, is_public)
        .map_err(|bad| failed(format!("sandbox.network in the settings: {bad}")))?;
    // With no host at all it still says which one was wanted.
    let proxy = Proxy::start(rules).map_err(|why| failed(format!("the proxy cannot be started: {why}")))?;
    let reach =
        if hosts.is_empty() { "no network".to_owned() } else { format!("reaches {}", hosts.join(", ")) };
    Ok((Network::Proxy(Arc::new(proxy)), reach))
}

/// How a command was confined, in words: by what, and what that cannot hold.
pub(super) fn told(words: &str, live: &Live) -> String {
    let Some(confined) = live.confined() else { return words.to_owned() };
    let more = confined.weaker.len().saturating_sub(SHOWN);
    let mut weaker = confined.weaker;
    weaker.truncate(SHOWN);
    if more > 0 {
        weaker.push(format!("and {more} more"));
    }
    let but = if weaker.is_empty() { String::new() } else { format!(", but {}", weaker.join("; ")) };
    format!("{words} ({}{but})", confined.backend)
}

/// What the cage of a command kept it from, in words.
pub(crate) fn denied(live: &Live) -> Vec<String> {
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

/// A look for files that must stay hidden.
struct Search {
    policy: Arc<Policy>,
    cwd: PathBuf,
    cancel: CancellationToken,
    known: bool,
    writes: bool,
}

impl Search {
    fn of(call: &Call, writes: bool) -> Self {
        let (policy, cancel) = (call.policy.clone(), call.cancel.clone());
        Self { policy, cancel, cwd: call.cwd().to_owned(), known: is_known(call), writes }
    }

    /// Files that must not be read: those in the home always, those in the working directories when the
    /// command may come upon them; and what must stay as it is though it may write around it. A tree may be
    /// large and its disk slow, so nobody else waits for it.
    async fn found(self) -> Result<(Vec<PathBuf>, Vec<PathBuf>), ToolError> {
        disk::off_thread(move || {
            let (mut hidden, mut nested) = (of_home(&self.policy), Nested::default());
            if !self.known {
                for root in &self.policy.directories {
                    self.below(root, &mut hidden, &mut nested)?;
                }
            }
            Ok((hidden, nested.held()?))
        })
        .await?
    }

    fn below(&self, root: &Path, hidden: &mut Vec<PathBuf>, nested: &mut Nested) -> Result<(), ToolError> {
        let real = real(root);
        let at = Located { written: root.to_owned(), real: real.clone() };
        let root = Root { at, cwd: self.cwd.clone() };
        let sieve = Sieve::new(&self.policy, root.path_use(&real));
        let found = Mutex::new((hidden, nested));
        let seen = |file: Candidate<'_>| {
            let secret = || sieve.judge(&root.path_use(file.path)) != Behavior::Allow;
            let hides = !file.folder && secret();
            let holds = self.writes && Nested::counts(file.path, &real);
            if (hides || holds)
                && let Ok((hidden, nested)) = found.lock().as_deref_mut()
            {
                hidden.extend(hides.then(|| file.path.to_owned()));
                nested.0.extend(holds.then(|| file.path.to_owned()));
            }
        };
        search(&real, &|| self.cancel.is_cancelled(), &seen)
    }
}

/// Shows all that is in a folder, or says that it is too much.
fn search(
    root: &Path,
    cancelled: &(dyn Fn() -> bool + Sync),
    seen: &(dyn Fn(Candidate<'_>) + Sync),
) -> Result<(), ToolError> {
    let limit = Limit { cancelled, deadline: Instant::now() + PATIENCE };
    let words = "not run: there are too many files to find those that must stay hidden or unchanged; \
                 name the files, or ask for permission";
    let halted = walk::look_at_all(root, &limit, seen);
    halted.map_or(Ok(()), |_| Err(ToolError::new(ErrorCode::Failed, words)))
}

/// Entries below the working directories which make others run something later, as the root's own do.
#[derive(Default)]
struct Nested(Vec<PathBuf>);

impl Nested {
    /// Whether an entry is one of these. A package of others is neither opened nor worked in, but a
    /// repository is one wherever it lies.
    fn counts(path: &Path, root: &Path) -> bool {
        let name = path.file_name().unwrap_or_default();
        let package = || path.strip_prefix(root).unwrap_or(path).iter().any(|part| part == "node_modules");
        name.as_encoded_bytes().starts_with(b".")
            && path.parent() != Some(root)
            && !confine::protected_at(path).is_empty()
            && (name == ".git" || !package())
    }

    /// What stays as it is. Mounts cost the square of their number, so of many repositories each is held whole.
    fn held(self) -> Result<Vec<PathBuf>, ToolError> {
        if self.0.len() > HELD {
            let words = format!(
                "not run: {} folders here have settings of git, agents or editors that must stay as they are, and \
                 at most {HELD} can be held; work in a folder with fewer, or ask for permission to run it \
                 without the sandbox (dangerously_disable_sandbox)",
                self.0.len()
            );
            return Err(ToolError::new(ErrorCode::Failed, words));
        }
        let parts: Vec<PathBuf> = self.0.iter().flat_map(|entry| confine::protected_at(entry)).collect();
        Ok(if parts.len() > HELD { self.0 } else { parts })
    }
}

/// What stays as it is in the folders below these, for who confines a command without a call.
pub fn protected_below(roots: &[PathBuf]) -> Result<Vec<PathBuf>, ToolError> {
    let found = Mutex::default();
    for root in roots {
        let seen = |file: Candidate<'_>| {
            if Nested::counts(file.path, root)
                && let Ok(mut found) = found.lock()
            {
                Vec::push(&mut found, file.path.to_owned());
            }
        };
        search(root, &|| false, &seen)?;
    }
    Nested(found.into_inner().unwrap_or_default()).held()
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
