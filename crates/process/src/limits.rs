//! How much may a child use?
//!
//! Where a control group (cgroup v2) can be made for a call, memory and processes are counted for the whole
//! tree. Elsewhere limits hold process by process, and the number of processes for the whole user.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::OnceLock,
};

use rustix::{
    fs::{Access, access},
    process::{Resource, Rlimit, setrlimit},
};
use tokio::process::Command;

use crate::Status;

/// Where control groups are, in the form of all current systems.
const MOUNT: &str = "/sys/fs/cgroup";
/// What has to be countable below a group for one of ours to be of use.
const COUNTED: [&str; 2] = ["memory", "pids"];
/// Processes of a cage itself.
const OWN: u64 = 2;

/// How much a child and what it starts may use. Without a control group, root is not bound by the number
/// of processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Limits {
    /// Processes and threads at once; without a control group, on top of those that run.
    pub processes: Option<u64>,
    /// Bytes of memory; without a control group, of data of each process.
    pub memory: Option<u64>,
    /// Bytes of one file.
    pub file_size: Option<u64>,
    /// Seconds of processor time of each process.
    pub cpu_seconds: Option<u64>,
}

/// Where control groups for calls are made, or why none can be.
pub fn groups() -> Result<&'static Path, &'static str> {
    static BASE: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let look = || find(Path::new(MOUNT), &fs::read_to_string("/proc/self/cgroup").unwrap_or_default());
    BASE.get_or_init(look).as_deref().map_err(String::as_str)
}

/// The nearest group above us in which we may make others and that counts what they use.
fn find(mount: &Path, own: &str) -> Result<PathBuf, String> {
    let own = own.lines().find_map(|line| line.strip_prefix("0::/")).ok_or("we are in no cgroup v2")?;
    let mut why = "no group above us hands on limits of memory and processes".to_owned();
    for folder in mount.join(own).ancestors().take_while(|folder| folder.starts_with(mount)) {
        let handed = fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap_or_default();
        if COUNTED.iter().all(|wanted| handed.split_whitespace().any(|known| known == *wanted)) {
            let tried = Limits { processes: Some(1), memory: Some(1 << 30), ..Limits::default() };
            match Group::new(folder, &tried) {
                Ok(_) => return Ok(folder.to_owned()),
                Err(error) => why = format!("{}: {error}", folder.display()),
            }
        }
    }
    Err(why)
}

/// A control group for one child, gone with it.
pub(crate) struct Group(PathBuf);

impl Group {
    fn new(base: &Path, limits: &Limits) -> io::Result<Self> {
        // Who comes in from a neighbouring group needs this right as well.
        access(base.join("cgroup.procs"), Access::WRITE_OK)?;
        let path = base.join(format!("gripper-{}", uuid::Uuid::now_v7()));
        fs::create_dir(&path)?;
        let group = Self(path);
        if let Some(most) = limits.processes {
            fs::write(group.0.join("pids.max"), most.saturating_add(OWN).to_string())?;
        }
        if let Some(most) = limits.memory {
            fs::write(group.0.join("memory.max"), most.to_string())?;
            // Not every kernel can swap, or end a whole group; the limit itself holds without.
            fs::write(group.0.join("memory.swap.max"), "0").ok();
            fs::write(group.0.join("memory.oom.group"), "1").ok();
        }
        Ok(group)
    }

    /// How often something happened, as the kernel counts it.
    fn count(&self, file: &str, what: &str) -> u64 {
        let counts = fs::read_to_string(self.0.join(file)).unwrap_or_default();
        let count = counts.lines().find_map(|line| line.strip_prefix(what)?.trim().parse().ok());
        count.unwrap_or(0)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // One that still has a process in it stays, empty of meaning: the kernel takes no other way.
        fs::remove_dir(&self.0).ok();
    }
}

impl Limits {
    /// Lets the child take these limits when it starts. The group has to stay as long as the child.
    pub(crate) fn apply(&self, command: &mut Command) -> io::Result<Option<Group>> {
        let base = if self.processes.or(self.memory).is_some() { groups().ok() } else { None };
        let group = base.map(|base| Group::new(base, self)).transpose()?;
        let enter =
            group.as_ref().map(|group| File::options().write(true).open(group.0.join("cgroup.procs")));
        let (enter, own) = (enter.transpose()?, self.own(group.is_some()));
        // SAFETY: system calls on what was made before; nothing is allocated and no lock is taken.
        unsafe {
            command.pre_exec(move || {
                if let Some(enter) = &enter {
                    rustix::io::write(enter, b"0")?;
                }
                for (resource, most, last) in &own {
                    setrlimit(*resource, Rlimit { current: Some(*most), maximum: Some(*last) })?;
                }
                Ok(())
            });
        }
        Ok(group)
    }

