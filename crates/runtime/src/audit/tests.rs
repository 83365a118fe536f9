use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use rstest::rstest;
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::writer::{CURRENT, HEAD, Writer};
use super::{AuditLog, Damage, Limits, Report, verify};

fn body(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn open(folder: &Path) -> AuditLog {
    AuditLog::open(folder, "s1", Limits::default()).unwrap()
}

/// Small files, so that a few records rotate.
fn small(kept_files: usize) -> Limits {
    Limits { file_bytes: 1_000, kept_files, ..Limits::default() }
}

fn record_numbers(log: &AuditLog, count: u64) {
    for number in 0..count {
        log.record("finished", body(json!({"number": number})));
    }
    log.flush();
    assert_eq!(log.trouble(), None);
}

/// A log of three records, closed.
fn three() -> TempDir {
    let dir = TempDir::new().unwrap();
    record_numbers(&open(dir.path()), 3);
    dir
}

fn lines(folder: &Path) -> Vec<String> {
    fs::read_to_string(folder.join(CURRENT)).unwrap().lines().map(str::to_owned).collect()
}

fn parsed(folder: &Path) -> Vec<Value> {
    lines(folder).iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn intact(folder: &Path) -> Report {
    verify(folder).unwrap_or_else(|damage| panic!("{damage}"))
}

#[test]
fn a_line_has_the_promised_fields_in_order() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    log.record("decision", body(json!({"tool": "Bash", "outcome": {"allow": true}})));
    log.flush();
    let line = parsed(dir.path()).remove(0);
    let keys: Vec<&String> = line.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["seq", "time", "session", "kind", "tool", "outcome", "prev", "hash"]);
    assert_eq!(
        (&line["seq"], &line["session"], &line["kind"]),
        (&json!(1), &json!("s1"), &json!("decision"))
    );
    assert_eq!(line["prev"], json!("0".repeat(64)));
    let time = line["time"].as_str().unwrap();
    assert!(time.ends_with('Z') && chrono::DateTime::parse_from_rfc3339(time).is_ok());
    assert_eq!(line["outcome"], json!({"allow": true}));
}

#[test]
fn the_hash_is_what_the_documentation_says() {
    let dir = three();
    let line = lines(dir.path()).remove(1);
    let fields: Value = serde_json::from_str(&line).unwrap();
    let (open, _) = line.split_once(",\"hash\":").unwrap();
    let hashed = format!("{}{open}}}", fields["prev"].as_str().unwrap());
    assert_eq!(fields["hash"], json!(super::line::sha256(hashed.as_bytes())));
}

#[test]
fn reopening_continues_the_chain() {
    let dir = three();
    record_numbers(&open(dir.path()), 2);
    let report = intact(dir.path());
    assert_eq!((report.files, report.lines, report.notes.len()), (1, 5, 0));
    assert!(report.first_time.is_some() && report.first_time <= report.last_time);
    assert_eq!(parsed(dir.path())[4]["seq"], json!(5));
}

#[test]
fn dropping_writes_what_is_queued() {
    let dir = TempDir::new().unwrap();
    let log = AuditLog::open(dir.path(), "s1", Limits { queue: 1, ..Limits::default() }).unwrap();
    for _ in 0..500 {
        log.record("finished", Map::new());
    }
    drop(log);
    assert_eq!(intact(dir.path()).lines, 500);
}

#[test]
fn an_empty_folder_is_an_empty_log() {
    let dir = TempDir::new().unwrap();
    assert_eq!(intact(dir.path()), Report::default());
    drop(open(dir.path()));
    assert_eq!(intact(dir.path()).lines, 0);
    assert!(verify(&dir.path().join("nowhere")).unwrap_err().what.contains("no such file"));
}

/// Every byte of both files, changed, removed, and with one added before it.
#[rstest]
#[case::log(CURRENT)]
#[case::head(HEAD)]
fn one_wrong_byte_is_found(#[case] name: &str) {
    let dir = three();
    let path = dir.path().join(name);
    let good = fs::read(&path).unwrap();
    let check = |bytes: &[u8], what: &str, at: usize| {
        fs::write(&path, bytes).unwrap();
        assert!(verify(dir.path()).is_err(), "{what} byte {at} was not found");
    };
    for at in 0..good.len() {
        for flip in [1, 32, 128] {
            let mut bad = good.clone();
            bad[at] ^= flip;
            check(&bad, "changed", at);
        }
        let mut bad = good.clone();
        bad.remove(at);
        check(&bad, "removed", at);
    }
    for at in 0..=good.len() {
        for added in [b' ', b'\n', b'0'] {
            let mut bad = good.clone();
            bad.insert(at, added);
            check(&bad, "added", at);
        }
    }
    fs::write(&path, &good).unwrap();
    intact(dir.path());
}

