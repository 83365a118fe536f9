//! Any text: the parser does not panic, and what it prints is parsed to the same tree again.
#![no_main]

use gripper_shell::syntax::{parse, print, same};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let first = parse(text);
    if first.error.is_some() {
        return;
    }
    let printed = print(&first.list);
    let second = parse(&printed);
    assert!(
        second.error.is_none(),
        "{text:?} is printed as {printed:?}, which does not parse: {:?}",
        second.error
    );
    assert!(same(&first.list, &second.list), "{text:?} is printed as {printed:?}, which says something else");
});
