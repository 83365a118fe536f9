//! One worker: its share of the scripts, one after the other.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use crate::adapter::Prediction;
use crate::compare::{self, Verdict};
use crate::generate;
use crate::options::Options;
use crate::run::Bash;

/// The scripts to judge instead of random ones, in the folder of a worker.
pub(crate) const SCRIPTS: &str = "scripts";

/// What came out so far.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Counts {
    pub(crate) scripts: u64,
    pub(crate) ran: u64,
    pub(crate) executed: u64,
    pub(crate) exact: u64,
    pub(crate) fits: u64,
    pub(crate) unresolved: u64,
    pub(crate) timed_out: u64,
    pub(crate) wrong: u64,
}

impl Counts {
    fn fields(self) -> [u64; 8] {
        [
            self.scripts,
            self.ran,
            self.executed,
            self.exact,
            self.fits,
            self.unresolved,
            self.timed_out,
            self.wrong,
        ]
    }

    fn line(self) -> String {
        let numbers: Vec<String> = self.fields().iter().map(u64::to_string).collect();
        format!("#counts {}", numbers.join(" "))
    }

    /// From a line that a worker wrote.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let numbers: Vec<u64> =
            line.strip_prefix("#counts ")?.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        let [scripts, ran, executed, exact, fits, unresolved, timed_out, wrong] = numbers.try_into().ok()?;
        Some(Self { scripts, ran, executed, exact, fits, unresolved, timed_out, wrong })
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.scripts += other.scripts;
        self.ran += other.ran;
        self.executed += other.executed;
        self.exact += other.exact;
        self.fits += other.fits;
        self.unresolved += other.unresolved;
        self.timed_out += other.timed_out;
        self.wrong += other.wrong;
    }

    pub(crate) fn report(&self, seconds: f64) -> String {
        let rate = self.scripts as f64 / seconds.max(0.001);
        format!(
            "scripts {}, run in bash {}, executed {}, exact {}, fits {}, unresolved {}, timed out {}, wrong {}, {rate:.0} scripts/s",
            self.scripts,
            self.ran,
            self.executed,
            self.exact,
            self.fits,
            self.unresolved,
            self.timed_out,
            self.wrong
        )
    }
}

/// Runs every script whose number belongs to this worker.
pub(crate) fn work(folder: &Path, options: &Options) -> io::Result<()> {
    let stubs = folder.parent().unwrap_or(folder).join("bin");
    let mut bash = Bash::new(folder, &stubs, options.deadline)?;
    if let Some(script) = &options.script {
        return single(&mut bash, script);
    }
    let mut counts = Counts::default();
    let mut index = options.job;
    if options.file.is_some() {
        let given = fs::read_to_string(folder.join(SCRIPTS))?;
        let own = (0_u64..).zip(given.split('\0')).filter(|(index, _)| index % options.jobs == options.job);
        for (index, script) in own.filter(|(_, script)| generate::harmless(script)) {
            step(&mut bash, script, index, options, &mut counts)?;
        }
        return writeln!(io::stdout(), "{}", counts.line());
    }
    while index < options.scripts {
        let script = generate::script(options.seed, index);
        step(&mut bash, &script, index, options, &mut counts)?;
        index += options.jobs;
    }
    writeln!(io::stdout(), "{}", counts.line())
}

fn step(bash: &mut Bash, script: &str, index: u64, options: &Options, counts: &mut Counts) -> io::Result<()> {
    let prediction = Prediction::of(script, &bash.scratch(), &bash.home());
    counts.scripts += 1;
    if !prediction.doubts.is_empty() {
        counts.unresolved += 1;
        // Nothing that bash does could prove it wrong: only a few are run, to know how many do anything.
        if index / options.jobs % 100 >= options.sample {
            return Ok(());
        }
    }
    let outcome = bash.run(script)?;
    counts.ran += 1;
    counts.executed += u64::from(!outcome.calls.is_empty());
    counts.timed_out += u64::from(outcome.timed_out);
    match compare::judge(&prediction, &outcome) {
        Verdict::Exact => counts.exact += u64::from(!outcome.calls.is_empty()),
        Verdict::Fits => counts.fits += 1,
        Verdict::Unresolved => {}
        Verdict::Wrong => {
            counts.wrong += 1;
            if counts.wrong <= options.show.div_ceil(options.jobs) {
                show(bash, script, index)?;
            }
        }
    }
    Ok(())
}

fn show(bash: &mut Bash, script: &str, index: u64) -> io::Result<()> {
    let found = compare::minimise(bash, script)?;
    let mut out = io::stdout().lock();
    writeln!(out, "wrong (script {index}): {:?}", found.script)?;
    writeln!(out, "    bash: {}", found.surprise)?;
    for part in found.predicted {
        writeln!(out, "    predicted: {part}")?;
    }
    Ok(())
}

fn single(bash: &mut Bash, script: &str) -> io::Result<()> {
    let prediction = Prediction::of(script, &bash.scratch(), &bash.home());
    let outcome = bash.run(script)?;
    let mut out = io::stdout().lock();
    for call in &outcome.calls {
        writeln!(out, "bash: {:?} in {}", call.argv, call.cwd)?;
    }
    for path in &outcome.written {
        writeln!(out, "bash wrote: {path}")?;
    }
    for part in prediction.shown() {
        writeln!(out, "predicted: {part}")?;
    }
    for doubt in &prediction.doubts {
        writeln!(out, "doubt: {doubt}")?;
    }
    let verdict = compare::judge(&prediction, &outcome);
    writeln!(out, "{verdict:?}{}", if outcome.timed_out { ", timed out" } else { "" })?;
    let wrong = u64::from(verdict == Verdict::Wrong);
    writeln!(out, "{}", Counts { scripts: 1, ran: 1, wrong, ..Counts::default() }.line())
}
