//! What a confined command tries to reach, told by the kernel.
//!
//! A few system calls of the command stop until we have answered: opening a socket, using an address, looking into
//! another process. So we know what was wanted, and can refuse in words that fit. Nothing is let through that
//! would be dangerous if the command changed its mind meanwhile: it talks into an empty network, or on a socket
//! that is dead. A dead socket can be asked about (`ifconfig` asks one for the machine's addresses, a look at
//! a missing daemon finds it missing), but its one connection is over, and no other can be made.

use std::{
    fs::File,
    io,
    mem::zeroed,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream},
    os::{
        fd::{AsRawFd, FromRawFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::FileExt},
    },
    path::{Path, PathBuf},
    sync::Arc,
    thread,
};

use libc::{c_int, c_long};
use rustix::event::{PollFd, PollFlags, poll};
use seccompiler::BpfProgram;
use tokio::io::{Interest, unix::AsyncFd};
use tokio_util::task::AbortOnDropHandle;

use super::{
    super::denied::{Denial, Seen},
    bridge, line, seccomp,
};

/// The longest address of a socket.
const ADDRESS: usize = size_of::<libc::sockaddr_un>();
/// Local sockets of services that look up the names of users, which any program asks and does without.
const LOOKUPS: [&str; 3] = ["/run/nscd/", "/var/run/nscd/", "/run/systemd/userdb/"];

/// The child's side.
pub(super) struct Inside {
    pub(super) watched: BpfProgram,
    /// The same refused without a question, where nobody can be asked.
    pub(super) refused: BpfProgram,
    out: OwnedFd,
}

/// Our side, before the child has started.
pub(super) struct Outside {
    line: OwnedFd,
    watcher: Watcher,
}

/// Who answers, and what is found out by it.
#[derive(Clone)]
struct Watcher {
    /// Whether the command has a network of its own, with nobody in it but itself.
    own: bool,
    seen: Arc<Seen>,
}

pub(super) fn pair(filters: seccomp::Watched, seen: &Arc<Seen>) -> io::Result<(Inside, Outside)> {
    let (out, line) = line::pair()?;
    let seccomp::Watched { watched, refused, own } = filters;
    Ok((Inside { watched, refused, out }, Outside { line, watcher: Watcher { own, seen: seen.clone() } }))
}

impl Inside {
    /// Between fork and exec: system calls only.
    pub(super) fn enter(&self) -> io::Result<()> {
        rustix::thread::set_no_new_privs(true)?;
        let program = libc::sock_fprog {
            len: self.watched.len() as libc::c_ushort,
            filter: self.watched.as_ptr().cast_mut().cast(),
        };
        let (set, flags) = (libc::SECCOMP_SET_MODE_FILTER, libc::SECCOMP_FILTER_FLAG_NEW_LISTENER);
        // SAFETY: the program outlives the call, which copies it, and its steps have the kernel's layout.
        let listener = unsafe { libc::syscall(libc::SYS_seccomp, set, flags, &raw const program) };
        match c_int::try_from(listener) {
            // SAFETY: the kernel has just made this descriptor for us.
            Ok(number @ 0..) => line::hand_out(&self.out, &unsafe { OwnedFd::from_raw_fd(number) }),
            // The kernel is too old, or somebody who confines us listens already.
            _ => seccomp::apply(&self.refused),
        }
    }
}

impl Outside {
    /// Begins to answer, until dropped or until all that was started has ended. Where nobody asks, nobody answers.
    pub(super) fn listen(self) -> io::Result<Option<AbortOnDropHandle<()>>> {
        let Ok(listener) = line::take(&self.line) else { return Ok(None) };
        // SAFETY: an owned descriptor stays open and the same until it is dropped.
        let listener = unsafe { AsyncFd::register_with_interest(listener, Interest::READABLE) }?;
        let watcher = self.watcher;
        Ok(Some(AbortOnDropHandle::new(tokio::spawn(async move {
            // Most commands never ask. To take a question may block, so a thread does it for those that do.
            if listener.readable().await.is_ok() {
                let listener = listener.into_inner();
                thread::spawn(move || watcher.answer_all(&listener));
            }
        }))))
    }
}

