//! Who ends the children when we cannot, because we were killed?
//!
//! A second process, started with the first child, holds the reading end of a pipe whose writing
//! end only we have. Through it goes which sessions begin and end; its end means that we are gone,
//! however that came, and then everything that we left behind is looked up and killed. The program
//! is that of the embedder, started anew: what a copy made by `fork` may do in a process with many
//! threads is too little.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    io::{self, BufRead, PipeWriter, Write},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Command, Stdio},
    sync::{Mutex, OnceLock},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fs::{OFlags, fcntl_setfl},
    process::Pid,
};

use crate::tree::{self, MARK, lock};

static PROGRAM: OnceLock<(PathBuf, Vec<OsString>)> = OnceLock::new();
static PIPE: Mutex<Option<PipeWriter>> = Mutex::new(None);
static OWNER: OnceLock<String> = OnceLock::new();

/// Says how a watchdog is started: as `program`, with `args` and one more that [`serve`] gets. It is
/// started when it is needed, once for this process. Without this call there is none.
pub fn arm(program: PathBuf, args: Vec<OsString>) {
    PROGRAM.get_or_init(|| (program, args));
}

/// The work of the watchdog: waits until standard input ends, then ends what `owner` left behind.
pub fn serve(owner: &str) -> io::Result<()> {
    // By less than a whole id, the children of others would be found too.
    uuid::Uuid::try_parse(owner).map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
    let mut sessions = BTreeMap::new();
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        let mut words = line.split(' ').map(str::parse::<u64>);
        let (Some(Ok(pid)), begin) = (words.next(), words.next()) else { continue };
        let Ok(pid) = i32::try_from(pid) else { continue };
        match begin {
            Some(begin) => sessions.insert(pid, begin.ok()),
            None => sessions.remove(&pid),
        };
    }
    tree::end_orphans(&sessions, owner);
    Ok(())
}

/// The first part of the marks of our children.
pub(crate) fn owner() -> &'static str {
    OWNER.get_or_init(|| uuid::Uuid::now_v7().to_string())
}

/// Makes sure that there is a watchdog, if one is wanted. `outer` is the mark of a Gripper around us.
pub(crate) fn ready(outer: Option<&str>) -> io::Result<()> {
    let Some((program, args)) = PROGRAM.get() else { return Ok(()) };
    let mut pipe = lock(&PIPE);
    if pipe.as_ref().is_none_or(broken) {
        let started = start(program, args, outer);
        *pipe = Some(started.map_err(|why| io::Error::new(why.kind(), format!("no watchdog: {why}")))?);
    }
    Ok(())
}

/// Tells of a session that begins.
pub(crate) fn note_start(pid: Pid, begin: Option<u64>) {
    note(&format!(
        "{} {}\n",
        pid.as_raw_pid(),
        begin.map_or_else(|| "-".to_owned(), |begin| begin.to_string())
    ));
}

/// Tells of a session of which nothing is left.
pub(crate) fn note_end(pid: Pid) {
    note(&format!("{}\n", pid.as_raw_pid()));
}

fn note(line: &str) {
    if let Some(pipe) = &mut *lock(&PIPE) {
        // One that does not hear this still knows our mark.
        pipe.write_all(line.as_bytes()).ok();
    }
}

/// True when somebody killed the watchdog. The next one finds what runs already by its mark.
fn broken(pipe: &PipeWriter) -> bool {
    let mut state = [PollFd::new(pipe, PollFlags::empty())];
    poll(&mut state, Some(&Timespec::default())).is_ok() && state[0].revents().contains(PollFlags::ERR)
}

fn start(program: &PathBuf, args: &[OsString], outer: Option<&str>) -> io::Result<PipeWriter> {
    let (reader, writer) = io::pipe()?;
    // One that was stopped must not stop us too.
    fcntl_setfl(&writer, OFlags::NONBLOCK)?;
    let mut command = Command::new(program);
    command.args(args).arg(owner()).current_dir("/").env_clear();
    command.stdin(reader).stdout(Stdio::null()).stderr(Stdio::null());
    // A Gripper around us that ends our tree ends this too.
    command.envs(outer.map(|outer| (MARK, outer)));
    // SAFETY: only system calls, which allocate nothing and take no lock.
    unsafe { command.pre_exec(detach) };
    // What is started ends at once; its child is the watchdog.
    command.spawn()?.wait()?;
    Ok(writer)
}

/// Leaves the parent, the terminal and all open files but the standard ones, and becomes deaf to
/// what a terminal or a polite person may send.
fn detach() -> io::Result<()> {
    // SAFETY: as above; the parent leaves without running anything of ours.
    unsafe {
        match libc::fork() {
            -1 => return Err(io::Error::last_os_error()),
            0 => {}
            _ => libc::_exit(0),
        }
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGTSTP] {
            libc::signal(signal, libc::SIG_IGN);
        }
        // Systems too old for it keep what they inherited.
        #[cfg(target_os = "linux")]
        libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
    }
    rustix::process::setsid().map(drop).map_err(io::Error::from)
}
