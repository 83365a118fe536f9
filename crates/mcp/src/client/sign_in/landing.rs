//! Where the browser comes back to: one address of this machine, for one answer.

use std::{collections::HashMap, net::Ipv4Addr, time::Duration};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
    time::timeout,
};
use url::Url;

/// Largest request that is read.
const LARGEST: usize = 16 * 1024;
/// How long a browser may take to say what it wants.
const PATIENCE: Duration = Duration::from_secs(10);
const PATH: &str = "/callback";

/// The code, and who says to have issued it.
pub(super) struct Answer {
    pub(super) code: String,
    pub(super) issuer: Option<String>,
}

pub(super) struct Landing {
    listener: TcpListener,
    pub(super) port: u16,
}

impl Landing {
    /// Listens on a port of this machine, 0 for any, and for nobody else.
    pub(super) async fn at(port: u16) -> Result<Self, String> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await;
        let bound = listener.and_then(|listener| Ok((listener.local_addr()?.port(), listener)));
        let (port, listener) = bound.map_err(|error| {
            format!(
                "nobody can come back to port {port} of this machine: {error}; \"callbackPort\" chooses it"
            )
        })?;
        Ok(Self { listener, port })
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}{PATH}", self.port)
    }

    /// The answer that carries our state. What comes with another is refused and does not end the wait.
    pub(super) async fn answer(&self, state: &str) -> Result<Answer, String> {
        let (found, mut answers) = mpsc::channel(1);
        // Browsers open connections that they never use: none of them holds up the others.
        let mut visits = JoinSet::new();
        loop {
            tokio::select! {
                Some(answer) = answers.recv() => {
                    // The page is still to be shown.
                    timeout(Duration::from_secs(1), visits.join_next()).await.ok();
                    return answer;
                }
                visit = self.listener.accept() => {
                    let Ok((stream, _)) = visit else { continue };
                    let (state, found) = (state.to_owned(), found.clone());
                    visits.spawn(async move { timeout(PATIENCE, visited(stream, &state, found)).await });
                }
            }
        }
    }
}

async fn visited(mut stream: TcpStream, state: &str, found: mpsc::Sender<Result<Answer, String>>) {
    let mut text = Vec::new();
    while !text.windows(4).any(|end| end == b"\r\n\r\n") && text.len() < LARGEST {
        match stream.read_buf(&mut text).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
    let text = String::from_utf8_lossy(&text);
    let answer = answered(text.lines().next().unwrap_or_default(), state);
    let (status, words) = match &answer {
        None => ("400 Bad Request", "This is not what was waited for."),
        Some(Err(_)) => ("200 OK", "Signing in did not work. The program says why."),
        Some(Ok(_)) => ("200 OK", "You are back: the program goes on, and this page can be closed."),
    };
    let page = format!("<!doctype html><meta charset=utf-8><title>Gripper</title><p>{words}</p>");
    let reply = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
        page.len()
    );
    if let Some(answer) = answer {
        found.send(answer).await.ok();
    }
    stream.write_all(reply.as_bytes()).await.ok();
    stream.shutdown().await.ok();
}

/// What the first line of a request says, if it is an answer to us.
fn answered(line: &str, state: &str) -> Option<Result<Answer, String>> {
    let target = line.strip_prefix("GET ")?.split(' ').next()?;
    let url = Url::parse("http://127.0.0.1/").ok()?.join(target).ok()?;
    let mut given: HashMap<String, String> = url.query_pairs().into_owned().collect();
    if url.path() != PATH || given.get("state").map(String::as_str) != Some(state) {
        return None;
    }
    let issuer = given.remove("iss");
    match (given.remove("code"), given.remove("error")) {
        (Some(code), None) => Some(Ok(Answer { code, issuer })),
        (_, Some(error)) => {
            let about =
                given.remove("error_description").map(|about| format!(" ({about})")).unwrap_or_default();
            Some(Err(format!("it was refused: {error}{about}")))
        }
        (None, None) => Some(Err("the answer holds no code".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::answered;

    #[rstest]
    #[case::code("GET /callback?code=c&state=s HTTP/1.1", Some(Ok("c")))]
    #[case::refused(
        "GET /callback?error=access_denied&state=s HTTP/1.1",
        Some(Err("it was refused: access_denied"))
    )]
    #[case::both("GET /callback?code=c&error=e&state=s HTTP/1.1", Some(Err("it was refused: e")))]
    #[case::nothing("GET /callback?state=s HTTP/1.1", Some(Err("the answer holds no code")))]
    #[case::other_state("GET /callback?code=c&state=t HTTP/1.1", None)]
    #[case::no_state("GET /callback?code=c HTTP/1.1", None)]
    #[case::refused_without_state("GET /callback?error=e HTTP/1.1", None)]
    #[case::other_page("GET /favicon.ico?code=c&state=s HTTP/1.1", None)]
    #[case::posted("POST /callback?code=c&state=s HTTP/1.1", None)]
    #[case::no_request("\u{1}", None)]
    fn only_an_answer_with_our_state_counts(#[case] line: &str, #[case] wanted: Option<Result<&str, &str>>) {
        let got = answered(line, "s").map(|answer| answer.map(|answer| answer.code));
        assert_eq!(got, wanted.map(|wanted| wanted.map(str::to_owned).map_err(str::to_owned)));
    }
}
