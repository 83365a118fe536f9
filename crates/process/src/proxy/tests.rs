use std::{
    ffi::OsString,
    io::Write,
    net::{IpAddr, SocketAddr},
    os::unix::fs::PermissionsExt,
    path::PathBuf,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rstest::rstest;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream, UnixStream},
    process::Command,
};

use super::{BadPattern, CONNECTIONS, Proxy, Rules, bridge, rules::place};

/// Where the test that runs inside of an empty network finds its socket.
const SOCKET: &str = "GRIPPER_TEST_BRIDGE";

/// Stands in for the table of addresses, which is the caller's.
fn public(address: IpAddr) -> bool {
    !(address.is_loopback()
        || ["10.", "169.254.", "fd"].iter().any(|start| address.to_string().starts_with(start)))
}

/// Every name is this machine, but for a few that mean harm.
fn rules(allow: &[&str], deny: &[&str], private: &[&str]) -> Rules {
    let mut rules = Rules::new(allow, deny, private, public).unwrap();
    rules.resolve = Arc::new(|name| {
        let texts = match name {
            "mixed.test" => vec!["203.0.113.7", "::ffff:10.0.0.1"],
            "metadata.test" => vec!["169.254.169.254"],
            "nowhere.test" => vec![],
            _ => vec!["127.0.0.1"],
        };
        Ok(texts.into_iter().map(|text| text.parse().unwrap()).collect())
    });
    rules
}

/// A server that sends back what it got, after a mark.
async fn echo() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut peer, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut got = Vec::new();
                peer.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").await.ok();
                while let Ok(length @ 1..) = peer.read_buf(&mut got).await {
                    peer.write_all(&got[got.len() - length..]).await.ok();
                    let request = got.starts_with(b"GET ") && got.ends_with(b"\r\n\r\n");
                    if request || got.ends_with(b"the end") {
                        break;
                    }
                }
            });
        }
    });
    port
}

async fn dial(proxy: &Proxy) -> UnixStream {
    UnixStream::connect(proxy.socket().unwrap()).await.unwrap()
}

