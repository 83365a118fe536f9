//! From layers of files to what is in force.

use std::{collections::BTreeMap, path::Path, time::Duration};

use gripper_permissions::{
    Diagnostic, Examples, Mode, Policy, Rule, RuleList, Scope, Source, SourcedRule, sensitive::SensitivePaths,
};
use serde_json::Value;

use super::{Layer, Loaded, Node, Settings, SiblingCancel, Sources, Tree, keys};
use crate::{Place, hooks::RewriteTrust, results::StoreLimits, settings::Kind};

/// The lists of rules by key, older names included.
const LISTS: [(&str, RuleList); 5] = [
    ("allow", RuleList::Allow),
    ("ask", RuleList::Ask),
    ("deny", RuleList::Deny),
    ("allowed_tools", RuleList::Allow),
    ("disabled_tools", RuleList::Deny),
];
/// Older lists of domains.
const DOMAINS: [(&str, RuleList); 2] =
    [("allowed_domains", RuleList::Allow), ("blocked_domains", RuleList::Deny)];
const PRE_APPROVAL: &str = "pre_approval";
/// The order hooks of several scopes run in.
const HOOK_ORDER: [Scope; 5] =
    [Scope::Managed, Scope::User, Scope::Project, Scope::Local, Scope::CommandLine];

pub(super) fn build(
    sources: &Sources,
    mut layers: Vec<Layer>,
    locked: bool,
    mut found: Vec<Diagnostic>,
) -> Loaded {
    let (trust, trouble) = sources.trust();
    found.extend(trouble);
    let trusted = trust.trusts(&sources.root);
    let approved = approve_servers(&mut layers, trusted);
    if !trusted {
        found.extend(distrust(&mut layers, &sources.root));
    }
    // A restriction holds whichever scope asks for it, so it is looked for before scalars replace each other.
    let no_bypass = layers.iter().any(|layer| forbids_bypass(&layer.node));
    let hooks = hooks(sources, &layers);
    let own = layers.iter().filter_map(|layer| layer.node.get("mcpServers").cloned());
    // What a person approved of an untrusted folder is weaker than anything of their own.
    let servers = approved.into_iter().chain(own).collect();
    let mut effective = Node::empty(Source::of(Scope::User));
    layers.into_iter().for_each(|layer| effective.overlay(layer.node));
    let mut policy = policy(sources, &effective, locked, &mut found);
    policy.trusted = trusted;
    policy.flags.bypass_unavailable = locked || no_bypass;
    for (list, entry) in effective.get("permissions").map(|node| rules(node, &mut found)).unwrap_or_default()
    {
        policy.rules.add_with_examples(list, entry.rule, entry.source, entry.examples);
    }
    if locked {
        // Without the managed rules nobody knows what an allow rule would let through.
        policy.rules.retain(|list, rule| list != RuleList::Allow || rule.source.scope == Scope::Managed);
    }
    let env = effective.get("env").into_iter().flat_map(Node::entries);
    Loaded {
        limits: limits(&effective, &mut found),
        store: store(&effective),
        env: env.filter_map(|(name, value)| Some((name.clone(), value.text()?.to_owned()))).collect(),
        policy,
        hooks,
        servers,
        locked,
        effective,
        diagnostics: found,
    }
}

/// Takes the servers of a project's `.mcp.json` that are switched off out of the layers. Gives those that the
/// person's own settings approve by name although the folder is not trusted.
fn approve_servers(layers: &mut [Layer], trusted: bool) -> Vec<Node> {
    let named = |layers: &[Layer], key: &str, all: bool| -> Vec<String> {
        let counts = |layer: &&Layer| all || !matches!(layer.scope, Scope::Project | Scope::Local);
        layers.iter().filter(counts).flat_map(|layer| words(layer.node.get(key))).collect()
    };
    // A no counts wherever it stands, a yes only from outside the folder.
    let disabled = named(layers, "disabledMcpjsonServers", true);
    let enabled = named(layers, "enabledMcpjsonServers", false);
    let own = layers.iter().filter(|layer| !matches!(layer.scope, Scope::Project | Scope::Local));
    let every = own.filter_map(|layer| layer.node.get("enableAllProjectMcpServers")).next_back();
    let every = every.is_some_and(|node| node.value() == true);
    let mut approved = Vec::new();
    for layer in layers.iter_mut().filter(|layer| layer.is_mcp_json()) {
        let servers = layer.node.map_mut().and_then(|map| map.get_mut("mcpServers"));
        let Some(map) = servers.and_then(Node::map_mut) else { continue };
        map.retain(|name, _| !disabled.contains(name));
        if !trusted && (every || map.keys().any(|name| enabled.contains(name))) {
            let (yes, rest): (BTreeMap<_, _>, _) =
                std::mem::take(map).into_iter().partition(|(name, _)| every || enabled.contains(name));
            *map = rest;
            approved.push(Node { source: layer.node.source.clone(), tree: Tree::Object(yes) });
        }
        if layer.node.get("mcpServers").is_some_and(|left| left.entries().next().is_none()) {
            layer.node.map_mut().map(|map| map.remove("mcpServers"));
        }
    }
    approved
}

