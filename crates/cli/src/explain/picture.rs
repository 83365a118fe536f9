//! The analysis for people: the answer, the text with its risks underlined, the parts with their effects.

use std::fmt::Write;

use anstyle::Style;
use gripper_runtime::permissions::{Behavior, CommandUse};
use gripper_shell::{Part, Phase, Risk, Severity, Span, Verdict, Via};

use super::Told;
use crate::show::{self, BAD, BOLD, DIM, GOOD, NOTE};

/// Parts and risks beyond these are only counted.
const MOST_PARTS: usize = 40;
const MOST_RISKS: usize = 12;

pub(super) fn of(told: &Told<'_>) -> String {
    let decision = &told.decision;
    let mut text = String::new();
    let (style, word) = match decision.behavior {
        Behavior::Allow => (GOOD, "allow"),
        Behavior::Ask => (NOTE, "ask"),
        Behavior::Deny => (BAD, "deny"),
    };
    let _ = writeln!(text, "{style}{word}{style:#}  {}", show::safe(&decision.reason));
    if let Some(command) = told.request.command_use() {
        text.push_str(&self::command(command));
    }
    rules(&mut text, told);
    text
}

/// A command with its risks underlined, its parts and their effects.
pub(crate) fn command(command: &CommandUse) -> String {
    let mut text = String::new();
    let analysis = &command.analysis;
    underlined(&mut text, &command.text, analysis.risks());
    let _ = writeln!(text, "\n{BOLD}parts{BOLD:#}");
    for part in analysis.parts().iter().take(MOST_PARTS) {
        describe(&mut text, part, &command.text);
    }
    more(&mut text, analysis.parts().len(), MOST_PARTS);
    for doubt in analysis.unresolved().iter().take(MOST_RISKS) {
        let _ = writeln!(
            text,
            "  {NOTE}unresolved{NOTE:#} {}: {}",
            place(&command.text, doubt.span),
            show::safe(&doubt.why)
        );
    }
    let _ = writeln!(text, "\n{BOLD}in short{BOLD:#}  {}", show::safe(&command.summary));
    let note = match analysis.verdict() {
        Verdict::ReadOnly => "only reads",
        Verdict::ReadOnlyIfConfined => {
            "only reads; which files is decided while it runs, so it needs sensitive files hidden"
        }
        Verdict::NotReadOnly => "more than reading",
    };
    let _ = writeln!(text, "{BOLD}verdict{BOLD:#}   {note}");
    for edit in analysis.edits() {
        let _ = writeln!(
            text,
            "{BOLD}edits{BOLD:#}     {} in place, by {}",
            show::safe(&edit.files.join(" ")),
            edit.program
        );
    }
    for (code, meaning) in analysis.exits() {
        let _ = writeln!(text, "{DIM}exit {code} means: {meaning}{DIM:#}");
    }
    text
}

/// The rules about the call, the step that settled it, and what would change the answer.
fn rules(text: &mut String, told: &Told<'_>) {
    let decision = &told.decision;
    let _ = writeln!(text, "\n{BOLD}step{BOLD:#}      {} of 9: {}", decision.step, decision.step_name());
    for matched in told.matched.iter().take(MOST_PARTS) {
        let (list, rule) = (matched.list.name(), show::safe(matched.rule.rule.text()).into_owned());
        let inert = if matched.counts { "" } else { ", does not count here" };
        let _ = writeln!(
            text,
            "{BOLD}rule{BOLD:#}      {list} {rule} {DIM}{}{inert}{DIM:#}",
            matched.rule.source
        );
    }
    more(text, told.matched.len(), MOST_PARTS);
    for suggestion in &decision.suggestions {
        let rules: Vec<&str> =
            std::iter::once(&suggestion.rule).chain(&suggestion.also).map(String::as_str).collect();
        let _ = writeln!(
            text,
            "{BOLD}to {}{BOLD:#}  {} {DIM}{}{DIM:#}",
            suggestion.list.name(),
            show::safe(&rules.join("  and  ")),
            show::safe(&suggestion.reach)
        );
    }
}

/// The text with marks under the words that are risky.
fn underlined(text: &mut String, command: &str, risks: &[Risk]) {
    text.push('\n');
    let mut start = 0;
    for line in command.split('\n') {
        let end = start + line.len();
        let _ = writeln!(text, "  {}", show::safe(line));
        for risk in risks.iter().take(MOST_RISKS) {
            let (from, to) = (risk.span.start as usize, risk.span.end as usize);
            let here = from >= start && from <= end;
            if !here {
                continue;
            }
            let indent = columns(line, from - start);
            let width = columns(line, to.min(end) - start).saturating_sub(indent).max(1);
            let style = colour(risk);
            let phase = if risk.kind.phase() == Phase::Allow { ", deceptive" } else { "" };
            let _ = writeln!(
                text,
                "  {}{style}{}{style:#} {style}{}{style:#} {DIM}({}{phase}){DIM:#} {}",
                " ".repeat(indent),
                "~".repeat(width),
                risk.kind,
                severity(risk.kind.severity()),
                show::safe(&risk.detail),
            );
        }
        start = end + 1;
    }
}

/// How many columns the first `bytes` of a line take, hidden characters shown.
fn columns(line: &str, bytes: usize) -> usize {
    let mut bytes = bytes.min(line.len());
    while !line.is_char_boundary(bytes) {
        bytes -= 1;
    }
    show::safe(&line[..bytes]).chars().count()
}

fn describe(text: &mut String, part: &Part, command: &str) {
    let indent = "  ".repeat(part.depth + 1);
    let words = if part.argv.is_empty() { part.span.of(command).to_owned() } else { part.shown() };
    let via = match &part.via {
        Via::Line => String::new(),
        Via::Substitution => " in a substitution".to_owned(),
        Via::Function(name) => format!(" in {name}()"),
        Via::Program(name) => format!(" by {name}"),
    };
    let _ = writeln!(text, "{indent}{}{DIM}{}{DIM:#}", show::one_line(&words, 100), show::safe(&via));
    let mut seen: Vec<String> = Vec::new();
    for effect in &part.effects {
        let phrase = effect.kind.to_string();
        if seen.contains(&phrase) {
            continue;
        }
        let style = if effect.kind.is_read() { DIM } else { NOTE };
        let _ = writeln!(text, "{indent}  {style}{}{style:#}", show::one_line(&phrase, 110));
        seen.push(phrase);
    }
}

fn more(text: &mut String, all: usize, shown: usize) {
    if all > shown {
        let _ = writeln!(text, "  {DIM}… and {} more{DIM:#}", all - shown);
    }
}

fn place(command: &str, span: Span) -> String {
    let words = span.of(command);
    if words.is_empty() {
        format!("at byte {}", span.start)
    } else {
        format!("`{}`", show::one_line(words, 60))
    }
}

fn colour(risk: &Risk) -> Style {
    if risk.kind.severity() >= Severity::High { BAD } else { NOTE }
}

fn severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Low => "low",
        Severity::Medium => "medium",
        Severity::High => "high",
        Severity::Critical => "critical",
    }
}
