//! Many commands at once, and how the answers compare with labels.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::Context;
use gripper_runtime::permissions::{Behavior, CommandPlace, Decision, Flags, Policy, Request, decide};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    exit::{Exit, UsageError},
    show::{self, BOLD, DIM},
};

/// The surroundings that lines are judged in unless they say otherwise.
const HOME: &str = "/home/dev";
const PROJECT: &str = "/home/dev/project";
/// Misses that are listed.
const MOST_LISTED: usize = 40;

/// One line of a batch.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Line {
    cmd: Option<String>,
    tool: Option<String>,
    input: Value,
    cwd: Option<String>,
    mode: Option<String>,
    rules: Option<Value>,
    fs: Files,
    class: Option<String>,
    tags: Vec<String>,
    expect: Option<String>,
    accept: Vec<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Files {
    symlinks: BTreeMap<String, String>,
}

pub(super) fn run(file: &Path, score: bool, flags: Flags) -> anyhow::Result<Exit> {
    let shown = file.display();
    let opened = File::open(file).map_err(|error| UsageError(format!("{shown}: {error}")))?;
    let mut sheet = Sheet::default();
    let mut out = anstream::stdout().lock();
    for (at, text) in BufReader::new(opened).split(b'\n').enumerate() {
        let text = text.with_context(|| format!("{shown}"))?;
        if text.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        let line: Line = serde_json::from_slice(&text).map_err(|error| {
            UsageError(format!(
                "{shown}:{}: {error}: expected an object with cmd, or with tool and input",
                at + 1
            ))
        })?;
        let started = Instant::now();
        let decision = judge(&line, flags);
        if score {
            sheet.add(&line, &decision, started.elapsed());
        } else {
            let value = json!({
                "behavior": decision.behavior,
                "reason": decision.reason,
                "by": decision.by,
                "risks": decision.risks,
            });
            writeln!(out, "{value}")?;
        }
    }
    if score {
        write!(out, "{}", sheet.shown())?;
    }
    Ok(if sheet.weaker == 0 { Exit::Ok } else { Exit::Failed })
}

fn judge(line: &Line, flags: Flags) -> Decision {
    let mut policy = Policy::new(PROJECT);
    policy.flags = flags;
    if let Some(mode) = line.mode.as_deref().and_then(|mode| mode.parse().ok()) {
        policy = policy.with_mode(mode);
    }
    let tool = line.tool.as_deref().unwrap_or("Bash");
    let command = line.cmd.as_deref().or_else(|| line.input.get("command").and_then(Value::as_str));
    let Some(command) = command.filter(|_| tool == "Bash") else {
        return decide(&policy, &Request::new(tool));
    };
    let cwd = line.cwd.as_deref().unwrap_or(PROJECT).replace('~', HOME);
    let links: Vec<(PathBuf, PathBuf)> = line
        .fs
        .symlinks
        .iter()
        .map(|(from, to)| (absolute(Path::new(PROJECT), from), link_target(from, to)))
        .collect();
    let real = |path: &str| follow(Path::new(path), &links);
    let place = CommandPlace { cwd: &cwd, home: HOME, real: &real };
    decide(&policy, &Request::command(tool, command, &policy, place))
}

fn absolute(base: &Path, path: &str) -> PathBuf {
    let path = path.strip_prefix("~/").map_or_else(|| PathBuf::from(path), |rest| Path::new(HOME).join(rest));
    gripper_runtime::Place { cwd: base.to_owned() }.absolute(&path)
}

/// A relative target is relative to the folder of its link.
fn link_target(from: &str, to: &str) -> PathBuf {
    let link = absolute(Path::new(PROJECT), from);
    absolute(link.parent().unwrap_or(Path::new("/")), to)
}

/// Follows the links of a line, each at most a few times.
fn follow(path: &Path, links: &[(PathBuf, PathBuf)]) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..8 {
        let Some((rest, to)) = links.iter().find_map(|(from, to)| Some((path.strip_prefix(from).ok()?, to)))
        else {
            return path;
        };
        path = to.join(rest);
    }
    path
}

