//! System calls that no confined command needs, refused with `EPERM`.

use std::{
    collections::BTreeMap,
    io::{self, Seek, Write},
    os::fd::{AsRawFd, BorrowedFd, OwnedFd},
};

use libc::c_long;
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen,
    SeccompCmpOp::{self, Eq, MaskedEq, Ne},
    SeccompCondition, SeccompFilter, SeccompRule, TargetArch, sock_filter,
};

use super::{Backend, Network, Profile, memory_file};

/// Changing mounts and namespaces, changing the machine, and what has been a way into the kernel more often
/// than useful.
#[rustfmt::skip]
const REFUSED: [c_long; 45] = [
    libc::SYS_acct, libc::SYS_add_key, libc::SYS_bpf, libc::SYS_chroot, libc::SYS_clock_settime,
    libc::SYS_delete_module, libc::SYS_fanotify_init, libc::SYS_finit_module, libc::SYS_fsconfig,
    libc::SYS_fsmount, libc::SYS_fsopen, libc::SYS_fspick, libc::SYS_init_module, libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register, libc::SYS_io_uring_setup, libc::SYS_kcmp, libc::SYS_kexec_file_load,
    libc::SYS_kexec_load, libc::SYS_keyctl, libc::SYS_lookup_dcookie, libc::SYS_mount,
    libc::SYS_mount_setattr, libc::SYS_move_mount, libc::SYS_move_pages, libc::SYS_name_to_handle_at,
    libc::SYS_nfsservctl, libc::SYS_open_by_handle_at, libc::SYS_open_tree, libc::SYS_perf_event_open,
    libc::SYS_pivot_root, libc::SYS_process_madvise,
    libc::SYS_quotactl, libc::SYS_quotactl_fd,
    libc::SYS_reboot, libc::SYS_request_key, libc::SYS_setdomainname, libc::SYS_sethostname, libc::SYS_setns,
    libc::SYS_settimeofday, libc::SYS_swapoff, libc::SYS_swapon, libc::SYS_umount2, libc::SYS_unshare,
    libc::SYS_userfaultfd,
];

/// Looking into other processes. Nobody does it by the way, so who tries is told of.
const LOOKING: [c_long; 4] =
    [libc::SYS_pidfd_getfd, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev, libc::SYS_ptrace];

/// Changes to a file that Landlock does not look at.
#[rustfmt::skip]
const METADATA: [c_long; 12] = [
    libc::SYS_fchmod, libc::SYS_fchmodat, FCHMODAT2, libc::SYS_fchown, libc::SYS_fchownat,
    libc::SYS_fremovexattr, libc::SYS_fsetxattr, libc::SYS_lremovexattr, libc::SYS_lsetxattr,
    libc::SYS_removexattr, libc::SYS_setxattr, libc::SYS_utimensat,
];
/// The same number everywhere, as of every call since 2019.
const FCHMODAT2: c_long = 452;

/// The same by their old names, which newer architectures never had.
#[cfg(target_arch = "x86_64")]
#[rustfmt::skip]
const OLD_METADATA: &[c_long] = &[
    libc::SYS_chmod, libc::SYS_chown, libc::SYS_futimesat, libc::SYS_lchown, libc::SYS_utime,
    libc::SYS_utimes,
];
#[cfg(not(target_arch = "x86_64"))]
const OLD_METADATA: &[c_long] = &[];

#[rustfmt::skip]
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWUSER, libc::CLONE_NEWNS, libc::CLONE_NEWPID, libc::CLONE_NEWNET, libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS, libc::CLONE_NEWCGROUP,
];

/// The filters of a profile. All of them apply, beside those that are [`watched`].
pub(super) fn filters(backend: Backend, profile: &Profile) -> Result<Vec<BpfProgram>, String> {
    let refuse = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    Ok(vec![compiled(rules(backend, profile), refuse)?, unknown()])
}

/// Filters of calls that tell whom a command wants to reach.
pub(super) struct Watched {
    /// It stops until somebody has answered.
    pub(super) watched: BpfProgram,
    /// What of it would do harm is refused, for where nobody listens.
    pub(super) refused: BpfProgram,
    /// Whether the command has a network of its own, with nobody in it but itself.
    pub(super) own: bool,
}

