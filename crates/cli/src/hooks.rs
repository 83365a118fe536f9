//! `gripper hooks`: list hooks with what is wrong with them, or fire them by hand.

use std::io::Write;

use gripper_runtime::{
    Place,
    environment::Environment,
    hooks::{
        HookEvent, HookRunner, Occasion, Rehearsal, Scene, ailment,
        config::{Action, Entry},
    },
    permissions::Request,
    tool::Agent,
};
use serde_json::{Map, Value, json};

use crate::{
    basis::{Basis, PolicyFlags},
    exit::{Exit, UsageError},
    interrupt, session,
    show::{self, BAD, BOLD, DIM, GOOD},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show every hook, where it stands and what is wrong with it; exit 1 if something is
    List {
        /// Print one JSON object a line
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        policy: PolicyFlags,
    },
    /// Run the hooks of an event once and show what each reads, prints and means
    Test {
        /// The event, e.g. PreToolUse
        event: String,
        /// The tool, for events about a call
        #[arg(long, default_value = "")]
        tool: String,
        /// Its input as JSON
        #[arg(long, default_value = "{}")]
        input: String,
        #[command(flatten)]
        policy: PolicyFlags,
    },
}

pub(crate) async fn run(args: Args, environment: Environment) -> anyhow::Result<Exit> {
    match args.command {
        Command::List { json, policy } => list(&policy, &environment, json),
        Command::Test { event, tool, input, policy } => {
            test(&policy, &environment, &event, &tool, &input).await
        }
    }
}

fn list(flags: &PolicyFlags, environment: &Environment, json: bool) -> anyhow::Result<Exit> {
    let basis = Basis::read(flags, environment)?;
    let policy = &basis.policy;
    let env = session::surroundings(environment, None).env;
    let (entries, diagnostics) = basis.hooks();
    let mut sound = true;
    for entry in &entries {
        let wrong = ailment(entry, &policy.root, &policy.root, &env);
        sound &= wrong.is_none();
        if json {
            writeln!(std::io::stdout(), "{}", describe(entry, wrong.as_deref()))?;
            continue;
        }
        let matcher = if entry.matcher.is_empty() { "*" } else { &entry.matcher };
        show::line(&format!(
            "{BOLD}{}{BOLD:#} {} {}{} {DIM}{}{DIM:#}",
            show::safe(&entry.event),
            show::safe(matcher),
            if matches!(entry.action, Action::Http { .. }) { "POST " } else { "" },
            show::one_line(&entry.action.words(), 100),
            show::safe(&entry.source.to_string()),
        ))?;
        if let Some(wrong) = wrong {
            show::line(&format!("    {BAD}{}{BAD:#}", show::safe(&wrong)))?;
        }
    }
    // What is wrong with an entry that could be read stands below it already.
    let told = |what: &str| entries.iter().any(|entry| entry.trouble.as_deref() == Some(what));
    for found in diagnostics.iter().filter(|found| !told(&found.what)) {
        show::warn(&found.to_string());
        sound = false;
    }
    if entries.is_empty() && !json {
        show::line("no hooks")?;
    }
    Ok(if sound { Exit::Ok } else { Exit::Failed })
}

fn describe(entry: &Entry, wrong: Option<&str>) -> Value {
    json!({
        "event": entry.event, "matcher": entry.matcher, "action": entry.action.words(),
        "source": entry.source, "timeout_s": entry.limit.as_secs_f64(), "once": entry.once,
        "if": entry.condition.as_ref().map(ToString::to_string), "wrong": wrong,
    })
}

async fn test(
    flags: &PolicyFlags,
    environment: &Environment,
    event: &str,
    tool: &str,
    input: &str,
) -> anyhow::Result<Exit> {
    let known = || HookEvent::FIRED.map(HookEvent::name).join(", ");
    let event = HookEvent::named(event)
        .ok_or_else(|| UsageError(format!("there is no event \"{event}\": use one of {}", known())))?;
    let input: Value =
        serde_json::from_str(input).map_err(|error| UsageError(format!("--input is not JSON: {error}")))?;
    let mut basis = Basis::read(flags, environment)?;
    let servers = session::servers(environment, &mut basis, None);
    let policy = &basis.policy;
    let (entries, diagnostics) = basis.hooks();
    diagnostics.iter().for_each(|found| show::warn(&found.to_string()));
    let runner = HookRunner::new(entries, session::surroundings(environment, Some(servers)));
    let mut fields = Map::new();
    if !tool.is_empty() {
        fields.insert("tool_name".into(), tool.into());
        fields.insert("tool_input".into(), input.clone());
        fields.insert("tool_use_id".into(), "test".into());
    }
    let place = Place { cwd: policy.root.clone() };
    let scene = Scene { session: "test", agent: &Agent::main(), place: &place, policy };
    let request = (!tool.is_empty()).then(|| Request { input: Some(&input), ..Request::new(tool) });
    let mut interrupt = interrupt::listen()?;
    let rehearsal =
        runner.rehearse(scene, Occasion { event, subject: tool, fields, request: request.as_ref() });
    let Some(tried) = interrupt::unless(&mut interrupt, rehearsal).await else {
        return Ok(Exit::Interrupted);
    };
    if tried.is_empty() {
        show::line("no hook matches")?;
    }
    tried.iter().try_for_each(print)?;
    Ok(if tried.iter().any(|hook| hook.failed) { Exit::Failed } else { Exit::Ok })
}

fn print(tried: &Rehearsal) -> std::io::Result<()> {
    let (ended, stdout, stderr) = &tried.raw;
    show::line(&format!(
        "{BOLD}{}{BOLD:#} {DIM}{}{DIM:#}",
        show::one_line(&tried.entry.action.words(), 100),
        show::safe(&tried.entry.source.to_string())
    ))?;
    for (label, text) in [("reads", &tried.stdin), ("ended", ended), ("printed", stdout), ("errors", stderr)]
    {
        if !text.trim().is_empty() {
            show::line(&format!(
                "  {DIM}{label}:{DIM:#} {}",
                show::safe(&show::clip(text.trim_end(), 10_000))
            ))?;
        }
    }
    let style = if tried.failed { BAD } else { GOOD };
    show::line(&format!("  {DIM}means:{DIM:#} {style}{}{style:#}", show::safe(&tried.outcome)))
}
