//! What may a child do?
//!
//! A [`Profile`] says it, a back end of the system enforces it, and where none can, the child does not
//! start. [`probe`] tells what this machine has. See `docs/confinement.md`.

mod denied;
mod profile;
mod seatbelt;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
use linux as system;

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(not(target_os = "linux"))]
use elsewhere as system;

#[cfg(test)]
mod tests;

use std::{
    ffi::OsString,
    fmt,
    path::Path,
    sync::{Arc, OnceLock},
};

use tempfile::TempDir;
use tokio::process::Command;

use crate::proxy::Refusal;

pub use denied::Denial;
pub use profile::{Network, Profile, protected_at, protected_names};
pub use seatbelt::seatbelt;

/// What enforces a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Backend {
    /// Namespaces and mounts, made by `bwrap`, and a filter of system calls.
    Bubblewrap,
    /// Landlock and a filter of system calls. It can allow, but not forbid below what it allows.
    Landlock,
    /// The sandbox of macOS.
    Seatbelt,
}

impl Backend {
    /// All there are, the better first.
    pub const ALL: [Self; 3] = [Self::Bubblewrap, Self::Landlock, Self::Seatbelt];
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Bubblewrap => "bubblewrap",
            Self::Landlock => "landlock",
            Self::Seatbelt => "seatbelt",
        })
    }
}

/// One thing that confinement can be built from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Its name.
    pub name: &'static str,
    /// What there is of it, or why it is missing.
    pub state: Result<String, String>,
}

/// What this machine has for confinement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layers {
    /// Every layer, the missing ones with a reason.
    pub layers: Vec<Layer>,
    /// What a profile gets that names no back end.
    pub backend: Option<Backend>,
}

impl Layers {
    /// A layer's state; an unknown name is a missing layer.
    pub fn state(&self, name: &str) -> Result<&str, &str> {
        let layer = self.layers.iter().find(|layer| layer.name == name);
        let state = layer.map(|layer| layer.state.as_deref().map_err(String::as_str));
        state.unwrap_or(Err("this system does not know it"))
    }

    /// Every layer that is missing, and why.
    pub fn missing(&self) -> String {
        let missing = self.layers.iter().filter_map(|layer| Some((layer.name, layer.state.as_ref().err()?)));
        missing.map(|(name, why)| format!("{name}: {why}")).collect::<Vec<_>>().join("; ")
    }

    /// Whether a back end works here, or why not.
    pub fn works(&self, backend: Backend) -> Result<(), String> {
        let needed: &[&str] = match backend {
            Backend::Bubblewrap => &["bubblewrap", "seccomp"],
            Backend::Landlock => &["landlock", "seccomp"],
            Backend::Seatbelt => &["seatbelt"],
        };
        let missing = needed.iter().find_map(|name| Some((name, self.state(name).err()?)));
        missing.map_or(Ok(()), |(name, why)| Err(format!("{name}: {why}")))
    }
}

/// The back ends that may be used, and who says so.
static ALLOWED: OnceLock<(Vec<Backend>, String)> = OnceLock::new();

/// Leaves only these back ends, as `who` wants it. What is left out counts as missing, so this never makes
/// a cage weaker without a word. To be called before the first look; later calls change nothing.
pub fn limit_to(backends: Vec<Backend>, who: &str) {
    ALLOWED.set((backends, who.to_owned())).ok();
}

/// Looks what this machine has, once for the life of the process.
pub fn probe() -> &'static Layers {
    static LAYERS: OnceLock<Layers> = OnceLock::new();
    LAYERS.get_or_init(|| {
        let mut layers = Layers { layers: system::layers(), backend: None };
        if let Some((allowed, who)) = ALLOWED.get() {
            let off = Backend::ALL.into_iter().filter(|backend| !allowed.contains(backend));
            let off: Vec<String> = off.map(|backend| backend.to_string()).collect();
            for layer in layers.layers.iter_mut().filter(|layer| off.iter().any(|name| name == layer.name)) {
                layer.state = Err(format!("switched off by {who}"));
            }
        }
        layers.backend = Backend::ALL.into_iter().find(|backend| layers.works(*backend).is_ok());
        layers
    })
}

