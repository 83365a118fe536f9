//! From a policy to a toolbox.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime},
};

use anyhow::Context;
use gripper_mcp::client::{self, Accounts, Phase, Servers, SignIn};
use gripper_process::limits::Limits;
use gripper_runtime::{
    DynTool, Event, Observer, Recorder, Registry, Toolbox, ToolboxBuilder,
    approve::{Preapproved, SaveRule, SaveTo},
    audit::{self, AuditLog},
    environment::{Environment, inherited},
    files::{
        Files,
        history::{self, History, HistoryLimits},
    },
    hooks::{CallTool, HookRunner, Judge, LiveHooks, Surroundings},
    permissions::{Rule, RuleList, Scope, sensitive},
    results::{ResultsStore, StoreLimits},
    settings::{self, Kind, Node, Sources},
    tool::ToolSpec,
};
use gripper_tools::{Services, bash, tasks::Tasks, todo_write::TodoList};

use crate::{basis::Basis, mcp::browser::Browser, show, worker};

/// A toolbox and what must be closed with it.
pub(crate) struct Session {
    pub(crate) toolbox: Arc<Toolbox>,
    recorder: Option<Arc<Recorder>>,
    failures: Arc<HookFailures>,
    basis: Basis,
    hooks: Arc<LiveHooks>,
    judge: Option<Arc<dyn Judge>>,
    todos: TodoList,
    pub(crate) tasks: Tasks,
    pub(crate) servers: Arc<Servers>,
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
    /// Takes in settings that changed since the last look, hooks included.
    pub(crate) fn refresh(&mut self) {
        if self.basis.refresh(&self.toolbox) {
            let (entries, diagnostics) = self.basis.hooks();
            diagnostics.iter().for_each(|found| show::warn(&found.to_string()));
            let around = surroundings(self.basis.environment(), Some(self.servers.clone()));
            let around = Surroundings { judge: self.judge.clone(), ..around };
            self.hooks.replace(HookRunner::new(entries, around));
            self.servers.replace(self.basis.servers());
            self.servers.start();
            // Which tools there are follows from the policy too.
            self.servers.publish();
            self.toolbox.settings_changed();
        }
    }

    /// Where its settings are.
    pub(crate) fn sources(&self) -> anyhow::Result<Sources> {
        self.basis.sources()
    }

    /// The project's folder.
    pub(crate) fn root(&self) -> anyhow::Result<PathBuf> {
        Ok(self.basis.sources()?.root)
    }

    /// How many calls run at once.
    pub(crate) fn concurrency(&self) -> usize {
        let limit = self.basis.loaded.limits.max_concurrency;
        self.basis.environment().max_concurrency.unwrap_or(limit)
    }

    /// The to-do list.
    pub(crate) fn todos(&self) -> &TodoList {
        &self.todos
    }

