//! How long an analysis takes: over every example of the model files (or every `cmd` of the JSON
//! Lines files given as arguments), and over hostile texts of 64 KiB.
//!
//! `cargo bench -p gripper-shell --bench analyze [-- FILE...]`

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a benchmark prints"
)]

use std::{
    fs,
    hint::black_box,
    path::Path,
    time::{Duration, Instant},
};

use gripper_shell::{Surroundings, analyze, syntax};

const ROUNDS: u32 = 20;

fn main() {
    let files: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let lines =
        if files.is_empty() { examples() } else { files.iter().flat_map(|file| commands(file)).collect() };
    let here = Surroundings::new("/home/dev/project", "/home/dev");
    for line in &lines {
        black_box(analyze(line, &here));
    }
    let mut whole: Vec<Duration> =
        lines.iter().map(|line| best(|| drop(black_box(analyze(line, &here))))).collect();
    let mut parse: Vec<Duration> =
        lines.iter().map(|line| best(|| drop(black_box(syntax::parse(line))))).collect();
    println!("{} command lines, best of {ROUNDS} each", lines.len());
    report("analysis", &mut whole);
    report("parsing alone", &mut parse);
    println!("\nhostile texts of 64 KiB (limit 50 ms)");
    for (name, text) in hostile() {
        let started = Instant::now();
        let analysis = analyze(&text, &here);
        let time = started.elapsed();
        println!(
            "  {name:<28}{:>9.2} ms   {} unresolved",
            time.as_secs_f64() * 1e3,
            analysis.unresolved().len()
        );
    }
}

fn best(mut run: impl FnMut()) -> Duration {
    (0..ROUNDS)
        .map(|_| {
            let started = Instant::now();
            run();
            started.elapsed()
        })
        .min()
        .unwrap()
}

fn report(name: &str, times: &mut [Duration]) {
    times.sort();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    println!("  {name:<16} median {:>7.1} us   p99 {:>7.1} us   most {:>8.1} us", at(0.5), at(0.99), at(1.0));
}

fn commands(file: &str) -> Vec<String> {
    let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{file}: {error}"));
    text.lines()
        .filter_map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap().get("cmd")?.as_str().map(str::to_owned)
        })
        .collect()
}

fn examples() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("models");
    let mut lines = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let table: toml::Value = toml::from_str(&fs::read_to_string(entry.unwrap().path()).unwrap()).unwrap();
        collect(&table, &mut lines);
    }
    lines
}

fn collect(value: &toml::Value, lines: &mut Vec<String>) {
    for (name, value) in value.as_table().into_iter().flatten() {
        if name == "allow" || name == "refuse" {
            lines.extend(
                value.as_array().into_iter().flatten().filter_map(|line| line.as_str().map(str::to_owned)),
            );
        } else {
            collect(value, lines);
        }
    }
}

fn hostile() -> Vec<(&'static str, String)> {
    let fill = |unit: &str| unit.repeat(65_000 / unit.len());
    vec![
        ("open parentheses", fill("(")),
        ("open substitutions", fill("$(")),
        ("quoted substitutions", fill("\"$(")),
        ("open braces", fill("{a,")),
        ("brace bomb", fill("{a,b}")),
        ("open parameters", fill("${a:-")),
        ("here-document tags", fill("<<a ")),
        ("here-documents", format!("{}\n{}", "cat <<a ".repeat(4000), "a\n".repeat(4000))),
        ("backticks", fill("`")),
        ("commands", fill("ls;")),
        ("pipeline", fill("ls|")),
        ("long pipeline", format!("{}ls", "ls|".repeat(21_000))),
        ("chain", format!("{}ls", "ls&&".repeat(16_000))),
        ("assignments", (0..8000).map(|n| format!("a{n}=b;")).collect()),
        ("appended assignments", fill("a=$a$a;")),
        ("loops", format!("{}ls{}", "for i in a b c; do ".repeat(60), "; done".repeat(60))),
        ("flat loops", fill("for i in a b;do ls $i;done;")),
        ("if", fill("if ls;then ")),
        ("case", fill("case a in ")),
        (
            "functions",
            format!("{}ls", (0..3000).map(|n| format!("f{n}(){{ f{};}};", n + 1)).collect::<String>()),
        ),
        (
            "function bomb",
            format!(
                "f(){{ g;g;}};g(){{ h;h;}};h(){{ i;i;}};i(){{ j;j;}};j(){{ k;k;}};k(){{ l;l;}};l(){{ ls;ls;}};{}",
                "f;".repeat(20_000)
            ),
        ),
        ("doubled arguments", "f(){ f \"$@\" ''\"$@\";};f '';".repeat(2_000)),
        ("multiplied arguments", format!("set -- {};ls {}", "a ".repeat(250), "\"$@\" ".repeat(12_000))),
        ("ranges", format!("ls {}", "{1..256} ".repeat(7_000))),
        ("eval", fill("eval ls;")),
        ("eval in eval", format!("{}ls", "eval ".repeat(13_000))),
        ("arithmetic", format!("echo $(({}1))", "1+".repeat(32_000))),
        ("arguments", format!("ls {}", fill("a "))),
        ("options", format!("git log {}", fill("--oneline "))),
        ("one word", fill("a")),
        ("sed script", format!("sed -n '{}'", fill("s/a/b/;"))),
        ("awk program", format!("awk '{{{}}}'", fill("print $1;"))),
        ("jq filter", format!("jq '{}.'", ".a|".repeat(21_000))),
        ("line continuations", fill("\\\n")),
        ("globs", format!("ls {}", fill("*?[a] "))),
    ]
}
