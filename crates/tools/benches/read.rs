//! Read against the plainest code that could do the same: a small file against `std::fs::read` and a
//! numbering loop, a window deep in a large file against a bare line feed scan of the same bytes. Ends with a
//! table of ratios.
//!
//! `READ_BENCH_MIB` sets the size of the large file, 256 MiB unless given.

#![allow(missing_docs, clippy::expect_used, clippy::print_stdout)]

use std::fmt::Write as _;
use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput};
use gripper_tools::read::page::{Limits, Page, Wanted, read_page};
use tempfile::TempDir;

const SMALL_LINES: usize = 2_000;
const WINDOW: u64 = 2_000;
const DEEP_LINE: u64 = 5_000_000;
/// Below this the lines behind the window would be counted too, which the plain scan does not do.
const SMALLEST_MIB: u64 = 192;
const ROUNDS_SMALL: usize = 400;
const ROUNDS_DEEP: usize = 7;
const CHUNK: usize = 128 * 1024;

fn main() {
    let files = Files::build();
    // First of all, before anything else has made room that could be used again.
    let growth = [growth(|| window(&files)), growth(|| whole(&files.long_line))];
    let mut criterion = Criterion::default().configure_from_args().sample_size(20);
    small(&mut criterion, &files);
    deep(&mut criterion, &files);
    criterion.final_summary();
    print_ratios(&files, growth);
}

struct Files {
    _folder: TempDir,
    small: PathBuf,
    large: PathBuf,
    long_line: PathBuf,
    large_bytes: u64,
    /// The first line of the window and the bytes up to its end.
    window: (u64, u64),
}

impl Files {
    fn build() -> Self {
        let mebibytes: u64 =
            std::env::var("READ_BENCH_MIB").ok().and_then(|text| text.parse().ok()).unwrap_or(256);
        let mebibytes = mebibytes.max(SMALLEST_MIB);
        let folder = TempDir::new().expect("a temporary folder");
        let small = folder.path().join("small.rs");
        let mut text = String::new();
        for number in 0..SMALL_LINES {
            let indent = "    ".repeat(number % 4);
            writeln!(text, "{indent}let value_{number} = call({number});").expect("a string takes all");
        }
        std::fs::write(&small, text).expect("the small file");

        // Forty bytes with the line feed: two thousand of them still fit one page.
        let line = "the quick brown fox jumps over the dogs\n";
        let count = mebibytes * 1024 * 1024 / line.len() as u64;
        let large = folder.path().join("large.log");
        let mut out = BufWriter::new(File::create(&large).expect("the large file"));
        for _ in 0..count {
            out.write_all(line.as_bytes()).expect("room on the disk");
        }
        out.flush().expect("room on the disk");
        let long_line = folder.path().join("long-line.json");
        let mut out = BufWriter::new(File::create(&long_line).expect("the long line"));
        for _ in 0..count {
            out.write_all(line.trim_end().as_bytes()).expect("room on the disk");
        }
        out.flush().expect("room on the disk");
        let first = DEEP_LINE.min(count / 2);
        let window = (first, (first + WINDOW - 1) * line.len() as u64);
        Self { _folder: folder, small, large, long_line, large_bytes: count * line.len() as u64, window }
    }
}

fn small(criterion: &mut Criterion, files: &Files) {
    let mut group = criterion.benchmark_group("read-2000-lines");
    group.throughput(Throughput::Elements(SMALL_LINES as u64));
    group.bench_function("read_page", |bencher| bencher.iter(|| whole(&files.small)));
    group.bench_function("fs-read-and-number", |bencher| bencher.iter(|| read_and_number(&files.small)));
    group.finish();
}

fn deep(criterion: &mut Criterion, files: &Files) {
    let mut group = criterion.benchmark_group("read-deep-window");
    group
        .sample_size(10)
        .measurement_time(Duration::from_secs(3))
        .throughput(Throughput::Bytes(files.window.1));
    group.bench_function("read_page", |bencher| bencher.iter(|| window(files)));
    group.bench_function("memchr-scan", |bencher| bencher.iter(|| scan(&files.large, files.window.1)));
    group.finish();
}

fn whole(path: &Path) -> Page {
    read_page(path, &Wanted::default(), &Limits::default(), &|| false).expect("a page")
}

fn read_and_number(path: &Path) -> String {
    let bytes = std::fs::read(path).expect("the small file");
    let mut out = String::with_capacity(bytes.len() + 8 * SMALL_LINES);
    for (index, line) in String::from_utf8_lossy(&bytes).lines().enumerate() {
        writeln!(out, "{:>6}\t{line}", index + 1).expect("a string takes all");
    }
    out
}

fn window(files: &Files) -> Page {
    let wanted = Wanted { offset: Some(files.window.0), limit: Some(WINDOW) };
    read_page(&files.large, &wanted, &Limits::default(), &|| false).expect("a page")
}

fn scan(path: &Path, bytes: u64) -> usize {
    let mut source = File::open(path).expect("the large file").take(bytes);
    let mut buffer = vec![0; CHUNK];
    let mut found = 0;
    loop {
        let count = source.read(&mut buffer).expect("the large file");
        if count == 0 {
            return found;
        }
        found += memchr::memchr_iter(b'\n', &buffer[..count]).count();
    }
}

/// The two sides take turns, so that a busy machine slows both, and the best round of each is compared.
fn ratio<A, B>(
    rounds: usize,
    mut ours: impl FnMut() -> A,
    mut plain: impl FnMut() -> B,
) -> (Duration, Duration) {
    let (mut best_ours, mut best_plain) = (Duration::MAX, Duration::MAX);
    for _ in 0..rounds {
        best_ours = best_ours.min(timed(&mut ours));
        best_plain = best_plain.min(timed(&mut plain));
    }
    (best_ours, best_plain)
}

fn timed<T>(work: &mut impl FnMut() -> T) -> Duration {
    let start = Instant::now();
    black_box(work());
    start.elapsed()
}

fn print_ratios(files: &Files, growth: [u64; 2]) {
    let small = ratio(ROUNDS_SMALL, || whole(&files.small), || read_and_number(&files.small));
    let deep = ratio(ROUNDS_DEEP, || window(files), || scan(&files.large, files.window.1));
    let line = ratio(3, || whole(&files.long_line), || scan(&files.long_line, files.large_bytes));
    println!("\n{:<44} {:>11} {:>11} {:>7} {:>8}", "measure", "read_page", "plain", "ratio", "target");
    let rows = [
        ("2,000 lines vs fs::read + numbering", small, "<= 1.5"),
        ("deep window vs memchr scan", deep, "<= 1.2"),
        ("one long line vs memchr scan", line, "-"),
    ];
    for (name, (ours, plain), target) in rows {
        let ratio = ours.as_secs_f64() / plain.as_secs_f64();
        println!("{name:<44} {ours:>11.1?} {plain:>11.1?} {ratio:>7.2} {target:>8}");
    }
    for (name, kibibytes) in ["deep window", "one long line"].into_iter().zip(growth) {
        println!("{:<44} {kibibytes:>7} KiB {:>28}", format!("memory growth, {name}"), "<= 8192");
    }
}

/// How far the work raises the memory in use, at its peak and in KiB.
fn growth<T>(work: impl FnOnce() -> T) -> u64 {
    let before = status_kib("VmRSS:");
    black_box(work());
    status_kib("VmHWM:").saturating_sub(before)
}

/// A figure the system gives for this process, zero where it does not.
fn status_kib(key: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(key)).unwrap_or("0");
    line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or(0)
}
