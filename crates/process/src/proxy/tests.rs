use std::{
    net::IpAddr,
    os::unix::fs::PermissionsExt,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use rstest::rstest;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, UnixStream},
};
use tokio_util::sync::CancellationToken;

use super::{BadPattern, CONNECTIONS, Proxy, Rules, rules::place};
use crate::{
    Spec,
    confine::{Backend, Network, Profile, probe},
    run,
};

/// Stands in for the table of addresses, which is the caller's.
fn public(address: IpAddr) -> bool {
    let address = address.to_canonical();
    !(address.is_loopback()
        || ["10.", "169.254.", "fd"].iter().any(|start| address.to_string().starts_with(start)))
}

/// Every name is this machine, but for a few that mean harm.
fn rules(allow: &[&str], deny: &[&str], private: &[&str]) -> Rules {
    let mut rules = Rules::new(allow, deny, private, public).unwrap();
    rules.resolve = Arc::new(|name| {
        let texts = match name {
            "mixed.test" => vec!["93.184.216.34", "::ffff:10.0.0.1"],
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
    UnixStream::connect(proxy.socket()).await.unwrap()
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

    let folder = proxy.socket().parent().unwrap().to_owned();
    assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    drop(proxy);
    assert!(!folder.exists());
    for stream in open.into_iter().chain([late]) {
        read(stream).await;
    }
}

fn no_curl() -> Option<String> {
    let version = std::process::Command::new("curl").arg("--version").output();
    version.err().map(|why| format!("curl: {why}"))
}

fn no_namespaces() -> Option<String> {
    let layer = probe().layers.iter().find(|layer| layer.name == "user namespaces");
    layer.map_or(Some("no user namespaces".to_owned()), |layer| layer.state.clone().err())
}

#[allow(clippy::print_stderr, reason = "a skipped test says so")]
fn skip(why: &str) {
    eprintln!("not tested: {why}");
}

#[rstest]
#[case::passes("http://app.test:$PORT/x", "GET /x HTTP/1.1\r\nHost: app.test:")]
#[case::tunnel("--proxytunnel http://app.test:$PORT/x", "GET /x HTTP/1.1\r\nHost: app.test:")]
#[case::refused("http://other.test/", "gripper refused other.test:80: no rule allows this host")]
#[case::no_other_way("--noproxy '*' http://127.0.0.1:$PORT/", "curl: (7)")]
#[tokio::test]
async fn a_confined_command_has_this_way_out_and_no_other(#[case] args: &str, #[case] printed: &str) {
    let port = echo().await;
    let proxy = Arc::new(Proxy::start(rules(&[], &[], &["app.test"])).unwrap());
    let folder = tempfile::tempdir().unwrap();
    let env = [("PATH", std::env::var("PATH").unwrap()), ("PORT", port.to_string())];
    let env = env.map(|(name, value)| (name.into(), value.into())).to_vec();
    for backend in [Backend::Bubblewrap, Backend::Landlock] {
        if let Some(why) = probe().works(backend).err().or_else(no_namespaces).or_else(no_curl) {
            skip(&format!("{backend}: {why}"));
            continue;
        }
        let network = Network::Proxy(proxy.clone());
        let cage = Profile::writes(vec![folder.path().to_owned()], None);
        let cage = Some(Profile { network, backend: Some(backend), ..cage });
        let line = format!("curl -sS --max-time 20 {args} 2>&1");
        let spec = Spec { cage, ..Spec::shell(line, folder.path(), env.clone()) };
        let ended = run(spec, &CancellationToken::new()).await.unwrap();
        let text = ended.stdout.text();
        assert!(text.starts_with(printed), "{backend}: {text}");
        let refused: Vec<String> = ended.confined.unwrap().denied.iter().map(ToString::to_string).collect();
        assert_eq!(refused.is_empty(), args.contains("app.test"), "{refused:?}");
    }
}
