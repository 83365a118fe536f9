//! The one way out of a network with nobody in it.
//!
//! The child moves to new user and network namespaces, listens there on the loop-back address, and
//! hands the listening socket out. The socket goes on to belong to that network while we, outside,
//! accept what comes and carry it to the proxy. So nothing of ours runs in the cage, and no Unix socket
//! has to be reachable from it.

use std::{
    ffi::OsString,
    io,
    net::{Ipv4Addr, SocketAddrV4, TcpListener},
    os::fd::{AsRawFd, OwnedFd},
    path::PathBuf,
};

use rustix::{
    fs::{Mode, OFlags, open},
    net::{AddressFamily, SocketFlags, SocketType, bind, listen, socket_with},
};
use tokio::{io::copy_bidirectional, net::UnixStream, task::JoinSet};
use tokio_util::task::AbortOnDropHandle;

use super::line;

/// Nobody else listens in an empty network.
pub(super) const PORT: u16 = 3128;

/// What leads the usual programs to the proxy. A command's own servers are reached without it, unless
/// `home` says that the machine's are meant.
pub(in super::super) fn proxy_variables(home: bool) -> Result<Vec<(OsString, OsString)>, String> {
    let proxied = ["http_proxy", "https_proxy", "all_proxy"];
    let local = ("no_proxy", if home { "" } else { "localhost,127.0.0.1,::1" }.to_owned());
    let all = proxied.map(|name| (name, format!("http://127.0.0.1:{PORT}"))).into_iter().chain([local]);
    // Some programs read the small name only, some the large.
    let both =
        |(name, value): (&str, String)| [(name.to_uppercase(), value.clone()), (name.to_owned(), value)];
    Ok(all.flat_map(both).map(|(name, value)| (name.into(), value.into())).collect())
}

/// The child's side.
pub(super) struct Inside {
    users: String,
    groups: String,
    out: OwnedFd,
}

/// Both ends of the line on which the listening socket is handed out.
pub(super) fn pair() -> io::Result<(Inside, OwnedFd)> {
    let (out, outside) = line::pair()?;
    let (user, group) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let same = |id: u32| format!("{id} {id} 1");
    Ok((Inside { users: same(user), groups: same(group), out }, outside))
}

impl Inside {
    /// Between fork and exec: system calls only.
    pub(super) fn enter(&self) -> io::Result<()> {
        // SAFETY: the call takes flags; what it changes is this process, which has one thread.
        if unsafe { libc::unshare(libc::CLONE_NEWUSER | libc::CLONE_NEWNET) } != 0 {
            return Err(io::Error::last_os_error());
        }
        write(c"/proc/self/setgroups", "deny")?;
        write(c"/proc/self/uid_map", &self.users)?;
        write(c"/proc/self/gid_map", &self.groups)?;
        let stream = |kind| socket_with(AddressFamily::INET, kind, SocketFlags::CLOEXEC, None);
        raise(&stream(SocketType::DGRAM)?)?;
        let listener = stream(SocketType::STREAM)?;
        bind(&listener, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, PORT))?;
        listen(&listener, 128)?;
        line::hand_out(&self.out, &listener)
    }
}

fn write(file: &std::ffi::CStr, text: &str) -> io::Result<()> {
    let file = open(file, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    rustix::io::write(file, text.as_bytes())?;
    Ok(())
}

/// Brings the loop-back interface up, which is down in a new network.
fn raise(socket: &OwnedFd) -> io::Result<()> {
    // SAFETY: zero is a valid value for every field of this plain structure.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(c"lo".to_bytes()) {
        *to = from.cast_signed() as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the request is whole, lives through the call, and is of the kind that this call reads.
    let done = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Takes the listening socket and carries every connection to the proxy, until dropped.
pub(super) fn carry(outside: &OwnedFd, proxy: PathBuf) -> io::Result<AbortOnDropHandle<()>> {
    let listener = TcpListener::from(line::take(outside)?);
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    Ok(AbortOnDropHandle::new(tokio::spawn(async move {
        let mut talks = JoinSet::new();
        loop {
            tokio::select! {
                came = listener.accept() => match came {
                    Ok((mut inner, _)) => {
                        let proxy = proxy.clone();
                        talks.spawn(async move {
                            // A proxy that is gone is a connection that ends; the command says so itself.
                            if let Ok(mut outer) = UnixStream::connect(proxy).await {
                                copy_bidirectional(&mut inner, &mut outer).await.ok();
                            }
                        });
                    }
                    // Out of descriptors, for instance; the next moment may be better.
                    Err(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
                },
                Some(_) = talks.join_next() => {}
            }
        }
    })))
}
