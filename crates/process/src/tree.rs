//! A child with everything below it.
//!
//! A process group is not a process tree: a descendant may leave the group, the session and its
//! parents. So the process is made a child subreaper, which lets it inherit orphans instead of
//! init, and descendants are looked up in `/proc`: by parent, by session, and by a mark that every
//! descendant inherits in its environment. Each is signalled through a handle that cannot mean
//! another process, and the look is repeated until nothing is found.

use std::{
    collections::{BTreeMap, BTreeSet},
    ffi::OsStr,
    io,
    process::ExitStatus,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

use crate::{Status, watchdog};

/// The variable that marks a child and what it starts: `owner/child`, behind the marks that we
/// carry ourselves, with a comma between. So the tree of a Gripper inside a Gripper has both.
pub(crate) const MARK: &str = "GRIPPER_CHILD";

/// A look at `/proc` and a round of signals cost little, and the dying need a moment.
const BREATH: Duration = Duration::from_millis(5);
/// Rounds of killing before what is left is given up on; only the unkillable survive the first few.
const ROUNDS: usize = 100;

/// The children that run now.
static RUNNING: Mutex<Vec<Arc<Root>>> = Mutex::new(Vec::new());

/// Locks, also after a panic elsewhere: the lists here are whole at any time.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends every child that still runs, at once. For a process that is about to exit.
pub fn end_all() {
    let roots = lock(&RUNNING).clone();
    end_together(&roots);
}

/// Ends several trees at once. A look at all processes costs milliseconds, so one serves for all trees.
pub(crate) fn end_together(roots: &[Arc<Root>]) {
    let us = rustix::process::getpid().as_raw_pid();
    let sessions = roots.iter().map(|root| (root.pid.as_raw_pid(), root.started)).collect();
    let marks: Vec<&str> = roots.iter().map(|root| root.mark.as_str()).collect();
    for _ in 0..ROUNDS {
        let mut found = sweep::find(&sessions, &marks, |parent| parent == us);
        found.retain(|process| !process.dead);
        if found.is_empty() {
            roots.iter().for_each(|root| root.gone.store(true, Ordering::Release));
            return;
        }
        let groups: BTreeSet<i32> = found.iter().map(|process| process.group).collect();
        let ours = groups.into_iter().filter(|group| sessions.contains_key(group)).filter_map(Pid::from_raw);
        ours.for_each(|group| {
            kill_process_group(group, Signal::KILL).ok();
        });
        let away = found.iter().filter(|process| !sessions.contains_key(&process.group));
        away.for_each(|process| process.signal(Signal::KILL));
        std::thread::sleep(BREATH);
    }
}

/// Where a tree begins.
pub(crate) struct Root {
    pub(crate) pid: Pid,
    /// Tells the child from a later process with its number.
    started: Option<u64>,
    /// The mark of the tree's processes.
    mark: String,
    /// Processes found so far and not known to be reaped: the dead have no environment any more.
    seen: Mutex<BTreeSet<i32>>,
    /// Nothing of it lives any more, and that is known.
    gone: AtomicBool,
}

/// A running child.
pub(crate) struct Tree {
    child: Child,
    root: Arc<Root>,
    ended: bool,
}

/// Our ends of a child's pipes.
pub(crate) struct Pipes {
    pub(crate) stdin: Option<ChildStdin>,
    pub(crate) stdout: Option<ChildStdout>,
    pub(crate) stderr: Option<ChildStderr>,
}

impl Tree {
    pub(crate) fn start(mut command: Command) -> io::Result<Self> {
        // Before orphans come to us: so it goes to init, and no child of ours can mean no work.
        let set = |(name, value): (&OsStr, Option<&OsStr>)| {
            (name == MARK).then(|| value?.to_str().map(str::to_owned))?
        };
        let outer = command.as_std().get_envs().find_map(set);
        watchdog::ready(outer.as_deref())?;
        #[cfg(target_os = "linux")]
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        let mark = format!("{}/{}", watchdog::owner(), uuid::Uuid::now_v7());
        let outer = outer.map(|outer| outer + ",").unwrap_or_default();
        let child = command.env(MARK, outer + &mark).spawn()?;
        let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
        let pid = pid.ok_or_else(|| io::Error::other("it has no process id"))?;
        let started = sweep::started(pid);
        watchdog::note_start(pid, started);
        let root =
            Arc::new(Root { pid, started, mark, seen: Mutex::default(), gone: AtomicBool::new(false) });
        lock(&RUNNING).push(root.clone());
        Ok(Self { child, root, ended: false })
    }

    pub(crate) fn root(&self) -> Arc<Root> {
        self.root.clone()
    }

    pub(crate) fn take_pipes(&mut self) -> Pipes {
        let child = &mut self.child;
        Pipes { stdin: child.stdin.take(), stdout: child.stdout.take(), stderr: child.stderr.take() }
    }

    /// Waits for the child itself.
    pub(crate) async fn wait(&mut self) -> Status {
        match self.child.wait().await {
            Ok(status) => status_of(status),
            // Nobody else may reap it; were it so, how it ended would be unknown.
            Err(_) => Status::Signalled(0),
        }
    }

    /// Asks what is left to end, then makes it.
    pub(crate) async fn end(&mut self, grace: Duration) {
        let begin = Instant::now();
        let mut left = self.root.signal(Signal::TERM);
        while left > 0 && begin.elapsed() < grace {
            tokio::time::sleep(BREATH).await;
            self.child.try_wait().ok();
            left = self.root.find().len();
        }
        if left > 0 {
            self.root.kill();
        }
        self.reap();
    }

    fn reap(&mut self) {
        // Its end is near; reaped here, it does not depend on a runtime that may be gone.
        for _ in 0..ROUNDS {
            if !matches!(self.child.try_wait(), Ok(None)) {
                break;
            }
            std::thread::sleep(BREATH);
        }
        self.ended = true;
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        if !self.ended {
            self.root.kill();
            self.reap();
        }
        lock(&RUNNING).retain(|root| !Arc::ptr_eq(root, &self.root));
        watchdog::note_end(self.root.pid);
    }
}

impl Root {
    /// Ends the tree at once, without a wait for its manners.
    pub(crate) fn kill(&self) {
        for _ in 0..ROUNDS {
            if self.signal(Signal::KILL) == 0 {
                return;
            }
            std::thread::sleep(BREATH);
        }
    }

    /// Signals every process of the tree and reaps those that ended. Gives how many live.
    fn signal(&self, signal: Signal) -> usize {
        let found = self.find();
        let (group, away): (Vec<_>, Vec<_>) =
            found.iter().partition(|process| process.group == self.pid.as_raw_pid());
        // The group as a whole: what forks faster than we look cannot escape that.
        if !group.is_empty() {
            kill_process_group(self.pid, signal).ok();
        }
        away.iter().for_each(|process| process.signal(signal));
        found.len()
    }

    /// The living processes of the tree. Orphans that ended are reaped on the way.
    fn find(&self) -> Vec<sweep::Process> {
        if self.gone.load(Ordering::Acquire) {
            return Vec::new();
        }
        // The usual orphan is a cage's first process, which has ended in the child's group. Once the
        // child itself is reaped, nobody else waits for that group, so no look around is needed.
        if sweep::started(self.pid).is_none() {
            let ended = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
            while let Ok(Some(_)) = waitid(WaitId::Pgid(Some(self.pid)), ended) {}
        }
        // Whatever is left of a tree is a child of ours, or below one: no children, nothing left.
        let any = waitid(WaitId::All, WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT);
        if any.is_err_and(|error| error == rustix::io::Errno::CHILD) {
            return Vec::new();
        }
        let us = rustix::process::getpid().as_raw_pid();
        let roots = BTreeMap::from([(self.pid.as_raw_pid(), self.started)]);
        let found = sweep::find(&roots, &[&self.mark], |parent| parent == us);
        let mut seen = lock(&self.seen);
        seen.extend(found.iter().map(|process| process.pid));
        let alive: Vec<_> = found.into_iter().filter(|process| !process.dead).collect();
        // The child itself is reaped by whoever waits for it.
        seen.retain(|pid| *pid != self.pid.as_raw_pid() && !sweep::reap(*pid));
        alive
    }
}

/// Ends all that an owner left behind when it died: the sessions it told of, and what has its mark.
pub(crate) fn end_orphans(roots: &BTreeMap<i32, Option<u64>>, owner: &str) {
    let mut held = BTreeSet::new();
    for _ in 0..ROUNDS * 10 {
        let mut found = sweep::find(roots, &[owner], |_| true);
        found.retain(|process| !process.dead);
        if found.is_empty() {
            return;
        }
        // Without their owner, orphans are hard to find. So everybody is made to stand still first,
        // and only when a look finds nobody new it is made to end.
        let fresh = found.iter().filter(|process| held.insert(process.pid)).count() > 0;
        let signal = if fresh { Signal::STOP } else { Signal::KILL };
        found.iter().for_each(|process| process.signal(signal));
        if !fresh {
            std::thread::sleep(BREATH);
        }
    }
}

fn status_of(status: ExitStatus) -> Status {
    use std::os::unix::process::ExitStatusExt;
    match status.code() {
        Some(code) => Status::Exited(code),
        None => Status::Signalled(status.signal().unwrap_or(0)),
    }
}

#[cfg(target_os = "linux")]
mod sweep {
    use std::{
        collections::{BTreeMap, BTreeSet},
        fs,
    };

    use rustix::process::{
        Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
    };

    use super::MARK;

    /// One line of `/proc`.
    #[derive(Debug, Clone)]
    pub(super) struct Process {
        pub(super) pid: i32,
        pub(super) group: i32,
        pub(super) dead: bool,
        parent: i32,
        session: i32,
        started: u64,
    }

    impl Process {
        fn read(pid: i32) -> Option<Self> {
            let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
            let line = String::from_utf8_lossy(&line);
            // The name stands in brackets and may itself hold brackets and blanks.
            let fields: Vec<&str> = line.rsplit_once(") ")?.1.split(' ').collect();
            let number = |at: usize| fields.get(at)?.parse::<i32>().ok();
            Some(Self {
                pid,
                dead: matches!(*fields.first()?, "Z" | "X"),
                parent: number(1)?,
                group: number(2)?,
                session: number(3)?,
                started: fields.get(19)?.parse().ok()?,
            })
        }

        /// Signals this process, and no later one that got its number.
        pub(super) fn signal(&self, signal: Signal) {
            let Some(pid) = Pid::from_raw(self.pid) else { return };
            let Ok(handle) = pidfd_open(pid, PidfdFlags::empty()) else { return };
            if Self::read(self.pid).is_some_and(|now| now.started == self.started) {
                pidfd_send_signal(handle, signal).ok();
            }
        }
    }

    /// When a process began, in the system's own count.
    pub(super) fn started(pid: Pid) -> Option<u64> {
        Some(Process::read(pid.as_raw_pid())?.started)
    }

    /// Takes note of the end of an adopted child. True when there is nothing more to take note of.
    pub(super) fn reap(pid: i32) -> bool {
        let ended = Process::read(pid).is_none_or(|process| process.dead);
        if let (true, Some(pid)) = (ended, Pid::from_raw(pid)) {
            waitid(WaitId::Pid(pid), WaitIdOptions::EXITED | WaitIdOptions::NOHANG).ok();
        }
        ended
    }

    /// Every process of the sessions, with a mark that begins like one of `marks`, or below one of those;
    /// dead ones included. The mark counts where `parents` holds for the parent.
    pub(super) fn find(
        sessions: &BTreeMap<i32, Option<u64>>,
        marks: &[&str],
        parents: impl Fn(i32) -> bool,
    ) -> Vec<Process> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let all: Vec<Process> =
            entries.filter_map(|entry| Process::read(entry.file_name().to_str()?.parse().ok()?)).collect();
        // A number is free again only when no session is called by it: then there is none of ours.
        let reused: Vec<i32> = (all.iter())
            .filter(|process| sessions.get(&process.pid).is_some_and(|begin| *begin != Some(process.started)))
            .map(|process| process.pid)
            .collect();
        let begins = |process: &&Process| {
            (sessions.contains_key(&process.session) && !reused.contains(&process.session))
                || (parents(process.parent) && marked(process.pid, marks))
        };
        let mut mine: BTreeSet<i32> = all.iter().filter(begins).map(|process| process.pid).collect();
        let mut before = 0;
        while before < mine.len() {
            before = mine.len();
            let below = all.iter().filter(|process| mine.contains(&process.parent));
            let below: Vec<i32> = below.map(|process| process.pid).collect();
            mine.extend(below);
        }
        all.into_iter().filter(|process| mine.contains(&process.pid)).collect()
    }

    /// An orphan is ours by adoption; whose it was, its environment tells.
    fn marked(pid: i32, marks: &[&str]) -> bool {
        let ours = |one: &[u8]| marks.iter().any(|mark| one.starts_with(mark.as_bytes()));
        let of = |entry: &[u8]| {
            let has = entry.strip_prefix(MARK.as_bytes()).and_then(|entry| entry.strip_prefix(b"="));
            has.is_some_and(|has| has.split(|byte| *byte == b',').any(ours))
        };
        fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environ| environ.split(|byte| *byte == 0).any(of))
    }
}

/// Elsewhere the group is all there is to see.
#[cfg(not(target_os = "linux"))]
mod sweep {
    use std::collections::BTreeMap;

    use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

    pub(super) struct Process {
        pub(super) pid: i32,
        pub(super) group: i32,
        pub(super) dead: bool,
    }

    impl Process {
        pub(super) fn signal(&self, signal: Signal) {
            Pid::from_raw(self.pid).map(|pid| kill_process_group(pid, signal));
        }
    }

    pub(super) fn started(_pid: Pid) -> Option<u64> {
        None
    }

    pub(super) fn reap(_pid: i32) -> bool {
        true
    }

    pub(super) fn find(
        sessions: &BTreeMap<i32, Option<u64>>,
        _marks: &[&str],
        _parents: impl Fn(i32) -> bool,
    ) -> Vec<Process> {
        let alive = |pid: &&i32| Pid::from_raw(**pid).is_some_and(|pid| test_kill_process_group(pid).is_ok());
        sessions.keys().filter(alive).map(|pid| Process { pid: *pid, group: *pid, dead: false }).collect()
    }
}
