//! `gripper explain`: what a command would do, and what the policy says to it.

mod batch;
mod json;
mod line;
mod picture;

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
};

use gripper_runtime::{
    Place,
    environment::Environment,
    permissions::{Behavior, CommandPlace, Decision, Flags, Policy, Request, decide},
};

use crate::{
    exit::{Exit, UsageError},
    session::{self, PolicyFlags},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The command to explain; `-` reads it from standard input
    #[arg(value_name = "COMMAND", required_unless_present = "batch", allow_hyphen_values = true)]
    command: Option<String>,
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
    let mut policy = session::policy(&args.policy, environment)?;
    policy.flags.confined = !args.no_sandbox;
    let text = match args.command.as_deref() {
        Some("-") => from_input()?,
        text => text.unwrap_or_default().to_owned(),
    };
    let home = environment.home.clone().unwrap_or_else(|| PathBuf::from("/"));
    let (request, decision) = judge(&text, &policy, &home);
    let mut out = anstream::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&json::of(&request, &decision))?)?;
    } else {
        write!(out, "{}", picture::of(&request, &decision))?;
    }
    Ok(exit(decision.behavior))
}

/// Judges a command as it would run here, links followed on the disk.
fn judge(text: &str, policy: &Policy, home: &Path) -> (Request<'static>, Decision) {
    let cwd = policy.directories.first().cloned().unwrap_or_else(|| PathBuf::from("/"));
    let place = Place { cwd: cwd.clone() };
    let real = |path: &str| place.locate(Path::new(path)).real;
    let place = CommandPlace { cwd: &cwd.to_string_lossy(), home: &home.to_string_lossy(), real: &real };
    let request = Request::command("Bash", text, policy, place);
    let decision = decide(policy, &request);
    (request, decision)
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
