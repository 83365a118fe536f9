//! `gripper mcp list`, `test`, `login` and `logout`: the servers whose tools are used here.

use std::{sync::Arc, time::Instant};

use gripper_mcp::client::{Phase, RemotePrompt, Server, Servers};
use gripper_runtime::{DynTool, environment::Environment};
use serde_json::{Value, json};

use crate::{
    basis::{Basis, PolicyFlags},
    exit::{Exit, UsageError},
    interrupt,
    mcp::browser::Browser,
    session,
    show::{self, BAD, BOLD, DIM, GOOD, NOTE},
};

/// Rounds that the quickness of a server is measured by.
const ROUNDS: u32 = 5;
/// Tools and prompts of a server that are named.
const MOST_NAMES: usize = 200;

#[derive(clap::Subcommand)]
pub(crate) enum Action {
    /// List the configured servers, and how they stand
    List {
        /// How long servers are waited for
        #[arg(long, value_name = "SECONDS", default_value_t = 5.0)]
        wait: f64,
        /// JSON Lines
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        policy: PolicyFlags,
    },
    /// Connect a server and show what it is and has, how quick it is and what is wrong with it
    Test {
        /// The server's name
        server: String,
        /// One JSON object
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        policy: PolicyFlags,
    },
    /// Sign in to a server that asks for it, in a browser
    Login {
        /// The server's name
        server: String,
        #[command(flatten)]
        policy: PolicyFlags,
    },
    /// Forget who is signed in to a server
    Logout {
        /// The server's name
        server: String,
        #[command(flatten)]
        policy: PolicyFlags,
    },
}

/// Why there are none where the folder has some.
const ASIDE: &str = "those of this folder's .mcp.json are set aside until you trust it (gripper trust)";

pub(crate) async fn run(action: Action, environment: Environment) -> anyhow::Result<Exit> {
    let policy = match &action {
        Action::List { policy, .. }
        | Action::Test { policy, .. }
        | Action::Login { policy, .. }
        | Action::Logout { policy, .. } => policy,
    };
    let person = match &action {
        Action::List { .. } | Action::Logout { .. } => None,
        Action::Test { .. } => Browser::if_attended(),
        Action::Login { .. } => Some(Arc::new(Browser) as _),
    };
    let mut basis = Basis::read(policy, &environment)?;
    let servers = session::servers(&environment, &mut basis, person);
    let policy = &basis.loaded.policy;
    let aside = !policy.trusted && policy.root.join(".mcp.json").exists();
    let none = if aside { ASIDE } else { "put them into .mcp.json or the mcpServers of your settings" };
    let mut interrupt = interrupt::listen()?;
    let work = async {
        match &action {
            Action::List { wait, json, .. } => list(&servers, *wait, *json, none).await,
            Action::Test { server, json, .. } => test(&named(&servers, server, none)?, *json).await,
            Action::Login { server, .. } => login(&named(&servers, server, none)?).await,
            Action::Logout { server, .. } => logout(&named(&servers, server, none)?),
        }
    };
    let outcome = interrupt::unless(&mut interrupt, work).await.unwrap_or(Ok(Exit::Interrupted));
    servers.close().await;
    outcome
}

async fn list(servers: &Servers, wait: f64, json: bool, none: &str) -> anyhow::Result<Exit> {
    let patience = std::time::Duration::from_secs_f64(wait.clamp(0.0, 3_600.0));
    servers.settle(patience).await;
    let all = servers.all();
    if all.is_empty() && !json {
        show::line(&format!("no servers: {none}"))?;
    }
    for server in &all {
        let phase = server.phase();
        let config = &server.config;
        let tools = server.offer().map(|offer| offer.tools.len());
        let why = if let Phase::Failed(why) = &phase { Some(why.as_str()) } else { None };
        if json {
            let told = json!({
                "name": config.name, "type": config.endpoint.kind(), "endpoint": config.endpoint.words(),
                "source": config.source, "trusted": config.trusted, "state": phase.word(), "error": why,
                "prefix": format!("mcp__{}__", server.slug), "tools": tools, "complaints": server.complaints(),
            });
            show::line(&told.to_string())?;
            continue;
        }
        let style = match &phase {
            Phase::Ready(_) => GOOD,
            Phase::Failed(_) => BAD,
            Phase::Idle | Phase::Connecting => NOTE,
        };
        show::line(&format!(
            "{BOLD}{}{BOLD:#} {style}{}{style:#}{} {} {} {DIM}{}{DIM:#}",
            show::one_line(&config.name, 100),
            phase.word(),
            tools.map(|tools| format!(", {}", show::count(tools, "tool"))).unwrap_or_default(),
            config.endpoint.kind(),
            show::one_line(&config.endpoint.words(), 100),
            show::safe(&config.source.to_string()),
        ))?;
        let why = why.map(|why| format!("    {BAD}{}{BAD:#}", show::one_line(why, 1_000)));
        let odd = server.complaints();
        let odd = odd.iter().map(|what| format!("    {NOTE}{}{NOTE:#}", show::one_line(what, 500)));
        why.into_iter().chain(odd).try_for_each(|line| show::line(&line))?;
    }
    let sound = all.iter().all(|server| !matches!(server.phase(), Phase::Failed(_)));
    Ok(if sound { Exit::Ok } else { Exit::Failed })
}