    /// Ends the session: hooks hear of it, what is still on its way to the audit log is written
    /// out, and what went wrong is said.
    pub(crate) async fn finish(&self) {
        self.toolbox.end().await.iter().for_each(show::hook);
        self.servers.close().await;
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

/// Puts granted rules into settings files.
struct Saver(Sources);

impl SaveRule for Saver {
    fn save(&self, to: SaveTo, list: RuleList, rule: &Rule) -> Result<PathBuf, String> {
        let scope = match to {
            SaveTo::Local => Scope::Local,
            SaveTo::Project => Scope::Project,
            SaveTo::User => Scope::User,
        };
        let file = self.0.file_to_write(scope).ok_or("HOME is not set, so there is no such file")?;
        settings::add_rule(&file, Kind::Settings, list, rule.text()).map_err(|error| error.to_string())?;
        Ok(file)
    }
}

/// What hooks are run with.
pub(crate) fn surroundings(environment: &Environment, tools: Option<Arc<dyn CallTool>>) -> Surroundings {
    let log = environment.config_dir.as_ref().map(|config| config.join("audit/audit.jsonl"));
    let transcript = log.map(|log| log.to_string_lossy().into_owned()).unwrap_or_default();
    Surroundings { env: inherited(), transcript, tools, judge: None }
}

/// All built-in tools, to be looked at.
pub(crate) fn registry() -> anyhow::Result<Registry> {
    registry_of(&Services::default(), &|_| true, None)
}

/// All tools, to be looked at: also those of servers that are quick to say what they have. Gives the names of
/// the servers that are still to come too.
pub(crate) async fn whole_registry(
    environment: &Environment,
    basis: &mut Basis,
    patience: Duration,
) -> anyhow::Result<(Registry, Vec<String>)> {
    let (services, servers) = (services(environment, basis), servers(environment, basis, None));
    if servers.all().is_empty() {
        return Ok((registry_of(&services, &|_| true, None)?, Vec::new()));
    }
    let mut registry = registry_of(&services, &|_| true, Some(&servers))?;
    servers.settle(patience).await;
    for tool in servers.tools() {
        registry.register(tool).unwrap_or_else(|error| show::warn(&error.to_string()));
    }
    for server in servers.all() {
        let name = &server.config.name;
        if let Phase::Failed(why) = server.phase() {
            show::warn(&format!("the server {name} is not connected: {why}"));
        }
        server.complaints().iter().for_each(|what| show::warn(&format!("the server {name}: {what}")));
    }
    let connecting = servers.connecting();
    servers.close().await;
    Ok((registry, connecting))
}

/// What the tools of a session share.
fn services(environment: &Environment, basis: &Basis) -> Services {
    let repl = basis.loaded.effective.at("repl.enabled").is_some_and(|node| node.value() == true);
    let bash = Arc::new(commands(environment, basis));
    Services { worker: worker::command(), bash, repl, ..Services::default() }
}

/// The built-in tools that are wanted.
fn registry_of(
    services: &Services,
    wanted: Wanted<'_>,
    servers: Option<&Arc<Servers>>,
) -> anyhow::Result<Registry> {
    let mut registry = Registry::default();
    let about_servers = servers.map(gripper_mcp::tools).unwrap_or_default();
    for tool in gripper_tools::all(services).into_iter().chain(about_servers) {
        if wanted(tool.spec()) {
            registry.register(tool).context("two built-in tools share a name")?;
        }
    }
    Ok(registry)
}

/// Which tools a session has.
pub(crate) type Wanted<'a> = &'a (dyn Fn(&ToolSpec) -> bool + Send + Sync);

/// What is particular about a session.
pub(crate) struct Opening<'a> {
    /// Which of the built-in tools it has.
    pub(crate) wanted: Wanted<'a>,
    /// Its id, if it has one already.
    pub(crate) id: Option<String>,
    /// How it begins: `startup` or `resume`.
    pub(crate) source: &'static str,
    /// Further tools.
    pub(crate) more: Vec<Arc<dyn DynTool>>,
    /// Who asks models for hooks.
    pub(crate) judge: Option<Arc<dyn Judge>>,
    /// Who finds files in what commands print.
    pub(crate) finder: Option<bash::Finder>,
}

impl Default for Opening<'_> {
    fn default() -> Self {
        let more = Vec::new();
        Self { wanted: &|_| true, id: None, source: "startup", more, judge: None, finder: None }
    }
}

/// Opens a session with the built-in tools. `shape` may add to it, such as hooks.
pub(crate) async fn open(
    environment: &Environment,
    basis: Basis,
    shape: impl FnOnce(ToolboxBuilder) -> ToolboxBuilder,
) -> anyhow::Result<Session> {
    open_with(environment, basis, Opening::default(), |builder, _| Ok(shape(builder))).await
}

/// Opens a session as `opening` says.
pub(crate) async fn open_with(
    environment: &Environment,
    mut basis: Basis,
    opening: Opening<'_>,
    shape: impl FnOnce(ToolboxBuilder, &Arc<Servers>) -> anyhow::Result<ToolboxBuilder>,
) -> anyhow::Result<Session> {
    let mut limits = basis.loaded.limits.clone();
    if let Some(limit) = environment.max_concurrency {
        limits.max_concurrency = limit;
    }
    let services = Services { finder: opening.finder, ..services(environment, &basis) };
    let servers = servers(environment, &mut basis, Browser::if_attended());
    let about_servers = (!servers.all().is_empty()).then_some(&servers);
    let mut registry = registry_of(&services, opening.wanted, about_servers)?;
    for tool in opening.more {
        registry.register(tool)?;
    }
    let mut builder = Toolbox::builder(registry, basis.policy.clone()).settings(limits);
    if let Some(id) = &opening.id {
        builder = builder.session(id);
    }
    builder = builder.saver(Arc::new(Saver(basis.sources()?)));
    if basis.flags.yes {
        builder = builder.approver(Arc::new(Preapproved));
    }
    let (entries, diagnostics) = basis.hooks();
    diagnostics.iter().for_each(|found| show::warn(&found.to_string()));
    let judge = opening.judge;
    let around = Surroundings { judge: judge.clone(), ..surroundings(environment, Some(servers.clone())) };
    let hooks = Arc::new(LiveHooks::new(HookRunner::new(entries, around)));
    builder = builder.hooks(hooks.clone());
    let failures = Arc::<HookFailures>::default();
    builder = builder.observer(failures.clone());
    let mut recorder = None;
    match &environment.config_dir {
        None => show::warn(
            "HOME is not set: nothing is audited, oversized results are not kept, changes cannot be undone",
        ),
        Some(config) => {
            let store = results_store(config, builder.id(), basis.loaded.store.clone());
            let files =
                files(config, builder.id(), basis.sources()?).watching(gripper_tools::text::shown_difference);
            builder = builder.results(store).files(files);
            let folder = config.join("sessions").join(builder.id()).join("tasks");
            services.tasks.publish(folder, basis.sources()?.root);
            match AuditLog::open(&config.join("audit"), builder.id(), audit::Limits::default()) {
                Ok(log) => recorder = Some(Arc::new(Recorder::new(log))),
                Err(error) => show::warn(&format!("nothing is audited: {error}")),
            }
        }
    }
    if let Some(recorder) = &recorder {
        builder = builder.observer(recorder.clone());
    }
    let toolbox = shape(builder, &servers)?.build();
    servers.attach(&toolbox);
    // Meanwhile the model is asked, or the client reads the list of tools.
    tokio::task::spawn_blocking(sensitive::prepare);
    toolbox.begin(opening.source).await.iter().for_each(show::hook);
    let Services { todos, tasks, .. } = services;
    Ok(Session { toolbox, recorder, failures, basis, hooks, judge, todos, tasks, servers })
}

