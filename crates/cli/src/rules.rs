//! `gripper rules`: which rules there are, what is wrong with them, and whether their examples hold.

use std::path::PathBuf;

use gripper_runtime::{
    environment::Environment,
    permissions::{
        Diagnostic, Mode, Policy, RuleList, Scope, Source, SourcedRule, Weight, failing_examples, lint,
    },
    settings::{Given, Loaded, load},
};
use serde_json::{Value, json};

use crate::{
    basis::{self, Basis, PolicyFlags},
    exit::Exit,
    session,
    show::{self, BAD, BOLD, DIM, GOOD, NOTE},
};

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Show every rule with its file and line, and why it does not count if it does not
    List {
        #[command(flatten)]
        common: Common,
    },
    /// Say what is wrong with the files and rules; exit 1 if something does not count as it stands
    Lint {
        /// Exit 1 for warnings too
        #[arg(long)]
        strict: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Check the examples that rules carry; exit 1 if one does not hold or an entry cannot be read
    Test {
        /// Settings or permissions files; without any, those in force here
        files: Vec<PathBuf>,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
}

#[derive(clap::Args)]
struct Common {
    /// One JSON object
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    policy: PolicyFlags,
}

pub(crate) fn run(args: &Args, environment: &Environment) -> anyhow::Result<Exit> {
    match &args.command {
        Command::List { common } => list(&Basis::read(&common.policy, environment)?.policy, common.json),
        Command::Lint { strict, common } => {
            let basis = Basis::load(&common.policy, environment)?;
            let mut found = basis.loaded.diagnostics;
            found.extend(findings(&basis.policy)?);
            print_findings(&found, *strict, common.json)
        }
        Command::Test { files, json } => test(files, *json, environment),
    }
}

fn list(policy: &Policy, json: bool) -> anyhow::Result<Exit> {
    let all: Vec<(RuleList, &SourcedRule)> = RuleList::ALL
        .into_iter()
        .flat_map(|list| policy.rules.list(list).iter().map(move |rule| (list, rule)))
        .collect();
    if json {
        let all = all.into_iter().map(|(list, rule)| {
            let mut value = json!(rule);
            value["list"] = json!(list);
            value["set_aside"] = json!(policy.set_aside(list, rule));
            value
        });
        show::line(&json!({ "rules": all.collect::<Vec<Value>>() }).to_string())?;
        return Ok(Exit::Ok);
    }
    if all.is_empty() {
        show::line("no rules")?;
    }
    for (list, rule) in all {
        let text = show::safe(rule.rule.text());
        let source = show::safe(&place(&rule.source)).into_owned();
        show::line(&format!("{BOLD}{:<5}{BOLD:#} {text}  {DIM}{source}{DIM:#}", list.name()))?;
        if let Some(why) = policy.set_aside(list, rule) {
            show::line(&format!("      {BAD}does not count: {why}{BAD:#}"))?;
        }
    }
    Ok(Exit::Ok)
}

/// What is wrong with the rules of a policy.
fn findings(policy: &Policy) -> anyhow::Result<Vec<Diagnostic>> {
    let registry = session::registry()?;
    let known: Vec<&str> = registry.iter().map(|tool| tool.spec().name.as_ref()).collect();
    Ok(lint(policy, &known))
}

fn print_findings(found: &[Diagnostic], strict: bool, json: bool) -> anyhow::Result<Exit> {
    if json {
        show::line(&json!({ "findings": found }).to_string())?;
    } else {
        found.iter().try_for_each(print)?;
        if found.is_empty() {
            show::line(&format!("{GOOD}nothing to say{GOOD:#}"))?;
        }
    }
    let worst = if strict { Weight::Warning } else { Weight::Error };
    Ok(if found.iter().any(|found| found.weight <= worst) { Exit::Failed } else { Exit::Ok })
}

fn test(files: &[PathBuf], json: bool, environment: &Environment) -> anyhow::Result<Exit> {
    let mut sources = basis::sources(&PolicyFlags::default(), environment)?;
    let given = files.iter().map(|file| Some(Given::File(sources.cwd.join(file))));
    let all: Vec<Option<Given>> = if files.is_empty() { vec![None] } else { given.collect() };
    let (mut failures, mut examples) = (Vec::new(), 0);
    for given in all {
        let named = given.is_some();
        sources.given = given;
        let Loaded { policy, diagnostics, .. } = load(&sources);
        let meant = |source: &Source| !named || source.scope == Scope::CommandLine;
        // Managed policy that cannot be read keeps the rules of other files out.
        let tells = |source: &Source| meant(source) || source.scope == Scope::Managed;
        let wrong = |found: &Diagnostic| found.weight == Weight::Error && tells(&found.source);
        failures.extend(diagnostics.into_iter().filter(wrong));
        // The question is what rules say, not whether the mode lets them count.
        let mut policy = policy.with_mode(Mode::Default);
        policy.rules.retain(|_, rule| meant(&rule.source));
        let rules = RuleList::ALL.into_iter().flat_map(|list| policy.rules.list(list));
        examples += rules.map(|rule| rule.examples.fits.len() + rule.examples.not_match.len()).sum::<usize>();
        failures.extend(failing_examples(&policy));
    }
    let exit = if failures.is_empty() { Exit::Ok } else { Exit::Failed };
    if json {
        show::line(&json!({ "examples": examples, "failures": failures }).to_string())?;
        return Ok(exit);
    }
    failures.iter().try_for_each(print)?;
    let style = if failures.is_empty() { GOOD } else { BAD };
    let failed = show::count(failures.len(), "failure");
    show::line(&format!("{}, {style}{failed}{style:#}", show::count(examples, "example")))?;
    if examples == 0 {
        show::warn("no rule carries examples, so there was nothing to test");
    }
    Ok(exit)
}

fn print(found: &Diagnostic) -> std::io::Result<()> {
    let style = if found.weight == Weight::Error { BAD } else { NOTE };
    let fix = found.fix.as_ref().map(|fix| format!("; {fix}")).unwrap_or_default();
    let (place, weight, words) = (place(&found.source), found.weight.name(), format!("{}{fix}", found.what));
    show::line(&format!("{}: {style}{weight}{style:#}: {}", show::safe(&place), show::safe(&words)))
}

/// `file:line`, as editors read it.
fn place(source: &Source) -> String {
    let file = source.file.as_ref().map(|file| file.to_string_lossy().into_owned());
    match (file, source.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        (Some(file), None) => file,
        (None, _) => source.scope.words().to_owned(),
    }
}
