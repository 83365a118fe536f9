//! The client for the official conformance suite: connects to the address in its last argument, calls every
//! tool it finds there through the pipeline, and says yes to every question.
#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a program for tests: it prints what it did and stops where it cannot go on"
)]

use std::{sync::Arc, time::Duration};

use gripper_mcp::client::{Accounts, Limits, Servers, SignIn, config};
use gripper_runtime::{
    CallRequest, DynTool, Registry, Toolbox,
    approve::Preapproved,
    permissions::{Policy, Scope, Source},
    settings::Node,
};
use serde_json::{Map, Value, json};

/// An input that fits the required properties of a schema.
fn sample(schema: &Value) -> Value {
    let properties = schema.get("properties").and_then(Value::as_object).cloned().unwrap_or_default();
    let value = |property: &Value| match property["type"].as_str() {
        _ if property.get("const").is_some() => property["const"].clone(),
        _ if property["enum"].is_array() => property["enum"][0].clone(),
        Some("number" | "integer") => json!(5),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("text"),
    };
    Value::Object(
        properties.iter().map(|(name, property)| (name.clone(), value(property))).collect::<Map<_, _>>(),
    )
}

/// Stands in for a person: goes to the page, and from there wherever it leads.
struct Obedient;

impl SignIn for Obedient {
    fn open(&self, _server: &str, url: &str) {
        let url = url.to_owned();
        tokio::spawn(async move { reqwest::get(url).await.expect("a page").status() });
    }
}

fn context() -> Value {
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_default();
    serde_json::from_str(&context).unwrap_or_default()
}

/// The calls that the scenario wants, or else one of every tool.
fn calls(toolbox: &Toolbox) -> Vec<(String, Value)> {
    let context = context();
    if let Some(wanted) = context["toolCalls"].as_array() {
        let call = |call: &Value| {
            let name = call["name"].as_str().unwrap_or_default();
            let mut input = call["arguments"].clone();
            // The pipeline takes what fits the schema, and null does not: what is not given is left out.
            if let Some(input) = input.as_object_mut() {
                input.retain(|_, value| !value.is_null());
            }
            (format!("mcp__suite__{name}"), input)
        };
        return wanted.iter().map(call).collect();
    }
    let pool = toolbox.pool();
    let first = pool.tools().iter().find(|tool| tool.spec().name.contains("json_schema"));
    let call = |tool: &Arc<dyn DynTool>| {
        let mut input = sample(tool.spec().input.value());
        // One scenario looks at what a schema is like when it comes back.
        if let (Some(first), true) = (first, input.get("schema").is_some()) {
            input["schema"] = first.spec().input.value().clone();
        }
        (tool.spec().name.to_string(), input)
    };
    pool.tools().iter().map(call).collect()
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let url = std::env::args().next_back().expect("an address");
    let context = context();
    let mut oauth = json!({ "clientMetadataUrl": "https://conformance-test.local/client-metadata.json" });
    for (key, given) in [("clientId", &context["client_id"]), ("clientSecret", &context["client_secret"])] {
        oauth[key] = given.clone();
    }
    let written = json!({ "suite": { "url": url, "timeout": 20, "oauth": oauth } }).to_string();
    let (node, _) = Node::parse(&written, &Source::of(Scope::CommandLine)).expect("a configuration");
    let (configs, wrong) = config::read(&[node], &[]);
    assert!(wrong.is_empty(), "{wrong:?}");
    let accounts = Accounts { file: None, person: Some(Arc::new(Obedient)) };
    let servers = Servers::new(configs, Vec::new(), "/".into(), Limits::default(), accounts);
    let toolbox = Toolbox::builder(Registry::default(), Policy::new("/"));
    let toolbox = toolbox.approver(Arc::new(Preapproved)).build();
    servers.attach(&toolbox);
    servers.settle(Duration::from_secs(30)).await;
    for server in servers.all() {
        println!("{} {:?}", server.phase().word(), server.complaints());
        if let gripper_mcp::client::Phase::Failed(why) = server.phase() {
            println!("{why}");
            std::process::exit(1);
        }
    }
    for (name, input) in calls(&toolbox) {
        let result = gripper_testkit::run_all(&toolbox, [CallRequest::new("c1", &name, input)]).await;
        println!("{name}: {}", result[0]);
    }
    servers.close().await;
}