/// How a child was confined.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Confined {
    /// By what.
    pub backend: Backend,
    /// What of the profile this back end could not hold, in words. Empty for a strict profile.
    pub weaker: Vec<String>,
    /// What was refused, as far as it can be told.
    pub denied: Vec<Denial>,
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read(path) => write!(f, "to read {}", shown(path)),
            Self::Write(path) => write!(f, "to write {}", shown(path)),
            Self::Network => f.write_str("to use the network"),
            Self::Address(address) => write!(f, "to reach {address}"),
            Self::Local(Some(path)) => write!(f, "to reach the local socket {}", shown(path)),
            Self::Local(None) => f.write_str("to open a local socket"),
            Self::Process => f.write_str("to look into another process"),
            Self::Host(Refusal { host, port, reason }) => write!(f, "to reach {host}:{port}: {reason}"),
        }
    }
}

/// A path on one line, whatever its name.
fn shown(path: &Path) -> String {
    let plain = |c: char| if c.is_control() { c.escape_default().to_string() } else { c.to_string() };
    path.to_string_lossy().chars().map(plain).collect()
}

/// A profile made ready for one child.
pub(crate) struct Cage {
    /// The program that runs the child's, with its arguments. Empty where the child confines itself.
    wrapper: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    entry: system::Entry,
    held: Held,
}

/// What has to stay for as long as anything runs in the cage, and is tidied up when it is dropped.
pub(crate) struct Held {
    pub(crate) bars: Arc<Bars>,
    rest: system::Held,
    _tmp: Option<TempDir>,
}

/// What a cage keeps a child from, for the report.
pub(crate) struct Bars {
    profile: Profile,
    backend: Backend,
    weaker: Vec<String>,
    seen: Arc<denied::Seen>,
}

impl Cage {
    /// Makes a profile ready, or says why it cannot be held here.
    pub(crate) fn prepare(profile: &Profile, cwd: &Path) -> Result<Self, String> {
        let backend = match (profile.backend, probe().backend) {
            (Some(backend), _) => probe().works(backend).map(|()| backend)?,
            (None, Some(backend)) => backend,
            (None, None) => return Err(probe().missing()),
        };
        let mut profile = profile.clone();
        for root in &mut profile.writable {
            let real = root.canonicalize().map_err(|why| format!("{}: {why}", root.display()))?;
            for path in &mut profile.read_only {
                profile::rebase(path, root, &real);
            }
            *root = real;
        }
        profile.hidden = profile.hidden.iter().filter_map(|path| path.canonicalize().ok()).collect();
        let mut env = Vec::new();
        let tmp = if profile.private_tmp { Some(private_tmp()?) } else { None };
        if let Some(tmp) = &tmp {
            profile.writable.push(tmp.path().canonicalize().map_err(|why| why.to_string())?);
            env.push(("TMPDIR".into(), tmp.path().into()));
        }
        if let Network::Proxy(proxy) = &profile.network {
            env.extend(system::proxy_variables(proxy.leads_home())?);
        }
        let (mut weaker, seen) = (Vec::new(), Arc::default());
        let (wrapper, entry, rest) = system::prepare(backend, &profile, cwd, &mut weaker, &seen)?;
        if profile.strict && !weaker.is_empty() {
            return Err(weaker.join("; "));
        }
        let bars = Arc::new(Bars { profile, backend, weaker, seen });
        Ok(Self { wrapper, env, entry, held: Held { bars, rest, _tmp: tmp } })
    }

    /// What is to be started in place of `program`.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let Some((first, rest)) = self.wrapper.split_first() else { return Command::new(program) };
        let mut command = Command::new(first);
        command.args(rest).arg(program);
        command
    }

    /// Lets the child walk into the cage when it starts.
    pub(crate) fn enter(self, command: &mut Command) -> Held {
        command.envs(self.env);
        self.entry.enter(command);
        self.held
    }
}

impl Held {
    /// To be called when the child has started.
    pub(crate) fn started(&mut self) -> Result<(), String> {
        self.rest.started(&self.bars.profile.network)
    }
}

impl Bars {
    /// How the child was confined, and what it was refused.
    pub(crate) fn report(&self, cwd: &Path, stderr: &str) -> Confined {
        let mut denied = denied::denied(&self.profile, self.backend, cwd, stderr, &self.seen);
        if let Network::Proxy(proxy) = &self.profile.network {
            denied.extend(proxy.refused().into_iter().map(Denial::Host));
        }
        Confined { backend: self.backend, weaker: self.weaker.clone(), denied }
    }
}

fn private_tmp() -> Result<TempDir, String> {
    let made = tempfile::Builder::new().prefix("gripper-").tempdir();
    made.map_err(|why| format!("no temporary folder: {why}"))
}
