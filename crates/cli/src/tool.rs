//! `gripper tool`: one call, through the same pipeline as every other.

use std::io::{IsTerminal, Write};

use gripper_runtime::{CallRequest, CallResult, Event, environment::Environment};
use serde_json::Value;

use crate::{
    exit::{self, Exit, UsageError},
    session::{self, PolicyFlags},
    show,
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The tool's name
    name: String,
    /// Its input as JSON, or - to read it from standard input
    #[arg(default_value = "{}")]
    input: String,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    policy: PolicyFlags,
}

pub(crate) async fn run(args: Args, environment: Environment) -> anyhow::Result<Exit> {
    let text = if args.input == "-" { std::io::read_to_string(std::io::stdin())? } else { args.input };
    let input: Value = serde_json::from_str(&text).map_err(|error| {
        UsageError(format!("the input is not JSON: {error}; quote it, e.g. '{{\"file_path\": \"/tmp/a\"}}'"))
    })?;
    let policy = session::policy(&args.policy, &environment)?;
    let session = session::open(&args.policy, &environment, policy, |builder| builder)?;
    let turn = session.toolbox.turn();
    turn.submit(CallRequest::new("c1", &args.name, input));
    turn.close();
    let mut last = None;
    loop {
        tokio::select! {
            event = turn.next() => match event {
                Some(Event::Result(result)) => last = Some(result),
                Some(_) => {}
                None => break,
            },
            _ = tokio::signal::ctrl_c() => turn.cancel(),
        }
    }
    session.finish();
    let result = last.ok_or_else(|| anyhow::anyhow!("the call has no result"))?;
    print(&result, args.json)?;
    Ok(exit::of_result(&result))
}

fn print(result: &std::sync::Arc<CallResult>, json: bool) -> anyhow::Result<()> {
    if json {
        writeln!(std::io::stdout(), "{}", serde_json::to_string(&Event::Result(result.clone()))?)?;
    } else if let (true, Some(code)) = (result.is_error, result.error_code) {
        show::error(&format!("{code}: {result}"));
    } else if std::io::stdout().is_terminal() {
        writeln!(std::io::stdout(), "{}", show::safe(&result.to_string()))?;
    } else {
        writeln!(std::io::stdout(), "{result}")?;
    }
    Ok(())
}
