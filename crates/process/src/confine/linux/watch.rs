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
        fd::{AsFd, AsRawFd, FromRawFd, OwnedFd},
        unix::{ffi::OsStrExt, fs::FileExt},
    },
    path::{Path, PathBuf},
    sync::Arc,
    thread,
    time::Duration,
};

use libc::{c_int, c_long};
use rustix::{
    event::{PollFd, PollFlags, poll},
    net::{AddressFamily, SocketFlags, SocketType, socketpair},
};
use seccompiler::BpfProgram;
use tokio::io::{Interest, unix::AsyncFd};
use tokio_util::task::AbortOnDropHandle;

use super::{
    super::denied::{Denial, Seen},
    Backend, Profile, bridge, line, seccomp,
};

/// The longest address of a socket.
const ADDRESS: usize = size_of::<libc::sockaddr_un>();
/// Local sockets of services that look up the names of users, which any program asks and does without.
const LOOKUPS: [&str; 7] = [
    "/run/nscd",
    "/var/run/nscd",
    "/run/nslcd",
    "/var/run/nslcd",
    "/run/systemd/userdb",
    "/run/samba/winbindd",
    "/var/lib/sss/pipes",
];
/// Where what is dead takes longer to make, nothing is given.
const PATIENCE: Duration = Duration::from_secs(1);

/// The child's side.
pub(super) struct Inside {
    watched: BpfProgram,
    /// The same refused without a question, where nobody can be asked.
    refused: BpfProgram,
    out: OwnedFd,
}

/// Our side, before the child has started.
pub(super) struct Outside {
    line: OwnedFd,
    watcher: Watcher,
}

/// Who answers, and what is found out by it.
struct Watcher {
    /// Whether the command has a network of its own, with nobody in it but itself.
    own: bool,
    seen: Arc<Seen>,
}

/// Both sides, for a profile in this back end.
pub(super) fn pair(
    backend: Backend,
    profile: &Profile,
    seen: &Arc<Seen>,
) -> Result<(Inside, Outside), String> {
    let (out, line) = line::pair().map_err(|why| why.to_string())?;
    let seccomp::Watched { watched, refused, own } = seccomp::watched(backend, profile, out.as_fd())?;
    Ok((Inside { watched, refused, out }, Outside { line, watcher: Watcher { own, seen: seen.clone() } }))
}

impl Inside {
    /// Between fork and exec: system calls only.
    pub(super) fn enter(&self) -> io::Result<()> {
        let program = libc::sock_fprog {
            len: self.watched.len() as libc::c_ushort,
            filter: self.watched.as_ptr().cast_mut().cast(),
        };
        let listens = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER;
        // Signals wait while we answer; older kernels do without.
        for flags in [listens | libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, listens] {
            let set = libc::SECCOMP_SET_MODE_FILTER;
            // SAFETY: the program outlives the call, which copies it, and its steps have the kernel's layout.
            let listener = unsafe { libc::syscall(libc::SYS_seccomp, set, flags, &raw const program) };
            if let Ok(number @ 0..) = c_int::try_from(listener) {
                // SAFETY: the kernel has just made this descriptor for us.
                return line::hand_out(&self.out, &unsafe { OwnedFd::from_raw_fd(number) });
            }
        }
        // The kernel is too old, or somebody who confines us listens already.
        seccomp::apply(&self.refused)
    }
}