/// The figures of a batch.
#[derive(Default)]
struct Sheet {
    total: usize,
    passed: usize,
    /// Allowed although that was not expected.
    weaker: usize,
    with_rules: usize,
    /// Answers by expectation.
    table: BTreeMap<String, [usize; 3]>,
    /// Right answers and lines, by class and by tag.
    groups: BTreeMap<String, (usize, usize)>,
    misses: Vec<String>,
    times: Vec<Duration>,
}

impl Sheet {
    fn add(&mut self, line: &Line, decision: &Decision, time: Duration) {
        let expect = line.expect.as_deref().unwrap_or("unlabelled");
        let answer = word(decision.behavior);
        let right = match expect {
            "not_allow" | "deny_or_ask" => decision.behavior != Behavior::Allow,
            "unlabelled" => true,
            other => other == answer || line.accept.iter().any(|accepted| accepted == answer),
        };
        self.total += 1;
        self.times.push(time);
        self.passed += usize::from(right);
        self.with_rules += usize::from(line.rules.is_some());
        self.weaker += usize::from(!right && decision.behavior == Behavior::Allow);
        self.table.entry(expect.to_owned()).or_default()[decision.behavior as usize] += 1;
        let class = line.class.iter().cloned();
        let tags = line.tags.iter().map(|tag| format!("#{tag}"));
        let plain =
            !line.tags.iter().any(|tag| ["network-read", "cluster", "container"].contains(&tag.as_str()));
        for group in
            class.chain(tags).chain(plain.then(|| "(without network, cluster, container)".to_owned()))
        {
            let (passed, all) = self.groups.entry(group).or_default();
            *passed += usize::from(right);
            *all += 1;
        }
        if !right {
            let command = line.cmd.clone().unwrap_or_else(|| line.input.to_string());
            let command = show::one_line(&command, 90);
            self.misses.push(format!(
                "{answer} instead of {expect}: {command}\n      {DIM}{}{DIM:#}",
                show::one_line(&decision.reason, 120)
            ));
        }
    }

    fn shown(&mut self) -> String {
        let mut text = String::new();
        let share = 100.0 * self.passed as f64 / self.total.max(1) as f64;
        text.push_str(&format!("{BOLD}{} of {} as expected ({share:.1} %){BOLD:#}", self.passed, self.total));
        text.push_str(&format!(", {} allowed that should not be\n\n", self.weaker));
        text.push_str(&format!("{:<14}{:>8}{:>8}{:>8}\n", "expected", "allow", "ask", "deny"));
        for (expect, [allow, ask, deny]) in &self.table {
            text.push_str(&format!("{expect:<14}{allow:>8}{ask:>8}{deny:>8}\n"));
        }
        text.push_str(&format!("\n{:<40}{:>8}{:>8}\n", "class or #tag", "right", "lines"));
        for (group, (passed, all)) in &self.groups {
            text.push_str(&format!("{group:<40}{passed:>8}{all:>8}\n"));
        }
        self.times.sort();
        let at = |share: f64| {
            self.times.get(((self.times.len() as f64 - 1.0) * share) as usize).copied().unwrap_or_default()
        };
        text.push_str(&format!(
            "\ntime per line: median {}, p99 {}\n",
            show::duration(at(0.5)),
            show::duration(at(0.99))
        ));
        if self.with_rules > 0 {
            text.push_str(&format!(
                "{} lines carry rules, which are not used yet: judged by an empty policy\n",
                self.with_rules
            ));
        }
        if !self.misses.is_empty() {
            text.push_str(&format!("\n{BOLD}not as expected{BOLD:#}\n"));
        }
        for miss in self.misses.iter().take(MOST_LISTED) {
            text.push_str(&format!("  {miss}\n"));
        }
        if self.misses.len() > MOST_LISTED {
            text.push_str(&format!("  … and {} more\n", self.misses.len() - MOST_LISTED));
        }
        text
    }
}

fn word(behavior: Behavior) -> &'static str {
    match behavior {
        Behavior::Allow => "allow",
        Behavior::Ask => "ask",
        Behavior::Deny => "deny",
    }
}
