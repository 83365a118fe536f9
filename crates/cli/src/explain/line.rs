//! One line of a batch: a call, the rules it is judged by, and the world around it.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use gripper_runtime::{
    Place,
    permissions::{
        Behavior, By, Check, CommandPlace, Decision, Flags, Opinion, Policy, Request, Rule, RuleList, Scope,
        Source, decide,
        web::{self, Reach},
    },
};
use serde::Deserialize;
use serde_json::{Value, json};

/// The surroundings that lines are judged in unless they say otherwise.
const HOME: &str = "/home/dev";
const PROJECT: &str = "/home/dev/project";
/// More hops than this are not followed.
const MOST_REDIRECTS: usize = 10;

/// One line of a batch.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Line {
    cmd: Option<String>,
    tool: Option<String>,
    input: Value,
    cwd: Option<String>,
    mode: Option<String>,
    trusted: Option<bool>,
    rules: Lists,
    rules_by_source: BTreeMap<String, Lists>,
    fs: Files,
    #[serde(flatten)]
    page: Page,
    pub(super) class: Option<String>,
    pub(super) tags: Vec<String>,
    pub(super) expect: Option<String>,
    pub(super) accept: Vec<String>,
}

/// A page, and what servers would say about it.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Page {
    url: Option<String>,
    allowed_domains: Vec<String>,
    redirects_to: Vec<String>,
    dns: BTreeMap<String, Vec<String>>,
    dns_second: BTreeMap<String, Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Lists {
    allow: Vec<String>,
    ask: Vec<String>,
    deny: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Files {
    symlinks: BTreeMap<String, String>,
}

impl Line {
    /// What the line is about, for people.
    pub(super) fn shown(&self) -> String {
        match (&self.cmd, &self.page.url, &self.tool) {
            (Some(command), ..) => command.clone(),
            (_, Some(url), _) => url.clone(),
            (.., tool) => format!("{} {}", tool.as_deref().unwrap_or("Bash"), self.input),
        }
    }

    /// The answer, or what is wrong with the line.
    pub(super) fn judge(&self, flags: Flags) -> Result<Decision, String> {
        let policy = self.policy(flags)?;
        if let Some(url) = &self.page.url {
            return Ok(self.page.judge(url, &policy));
        }
        let tool = self.tool.as_deref().unwrap_or("Bash");
        let input = match &self.cmd {
            Some(command) => json!({ "command": command }),
            None if self.input.is_object() => self.input.clone(),
            None => return Err("expected cmd, tool and input, or url".to_owned()),
        };
        let links: Vec<(PathBuf, PathBuf)> = self
            .fs
            .symlinks
            .iter()
            .map(|(from, to)| (absolute(Path::new(PROJECT), from), link_target(from, to)))
            .collect();
        let real = |path: &str| follow(Path::new(path), &links);
        let cwd = policy.directories.first().map(|cwd| cwd.to_string_lossy().into_owned());
        let place = CommandPlace { cwd: cwd.as_deref().unwrap_or(PROJECT), home: HOME, real: &real };
        let missing = || Request {
            opinion: Opinion::Ask {
                reason: format!("the input lacks what {tool} is about").into(),
                firm: true,
            },
            ..Request::new(tool)
        };
        let request = Request::from_input(tool, &input, &policy, place).unwrap_or_else(missing);
        Ok(decide(&policy, &request))
    }

    fn policy(&self, flags: Flags) -> Result<Policy, String> {
        let cwd = self.cwd.as_deref().unwrap_or(PROJECT).replace('~', HOME);
        let mut policy = Policy::new(&cwd);
        if Path::new(&cwd).starts_with(PROJECT) {
            policy.root = PathBuf::from(PROJECT);
            policy.directories.push(PathBuf::from(PROJECT));
        }
        policy.home = PathBuf::from(HOME);
        policy.flags = flags;
        policy.trusted = self.trusted.unwrap_or(true);
        if let Some(mode) = &self.mode {
            policy = policy.with_mode(mode.parse().map_err(|error| format!("{error}"))?);
        }
        if self.rules_by_source.is_empty() {
            add(&mut policy, Scope::Project, &self.rules);
        }
        for (name, lists) in &self.rules_by_source {
            let scope =
                Scope::parse(name).ok_or_else(|| format!("there is no source of rules \"{name}\""))?;
            add(&mut policy, scope, lists);
        }
        let domains = self.page.allowed_domains.iter().map(|host| format!("WebFetch(domain:{host})"));
        add(&mut policy, Scope::Project, &Lists { allow: domains.collect(), ..Lists::default() });
        Ok(policy)
    }
}

/// A text that is no rule counts for nothing, as in a settings file.
fn add(policy: &mut Policy, scope: Scope, lists: &Lists) {
    for (list, texts) in
        [(RuleList::Allow, &lists.allow), (RuleList::Ask, &lists.ask), (RuleList::Deny, &lists.deny)]
    {
        for rule in texts.iter().filter_map(|text| Rule::parse(text).ok()) {
            policy.rules.add(list, rule, Source::of(scope));
        }
    }
}

impl Page {
    /// The page and every hop behind it, with the addresses that names would lead to.
    fn judge(&self, url: &str, policy: &Policy) -> Decision {
        let mut last = self.hop(url, policy);
        let mut at = url.to_owned();
        for next in &self.redirects_to {
            at = web::redirected(&at, next);
            if last.behavior == Behavior::Allow {
                last = self.hop(&at, policy);
            }
        }
        let endless = self.redirects_to.len() > MOST_REDIRECTS && last.behavior == Behavior::Allow;
        if endless { refused(last, "there are too many redirects".to_owned()) } else { last }
    }

    fn hop(&self, url: &str, policy: &Policy) -> Decision {
        let input = json!({ "url": url });
        let real = |path: &str| PathBuf::from(path);
        let place = CommandPlace { cwd: PROJECT, home: HOME, real: &real };
        let request = Request::from_input("WebFetch", &input, policy, place);
        let decision = decide(policy, &request.unwrap_or_else(|| Request::new("WebFetch")));
        let answers = self.dns.values().chain(self.dns_second.values()).flatten();
        let public =
            |address: &str| address.parse().is_ok_and(|address| web::reach(address) == Reach::Public);
        let nowhere = self.dns.values().any(Vec::is_empty).then(|| "nowhere".to_owned());
        let bad = answers.into_iter().find(|address| !public(address)).or(nowhere.as_ref());
        match bad {
            Some(address) if decision.behavior == Behavior::Allow => {
                refused(decision, format!("the name leads to {address}, which is not on the open web"))
            }
            _ => decision,
        }
    }
}

fn refused(decision: Decision, why: String) -> Decision {
    Decision { behavior: Behavior::Deny, by: By::Check(Check::BadUrl), reason: why.into(), ..decision }
}

fn absolute(base: &Path, path: &str) -> PathBuf {
    let home = if path == "~" { Some("") } else { path.strip_prefix("~/") };
    let path = home.map_or_else(|| PathBuf::from(path), |rest| Path::new(HOME).join(rest));
    Place { cwd: base.to_owned() }.absolute(&path)
}

/// A relative target is relative to the folder of its link.
fn link_target(from: &str, to: &str) -> PathBuf {
    let link = absolute(Path::new(PROJECT), from);
    absolute(link.parent().unwrap_or(Path::new("/")), to)
}

/// Follows the links of a line. Links in a circle lead nowhere, which is outside of everything.
fn follow(path: &Path, links: &[(PathBuf, PathBuf)]) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..40 {
        let Some((rest, to)) = links.iter().find_map(|(from, to)| Some((path.strip_prefix(from).ok()?, to)))
        else {
            return path;
        };
        path = if rest.as_os_str().is_empty() { to.clone() } else { to.join(rest) };
    }
    PathBuf::from("/")
}
