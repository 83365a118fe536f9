//! What does this kernel offer?

use std::{
    io,
    os::unix::process::CommandExt,
    path::Path,
    process::{Command, Stdio},
};

use super::{Layer, bridge, bubblewrap, landlock};

pub(in super::super) fn layers() -> Vec<Layer> {
    let layer = |name, state| Layer { name, state };
    vec![
        layer("bubblewrap", bubblewrap()),
        layer("landlock", landlock::level().map(|level| format!("ABI {level}"))),
        layer("seccomp", seccomp(libc::SECCOMP_RET_ERRNO).map(|()| "filters".into())),
        layer("refusals", seccomp(libc::SECCOMP_RET_USER_NOTIF).map(|()| "told by the kernel".into())),
        layer("user namespaces", namespaces()),
    ]
}

/// To be there is not enough: where namespaces are forbidden it starts and fails.
fn bubblewrap() -> Result<String, String> {
    let program = bubblewrap::program().ok_or("there is no bwrap; install the package bubblewrap")?;
    let mut try_out = Command::new(program);
    try_out.args(bubblewrap::BASE).args(["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]);
    try_out.args(["--unshare-net", "--"]).arg(program).arg("--version").stdin(Stdio::null());
    // As it is run in earnest: a `bwrap` that needs another user's rights does not get them.
    // SAFETY: as in `Entry::enter`; one system call.
    unsafe { try_out.pre_exec(|| Ok(rustix::thread::set_no_new_privs(true)?)) };
    let tried = try_out.output().map_err(|why| format!("{program} does not start: {why}"))?;
    if tried.status.success() {
        Ok(format!("{program} ({})", String::from_utf8_lossy(&tried.stdout).trim()))
    } else {
        let words = String::from_utf8_lossy(&tried.stderr);
        Err(format!("{program} does not work here: {}", words.lines().next().unwrap_or("it says nothing")))
    }
}

/// Whether a filter can answer in this way.
fn seccomp(action: u32) -> Result<(), String> {
    let ask = libc::SECCOMP_GET_ACTION_AVAIL;
    // SAFETY: the call reads the four bytes that it is pointed to, and changes nothing.
    let answer = unsafe { libc::syscall(libc::SYS_seccomp, ask, 0, &raw const action) };
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error().to_string()) }
}

/// Makes the namespaces that a proxy needs, in a child that then gives up.
fn namespaces() -> Result<String, String> {
    let (inside, _outside) = bridge::pair().map_err(|why| why.to_string())?;
    let mut child = Command::new(Path::new("/"));
    let done = libc::ECANCELED;
    // SAFETY: as in `Entry::enter`; what is called neither allocates nor locks.
    unsafe { child.pre_exec(move || inside.enter().and(Err(io::Error::from_raw_os_error(done)))) };
    match child.spawn() {
        Err(error) if error.raw_os_error() == Some(done) => Ok("users and networks".into()),
        Err(error) => Err(error.to_string()),
        Ok(_) => Err("a folder was run as a program".into()),
    }
}
