//! Real bash as the oracle of the analysis.
//!
//! Random scripts run in bash, where every program is a stub that writes down how it was called. Each call must be
//! one that the analysis predicted, or the analysis must have said that something in the script is unresolved.
//!
//! ```text
//! cargo run --release -p gripper-shell --example bash_oracle -- --scripts 100000 --seed 1
//! ```
//!
//! Options: `--scripts N`, `--seed N`, `--jobs N`, `--show N` (findings printed), `--sample N` (of the scripts that
//! are unresolved anyway, run this many in a hundred), `--deadline MS`, `--script TEXT` (judge this one and show what it
//! did), `--file PATH` (judge the scripts in this file, with NUL between them), `--print` (print the scripts and run
//! nothing).

mod adapter;
mod compare;
mod generate;
mod grammar;
mod options;
mod random;
mod run;
mod tables;
mod worker;

use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::Instant;
use std::{env, fs};

use options::Options;
use worker::Counts;

/// The user `nobody`: a script run by root must not be root.
const NOBODY: u32 = 65_534;

fn main() -> io::Result<ExitCode> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let options = Options::parse(&arguments)?;
    if let Some(folder) = &options.worker {
        worker::work(Path::new(folder), &options)?;
        return Ok(ExitCode::SUCCESS);
    }
    if options.print {
        let mut out = io::stdout().lock();
        for index in 0..options.scripts {
            writeln!(out, "{:?}", generate::script(options.seed, index))?;
        }
        return Ok(ExitCode::SUCCESS);
    }
    let folder = Folder::new()?;
    let counts = run_all(&folder.0, &options, &arguments)?;
    Ok(if counts.wrong == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A folder that is gone when the run ends.
struct Folder(PathBuf);

impl Folder {
    fn new() -> io::Result<Self> {
        let path = env::temp_dir().join(format!("bash-oracle-{}", std::process::id()));
        fs::create_dir(&path)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755))?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn run_all(folder: &Path, options: &Options, arguments: &[String]) -> io::Result<Counts> {
    run::build_stubs(&folder.join("bin"))?;
    let start = Instant::now();
    let mut workers = Vec::new();
    for job in 0..options.jobs {
        workers.push(start_worker(folder, options, arguments, job)?);
    }
    let mut counts = Counts::default();
    let mut failed = 0;
    for mut worker in workers {
        if let Some(lines) = worker.stdout.take() {
            counts.add(&relay(lines)?);
        }
        failed += u32::from(!worker.wait()?.success());
    }
    let seconds = start.elapsed().as_secs_f64();
    writeln!(io::stdout(), "{}", counts.report(seconds))?;
    if failed > 0 {
        return Err(io::Error::other(format!("{failed} workers ended early")));
    }
    Ok(counts)
}

/// Starts this program again as a worker, as a user that can do nothing.
fn start_worker(folder: &Path, options: &Options, arguments: &[String], job: u64) -> io::Result<Child> {
    let own = folder.join(format!("w{job}"));
    fs::create_dir(&own)?;
    // The build folder may be closed to that user.
    let program = own.join("worker");
    fs::copy(env::current_exe()?, &program)?;
    if let Some(file) = &options.file {
        fs::copy(file, own.join(worker::SCRIPTS))?;
    }
    let mut command = Command::new(&program);
    command.args(arguments).arg("--worker").arg(&own).arg("--job").arg(job.to_string());
    command.arg("--jobs").arg(options.jobs.to_string());
    command.current_dir(&own).stdin(Stdio::null()).stdout(Stdio::piped());
    if fs::metadata(&own)?.uid() == 0 {
        chown(&own, Some(NOBODY), Some(NOBODY))?;
        command.uid(NOBODY).gid(NOBODY);
    }
    command.spawn()
}

/// Passes a worker's findings on and keeps its last counts.
fn relay(lines: impl io::Read) -> io::Result<Counts> {
    let mut counts = Counts::default();
    for line in BufReader::new(lines).lines() {
        let line = line?;
        match Counts::parse(&line) {
            Some(latest) => counts = latest,
            None => writeln!(io::stdout(), "{line}")?,
        }
    }
    Ok(counts)
}
