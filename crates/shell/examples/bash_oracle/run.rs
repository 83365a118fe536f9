//! Runs scripts in real bash and reads what the stubs wrote down.
//!
//! A script gets a bash of its own, started as Gripper starts it: `eval` in a shell that lives on would be quicker
//! but behaves differently after an error. The worker adopts whatever the script leaves running, so that it knows
//! when all of it has ended, and kills the lot at the deadline.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime};

use rustix::io::FdFlags;
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions};

use crate::generate::PROGRAMS;

/// The descriptor the stub writes to; its digits occur in no script.
const LOG: i32 = 86;

/// What the scratch folder holds before each script.
const FILES: &[(&str, &str)] = &[
    ("f1", "a src\n"),
    ("f2", "x y\nrm src \"$@\"\n"),
    ("-r", ""),
    ("s p", "x\n"),
    (".h", ""),
    ("d/k1", "k\n"),
    ("d/-f", ""),
];

/// How a program was called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Logged {
    /// The working directory.
    pub(crate) cwd: String,
    /// The arguments, the program's name first.
    pub(crate) argv: Vec<String>,
}

/// What a script did.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The programs called, in order of their start.
    pub(crate) calls: Vec<Logged>,
    /// Files of the scratch folder that were made or changed, absolute.
    pub(crate) written: Vec<String>,
    /// Killed at the deadline.
    pub(crate) timed_out: bool,
}

/// A folder of stubs, a scratch folder and a log.
pub(crate) struct Bash {
    stubs: PathBuf,
    scratch: PathBuf,
    home: PathBuf,
    log: File,
    /// The log again, at the number the stub knows, inherited by every script.
    _inherited: OwnedFd,
    clean: Vec<(String, u64, SystemTime)>,
    watch: Arc<Watch>,
}

/// What the thread at the deadline looks at.
#[derive(Default)]
struct Watch {
    /// The group of the running script, 0 when none runs.
    group: AtomicI32,
    /// When to kill it, in milliseconds since the start of the worker.
    deadline: AtomicU64,
    /// Counts the scripts that were killed.
    killed: AtomicU64,
}

/// Compiles the stub and links it to every name in `folder`.
pub(crate) fn build_stubs(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let source = folder.join("stub.c");
    let stub = folder.join("stub");
    fs::write(&source, include_str!("stub.c"))?;
    let compile = |extra: &[&str]| {
        Command::new("cc")
            .args(["-O1", "-o"])
            .arg(&stub)
            .arg(&source)
            .args(extra)
            .stderr(Stdio::null())
            .status()
    };
    // Without a dynamic linker to run it starts quicker, but not every machine has a static C library.
    if !compile(&["-static"])?.success() && !compile(&[])?.success() {
        return Err(io::Error::other("cc cannot compile the stub: install a C compiler"));
    }
    // A script may find out where the stubs are, and must not overwrite them.
    fs::set_permissions(&stub, fs::Permissions::from_mode(0o555))?;
    for name in PROGRAMS {
        fs::hard_link(&stub, folder.join(name))?;
    }
    Ok(())
}

impl Bash {
    /// Prepares a worker's folder below `root`, with the stubs that are in `stubs`.
    pub(crate) fn new(root: &Path, stubs: &Path, deadline: Duration) -> io::Result<Self> {
        let (scratch, home, log) = (root.join("s/p"), root.join("home"), root.join("log"));
        fs::create_dir_all(&home)?;
        limit()?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        let log = OpenOptions::new().read(true).append(true).create(true).open(log)?;
        let inherited = rustix::io::fcntl_dupfd_cloexec(&log, LOG)?;
        rustix::io::fcntl_setfd(&inherited, FdFlags::empty())?;
        if inherited.as_raw_fd() != LOG {
            return Err(io::Error::other("the descriptor of the log is taken"));
        }
        let watch = Arc::new(Watch::default());
        watch_over(Arc::clone(&watch), deadline);
        let mut bash = Self {
            stubs: stubs.to_owned(),
            scratch,
            home,
            log,
            _inherited: inherited,
            clean: Vec::new(),
            watch,
        };
        bash.reset()?;
        Ok(bash)
    }

    /// Where scripts start.
    pub(crate) fn scratch(&self) -> String {
        self.scratch.to_string_lossy().into_owned()
    }

    /// The home folder scripts see.
    pub(crate) fn home(&self) -> String {
        self.home.to_string_lossy().into_owned()
    }

    /// Runs `script` to its end or to the deadline.
    pub(crate) fn run(&mut self, script: &str) -> io::Result<Outcome> {
        self.log.set_len(0)?;
        let killed = self.watch.killed.load(Ordering::SeqCst);
        // No group yet means: not before the deadline has been set.
        self.watch.deadline.store(0, Ordering::SeqCst);
        let child = Command::new("/bin/bash")
            .args(["--norc", "--noprofile", "-c", script])
            .env_clear()
            .env("PATH", &self.stubs)
            .env("HOME", &self.home)
            .env("PWD", &self.scratch)
            // In other locales some escapes and lengths mean something else.
            .env("LC_ALL", "C.UTF-8")
            // A function that calls itself in a pipe would otherwise double its processes without end.
            .env("FUNCNEST", "10")
            .current_dir(&self.scratch)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        self.watch.group.store(i32::try_from(child.id()).unwrap_or(0), Ordering::SeqCst);
        while rustix::process::wait(WaitOptions::empty()).is_ok() {}
        self.watch.group.store(0, Ordering::SeqCst);
        let timed_out = self.watch.killed.load(Ordering::SeqCst) != killed;
        let calls = self.read_log()?;
        let written = self.changes();
        if !written.is_empty() {
            self.reset()?;
        }
        Ok(Outcome { calls, written, timed_out })
    }

