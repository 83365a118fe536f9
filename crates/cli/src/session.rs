//! From flags and environment to a toolbox.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use anyhow::Context;
use gripper_runtime::{
    Event, Observer, Place, Recorder, Registry, Settings, Toolbox, ToolboxBuilder,
    approve::Preapproved,
    audit::{self, AuditLog},
    environment::{Environment, inherited},
    hooks::{
        HookRunner, Surroundings,
        config::{Entry, HookConfig},
    },
    permissions::{Diagnostic, Mode, Policy, Rule, RuleList, Source},
    results::{ResultsStore, StoreLimits},
};
use gripper_tools::Services;
use serde_json::Value;

use crate::{exit::UsageError, show};

/// What a run may do. The same flags everywhere.
#[derive(clap::Args, Default)]
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
    /// Approve what would be asked
    #[arg(long)]
    pub(crate) yes: bool,
    /// A settings file, for its hooks
    #[arg(long, value_name = "FILE")]
    settings: Option<PathBuf>,
}

/// A toolbox and what must be closed with it.
pub(crate) struct Session {
    pub(crate) toolbox: Arc<Toolbox>,
    recorder: Option<Arc<Recorder>>,
    failures: Arc<HookFailures>,
}

/// Counts hooks that failed.
#[derive(Default)]
struct HookFailures(AtomicUsize);

impl Observer for HookFailures {
    fn observe(&self, _turn: &str, event: &Event) {
        if matches!(event, Event::Hook { run, .. } if run.failed) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Session {
    /// Ends the session: hooks hear of it, what is still on its way to the audit log is written
    /// out, and what went wrong is said.
    pub(crate) async fn finish(&self) {
        self.toolbox.end().await.iter().for_each(show::hook);
        let failures = self.failures.0.load(Ordering::Relaxed);
        if failures > 0 {
            let count = show::count(failures, "time");
            show::warn(&format!("hooks failed {count}; `gripper hooks list` looks at each"));
        }
        if let Some(reason) = self.toolbox.halted() {
            show::warn(&format!("a hook ended the session: {reason}"));
        }
        if let Some(recorder) = &self.recorder {
            recorder.log().flush();
            if let Some(trouble) = recorder.log().trouble() {
                show::warn(&format!("the audit log could not be written: {trouble}"));
            }
        }
    }
}

/// The hooks of each settings file, with where they stand.
pub(crate) fn hooks_of(flags: &PolicyFlags) -> anyhow::Result<Vec<(Source, Value)>> {
    let Some(file) = &flags.settings else { return Ok(Vec::new()) };
    let bad = |why: String| UsageError(format!("--settings: {}: {why}", file.display()));
    let text = std::fs::read_to_string(file).map_err(|error| bad(error.to_string()))?;
    let mut all: Value = serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?;
    let source = Source { file: Some(file.clone()), ..Source::command_line() };
    Ok(all.get_mut("hooks").map(|hooks| vec![(source, hooks.take())]).unwrap_or_default())
}

/// The hooks that the flags describe, and what is wrong with them.
pub(crate) fn hook_entries(flags: &PolicyFlags) -> anyhow::Result<(Vec<Entry>, Vec<Diagnostic>)> {
    let (mut entries, mut diagnostics) = (Vec::new(), Vec::new());
    for (source, value) in hooks_of(flags)? {
        let (read, found) = HookConfig::read(&value, &source);
        entries.extend(read);
        diagnostics.extend(found.into_iter().map(|(_, diagnostic)| diagnostic));
    }
    Ok((entries, diagnostics))
}

/// What hooks are run with.
pub(crate) fn surroundings(environment: &Environment) -> Surroundings {
    let log = environment.config_dir.as_ref().map(|config| config.join("audit/audit.jsonl"));
    let transcript = log.map(|log| log.to_string_lossy().into_owned()).unwrap_or_default();
    Surroundings { env: inherited(), transcript }
}

/// The policy that the flags describe.
pub(crate) fn policy(flags: &PolicyFlags, environment: &Environment) -> anyhow::Result<Policy> {
    let cwd = environment.cwd.clone().ok_or_else(|| {
        UsageError("the working directory does not exist any more: cd to one that does".into())
    })?;
    let mut policy = Policy::new(&cwd);
    if let Some(mode) = flags.mode {
        policy = policy.with_mode(mode);
        if mode == Mode::BypassPermissions && is_root() && !environment.force_bypass {
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
            policy.rules.add(list, rule, Source::command_line());
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
pub(crate) async fn open(
    flags: &PolicyFlags,
    environment: &Environment,
    policy: Policy,
    shape: impl FnOnce(ToolboxBuilder) -> ToolboxBuilder,
) -> anyhow::Result<Session> {
    let mut settings = Settings::default();
    if let Some(limit) = environment.max_concurrency {
        settings.max_concurrency = limit;
    }
    let mut builder = Toolbox::builder(registry()?, policy).settings(settings);
    if flags.yes {
        builder = builder.approver(Arc::new(Preapproved));
    }
    let (entries, diagnostics) = hook_entries(flags)?;
    diagnostics.iter().for_each(|found| show::warn(&found.to_string()));
    if !entries.is_empty() {
        builder = builder.hooks(Arc::new(HookRunner::new(entries, surroundings(environment))));
    }
    let failures = Arc::<HookFailures>::default();
    builder = builder.observer(failures.clone());
    let mut recorder = None;
    match &environment.config_dir {
        None => show::warn("HOME is not set: nothing is audited and oversized results are not kept"),
        Some(config) => {
            let store = results_store(config, builder.id());
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
    let toolbox = shape(builder).build();
    toolbox.begin().await.iter().for_each(show::hook);
    Ok(Session { toolbox, recorder, failures })
}

fn results_store(config: &Path, session: &str) -> ResultsStore {
    let root = config.join("sessions");
    let folder = root.join(session).join("results");
    // Old results go while the first calls run; nobody waits for it.
    std::thread::spawn(move || ResultsStore::sweep(&root, &StoreLimits::default(), SystemTime::now()));
    ResultsStore::new(folder, StoreLimits::default())
}