async fn read(mut stream: impl AsyncReadExt + Unpin) -> String {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await.ok();
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn ask(proxy: &Proxy, text: impl AsRef<[u8]>) -> String {
    let mut stream = dial(proxy).await;
    stream.write_all(text.as_ref()).await.ok();
    read(stream).await
}

#[tokio::test]
async fn a_plain_request_arrives_as_it_was_judged() {
    let port = echo().await;
    let proxy = Proxy::start(rules(&[], &[], &["app.test"])).unwrap();
    let head = "Host: other.test\r\nProxy-Connection: keep-alive\r\nConnection: X-Hop, content-length\r\n\
        X-Hop: 1\r\nX-Kept: 2\r\nContent-Length: 12";
    let answer =
        ask(&proxy, format!("POST http://APP.test.:{port}?q HTTP/1.1\r\n{head}\r\n\r\nbody the endGET /"))
            .await;
    let expected = format!(
        "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nPOST /?q HTTP/1.1\r\nHost: app.test:{port}\r\nX-Kept: 2\r\n\
         Content-Length: 12\r\nConnection: close\r\n\r\nbody the end"
    );
    // What stands behind the body is not sent.
    assert_eq!(answer, expected);
    assert_eq!(proxy.refused(), []);
}

#[tokio::test]
async fn a_tunnel_carries_both_ways_and_half_open() {
    let port = echo().await;
    let proxy = Proxy::start(rules(&[], &[], &["app.test"])).unwrap();
    let mut stream = dial(&proxy).await;
    // The first bytes may come along with the request.
    stream.write_all(format!("CONNECT app.test:{port} HTTP/1.1\r\n\r\none ").as_bytes()).await.unwrap();
    stream.write_all(b"two").await.unwrap();
    stream.shutdown().await.unwrap();
    let answer = read(stream).await;
    assert!(answer.starts_with("HTTP/1.1 200 Connection established\r\n\r\nHTTP/1.1 200 OK"), "{answer}");
    assert!(answer.ends_with("one two"), "{answer}");
}

#[rstest]
#[case::unknown("other.test:80", "no rule allows this host")]
#[case::parent("test:80", "no rule allows this host")]
#[case::suffix("evilapp.test:80", "no rule allows this host")]
#[case::below_only("wide.test:80", "no rule allows this host")]
#[case::port("port.test:80", "no rule allows this host")]
#[case::denied("bad.wide.test:80", "a rule denies this host")]
#[case::denied_spelling("BAD.Wide.TEST.:80", "a rule denies this host")]
#[case::private("app.test:80", "it is 127.0.0.1, an address of this machine")]
#[case::one_of_many("mixed.test:443", "it is 10.0.0.1, an address of this machine")]
#[case::metadata("metadata.test:80", "it is 169.254.169.254, an address of this machine")]
#[case::denied_address("local.test:81", "it is 127.0.0.1, which a rule denies")]
#[case::dotted("127.0.0.1:80", "addresses are refused unless a rule names them")]
#[case::decimal("2130706433:80", "addresses are refused")]
#[case::hex("0x7f.1:80", "addresses are refused")]
#[case::octal("0177.0.0.01:80", "addresses are refused")]
#[case::wide_digits("１27.0.0.1:80", "addresses are refused")]
#[case::mapped("[::ffff:127.0.0.1]:80", "addresses are refused")]
#[case::six("[::1]:80", "addresses are refused")]
fn hosts_and_addresses(#[case] target: &str, #[case] expected: &str) {
    let allow = ["app.test", "*.wide.test", "port.test:443", "mixed.test", "metadata.test"];
    let rules = rules(&allow, &["bad.wide.test", "127.0.0.1:81"], &["local.test", "metadata.test"]);
    let (host, port) = place(target).unwrap();
    let port = port.unwrap();
    let found = (rules.resolve)(&host.to_string()).unwrap();
    let reason =
        rules.admits(&host, port).map_err(str::to_owned).and_then(|()| rules.judge(&host, port, &found));
    let reason = reason.unwrap_err();
    assert!(reason.starts_with(expected), "{reason}");
}

#[rstest]
#[case::below("a.b.wide.test:80")]
#[case::international("BÜCHER.test:80")]
#[case::named_address("10.0.0.9:22")]
#[case::named_address_otherwise("[::ffff:a00:9]:22")]
fn allowed(#[case] target: &str) {
    let rules = rules(&["*.wide.test", "xn--bcher-kva.test"], &[], &["10.0.0.9:22"]);
    let (host, port) = place(target).unwrap();
    assert_eq!(rules.admits(&host, port.unwrap()), Ok(()));
}

#[rstest]
#[case("")]
#[case("a b.test")]
#[case("*.*.test")]
#[case("a..test")]
#[case("*.10.0.0.1")]
#[case("a.test:0")]
#[case("a.test:x")]
#[case("http://a.test")]
#[case("user@a.test")]
fn bad_patterns(#[case] text: &str) {
    assert!(Rules::new(&[text], &[], &[], public).is_err_and(|BadPattern(bad)| bad == text));
}

#[tokio::test]
async fn what_is_refused_is_never_looked_up_and_told_once() {
    let lookups = Arc::new(AtomicUsize::new(0));
    let mut rules = rules(&["app.test"], &[], &[]);
    let (counter, system) = (lookups.clone(), rules.resolve.clone());
    rules.resolve = Arc::new(move |name| {
        counter.fetch_add(1, Ordering::SeqCst);
        system(name)
    });
    let proxy = Proxy::start(rules).unwrap();
    for request in ["CONNECT other.test:443", "GET http://other.test:443/", "CONNECT app.test:22"] {
        let answer = ask(&proxy, format!("{request} HTTP/1.1\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 403 Forbidden\r\n"), "{answer}");
        let (_, text) = answer.split_once("\r\n\r\ngripper refused ").unwrap();
        assert!(
            text.ends_with("; work without it, or have a person add it to the allowed hosts\n"),
            "{text}"
        );
    }
    assert_eq!(lookups.load(Ordering::SeqCst), 1);
    let refused = proxy.refused();
    let refused: Vec<_> =
        refused.iter().map(|one| format!("{}:{} {}", one.host, one.port, one.reason)).collect();
    assert_eq!(refused.len(), 2, "{refused:?}");
    assert_eq!(refused[0], "other.test:443 no rule allows this host");
    for port in 1..=200 {
        ask(&proxy, format!("CONNECT other.test:{port} HTTP/1.1\r\n\r\n")).await;
    }
    assert_eq!(proxy.refused().len(), super::REFUSALS);
}

#[rstest]
#[case::large(format!("GET http://app.test/ HTTP/1.1\r\nX: {}", "x".repeat(20_000)), "431")]
#[case::many(format!("GET http://app.test/ HTTP/1.1\r\n{}\r\n", "X: y\r\n".repeat(200)), "431")]
#[case::nonsense("\x16\x03\x01 hello\r\n\r\n".to_owned(), "400")]
#[case::origin("GET / HTTP/1.1\r\nHost: app.test\r\n\r\n".to_owned(), "400")]
#[case::user("GET http://app.test@other.test/ HTTP/1.1\r\n\r\n".to_owned(), "400")]
#[case::no_port("CONNECT app.test HTTP/1.1\r\n\r\n".to_owned(), "400")]
#[case::two_lengths("GET http://app.test/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n".to_owned(), "400")]
#[case::signed_length("GET http://app.test/ HTTP/1.1\r\nContent-Length: +1\r\n\r\n".to_owned(), "400")]
#[case::chunked("GET http://app.test/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n".to_owned(), "411")]
#[case::no_address("CONNECT nowhere.test:1 HTTP/1.1\r\n\r\n".to_owned(), "502")]
#[case::slow("GET http://app.te".to_owned(), "408")]
#[tokio::test(start_paused = true)]
async fn bad_clients(#[case] request: String, #[case] status: &str) {
    let proxy = Proxy::start(rules(&[], &[], &["app.test", "nowhere.test"])).unwrap();
    let answer = ask(&proxy, request).await;
    assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
}

#[tokio::test]
async fn a_server_that_never_ends_is_left() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = Proxy::start(rules(&[], &[], &["app.test"])).unwrap();
    let mut stream = dial(&proxy).await;
    let port = silent.local_addr().unwrap().port();
    stream.write_all(format!("CONNECT app.test:{port} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
    let _held = silent.accept().await.unwrap();
    stream.read_exact(&mut [0; 39]).await.unwrap();
    tokio::time::pause();
    stream.shutdown().await.unwrap();
    assert_eq!(read(stream).await, "");
}

#[tokio::test]
async fn more_connections_wait_and_all_end_with_the_proxy() {
    let port = echo().await;
    let proxy = Proxy::start(rules(&[], &[], &["app.test"])).unwrap();
    let request = format!("CONNECT app.test:{port} HTTP/1.1\r\n\r\n");
    let mut open = Vec::new();
    for _ in 0..CONNECTIONS {
        let mut stream = dial(&proxy).await;
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.read_exact(&mut [0; 12]).await.unwrap();
        open.push(stream);
    }
    let mut late = dial(&proxy).await;
    late.write_all(request.as_bytes()).await.unwrap();
    let waits = tokio::time::timeout(Duration::from_millis(100), late.read_u8()).await;
    assert!(waits.is_err(), "it was served beyond the limit");
    drop(open.pop());
    assert_eq!(late.read_u8().await.unwrap(), b'H');

    let folder = proxy.socket().unwrap().parent().unwrap().to_owned();
    assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    drop(proxy);
    assert!(!folder.exists());
    for stream in open.into_iter().chain([late]) {
        read(stream).await;
    }
}

#[tokio::test]
async fn loopback_wants_the_password() {
    let port = echo().await;
    let proxy = Proxy::start_on_loopback(rules(&[], &[], &["app.test"])).unwrap();
    let variables = proxy.variables();
    let url = &variables.iter().find(|(name, _)| *name == "http_proxy").unwrap().1;
    let (_, address) = url.rsplit_once('@').unwrap();
    let mut stream = TcpStream::connect(address.parse::<SocketAddr>().unwrap()).await.unwrap();
    stream
        .write_all(b"CONNECT app.test:1 HTTP/1.1\r\nProxy-Authorization: Basic eA==\r\n\r\n")
        .await
        .unwrap();
    assert!(read(stream).await.starts_with("HTTP/1.1 407 "));

    let target = format!("http://app.test:{port}/x");
    for tunnel in [&[][..], &["--proxytunnel"]] {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "--max-time", "20"]).args(tunnel).arg(&target).envs(variables.clone());
        let Ok(output) = curl.output().await else {
            writeln!(std::io::stderr(), "skipped: there is no curl").unwrap();
            return;
        };
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(
            text.starts_with("GET /x HTTP/1.1\r\nHost: app.test"),
            "{text} {output:?}",
            output = output.stderr
        );
        assert!(!text.contains("Proxy-Authorization"), "{text}");
    }
}