/// What a call gets for an answer.
enum Answer {
    /// This error.
    Refuse(c_int),
    /// The kernel's own.
    Pass,
    /// This socket; the flags say whether it is closed when another program is run.
    Give(OwnedFd, u32),
}

impl Watcher {
    fn answer_all(&self, listener: &OwnedFd) {
        loop {
            let mut waiting = [PollFd::new(listener, PollFlags::IN)];
            match poll(&mut waiting, None) {
                Err(rustix::io::Errno::INTR) => continue,
                Ok(_) if waiting.iter().any(|on| on.revents().contains(PollFlags::IN)) => {}
                // All have ended.
                _ => return,
            }
            // SAFETY: zeros are what the kernel wants to find there.
            let mut call: libc::seccomp_notif = unsafe { zeroed() };
            // Who was killed in the meantime waits no longer.
            if ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_RECV, &mut call).is_ok() {
                let answer = self.answer(listener, &call);
                send(listener, call.id, &answer);
            }
        }
    }

    fn answer(&self, listener: &OwnedFd, call: &libc::seccomp_notif) -> Answer {
        let [first, second, third, _, fifth, sixth] = call.data.args;
        match c_long::from(call.data.nr) {
            libc::SYS_socket => self.socket(first as c_int, second as c_int, third as c_int),
            libc::SYS_connect => self.address(listener, call, second, third),
            libc::SYS_sendto => self.address(listener, call, fifth, sixth),
            libc::SYS_listen => {
                self.seen.serves();
                Answer::Pass
            }
            libc::SYS_socketpair => self.refuse(Denial::Local(None)),
            _ => self.refuse(Denial::Process),
        }
    }

    fn refuse(&self, denial: Denial) -> Answer {
        self.seen.add(denial);
        Answer::Refuse(libc::EPERM)
    }

    /// A dead socket, if there is one of its kind.
    fn socket(&self, family: c_int, kind: c_int, protocol: c_int) -> Answer {
        let made = match (family, kind & 0xf, protocol) {
            // Connected, also where datagrams are wanted: those could be turned to another address.
            (libc::AF_UNIX, ..) => line::pair().map(|(one, _)| one),
            (
                libc::AF_INET,
                libc::SOCK_STREAM | libc::SOCK_DGRAM,
                0 | libc::IPPROTO_TCP | libc::IPPROTO_UDP,
            ) => dead(Ipv4Addr::LOCALHOST.into()),
            (
                libc::AF_INET6,
                libc::SOCK_STREAM | libc::SOCK_DGRAM,
                0 | libc::IPPROTO_TCP | libc::IPPROTO_UDP,
            ) => dead(Ipv6Addr::LOCALHOST.into()),
            _ => return self.refuse(Denial::Network),
        };
        let made = made.and_then(|socket| {
            if kind & libc::SOCK_NONBLOCK != 0 {
                rustix::io::ioctl_fionbio(&socket, true)?;
            }
            Ok(socket)
        });
        match made {
            Ok(socket) => Answer::Give(socket, (kind & libc::SOCK_CLOEXEC).cast_unsigned()),
            Err(why) => Answer::Refuse(why.raw_os_error().unwrap_or(libc::EPERM)),
        }
    }

    /// Notes whom it wants to reach. Nothing but an empty network is behind a call that passes.
    fn address(&self, listener: &OwnedFd, call: &libc::seccomp_notif, at: u64, length: u64) -> Answer {
        match Address::read(listener, call, at, length) {
            // The way to the proxy.
            Some(Address::Socket(to)) if self.own && to.ip().is_loopback() && to.port() == bridge::PORT => {
                Answer::Pass
            }
            Some(Address::Socket(address)) => {
                self.seen.add(Denial::Address(address));
                match address.ip().is_loopback() {
                    _ if self.own => Answer::Pass,
                    true => Answer::Refuse(libc::ECONNREFUSED),
                    false => Answer::Refuse(libc::ENETUNREACH),
                }
            }
            Some(Address::Local(path)) => {
                let outside = Path::new("/proc").join(call.pid.to_string());
                // As the command sees it, from its folder or its root.
                let there = match path.strip_prefix("/") {
                    Ok(rest) => outside.join("root").join(rest),
                    Err(_) => outside.join("cwd").join(&path),
                };
                if there.metadata().is_err_and(|why| why.kind() == io::ErrorKind::NotFound) {
                    return Answer::Refuse(libc::ENOENT);
                }
                if LOOKUPS.iter().any(|service| path.starts_with(service)) {
                    return Answer::Refuse(libc::EPERM);
                }
                self.refuse(Denial::Local(Some(path)))
            }
            Some(Address::Nameless) => self.refuse(Denial::Local(None)),
            None if self.own || c_long::from(call.data.nr) == libc::SYS_sendto => Answer::Pass,
            None => self.refuse(Denial::Network),
        }
    }
}