    /// The limits that a process has by itself: what is counted, the most, and the most it may raise it to.
    fn own(&self, grouped: bool) -> Vec<(Resource, u64, u64)> {
        // The system counts all processes of the user, so those that there are come on top; what is
        // counted for the whole machine is never too little.
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let running = load.split(['/', ' ']).nth(4).and_then(|count| count.parse::<u64>().ok());
        let processes = self.processes.zip(running).filter(|_| !grouped);
        let same = |resource, most: Option<u64>| most.map(|most| (resource, most, most));
        let all = [
            same(Resource::Nproc, processes.map(|(most, running)| most.saturating_add(running))),
            same(Resource::Data, self.memory.filter(|_| !grouped)),
            same(Resource::Fsize, self.file_size),
            // At the first it is told, at the second killed.
            self.cpu_seconds.map(|most| (Resource::Cpu, most, most.saturating_add(1))),
        ];
        all.into_iter().flatten().collect()
    }

    /// Which limits were hit, in words: by the group's count, by the signal that ended it, or by the
    /// system's own words on standard error.
    pub(crate) fn hit(&self, group: Option<&Group>, status: Status, stderr: &str) -> Vec<String> {
        let signal = match status {
            Status::Signalled(signal) => signal,
            // A shell, or the cage, around what was ended.
            Status::Exited(code) => code - 128,
            Status::TimedOut | Status::Cancelled => 0,
        };
        let said = |words: &[&str]| words.iter().any(|words| stderr.contains(words));
        let counted = |file, what| group.is_some_and(|group| group.count(file, what) > 0);
        let memory = counted("memory.events", "oom_kill ")
            || said(&["Cannot allocate memory", "MemoryError", "emory exhausted", "memory allocation of"]);
        let processes = counted("pids.events", "max ") || said(&["Resource temporarily unavailable"]);
        let file = signal == libc::SIGXFSZ || said(&["File too large", "File size limit exceeded"]);
        let time = signal == libc::SIGXCPU || said(&["CPU time limit exceeded"]);
        let all = [
            (self.memory.map(|most| most >> 20), memory, "MB of memory"),
            (self.processes, processes, "processes"),
            (self.file_size.map(|most| most >> 20), file, "MB in one file"),
            (self.cpu_seconds, time, "s of processor time"),
        ];
        let words = |(most, hit, what): (Option<u64>, bool, &str)| {
            most.filter(|_| hit).map(|most| format!("it came to the limit of {most} {what}"))
        };
        all.into_iter().filter_map(words).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Group, Limits, Status, find, fs};

    /// The kernel's folders need rights that tests rarely have, so these stand in for them.
    #[test]
    fn a_group_is_made_below_the_nearest_that_counts() {
        let mount = tempfile::tempdir().unwrap();
        let at = |name: &str| mount.path().join(name);
        fs::create_dir_all(at("user/app/own")).unwrap();
        assert!(find(mount.path(), "0::/user/app/own\n").unwrap_err().contains("no group above"));
        assert!(find(mount.path(), "1:cpu:/\n").unwrap_err().contains("no cgroup v2"));
        for (folder, counts) in [("user", "cpu memory pids"), ("user/app", "cpu")] {
            fs::write(at(folder).join("cgroup.subtree_control"), counts).unwrap();
            fs::write(at(folder).join("cgroup.procs"), "").unwrap();
        }
        let base = find(mount.path(), "1:cpu:/\n0::/user/app/own\n").unwrap();
        assert_eq!(base, at("user"));
        let limits = Limits { processes: Some(50), memory: Some(1 << 20), ..Limits::default() };
        let group = Group::new(&base, &limits).unwrap();
        let read = |name: &str| fs::read_to_string(group.0.join(name)).unwrap();
        assert_eq!((read("pids.max"), read("memory.max")), ("52".into(), "1048576".into()));
        let ended = Status::Exited(1);
        assert!(limits.hit(Some(&group), ended, "").is_empty());
        fs::write(group.0.join("pids.events"), "max 3\n").unwrap();
        fs::write(group.0.join("memory.events"), "oom 0\noom_kill 1\n").unwrap();
        let hit = limits.hit(Some(&group), ended, "");
        assert_eq!(hit, ["it came to the limit of 1 MB of memory", "it came to the limit of 50 processes"]);
    }
}