impl Outside {
    /// Begins to answer, until all that was started has ended. Who drops it before the first question leaves those
    /// that come without an answer, which is an error.
    pub(super) fn listen(self) -> io::Result<Option<AbortOnDropHandle<()>>> {
        let Ok(listener) = line::take(&self.line) else { return Ok(None) };
        // SAFETY: an owned descriptor stays open and the same until it is dropped.
        let listener = unsafe { AsyncFd::register_with_interest(listener, Interest::READABLE) }?;
        let watcher = self.watcher;
        Ok(Some(AbortOnDropHandle::new(tokio::spawn(async move {
            // Most commands never ask. To take a question may block, so a thread does it for those that do.
            if listener.readable().await.is_ok() {
                let listener = listener.into_inner();
                // Without a thread the line is closed, and every question is an error.
                thread::Builder::new().spawn(move || watcher.answer_all(&listener)).ok();
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
    /// That it was done, though it was not.
    Done,
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
            libc::SYS_socketpair => self.refuse(Denial::Local(None)),
            libc::SYS_connect => self.address(&Asked { listener, call }, Way::Connect, second, third),
            libc::SYS_bind => self.address(&Asked { listener, call }, Way::Bind, second, third),
            libc::SYS_sendto => self.address(&Asked { listener, call }, Way::Send, fifth, sixth),
            libc::SYS_sendmsg | libc::SYS_sendmmsg => {
                let asked = Asked { listener, call };
                // A message begins with its address and the length of that.
                let address = asked.memory(second).map_or(0, u64::from_ne_bytes);
                let length = asked.memory(second.wrapping_add(8)).map_or(0, u32::from_ne_bytes);
                match address {
                    0 => Answer::Pass,
                    at => self.address(&asked, Way::Send, at, length.into()),
                }
            }
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
            // Connected in every case: what is not can be turned to another address. Of the two kinds that are, the
            // one for datagrams kills nobody who writes to it.
            (libc::AF_UNIX, libc::SOCK_STREAM, _) => gone(SocketType::STREAM),
            (libc::AF_UNIX, ..) => gone(SocketType::SEQPACKET),
            (
                libc::AF_INET | libc::AF_INET6,
                libc::SOCK_STREAM | libc::SOCK_DGRAM,
                0 | libc::IPPROTO_TCP | libc::IPPROTO_UDP,
            ) => dead(if family == libc::AF_INET {
                Ipv4Addr::LOCALHOST.into()
            } else {
                Ipv6Addr::LOCALHOST.into()
            }),
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

    /// Notes whom it wants to reach. Nothing but an empty network, the kernel or a dead socket is behind a call that
    /// passes; on a dead one nothing is connected, because that could undo the connection it counts as having.
    fn address(&self, asked: &Asked<'_>, way: Way, at: u64, length: u64) -> Answer {
        let address = match asked.address(at, length) {
            Ok(address) => address,
            Err(_) if self.own || way != Way::Connect => return Answer::Pass,
            Err(error) => return Answer::Refuse(error),
        };
        match (address, way) {
            (Address::Socket(_), Way::Bind) if self.own => {
                self.seen.serves();
                Answer::Pass
            }
            (Address::Socket(_), Way::Bind) => self.refuse(Denial::Network),
            (Address::Socket(address), _) => self.reach(address),
            (Address::Local(path), Way::Bind) => self.refuse(Denial::Local(Some(path))),
            (Address::Local(path), _) => self.local(asked, path),
            (Address::Nameless, _) => self.refuse(Denial::Local(None)),
            (Address::Other, Way::Connect) if !self.own => Answer::Done,
            (Address::Other, _) => Answer::Pass,
        }
    }

    fn reach(&self, address: SocketAddr) -> Answer {
        let (host, port) = (address.ip(), address.port());
        let home = host.is_loopback() || host.is_unspecified();
        // Nobody is reached on no port: so the resolver sorts its finds. The other is the way to the proxy.
        if port != 0 && !(self.own && home && port == bridge::PORT) {
            self.seen.add(Denial::Address(address));
        }
        match home {
            _ if self.own => Answer::Pass,
            true => Answer::Refuse(libc::ECONNREFUSED),
            false => Answer::Refuse(libc::ENETUNREACH),
        }
    }

    fn local(&self, asked: &Asked<'_>, path: PathBuf) -> Answer {
        let outside = Path::new("/proc").join(asked.call.pid.to_string());
        // As the command sees it, from its folder or its root.
        let there = match path.strip_prefix("/") {
            Ok(rest) => outside.join("root").join(rest),
            Err(_) => outside.join("cwd").join(&path),
        };
        match there.metadata().map_err(|why| why.raw_os_error()) {
            Err(Some(error @ (libc::ENOENT | libc::ENOTDIR))) => Answer::Refuse(error),
            // Of who has gone meanwhile nothing can be seen.
            Err(_) if asked.waits().is_err() => Answer::Refuse(libc::EINTR),
            _ if LOOKUPS.iter().any(|service| path.starts_with(service)) => Answer::Refuse(libc::EPERM),
            _ => self.refuse(Denial::Local(Some(path))),
        }
    }
}

/// What a call does with an address.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Connect,
    Bind,
    Send,
}

/// An internet socket whose connection was reset.
fn dead(host: IpAddr) -> io::Result<OwnedFd> {
    let listener = TcpListener::bind((host, 0))?;
    Ok(TcpStream::connect_timeout(&listener.local_addr()?, PATIENCE)?.into())
}

/// A local socket whose other end is closed.
fn gone(kind: SocketType) -> io::Result<OwnedFd> {
    let (one, _) = socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
    Ok(one)
}

/// A call that waits.
struct Asked<'a> {
    listener: &'a OwnedFd,
    call: &'a libc::seccomp_notif,
}

impl Asked<'_> {
    /// The address that it names, or the error for a call without one.
    fn address(&self, at: u64, length: u64) -> Result<Address, c_int> {
        let mut bytes = [0; ADDRESS];
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let bytes = bytes.get_mut(..length.min(ADDRESS)).unwrap_or_default();
        self.read(bytes, at)?;
        Address::parse(bytes).ok_or(libc::EINVAL)
    }

    fn memory<const SIZE: usize>(&self, at: u64) -> Result<[u8; SIZE], c_int> {
        let mut bytes = [0; SIZE];
        self.read(&mut bytes, at)?;
        Ok(bytes)
    }

    /// Reads the memory of the caller, if that still waits.
    fn read(&self, bytes: &mut [u8], at: u64) -> Result<(), c_int> {
        let memory = File::open(format!("/proc/{}/mem", self.call.pid)).map_err(|_| libc::EPERM)?;
        memory.read_exact_at(bytes, at).map_err(|_| libc::EFAULT)?;
        self.waits().map_err(|_| libc::EINTR)
    }

    /// Whether it waits still; else its number may mean another process by now.
    fn waits(&self) -> io::Result<()> {
        let mut id = self.call.id;
        ioctl(self.listener, libc::SECCOMP_IOCTL_NOTIF_ID_VALID, &mut id)
    }
}

/// Whom a call names.
enum Address {
    Socket(SocketAddr),
    Local(PathBuf),
    /// A local socket without a file.
    Nameless,
    /// The kernel, or nobody.
    Other,
}

impl Address {
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
            _ => Some(Self::Other),
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
        Answer::Done => {}
        Answer::Pass => plain.flags = libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32,
        Answer::Give(socket, flags) => {
            given.id = id;
            given.flags = libc::SECCOMP_ADDFD_FLAG_SEND as u32;
            given.srcfd = socket.as_raw_fd().cast_unsigned();
            given.newfd_flags = *flags;
            let Err(why) = ioctl(listener, libc::SECCOMP_IOCTL_NOTIF_ADDFD, &mut given) else { return };
            // A kernel that cannot give does not know the request; else the command has too many already.
            let known = why.raw_os_error().filter(|error| *error != libc::EINVAL);
            plain.error = -known.unwrap_or(libc::EPERM);
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