/// Reduces the layers of a folder that nobody vouches for to its rules. Allow rules stay in the list, where
/// the decision passes them over, so that they can be shown.
fn distrust(layers: &mut [Layer], root: &Path) -> Option<Diagnostic> {
    let mut ignored: BTreeMap<String, Source> = BTreeMap::new();
    for layer in layers.iter_mut().filter(|layer| matches!(layer.scope, Scope::Project | Scope::Local)) {
        let known: Vec<&str> = keys::known(Kind::Settings, "").filter(|key| *key != "$schema").collect();
        let kept = layer.node.map_mut().and_then(|map| {
            let kept = map.remove("permissions");
            for (key, node) in std::mem::take(map).into_iter().filter(|(key, _)| known.contains(&&**key)) {
                ignored.entry(key).or_insert(node.source);
            }
            kept
        });
        let Some(mut kept) = kept else { continue };
        let is_list = |key: &str| key == PRE_APPROVAL || LISTS.iter().any(|(list, _)| *list == key);
        if let Some(map) = kept.map_mut() {
            let (lists, others) = std::mem::take(map).into_iter().partition(|(key, _)| is_list(key));
            *map = lists;
            let others: BTreeMap<String, Node> = others;
            others.into_iter().for_each(|(key, node)| {
                ignored.entry(key).or_insert(node.source);
            });
        }
        let mut allows =
            rules(&kept, &mut Vec::new()).into_iter().filter(|(list, _)| *list == RuleList::Allow);
        if let Some((_, rule)) = allows.next() {
            ignored.entry("allow rules".to_owned()).or_insert(rule.source);
        }
        if let Some(map) = layer.node.map_mut() {
            map.insert("permissions".to_owned(), kept);
        }
    }
    let source = ignored.values().next()?.clone();
    let names: Vec<&str> = ignored.keys().map(String::as_str).collect();
    let what = format!(
        "the folder is not trusted: of its settings only deny and ask rules count, not {}",
        names.join(", ")
    );
    let fix = format!("if you trust what is in it, run: gripper trust {}", root.display());
    Some(Diagnostic::warning(Source { line: None, ..source }, what).fix(fix))
}

fn forbids_bypass(node: &Node) -> bool {
    let switch = node.at("permissions.disableBypassPermissionsMode").map(Node::value);
    // A word that is not known is taken for the strict one.
    switch.is_some_and(|value| !matches!(&value, Value::Bool(false)) && value != "")
}

/// The rules of one `permissions` object. What is no rule is reported and left out.
fn rules(permissions: &Node, found: &mut Vec<Diagnostic>) -> Vec<(RuleList, SourcedRule)> {
    let mut rules = Vec::new();
    let mut add = |list: RuleList, text: &str, entry: &Node| match Rule::parse(text) {
        Ok(rule) => {
            let examples = Examples {
                fits: words(entry.at("examples.match")),
                not_match: words(entry.at("examples.not_match")),
            };
            rules.push((list, SourcedRule { rule, source: entry.source.clone(), examples }));
        }
        Err(error) => {
            let what = format!("this {} rule does not count: {error}", list.name());
            found.push(Diagnostic::error(entry.source.clone(), what));
        }
    };
    for (key, list) in LISTS {
        for entry in permissions.get(key).map(Node::items).unwrap_or_default() {
            if let Some(text) = entry.text().or_else(|| entry.get("rule")?.text()) {
                add(list, text, entry);
            }
        }
    }
    if let Some(older) = permissions.get(PRE_APPROVAL) {
        for (key, list) in DOMAINS {
            for entry in older.get(key).map(Node::items).unwrap_or_default() {
                add(list, &format!("WebFetch(domain:{})", entry.text().unwrap_or_default()), entry);
            }
        }
        // WebFetch turns http into https, so that all of it is what this older key approves.
        if let Some(entry) = older.get("auto_approve_https").filter(|entry| entry.value() == true) {
            add(RuleList::Allow, "WebFetch", entry);
        }
    }
    rules
}

/// The texts of a list.
fn words(list: Option<&Node>) -> Vec<String> {
    list.map(Node::items).unwrap_or_default().iter().filter_map(Node::text).map(str::to_owned).collect()
}

