//! Real commands that try to get out, in every back end that this machine has.

#![cfg(target_os = "linux")]

use std::{
    fs,
    net::{TcpListener, UdpSocket},
    os::unix::{
        fs::{PermissionsExt, symlink},
        net::{UnixDatagram, UnixListener},
    },
    path::{Path, PathBuf},
    process::{Child, Command},
};

use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::{Backend, Confined, Denial, Network, Profile, probe, protected_names};
use crate::{
    Ended, Spec, StartError, Status,
    limits::Limits,
    live::{Keep, Live},
    run,
};

/// The back ends to test. A missing one is skipped, with the reason that a person would get.
#[allow(clippy::print_stderr, reason = "a skipped test says so")]
fn backends() -> Vec<Backend> {
    let works = |backend: &Backend| {
        let works = probe().works(*backend);
        works.inspect_err(|why| eprintln!("{backend} is not tested: {why}")).is_ok()
    };
    [Backend::Bubblewrap, Backend::Landlock].into_iter().filter(works).collect()
}

/// A project, what lies around it, and what listens on this machine.
struct World {
    folder: TempDir,
    tcp: TcpListener,
    udp: UdpSocket,
    _stream: UnixListener,
    _datagrams: UnixDatagram,
    bystander: Child,
}

impl World {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["out", "secrets", "project/.git/hooks", "project/src"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        for name in ["out/there", "secrets/key", "project/.git/config", "project/.secret", "project/src/main"]
        {
            fs::write(at(name), "content\n").unwrap();
        }
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let echo = udp.try_clone().unwrap();
        std::thread::spawn(move || {
            while let Ok((_, from)) = echo.recv_from(&mut [0; 8]) {
                echo.send_to(b"!", from).ok();
            }
        });
        Self {
            tcp: TcpListener::bind("127.0.0.1:0").unwrap(),
            udp,
            _stream: UnixListener::bind(at("out/stream")).unwrap(),
            _datagrams: UnixDatagram::bind(at("out/datagrams")).unwrap(),
            bystander: Command::new("sleep").arg("600").env("TREASURE", "1").spawn().unwrap(),
            folder,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join(name)
    }

    fn profile(&self, backend: Backend) -> Profile {
        Profile {
            hidden: vec![self.path("secrets"), self.path("project/.secret"), self.path("nothing")],
            backend: Some(backend),
            ..Profile::writes(vec![self.path("project")], None)
        }
    }

    fn spec(&self, line: &str, cage: Option<Profile>) -> Spec {
        let port = |address: std::io::Result<std::net::SocketAddr>| address.unwrap().port().to_string();
        let env = [
            ("PATH", std::env::var("PATH").unwrap()),
            ("TCP", port(self.tcp.local_addr())),
            ("UDP", port(self.udp.local_addr())),
            ("PID", self.bystander.id().to_string()),
            ("OUT", self.path("out").display().to_string()),
            ("SECRETS", self.path("secrets").display().to_string()),
            ("LC_ALL", "C".to_owned()),
        ];
        let env = env.map(|(name, value)| (name.into(), value.into())).to_vec();
        Spec { cage, ..Spec::shell(line, self.path("project"), env) }
    }

    async fn run(&self, line: &str, cage: Profile) -> (Ended, Confined) {
        let mut ended = run(self.spec(line, Some(cage)), &CancellationToken::new()).await.unwrap();
        let confined = ended.confined.take().unwrap();
        (ended, confined)
    }

    /// The names in the project, as a person outside sees them.
    fn names(&self) -> Vec<String> {
        let list = fs::read_dir(self.path("project")).unwrap();
        let mut names: Vec<_> = list.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.bystander.kill().ok();
        self.bystander.wait().ok();
    }
}

/// Every one of these works without a cage.
const ESCAPES: [&str; 35] = [
    "echo x > $OUT/new",
    "echo x >> $OUT/there",
    "rm $OUT/there",
    "chmod 777 $OUT/there",
    "mv $OUT/there .",
    "ln $OUT/there here && echo x >> here",
    "ln -s $OUT link && echo x > link/new",
    "rm -r src && ln -s $OUT src && echo x > src/new",
    "echo x > .git/hooks/post-commit",
    "mv .git/hooks .git/old",
    "mv .git old && mkdir -p .git/hooks && echo x > .git/hooks/post-commit",
    "echo x >> .git/config",
    "echo x > .git/new && mv .git/new .git/config",
    "rm .git/config",
    "echo x > .git/commondir",
    "mkdir .git/modules",
    "mkdir .claude && echo x > .claude/settings.json",
    "ln -s src .claude",
    "echo x > .envrc",
    "mv src/main .envrc",
    "mkdir -p .cargo && echo x > .cargo/config.toml",
    "cat $SECRETS/key",
    "ls $SECRETS",
    "cat /proc/self/root$SECRETS/key",
    "ln -s $SECRETS/key src/link && cat src/link",
    "cat .secret",
    "mv .secret src/open && cat src/open",
    "grep -q TREASURE /proc/$PID/environ",
    "kill -CONT $PID",
    "unshare --user true",
    "python3 -c 'import socket as s, os; s.create_connection((\"127.0.0.1\", int(os.environ[\"TCP\"])), 5)'",
    "python3 -c 'import socket as s, os; u = s.socket(s.AF_INET, s.SOCK_DGRAM); u.settimeout(5)
u.connect((\"127.0.0.1\", int(os.environ[\"UDP\"]))); u.send(b\"?\"); u.recv(8)'",
    "python3 -c 'import socket as s, os; s.socket(s.AF_UNIX).connect(os.environ[\"OUT\"] + \"/stream\")'",
    "python3 -c 'import socket as s, os
s.socketpair(s.AF_UNIX, s.SOCK_DGRAM)[0].sendto(b\"x\", os.environ[\"OUT\"] + \"/datagrams\")'",
    "python3 -c 'import socket as s, os
s.socketpair(s.AF_UNIX, s.SOCK_RAW)[0].sendmsg([b\"x\"], [], 0, os.environ[\"OUT\"] + \"/datagrams\")'",
];

/// No word of these says what was refused.
const SILENT: [&str; 2] = ["kill -CONT", "unshare --user"];

/// One process of a command may not look into another either.
const TRACE: &str = "python3 -c 'import ctypes, os, subprocess
child = subprocess.Popen([\"sleep\", \"5\"])
done = ctypes.CDLL(None).ptrace(16, child.pid, 0, 0)
child.kill(); os._exit(done != 0)'";

#[tokio::test]
async fn nothing_gets_out() {
    for line in ESCAPES.into_iter().chain([TRACE]) {
        let line = format!("{{ {line}\n}} && echo out");
        let bare = World::new();
        let done = run(bare.spec(&line, None), &CancellationToken::new()).await.unwrap();
        assert!(done.stdout.text().ends_with("out\n"), "{line} has to work bare: {}", done.stderr.text());
        for backend in backends() {
            let world = World::new();
            let cage = Profile { strict: true, ..world.profile(backend) };
            let (done, confined) = world.run(&line, cage).await;
            assert!(!done.stdout.text().contains("out\n"), "{backend}: {line}");
            assert!(confined.weaker.is_empty(), "a strict profile is held whole");
            let told = !confined.denied.is_empty() || SILENT.iter().any(|silent| line.contains(silent));
            assert!(told, "{backend}: {line} is told: {}", done.stderr.text());
        }
    }
}

#[tokio::test]
async fn what_is_allowed_works() {
    const LINE: &str = "set -e; echo x > src/new; mv src/new src/newer; rm src/main; mkdir src/a
cat /etc/passwd >/dev/null; echo x > .git/index; echo t > $TMPDIR/t; [ $(cat $TMPDIR/t) = t ]
sh -c 'exit 7'";
    for backend in backends() {
        let world = World::new();
        fs::write(world.path("project/.git/index"), "").unwrap();
        let (done, confined) = world.run(LINE, world.profile(backend)).await;
        assert_eq!(done.status, Status::Exited(7), "{backend}: {}", done.stderr.text());
        assert_eq!((confined.backend, confined.denied), (backend, Vec::new()));
        assert_eq!(fs::read_to_string(world.path("project/src/newer")).unwrap(), "x\n");
        assert_eq!(world.names(), [".git", ".secret", "src"], "{backend}: nothing is left behind");
        let weaker = confined.weaker.join("\n");
        assert_eq!(weaker.contains(".envrc can be created"), backend == Backend::Landlock, "{weaker}");
    }
}

#[tokio::test]
async fn who_may_write_nothing_has_a_temporary_folder_that_goes_away() {
    const LINE: &str = "cat src/main && echo x > $TMPDIR/x && echo $TMPDIR; chmod 777 src/main; echo x > new";
    for backend in backends() {
        let world = World::new();
        let cage = Profile { backend: Some(backend), ..Profile::read_only(vec![world.path("secrets")]) };
        let (done, _) = world.run(LINE, cage).await;
        let text = done.stdout.text().into_owned();
        let tmp =
            text.strip_prefix("content\n").unwrap_or_else(|| panic!("{backend}: {}", done.stderr.text()));
        assert!(tmp.len() > 1 && !Path::new(tmp.trim()).exists(), "{tmp}");
        assert_eq!(world.names(), [".git", ".secret", "src"], "{backend}");
        let mode = fs::metadata(world.path("project/src/main")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644, "{backend}");
    }
}

#[tokio::test]
async fn refusals_are_told_and_other_failures_are_not() {
    const LINE: &str = "cat $SECRETS/key; echo x > $OUT/new; echo x >> .git/config; cat missing; \
        rm '.git/config'; echo 'x: Permission denied' >&2; echo 'said: Permission denied, src/main'; \
        echo 'src/main: Permission denied' >&2";
    for backend in backends() {
        let world = World::new();
        let (_, confined) = world.run(LINE, world.profile(backend)).await;
        let read = Denial::Read(world.path("secrets/key"));
        let write = ["out/new", "project/.git/config"].map(|name| Denial::Write(world.path(name)));
        assert_eq!(confined.denied, [vec![read], write.to_vec()].concat(), "{backend}");
    }
}

/// What no program says in words is known from the kernel.
#[tokio::test]
async fn whom_a_command_wanted_to_reach_is_told() {
    const SETUP: &str = "import socket as s, os
tcp, udp = ((\"127.0.0.1\", int(os.environ[port])) for port in (\"TCP\", \"UDP\"))
def silently(what):
    try: what()
    except OSError: pass
";
    let own = |address: String| Denial::Address(address.parse().unwrap());
    for backend in backends() {
        let world = World::new();
        let (tcp, udp) = (world.tcp.local_addr().unwrap(), world.udp.local_addr().unwrap());
        let stream = world.path("out/stream");
        // Where there is a network to talk into, messages are not looked at.
        let messages = |to: std::net::SocketAddr| match backend {
            Backend::Landlock => vec![own(to.to_string())],
            _ => Vec::new(),
        };
        let tries = [
            ("s.create_connection(tcp, 5)", vec![own(tcp.to_string())]),
            ("s.socket(type=s.SOCK_DGRAM).sendto(b\"x\", udp)", vec![own(udp.to_string())]),
            ("s.socket().sendto(b\"x\", 0x20000000, tcp)", vec![own(tcp.to_string())]),
            ("s.socket().sendmsg([b\"x\"], [], 0x20000000, tcp)", messages(tcp)),
            ("[s.socket(type=s.SOCK_DGRAM).sendmsg([b\"x\"], [], 0, udp) for _ in range(3)]", messages(udp)),
            ("s.socket(type=s.SOCK_DGRAM).connect((\"127.0.0.1\", 0))", Vec::new()),
            ("s.create_connection((\"192.0.2.1\", 80), 5)", vec![own("192.0.2.1:80".to_owned())]),
            (
                "s.socket(s.AF_UNIX).connect(os.environ[\"OUT\"] + \"/stream\")",
                vec![Denial::Local(Some(stream))],
            ),
            (
                "s.socket(s.AF_UNIX, s.SOCK_DGRAM).sendto(b\"x\", os.environ[\"OUT\"] + \"/datagrams\")",
                vec![Denial::Local(Some(world.path("out/datagrams")))],
            ),
            ("s.socketpair(s.AF_UNIX, s.SOCK_DGRAM)", vec![Denial::Local(None)]),
            ("s.socket(s.AF_UNIX).connect(\"/nowhere\")", Vec::new()),
        ];
        for (line, told) in tries {
            let line = format!("python3 -c '{SETUP}silently(lambda: {line})'");
            let cage = Profile { backend: Some(backend), ..Profile::read_only(Vec::new()) };
            let (done, confined) = world.run(&line, cage).await;
            assert_eq!(done.stderr.text(), "", "{backend}: {line}");
            assert_eq!(confined.denied, told, "{backend}: {line}");
        }
        world.tcp.set_nonblocking(true).unwrap();
        assert!(world.tcp.accept().is_err(), "{backend}: nobody came");
    }
}

#[tokio::test]
async fn a_command_may_talk_to_itself_in_a_network_of_its_own() {
    const LINE: &str = "python3 -c 'import socket as s
one = s.create_server((\"0.0.0.0\", 0)); s.create_connection(one.getsockname())
two = s.socket(type=s.SOCK_DGRAM); two.bind((\"127.0.0.1\", 0)); two.sendto(b\"x\", two.getsockname()); two.recv(8)'";
    if backends().contains(&Backend::Bubblewrap) {
        let world = World::new();
        let (done, confined) = world.run(LINE, world.profile(Backend::Bubblewrap)).await;
        assert_eq!((done.status, confined.denied), (Status::Exited(0), Vec::new()), "{}", done.stderr.text());
    }
}

#[tokio::test]
async fn without_a_network_the_machine_can_be_looked_at() {
    const LINE: &str = "python3 -c 'import socket as s, fcntl
print(s.if_nameindex(), fcntl.ioctl(s.socket(type=s.SOCK_DGRAM), 0x8915, b\"lo\" + bytes(38))[20:24])
try: s.socket(s.AF_UNIX).connect(\"/nowhere\")
except OSError as error: print(error)'";
    if backends().contains(&Backend::Landlock) {
        let world = World::new();
        let bare = run(world.spec(LINE, None), &CancellationToken::new()).await.unwrap();
        let cage = Profile { backend: Some(Backend::Landlock), ..Profile::read_only(Vec::new()) };
        let (done, confined) = world.run(LINE, cage).await;
        assert_eq!(done.stdout.text(), bare.stdout.text(), "{}", done.stderr.text());
        assert_eq!((bare.status, confined.denied), (Status::Exited(0), Vec::new()));
    }
}

#[tokio::test]
async fn a_profile_that_cannot_be_held_runs_nothing() {
    let world = World::new();
    let elsewhere = Profile { backend: Some(Backend::Seatbelt), ..Profile::default() };
    let nowhere = Profile::writes(vec![world.path("nothing")], None);
    for cage in [elsewhere, nowhere] {
        let spec = world.spec("echo x > $OUT/new", Some(cage));
        let error = run(spec, &CancellationToken::new()).await.unwrap_err();
        assert!(matches!(&error, StartError::Unconfined { .. }), "{error}");
        assert!(error.to_string().contains("was not run"), "{error}");
        assert!(!world.path("out/new").exists());
    }
}

#[tokio::test]
async fn a_protected_link_is_weaker_and_a_strict_profile_refuses_it() {
    if !backends().contains(&Backend::Bubblewrap) {
        return;
    }
    let world = World::new();
    symlink("src/main", world.path("project/.envrc")).unwrap();
    let cage = world.profile(Backend::Bubblewrap);
    let (done, confined) = world.run("echo x > src/main", cage.clone()).await;
    assert_eq!((done.status, confined.weaker.len()), (Status::Exited(1), 1), "what it leads to is protected");
    let strict = world.spec("true", Some(Profile { strict: true, ..cage }));
    assert!(run(strict, &CancellationToken::new()).await.unwrap_err().to_string().contains("symbolic link"));
}

#[tokio::test]
async fn markers_stay_for_the_last_cage_and_no_longer() {
    if !backends().contains(&Backend::Bubblewrap) {
        return;
    }
    let world = World::new();
    // What a process that was killed left behind.
    let left =
        "import os; os.mknod('.envrc', 0o140000); os.mkdir('.claude', 0o555); os.utime('.claude', (0, 0))";
    let done =
        Command::new("python3").args(["-c", left]).current_dir(world.path("project")).status().unwrap();
    assert!(done.success());
    let wait = "while [ -e src/main ]; do sleep 0.01; done; echo x > .envrc; mkdir .claude/x";
    let long = world.run(wait, world.profile(Backend::Bubblewrap));
    let short = async {
        let line = "git init -q src && cd src && git status --short --ignored -uall; ls -A ../.claude";
        let (done, _) = world.run(line, world.profile(Backend::Bubblewrap)).await;
        assert_eq!(done.stdout.text(), "?? main\n", "git does not see them: {}", done.stderr.text());
        assert!(world.names().contains(&".envrc".to_owned()), "the other cage is still there");
        fs::remove_file(world.path("project/src/main")).unwrap();
    };
    let ((done, _), ()) = tokio::join!(long, short);
    assert_eq!(done.status, Status::Exited(1));
    assert!(done.stderr.text().contains("Read-only"), "{}", done.stderr.text());
    assert_eq!(world.names(), [".git", ".secret", "src"]);
}

#[tokio::test]
async fn the_whole_network_is_there_when_it_is_allowed() {
    for backend in backends() {
        let world = World::new();
        let cage = Profile { network: Network::Full, ..world.profile(backend) };
        for line in ["create_connection((\"127.0.0.1\", int(os.environ[\"TCP\"])))", "socket(s.AF_UNIX)"] {
            let line = format!("python3 -c 'import socket as s, os; s.{line}'");
            assert_eq!(world.run(&line, cage.clone()).await.0.status, Status::Exited(0), "{backend}: {line}");
        }
    }
}

#[tokio::test]
async fn limits_hold_and_are_told() {
    const TRIES: [(&str, &str); 3] = [
        ("head -c 5000000 /dev/zero > src/main", "1 MB in one file"),
        ("python3 -c 'bytes(300 << 20)'", "200 MB of memory"),
        ("while :; do :; done", "1 s of processor time"),
    ];
    let limits = Limits {
        file_size: Some(1 << 20),
        memory: Some(200 << 20),
        processes: Some(500),
        cpu_seconds: Some(1),
    };
    for cage in backends().into_iter().map(Some).chain([None]) {
        let world = World::new();
        for (line, told) in TRIES {
            let spec = world.spec(line, cage.map(|backend| world.profile(backend)));
            let live = Live::start(Spec { limits, ..spec }, Keep::default()).unwrap();
            let status = live.wait().await;
            assert_eq!(
                live.limits_hit(),
                [format!("it came to the limit of {told}")],
                "{cage:?}: {status:?}"
            );
        }
        assert_eq!(fs::metadata(world.path("project/src/main")).unwrap().len(), 1 << 20, "{cage:?}");
    }
}

#[test]
fn the_names_of_a_home_count_in_a_home() {
    let names = |root: &str| protected_names(root.as_ref(), Some("/home/dev".as_ref()));
    assert!(names("/home/dev/project").contains(&"/home/dev/project/.git/hooks/".into()));
    assert!(!names("/home/dev/project").iter().any(|name| name.ends_with(".bashrc")));
    assert!(names("/home/dev").contains(&"/home/dev/.bashrc".into()));
    assert!(names("/home").contains(&"/home/dev/.ssh/".into()));
}
