//! Holds what bash did against what the analysis predicted.

use std::io;

use crate::adapter::{Fit, Prediction};
use crate::generate::harmless;
use crate::run::{Bash, Logged, Outcome};

/// How a script came out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Every call was predicted word for word.
    Exact,
    /// Every call fits a prediction, some only one with holes.
    Fits,
    /// The analysis said that it does not know.
    Unresolved,
    /// A call or a written file was not predicted.
    Wrong,
}

/// A script on which the analysis is wrong.
pub(crate) struct Finding {
    /// The smallest script found that still shows it.
    pub(crate) script: String,
    /// What was called or written and not predicted.
    pub(crate) surprise: String,
    /// What was predicted.
    pub(crate) predicted: Vec<String>,
}

/// Judges one run.
pub(crate) fn judge(prediction: &Prediction, outcome: &Outcome) -> Verdict {
    if !prediction.doubts.is_empty() {
        return Verdict::Unresolved;
    }
    if surprise(prediction, outcome).is_some() {
        return Verdict::Wrong;
    }
    let exact = outcome.calls.iter().all(|call| prediction.fit(&call.argv) == Fit::Exact);
    if exact { Verdict::Exact } else { Verdict::Fits }
}

fn surprise(prediction: &Prediction, outcome: &Outcome) -> Option<String> {
    let missed = |call: &&Logged| prediction.fit(&call.argv) == Fit::Missed;
    if let Some(call) = outcome.calls.iter().find(missed) {
        return Some(format!("{:?} in {}", call.argv, call.cwd));
    }
    outcome.written.iter().find(|path| !prediction.writes(path)).map(|path| format!("writes {path}"))
}

/// Takes pieces out of a wrong script as long as it stays wrong.
pub(crate) fn minimise(bash: &mut Bash, script: &str) -> io::Result<Finding> {
    let mut best: Vec<char> = script.chars().collect();
    let mut tries = 800;
    let mut size = best.len().div_ceil(2);
    while size > 3 {
        shrink(bash, &mut best, size, size, &mut tries)?;
        size /= 2;
    }
    // Small pieces are tried at every place and again: quotes go in pairs, and one cut makes room for another.
    loop {
        let before = best.len();
        for size in [3, 2, 1] {
            shrink(bash, &mut best, size, 1, &mut tries)?;
        }
        if best.len() == before || tries == 0 {
            break;
        }
    }
    let script: String = best.into_iter().collect();
    let surprise = wrong(bash, &script)?.unwrap_or_else(|| "not the same twice".to_owned());
    let predicted = Prediction::of(&script, &bash.scratch(), &bash.home()).shown();
    Ok(Finding { script, surprise, predicted })
}

/// Tries to leave out `size` characters, every `step` characters.
fn shrink(
    bash: &mut Bash,
    best: &mut Vec<char>,
    size: usize,
    step: usize,
    tries: &mut u32,
) -> io::Result<()> {
    let mut at = 0;
    while at < best.len() && *tries > 0 {
        let mut shorter = best.clone();
        shorter.drain(at..(at + size).min(best.len()));
        *tries -= 1;
        if wrong(bash, &shorter.iter().collect::<String>())?.is_some() {
            *best = shorter;
        } else {
            at += step;
        }
    }
    Ok(())
}

fn wrong(bash: &mut Bash, script: &str) -> io::Result<Option<String>> {
    if !harmless(script) {
        return Ok(None);
    }
    let prediction = Prediction::of(script, &bash.scratch(), &bash.home());
    if !prediction.doubts.is_empty() {
        return Ok(None);
    }
    Ok(surprise(&prediction, &bash.run(script)?))
}