#[rstest]
#[case::first(&[1, 2], 1, "the lines up to number 1 are missing")]
#[case::middle(&[0, 2], 2, "the lines from number 2 to 2 are missing before this one")]
#[case::last(&[0, 1], 0, "the lines from number 3 to 3 are missing at the end")]
#[case::all(&[], 0, "the lines from number 1 to 3 are missing at the end")]
#[case::swapped(&[0, 2, 1], 2, "the lines from number 2 to 2 are missing before this one")]
#[case::twice(&[0, 1, 1, 2], 3, "line number 2 stands where number 3 belongs")]
fn missing_and_moved_lines_are_found(#[case] order: &[usize], #[case] line: u64, #[case] what: &str) {
    let dir = three();
    let lines = lines(dir.path());
    let changed: String = order.iter().map(|at| format!("{}\n", lines[*at])).collect();
    fs::write(dir.path().join(CURRENT), changed).unwrap();
    let Damage { line: found, what: said, .. } = verify(dir.path()).unwrap_err();
    assert!(found == line && said.starts_with(what), "line {found}: {said}");
    // A writer that goes on must not cover it up.
    record_numbers(&open(dir.path()), 1);
    assert!(verify(dir.path()).is_err());
}

#[test]
fn a_line_from_another_log_is_found() {
    let (dir, other) = (three(), three());
    let mut mixed = lines(dir.path());
    mixed[1] = lines(other.path()).remove(1);
    fs::write(dir.path().join(CURRENT), mixed.join("\n") + "\n").unwrap();
    assert!(verify(dir.path()).unwrap_err().what.contains("follows another line"));
}

#[test]
fn a_missing_head_is_found_and_made_again() {
    let dir = three();
    fs::remove_file(dir.path().join(HEAD)).unwrap();
    assert!(verify(dir.path()).unwrap_err().to_string().contains("audit.head: this file is missing"));
    record_numbers(&open(dir.path()), 1);
    assert_eq!(intact(dir.path()).lines, 4);
}

#[rstest]
#[case::begun(b"{\"seq\":4,\"ti".as_slice())]
#[case::zeros([0_u8; 300].as_slice())]
fn an_unfinished_line_is_set_aside(#[case] torn: &[u8]) {
    let dir = three();
    let mut file = OpenOptions::new().append(true).open(dir.path().join(CURRENT)).unwrap();
    file.write_all(torn).unwrap();
    let damage = verify(dir.path()).unwrap_err();
    assert!(damage.line == 4 && damage.what.contains("no end"), "{damage}");

    record_numbers(&open(dir.path()), 1);
    let report = intact(dir.path());
    assert_eq!((report.lines, report.notes.len()), (5, 1));
    let recovered = &parsed(dir.path())[3];
    assert_eq!((&recovered["kind"], &recovered["bytes"]), (&json!("recovered"), &json!(torn.len())));
    assert_eq!((&recovered["lines_lost"], &recovered["seq"]), (&json!(0), &json!(4)));
    assert_eq!(recovered["sha256"], json!(super::line::sha256(torn)));
    assert_eq!(fs::read(dir.path().join(recovered["file"].as_str().unwrap())).unwrap(), torn);
}

#[test]
fn a_cut_off_line_is_set_aside_with_what_was_lost() {
    let dir = three();
    let file = OpenOptions::new().write(true).open(dir.path().join(CURRENT)).unwrap();
    file.set_len(file.metadata().unwrap().len() - 5).unwrap();
    assert!(verify(dir.path()).is_err());
    record_numbers(&open(dir.path()), 1);
    assert!(intact(dir.path()).notes[0].contains("1 finished lines were lost"));
    assert_eq!(parsed(dir.path())[2]["lines_lost"], json!(1));
}

#[test]
fn a_crash_before_the_head_was_written_does_no_harm() {
    let dir = three();
    let old_head = fs::read(dir.path().join(HEAD)).unwrap();
    record_numbers(&open(dir.path()), 2);
    fs::write(dir.path().join(HEAD), old_head).unwrap();
    assert_eq!(intact(dir.path()).lines, 5);
    record_numbers(&open(dir.path()), 1);
    assert_eq!(intact(dir.path()).lines, 6);
}

