//! Random scripts: most follow the grammar, some are then damaged, some are tokens or characters thrown together.
//!
//! Nothing here may be able to harm: there is no name of a real program or of a folder of the machine, no `..`
//! and no builtin that sends signals or changes limits.

use crate::grammar::Writer;
use crate::random::Random;
use crate::tables::table;

/// The names that lead to stubs.
pub(crate) const PROGRAMS: [&str; 12] =
    ["a", "b", "c", "zz", "xx", "ls", "cat", "rm", "git", "grep", "find", "sed"];

const CHARACTERS: &str = "aabbxxzrmEf  \n\n\t;;&&||<>>()(){}[]$$\"\"''``\\\\\\#!*?~=-+@%^,:./012\r";

/// Script number `index` under `seed`.
pub(crate) fn script(seed: u64, index: u64) -> String {
    let mut random = Random::new(seed, index);
    for _ in 0..20 {
        let text = match random.below(100) {
            0..=64 => Writer::new(random.clone()).script(),
            65..=79 => damaged(&mut random),
            80..=92 => tokens(&mut random),
            _ => characters(&mut random),
        };
        if harmless(&text) {
            return text;
        }
        random.next();
    }
    "a".to_owned()
}

/// Whether `text` may be run: no way up out of the folder, no descriptor of the oracle, no signals, nothing huge.
pub(crate) fn harmless(text: &str) -> bool {
    let dots_are_ranges = text.match_indices("..").all(|(at, dots)| {
        let before = text.get(..at).and_then(|part| part.chars().next_back());
        let after = text.get(at + dots.len()..).and_then(|part| part.chars().next());
        before.is_some_and(char::is_alphanumeric) && after.is_some_and(char::is_alphanumeric)
    });
    dots_are_ranges && text.len() < 4_000 && !text.contains(['\0', '7', '8', '9']) && !text.contains("kill")
}

/// A script that follows the grammar, with a few characters removed, doubled, moved or added.
fn damaged(random: &mut Random) -> String {
    let mut letters: Vec<char> = Writer::new(random.clone()).script().chars().collect();
    random.next();
    let extra: Vec<char> = CHARACTERS.chars().collect();
    for _ in 0..=random.below(3) {
        let at = random.below(letters.len());
        match random.below(5) {
            0 if !letters.is_empty() => {
                letters.remove(at);
            }
            1 if !letters.is_empty() => {
                let end = (at + 1 + random.below(8)).min(letters.len());
                letters.drain(at..end);
            }
            2 if !letters.is_empty() => {
                let end = (at + 1 + random.below(6)).min(letters.len());
                let copy: Vec<char> = letters.get(at..end).unwrap_or_default().to_vec();
                letters.splice(at..at, copy);
            }
            3 => {
                let token: Vec<char> = random.pick(table("tokens")).chars().collect();
                letters.splice(at..at, token);
            }
            _ => letters.insert(at, extra.get(random.below(extra.len())).copied().unwrap_or('x')),
        }
    }
    letters.into_iter().collect()
}

fn tokens(random: &mut Random) -> String {
    // A small vocabulary makes the same few tokens meet more often.
    let vocabulary: Vec<&str> = (0..3 + random.below(12)).map(|_| random.pick(table("tokens"))).collect();
    let mut text = String::new();
    if random.chance(60) {
        text.push_str(random.pick(&PROGRAMS));
        text.push(' ');
    }
    for _ in 0..2 + random.below(14) {
        text.push_str(random.pick(&vocabulary));
        if random.chance(25) {
            text.push_str(random.pick(&PROGRAMS));
            text.push(' ');
        }
    }
    text
}

fn characters(random: &mut Random) -> String {
    let all: Vec<char> = CHARACTERS.chars().collect();
    let mut text = random.pick(&["a ", "b\n", "zz ", "", "rm x;"]).to_owned();
    for _ in 0..2 + random.below(16) {
        text.push(all.get(random.below(all.len())).copied().unwrap_or('x'));
    }
    text
}
