//! Any bytes and any edit in them: no panic, and nothing outside the text that was replaced changes.
#![no_main]

use gripper_tools::text::{Replacement, View, replace, rewrite, unified};
use libfuzzer_sys::fuzz_target;

// Two bytes choose the place, the first line is the new text, the rest is the file.
fuzz_target!(|input: &[u8]| {
    let Some(([from, length], input)) = input.split_first_chunk() else { return };
    let cut = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (new, file) = (String::from_utf8_lossy(&input[..cut]), &input[cut..]);
    let Ok(view) = View::of(file) else { return };
    let text = view.text();
    let from = text.floor_char_boundary(usize::from(*from).min(text.len()));
    let range = from..text.ceil_char_boundary((from + usize::from(*length)).min(text.len()));
    let old = &text[range.clone()];
    let place = view.bytes_at(range.clone());
    let check = |out: &[u8]| {
        assert!(out.starts_with(&file[..place.start]), "the bytes before the edit changed");
        assert!(out.ends_with(&file[place.end..]), "the bytes behind the edit changed");
    };
    // What is new may bring line breaks of its own.
    let new = new.replace('\x0B', "\n");
    if let Ok(out) = view.splice(&[(range, &new)]) {
        check(&out);
    }
    if let Ok(replaced) = replace(file, &[Replacement { old, new: &new, all: false }]) {
        check(&replaced.bytes);
    }
    // Texts that are there in another form, or not at all.
    let other = old.replace('\u{2019}', "'").replace('\u{E9}', "e\u{301}");
    let edits = [Replacement { old: &other, new: &new, all: true }, Replacement { old: &new, new: old, all: true }];
    if let Ok(replaced) = replace(file, &edits) {
        assert!(replaced.count > 0);
    }
    if let Ok(out) = rewrite(file, &format!("{new}{text}")) {
        unified(&String::from_utf8_lossy(&out), text, 20);
    }
});
