//! What the pipeline costs: no-op calls alone and together, a large input, a search over many
//! deferred tools. `cargo bench -p gripper-runtime`; `-- --json` for machines.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use gripper_runtime::{
    CallRequest, DynTool, Facts, Recorder, Toolbox,
    audit::{AuditLog, Limits},
    schema::InputSchema,
};
use gripper_testkit::{
    Probe,
    bench::{Report, percentile},
    run_all, text, toolbox_of,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

const ROUNDS: usize = 3_000;

fn main() {
    let mut report = Report::new("pipeline");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    // On a worker, as in a server: a call from outside the runtime would measure waking a thread.
    let mut report = runtime.block_on(async move {
        tokio::spawn(async move {
            no_op_calls(&mut report).await;
            searching(&mut report).await;
            report
        })
        .await
        .expect("the benches run")
    });
    large_input(&mut report);
    report.print();
}

/// Times turns of `calls` no-op calls, from submit to the end of the turn.
async fn turns(toolbox: &Arc<Toolbox>, calls: usize, rounds: usize) -> Vec<Duration> {
    let mut samples = Vec::with_capacity(rounds);
    for round in 0..rounds + rounds / 10 {
        let requests: Vec<CallRequest> = (0..calls)
            .map(|n| CallRequest::new(&format!("c{n}"), "Noop", json!({ "n": round * calls + n })))
            .collect();
        let start = Instant::now();
        let results = run_all(toolbox, requests).await;
        let took = start.elapsed();
        assert_eq!(results.len(), calls);
        // The first tenth warms up.
        if round >= rounds / 10 {
            samples.push(took);
        }
    }
    samples
}

async fn no_op_calls(report: &mut Report) {
    let toolbox = toolbox_of([Probe::noop("Noop")]).build();
    let mut one = turns(&toolbox, 1, ROUNDS).await;
    let median = percentile(&mut one, 50);
    report.absolute("one no-op call, median (µs)", median.as_secs_f64() * 1e6, 20.0);
    report.absolute(
        "one no-op call, 99th percentile (µs)",
        percentile(&mut one, 99).as_secs_f64() * 1e6,
        60.0,
    );
    for (calls, limit) in [(10, 10.0), (100, 10.0), (1_000, 100.0)] {
        let many = percentile(&mut turns(&toolbox, calls, ROUNDS / calls.min(100)).await, 50);
        report.ratio_of(&format!("{calls} no-op calls in one turn"), many, "one call", median, limit);
    }
    let folder = tempfile::tempdir().expect("a folder");
    let log = AuditLog::open(folder.path(), "bench", Limits::default()).expect("a log");
    let audited = toolbox_of([Probe::noop("Noop")]).observer(Arc::new(Recorder::new(log))).build();
    let with_audit = percentile(&mut turns(&audited, 1, ROUNDS).await, 50);
    report.absolute("one no-op call with the audit log, median (µs)", with_audit.as_secs_f64() * 1e6, 20.0);
}

/// Ten thousand deferred tools of servers.
async fn searching(report: &mut Report) {
    let words = ["issue", "file", "user", "branch", "comment", "page", "event", "query", "table", "message"];
    let verbs =
        ["create", "list", "delete", "update", "search", "export", "merge", "watch", "rename", "count"];
    let mut tools: Vec<Arc<dyn DynTool>> = vec![search_tool()];
    for n in 0..10_000 {
        let name = format!("mcp__server{}__{}_{}_{n}", n / 100, verbs[n % 10], words[n / 10 % 10]);
        let description = format!(
            "{} one {} of the {} in this workspace and returns its details, owner, dates and links so that it can be {} later on by number {n}",
            verbs[n % 10],
            words[n / 10 % 10],
            words[n / 7 % 10],
            verbs[n / 3 % 10]
        );
        let schema = json!({"type": "object", "properties": {"id": {"type": "string"}}});
        tools.push(Probe::external("server", &name, &description, schema));
    }
    let toolbox = toolbox_of(tools).build();
    let search =
        |n: usize| CallRequest::new("c1", "Search", json!({"query": format!("merge branch table {n}")}));
    let start = Instant::now();
    run_all(&toolbox, [search(0)]).await;
    report.absolute(
        "first search over 10,000 tools, index built (ms)",
        start.elapsed().as_secs_f64() * 1e3,
        1_000.0,
    );
    let mut samples = Vec::new();
    for n in 1..300 {
        let start = Instant::now();
        run_all(&toolbox, [search(n)]).await;
        samples.push(start.elapsed());
    }
    report.absolute(
        "search over 10,000 tools, median (ms)",
        percentile(&mut samples, 50).as_secs_f64() * 1e3,
        5.0,
    );
}

/// Does what ToolSearch does; the tools crate is above this one.
fn search_tool() -> Arc<dyn DynTool> {
    Probe::tool(
        "Search",
        Facts::DEFAULT,
        |_| gripper_runtime::Access::nothing(),
        |input, call| {
            let query = input["query"].as_str().unwrap_or_default().to_owned();
            Box::pin(async move {
                let (found, _) = call.pool.search(&query, 5);
                let names: Vec<String> =
                    found.iter().map(|tool| tool.spec().advertised().to_string()).collect();
                Ok(text(&names.join("\n")))
            })
        },
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Edits {
    edits: Vec<Edit>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Edit {
    old: String,
    new: String,
    all: Option<bool>,
}

/// Repairs and schema check of about a megabyte, against merely parsing the same JSON text.
fn large_input(report: &mut Report) {
    let edits: Vec<Value> = (0..10_000)
        .map(|n| json!({"old": format!("the text before number {n}"), "new": format!("the text after number {n}"), "all": n % 2 == 0}))
        .collect();
    let mut input = json!({ "edits": edits });
    let bytes = input.to_string();
    let parsed: Edits = serde_json::from_str(&bytes).expect("it fits the type");
    assert_eq!(
        parsed.edits.iter().filter(|edit| edit.all == Some(true) && edit.old != edit.new).count(),
        5_000
    );
    let schema = InputSchema::trusted(schemars::schema_for!(Edits).to_value());
    report.ratio(
        &format!("validating {} KB in 10,000 parts", bytes.len() / 1024),
        30,
        1.0,
        || {
            assert!(schema.coerce(&mut input).is_empty());
            schema.check(&input).expect("it fits");
        },
        "parsing the text",
        || serde_json::from_str::<Value>(&bytes).expect("JSON"),
    );
}
