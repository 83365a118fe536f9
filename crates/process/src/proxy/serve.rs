//! One connection to the proxy, from its first byte to its last.

use std::{io, net::IpAddr, pin::pin, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt, copy, split},
    net::{TcpStream, UnixStream},
    time::timeout,
};

use super::{
    Shared,
    request::{self, Answer, HEAD, Request, What},
    rules::Host,
};

/// For a client to say what it wants; one that takes longer only holds a place.
const ASKING: Duration = Duration::from_secs(10);
/// For a lookup, and for each address to answer.
const REACHING: Duration = Duration::from_secs(10);
/// For one side to go on after the other has fallen silent; it may not know that nobody listens.
const HALF: Duration = Duration::from_secs(300);
/// For a refused client to read why.
const PARTING: Duration = Duration::from_secs(1);

pub(super) async fn serve(mut client: UnixStream, shared: &Shared) {
    if let Err(answer) = attend(&mut client, shared).await {
        client.write_all(&answer.to_bytes()).await.ok();
        client.shutdown().await.ok();
        // Closed with something unread in it, a connection would lose the answer.
        let rest = async { while client.read(&mut [0; 4096]).await.is_ok_and(|length| length > 0) {} };
        timeout(PARTING, rest).await.ok();
    }
}

async fn attend(client: &mut UnixStream, shared: &Shared) -> Result<(), Answer> {
    let mut read = Vec::new();
    let slow = |_| Answer::new("408 Request Timeout", format!("no request came within {ASKING:?}"));
    let request = timeout(ASKING, ask(client, &mut read)).await.map_err(slow)??;
    let Request { host, port, what, length } = request;
    let server = reach(shared, &host, port).await?;
    let early = read.split_off(length);
    // From here on the client hears the server, and a broken connection speaks for itself.
    match what {
        What::Plain { head, body } => exchange(client, server, &head, &early, body).await.ok(),
        What::Tunnel => tunnel(client, server, &early).await.ok(),
    };
    Ok(())
}

async fn ask(client: &mut UnixStream, read: &mut Vec<u8>) -> Result<Request, Answer> {
    loop {
        if let Some(request) = request::parse(read)? {
            return Ok(request);
        }
        let room = HEAD.saturating_sub(read.len());
        if room == 0 {
            return Err(request::too_large());
        }
        if !client.take(room as u64).read_buf(read).await.is_ok_and(|length| length > 0) {
            return Err(Answer::bad("the request ends in its middle"));
        }
    }
}

/// Connects to an address that was judged: there is no second lookup that could say otherwise.
async fn reach(shared: &Shared, host: &Host, port: u16) -> Result<TcpStream, Answer> {
    let failed =
        |why: String| Answer::new("502 Bad Gateway", format!("{host}:{port} could not be reached: {why}"));
    let refused = |reason: String| {
        let what_to_do = "work without it, or have a person add it to the allowed hosts";
        let text = format!("gripper refused {host}:{port}: {reason}; {what_to_do}");
        shared.refuse(host, port, reason);
        Answer::new("403 Forbidden", text)
    };
    shared.rules.admits(host, port).map_err(|reason| refused(reason.to_owned()))?;
    let found = find(shared, host).await.map_err(|error| failed(error.to_string()))?;
    let mut why = "the name has no address".to_owned();
    for address in shared.rules.judge(host, port, &found).map_err(refused)? {
        match timeout(REACHING, TcpStream::connect(address)).await {
            Ok(Ok(server)) => return Ok(server),
            Ok(Err(error)) => why = error.to_string(),
            Err(_) => why = format!("{address} did not answer"),
        }
    }
    Err(failed(why))
}

async fn find(shared: &Shared, host: &Host) -> io::Result<Vec<IpAddr>> {
    let name = match host {
        Host::Address(address) => return Ok(vec![*address]),
        Host::Name(name) => name.clone(),
    };
    let resolve = shared.rules.resolve.clone();
    let lookup = tokio::task::spawn_blocking(move || resolve(&name));
    timeout(REACHING, lookup).await?.map_err(io::Error::other)?
}

/// Sends one request, its body and nothing behind it, and brings back all that the server says.
async fn exchange(
    client: &mut UnixStream,
    mut server: TcpStream,
    head: &[u8],
    early: &[u8],
    body: u64,
) -> io::Result<()> {
    server.write_all(head).await?;
    let (client_in, mut client_out) = split(client);
    let (mut server_in, mut server_out) = server.split();
    let mut body = early.chain(client_in).take(body);
    tokio::select! {
        // The server may answer, and be done, before it has read everything.
        ended = copy(&mut server_in, &mut client_out) => ended?,
        Err(error) = copy(&mut body, &mut server_out) => return Err(error),
    };
    client_out.shutdown().await
}

/// Lets the two talk, of which one may end before the other.
async fn tunnel(client: &mut UnixStream, mut server: TcpStream, early: &[u8]) -> io::Result<()> {
    client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await?;
    let (client_in, mut client_out) = split(client);
    let (mut server_in, mut server_out) = server.split();
    let mut said = early.chain(client_in);
    let mut up = pin!(async {
        copy(&mut said, &mut server_out).await?;
        server_out.shutdown().await
    });
    let mut down = pin!(async {
        copy(&mut server_in, &mut client_out).await?;
        client_out.shutdown().await
    });
    tokio::select! {
        ended = &mut up => { ended?; timeout(HALF, down).await? }
        ended = &mut down => { ended?; timeout(HALF, up).await? }
    }
}
