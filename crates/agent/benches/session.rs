//! What the loop adds to the requests themselves: `gripper -p` against a bare HTTP client that sends the same bodies to
//! the same scripted model server. Needs a release build of `gripper` beside this program. Ends with a table.
#![allow(clippy::expect_used, reason = "a failed expectation is how tests fail")]

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use gripper_testkit::{
    bench::{Report, percentile},
    model_server::{Answer, Asked, ModelServer},
};
use serde_json::json;

const ROUNDS: usize = 30;
const READS: usize = 10;
/// Answers of the long session, and calls in each.
const LONG: usize = 100;
const MANY: usize = 100;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, role, url, bodies @ ..] = &arguments[..]
        && role == "client"
    {
        return client(url, bodies);
    }
    let own = std::env::current_exe().expect("this program");
    let gripper = own.ancestors().nth(2).map(|folder| folder.join("gripper")).filter(|file| file.is_file());
    let Some(gripper) = gripper else {
        let words = "build it first: cargo build --release -p gripper-cli";
        return drop(writeln!(std::io::stderr(), "there is no release build of gripper: {words}"));
    };
    let mut report = Report::new("session");
    short(&own, &gripper, &mut report);
    long(&gripper, &mut report);
    report.print();
}

/// The rival: sends bodies one after the other and reads each answer to its end.
fn client(url: &str, bodies: &[String]) {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = reqwest::Client::new();
        for body in bodies {
            let body = fs::read(body).expect("the body");
            let request =
                client.post(format!("{url}/v1/messages")).header("content-type", "application/json");
            let response = request.body(body).send().await.expect("an answer");
            response.bytes().await.expect("all of it");
        }
    });
}

/// A server that notes when it was asked.
struct Watched {
    server: ModelServer,
    moments: Arc<Mutex<Vec<Instant>>>,
}

impl Watched {
    fn new(answers: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        let moments = Arc::new(Mutex::new(Vec::new()));
        let seen = moments.clone();
        let server = ModelServer::choosing(move |_: &Asked, at| {
            seen.lock().expect("no panic").push(Instant::now());
            Some(answers(at))
        });
        Self { server, moments }
    }

    fn take(&self) -> Vec<Instant> {
        std::mem::take(&mut self.moments.lock().expect("no panic"))
    }
}

fn start(gripper: &Path, folder: &Path, url: &str) -> Child {
    let settings =
        json!({ "model": "here/m", "providers": { "here": { "type": "anthropic", "baseUrl": url } } });
    Command::new(gripper)
        .args(["-p", "go", "--settings", &settings.to_string()])
        .current_dir(folder)
        .env("HOME", folder)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .expect("gripper starts")
}

fn reads(folder: &Path, many: usize, round: usize) -> Answer {
    let call = |answer: Answer, n: usize| {
        let file = folder.join(format!("file{n}.txt"));
        answer.call(&format!("c{round}-{n}"), "Read", json!({ "file_path": file }))
    };
    (0..many).fold(Answer::new(), call)
}

fn project(many: usize, lines: usize) -> tempfile::TempDir {
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    for n in 0..many {
        fs::write(folder.path().join(format!("file{n}.txt")), "a line\n".repeat(lines)).expect("a file");
    }
    folder
}

/// From start to the first request, and from one request to the next with ten results.
fn short(own: &Path, gripper: &Path, report: &mut Report) {
    let project = project(READS, 50);
    let folder = project.path().to_owned();
    let watched =
        Watched::new(
            move |at| if at.is_multiple_of(2) { reads(&folder, READS, at) } else { Answer::says("done") },
        );
    let (mut first, mut next) = ((Vec::new(), Vec::new()), (Vec::new(), Vec::new()));
    let mut bodies: Vec<PathBuf> = Vec::new();
    for round in 0..=ROUNDS {
        let begin = Instant::now();
        start(gripper, project.path(), &watched.server.url()).wait().expect("it ends");
        let ours = watched.take();
        if bodies.is_empty() {
            for (at, asked) in watched.server.asked().iter().enumerate() {
                let file = project.path().join(format!("body{at}.json"));
                fs::write(&file, asked.body.to_string()).expect("the body");
                bodies.push(file);
            }
        }
        let bare = Instant::now();
        let mut rival = Command::new(own);
        rival.args(["client", &watched.server.url()]).args(&bodies);
        rival.spawn().expect("the client starts").wait().expect("it ends");
        let theirs = watched.take();
        if round > 0 {
            first.0.push(ours[0] - begin);
            first.1.push(theirs[0] - bare);
            next.0.push(ours[1] - ours[0]);
            next.1.push(theirs[1] - theirs[0]);
        }
    }
    let middle = |times: &mut Vec<Duration>| percentile(times, 50);
    let millis = |time: Duration| time.as_secs_f64() * 1e3;
    let (ours, theirs) = (middle(&mut first.0), middle(&mut first.1));
    report.ratio_of("start to first request", ours, "bare client", theirs, f64::INFINITY);
    report.absolute("start to first request, ms", millis(ours), 25.0);
    let (ours, theirs) = (middle(&mut next.0), middle(&mut next.1));
    report.ratio_of("request to next, 10 reads", ours, "bare client, no reads", theirs, f64::INFINITY);
    report.absolute("of it the loop and the reads, ms", millis(ours.saturating_sub(theirs)), 3.0);
}

/// What a session of ten thousand calls weighs beside its history.
fn long(gripper: &Path, report: &mut Report) {
    let project = project(MANY, 1);
    let folder = project.path().to_owned();
    let watched =
        Watched::new(move |at| if at < LONG { reads(&folder, MANY, at) } else { Answer::says("done") });
    let mut child = start(gripper, project.path(), &watched.server.url());
    let asked = || watched.moments.lock().expect("no panic").len();
    let mut weights: Vec<(usize, u64)> = Vec::new();
    while child.try_wait().expect("a child").is_none() {
        let now = asked();
        if now / (LONG / 4) > weights.len() && weights.len() < 4 {
            weights.extend(resident(child.id()).map(|weight| (now, weight)));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let history = watched.server.asked().last().map_or(0, |asked| asked.body["messages"].to_string().len());
    let (Some(early), Some(late)) = (weights.first(), weights.last()) else { return };
    let mebibytes = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let added = history as f64 * (late.0 - early.0) as f64 / LONG as f64;
    report.absolute("memory after 2,500 calls, MiB", mebibytes(early.1), f64::INFINITY);
    report.absolute("memory after 10,000 calls, MiB", mebibytes(late.1), f64::INFINITY);
    report.absolute("history after 10,000 calls, MiB", mebibytes(history as u64), f64::INFINITY);
    let grown = late.1.saturating_sub(early.1) as f64;
    report.absolute("growth per byte of history", grown / added.max(1.0), 3.0);
}

/// The resident memory of a process in bytes.
fn resident(process: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}
