//! The scripted model server as a program, for scripts and benches.
//!
//! ```text
//! cargo run -p gripper-testkit --example model_server -- SCRIPT [--repeat]
//! ```
//!
//! SCRIPT holds one answer a line. Prints the address on one line, then serves until it is killed, each answer once;
//! with `--repeat` it begins again after the last. A conversation that is out of order is refused in words.
#![allow(clippy::print_stdout, reason = "it is a program")]

use anyhow::Context;
use gripper_testkit::model_server::{Answer, ModelServer};

fn main() -> anyhow::Result<()> {
    let mut args = std::env::args().skip(1);
    let path = args.next().context("which script? model_server SCRIPT [--repeat]")?;
    let repeat = args.next().is_some_and(|arg| arg == "--repeat");
    let text = std::fs::read_to_string(&path).with_context(|| format!("{path} cannot be read"))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let answers: Vec<Answer> =
        lines.map(serde_json::from_str).collect::<Result<_, _>>().with_context(|| format!("in {path}"))?;
    let server = ModelServer::choosing(move |_, at| {
        let at = if repeat { at % answers.len().max(1) } else { at };
        answers.get(at).cloned()
    });
    println!("{}", server.url());
    server.wait();
    Ok(())
}