    fn read_log(&mut self) -> io::Result<Vec<Logged>> {
        let mut bytes = Vec::new();
        self.log.seek(SeekFrom::Start(0))?;
        self.log.read_to_end(&mut bytes)?;
        let mut rest = bytes.as_slice();
        let mut calls = Vec::new();
        while let Some((head, tail)) = rest.split_first_chunk::<4>() {
            rest = tail;
            let mut strings = Vec::new();
            for _ in 0..u32::from_ne_bytes(*head) {
                let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
                let (text, after) = rest.split_at(end);
                strings.push(String::from_utf8_lossy(text).into_owned());
                rest = after.get(1..).unwrap_or_default();
            }
            if !strings.is_empty() {
                let cwd = strings.remove(0);
                calls.push(Logged { cwd, argv: strings });
            }
        }
        Ok(calls)
    }

    /// Puts the scratch folder back as it was. Scripts can make and change files, but no folders.
    fn reset(&mut self) -> io::Result<()> {
        for path in self.changes() {
            // What a script left running may have been quicker.
            fs::remove_file(path).or_else(|error| match error.kind() {
                io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })?;
        }
        for folder in ["d", "d/e", "e"] {
            fs::create_dir_all(self.scratch.join(folder))?;
        }
        for (name, text) in FILES {
            let path = self.scratch.join(name);
            if !path.exists() {
                fs::write(path, text)?;
            }
        }
        for name in ["p", "d/p"] {
            let path = self.scratch.join(name);
            if !path.exists() {
                fs::copy(self.stubs.join("stub"), path)?;
            }
        }
        self.clean = self.listing();
        Ok(())
    }

    /// What was made or changed since the last reset.
    fn changes(&self) -> Vec<String> {
        let now = self.listing();
        now.into_iter().filter(|entry| !self.clean.contains(entry)).map(|(path, ..)| path).collect()
    }

    fn listing(&self) -> Vec<(String, u64, SystemTime)> {
        let mut found = Vec::new();
        let mut folders = vec![self.scratch.clone(), self.home.clone()];
        while let Some(folder) = folders.pop() {
            let Ok(entries) = fs::read_dir(&folder) else { continue };
            for entry in entries.flatten() {
                let Ok(facts) = entry.metadata() else { continue };
                if facts.is_dir() {
                    folders.push(entry.path());
                } else {
                    let changed = facts.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                    found.push((entry.path().to_string_lossy().into_owned(), facts.len(), changed));
                }
            }
        }
        found.sort();
        found
    }
}

/// Bounds what a script can use up. The deadline bounds its time.
fn limit() -> io::Result<()> {
    let limits = [
        (Resource::Core, 0),
        (Resource::Fsize, 1 << 20),
        (Resource::As, 1 << 30),
        (Resource::Nofile, 128),
        (Resource::Nproc, 4_000),
    ];
    for (resource, most) in limits {
        let held = rustix::process::getrlimit(resource).maximum.unwrap_or(u64::MAX);
        let most = Some(most.min(held));
        rustix::process::setrlimit(resource, Rlimit { current: most, maximum: most })?;
    }
    Ok(())
}

fn watch_over(watch: Arc<Watch>, deadline: Duration) {
    let start = Instant::now();
    let allowed = u64::try_from(deadline.as_millis()).unwrap_or(u64::MAX);
    let parent = rustix::process::getppid();
    std::thread::spawn(move || {
        loop {
            std::thread::sleep(Duration::from_millis(20));
            let now = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
            let group = Pid::from_raw(watch.group.load(Ordering::SeqCst));
            if rustix::process::getppid() != parent {
                // Whoever started this worker is gone: nobody reads what it finds.
                group.map(|group| rustix::process::kill_process_group(group, Signal::KILL));
                kill_children();
                std::process::exit(1);
            }
            let Some(group) = group else { continue };
            // The first look at a script starts its clock.
            let until = watch.deadline.load(Ordering::SeqCst);
            if until == 0 {
                watch.deadline.store(now + allowed, Ordering::SeqCst);
            } else if now > until {
                watch.killed.fetch_add(1, Ordering::SeqCst);
                let _ = rustix::process::kill_process_group(group, Signal::KILL);
                kill_children();
            }
        }
    });
}

/// Kills what left the group: `set -m` gives children groups of their own.
fn kill_children() {
    let Ok(tasks) = fs::read_dir("/proc/self/task") else { return };
    for task in tasks.flatten() {
        let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace().filter_map(|number| number.parse().ok()) {
            if let Some(child) = Pid::from_raw(child) {
                let _ = rustix::process::kill_process(child, Signal::KILL);
            }
        }
    }
}