#[test]
fn a_crash_in_a_rotation_does_no_harm() {
    let dir = three();
    fs::rename(dir.path().join(CURRENT), dir.path().join("audit-000001.jsonl")).unwrap();
    assert_eq!(intact(dir.path()).lines, 3);
    File::create(dir.path().join(CURRENT)).unwrap();
    assert_eq!(intact(dir.path()).lines, 3);
    record_numbers(&open(dir.path()), 1);
    let report = intact(dir.path());
    assert_eq!((report.files, report.lines), (2, 4));

    // Even without a head the chain goes on from the finished file.
    fs::rename(dir.path().join(CURRENT), dir.path().join("audit-000002.jsonl")).unwrap();
    fs::remove_file(dir.path().join(HEAD)).unwrap();
    record_numbers(&open(dir.path()), 1);
    assert_eq!(intact(dir.path()).lines, 5);
}

#[test]
fn rotation_keeps_one_chain() {
    let dir = TempDir::new().unwrap();
    record_numbers(&AuditLog::open(dir.path(), "s1", small(1_000)).unwrap(), 40);
    let report = intact(dir.path());
    assert!(report.files > 5, "{report:?}");
    assert_eq!((report.lines, report.notes.len()), (40, 0));
    for entry in fs::read_dir(dir.path()).unwrap() {
        assert!(entry.unwrap().metadata().unwrap().len() <= 1_000);
    }
    // Each file is a chain of its own, and a missing one is noticed.
    let second = dir.path().join("audit-000002.jsonl");
    assert!(verify(&second).unwrap().lines > 0);
    fs::remove_file(second).unwrap();
    let damage = verify(dir.path()).unwrap_err();
    assert!(
        damage.file.ends_with("audit-000003.jsonl") && damage.what.contains("are missing before"),
        "{damage}"
    );
}

#[rstest]
#[case::none(0)]
#[case::one(1)]
#[case::three(3)]
fn removing_the_oldest_is_no_damage(#[case] kept: usize) {
    let dir = TempDir::new().unwrap();
    let log = AuditLog::open(dir.path(), "s1", small(kept)).unwrap();
    for _ in 0..40 {
        record_numbers(&log, 1);
        intact(dir.path());
    }
    let report = intact(dir.path());
    assert_eq!(report.files, kept + 1);
    assert!(report.notes.iter().any(|note| note.contains("was removed to keep the log small")), "{report:?}");
    // What the log did not remove itself is missed.
    fs::remove_file(
        super::writer::finished_files(dir.path())
            .unwrap()
            .first()
            .map_or_else(|| dir.path().join(CURRENT), |(_, path)| path.clone()),
    )
    .unwrap();
    assert!(verify(dir.path()).is_err());
}

#[test]
fn a_lower_limit_removes_several_files() {
    let dir = TempDir::new().unwrap();
    record_numbers(&AuditLog::open(dir.path(), "s1", small(100)).unwrap(), 40);
    record_numbers(&AuditLog::open(dir.path(), "s1", small(2)).unwrap(), 8);
    assert_eq!(intact(dir.path()).files, 3);
}

#[test]
fn two_writers_keep_one_chain() {
    let dir = TempDir::new().unwrap();
    std::thread::scope(|scope| {
        for session in ["a", "b"] {
            let folder = dir.path();
            scope.spawn(move || {
                let limits = Limits { lock_wait: Duration::from_secs(600), ..small(10_000) };
                let log = AuditLog::open(folder, session, limits).unwrap();
                for number in 0..200 {
                    log.record("finished", body(json!({"number": number})));
                    if number % 7 == 0 {
                        log.flush();
                    }
                }
            });
        }
    });
    let report = intact(dir.path());
    assert_eq!((report.lines, report.notes.len()), (400, 0));
}

#[test]
fn secrets_are_redacted_and_frame_fields_kept() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    let input = json!({"command": "TOKEN=abcd1 curl https://example.com", "password": "hunter2"});
    log.record("recovered", body(json!({"seq": 99, "hash": "x", "input": input})));
    log.flush();
    let line = parsed(dir.path()).remove(0);
    assert_eq!(line["input"]["command"], json!("TOKEN=[redacted: token] curl https://example.com"));
    assert_eq!(line["input"]["password"], json!("[redacted: password]"));
    assert_eq!((&line["seq"], &line["body_seq"], &line["body_hash"]), (&json!(1), &json!(99), &json!("x")));
    // A caller cannot speak for the log.
    assert_eq!(line["kind"], json!("caller_recovered"));
    assert_eq!(intact(dir.path()).notes.len(), 0);
}

