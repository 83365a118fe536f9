//! `gripper doctor`: what works on this machine and what is missing.

use gripper_process::{confine::probe, find_program, limits};
use gripper_runtime::{
    environment::{Environment, inherited},
    permissions::Weight,
};
use serde::Serialize;

use crate::{
    basis::{Basis, PolicyFlags},
    exit::Exit,
    show,
};

/// Shells that tools can use.
const SHELLS: [&str; 3] = ["bash", "sh", "pwsh"];
/// Programs that know a language.
const LANGUAGE_SERVERS: [&str; 8] = [
    "clangd",
    "gopls",
    "jdtls",
    "lua-language-server",
    "pyright-langserver",
    "rust-analyzer",
    "typescript-language-server",
    "zls",
];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// One thing that was looked at.
#[derive(Serialize)]
struct Finding {
    about: &'static str,
    name: String,
    works: bool,
    words: String,
}

pub(crate) fn run(args: &Args, environment: &Environment) -> anyhow::Result<Exit> {
    let mut findings = confinement();
    findings.extend(programs("shell", &SHELLS));
    findings.push(Finding {
        about: "search",
        name: "Grep and Glob".to_owned(),
        works: true,
        words: "built in".to_owned(),
    });
    findings.extend(programs("language server", &LANGUAGE_SERVERS));
    findings.extend(settings(environment)?);
    let usable = probe().backend.is_some();
    if args.json {
        let backend = probe().backend.map(|backend| backend.to_string());
        show::line(&serde_json::json!({ "confinement": backend, "findings": findings }).to_string())?;
    } else {
        let mut about = "";
        for finding in &findings {
            if finding.about != about {
                about = finding.about;
                show::line(about)?;
            }
            let sign = if finding.works { "ok     " } else { "missing" };
            show::line(&format!("  {sign}  {}: {}", finding.name, finding.words))?;
        }
        show::line(&match probe().backend {
            Some(backend) => format!("Commands are confined with {backend}."),
            None => "Commands cannot be confined, so each is asked about.".to_owned(),
        })?;
    }
    Ok(if usable { Exit::Ok } else { Exit::Failed })
}

fn confinement() -> Vec<Finding> {
    let layers = probe().layers.iter();
    let finding = |layer: &gripper_process::confine::Layer| {
        let (works, words) = match &layer.state {
            Ok(words) => (true, words.clone()),
            Err(why) => (false, why.clone()),
        };
        Finding { about: "confinement", name: layer.name.to_owned(), works, words }
    };
    let groups = match limits::groups() {
        Ok(base) => Ok(format!("limits hold for a whole command, below {}", base.display())),
        Err(why) => Err(format!("{why}; limits hold for each process")),
    };
    let groups = gripper_process::confine::Layer { name: "cgroup v2", state: groups };
    layers.chain([&groups]).map(finding).collect()
}

fn programs(about: &'static str, names: &[&str]) -> Vec<Finding> {
    let env = inherited();
    let finding = |name: &&str| {
        let found = find_program(name.as_ref(), std::path::Path::new("/"), &env);
        let works = found.is_ok();
        let words = found.map_or_else(|_| "not found".to_owned(), |path| path.display().to_string());
        Finding { about, name: (*name).to_owned(), works, words }
    };
    names.iter().map(finding).collect()
}

/// What is wrong with settings and hooks.
fn settings(environment: &Environment) -> anyhow::Result<Vec<Finding>> {
    let basis = Basis::load(&PolicyFlags::default(), environment)?;
    let (entries, problems) = basis.hooks();
    let wrong: Vec<String> = basis
        .loaded
        .diagnostics
        .iter()
        .filter(|found| found.weight != Weight::Note)
        .map(ToString::to_string)
        .collect();
    let state = |about: &'static str, name: String, wrong: Vec<String>| Finding {
        about,
        name,
        works: wrong.is_empty(),
        words: if wrong.is_empty() { "nothing is wrong".to_owned() } else { wrong.join("; ") },
    };
    let problems = problems.iter().map(ToString::to_string).collect();
    Ok(vec![
        state("settings", "files".to_owned(), wrong),
        state("settings", show::count(entries.len(), "hook"), problems),
    ])
}
