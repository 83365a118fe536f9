//! `gripper mcp`: the tools, served to any client of the Model Context Protocol.

pub(crate) mod browser;
mod host;
mod install;
mod servers;

use std::{net::SocketAddr, path::PathBuf, sync::Arc};

use gripper_mcp::server::{HttpOptions, serve_http, serve_stream};
use gripper_runtime::environment::Environment;
use tokio_util::sync::CancellationToken;

use crate::{
    basis::PolicyFlags,
    block_on,
    exit::{Exit, UsageError},
    interrupt, show,
};
use host::{Front, Profile};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    serve: Serve,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Print, or write, what makes a client use Gripper
    Install(install::Args),
    #[command(flatten)]
    Servers(servers::Action),
}

#[derive(clap::Args)]
struct Serve {
    /// Serve over HTTP on this address, e.g. 127.0.0.1:7333, instead of standard input and output
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,
    /// Which tools: those that only read, those that also edit files, or all
    #[arg(long, value_enum, default_value_t = Profile::Full)]
    profile: Profile,
    /// Only these tools (repeatable, or separated by commas)
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    tools: Vec<String>,
    /// Work in this directory, whatever the client says
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// A page whose scripts may call over HTTP, e.g. http://localhost:6274 (repeatable)
    #[arg(long, value_name = "ORIGIN", requires = "http")]
    allow_origin: Vec<String>,
    /// A further name under which the HTTP server is reached (repeatable)
    #[arg(long, value_name = "HOST", requires = "http")]
    allow_host: Vec<String>,
    /// Let everybody who reaches the address call over HTTP
    #[arg(long, requires = "http")]
    no_token: bool,
    #[command(flatten)]
    policy: PolicyFlags,
}

pub(crate) fn run(args: Args, environment: Environment) -> anyhow::Result<Exit> {
    match args.action {
        Some(Action::Install(args)) => install::run(&args, &environment),
        Some(Action::Servers(action)) => block_on(servers::run(action, environment)),
        None => block_on(serve(args.serve, environment)),
    }
}

async fn serve(args: Serve, mut environment: Environment) -> anyhow::Result<Exit> {
    let pinned = args.cwd.is_some();
    if let Some(cwd) = &args.cwd {
        let found = cwd.canonicalize().ok().filter(|found| found.is_dir());
        let found = found.ok_or_else(|| {
            UsageError(format!("--cwd: {} is not a directory that is there", cwd.display()))
        })?;
        environment.cwd = Some(found);
    }
    let mut interrupt = interrupt::listen()?;
    let token = environment.mcp_token.take();
    let front = Arc::new(Front::new(environment, args.policy, (args.profile, args.tools), pinned)?);
    let Some(address) = args.http else {
        let serving = serve_stream(front, tokio::io::stdin(), tokio::io::stdout());
        return match interrupt::unless(&mut interrupt, serving).await {
            None => Ok(Exit::Interrupted),
            Some(Ok(())) => Ok(Exit::Ok),
            Some(Err(why)) => {
                Err(UsageError(format!("the client does not speak the protocol: {why}")).into())
            }
        };
    };
    let listener = tokio::net::TcpListener::bind(address).await.map_err(|error| {
        UsageError(format!("--http {address}: {error}; choose another port, or 0 for any that is free"))
    })?;
    let token = match (args.no_token, token) {
        (true, _) => None,
        (false, Some(token)) => Some(token),
        (false, None) => {
            let token = uuid::Uuid::new_v4().simple().to_string();
            show::note(&format!("token: {token} (set GRIPPER_MCP_TOKEN to choose one)"));
            Some(token)
        }
    };
    show::note(&format!("serving on http://{}/mcp", listener.local_addr()?));
    let mut hosts = args.allow_host;
    hosts.push(address.ip().to_string());
    let stop = CancellationToken::new();
    let options = HttpOptions { token, origins: args.allow_origin, hosts };
    let serving = serve_http(front, listener, options, stop.clone());
    match interrupt::unless(&mut interrupt, serving).await {
        None => {
            stop.cancel();
            Ok(Exit::Interrupted)
        }
        Some(served) => served.map(|()| Exit::Ok).map_err(anyhow::Error::msg),
    }
}
