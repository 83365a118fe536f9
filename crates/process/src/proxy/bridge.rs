//! The other end of the socket, inside of an empty network.
//!
//! Programs know how to use a proxy behind a port, not behind a socket. So a small process of ours
//! stands between the confinement and the command: it listens on the loopback interface in there,
//! carries bytes to the socket, and ends as the command does. It is on the command's side and is
//! trusted with nothing.

use std::{
    ffi::OsString,
    io,
    net::{Ipv4Addr, Shutdown, TcpListener, TcpStream},
    os::unix::{
        net::UnixStream,
        process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::Command,
    thread,
    time::Duration,
};

/// The port inside; the network is empty, so no other can have it yet.
pub const PORT: u16 = 3128;

/// Runs a program beside a listener on `port` that leads to `socket`. Gives the code to exit with:
/// that of the program, or 128 and the number of the signal that ended it.
pub fn run(socket: &Path, port: u16, program: &OsString, args: &[OsString]) -> io::Result<i32> {
    raise_loopback()?;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    let socket = socket.to_owned();
    thread::spawn(move || {
        loop {
            let Ok((client, _)) = listener.accept() else {
                // No descriptors are left, most likely; some will be.
                thread::sleep(Duration::from_millis(50));
                continue;
            };
            let socket = socket.clone();
            // Without a thread for it, a client is turned away.
            thread::Builder::new().spawn(move || carry(client, &socket)).ok();
        }
    });
    outlive_signals();
    let mut command = Command::new(program);
    command.args(args);
    #[cfg(target_os = "linux")]
    // SAFETY: one system call between fork and exec, which allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(|| {
            let kill = Some(rustix::process::Signal::KILL);
            rustix::process::set_parent_process_death_signal(kill).map_err(io::Error::from)
        });
    }
    let status = command.status()?;
    Ok(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0)))
}

fn carry(client: TcpStream, socket: &PathBuf) -> io::Result<()> {
    let server = UnixStream::connect(socket)?;
    let (mut client_in, mut server_out) = (client.try_clone()?, server.try_clone()?);
    let up = thread::Builder::new().spawn(move || {
        io::copy(&mut client_in, &mut server_out).ok();
        server_out.shutdown(Shutdown::Write).ok();
    })?;
    let (mut server_in, mut client_out) = (server, client);
    io::copy(&mut server_in, &mut client_out).ok();
    client_out.shutdown(Shutdown::Write).ok();
    up.join().ok();
    Ok(())
}

/// Signals to the whole group are meant for the program; its end is ours. A function, unlike being
/// deaf to them, is not inherited.
fn outlive_signals() {
    extern "C" fn nothing(_: libc::c_int) {}
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
        let function = nothing as extern "C" fn(libc::c_int);
        // SAFETY: the function does nothing, so it may be called at any time.
        unsafe { libc::signal(signal, function as libc::sighandler_t) };
    }
}

/// A new network has a loopback interface that is switched off.
#[cfg(target_os = "linux")]
fn raise_loopback() -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let any = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    // SAFETY: the structure is plain data, for which zeros are valid, and outlives both calls; which
    // part of the union is meant is said by the requests, and it is the same one.
    unsafe {
        let mut interface: libc::ifreq = std::mem::zeroed();
        interface.ifr_name[0] = b'l' as libc::c_char;
        interface.ifr_name[1] = b'o' as libc::c_char;
        if libc::ioctl(any.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut interface) != 0 {
            return Err(io::Error::last_os_error());
        }
        let up = libc::IFF_UP as libc::c_short;
        if interface.ifr_ifru.ifru_flags & up == 0 {
            interface.ifr_ifru.ifru_flags |= up;
            if libc::ioctl(any.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const interface) != 0 {
                return Err(io::Error::last_os_error());
            }
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn raise_loopback() -> io::Result<()> {
    Ok(())
}
