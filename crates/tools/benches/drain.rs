//! A live child against the plainest way to have the same: a flood of output against `cat`, the start and end
//! of a shell, bare and in a cage, against `std::process`, and what a hundred idle ones cost. Ends with a table
//! of ratios.
#![allow(clippy::expect_used, reason = "a failed expectation is how tests fail")]

use std::{process::Command, time::Duration};

use gripper_process::{
    Spec, Status,
    confine::{self, Backend, Profile},
    live::{Keep, Live},
    watchdog,
};
use gripper_testkit::bench::Report;
use rustix::time::{ClockId, clock_gettime};

const FLOOD: &str = "yes | head -c 1G";
const IDLE: usize = 100;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let [_, watch, owner] = &arguments[..]
        && watch == "watchdog"
    {
        return watchdog::serve(owner).expect("an owner");
    }
    watchdog::arm(std::env::current_exe().expect("this program"), vec!["watchdog".into()]);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let folder = tempfile::TempDir::new().expect("a temporary folder");
    let path = ("PATH".into(), std::env::var_os("PATH").expect("a search path"));
    let caged = |line: &str, keep: &Keep, cage: Option<Profile>| {
        let (spec, keep) = (Spec { cage, ..Spec::shell(line, "/", vec![path.clone()]) }, keep.clone());
        // On a worker, where calls run.
        let work = runtime.spawn(async move {
            let live = Live::start(spec, keep).expect("a child");
            assert_eq!(live.wait().await, Status::Exited(0));
            live.output().bytes()
        });
        runtime.block_on(work).expect("no panic")
    };
    let ours = |line: &str, keep: &Keep| caged(line, keep, None);
    let plain = |line: &str| {
        let status = Command::new("bash").args(["-c", line]).status().expect("a child");
        assert!(status.success());
    };
    let mut report = Report::new("drain");
    let memory = Keep::default();
    let file = Keep { file: Some(folder.path().join("out")), ..Keep::default() };
    report.ratio("bash -c true", 400, 1.5, || ours("true", &memory), "fork and exec", || plain("true"));
    for backend in [Backend::Landlock, Backend::Bubblewrap] {
        if confine::probe().works(backend).is_err() {
            continue;
        }
        let profile = || Some(Profile { backend: Some(backend), ..Profile::read_only(Vec::new()) });
        let name = format!("bash -c true, read-only in {backend}");
        report.ratio(
            &name,
            100,
            3.0,
            || caged("true", &memory, profile()),
            "fork and exec",
            || plain("true"),
        );
    }
    let idle: Vec<_> = (0..IDLE).map(|_| Spec::shell("exec sleep 1000", "/", vec![path.clone()])).collect();
    let used = runtime.block_on(async {
        let all: Vec<_> =
            idle.into_iter().map(|spec| Live::start(spec, Keep::default()).expect("a child")).collect();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let before = clock_gettime(ClockId::ProcessCPUTime);
        tokio::time::sleep(Duration::from_secs(3)).await;
        let after = clock_gettime(ClockId::ProcessCPUTime);
        Live::end_together(&all);
        (after.tv_sec - before.tv_sec) as f64 * 1e3 + (after.tv_nsec - before.tv_nsec) as f64 / 1e6
    });
    report.absolute("100 idle children, ms of processor time in a second", used / 3.0, 1.0);
    // Half the speed is twice the time.
    for (name, keep) in [("1 GiB to memory", &memory), ("1 GiB to memory and file", &file)] {
        let flood = || assert_eq!(ours(FLOOD, keep), 1 << 30);
        report.ratio(name, 5, 2.0, flood, "cat > /dev/null", || plain(&format!("{FLOOD} | cat > /dev/null")));
    }
    report.print();
}