fn named(servers: &Servers, name: &str, none: &str) -> Result<Arc<Server>, UsageError> {
    servers.named(name).ok_or_else(|| {
        let known: Vec<String> = servers.all().iter().map(|server| server.config.name.clone()).collect();
        let known = if known.is_empty() { format!("there is none: {none}") } else { known.join(", ") };
        UsageError(format!("there is no server \"{name}\" ({known})"))
    })
}

async fn login(server: &Arc<Server>) -> anyhow::Result<Exit> {
    let name = show::safe(&server.config.name);
    Ok(match server.connection().await {
        Err(why) => {
            show::error(&format!("{name}: {}", show::one_line(&why, 2_000)));
            Exit::Failed
        }
        Ok(_) if server.is_signed_in() => {
            show::line(&format!("signed in to {name}"))?;
            Exit::Ok
        }
        Ok(_) => {
            show::line(&format!("{name} is connected, and asks nobody to sign in"))?;
            Exit::Ok
        }
    })
}

fn logout(server: &Arc<Server>) -> anyhow::Result<Exit> {
    let name = show::safe(&server.config.name);
    let was = server.sign_out().map_err(anyhow::Error::msg)?;
    let words = if was { "signed out of" } else { "nobody was signed in to" };
    show::line(&format!("{words} {name}"))?;
    Ok(Exit::Ok)
}

async fn test(server: &Arc<Server>, json: bool) -> anyhow::Result<Exit> {
    let begin = Instant::now();
    let connected = server.connection().await.map(drop);
    let connecting = begin.elapsed();
    let mut told = json!({
        "name": server.config.name, "type": server.config.endpoint.kind(),
        "endpoint": server.config.endpoint.words(), "source": server.config.source,
        "connect_ms": millis(connecting), "error": connected.as_ref().err(),
    });
    if connected.is_ok() {
        describe(server, &mut told).await;
    }
    told["complaints"] = json!(server.complaints());
    if json {
        show::line(&told.to_string())?;
    } else {
        print(&told)?;
    }
    Ok(if connected.is_ok() { Exit::Ok } else { Exit::Failed })
}

fn millis(time: std::time::Duration) -> f64 {
    (time.as_secs_f64() * 1_000_000.0).round() / 1_000.0
}

/// Adds what a connected server says about itself.
async fn describe(server: &Arc<Server>, told: &mut Value) {
    let mut trips = Vec::new();
    for _ in 0..ROUNDS {
        let begin = Instant::now();
        if server.ping().await.is_ok() {
            trips.push(millis(begin.elapsed()));
        }
    }
    let Some(offer) = server.offer() else { return };
    told["info"] = offer.info.clone();
    told["round_trip_ms"] = json!(trips);
    let tool = |tool: &Arc<gripper_mcp::client::RemoteTool>| {
        let spec = tool.spec();
        json!({ "name": spec.name, "original": tool.original, "title": spec.title })
    };
    told["tools"] = offer.tools.iter().map(tool).collect();
    told["always_loaded"] = server.always_loaded().into();
    if !offer.info["capabilities"]["prompts"].is_null() {
        let prompt = |prompt: RemotePrompt| {
            let arguments: Vec<String> = prompt.arguments.into_iter().map(|argument| argument.name).collect();
            json!({
                "name": prompt.original, "command": format!("/{}", prompt.name), "arguments": arguments,
                "about": prompt.description,
            })
        };
        told["prompts"] = server.prompts().await.unwrap_or_default().into_iter().map(prompt).collect();
    }
}

fn print(told: &Value) -> anyhow::Result<()> {
    let text = |value: &Value| show::one_line(value.as_str().unwrap_or_default(), 500);
    show::line(&format!(
        "{BOLD}{}{BOLD:#} {} {}",
        text(&told["name"]),
        text(&told["type"]),
        text(&told["endpoint"])
    ))?;
    let took = told["connect_ms"].as_f64().unwrap_or_default();
    if let Some(why) = told["error"].as_str() {
        show::line(&format!(
            "  {BAD}not connected{BAD:#} after {took:.0} ms: {}",
            show::one_line(why, 2_000)
        ))?;
    } else {
        let info = &told["info"];
        let implementation = &info["serverInfo"];
        show::line(&format!(
            "  {GOOD}connected{GOOD:#} in {took:.0} ms: {} {}, protocol {}",
            text(&implementation["name"]),
            text(&implementation["version"]),
            text(&info["protocolVersion"]),
        ))?;
        let able: Vec<&str> =
            info["capabilities"].as_object().into_iter().flatten().map(|(key, _)| key.as_str()).collect();
        show::line(&format!("  {DIM}capabilities:{DIM:#} {}", show::one_line(&able.join(", "), 500)))?;
        let trips: Vec<String> =
            told["round_trip_ms"].as_array().into_iter().flatten().map(Value::to_string).collect();
        show::line(&format!("  {DIM}round trips in ms:{DIM:#} {}", trips.join(", ")))?;
        for (key, label) in [("tools", "tool"), ("prompts", "prompt")] {
            let all = told[key].as_array().cloned().unwrap_or_default();
            show::line(&format!("  {}", show::count(all.len(), label)))?;
            for one in all.iter().take(MOST_NAMES) {
                let more = [&one["title"], &one["about"]].map(text).concat();
                // What a prompt is called by.
                let name = one.get("command").unwrap_or(&one["name"]);
                show::line(&format!("    {} {DIM}{more}{DIM:#}", text(name)))?;
            }
        }
    }
    for what in told["complaints"].as_array().into_iter().flatten() {
        show::line(&format!("  {NOTE}{}{NOTE:#}", text(what)))?;
    }
    Ok(())
}