/// Only a part of the test below, which runs it again inside of an empty network.
#[test]
fn bridge_inside() {
    if let Some(socket) = std::env::var_os(SOCKET) {
        let script = std::env::var_os("SCRIPT").unwrap();
        let args = [OsString::from("-c"), script];
        std::process::exit(bridge::run(&PathBuf::from(socket), bridge::PORT, &"sh".into(), &args).unwrap());
    }
}

#[rstest]
#[case::passes("curl -sS --max-time 20 http://app.test:$PORT/x >&2; exit 7", 7, "Host: app.test")]
#[case::refused("curl -sS --max-time 20 http://other.test/ >&2", 0, "gripper refused other.test:80")]
#[case::no_other_way("curl -sS --noproxy '*' --max-time 20 http://127.0.0.1:$PORT/ >&2", 7, "curl: (7)")]
#[case::signal("kill -9 $$", 137, "")]
#[case::group("trap 'exit 5' TERM; kill -TERM 0; exit 6", 5, "")]
#[tokio::test]
async fn a_bridge_leads_out_of_an_empty_network(
    #[case] script: &str,
    #[case] code: i32,
    #[case] printed: &str,
) {
    let port = echo().await;
    let proxy = Proxy::start(rules(&[], &[], &["app.test"])).unwrap();
    let unshare = |program: &str| {
        let mut command = Command::new("unshare");
        command.args(["-rn", program]).stdin(Stdio::null()).process_group(0).kill_on_drop(true);
        command
    };
    let usable = unshare("curl").arg("--version").output().await;
    if !usable.is_ok_and(|output| output.status.success()) {
        writeln!(std::io::stderr(), "skipped: no empty network can be made here, or there is no curl")
            .unwrap();
        return;
    }
    let mut inside = unshare(std::env::current_exe().unwrap().to_str().unwrap());
    inside.args(["--exact", "proxy::tests::bridge_inside", "--nocapture"]).envs(proxy.variables());
    inside.env(SOCKET, proxy.socket().unwrap()).env("SCRIPT", script).env("PORT", port.to_string());
    let output = inside.output().await.unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), text.contains(printed)), (Some(code), true), "{text}");
}
