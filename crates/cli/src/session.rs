//! From flags and environment to a toolbox.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use anyhow::Context;
use gripper_runtime::{Place, Recorder};
use gripper_runtime::{
    Registry, Toolbox, ToolboxBuilder,
    approve::Preapproved,
    audit::{self, AuditLog},
    environment::Environment,
    permissions::{Diagnostic, Mode, Policy, Rule, RuleList, Scope, Source, Weight},
    results::{ResultsStore, StoreLimits},
    settings::{Loaded, Sources, Watch},
};
use gripper_tools::Services;

use crate::{exit::UsageError, show};

/// What a run may do. The same flags everywhere.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct PolicyFlags {
    /// Permission mode: default, plan, acceptEdits, dontAsk, bypassPermissions or auto
    #[arg(long, value_name = "MODE")]
    mode: Option<Mode>,
    /// Allow a tool, e.g. Read (repeatable)
    #[arg(long, value_name = "RULE")]
    allow: Vec<String>,
    /// Always ask before a tool (repeatable)
    #[arg(long, value_name = "RULE")]
    ask: Vec<String>,
    /// Never run a tool (repeatable)
    #[arg(long, value_name = "RULE")]
    deny: Vec<String>,
    /// Another directory that calls may work in (repeatable)
    #[arg(long, value_name = "DIR")]
    add_dir: Vec<PathBuf>,
    /// Further settings: a file, or an object as JSON
    #[arg(long, value_name = "FILE|JSON")]
    settings: Option<String>,
    /// Approve what would be asked
    #[arg(long)]
    yes: bool,
}

/// Warnings about settings that are shown; the rest is counted.
const MOST_WARNINGS: usize = 10;

/// A toolbox and what must be closed with it.
pub(crate) struct Session {
    pub(crate) toolbox: Arc<Toolbox>,
    recorder: Option<Arc<Recorder>>,
    basis: Basis,
}

/// What a session's policy is made from.
pub(crate) struct Basis {
    pub(crate) policy: Policy,
    pub(crate) loaded: Loaded,
    watch: Watch,
    flags: PolicyFlags,
    environment: Environment,
    said: HashSet<String>,
}

impl Basis {
    /// Reads the settings, and says what is wrong with them.
    pub(crate) fn read(flags: &PolicyFlags, environment: &Environment) -> anyhow::Result<Self> {
        let (watch, loaded) = Watch::start(sources(flags, environment)?);
        // A mistake on the command line is an error, as it is in the other flags.
        let wrong =
            |found: &&Diagnostic| found.weight == Weight::Error && found.source.scope == Scope::CommandLine;
        if let Some(found) = loaded.diagnostics.iter().find(wrong) {
            return Err(UsageError(format!("--settings: {found}")).into());
        }
        let policy = with_flags(flags, environment, &loaded)?;
        let (flags, environment) = (flags.clone(), environment.clone());
        let mut basis = Self { policy, loaded, watch, flags, environment, said: HashSet::new() };
        basis.complain();
        Ok(basis)
    }

    /// Says what is wrong with the settings, each thing once.
    fn complain(&mut self) {
        let worth = self.loaded.diagnostics.iter().filter(|found| found.weight != Weight::Note);
        let new: Vec<String> =
            worth.map(ToString::to_string).filter(|text| self.said.insert(text.clone())).collect();
        new.iter().take(MOST_WARNINGS).for_each(|text| show::warn(text));
        if let Some(more) = new.len().checked_sub(MOST_WARNINGS).filter(|more| *more > 0) {
            let more = show::count(more, "more warning");
            show::warn(&format!("{more} about settings: gripper settings --json lists all"));
        }
    }
}

/// Where the settings of this run are looked for.
pub(crate) fn sources(flags: &PolicyFlags, environment: &Environment) -> anyhow::Result<Sources> {
    let cwd = environment.cwd.as_deref().ok_or_else(|| {
        UsageError("the working directory does not exist any more: cd to one that does".into())
    })?;
    Ok(Sources::discover(environment, cwd, flags.settings.as_deref()))
}

impl Session {
    /// Takes in settings that changed since the last look. What was granted in this session stays, and so
    /// does a mode that was entered in it.
    pub(crate) fn refresh(&mut self) {
        let Some(loaded) = self.basis.watch.changed() else { return };
        // The flags were fine before, so only what they name can have gone; then the old policy stays.
        match with_flags(&self.basis.flags, &self.basis.environment, &loaded) {
            Err(error) => show::warn(&format!("changed settings are not in force: {error:#}")),
            Ok(policy) => {
                let before = std::mem::replace(&mut self.basis.policy, policy.clone());
                self.basis.loaded = loaded;
                self.toolbox.update_policy(|current| carried_over(policy, current, before.mode));
            }
        }
        self.basis.complain();
    }

    /// Writes out what is still on its way to the audit log, and says if that went wrong.
    pub(crate) fn finish(&self) {
        if let Some(recorder) = &self.recorder {
            recorder.log().flush();
            if let Some(trouble) = recorder.log().trouble() {
                show::warn(&format!("the audit log could not be written: {trouble}"));
            }
        }
    }
}

