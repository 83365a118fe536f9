//! What a client asks of the proxy, and what it is answered instead.

use super::rules::{Host, place};

/// Bytes that the head of a request may have.
pub(super) const HEAD: usize = 16 * 1024;
const HEADERS: usize = 100;

/// Headers that are about this connection only, or that are written anew.
const DROPPED: &str = "connection content-length host keep-alive proxy-authenticate proxy-authorization \
    proxy-connection te trailer upgrade";

/// A request that was understood.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) host: Host,
    pub(super) port: u16,
    pub(super) what: What,
    /// How much of what was read is the head.
    pub(super) length: usize,
}

#[derive(Debug)]
pub(super) enum What {
    /// A tunnel for whatever the two say to each other.
    Tunnel,
    /// One request: its head as it goes out, and the length of its body.
    Plain { head: Vec<u8>, body: u64 },
}

/// An answer of the proxy itself.
#[derive(Debug)]
pub(super) struct Answer {
    status: &'static str,
    text: String,
}

impl Answer {
    pub(super) fn new(status: &'static str, text: impl Into<String>) -> Self {
        Self { status, text: text.into() }
    }

    pub(super) fn bad(text: impl Into<String>) -> Self {
        Self::new("400 Bad Request", text)
    }

    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let Self { status, text } = self;
        let length = text.len() + 1;
        let head = "Content-Type: text/plain; charset=utf-8\r\nConnection: close";
        format!("HTTP/1.1 {status}\r\n{head}\r\nContent-Length: {length}\r\n\r\n{text}\n").into_bytes()
    }
}

/// Reads a head; nothing yet if more of it must come.
pub(super) fn parse(bytes: &[u8]) -> Result<Option<Request>, Answer> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(too_large()),
        Err(error) => return Err(Answer::bad(format!("this is no request of HTTP/1: {error}"))),
    };
    let target = request.path.unwrap_or_default();
    let unclear =
        || Answer::bad(format!("{target:?} is no place to connect to: a host and a port are needed"));
    if request.method == Some("CONNECT") {
        let (host, port) = place(target).ok_or_else(unclear)?;
        return Ok(Some(Request { host, port: port.ok_or_else(unclear)?, what: What::Tunnel, length }));
    }
    let Some(("http", behind)) = target.split_once("://") else {
        return Err(Answer::bad("a proxy is asked for whole addresses, http://host/path, or with CONNECT"));
    };
    let (authority, path) = behind.split_at(behind.find(['/', '?', '#']).unwrap_or(behind.len()));
    let (host, port) = place(authority).ok_or_else(unclear)?;
    let port = port.unwrap_or(80);
    let body = body(request.headers)?;
    let head = forwarded(&request, (&host, port), path, body);
    Ok(Some(Request { host, port, what: What::Plain { head, body: body.unwrap_or(0) }, length }))
}

pub(super) fn too_large() -> Answer {
    let text = format!("the head of a request may have {HEAD} bytes and {HEADERS} headers, and no more");
    Answer::new("431 Request Header Fields Too Large", text)
}

/// The request as the server gets it: it names the host that was judged, and ends the connection.
fn forwarded(
    request: &httparse::Request<'_, '_>,
    to: (&Host, u16),
    path: &str,
    body: Option<u64>,
) -> Vec<u8> {
    let (host, port) = to;
    let listed = values(request.headers, "connection").flat_map(|value| value.split(|byte| *byte == b','));
    let dropped: Vec<_> =
        DROPPED.split(' ').map(str::as_bytes).chain(listed.map(<[u8]>::trim_ascii)).collect();
    let is_dropped = |name: &str| dropped.iter().any(|item| item.eq_ignore_ascii_case(name.as_bytes()));
    let slash = if path.starts_with('/') { "" } else { "/" };
    let port = if port == 80 { String::new() } else { format!(":{port}") };
    let (method, version) = (request.method.unwrap_or_default(), request.version.unwrap_or(1));
    let mut head = format!("{method} {slash}{path} HTTP/1.{version}\r\nHost: {host}{port}\r\n").into_bytes();
    for header in request.headers.iter() {
        if !is_dropped(header.name) {
            head.extend([header.name.as_bytes(), b": ", header.value, b"\r\n"].concat());
        }
    }
    if let Some(body) = body {
        head.extend(format!("Content-Length: {body}\r\n").bytes());
    }
    head.extend(b"Connection: close\r\n\r\n");
    head
}

/// How long the body is. It must be beyond doubt, or a second request could hide behind it that
/// names another host.
fn body(headers: &[httparse::Header<'_>]) -> Result<Option<u64>, Answer> {
    if values(headers, "transfer-encoding").next().is_some() {
        let text = "without encryption a body needs a Content-Length here: send one, or use https";
        return Err(Answer::new("411 Length Required", text));
    }
    let mut lengths = values(headers, "content-length").map(|value| {
        let digits = str::from_utf8(value).ok().filter(|_| value.iter().all(u8::is_ascii_digit));
        digits.and_then(|digits| digits.parse().ok())
    });
    match (lengths.next(), lengths.next()) {
        (None, _) => Ok(None),
        (Some(Some(length)), None) => Ok(Some(length)),
        _ => Err(Answer::bad("the Content-Length is not one number")),
    }
}

fn values<'a>(headers: &'a [httparse::Header<'a>], name: &'a str) -> impl Iterator<Item = &'a [u8]> {
    headers.iter().filter(move |header| header.name.eq_ignore_ascii_case(name)).map(|header| header.value)
}
