//! What the person reads. All of it is bounded, and what others wrote cannot move the cursor.

use std::fmt::Write;

use gripper_runtime::{
    approve::Ask,
    permissions::{Subject, Suggestion},
};

use crate::{
    explain,
    show::{self, BAD, BOLD, DIM, NOTE},
};

/// Longer commands are shown with a gap in the middle.
const LONGEST_COMMAND: usize = 16_000;
const LONGEST_INPUT: usize = 2_000;
const MOST_PATHS: usize = 20;

/// One line of somebody else's words.
pub(super) fn brief(text: &str) -> String {
    show::one_line(text, 400)
}

pub(super) fn question(ask: &Ask) -> String {
    let mut text = String::new();
    let whose = if &*ask.agent == "main" { String::new() } else { format!(" (agent {})", brief(&ask.agent)) };
    let _ = writeln!(
        text,
        "\n{NOTE}?{NOTE:#} {BOLD}{}{BOLD:#}{whose}: {}",
        brief(&ask.tool),
        brief(&ask.summary)
    );
    let command = ask.subjects.iter().find_map(|subject| match subject {
        Subject::Command(command) => Some(command),
        _ => None,
    });
    match command {
        Some(command) => {
            let characters = command.text.chars().count();
            if characters > LONGEST_COMMAND {
                let half = LONGEST_COMMAND / 2;
                let head: String = command.text.chars().take(half).collect();
                let tail: String = command.text.chars().skip(characters - half).collect();
                let missing = show::count(characters - 2 * half, "character");
                let _ = writeln!(
                    text,
                    "{}\n{BAD}… {missing} not shown …{BAD:#}\n{}",
                    show::safe(&head),
                    show::safe(&tail)
                );
            } else {
                text.push_str(&explain::command_picture(command));
            }
            let _ = writeln!(text, "{DIM}the command has {}{DIM:#}", show::count(characters, "character"));
        }
        None => {
            let _ = writeln!(text, "  input  {}", show::one_line(&ask.input.to_string(), LONGEST_INPUT));
            touched(&mut text, ask);
        }
    }
    if let Some(preview) = &ask.preview {
        let _ = writeln!(text, "  {BOLD}edit{BOLD:#}   this is what it would change:");
        for line in preview.lines() {
            let _ = writeln!(text, "    {}", show::one_line(line, LONGEST_INPUT));
        }
    }
    for risk in ask.decision.risks.iter().take(MOST_PATHS) {
        let _ = writeln!(text, "  {BAD}risk{BAD:#}   {}: {}", brief(&risk.name), brief(&risk.detail));
    }
    let _ = writeln!(text, "  {BOLD}why{BOLD:#}    {}", brief(&ask.decision.reason));
    choices(&mut text, ask);
    text
}

fn touched(text: &mut String, ask: &Ask) {
    for subject in ask.subjects.iter().take(MOST_PATHS) {
        let _ = match subject {
            Subject::Path(path) => {
                let verb = if path.write { "writes" } else { "reads " };
                let _ = write!(text, "  {verb} {}", brief(&path.written.to_string_lossy()));
                if path.real != path.written {
                    let _ = write!(text, ", which leads to {}", brief(&path.real.to_string_lossy()));
                }
                writeln!(text)
            }
            Subject::Url(url) => writeln!(text, "  calls  {}", brief(url)),
            Subject::Name(name) => writeln!(text, "  uses   {}", brief(name)),
            Subject::Command(_) => Ok(()),
        };
    }
    if ask.subjects.len() > MOST_PATHS {
        let _ = writeln!(text, "  … and {} more", ask.subjects.len() - MOST_PATHS);
    }
}

fn choices(text: &mut String, ask: &Ask) {
    let _ = writeln!(text, "{BOLD}1{BOLD:#} allow once");
    match ask.decision.suggestions.first().filter(|_| ask.offer().is_some()) {
        Some(offer) => {
            let _ = writeln!(
                text,
                "{BOLD}2{BOLD:#} allow for this session: {} {DIM}({}){DIM:#}\n  {DIM}less with: 2 5x, 2 10m, 2 in FOLDER{DIM:#}",
                rules(offer),
                brief(&offer.reach),
            );
        }
        None => {
            let _ = writeln!(text, "{DIM}2 is not there: no rule would settle such calls{DIM:#}");
        }
    }
    let _ = write!(
        text,
        "{BOLD}3{BOLD:#} always allow, by a rule you choose\n{BOLD}4{BOLD:#} deny\n{BOLD}5{BOLD:#} deny and tell the model why\n{BOLD}e{BOLD:#} edit the input and allow once"
    );
}

/// A rule to choose from.
pub(super) fn offer(number: usize, suggestion: &Suggestion) -> String {
    format!("  {number} {} {DIM}({}){DIM:#}", rules(suggestion), brief(&suggestion.reach))
}

/// The rules of a suggestion, which help only together.
fn rules(suggestion: &Suggestion) -> String {
    let rules: Vec<String> =
        std::iter::once(&suggestion.rule).chain(&suggestion.also).map(|rule| brief(rule)).collect();
    rules.join(" and ")
}