/// The configured servers, none of them connected yet, and who signs in to them.
pub(crate) fn servers(
    environment: &Environment,
    basis: &mut Basis,
    person: Option<Arc<dyn SignIn>>,
) -> Arc<Servers> {
    let cwd = environment.cwd.clone().unwrap_or_else(|| "/".into());
    let file = environment.config_dir.as_ref().map(|config| config.join("mcp/tokens.json"));
    let accounts = Accounts { file, person };
    Servers::new(basis.servers(), inherited(), cwd, client::Limits::default(), accounts)
}

/// How commands are run, from the settings.
fn commands(environment: &Environment, basis: &Basis) -> bash::Settings {
    let at = |key: &str| basis.loaded.effective.at(key).map(Node::value);
    let flag = |key: &str| at(key).and_then(|value| value.as_bool());
    let hosts = |key: &str| {
        let listed = basis.loaded.effective.at(&format!("sandbox.network.{key}")).map(Node::items);
        listed.unwrap_or_default().iter().filter_map(Node::text).map(str::to_owned).collect()
    };
    let number = |key: &str| at(key).and_then(|value| value.as_u64());
    let limit = |key: &str| number(&format!("sandbox.limits.{key}"));
    let time = |key: &str, usual| number(&format!("bash.{key}")).map_or(usual, Duration::from_millis);
    let usual = bash::Settings::default();
    let mut env = inherited();
    env.retain(|(name, _)| name.to_str().is_none_or(|name| !basis.loaded.env.contains_key(name)));
    env.extend(basis.loaded.env.iter().map(|(name, value)| (name.into(), value.into())));
    bash::Settings {
        env,
        outputs: environment.config_dir.as_ref().map(|config| config.join("sessions")),
        keep_secrets: flag("bash.keepSecrets") == Some(true),
        kill_on_time_out: flag("bash.killOnTimeout") == Some(true),
        limits: (time("defaultTimeoutMs", usual.limits.0), time("maxTimeoutMs", usual.limits.1)),
        sandbox: flag("sandbox.enabled") == Some(true),
        fail_if_unavailable: flag("sandbox.failIfUnavailable") == Some(true),
        bare_forbidden: flag("sandbox.allowUnsandboxedCommands") == Some(false),
        allowed_hosts: hosts("allowedDomains"),
        denied_hosts: hosts("deniedDomains"),
        resources: Limits {
            processes: limit("processes"),
            memory: limit("memoryMb").map(|megabytes| megabytes << 20),
            file_size: limit("fileSizeMb").map(|megabytes| megabytes << 20),
            cpu_seconds: limit("cpuSeconds"),
        },
        start_files: flag("bash.startFiles") != Some(false),
        ..bash::Settings::default()
    }
    .with_limits_of_env()
}

/// Files whose changes are kept, so that `gripper undo` can take them back.
pub(crate) fn files(config: &Path, session: &str, sources: Sources) -> Files {
    let folder = config.join("history");
    let swept = folder.clone();
    std::thread::spawn(move || history::sweep(&swept, &HistoryLimits::default(), SystemTime::now()));
    let root = sources.root.clone();
    Files::with_history(History::new(folder, session, &root), Some(sources))
}

fn results_store(config: &Path, session: &str, limits: StoreLimits) -> ResultsStore {
    let root = config.join("sessions");
    let folder = root.join(session).join("results");
    // Old results go while the first calls run; nobody waits for it.
    let sweep = limits.clone();
    std::thread::spawn(move || ResultsStore::sweep(&root, &sweep, SystemTime::now()));
    ResultsStore::new(folder, limits)
}
