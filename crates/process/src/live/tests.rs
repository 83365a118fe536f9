//! Live children: looked at, ended, dropped, and those that misbehave.

use std::{fs, sync::Arc, time::Duration};

use tempfile::TempDir;

use crate::{
    Status,
    live::{Keep, Live},
    tests::{gone, pid_in, spec},
};

fn live(line: &str) -> Arc<Live> {
    Live::start(spec(line), Keep::default()).unwrap()
}

/// Waits until so many bytes came.
async fn printed(live: &Live, bytes: u64) {
    while live.output().bytes() < bytes {
        assert_eq!(live.status(), None);
        live.output().changed(live.output().bytes()).await;
    }
}

#[tokio::test]
async fn it_is_looked_at_while_it_runs() {
    let live = live("echo one; echo two >&2; cat; exec sleep 600");
    printed(&live, 8).await;
    assert_eq!(live.status(), None);
    assert!(!gone(live.pid().cast_signed()));
    assert_eq!(
        (live.output().stdout().head, live.output().stderr().head),
        (b"one\n".into(), b"two\n".into())
    );
    assert_eq!((live.output().snapshot().lines, live.output().snapshot().bytes), (2, 8));
    let other = live.clone();
    let waiting = tokio::spawn(async move { other.wait().await });
    tokio::time::timeout(Duration::from_millis(1), live.wait()).await.unwrap_err();
    live.end(Duration::from_secs(60)).await;
    assert_eq!((waiting.await.unwrap(), live.status()), (Status::Cancelled, Some(Status::Cancelled)));
    assert!(gone(live.pid().cast_signed()));
    let took = live.elapsed();
    live.output().changed(8).await;
    assert_eq!(took, live.elapsed(), "time stands still when it has ended");
}

#[tokio::test]
async fn bytes_are_kept_as_they_came() {
    let live = live(r"printf '\0\377\200a\n'");
    assert_eq!(live.wait().await, Status::Exited(0));
    assert_eq!(live.output().snapshot().head, b"\0\xff\x80a\n");
}

#[tokio::test]
async fn one_that_closes_its_output_goes_on() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("pid");
    let live = live(&format!("exec >&- 2>&-; sleep 0.2; echo $$ > {}; exit 7", file.display()));
    assert_eq!(live.wait().await, Status::Exited(7));
    assert_eq!(pid_in(&file).await, live.pid().cast_signed());
}

#[tokio::test]
async fn one_that_ignores_the_request_is_made_to_end() {
    let live = live("trap '' TERM; echo x; while :; do sleep 0.01; done");
    printed(&live, 2).await;
    // The first would wait for ever; the second has less patience.
    tokio::time::timeout(Duration::from_millis(20), live.end(Duration::from_secs(600))).await.unwrap_err();
    live.end(Duration::from_millis(10)).await;
    assert_eq!(live.status(), Some(Status::Cancelled));
}

#[tokio::test]
async fn a_daemon_does_not_outlive_its_starter() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("pid");
    let name = file.display();
    let live = live(&format!(
        "setsid -f sh -c 'echo $$ > {name}; exec sleep 600'; while ! [ -s {name} ]; do sleep 0.01; done"
    ));
    assert_eq!(live.wait().await, Status::Exited(0));
    assert!(gone(pid_in(&file).await));
}

#[tokio::test]
async fn the_last_one_who_drops_it_ends_it() {
    let live = live("setsid sh -c 'echo $$; exec sleep 600' & wait");
    printed(&live, 2).await;
    let pid: i32 = String::from_utf8(live.output().last_lines(1)).unwrap().trim().parse().unwrap();
    let other = live.clone();
    drop(live);
    assert!(!gone(pid));
    drop(other);
    assert!(gone(pid));
}

#[test]
fn the_end_of_the_runtime_is_the_end_of_the_child() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let live = runtime.block_on(async { live("exec sleep 600") });
    drop(runtime);
    assert!(gone(live.pid().cast_signed()));
    assert_eq!(live.status(), Some(Status::Cancelled));
}

#[tokio::test]
async fn many_at_once() {
    let lives: Vec<_> = (0..20).map(|number| live(&format!("seq {number} 1999; exit {number}"))).collect();
    for (number, live) in lives.iter().enumerate() {
        assert_eq!(live.wait().await, Status::Exited(number as i32));
        assert_eq!(live.output().snapshot().lines, 2000 - number as u64);
    }
}

/// The peak of this process's memory, in KiB.
fn peak() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn a_flood_leaves_memory_and_disk_flat() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("out");
    let keep = Keep { file: Some(file.clone()), quota: 1 << 20, ..Keep::default() };
    let before = peak();
    let live = Live::start(spec("yes"), keep).unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    printed(&live, 64 << 20).await;
    live.end(Duration::from_secs(60)).await;
    assert!(peak() - before < 32 << 10, "{} KiB more", peak() - before);
    let shown = live.output().snapshot();
    assert_eq!((shown.head.len(), shown.tail.len()), (64 << 10, 64 << 10));
    assert_eq!(shown.omitted + (128 << 10), shown.bytes);
    let disk: u64 =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert!((1 << 19..=1 << 20).contains(&disk), "{disk}");
    assert_eq!(shown.before_file, Some(shown.bytes - disk));
}
