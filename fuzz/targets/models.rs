//! Any arguments for any known program: no panic.
//!
//! Two bytes choose the program, the rest is split into words at bytes that no text holds.
#![no_main]

use gripper_shell::{Surroundings, analyze, programs};
use libfuzzer_sys::fuzz_target;

/// Words that models ask about, so that the fuzzer need not find them letter by letter.
const WORDS: &[&str] = &[
    "--",
    "-",
    "-e",
    "-n",
    "-i",
    "-o",
    "-c",
    "-exec",
    "{}",
    ";",
    "+",
    "--output",
    "--output=x",
    "-C",
    "log",
    "a=b",
    "*",
];

fuzz_target!(|data: &[u8]| {
    let [high, low, rest @ ..] = data else { return };
    let names: Vec<&str> = programs().map(|(name, _)| name).collect();
    let chosen = usize::from(u16::from_be_bytes([*high, *low]));
    let Some(name) = names.get(chosen % names.len().max(1)) else { return };
    let mut line = (*name).to_owned();
    for word in rest.split(|byte| *byte == 0xff) {
        line.push(' ');
        match word {
            [at] if *at >= 0x80 => line.push_str(WORDS[usize::from(*at) % WORDS.len()]),
            // A glob or a variable now and then, so that words with holes come along too.
            [0xfe, word @ ..] => {
                line.push_str(&String::from_utf8_lossy(word).replace(['\n', ';', '&', '|'], "_"))
            }
            word => line.push_str(&quoted(&String::from_utf8_lossy(word))),
        }
    }
    analyze(&line, &Surroundings::new("/home/dev/project", "/home/dev"));
});

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}
