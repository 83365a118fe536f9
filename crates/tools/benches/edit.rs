//! An edit in the middle of a large file, without reading and writing it: how long finding, splicing and the
//! patch take, beside copying the bytes once.
#![allow(clippy::expect_used, reason = "a failed expectation is how benches fail")]

use gripper_testkit::bench::{Report, percentile, timed};
use gripper_tools::text::{Replacement, replace};

const SIZE: usize = 10 * 1024 * 1024;
const ROUNDS: usize = 9;

fn main() {
    let lines = |ending: &str| {
        let line = format!("the quick brown fox jumps over the dogs{ending}");
        let half = line.repeat(SIZE / line.len() / 2);
        format!("{half}here it is, once{ending}{half}")
    };
    let wide: Vec<u8> = lines("\n").encode_utf16().flat_map(u16::to_le_bytes).take(SIZE).collect();
    let wide = [b"\xFF\xFE", wide.as_slice(), b"o\0n\0c\0e\0"].concat();
    let western: Vec<u8> = lines("\n").bytes().map(|byte| if byte == b'x' { 0xE4 } else { byte }).collect();
    // Reading, writing and syncing this much takes some 20 ms, of which an edit may take three times.
    let files = [
        ("ASCII", lines("\n").into_bytes(), 20.0),
        ("CRLF", lines("\r\n").into_bytes(), 60.0),
        ("UTF-16", wide, 120.0),
        ("windows-1252", western, 120.0),
    ];
    let mut report = Report::new("edit");
    for (name, bytes, limit) in &files {
        let edit = [Replacement { old: "once", new: "twice\nand again", all: false }];
        report.absolute(
            &format!("{name}, found (ms)"),
            median(|| replace(bytes, &edit).expect("one place")),
            *limit,
        );
        let missing = [Replacement { old: "jumps over  the dogs\nhere", ..edit[0] }];
        report.absolute(
            &format!("{name}, not found (ms)"),
            median(|| replace(bytes, &missing).expect_err("no place")),
            1_000.0,
        );
    }
    report.absolute("copying 10 MiB (ms)", median(|| files[0].1.clone()), f64::INFINITY);
    report.print();
}

fn median<T>(mut work: impl FnMut() -> T) -> f64 {
    let mut times: Vec<_> = (0..ROUNDS).map(|_| timed(&mut work)).collect();
    percentile(&mut times, 50).as_secs_f64() * 1e3
}
