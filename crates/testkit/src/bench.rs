//! Side-by-side measurements. The two sides of a ratio take turns in one run, so that a busy
//! machine slows both; what is compared is the median.
//!
//! With `--json` among the arguments a report is one JSON object a line, else a table.

use std::{
    io::Write,
    time::{Duration, Instant},
};

use serde_json::json;

/// Collects rows and prints them.
pub struct Report {
    title: &'static str,
    rows: Vec<Row>,
}

struct Row {
    what: String,
    measured: String,
    against: String,
    value: f64,
    limit: f64,
}

impl Report {
    /// An empty report.
    pub fn new(title: &'static str) -> Self {
        Self { title, rows: Vec::new() }
    }

    /// Times `ours` against `rival`, taking turns, and notes the ratio of the medians.
    pub fn ratio<A, B>(
        &mut self,
        what: &str,
        rounds: usize,
        limit: f64,
        mut ours: impl FnMut() -> A,
        rival_name: &str,
        mut rival: impl FnMut() -> B,
    ) {
        let (mut mine, mut theirs) = (Vec::new(), Vec::new());
        for round in 0..=rounds {
            let times = (timed(&mut ours), timed(&mut rival));
            // The first round only fetches what the system had put aside.
            if round > 0 {
                mine.push(times.0);
                theirs.push(times.1);
            }
        }
        self.ratio_of(what, percentile(&mut mine, 50), rival_name, percentile(&mut theirs, 50), limit);
    }

    /// Notes the ratio of two durations measured elsewhere.
    pub fn ratio_of(&mut self, what: &str, ours: Duration, rival_name: &str, rival: Duration, limit: f64) {
        self.rows.push(Row {
            what: what.to_owned(),
            measured: show(ours),
            against: format!("{} {rival_name}", show(rival)),
            value: ours.as_secs_f64() / rival.as_secs_f64(),
            limit,
        });
    }

    /// Notes a value that has a limit of its own, in the unit that `what` names.
    pub fn absolute(&mut self, what: &str, value: f64, limit: f64) {
        self.rows.push(Row {
            what: what.to_owned(),
            measured: format!("{value:.2}"),
            against: format!("at most {limit}"),
            value: value / limit,
            limit: 1.0,
        });
    }

    /// Prints everything.
    pub fn print(&self) {
        let machine = std::env::args().any(|argument| argument == "--json");
        let mut out = std::io::stdout().lock();
        if !machine {
            writeln!(out, "\n{}\n", self.title).ok();
            writeln!(
                out,
                "{:<52} {:>11}  {:<34} {:>7} {:>7}",
                "what", "measured", "against", "ratio", "limit"
            )
            .ok();
        }
        for row in &self.rows {
            let met = row.value <= row.limit;
            if machine {
                let line = json!({
                    "bench": self.title, "what": row.what, "measured": row.measured, "against": row.against,
                    "ratio": row.value, "limit": row.limit, "met": met,
                });
                writeln!(out, "{line}").ok();
            } else {
                let verdict = if met { "" } else { "  over" };
                writeln!(
                    out,
                    "{:<52} {:>11}  {:<34} {:>7.3} {:>7.2}{verdict}",
                    row.what, row.measured, row.against, row.value, row.limit
                )
                .ok();
            }
        }
    }
}

/// How long one run of `work` takes.
pub fn timed<T>(work: &mut impl FnMut() -> T) -> Duration {
    let start = Instant::now();
    std::hint::black_box(work());
    start.elapsed()
}

/// The value below which `percent` of the samples lie. Sorts them.
pub fn percentile(samples: &mut [Duration], percent: usize) -> Duration {
    samples.sort_unstable();
    samples[(samples.len() - 1) * percent / 100]
}

fn show(duration: Duration) -> String {
    match duration.as_secs_f64() {
        s if s >= 1.0 => format!("{s:.2} s"),
        s if s >= 1e-3 => format!("{:.2} ms", s * 1e3),
        s => format!("{:.2} µs", s * 1e6),
    }
}
