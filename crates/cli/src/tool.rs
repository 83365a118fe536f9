//! `gripper tool`: one call, through the same pipeline as every other.

use std::{
    io::{IsTerminal, Read, Write},
    time::Duration,
};

use gripper_runtime::{CallRequest, CallResult, Event, Tool, environment::Environment};
use gripper_tools::tool_search::ToolSearch;
use serde_json::Value;

use crate::{
    ask::Terminal,
    basis::{Basis, PolicyFlags},
    exit::{self, Exit, UsageError},
    interrupt, session, show,
};

/// How long a search among all tools waits for servers.
const SEARCH_PATIENCE: Duration = Duration::from_secs(5);

/// More than the runtime takes, so that it is the one to say no.
const LONGEST_INPUT: u64 = 16 * 1024 * 1024;

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
    let text = if args.input == "-" { read_input()? } else { args.input };
    let input: Value = serde_json::from_str(&text).map_err(|error| {
        UsageError(format!("the input is not JSON: {error}; an example: '{{\"file_path\": \"/tmp/a\"}}'"))
    })?;
    let basis = Basis::read(&args.policy, &environment)?;
    let mut interrupt = interrupt::listen()?;
    let terminal = Terminal::open(&args.policy, &environment, false);
    let opening = session::open(&environment, basis, |builder| {
        Terminal::wire(terminal.as_ref(), &args.policy, builder)
    });
    let Some(session) = interrupt::unless(&mut interrupt, opening).await.transpose()? else {
        return Ok(Exit::Interrupted);
    };
    let preparing = prepare(&session, &args.name);
    if interrupt::unless(&mut interrupt, preparing).await.is_none() {
        return Ok(Exit::Interrupted);
    }
    let turn = session.toolbox.turn();
    turn.submit(CallRequest::new("c1", &args.name, input));
    turn.close();
    let mut last = None;
    loop {
        tokio::select! {
            biased;
            Ok(()) = interrupt.changed() => turn.interrupt(),
            event = turn.next() => match event {
                Some(Event::Result(result)) => last = Some(result),
                Some(Event::Hook { run, .. }) => show::hook(&run),
                Some(_) => {}
                None => break,
            },
        }
    }
    session.finish().await;
    let result = last.ok_or_else(|| anyhow::anyhow!("the call has no result"))?;
    print(&result, args.json)?;
    Ok(exit::of_result(&result))
}

/// Connects what the call needs: the server of its tool, or all if it is about to look among all tools.
async fn prepare(session: &session::Session, name: &str) {
    if name == ToolSearch::NAME {
        session.servers.settle(SEARCH_PATIENCE).await;
    } else if let Some(why) = session.servers.ready_for(name).await {
        show::warn(&why);
    }
}

/// Standard input, as far as any call could use it.
fn read_input() -> anyhow::Result<String> {
    let mut bytes = Vec::new();
    std::io::stdin().take(LONGEST_INPUT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LONGEST_INPUT {
        return Err(UsageError(format!("the input is longer than {LONGEST_INPUT} bytes: send less")).into());
    }
    String::from_utf8(bytes).map_err(|_| UsageError("the input is not UTF-8 text".into()).into())
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
