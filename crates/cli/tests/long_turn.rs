//! A turn of a thousand calls: order exact, memory flat.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{
    io::{BufRead, BufReader, Write},
    process::Stdio,
};

use gripper_testkit::{Binary, Workspace};
use serde_json::{Value, json};

/// Peak resident memory of a running process, in KiB.
fn peak_memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// Feeds the calls through a pipe, checks that results come in order, and gives the peak memory
/// after three hundred calls and at the end.
fn play(calls: usize) -> (u64, u64) {
    let workspace = Workspace::new();
    workspace.write("big.txt", "0123456789abcdef0123456789abcdef\n".repeat(2_000));
    let mut command =
        Binary::new(env!("CARGO_BIN_EXE_gripper"), &workspace).args(["run", "-"]).into_command();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let mut pipe = child.stdin.take().unwrap();
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let writer = std::thread::spawn(move || {
        for n in 0..calls {
            let input = json!({"file_path": "big.txt", "offset": 1 + n % 50, "limit": 1_900});
            writeln!(pipe, "{}", json!({"id": format!("c{n}"), "name": "Read", "input": input})).unwrap();
        }
        // The process must not end before its memory was read.
        wait.recv().ok();
    });
    let mut next = 0;
    let mut early = 0;
    let reader = BufReader::new(child.stdout.take().unwrap());
    for line in reader.lines() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if line["event"] != "result" {
            continue;
        }
        assert_eq!(line["call_id"], format!("c{next}"), "results are in call order");
        assert_eq!(line["structured"]["startLine"], 1 + next % 50);
        next += 1;
        if next == 300 {
            early = peak_memory(pid);
        }
        if next == calls {
            break;
        }
    }
    let late = peak_memory(pid);
    done.send(()).ok();
    writer.join().unwrap();
    child.wait().unwrap();
    (early, late)
}

#[test]
fn a_thousand_calls_in_order_and_in_flat_memory() {
    let (early, late) = play(1_000);
    // 700 further results of about 130 KB each, over 90 MB, pass through; a window of them stays.
    assert!(late < early + 24 * 1024, "memory grew from {early} to {late} KiB");
}

#[test]
fn an_interrupt_is_heard_in_the_middle_of_a_busy_turn() {
    let workspace = Workspace::new();
    workspace.write("a.txt", "one\n");
    let mut command =
        Binary::new(env!("CARGO_BIN_EXE_gripper"), &workspace).args(["run", "-"]).into_command();
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let pid = child.id();
    let mut pipe = child.stdin.take().unwrap();
    // Calls without end: only the interrupt can stop it.
    let writer = std::thread::spawn(move || {
        let mut n = 0;
        loop {
            let call = json!({"id": format!("c{n}"), "name": "Read", "input": {"file_path": "a.txt", "limit": 1 + n % 7}});
            if writeln!(pipe, "{call}").is_err() {
                return;
            }
            n += 1;
        }
    });
    let mut results = 0;
    let mut end = None;
    for line in BufReader::new(child.stdout.take().unwrap()).lines() {
        let line: Value = serde_json::from_str(&line.unwrap()).unwrap();
        if line["event"] == "result" {
            results += 1;
            if results == 50 {
                let killed =
                    std::process::Command::new("kill").args(["-INT", &pid.to_string()]).status().unwrap();
                assert!(killed.success());
            }
        } else if line["event"] == "turn_end" {
            end = Some(line);
        }
    }
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(end.unwrap()["calls"], results, "every call has its result");
    writer.join().unwrap();
}
