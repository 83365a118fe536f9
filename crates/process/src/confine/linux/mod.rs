//! Linux: bubblewrap where it works, else Landlock; a filter of system calls in both.

mod bridge;
mod bubblewrap;
mod landlock;
mod line;
mod markers;
mod probe;
mod seccomp;
mod watch;

use std::{
    ffi::OsString,
    fs::File,
    io,
    os::fd::{AsRawFd, OwnedFd},
    path::Path,
    sync::Arc,
};

use rustix::io::{FdFlags, fcntl_setfd};
use seccompiler::BpfProgram;
use tokio::process::Command;
use tokio_util::task::AbortOnDropHandle;

use super::{Backend, Layer, Network, Profile, denied::Seen, profile};

pub(super) use bridge::proxy_variables;
pub(super) use probe::layers;

/// What the child does to itself between fork and exec. All is made before: here nothing may allocate.
#[derive(Default)]
pub(super) struct Entry {
    bridge: Option<bridge::Inside>,
    watch: Option<watch::Inside>,
    /// Open for the program that is run, and closed in every other.
    inherited: Vec<OwnedFd>,
    landlock: Option<OwnedFd>,
    kernel_log: bool,
    filters: Vec<BpfProgram>,
}

/// What has to stay while the child runs.
#[derive(Default)]
pub(super) struct Held {
    /// Removed when dropped.
    _markers: markers::Markers,
    outside: Option<OwnedFd>,
    bridge: Option<AbortOnDropHandle<()>>,
    asked: Option<watch::Outside>,
    watch: Option<AbortOnDropHandle<()>>,
}

impl Entry {
    pub(super) fn enter(self, command: &mut Command) {
        // SAFETY: `apply` makes system calls on what it owns; it allocates nothing and takes no lock.
        unsafe { command.pre_exec(move || self.apply()) };
    }

    fn apply(&self) -> io::Result<()> {
        if let Some(bridge) = &self.bridge {
            bridge.enter()?;
        }
        for fd in &self.inherited {
            fcntl_setfd(fd, FdFlags::empty())?;
        }
        // Without it an unprivileged process gets neither rules nor filters.
        rustix::thread::set_no_new_privs(true)?;
        if let Some(rules) = &self.landlock {
            drop_capabilities(self.kernel_log);
            landlock::restrict(rules)?;
        }
        if let Some(watch) = &self.watch {
            watch.enter()?;
        }
        for filter in &self.filters {
            seccomp::apply(filter)?;
        }
        Ok(())
    }
}

/// To read the kernel's log, and addresses in it and in `/proc`.
const CAP_SYSLOG: libc::c_ulong = 34;

/// Takes from root what makes it more than a user, for this process and what it runs: some of it, such
/// as looking into other processes, is not Landlock's to refuse. From others there is nothing to take.
fn drop_capabilities(kernel_log: bool) {
    let dropped = |capability: &libc::c_ulong| !(kernel_log && *capability == CAP_SYSLOG);
    for capability in (0..libc::c_ulong::from(u64::BITS)).filter(dropped) {
        // SAFETY: the call takes numbers; one that means nothing is refused.
        unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) };
    }
}

impl Held {
    /// Begins to answer what the child asks for, and to carry what it says to its proxy.
    pub(super) fn started(&mut self, network: &Network) -> Result<(), String> {
        if let Some(asked) = self.asked.take() {
            self.watch = asked.listen().map_err(|why| format!("nobody can watch the command: {why}"))?;
        }
        if let (Some(outside), Network::Proxy(proxy)) = (self.outside.take(), network) {
            let failed = |why: io::Error| format!("the way to the proxy could not be opened: {why}");
            self.bridge = Some(bridge::carry(&outside, proxy.socket()).map_err(failed)?);
        }
        Ok(())
    }
}

pub(super) fn prepare(
    backend: Backend,
    profile: &Profile,
    cwd: &Path,
    weaker: &mut Vec<String>,
    seen: &Arc<Seen>,
) -> Result<(Vec<OsString>, Entry, Held), String> {
    let (mut entry, mut held) = (Entry::default(), Held::default());
    let (inside, outside) = watch::pair(backend, profile, seen)?;
    (entry.watch, held.asked) = (Some(inside), Some(outside));
    if matches!(profile.network, Network::Proxy(_)) {
        super::probe().state("user namespaces").map_err(|why| format!("no network of its own: {why}"))?;
        let (inside, outside) = bridge::pair().map_err(|why| why.to_string())?;
        (entry.bridge, held.outside) = (Some(inside), Some(outside));
    }
    let filters = seccomp::filters(backend, profile)?;
    if backend == Backend::Landlock {
        entry.landlock = Some(landlock::rules(profile, weaker)?);
        entry.kernel_log = profile.kernel_log;
        entry.filters = filters;
        return Ok((Vec::new(), entry, held));
    }
    let plan = bubblewrap::Plan::new(profile, weaker);
    let memory = |why: io::Error| format!("no memory file: {why}");
    let filters: Vec<OwnedFd> =
        filters.iter().map(seccomp::file).collect::<Result<_, _>>().map_err(memory)?;
    let numbers: Vec<i32> = filters.iter().map(AsRawFd::as_raw_fd).collect();
    let (wrapper, blanks) = plan.arguments(profile, cwd, &numbers).map_err(memory)?;
    entry.inherited = filters.into_iter().chain(blanks).collect();
    Ok((wrapper, entry, Held { _markers: plan.markers, ..held }))
}

/// An empty or small file that has no name.
fn memory_file() -> io::Result<File> {
    let file = rustix::fs::memfd_create("gripper", rustix::fs::MemfdFlags::CLOEXEC)?;
    Ok(File::from(file))
}
