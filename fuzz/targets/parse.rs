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
    // Backticks in `$((` look after printing as if they might end elsewhere; that is refused, and never read wrongly.
    if second.error.as_ref().is_some_and(|error| error.message.starts_with("quotes too deep")) {
        return;
    }
    assert!(
        second.error.is_none(),
        "{text:?} is printed as {printed:?}, which does not parse: {:?}",
        second.error
    );
    assert!(same(&first.list, &second.list), "{text:?} is printed as {printed:?}, which says something else");
});
