//! `gripper sandbox`: runs any command confined.

use std::{ffi::OsString, io::Write, path::PathBuf, sync::Arc};

use anyhow::Context;
use gripper_process::{
    Spec, Status,
    confine::{Network, Profile},
    live::{Keep, Live},
    proxy::{Proxy, Rules},
};
use gripper_runtime::{
    environment::{Environment, inherited},
    permissions::web::is_public,
};

use crate::{
    exit::{Exit, UsageError},
    show,
};

/// Run a command that can write nothing and reach nobody, but for what the flags leave open.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A folder that it may write (repeatable); settings and hooks in it stay as they are
    #[arg(long, value_name = "DIR")]
    write: Vec<PathBuf>,
    /// A file or folder that it may not read (repeatable)
    #[arg(long, value_name = "PATH")]
    hide: Vec<PathBuf>,
    /// Hosts that it may reach, such as example.com,*.example.org:443; `all` leaves the whole network open
    #[arg(long, value_name = "HOSTS", value_delimiter = ',')]
    net: Vec<String>,
    /// The command and its arguments
    #[arg(required = true, last = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

pub(crate) async fn run(args: Args, environment: Environment) -> anyhow::Result<Exit> {
    let cwd = environment.cwd.clone().context("the working directory does not exist any more")?;
    let mut writable = Vec::new();
    for folder in &args.write {
        let folder = cwd.join(folder);
        let real = folder.canonicalize().ok().filter(|real| real.is_dir());
        writable.push(
            real.ok_or_else(|| UsageError(format!("--write: {} is not a directory", folder.display())))?,
        );
    }
    let home = environment.home.as_deref();
    let open = args.net.iter().any(|host| host == "all");
    let mut profile = Profile {
        hidden: args.hide.iter().map(|path| cwd.join(path)).collect(),
        network: if open {
            Network::Full
        } else if args.net.is_empty() {
            Network::None
        } else {
            let rules = Rules::naming(&args.net, &[], is_public);
            let rules = rules.map_err(|bad| UsageError(format!("--net: {bad}")))?;
            Network::Proxy(Arc::new(Proxy::start(rules).context("the proxy cannot be started")?))
        },
        ..Profile::writes(writable, home)
    };
    profile.read_only.extend(gripper_tools::bash::protected_below(&profile.writable)?);
    let mut words = args.command.into_iter();
    let program = words.next().unwrap_or_default();
    let spec = Spec { env: inherited(), cage: Some(profile), ..Spec::exec(program, words.collect(), cwd) };
    let live = Live::start(spec, Keep::default())?;
    let mut shown = 0;
    let status = loop {
        let ended = tokio::select! {
            biased;
            () = live.output().changed(shown) => None,
            status = live.wait() => Some(status),
            _ = tokio::signal::ctrl_c() => {
                live.end(std::time::Duration::from_millis(500)).await;
                return Ok(Exit::Interrupted);
            }
        };
        loop {
            let (bytes, next, _) = live.output().since(shown);
            if bytes.is_empty() {
                break;
            }
            anstream::stdout().write_all(&bytes)?;
            shown = next;
        }
        anstream::stdout().flush()?;
        if let Some(status) = ended.or_else(|| live.status()) {
            break status;
        }
    };
    if let Some(confined) = live.confined() {
        for weaker in &confined.weaker {
            show::warn(weaker);
        }
        for denial in &confined.denied {
            show::warn(&format!("refused: {denial}"));
        }
    }
    Ok(match status {
        Status::Exited(code) => Exit::Child(u8::try_from(code).unwrap_or(1)),
        Status::Signalled(signal) => Exit::Child(128_u8.saturating_add(u8::try_from(signal).unwrap_or(1))),
        Status::TimedOut | Status::Cancelled => Exit::Interrupted,
    })
}
