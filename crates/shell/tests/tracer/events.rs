//! Reads what strace wrote and keeps what a read-only command must not do.

/// Something a command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// Opened for writing, created, renamed, removed, or otherwise changed.
    Changed(String),
    /// Reached for another machine or a service.
    Connected(String),
    /// Ran this program.
    Ran(String),
}

/// Places that are no files of anybody.
const HARMLESS: &[&str] = &["/dev/null", "/dev/tty", "/dev/stdout", "/dev/stderr", "/dev/full", "/dev/zero"];
const HARMLESS_BELOW: &[&str] = &["/dev/fd/", "/dev/pts/", "/proc/self/", "/proc/thread-self/"];

/// System calls that change what their path names.
const CHANGING: &[&str] = &[
    "chmod",
    "chown",
    "chroot",
    "creat",
    "fchmodat",
    "fchmodat2",
    "fchownat",
    "futimesat",
    "lchown",
    "link",
    "linkat",
    "lremovexattr",
    "lsetxattr",
    "mkdir",
    "mkdirat",
    "mknod",
    "mknodat",
    "mount",
    "pivot_root",
    "quotactl",
    "removexattr",
    "rename",
    "renameat",
    "renameat2",
    "rmdir",
    "setxattr",
    "swapon",
    "symlink",
    "symlinkat",
    "truncate",
    "umount2",
    "unlink",
    "unlinkat",
    "utime",
    "utimensat",
    "utimes",
];

const OPENING: &[&str] = &["open", "openat", "openat2"];
const WRITING: &[&str] = &["O_WRONLY", "O_RDWR", "O_CREAT", "O_TRUNC", "O_APPEND", "O_TMPFILE"];
const SENDING: &[&str] = &["connect", "sendto", "sendmsg", "sendmmsg", "bind", "listen"];

/// Name look-ups ask local services; they answer from files that are readable anyway.
const LOOKUPS: &[&str] = &["/var/run/nscd/socket", "/run/nscd/socket", "/run/systemd/userdb/"];

/// What one line tells, if it matters.
pub(crate) fn event(line: &str) -> Option<Event> {
    let (name, rest) = line.split_once('(')?;
    let name = name.rsplit(' ').next()?;
    let said = || line.to_owned();
    if name == "execve" || name == "execveat" {
        return line.trim_end().ends_with("= 0").then(|| Event::Ran(quoted(rest).unwrap_or_default()));
    }
    if SENDING.contains(&name) {
        let local = rest.contains("AF_NETLINK") || LOOKUPS.iter().any(|place| rest.contains(place));
        let far = rest.contains("AF_INET") || rest.contains("AF_UNIX") || name == "listen";
        return (far && !local).then(|| Event::Connected(said()));
    }
    let opens = OPENING.contains(&name) && WRITING.iter().any(|flag| rest.contains(flag));
    if !opens && !CHANGING.contains(&name) {
        return None;
    }
    let path = quoted(rest).unwrap_or_default();
    let harmless =
        HARMLESS.contains(&path.as_str()) || HARMLESS_BELOW.iter().any(|place| path.starts_with(place));
    (!harmless).then(|| Event::Changed(said()))
}

/// The first string among the arguments.
fn quoted(arguments: &str) -> Option<String> {
    let (_, rest) = arguments.split_once('"')?;
    let mut text = String::new();
    let mut letters = rest.chars();
    loop {
        match letters.next()? {
            '"' => return Some(text),
            '\\' => text.push(letters.next()?),
            letter => text.push(letter),
        }
    }
}
