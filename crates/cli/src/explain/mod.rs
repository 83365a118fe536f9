//! `gripper explain`: what a call would do, and what the policy says to it.

mod batch;
mod json;
mod line;
mod picture;

pub(crate) use picture::command as command_picture;

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
};

use gripper_runtime::{
    Place,
    environment::Environment,
    permissions::{
        Behavior, CommandPlace, Decision, Flags, Policy, Request, RuleList, SourcedRule, decide, matching,
        tools::{self, Kind},
    },
    preview,
};

use serde_json::{Value, json};

use crate::{
    basis::{self, PolicyFlags},
    exit::{Exit, UsageError},
    session,
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The command to explain, or another tool's input as JSON; `-` reads it from standard input
    #[arg(value_name = "COMMAND", required_unless_present = "batch", allow_hyphen_values = true)]
    command: Option<String>,
    /// The tool that would be called. For tools about one file or page its name is input enough
    #[arg(long, value_name = "TOOL", default_value = "Bash", conflicts_with = "batch")]
    tool: String,
    /// Judge every line of a JSON Lines file instead
    #[arg(long, value_name = "FILE", conflicts_with = "command")]
    batch: Option<PathBuf>,
    /// Compare with what each line expects, and print the figures
    #[arg(long, requires = "batch")]
    score: bool,
    /// One JSON object instead of text
    #[arg(long)]
    json: bool,
    /// Assume that nothing hides sensitive files from commands that only read
    #[arg(long)]
    no_sandbox: bool,
    #[command(flatten)]
    policy: PolicyFlags,
}

pub(crate) fn run(args: &Args, environment: &Environment) -> anyhow::Result<Exit> {
    if let Some(file) = &args.batch {
        // A batch brings its own policies; what is set here must not change its answers.
        return batch::run(file, args.score, Flags { confined: !args.no_sandbox, ..Flags::default() });
    }
    let mut policy = basis::policy(&args.policy, environment)?;
    policy.flags.confined = !args.no_sandbox;
    let text = match args.command.as_deref() {
        Some("-") => from_input()?,
        text => text.unwrap_or_default().to_owned(),
    };
    let input = input(&args.tool, &text)?;
    let cwd = policy.directories.first().cloned().unwrap_or_else(|| PathBuf::from("/"));
    let place = Place { cwd: cwd.clone() };
    let real = |path: &str| place.locate(Path::new(path)).real;
    let home = policy.home.to_string_lossy();
    // A tool that is there says itself what a call would touch; others, and calls that only name their
    // subject, are known by the rule language alone.
    let mut unfit = None;
    if let Some(tool) = session::registry()?.get(&args.tool) {
        match preview(tool, input.clone(), (&place, &policy), |request| tell(&policy, request, args.json)) {
            Ok(told) => return told,
            Err(error) if tools::known(&args.tool).is_none() => {
                return Err(UsageError(error.to_string()).into());
            }
            Err(error) => unfit = Some(UsageError(error.to_string())),
        }
    }
    let place = CommandPlace { cwd: &cwd.to_string_lossy(), home: &home, real: &real };
    let request = Request::from_input(&args.tool, &input, &policy, place).ok_or_else(|| {
        if let Some(unfit) = unfit {
            return unfit;
        }
        let wanted = tools::known(&args.tool).map_or("", |known| known.input.as_str());
        UsageError(format!("{} needs \"{wanted}\" in its input, as a text", args.tool))
    })?;
    tell(&policy, &request, args.json)
}

fn tell(policy: &Policy, request: &Request<'_>, as_json: bool) -> anyhow::Result<Exit> {
    let matched = matching(policy, request)
        .into_iter()
        .map(|(list, rule)| Matched { list, rule, counts: policy.counts(list, rule) })
        .collect();
    let told = Told { decision: decide(policy, request), matched, request };
    let mut out = anstream::stdout().lock();
    if as_json {
        writeln!(out, "{}", serde_json::to_string_pretty(&json::of(&told))?)?;
    } else {
        write!(out, "{}", picture::of(&told))?;
    }
    Ok(exit(told.decision.behavior))
}

/// A rule about a call, and whether it counts.
struct Matched<'a> {
    list: RuleList,
    rule: &'a SourcedRule,
    counts: bool,
}

/// Everything there is to say about one call.
struct Told<'a> {
    request: &'a Request<'a>,
    decision: Decision,
    /// The rules that are about it, whether or not they decided.
    matched: Vec<Matched<'a>>,
}

/// The input of a tool: JSON, or for tools about one thing just that.
fn input(tool: &str, text: &str) -> anyhow::Result<Value> {
    let known = tools::known(tool).filter(|known| !known.input.is_empty());
    match known {
        Some(known) if known.kind == Kind::Command || !text.trim_start().starts_with('{') => {
            Ok(json!({ known.input.as_str(): text }))
        }
        _ => serde_json::from_str(text)
            .map_err(|error| UsageError(format!("the input of {tool} is not JSON: {error}")).into()),
    }
}

fn from_input() -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    std::io::stdin().lock().read_to_end(&mut bytes)?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        UsageError(format!("the command is not UTF-8 at byte {at}: write it in UTF-8")).into()
    })
}

/// The answer as an exit code, so that a script can test a policy.
fn exit(behavior: Behavior) -> Exit {
    match behavior {
        Behavior::Allow => Exit::Ok,
        Behavior::Ask => Exit::Failed,
        Behavior::Deny => Exit::Usage,
    }
}
