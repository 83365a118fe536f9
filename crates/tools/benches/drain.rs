//! A live child against the plainest way to have the same: a flood of output against `cat`, and the start
//! and end of a shell against `std::process`. Ends with a table of ratios.
#![allow(clippy::expect_used, reason = "a failed expectation is how tests fail")]

use std::process::Command;

use gripper_process::{
    Spec, Status,
    live::{Keep, Live},
    watchdog,
};
use gripper_testkit::bench::Report;

const FLOOD: &str = "yes | head -c 1G";

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
    let ours = |line: &str, keep: &Keep| {
        let (spec, keep) = (Spec::shell(line, "/", vec![path.clone()]), keep.clone());
        // On a worker, where calls run.
        let work = runtime.spawn(async move {
            let live = Live::start(spec, keep).expect("a child");
            assert_eq!(live.wait().await, Status::Exited(0));
            live.output().bytes()
        });
        runtime.block_on(work).expect("no panic")
    };
    let plain = |line: &str| {
        let status = Command::new("bash").args(["-c", line]).status().expect("a child");
        assert!(status.success());
    };
    let mut report = Report::new("drain");
    let memory = Keep::default();
    let file = Keep { file: Some(folder.path().join("out")), ..Keep::default() };
    report.ratio("bash -c true", 400, 1.5, || ours("true", &memory), "fork and exec", || plain("true"));
    // Half the speed is twice the time.
    for (name, keep) in [("1 GiB to memory", &memory), ("1 GiB to memory and file", &file)] {
        let flood = || assert_eq!(ours(FLOOD, keep), 1 << 30);
        report.ratio(name, 5, 2.0, flood, "cat > /dev/null", || plain(&format!("{FLOOD} | cat > /dev/null")));
    }
    report.print();
}
