//! From settings files and flags to a policy.

use std::{collections::HashSet, path::PathBuf};

use gripper_mcp::client::config::{self, ServerConfig};
use gripper_runtime::{
    Place, Toolbox,
    environment::{Environment, inherited},
    hooks::config::{Entry, HookConfig},
    permissions::{Diagnostic, Mode, Policy, Rule, RuleList, Scope, Source, Weight},
    settings::{Given, Loaded, Node, Sources, Watch},
};

use crate::{exit::UsageError, show};

/// What a run may do. The same flags everywhere.
#[derive(clap::Args, Clone, Default)]
pub(crate) struct PolicyFlags {
    /// Permission mode: default, plan, acceptEdits, dontAsk, bypassPermissions or auto
    #[arg(long, visible_alias = "permission-mode", value_name = "MODE")]
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
    pub(crate) add_dir: Vec<PathBuf>,
    /// Further settings: a file, or an object as JSON
    #[arg(long, value_name = "FILE|JSON")]
    settings: Option<String>,
    /// Further servers of tools: a file like .mcp.json, or its content as JSON (repeatable)
    #[arg(long, value_name = "FILE|JSON")]
    mcp_config: Vec<String>,
    /// Use only the servers that --mcp-config names
    #[arg(long)]
    strict_mcp_config: bool,
    /// Which settings files count beside managed ones: user, project, local, separated by commas
    #[arg(long, value_name = "SCOPES", value_delimiter = ',')]
    setting_sources: Option<Vec<FileScope>>,
    /// Approve what would be asked
    #[arg(long)]
    pub(crate) yes: bool,
}

/// Whose settings files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum FileScope {
    User,
    Project,
    Local,
}

impl From<FileScope> for Scope {
    fn from(scope: FileScope) -> Self {
        match scope {
            FileScope::User => Scope::User,
            FileScope::Project => Scope::Project,
            FileScope::Local => Scope::Local,
        }
    }
}

impl PolicyFlags {
    /// Flags with these rules and nothing else.
    pub(crate) fn ruled<'a>(
        allow: impl IntoIterator<Item = &'a str>,
        deny: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        let owned = |rule: &str| rule.to_owned();
        let (allow, deny) = (allow.into_iter().map(owned).collect(), deny.into_iter().map(owned).collect());
        Self { allow, deny, ..Self::default() }
    }

    /// Adds rules that were given in another spelling.
    pub(crate) fn add_rules(&mut self, allow: Vec<String>, deny: Vec<String>) {
        self.allow.extend(allow);
        self.deny.extend(deny);
    }
}

/// Warnings about settings that are shown; the rest is counted.
const MOST_WARNINGS: usize = 10;

/// What a session's policy is made from.
pub(crate) struct Basis {
    pub(crate) policy: Policy,
    pub(crate) loaded: Loaded,
    watch: Watch,
    pub(crate) flags: PolicyFlags,
    environment: Environment,
    said: HashSet<String>,
}

impl Basis {
    /// Reads the settings, and says what is wrong with them.
    pub(crate) fn read(flags: &PolicyFlags, environment: &Environment) -> anyhow::Result<Self> {
        let mut basis = Self::load(flags, environment)?;
        basis.complain();
        Ok(basis)
    }

    /// Reads the settings and leaves it to the caller to say what is wrong with them.
    pub(crate) fn load(flags: &PolicyFlags, environment: &Environment) -> anyhow::Result<Self> {
        let (watch, loaded) = Watch::start(sources(flags, environment)?);
        // A mistake on the command line is an error, as it is in the other flags.
        let wrong =
            |found: &&Diagnostic| found.weight == Weight::Error && found.source.scope == Scope::CommandLine;
        if let Some(found) = loaded.diagnostics.iter().find(wrong) {
            let of_servers = found.source.file.as_deref().map_or(flags.settings.is_none(), |file| {
                loaded_from(&flags.mcp_config, environment).iter().any(|given| given == file)
            });
            let flag = if of_servers { "--mcp-config" } else { "--settings" };
            return Err(UsageError(format!("{flag}: {found}")).into());
        }
        let policy = with_flags(flags, environment, &loaded)?;
        let (flags, environment) = (flags.clone(), environment.clone());
        Ok(Self { policy, loaded, watch, flags, environment, said: HashSet::new() })
    }