#[test]
fn long_records_are_bounded_and_say_so() {
    let dir = TempDir::new().unwrap();
    let log = open(dir.path());
    log.record("finished", body(json!({"text": "é".repeat(10_000), "list": vec!["word"; 20_000]})));
    let many: Map<String, Value> =
        (0..40).map(|n| (format!("f{n}"), json!("\u{1}".repeat(15_000)))).collect();
    log.record(&"k".repeat(1_000), many);
    log.flush();
    let lines = parsed(dir.path());
    assert!(lines[0]["text"].as_str().unwrap().ends_with("é [3616 bytes left out]"));
    assert!(lines[0]["list"].as_str().unwrap().starts_with("[\"word\","));
    assert!(lines[0]["list"].as_str().unwrap().ends_with("bytes left out]"));
    let left_out = lines[1]["fields_left_out"].as_u64().unwrap();
    assert_eq!(left_out as usize + lines[1].as_object().unwrap().len() - 7, 40);
    assert!(self::lines(dir.path()).iter().all(|line| line.len() < super::line::LINE_BYTES));
    intact(dir.path());
}

#[cfg(unix)]
#[test]
fn the_log_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new().unwrap();
    let folder = dir.path().join("config/audit");
    record_numbers(&AuditLog::open(&folder, "s1", small(9)).unwrap(), 10);
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&folder), mode(folder.parent().unwrap())), (0o700, 0o700));
    for entry in fs::read_dir(&folder).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("file"), "").unwrap();
    let error = AuditLog::open(&dir.path().join("file/audit"), "s1", Limits::default()).unwrap_err();
    assert!(error.to_string().starts_with("cannot write the audit log at "), "{error}");
}

#[test]
fn a_stuck_process_is_waited_for_once() {
    let dir = TempDir::new().unwrap();
    let mut writer =
        Writer::new(dir.path(), Limits { lock_wait: Duration::from_millis(10), ..Limits::default() })
            .unwrap();
    let held = File::open(dir.path().join(HEAD)).unwrap();
    held.lock().unwrap();
    let mut waited = || match writer.append("s1", &["{}".to_owned()]).unwrap_err() {
        super::AuditError::Locked { waited, .. } => waited,
        other => panic!("{other}"),
    };
    assert_eq!([waited(), waited()], [Duration::from_millis(10), Duration::ZERO]);
}

#[test]
fn a_lock_that_is_held_costs_records_but_no_calls() {
    let dir = TempDir::new().unwrap();
    let log =
        AuditLog::open(dir.path(), "s1", Limits { lock_wait: Duration::ZERO, ..Limits::default() }).unwrap();
    let held = File::open(dir.path().join(HEAD)).unwrap();
    held.lock().unwrap();
    log.record("finished", Map::new());
    log.flush();
    assert!(log.trouble().unwrap().contains("locked by another process"));
    held.unlock().unwrap();
    log.record("finished", Map::new());
    log.flush();
    let report = intact(dir.path());
    assert_eq!(report.lines, 2);
    assert!(report.notes[0].ends_with("1 records could not be written"), "{report:?}");
}

#[test]
fn a_removed_folder_is_made_again() {
    let dir = TempDir::new().unwrap();
    let folder = dir.path().join("audit");
    let log = open(&folder);
    record_numbers(&log, 1);
    fs::remove_dir_all(&folder).unwrap();
    record_numbers(&log, 2);
    assert_eq!(intact(&folder).lines, 2);
}

const CHILD_FOLDER: &str = "AUDIT_TEST_FOLDER";

/// Does its work in a process that may not write files over a few KiB, where a write stops half way as on a
/// full disk. Started there by `a_full_disk_cuts_back_to_whole_lines`, which checks that it passed.
#[test]
fn child_with_a_small_file_limit() {
    let Some(folder) = std::env::var_os(CHILD_FOLDER) else { return };
    let log = open(Path::new(&folder));
    for _ in 0..30 {
        log.record("finished", body(json!({"text": "x".repeat(700)})));
        log.flush();
    }
    assert!(log.trouble().unwrap().contains("cannot write the audit log"));
}

#[cfg(unix)]
#[test]
fn a_full_disk_cuts_back_to_whole_lines() {
    let dir = TempDir::new().unwrap();
    let name = format!("{}::child_with_a_small_file_limit", module_path!().split_once("::").unwrap().1);
    let child = Command::new("sh")
        .args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", &name])
        .env(CHILD_FOLDER, dir.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && said.contains("1 passed"), "{said}");
    let before = intact(dir.path()).lines;
    assert!((1..30).contains(&before), "{before}");
    record_numbers(&open(dir.path()), 1);
    let report = intact(dir.path());
    assert_eq!((report.lines, report.notes.len()), (before + 1, 0));
}