/// These too have to let through what `bwrap` does before it runs the command, and one message on `line`, which tells
/// us where to listen.
pub(super) fn watched(backend: Backend, profile: &Profile, line: BorrowedFd<'_>) -> Result<Watched, String> {
    let own = backend != Backend::Landlock || profile.network != Network::None;
    let harmful = |rules: &mut Rules| {
        rules.extend(LOOKING.iter().map(|call| (*call, Vec::new())));
        if profile.network != Network::Full {
            rules.insert(libc::SYS_socket, sockets(own)?);
            rules.insert(libc::SYS_socketpair, pairs()?);
        }
        Ok(())
    };
    let telling = |rules: &mut Rules| {
        if profile.network != Network::Full {
            let named = SeccompCondition::new(4, SeccompCmpArgLen::Qword, Ne, 0)?;
            rules.insert(libc::SYS_sendto, vec![SeccompRule::new(vec![named])?]);
            rules.extend([libc::SYS_connect, libc::SYS_bind].map(|call| (call, Vec::new())));
            if !own {
                let other = SeccompRule::new(vec![is(0, Ne, line.as_raw_fd())?])?;
                rules.insert(libc::SYS_sendmsg, vec![other]);
                rules.insert(libc::SYS_sendmmsg, Vec::new());
            }
        }
        Ok(())
    };
    let refuse = SeccompAction::Errno(libc::EPERM.cast_unsigned());
    let mut rules = Rules::new();
    let refused = compiled(harmful(&mut rules).map(|()| rules.clone()), refuse)?;
    // The library does not know this action, so another one stands for it until the filter is made.
    let mut watched = compiled(telling(&mut rules).map(|()| rules), SeccompAction::Trace(0))?;
    for step in watched.iter_mut().filter(|step| {
        u32::from(step.code) == libc::BPF_RET | libc::BPF_K && step.k == libc::SECCOMP_RET_TRACE
    }) {
        step.k = libc::SECCOMP_RET_USER_NOTIF;
    }
    Ok(Watched { watched, refused, own })
}

/// The sockets that are not simply made. In a network of its own a command may talk to itself; local sockets belong
/// to no network and lead to daemons that are not confined. Without one, what is left is to ask the kernel.
fn sockets(own: bool) -> Result<Vec<SeccompRule>, BackendError> {
    if own {
        return Ok(vec![SeccompRule::new(vec![is(0, Eq, libc::AF_UNIX)?])?]);
    }
    others(&[libc::AF_NETLINK])
}

/// All families but these; of what can be asked of the kernel, all but interfaces and connections.
fn others(families: &[libc::c_int]) -> Result<Vec<SeccompRule>, BackendError> {
    let family = families.iter().map(|family| is(0, Ne, *family)).collect::<Result<_, _>>()?;
    let kernel = vec![
        is(0, Eq, libc::AF_NETLINK)?,
        is(2, Ne, libc::NETLINK_ROUTE)?,
        is(2, Ne, libc::NETLINK_SOCK_DIAG)?,
    ];
    Ok(vec![SeccompRule::new(family)?, SeccompRule::new(kernel)?])
}

/// The pairs of sockets that are not made. One that stays with its other end leads nowhere else; one of datagrams, or
/// of what counts as such, can be turned to another address.
fn pairs() -> Result<Vec<SeccompRule>, BackendError> {
    let stays = |kind: &libc::c_int| matches!(*kind, libc::SOCK_STREAM | libc::SOCK_SEQPACKET);
    let kinds = (0..=0xf).filter(|kind| !stays(kind)).map(|kind| is(1, MaskedEq(0xf), kind));
    let foreign = is(0, Ne, libc::AF_UNIX);
    kinds.chain([foreign]).map(|condition| SeccompRule::new(vec![condition?])).collect()
}

