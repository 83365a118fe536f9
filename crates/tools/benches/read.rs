//! Read against the plainest code that could do the same: a small file against `std::fs::read` and a
//! numbering loop, a window deep in a large file against a bare line feed scan of the same bytes. Ends with a
//! table of ratios.
//!
//! `READ_BENCH_MIB` sets the size of the large file, 1,024 MiB unless given.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::fmt::Write as _;
use std::fs::File;
use std::hint::black_box;
use std::io::{BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};

use gripper_runtime::{CallRequest, Located, Place, Registry, Toolbox, erase, permissions::Policy};
use gripper_testkit::{bench::Report, run_all};
use gripper_tools::read::{
    Read,
    page::{Limits, Page, Wanted, read_page},
};
use serde_json::json;
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
            std::env::var("READ_BENCH_MIB").ok().and_then(|text| text.parse().ok()).unwrap_or(1024);
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

fn at(path: &Path) -> Located {
    Place { cwd: "/".into() }.locate(path)
}

fn whole(path: &Path) -> Page {
    read_page(&at(path), &Wanted::default(), &Limits::default(), &|| false).expect("a page")
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
    read_page(&at(&files.large), &wanted, &Limits::default(), &|| false).expect("a page")
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

fn print_ratios(files: &Files, growth: [u64; 2]) {
    let mut report = Report::new("read");
    report.ratio(
        "2,000 lines",
        ROUNDS_SMALL,
        1.5,
        || whole(&files.small),
        "fs::read and numbering",
        || read_and_number(&files.small),
    );
    report.ratio(
        "2,000 lines deep in a large file",
        ROUNDS_DEEP,
        1.2,
        || window(files),
        "memchr scan",
        || scan(&files.large, files.window.1),
    );
    // The whole line must be decoded to say how many characters were left out; no target is set.
    report.ratio(
        "one enormous line",
        3,
        f64::INFINITY,
        || whole(&files.long_line),
        "memchr scan",
        || scan(&files.long_line, files.large_bytes),
    );
    turn_of_reads(&mut report);
    for (name, kibibytes) in ["deep window", "one enormous line"].into_iter().zip(growth) {
        report.absolute(&format!("memory growth, {name} (KiB)"), kibibytes as f64, 8192.0);
    }
    report.print();
}

/// A thousand small files in one turn, each of them a whole call, against reading them one after the other.
fn turn_of_reads(report: &mut Report) {
    let folder = TempDir::new().expect("a temporary folder");
    let paths: Vec<PathBuf> = (0..1_000).map(|number| folder.path().join(format!("{number}.rs"))).collect();
    for path in &paths {
        std::fs::write(path, "fn small() -> u32 {\n    42\n}\n".repeat(10)).expect("a small file");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let turn = || {
        let mut registry = Registry::default();
        registry.register(erase(Read::default())).expect("a free name");
        let toolbox = Toolbox::builder(registry, Policy::new(folder.path())).build();
        let calls = paths
            .iter()
            .enumerate()
            .map(|(number, path)| CallRequest::new(&number.to_string(), "Read", json!({"file_path": path})));
        let results = runtime.block_on(run_all(&toolbox, calls));
        assert!(results.len() == paths.len() && results.iter().all(|result| !result.is_error));
    };
    let plain = || paths.iter().map(|path| read_and_number(path).len()).sum::<usize>();
    // No target is set.
    report.ratio("1,000 small files in a turn", 9, f64::INFINITY, turn, "fs::read and numbering", plain);
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
