//! Any text: no panic, the same answer twice, and within a second.
#![no_main]

use gripper_shell::{Surroundings, analyze};
use libfuzzer_sys::fuzz_target;
use rustix::time::{ClockId, clock_gettime};

/// Seconds of processor time used by this thread: other work on the machine does not count.
fn used() -> f64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

fuzz_target!(|text: &str| {
    let place = Surroundings::new("/home/dev/project", "/home/dev");
    let before = used();
    let first = analyze(text, &place);
    let took = used() - before;
    assert!(took < 1.0, "{took} s for {} bytes", text.len());
    assert_eq!(first, analyze(text, &place));
});
