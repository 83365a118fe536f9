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
    let mut size = best.len().div_ceil(2);
    let mut runs = 0;
    while size > 0 {
        let mut at = 0;
        let mut shrunk = false;
        while at < best.len() && runs < 600 {
            let mut shorter = best.clone();
            shorter.drain(at..(at + size).min(best.len()));
            runs += 1;
            if wrong(bash, &shorter.iter().collect::<String>())?.is_some() {
                best = shorter;
                shrunk = true;
            } else {
                at += size;
            }
        }
        if !shrunk || size > 1 {
            size /= 2;
        }
    }
    let script: String = best.into_iter().collect();
    let surprise = wrong(bash, &script)?.unwrap_or_else(|| "not the same twice".to_owned());
    let predicted = Prediction::of(&script, &bash.scratch(), &bash.home()).shown();
    Ok(Finding { script, surprise, predicted })
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
