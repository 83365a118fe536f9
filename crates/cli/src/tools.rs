//! `gripper tools`: which tools there are.

use std::{collections::BTreeSet, io::Write};

use clap::ValueEnum;
use gripper_runtime::{
    Deferral, DynTool, SubAgent, Viewer, assemble_pool,
    environment::Environment,
    tool::{Interrupt, ResultBound},
};
use serde_json::{Value, json};

use crate::{
    basis::{Basis, PolicyFlags},
    exit::Exit,
    session, show,
};

/// The window that `--tool-search auto` measures against when no model is configured.
const DEFAULT_WINDOW: usize = 200_000;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// One JSON array with descriptions and schemas
    #[arg(long)]
    json: bool,
    /// The agent to list for
    #[arg(long = "for", value_name = "AGENT", value_enum, default_value = "main")]
    viewer: Agent,
    /// When tools are announced by name only: auto, auto:N, always or never
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    tool_search: Deferral,
    #[command(flatten)]
    policy: PolicyFlags,
}

#[derive(Clone, Copy, ValueEnum)]
enum Agent {
    /// The one a person talks to
    Main,
    /// One it started
    Subagent,
    /// One that a person defined
    Custom,
    /// One that runs while nobody watches
    Background,
    /// One that only looks around
    Explore,
}

impl Agent {
    fn viewer(self) -> Viewer {
        let mut agent = SubAgent::default();
        match self {
            Agent::Main => return Viewer::Main,
            Agent::Subagent => {}
            Agent::Custom => agent.custom = true,
            Agent::Background => agent.background = true,
            Agent::Explore => agent.explores = true,
        }
        Viewer::Sub(agent)
    }
}

pub(crate) fn run(args: &Args, environment: &Environment) -> anyhow::Result<Exit> {
    let basis = Basis::read(&args.policy, environment)?;
    let registry = session::registry_here(environment, &basis)?;
    let pool = assemble_pool(&registry, &basis.policy, &args.viewer.viewer(), Vec::new());
    let announcement = pool.announce(args.tool_search, DEFAULT_WINDOW, &BTreeSet::new());
    let mut out = anstream::stdout().lock();
    if args.json {
        let all: Vec<Value> = pool
            .tools()
            .iter()
            .map(|tool| describe(tool.as_ref(), announcement.names.contains(&tool.spec().name.as_ref())))
            .collect();
        writeln!(out, "{}", serde_json::to_string_pretty(&all)?)?;
        return Ok(Exit::Ok);
    }
    let width = pool.tools().iter().map(|tool| tool.spec().name.len()).max().unwrap_or(0);
    for tool in pool.tools() {
        let spec = tool.spec();
        let first_line = spec.description.lines().next().unwrap_or_default();
        let deferred = if announcement.names.contains(&spec.name.as_ref()) { " (deferred)" } else { "" };
        writeln!(
            out,
            "{}{:<width$}{}  {first_line}{deferred}",
            show::BOLD,
            spec.name,
            show::BOLD.render_reset()
        )?;
    }
    Ok(Exit::Ok)
}

fn describe(tool: &dyn DynTool, deferred: bool) -> Value {
    let spec = tool.spec();
    let facts = &spec.facts;
    json!({
        "name": spec.name,
        "title": spec.title,
        "aliases": spec.aliases,
        "description": spec.description,
        "search_hint": spec.search_hint,
        "input_schema": spec.input.value(),
        "output_schema": spec.output_schema,
        "examples": spec.examples,
        "kind": facts.kind,
        "server": spec.server,
        "deferred": deferred,
        "interruptible": facts.interrupt == Interrupt::Cancel,
        "max_result_chars": match facts.bound { ResultBound::Chars(most, _) => Some(most), ResultBound::SelfBounded => None },
        "time_limit_ms": facts.time_limit.as_millis() as u64,
    })
}
