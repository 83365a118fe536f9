//! `gripper trust`: whose settings count in full.

use std::path::PathBuf;

use gripper_runtime::{environment::Environment, settings::TrustError};
use serde_json::json;

use crate::{
    basis::{self, PolicyFlags},
    exit::{Exit, UsageError},
    show,
};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// The folder; without it, the project's folder around here
    folder: Option<PathBuf>,
    /// Trust it no longer
    #[arg(long)]
    remove: bool,
    /// List the trusted folders
    #[arg(long, conflicts_with_all = ["folder", "remove"])]
    list: bool,
    /// Also a folder that holds your whole home
    #[arg(long)]
    force: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, environment: &Environment) -> anyhow::Result<Exit> {
    let sources = basis::sources(&PolicyFlags::default(), environment)?;
    let (store, trouble) = sources.trust();
    if let Some(trouble) = trouble {
        show::warn(&trouble.to_string());
    }
    if args.list {
        let folders: Vec<String> =
            store.folders().map(|folder| folder.to_string_lossy().into_owned()).collect();
        show::line(&match args.json {
            true => json!({ "trusted": folders }).to_string(),
            false if folders.is_empty() => "no folder is trusted".to_owned(),
            false => show::safe(&folders.join("\n")).into_owned(),
        })?;
        return Ok(Exit::Ok);
    }
    let folder = args.folder.as_ref().map_or_else(|| sources.root.clone(), |folder| sources.cwd.join(folder));
    let changed = match args.remove {
        true => store.remove(&folder),
        false => store.add(&folder, args.force),
    };
    let (real, changed) = changed.map_err(|error| match error {
        TrustError::Write(error) => anyhow::Error::new(error),
        error => UsageError(error.to_string()).into(),
    })?;
    if args.json {
        show::line(&json!({ "folder": real, "trusted": !args.remove, "changed": changed }).to_string())?;
    } else {
        let words = match (args.remove, changed) {
            (false, true) => "is trusted now, with every folder in it",
            (false, false) => "was trusted already",
            (true, true) => "is not trusted any more",
            (true, false) => "was not on the list",
        };
        show::line(&format!("{} {words}", show::safe(&real.to_string_lossy())))?;
    }
    Ok(Exit::Ok)
}