/// The policy that settings and flags describe.
pub(crate) fn policy(flags: &PolicyFlags, environment: &Environment) -> anyhow::Result<Policy> {
    Ok(Basis::read(flags, environment)?.policy)
}

/// A new policy with what the session has changed about the old one.
fn carried_over(mut policy: Policy, current: &Policy, mode_before: Mode) -> Policy {
    for list in RuleList::ALL {
        let granted = current.rules.list(list).iter().filter(|rule| rule.source.scope == Scope::Session);
        granted.for_each(|rule| policy.rules.add(list, rule.rule.clone(), rule.source.clone()));
    }
    if current.mode != mode_before {
        (policy.mode, policy.mode_before_plan) = (current.mode, current.mode_before_plan);
    }
    policy
}

fn with_flags(flags: &PolicyFlags, environment: &Environment, loaded: &Loaded) -> anyhow::Result<Policy> {
    let mut policy = flags.mode.map_or_else(|| loaded.policy.clone(), |mode| loaded.with_mode(mode));
    let cwd = policy.directories.first().cloned().unwrap_or_default();
    if policy.mode == Mode::BypassPermissions {
        if policy.flags.bypass_unavailable {
            show::warn("bypassPermissions is refused: the settings took it away");
        } else if is_root() && !environment.force_bypass {
            policy.flags.bypass_unavailable = true;
            show::warn(
                "bypassPermissions is refused for root; set GRIPPER_FORCE_BYPASS=1 if this is a sandbox",
            );
        }
    }
    for (list, rules) in
        [(RuleList::Allow, &flags.allow), (RuleList::Ask, &flags.ask), (RuleList::Deny, &flags.deny)]
    {
        for text in rules {
            let rule =
                Rule::parse(text).map_err(|error| UsageError(format!("--{}: {error}", list.name())))?;
            if !loaded.locked || list != RuleList::Allow {
                policy.rules.add(list, rule, Source::command_line());
            }
        }
    }
    for directory in &flags.add_dir {
        let located = Place { cwd: cwd.clone() }.locate(directory);
        if !located.real.is_dir() {
            return Err(UsageError(format!("--add-dir: {} is not a directory", directory.display())).into());
        }
        policy.directories.push(located.written);
        policy.directories.push(located.real);
    }
    Ok(policy)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The built-in tools.
pub(crate) fn registry() -> anyhow::Result<Registry> {
    let mut registry = Registry::default();
    for tool in gripper_tools::all(&Services::default()) {
        registry.register(tool).context("two built-in tools share a name")?;
    }
    Ok(registry)
}

/// Opens a session with the built-in tools. `shape` may add to it, such as hooks.
pub(crate) fn open(
    environment: &Environment,
    basis: Basis,
    shape: impl FnOnce(ToolboxBuilder) -> ToolboxBuilder,
) -> anyhow::Result<Session> {
    let mut settings = basis.loaded.limits.clone();
    if let Some(limit) = environment.max_concurrency {
        settings.max_concurrency = limit;
    }
    let mut builder = Toolbox::builder(registry()?, basis.policy.clone()).settings(settings);
    if basis.flags.yes {
        builder = builder.approver(Arc::new(Preapproved));
    }
    let mut recorder = None;
    match &environment.config_dir {
        None => show::warn("HOME is not set: nothing is audited and oversized results are not kept"),
        Some(config) => {
            let store = results_store(config, builder.id(), basis.loaded.store.clone());
            builder = builder.results(store);
            match AuditLog::open(&config.join("audit"), builder.id(), audit::Limits::default()) {
                Ok(log) => recorder = Some(Arc::new(Recorder::new(log))),
                Err(error) => show::warn(&format!("nothing is audited: {error}")),
            }
        }
    }
    if let Some(recorder) = &recorder {
        builder = builder.observer(recorder.clone());
    }
    Ok(Session { toolbox: shape(builder).build(), recorder, basis })
}

fn results_store(config: &Path, session: &str, limits: StoreLimits) -> ResultsStore {
    let root = config.join("sessions");
    let folder = root.join(session).join("results");
    // Old results go while the first calls run; nobody waits for it.
    let sweep = limits.clone();
    std::thread::spawn(move || ResultsStore::sweep(&root, &sweep, SystemTime::now()));
    ResultsStore::new(folder, limits)
}

#[cfg(test)]
mod tests {
    use super::{Mode, Policy, Rule, RuleList, Scope, Source, carried_over};

    #[test]
    fn a_reload_keeps_grants_and_the_mode_entered_since() {
        let mut current = Policy::new("/project").with_mode(Mode::Plan);
        let mut add =
            |scope| current.rules.add(RuleList::Allow, Rule::parse("Read").unwrap(), Source::of(scope));
        add(Scope::Session);
        add(Scope::User);
        let new = Policy::new("/project").with_mode(Mode::AcceptEdits);
        let kept = carried_over(new.clone(), &current, Mode::Default);
        assert_eq!((kept.mode, kept.mode_before_plan), (Mode::Plan, Some(Mode::Default)));
        assert_eq!(kept.rules.list(RuleList::Allow).len(), 1, "what a file no longer says is gone");
        assert_eq!(carried_over(new, &current, Mode::Plan).mode, Mode::AcceptEdits);
    }
}
