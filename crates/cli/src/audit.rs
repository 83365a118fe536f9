//! `gripper audit`: look after the audit log.

use std::{io::Write, path::PathBuf};

use gripper_runtime::{audit, environment::Environment};
use serde_json::json;

use crate::{
    exit::{Exit, UsageError},
    show::{self, GOOD, NOTE},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Check that no line was changed, removed or added
    Verify {
        /// A log file or a folder of them; the user's own log if left out
        path: Option<PathBuf>,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(args: &Args, environment: &Environment) -> anyhow::Result<Exit> {
    let Command::Verify { path, json } = &args.command;
    let own = environment.config_dir.as_ref().map(|config| config.join("audit"));
    let path =
        path.clone().or(own).ok_or_else(|| UsageError("HOME is not set: say which log to verify".into()))?;
    // A pipe or device would never end.
    if !(path.is_file() || path.is_dir()) {
        return Err(UsageError(format!("there is no audit log at {}", path.display())).into());
    }
    let verdict = audit::verify(&path);
    if verdict.as_ref().is_ok_and(|report| report.files == 0) {
        return Err(UsageError(format!("there is no audit log in {}", path.display())).into());
    }
    if *json {
        let object = match &verdict {
            Ok(report) => {
                json!({ "intact": true, "lines": report.lines, "files": report.files, "notes": report.notes })
            }
            Err(damage) => json!({ "intact": false, "damage": damage.to_string() }),
        };
        writeln!(std::io::stdout(), "{object}")?;
    } else {
        match &verdict {
            Ok(report) => {
                show::line(&format!(
                    "{GOOD}intact{GOOD:#}: {} in {}",
                    show::count(report.lines, "line"),
                    show::count(report.files, "file")
                ))?;
                for note in &report.notes {
                    show::line(&format!("{NOTE}note:{NOTE:#} {}", show::safe(note)))?;
                }
            }
            Err(damage) => show::error(&damage.to_string()),
        }
    }
    Ok(if verdict.is_ok() { Exit::Ok } else { Exit::Failed })
}
