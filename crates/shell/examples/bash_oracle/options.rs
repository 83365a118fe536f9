//! The command line.

use std::io;
use std::time::Duration;

/// What was asked for.
pub(crate) struct Options {
    pub(crate) scripts: u64,
    pub(crate) seed: u64,
    pub(crate) jobs: u64,
    pub(crate) show: u64,
    pub(crate) sample: u64,
    pub(crate) deadline: Duration,
    pub(crate) script: Option<String>,
    pub(crate) file: Option<String>,
    pub(crate) print: bool,
    /// The folder of a worker; the program starts itself with this.
    pub(crate) worker: Option<String>,
    pub(crate) job: u64,
}

impl Options {
    pub(crate) fn parse(arguments: &[String]) -> io::Result<Self> {
        let mut options = Self {
            scripts: 10_000,
            seed: 1,
            jobs: 2,
            show: 10,
            sample: 5,
            deadline: Duration::from_millis(1_000),
            script: None,
            file: None,
            print: false,
            worker: None,
            job: 0,
        };
        let mut rest = arguments.iter();
        while let Some(name) = rest.next() {
            if name == "--print" {
                options.print = true;
                continue;
            }
            let value = rest.next().ok_or_else(|| io::Error::other(format!("{name} needs a value")))?;
            let number =
                || value.parse::<u64>().map_err(|_| io::Error::other(format!("{value} is not a number")));
            match name.as_str() {
                "--scripts" => options.scripts = number()?,
                "--seed" => options.seed = number()?,
                "--jobs" => options.jobs = number()?.max(1),
                "--show" => options.show = number()?,
                "--sample" => options.sample = number()?,
                "--deadline" => options.deadline = Duration::from_millis(number()?),
                "--script" => options.script = Some(value.clone()),
                "--file" => options.file = Some(value.clone()),
                "--worker" => options.worker = Some(value.clone()),
                "--job" => options.job = number()?,
                _ => {
                    return Err(io::Error::other(format!("{name} is not an option; see the top of main.rs")));
                }
            }
        }
        if options.script.is_some() {
            options.jobs = 1;
        }
        Ok(options)
    }
}