fn policy(sources: &Sources, effective: &Node, locked: bool, found: &mut Vec<Diagnostic>) -> Policy {
    let mut policy = Policy::new(&sources.cwd);
    policy.root = sources.root.clone();
    if let Some(home) = &sources.home {
        policy.home = home.clone();
    }
    policy.sensitive = SensitivePaths {
        add: words(effective.at("sensitivePaths.add")),
        remove: words(effective.at("sensitivePaths.remove")),
    };
    let reads = [("ask", false), ("allow", true)];
    policy.flags.network_reads =
        choice(effective, "permissions.networkReads", &reads, found).unwrap_or_default();
    let modes = Mode::ALL.map(|mode| (mode.name(), mode));
    let mode = choice(effective, "permissions.defaultMode", &modes, found);
    if let Some(mode) = mode.filter(|mode| !locked || !widens(*mode)) {
        policy = policy.with_mode(mode);
    }
    for entry in effective.at("permissions.additionalDirectories").map(Node::items).unwrap_or_default() {
        let Some(text) = entry.text() else { continue };
        let path = match (text.strip_prefix('~'), &sources.home) {
            (Some(rest), Some(home)) if rest.is_empty() || rest.starts_with('/') => {
                home.join(rest.trim_start_matches('/'))
            }
            _ => text.into(),
        };
        let located = Place { cwd: sources.root.clone() }.locate(&path);
        if located.real.is_dir() {
            policy.directories.extend([located.written, located.real]);
        } else {
            let what = format!("{text} is not a directory, so it is not added to the working directories");
            found.push(Diagnostic::warning(entry.source.clone(), what));
        }
    }
    policy
}

/// Whether a mode allows more than the default one. Such a mode needs managed rules that can be read.
fn widens(mode: Mode) -> bool {
    matches!(mode, Mode::AcceptEdits | Mode::BypassPermissions | Mode::Auto)
}

impl Loaded {
    /// The policy in a mode that was asked for on top of the settings.
    pub fn with_mode(&self, mode: Mode) -> Policy {
        if self.locked && widens(mode) { self.policy.clone() } else { self.policy.with_mode(mode) }
    }
}

/// The hooks of each file, in the order they run in.
fn hooks(sources: &Sources, layers: &[Layer]) -> Vec<(Node, Value)> {
    let disabled = layers.iter().rev().find_map(|layer| layer.node.get("disableAllHooks"));
    let disabled = disabled.filter(|node| node.value() == true);
    let by_machine = disabled.is_some_and(|node| sources.is_machine_policy(node.source.file.as_deref()));
    let mut hooks = Vec::new();
    for scope in HOOK_ORDER.into_iter().filter(|scope| match scope {
        Scope::Managed => !by_machine,
        _ => disabled.is_none(),
    }) {
        for node in
            layers.iter().filter(|layer| layer.scope == scope).filter_map(|layer| layer.node.get("hooks"))
        {
            let mut value = node.value();
            if let Some(map) = value.as_object_mut() {
                map.retain(|_, groups| groups.is_array());
            }
            hooks.push((node.clone(), value));
        }
    }
    hooks
}

/// The meaning of a word, if it has one. A word of another version is reported and changes nothing.
fn choice<T: Copy>(node: &Node, path: &str, known: &[(&str, T)], found: &mut Vec<Diagnostic>) -> Option<T> {
    let entry = node.at(path)?;
    let text = entry.text()?;
    let meaning = known.iter().find(|(word, _)| *word == text).map(|(_, meaning)| *meaning);
    if meaning.is_none() {
        let words: Vec<&str> = known.iter().map(|(word, _)| *word).collect();
        let what = format!("{path} is \"{text}\", which this version does not know, so it does not count");
        found.push(
            Diagnostic::warning(entry.source.clone(), what).fix(format!("use one of {}", words.join(", "))),
        );
    }
    meaning
}

fn number(node: &Node, path: &str) -> Option<u64> {
    node.at(path)?.value().as_u64()
}

fn limits(node: &Node, found: &mut Vec<Diagnostic>) -> Settings {
    let mut limits = Settings::default();
    if let Some(most) = number(node, "executor.maxConcurrency") {
        limits.max_concurrency = most as usize;
    }
    let spread = [
        ("conflicting", SiblingCancel::Conflicting),
        ("all", SiblingCancel::All),
        ("never", SiblingCancel::Never),
    ];
    if let Some(cancel) = choice(node, "executor.siblingCancel", &spread, found) {
        limits.sibling_cancel = cancel;
    }
    let trust = [
        ("revalidate", RewriteTrust::Revalidate),
        ("policyOnly", RewriteTrust::PolicyOnly),
        ("trust", RewriteTrust::Trust),
    ];
    if let Some(trust) = choice(node, "hooks.updatedInput", &trust, found) {
        limits.rewrite_trust = trust;
    }
    if let Some(budget) = number(node, "results.turnBudget") {
        limits.turn_budget = budget as usize;
    }
    limits
}

fn store(node: &Node) -> StoreLimits {
    let mut store = StoreLimits::default();
    if let Some(days) = number(node, "results.keepDays") {
        store.max_age = Duration::from_secs(days * 24 * 60 * 60);
    }
    if let Some(megabytes) = number(node, "results.storeMegabytes") {
        store.quota_bytes = megabytes * 1024 * 1024;
    }
    store
}
