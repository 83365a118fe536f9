//! Any text as a script of sed, awk or jq: the checkers do not panic.
#![no_main]

use gripper_shell::{Surroundings, analyze};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let quoted = text.replace('\'', "'\\''");
    let place = Surroundings::new("/home/dev/project", "/home/dev");
    for program in ["sed", "sed -n", "sed -E", "awk", "jq"] {
        analyze(&format!("{program} '{quoted}' file"), &place);
    }
});
