//! A parser of another lineage as second oracle: for random scripts that both parse, the simple commands must have the
//! same words.
//!
//! ```text
//! cd fuzz && cargo run --release -p brush-oracle -- --scripts 100000 --seed 1 --out FILE
//! ```
//!
//! The other parser does not return on some inputs, so it runs in a child of this program and is killed when it takes
//! too long. Where the two disagree real bash decides: the scripts go to FILE, for
//! `cargo run --release -p gripper-shell --example bash_oracle -- --file FILE`.

#[path = "../../../crates/shell/examples/bash_oracle/generate.rs"]
mod generate;
#[path = "../../../crates/shell/examples/bash_oracle/grammar.rs"]
mod grammar;
mod ours;
#[path = "../../../crates/shell/examples/bash_oracle/random.rs"]
mod random;
#[path = "../../../crates/shell/examples/bash_oracle/tables.rs"]
mod tables;
mod theirs;

use std::io::{self, Write};
use std::time::Duration;
use std::{env, fs};

use theirs::Answer;

/// The words of a simple command; none stands for a word that is not known before it is expanded.
type Words = Vec<Option<String>>;

fn main() -> io::Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == "--child") {
        return theirs::answer();
    }
    let value = |name: &str| arguments.iter().skip_while(|given| *given != name).nth(1);
    let number =
        |name: &str, otherwise: u64| value(name).and_then(|text| text.parse().ok()).unwrap_or(otherwise);
    let (scripts, seed, show) = (number("--scripts", 10_000), number("--seed", 1), number("--show", 10));
    let mut parser = theirs::Child::start(Duration::from_secs(2))?;
    let (mut agree, mut skipped, mut hung) = (0_u64, 0_u64, 0_u64);
    let mut disagreements = Vec::new();
    for index in 0..scripts {
        let script = generate::script(seed, index);
        let Some(mine) = ours::commands(&script) else {
            skipped += 1;
            continue;
        };
        match parser.ask(&script)? {
            Answer::Refused => skipped += 1,
            Answer::Hung => hung += 1,
            Answer::Commands(other) if other == mine => agree += 1,
            Answer::Commands(other) => disagreements.push((script, mine, other)),
        }
    }
    let mut out = io::stdout().lock();
    for (script, mine, other) in disagreements.iter().take(usize::try_from(show).unwrap_or(10)) {
        writeln!(out, "{script:?}\n    ours:   {mine:?}\n    theirs: {other:?}")?;
    }
    if let Some(path) = value("--out") {
        let texts: Vec<&str> = disagreements.iter().map(|(script, ..)| script.as_str()).collect();
        fs::write(path, texts.join("\0"))?;
    }
    let count = disagreements.len();
    writeln!(out, "scripts {scripts}, agree {agree}, disagree {count}, skipped {skipped}, hung {hung}")
}

/// In one order, whichever way a parser walks.
fn sorted(mut commands: Vec<Words>) -> Vec<Words> {
    commands.retain(|words| !words.is_empty());
    commands.sort();
    commands
}
