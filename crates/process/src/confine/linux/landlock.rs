//! A profile as rules of Landlock.
//!
//! A rule allows something in a folder and in all below; nothing takes it back further down. So where
//! something in a folder is to stay shut, the rule goes to the folder's other entries instead, one by
//! one. In such a folder itself nothing can then be created, removed or renamed.

use std::{
    ffi::OsStr,
    io,
    os::{
        fd::{AsRawFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, PathBeneath, Ruleset, RulesetAttr, RulesetCreated,
    RulesetCreatedAttr, Scope,
};
use rustix::fs::{Dir, FileType, Mode, OFlags, fstat, open, openat};

use super::{Network, Profile};

/// The newest rights that are asked for; an older kernel knows fewer.
const NEWEST: ABI = ABI::V6;
/// Devices that any program may write to.
const DEVICES: [&str; 8] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
    "/dev/ptmx",
    "/dev/pts",
];
/// What comes with a level of Landlock, and is open below it.
const GAINS: [(i64, &str); 3] = [
    (3, "files outside can be cut to nothing"),
    (5, "devices can be controlled"),
    (6, "processes outside can be signalled, and local sockets without a file reached"),
];

/// How much Landlock there is.
pub(super) fn level() -> Result<i64, String> {
    // SAFETY: with this flag the call reads no memory and only answers.
    let level = unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<u8>(), 0, 1) };
    match level {
        1.. => Ok(level),
        _ => Err(match io::Error::last_os_error().raw_os_error() {
            Some(libc::EOPNOTSUPP) => "it is switched off when the system starts".into(),
            _ => "this kernel has none (Linux 5.13 and newer can)".into(),
        }),
    }
}

/// Puts the calling process under the rules. For the moment between fork and exec: one system call.
pub(super) fn restrict(rules: &OwnedFd) -> io::Result<()> {
    // SAFETY: the call takes a descriptor that is open, and flags.
    let done = unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The rules for a profile.
pub(super) fn rules(profile: &Profile, weaker: &mut Vec<String>) -> Result<OwnedFd, String> {
    let failed = |why: &dyn std::fmt::Display| format!("Landlock refuses the rules: {why}");
    let level = level()?;
    weaker.extend(GAINS.iter().filter(|(since, _)| level < *since).map(|(_, gain)| (*gain).to_owned()));
    let mut ruleset =
        Ruleset::default().handle_access(AccessFs::from_all(NEWEST)).map_err(|why| failed(&why))?;
    ruleset = ruleset.scope(Scope::AbstractUnixSocket | Scope::Signal).map_err(|why| failed(&why))?;
    if profile.network == Network::None {
        ruleset = ruleset.handle_access(AccessNet::from_all(NEWEST)).map_err(|why| failed(&why))?;
    }
    let mut rules = Rules { ruleset: ruleset.create().map_err(|why| failed(&why))?, shut: Vec::new() };

    // Reading. Names may be listed anywhere: a home folder that cannot be listed helps nobody.
    let read = AccessFs::from_read(NEWEST);
    rules.spread(Path::new("/"), read, &profile.hidden).map_err(|why| failed(&why))?;
    if !profile.hidden.is_empty() && !profile.strict {
        rules.spread(Path::new("/"), AccessFs::ReadDir.into(), &[]).map_err(|why| failed(&why))?;
        weaker.push("names in hidden folders can be listed".into());
    }

    // Writing, but no devices: who may make them is root, and would have the disk.
    let write = AccessFs::from_all(NEWEST) & !(AccessFs::MakeBlock | AccessFs::MakeChar);
    let mut shut = profile.hidden.clone();
    for path in &profile.read_only {
        // The real target too, where the way there is a symbolic link.
        shut.extend(path.canonicalize());
        // Where a file is on the way, such as the `.git` of a submodule, nothing else can be in its place.
        let nearest = path.ancestors().find(|at| at.symlink_metadata().is_ok());
        if let Some(there) = nearest.filter(|at| *at == path || !at.is_dir()) {
            shut.push(there.to_path_buf());
        } else if profile.strict {
            shut.push(path.clone());
        } else if profile.writable.iter().any(|root| path.starts_with(root)) {
            weaker.push(format!("{} can be created", path.display()));
        }
    }
    rules.shut.clear();
    for root in &profile.writable {
        rules.spread(root, write, &shut).map_err(|why| failed(&why))?;
    }
    if !profile.strict {
        let told =
            |folder: &PathBuf| format!("nothing can be created or removed directly in {}", folder.display());
        weaker.extend(rules.shut.iter().map(told));
    }
    if !super::seccomp::keeps_metadata(profile) {
        weaker.push("modes and times of files outside can be changed".into());
    }
    for device in DEVICES {
        let use_it = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::Truncate | AccessFs::IoctlDev;
        if Path::new(device).exists() {
            rules.spread(Path::new(device), use_it, &[]).map_err(|why| failed(&why))?;
        }
    }
    let rules: Option<OwnedFd> = rules.ruleset.into();
    rules.ok_or_else(|| "there is no Landlock".to_owned())
}

struct Rules {
    ruleset: RulesetCreated,
    /// Folders whose entries have rules in place of themselves.
    shut: Vec<PathBuf>,
}

impl Rules {
    /// Allows `access` in `path` but not in `shut`.
    fn spread(&mut self, path: &Path, access: BitFlags<AccessFs>, shut: &[PathBuf]) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.spread_at(open(path, flags, Mode::empty())?, path, access, shut)
    }

    /// The same by open folders, so that an entry which is swapped meanwhile is not followed.
    fn spread_at(
        &mut self,
        at: OwnedFd,
        path: &Path,
        access: BitFlags<AccessFs>,
        shut: &[PathBuf],
    ) -> io::Result<()> {
        if shut.iter().any(|shut| path.starts_with(shut)) {
            return Ok(());
        }
        let kind = FileType::from_raw_mode(fstat(&at)?.st_mode);
        if kind != FileType::Directory || !shut.iter().any(|shut| shut.starts_with(path)) {
            let fits =
                if kind == FileType::Directory { access } else { access & AccessFs::from_file(NEWEST) };
            // A symbolic link is no place; what it leads to has rules of its own, or none.
            if kind != FileType::Symlink && !fits.is_empty() {
                (&mut self.ruleset).add_rule(PathBeneath::new(at, fits)).map_err(io::Error::other)?;
            }
            return Ok(());
        }
        self.shut.push(path.to_path_buf());
        let list = openat(&at, ".", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
        // What we cannot list we do not allow.
        let Ok(list) = list.and_then(Dir::new) else { return Ok(()) };
        for entry in list.flatten().filter(|entry| !matches!(entry.file_name().to_bytes(), b"." | b"..")) {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            // Gone in between is as good as never there.
            let Ok(below) = openat(&at, entry.file_name(), flags, Mode::empty()) else { continue };
            let path = path.join(OsStr::from_bytes(entry.file_name().to_bytes()));
            self.spread_at(below, &path, access, shut)?;
        }
        Ok(())
    }
}