/// Puts the calling process under a filter. For the moment between fork and exec.
pub(super) fn apply(filter: &BpfProgram) -> io::Result<()> {
    seccompiler::apply_filter(filter).map_err(|_| io::Error::from_raw_os_error(libc::EPERM))
}

fn compiled(rules: Result<Rules, BackendError>, action: SeccompAction) -> Result<BpfProgram, String> {
    let failed = |why: BackendError| format!("the filter of system calls: {why}");
    let arch = match () {
        () if cfg!(target_arch = "x86_64") => TargetArch::x86_64,
        () if cfg!(target_arch = "aarch64") => TargetArch::aarch64,
        () => TargetArch::riscv64,
    };
    let filter = SeccompFilter::new(rules.map_err(failed)?, SeccompAction::Allow, action, arch);
    filter.map_err(failed)?.try_into().map_err(failed)
}

/// Whether modes, owners and times are out of reach under Landlock: a filter can forbid them everywhere
/// or nowhere, and who writes files needs them.
pub(super) fn keeps_metadata(profile: &Profile) -> bool {
    profile.strict || profile.writable.len() <= usize::from(profile.private_tmp)
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn is(at: u8, op: SeccompCmpOp, value: libc::c_int) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(at, SeccompCmpArgLen::Dword, op, u64::from(value.cast_unsigned()))
}

fn rules(backend: Backend, profile: &Profile) -> Result<Rules, BackendError> {
    let mut rules: Rules = REFUSED.iter().map(|call| (*call, Vec::new())).collect();
    let namespace =
        |flag: &libc::c_int| SeccompRule::new(vec![is(0, MaskedEq(u64::from(flag.cast_unsigned())), *flag)?]);
    rules.insert(libc::SYS_clone, NAMESPACES.iter().map(namespace).collect::<Result<_, _>>()?);
    // Typing into a terminal from below it.
    let typing = |code: &libc::Ioctl| {
        let code = SeccompCondition::new(1, SeccompCmpArgLen::Dword, Eq, u64::from(*code as u32))?;
        SeccompRule::new(vec![code])
    };
    rules.insert(
        libc::SYS_ioctl,
        [libc::TIOCSTI, libc::TIOCLINUX].iter().map(typing).collect::<Result<_, _>>()?,
    );
    // The kernel's log may be read by whom the system lets, but neither emptied nor silenced.
    let reading = [0, 1, 3, 10].map(|action| is(0, Ne, action));
    rules.insert(libc::SYS_syslog, vec![SeccompRule::new(reading.into_iter().collect::<Result<_, _>>()?)?]);
    if profile.network != Network::Full && !(backend == Backend::Landlock && profile.network == Network::None)
    {
        let families = [libc::AF_INET, libc::AF_INET6, libc::AF_UNIX, libc::AF_NETLINK];
        rules.insert(libc::SYS_socket, others(&families)?);
    }
    if backend == Backend::Landlock && keeps_metadata(profile) {
        rules.extend(METADATA.iter().chain(OLD_METADATA).map(|call| (*call, Vec::new())));
    }
    Ok(rules)
}

/// Answers "no such call" to `clone3`, whose flags a filter cannot see (its callers then use `clone`),
/// and to the numbers of the x32 calls, which would pass by the other filter.
fn unknown() -> BpfProgram {
    const X32: u32 = 0x4000_0000;
    let step = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
    let refuse = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    vec![
        step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, 0),
        step(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 2, 0, X32),
        step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, 0, libc::SYS_clone3 as u32),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW),
        step(libc::BPF_RET | libc::BPF_K, 0, 0, refuse),
    ]
}

/// A filter as a file, in the form in which the kernel takes it.
pub(super) fn file(filter: &BpfProgram) -> io::Result<OwnedFd> {
    let bytes = filter.iter().flat_map(|step| {
        let (code, k) = (step.code.to_ne_bytes(), step.k.to_ne_bytes());
        [code[0], code[1], step.jt, step.jf, k[0], k[1], k[2], k[3]]
    });
    let mut file = memory_file()?;
    file.write_all(&bytes.collect::<Vec<u8>>())?;
    file.rewind()?;
    Ok(file.into())
}