    /// Takes in settings that changed since the last look. What was granted in this session stays,
    /// and so does a mode that was entered in it. True if there was something.
    pub(crate) fn refresh(&mut self, toolbox: &Toolbox) -> bool {
        let Some(loaded) = self.watch.changed() else { return false };
        // The flags were fine before, so only what they name can have gone; then the old policy stays.
        match with_flags(&self.flags, &self.environment, &loaded) {
            Err(error) => {
                show::warn(&format!("changed settings are not in force: {error:#}"));
                return false;
            }
            Ok(policy) => {
                let before = std::mem::replace(&mut self.policy, policy.clone());
                self.loaded = loaded;
                toolbox.update_policy(|current| carried_over(policy, current, before.mode));
            }
        }
        self.complain();
        true
    }

    /// What the process was started with.
    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    /// Where the settings of this run are.
    pub(crate) fn sources(&self) -> anyhow::Result<Sources> {
        sources(&self.flags, &self.environment)
    }

    /// The hooks of all files, and what is wrong with them, each with its line.
    pub(crate) fn hooks(&self) -> (Vec<Entry>, Vec<Diagnostic>) {
        let (mut entries, mut diagnostics) = (Vec::new(), Vec::new());
        for (node, value) in &self.loaded.hooks {
            let (read, found) = HookConfig::read(value, &node.source);
            for mut entry in read {
                entry.source = node.source_at(&entry.pointer);
                entries.push(entry);
            }
            let placed = |(pointer, found): (String, Diagnostic)| Diagnostic {
                source: node.source_at(&pointer),
                ..found
            };
            diagnostics.extend(found.into_iter().map(placed));
        }
        (entries, diagnostics)
    }

    /// The servers of all files; what is wrong with them is said once.
    pub(crate) fn servers(&mut self) -> Vec<ServerConfig> {
        let strict = self.flags.strict_mcp_config;
        let given = |node: &&Node| !strict || node.source.scope == Scope::CommandLine;
        let nodes: Vec<Node> = self.loaded.servers.iter().filter(given).cloned().collect();
        let (servers, wrong) = config::read(&nodes, &inherited());
        for found in wrong.iter().map(ToString::to_string) {
            if self.said.insert(found.clone()) {
                show::warn(&found);
            }
        }
        servers
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

/// The files that a flag names.
fn loaded_from(given: &[String], environment: &Environment) -> Vec<PathBuf> {
    let cwd = environment.cwd.clone().unwrap_or_default();
    given.iter().map(|given| cwd.join(given)).collect()
}

/// Where the settings of this run are looked for.
pub(crate) fn sources(flags: &PolicyFlags, environment: &Environment) -> anyhow::Result<Sources> {
    let cwd = environment.cwd.as_deref().ok_or_else(|| {
        UsageError("the working directory does not exist any more: cd to one that does".into())
    })?;
    let mut sources = Sources::discover(environment, cwd, flags.settings.as_deref());
    sources.scopes =
        flags.setting_sources.as_ref().map(|scopes| scopes.iter().copied().map(Scope::from).collect());
    sources.servers = flags.mcp_config.iter().map(|given| Given::read(given, cwd)).collect();
    Ok(sources)
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
    policy.flags.confined = gripper_process::confine::probe().backend.is_some();
    if let Some(config) = &environment.config_dir {
        policy.protected.extend(["audit", "history", "sessions", "trust.json"].map(|own| config.join(own)));
    }
    let taken_away = policy.flags.bypass_unavailable;
    // Also where it is not asked for now: it may be asked for later.
    policy.flags.bypass_unavailable |= is_root() && !environment.force_bypass;
    if policy.mode == Mode::BypassPermissions && policy.flags.bypass_unavailable {
        show::warn(match taken_away {
            true => "bypassPermissions is refused: the settings took it away",
            false => "bypassPermissions is refused for root; set GRIPPER_FORCE_BYPASS=1 if this is a sandbox",
        });
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