/// An internet socket whose connection was reset.
fn dead(host: IpAddr) -> io::Result<OwnedFd> {
    let listener = TcpListener::bind((host, 0))?;
    Ok(TcpStream::connect(listener.local_addr()?)?.into())
}

/// Whom a call names.
enum Address {
    Socket(SocketAddr),
    Local(PathBuf),
    /// A local socket without a file.
    Nameless,
}

impl Address {
    /// Reads it from the memory of the caller, if that still waits.
    fn read(listener: &OwnedFd, call: &libc::seccomp_notif, at: u64, length: u64) -> Option<Self> {
        let memory = File::open(format!("/proc/{}/mem", call.pid)).ok()?;
        let mut bytes = [0; ADDRESS];
        let bytes = bytes.get_mut(..ADDRESS.min(usize::try_from(length).ok()?))?;
        memory.read_exact_at(bytes, at).ok()?;
        let mut id = call.id;
        ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &mut id).ok()?;
        Self::parse(bytes)
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let (family, rest) = bytes.split_first_chunk::<2>()?;
        let port = || Some(u16::from_be_bytes(*rest.first_chunk()?));
        match c_int::from(u16::from_ne_bytes(*family)) {
            libc::AF_INET => {
                let host = Ipv4Addr::from(*rest.get(2..)?.first_chunk::<4>()?);
                Some(Self::Socket((host, port()?).into()))
            }
            libc::AF_INET6 => {
                let host = Ipv6Addr::from(*rest.get(6..)?.first_chunk::<16>()?);
                Some(Self::Socket(SocketAddr::new(IpAddr::from(host).to_canonical(), port()?)))
            }
            libc::AF_UNIX => match rest.split(|byte| *byte == 0).next()? {
                [] => Some(Self::Nameless),
                path => Some(Self::Local(std::ffi::OsStr::from_bytes(path).into())),
            },
            _ => None,
        }
    }
}

/// Who does not wait any more does not hear it, which is as well.
fn send(listener: &OwnedFd, id: u64, answer: &Answer) {
    // SAFETY: zero is a valid value for every field of these plain structures.
    let (mut plain, mut given): (libc::seccomp_notif_resp, libc::seccomp_notif_addfd) = unsafe { zeroed() };
    plain.id = id;
    match answer {
        Answer::Refuse(error) => plain.error = -error,
        Answer::Pass => plain.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
        Answer::Give(socket, flags) => {
            given.id = id;
            given.flags = libc::SECCOMP_ADDFD_FLAG_SEND as u32;
            given.srcfd = socket.as_raw_fd().cast_unsigned();
            given.newfd_flags = *flags;
            if ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_ADDFD, &mut given).is_ok() {
                return;
            }
            // A kernel that cannot give.
            plain.error = -libc::EPERM;
        }
    }
    ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_SEND, &mut plain).ok();
}

/// A request with the structure that belongs to it.
fn ioctl<T>(listener: &OwnedFd, request: libc::Ioctl, with: &mut T) -> io::Result<()> {
    // SAFETY: every caller names the request together with its structure, which lives through the call.
    let done = unsafe { libc::ioctl(listener.as_raw_fd(), request, &raw mut *with) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
