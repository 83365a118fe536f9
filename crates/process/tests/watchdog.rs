//! A process that has children is killed, and nothing of it is left.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a failed expectation is how tests fail")]

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use gripper_process::{
    Spec,
    live::{Keep, Live},
    watchdog,
};
use tempfile::TempDir;

/// Each leaves a process in its own way, which writes its id into the file that is put in for `@`.
const SCRIPTS: [&str; 5] = [
    "echo $$ > @; exec sleep 1000",
    "trap '' TERM HUP; sh -c 'echo $$ > @; exec sleep 1000'; true",
    "sh -c 'setsid sh -c \"echo \\$\\$ > @; exec sleep 1000\" &'; sleep 1000",
    "env -i PATH=$PATH sh -c 'echo $$ > @; exec setsid sleep 1000'; true",
    "(env -i PATH=$PATH sh -c 'echo $$ > @; exec sleep 1000' &); sleep 1000",
];

/// This test program again, as one of the tests below; run with the others they do nothing.
fn again(test: &str) -> [&str; 3] {
    ["--exact", test, "--nocapture"]
}

#[test]
fn as_watchdog() {
    // Without an id behind its name it is one test among others, and ends here.
    watchdog::serve(&std::env::args().next_back().unwrap()).ok();
}

#[tokio::test]
async fn as_victim() {
    let Some(folder) = std::env::var_os("VICTIM_FOLDER") else { return };
    watchdog::arm(std::env::current_exe().unwrap(), again("as_watchdog").map(Into::into).to_vec());
    let path = ("PATH".into(), std::env::var_os("PATH").unwrap());
    let start = |(number, script): (usize, &str)| {
        let script = script.replace('@', &format!("{number}.pid"));
        Live::start(Spec::shell(script, &folder, vec![path.clone()]), Keep::default()).unwrap()
    };
    let mut scripts = SCRIPTS.into_iter().enumerate();
    let mut lives: Vec<_> = scripts.next().map(start).into_iter().collect();
    // The next child brings another.
    let first = soon("a watchdog runs", watchdog_pid);
    Command::new("kill").args(["-KILL", &first.to_string()]).status().unwrap();
    soon("it is gone", || gone(first).then_some(()));
    lives.extend(scripts.map(start));
    for live in lives {
        live.wait().await;
    }
}

/// Watches for a while until it is so.
fn soon<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(begin.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn gone(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with('Z'))
}

/// The watchdog of this very test program.
fn watchdog_pid() -> Option<i32> {
    let us = std::env::current_exe().unwrap();
    fs::read_dir("/proc").unwrap().flatten().find_map(|entry| {
        let line = fs::read_to_string(entry.path().join("cmdline")).ok()?;
        (Path::new(line.split('\0').next()?) == us && line.contains("as_watchdog"))
            .then(|| entry.file_name().to_str()?.parse().ok())?
    })
}

#[test]
fn nothing_survives_a_kill() {
    let folder = TempDir::new().unwrap();
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(again("as_victim")).env("VICTIM_FOLDER", folder.path()).stdout(Stdio::null());
    let mut victim = command.spawn().unwrap();
    let left: Vec<i32> = (0..SCRIPTS.len())
        .map(|number| {
            let file = folder.path().join(format!("{number}.pid"));
            soon("a script runs", || fs::read_to_string(&file).ok()?.strip_suffix('\n')?.parse().ok())
        })
        .collect();
    let watchdog = soon("a watchdog runs", watchdog_pid);
    assert_eq!(fs::read_dir(format!("/proc/{watchdog}/fd")).unwrap().count(), 3, "open files");
    for signal in ["-INT", "-TERM", "-HUP"] {
        Command::new("kill").args([signal, &watchdog.to_string()]).status().unwrap();
    }
    assert!(left.iter().all(|pid| !gone(*pid)), "they run until their owner dies");
    victim.kill().unwrap();
    victim.wait().unwrap();
    let killed = Instant::now();
    for (pid, script) in left.into_iter().zip(SCRIPTS) {
        soon(script, || gone(pid).then_some(()));
    }
    soon("the watchdog ends too", || gone(watchdog).then_some(()));
    assert!(killed.elapsed() < Duration::from_secs(10), "{:?}", killed.elapsed());
}
