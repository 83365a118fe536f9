//! Many commands at once, and how the answers compare with labels.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead, BufReader, Write},
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Context;
use gripper_runtime::permissions::{Behavior, Decision, Flags};
use serde_json::json;

use super::line::Line;
use crate::{
    exit::{Exit, UsageError},
    show::{self, BOLD, DIM},
};

/// Misses that are listed.
const MOST_LISTED: usize = 40;

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
                "{shown}:{}: {error}: expected an object with cmd, with tool and input, or with url",
                at + 1
            ))
        })?;
        let started = Instant::now();
        let decision = line.judge(flags).map_err(|why| UsageError(format!("{shown}:{}: {why}", at + 1)))?;
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

/// The figures of a batch.
#[derive(Default)]
struct Sheet {
    total: usize,
    passed: usize,
    /// Allowed although that was not expected.
    weaker: usize,
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
            let command = line.shown();
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
