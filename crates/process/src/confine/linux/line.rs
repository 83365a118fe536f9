//! A line on which the child hands out one descriptor before it becomes the program.

use std::{
    io::{self, IoSlice, IoSliceMut},
    mem::MaybeUninit,
    os::fd::{AsFd, OwnedFd},
};

use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

/// The child's end and ours.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?)
}

/// Between fork and exec: system calls only.
pub(super) fn hand_out(line: &OwnedFd, handed: &OwnedFd) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut with = SendAncillaryBuffer::new(&mut space);
    let handed = [handed.as_fd()];
    with.push(SendAncillaryMessage::ScmRights(&handed));
    sendmsg(line, &[IoSlice::new(b"!")], &mut with, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// What the child handed out. It has become the program, so it is there already or never will be.
pub(super) fn take(line: &OwnedFd) -> io::Result<OwnedFd> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut with = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
    recvmsg(line, &mut [IoSliceMut::new(&mut [0])], &mut with, flags)?;
    let mut sent = with.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut handed) => handed.next(),
        _ => None,
    });
    sent.next().ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}
