//! `gripper settings`: what is in force and why, and files checked and changed.

use std::{
    io::{Read, Write},
    path::{Path, PathBuf},
};

use gripper_runtime::{
    environment::Environment,
    permissions::{Rule, RuleList, Scope, Source},
    redact::redact_value,
    settings::{Kind, Loaded, add_rule, check_edit, keys, load},
};
use serde_json::{Value, json};

use crate::{
    basis::{self, PolicyFlags},
    exit::{Exit, UsageError},
    show::{self, BAD, BOLD, DIM, GOOD},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    /// Only this key and what is below it
    #[arg(long, value_name = "KEY")]
    origin: Option<String>,
    /// One JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    policy: PolicyFlags,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Check a settings file against its schema
    Check {
        /// The file; its name says whether it holds settings, permissions or hooks
        file: PathBuf,
        /// Say what it would change to put this file's content there (- for standard input)
        #[arg(long, value_name = "FILE")]
        with: Option<PathBuf>,
    },
    /// Add a rule to a settings file, keeping everything else in it
    Add {
        /// The list: allow, ask or deny
        #[arg(value_parser = RuleList::ALL.map(RuleList::name))]
        list: String,
        /// The rule, e.g. Read
        rule: String,
        /// Whose file: yours, the project's, or this checkout's
        #[arg(long, value_name = "SCOPE", default_value = "local", value_parser = SCOPES.map(|(name, _)| name))]
        to: String,
    },
    /// Print a JSON Schema
    Schema {
        /// Of which kind of file
        #[arg(default_value = "settings", value_parser = Kind::ALL.map(Kind::name))]
        kind: String,
    },
}

const SCOPES: [(&str, Scope); 3] =
    [("user", Scope::User), ("project", Scope::Project), ("local", Scope::Local)];

pub(crate) fn run(args: &Args, environment: &Environment) -> anyhow::Result<Exit> {
    let sources = basis::sources(&args.policy, environment)?;
    match &args.action {
        None => print(&load(&sources), args),
        Some(Action::Check { file, with }) => {
            let absolute = sources.cwd.join(file);
            let kind = sources
                .settings_file(&absolute)
                .unwrap_or_else(|| Kind::of_name(absolute.file_name().unwrap_or_default()));
            check(file, kind, with.as_deref())
        }
        Some(Action::Add { list, rule, to }) => {
            let list = RuleList::ALL.into_iter().find(|known| known.name() == list).unwrap_or(RuleList::Ask);
            let scope =
                SCOPES.into_iter().find(|(name, _)| name == to).map_or(Scope::Local, |(_, scope)| scope);
            let rule = Rule::parse(rule).map_err(|error| UsageError(error.to_string()))?;
            let file = sources.file_to_write(scope).ok_or_else(|| {
                UsageError("HOME is not set, so there is no such file: set HOME or GRIPPER_CONFIG_DIR".into())
            })?;
            let added = add_rule(&file, Kind::Settings, list, rule.text())?;
            let done = if added { "added to" } else { "already in" };
            show::line(&format!("{} {rule} {done} {}", list.name(), show::safe(&file.to_string_lossy())))?;
            Ok(Exit::Ok)
        }
        Some(Action::Schema { kind }) => {
            let kind = Kind::ALL.into_iter().find(|known| known.name() == kind).unwrap_or(Kind::Settings);
            show::line(&format!("{:#}", keys::schema(kind).value()))?;
            Ok(Exit::Ok)
        }
    }
}

fn print(loaded: &Loaded, args: &Args) -> anyhow::Result<Exit> {
    let wanted = |key: &str| {
        args.origin.as_deref().is_none_or(|prefix| {
            let rest = key.strip_prefix(prefix);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        })
    };
    let rows = loaded.effective.leaves().into_iter().filter(|(key, _)| wanted(key)).map(|(key, node)| {
        let counts = !is_set_aside(loaded, &key, &node.source);
        let value = masked(&key, node.value());
        (key, value, node.source.clone(), counts)
    });
    let mut out = anstream::stdout().lock();
    if args.json {
        let rows: Vec<Value> = rows
            .map(|(key, value, source, counts)| json!({"key": key, "value": value, "source": source, "counts": counts}))
            .collect();
        let whole = json!({
            "root": loaded.policy.root, "trusted": loaded.policy.trusted, "settings": rows,
            "diagnostics": loaded.diagnostics,
        });
        writeln!(out, "{whole:#}")?;
        return Ok(Exit::Ok);
    }
    let trusted = if loaded.policy.trusted { "trusted" } else { "not trusted" };
    writeln!(out, "{DIM}project {} ({trusted}){DIM:#}", show::safe(&loaded.policy.root.to_string_lossy()))?;
    for (key, value, source, counts) in rows {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let aside = if counts { String::new() } else { format!(" {BAD}set aside{BAD:#}") };
        let source = show::one_line(&source.to_string(), 300);
        writeln!(
            out,
            "{BOLD}{}{BOLD:#} = {}{aside}  {DIM}{source}{DIM:#}",
            show::one_line(&key, 120),
            show::one_line(&value, 200)
        )?;
    }
    for found in &loaded.diagnostics {
        writeln!(out, "{BAD}{}:{BAD:#} {}", found.weight.name(), show::one_line(&found.to_string(), 600))?;
    }
    Ok(Exit::Ok)
}

/// Allow rules are listed also where trust or managed policy keeps them from counting.
fn is_set_aside(loaded: &Loaded, key: &str, source: &Source) -> bool {
    let allows = ["permissions.allow", "permissions.pre_approval.a"].iter().any(|list| key.starts_with(list));
    let untrusted = !loaded.policy.trusted && matches!(source.scope, Scope::Project | Scope::Local);
    allows && (untrusted || (loaded.locked && source.scope != Scope::Managed))
}

/// The value as it may be shown: people keep secrets in `env`.
fn masked(key: &str, value: Value) -> Value {
    let name = key.rsplit('.').next().unwrap_or(key);
    let mut whole = json!({ name: value });
    redact_value(&mut whole);
    whole.as_object().and_then(|map| map.values().next().cloned()).unwrap_or_default()
}

fn check(file: &Path, kind: Kind, with: Option<&Path>) -> anyhow::Result<Exit> {
    let before = content(file)?;
    let outcome = match with {
        None => check_edit(kind, &before, &before).map(|_| "fits the schema".to_owned()),
        Some(other) => check_edit(kind, &before, &content(other)?).map(|change| change.to_string()),
    };
    let name = file.to_string_lossy();
    match outcome {
        Ok(words) => {
            show::line(&format!("{GOOD}{}{GOOD:#}: {}", show::safe(&name), show::safe(&words)))?;
            Ok(Exit::Ok)
        }
        Err(problems) => {
            for problem in &problems {
                show::error(&format!("{name}: {}: {}", problem.path, problem.message));
            }
            Ok(Exit::Failed)
        }
    }
}

fn content(file: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let read = match file.as_os_str() == "-" {
        true => std::io::stdin().lock().read_to_string(&mut text),
        false => std::fs::File::open(file).and_then(|mut opened| opened.read_to_string(&mut text)),
    };
    read.map_err(|error| UsageError(format!("cannot read {}: {error}", file.display())))?;
    Ok(text)
}
