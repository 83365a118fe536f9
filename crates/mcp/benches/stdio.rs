//! Our front against the SDK's plainest server: one call over a pipe, and a thousand at once. With a release
//! build of `gripper` beside this program, also how long it takes to answer the first message and what it
//! weighs idle. Ends with a table of ratios.
#![allow(clippy::expect_used, reason = "a failed expectation is how tests fail")]

use std::{
    io::{BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use futures::{FutureExt, future::BoxFuture};
use gripper_mcp::server::{Host, Opening, Session, serve_stream};
use gripper_runtime::{Access, Block, Facts, Registry, ToolOutput, Toolbox, permissions::Policy};
use gripper_testkit::{
    Probe,
    bench::{Report, percentile},
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ServerCapabilities,
        ServerConfig,
    },
    service::RequestContext,
};
use serde_json::{Value, json};

const CALLS: usize = 1_000;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    match std::env::args().nth(1).as_deref() {
        Some("front") => {
            let served = serve_stream(Arc::new(Plain), tokio::io::stdin(), tokio::io::stdout());
            runtime.block_on(served).expect("a client");
            std::process::exit(0);
        }
        Some("echo") => {
            let served = async {
                let io = (tokio::io::stdin(), tokio::io::stdout());
                Echo.serve(io).await.expect("a client").waiting().await.expect("no panic")
            };
            runtime.block_on(served);
            std::process::exit(0);
        }
        _ => measure(),
    }
}

fn measure() {
    let own = std::env::current_exe().expect("this program");
    let start = |role: &str| Peer::start(Command::new(&own).arg(role));
    let (mut front, mut echo) = (start("front"), start("echo"));
    front.call();
    echo.call();
    let mut report = Report::new("stdio");
    report.ratio("a call", 3_000, 3.0, || front.call(), "echo server of the SDK", || echo.call());
    let mut calls: Vec<Duration> = (0..2_000).map(|_| timed(|| front.call())).collect();
    let micros = |duration: Duration| duration.as_secs_f64() * 1e6;
    report.absolute("a call, median, µs", micros(percentile(&mut calls, 50)), 300.0);
    let (ours, theirs) = (|| front.many(), || echo.many());
    report.ratio("1,000 calls at once", 10, 3.0, ours, "echo server of the SDK", theirs);
    let gripper = own.ancestors().nth(2).map(|folder| folder.join("gripper")).filter(|file| file.is_file());
    match gripper {
        Some(gripper) => whole(&gripper, &mut report),
        None => {
            drop(writeln!(std::io::stderr(), "no release build of gripper: start and memory are left out"))
        }
    }
    report.print();
}

/// What a client feels of the program itself.
fn whole(gripper: &PathBuf, report: &mut Report) {
    let home = tempfile::TempDir::new().expect("a temporary folder");
    let open =
        || Peer::start(Command::new(gripper).arg("mcp").current_dir(home.path()).env("HOME", home.path()));
    let mut starts: Vec<Duration> = (0..20).map(|_| timed(open)).collect();
    report.absolute("start to initialize, median, ms", percentile(&mut starts, 50).as_secs_f64() * 1e3, 30.0);
    let mut peer = open();
    peer.list();
    report.absolute("memory after the first list, MiB", peer.memory(), 15.0);
}

fn timed<T>(work: impl FnOnce() -> T) -> Duration {
    let start = Instant::now();
    std::hint::black_box(work());
    start.elapsed()
}

/// A server at the other end of two pipes.
struct Peer {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
}

impl Peer {
    fn start(command: &mut Command) -> Self {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a server");
        let input = child.stdin.take().expect("a pipe");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut peer = Self { child, input, output, next: 1 };
        let client = json!({ "name": "bench", "version": "1" });
        let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
        peer.send("initialize", &hello);
        peer.receive();
        peer.write(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        peer
    }

    fn write(&mut self, message: &Value) {
        writeln!(self.input, "{message}").expect("a server that reads");
    }

    fn send(&mut self, method: &str, params: &Value) {
        let id = self.next;
        self.next += 1;
        self.write(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
    }

    fn receive(&mut self) {
        let mut line = String::new();
        assert!(self.output.read_line(&mut line).expect("a server that answers") > 0);
        assert!(line.contains("\"result\""), "{line}");
    }

    fn call(&mut self) {
        self.send("tools/call", &json!({ "name": "Nothing", "arguments": {} }));
        self.receive();
    }

    fn many(&mut self) {
        (0..CALLS).for_each(|_| self.send("tools/call", &json!({ "name": "Nothing", "arguments": {} })));
        (0..CALLS).for_each(|_| self.receive());
    }

    fn list(&mut self) {
        self.send("tools/list", &json!({}));
        self.receive();
    }

    fn memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        let kib = line.split_whitespace().next().and_then(|number| number.parse::<f64>().ok());
        kib.unwrap_or(f64::NAN) / 1024.0
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Our front with a tool that does nothing.
struct Plain;

struct Room(Arc<Toolbox>);

impl Host for Plain {
    fn open(&self, _opening: Opening) -> BoxFuture<'_, Result<Arc<dyn Session>, String>> {
        let access = |_: &Value| Access::concurrency_safe();
        let tool = Probe::tool("Nothing", Facts::DEFAULT, access, |_, _| {
            async { Ok(ToolOutput { content: vec![Block::text("nothing")], ..ToolOutput::default() }) }
                .boxed()
        });
        let mut registry = Registry::default();
        registry.register(tool).expect("one tool");
        let toolbox = Toolbox::builder(registry, Policy::new("/")).build();
        async { Ok(Arc::new(Room(toolbox)) as Arc<dyn Session>) }.boxed()
    }
}

impl Session for Room {
    fn toolbox(&self) -> &Arc<Toolbox> {
        &self.0
    }

    fn concurrency(&self) -> usize {
        10
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        async {}.boxed()
    }
}

/// The SDK alone.
struct Echo;

impl ServerHandler for Echo {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        _params: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::success(vec![ContentBlock::text("nothing")]).into())
    }
}
