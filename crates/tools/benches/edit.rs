//! An edit in the middle of a large file, as a whole call with ledger, history and audit, beside reading the
//! file, writing the same bytes and syncing them. Ends with a table of ratios.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how benches fail"
)]

use std::{
    fs::{self, File},
    io::Write as _,
    path::Path,
    sync::Arc,
};

use gripper_runtime::{
    CallRequest, CallResult, Registry, Toolbox, erase,
    files::{Files, history::History},
    permissions::{Mode, Policy},
};
use gripper_testkit::{bench::Report, run_all};
use gripper_tools::{edit::Edit, read::Read};
use serde_json::{Value, json};

const SIZE: usize = 10 * 1024 * 1024;
const ROUNDS: usize = 15;

fn main() {
    let lines = |ending: &str| {
        let line = format!("the quick brown fox jumps over the dogs{ending}");
        let half = line.repeat(SIZE / line.len() / 2);
        format!("{half}here it is, once{ending}{half}")
    };
    let wide: Vec<u8> = lines("\n").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let western: Vec<u8> = lines("\n").bytes().map(|byte| if byte == b'x' { 0xE4 } else { byte }).collect();
    let files = [
        ("ASCII", lines("\n").into_bytes()),
        ("CRLF", lines("\r\n").into_bytes()),
        ("UTF-16", [b"\xFF\xFE", wide.as_slice()].concat()),
        ("windows-1252", western),
    ];
    let mut report = Report::new("edit");
    for (name, bytes) in &files {
        let folder = tempfile::tempdir().expect("a temporary folder");
        measure(&mut report, folder.path(), name, bytes);
    }
    report.print();
}

fn measure(report: &mut Report, folder: &Path, name: &str, bytes: &[u8]) {
    let project = folder.join("project");
    fs::create_dir(&project).expect("a project");
    let (file, plain) = (project.join("large.txt"), folder.join("plain.txt"));
    fs::write(&file, bytes).expect("the large file");
    fs::write(&plain, bytes).expect("the same again");
    let toolbox = toolbox(folder, &project);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let call = |tool: &str, input: Value| {
        runtime.block_on(run_all(&toolbox, [CallRequest::new("c1", tool, input)])).remove(0)
    };
    let middle = SIZE / 40 / 2 - 5;
    done(&call("Read", json!({"file_path": file, "offset": middle, "limit": 20})));
    let mut words = ("once", "twice");
    let edit = || {
        let input = json!({"file_path": file, "old_string": words.0, "new_string": words.1});
        words = (words.1, words.0);
        done(&call("Edit", input));
    };
    let limit = if matches!(name, "ASCII" | "CRLF") { 3.0 } else { f64::INFINITY };
    report
        .ratio(&format!("{name}, 10 MiB"), ROUNDS, limit, edit, "read, write and fsync", || rewrite(&plain));
}

fn toolbox(folder: &Path, project: &Path) -> Arc<Toolbox> {
    let mut registry = Registry::default();
    registry.register(erase(Read::default())).unwrap();
    registry.register(erase(Edit)).unwrap();
    let mut policy = Policy::new(project);
    policy.mode = Mode::AcceptEdits;
    let history = History::new(folder.join("history"), "bench", project);
    Toolbox::builder(registry, policy).files(Files::with_history(history, None)).build()
}

fn done(result: &CallResult) {
    assert!(!result.is_error, "{:?}", result.content);
}

fn rewrite(path: &Path) {
    let bytes = fs::read(path).expect("the file");
    let mut file = File::create(path).expect("the file again");
    file.write_all(&bytes).expect("room");
    file.sync_all().expect("a disk");
}
