//! Any patch and any file: no panic, and the file has as many lines more as the hunks say.
#![no_main]

use gripper_tools::apply_patch::envelope::{HunkLine, Operation, parse};
use gripper_tools::apply_patch::place::apply;
use libfuzzer_sys::fuzz_target;

// The patch ends with its own mark; the rest is the file.
fuzz_target!(|text: &str| {
    const END: &str = "\n*** End Patch\n";
    let cut = text.find(END).map_or(text.len(), |at| at + END.len());
    let (patch, file) = text.split_at(cut);
    let Ok(operations) = parse(patch) else { return };
    for operation in operations {
        let Operation::Update { hunks, .. } = operation else { continue };
        let Ok(applied) = apply(file.as_bytes(), &hunks) else { continue };
        let count = |text: &str| text.lines().count() as i64;
        let change: i64 = hunks
            .iter()
            .flat_map(|hunk| &hunk.lines)
            .map(|line| match line {
                HunkLine::Keep(_) => 0,
                HunkLine::Remove(_) => -1,
                HunkLine::Add(_) => 1,
            })
            .sum();
        // Lone carriage returns end lines in the view, but not for this count; empty lines vanish at an open end.
        if file.ends_with('\n') && !text.contains('\r') {
            let after = String::from_utf8(applied.bytes).expect("it was text");
            assert_eq!(count(&after), count(file) + change);
        }
    }
});
