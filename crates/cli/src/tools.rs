//! `gripper tools`: which tools there are.

use std::{collections::BTreeSet, io::Write, time::Duration};

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
    interrupt, session, show,
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
    /// How long servers are waited for
    #[arg(long, value_name = "SECONDS", default_value_t = 2.0)]
    wait: f64,
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

pub(crate) async fn run(args: Args, environment: Environment) -> anyhow::Result<Exit> {
    let mut basis = Basis::read(&args.policy, &environment)?;
    let patience = Duration::from_secs_f64(args.wait.clamp(0.0, 3_600.0));
    let mut interrupt = interrupt::listen()?;
    let looking = session::whole_registry(&environment, &mut basis, patience);
    let Some(looked) = interrupt::unless(&mut interrupt, looking).await else {
        return Ok(Exit::Interrupted);
    };
    let (registry, connecting) = looked?;
    if !connecting.is_empty() {
        let names = connecting.iter().take(10).map(String::as_str).collect::<Vec<_>>().join(", ");
        let more = connecting.len().checked_sub(10).filter(|more| *more > 0);
        let more = more.map(|more| format!(" and {more} more")).unwrap_or_default();
        show::warn(&format!(
            "still connecting, their tools are missing here: {names}{more}; --wait waits longer"
        ));
    }
    let pool = assemble_pool(&registry, &basis.policy, &args.viewer.viewer(), connecting);
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
        // The words of a server may be anything.
        let first_line = show::one_line(spec.description.lines().next().unwrap_or_default(), 300);
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
