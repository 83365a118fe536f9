//! The tables in `templates.txt`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Reads the sections of the file: each starts with its name in brackets.
static TABLES: LazyLock<BTreeMap<&'static str, Vec<String>>> = LazyLock::new(|| {
    let mut tables: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let mut current = "";
    for line in
        include_str!("templates.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        match line.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
            Some((name, _)) if name.bytes().all(|byte| byte.is_ascii_lowercase()) => current = name,
            _ => tables.entry(current).or_default().push(written(line)),
        }
    }
    tables
});

/// The table of this name.
pub(crate) fn table(name: &str) -> &'static [String] {
    TABLES.get(name).map(Vec::as_slice).unwrap_or_default()
}

fn written(line: &str) -> String {
    let letter = |letter: char| match letter {
        '⏎' => Some('\n'),
        '⇥' => Some('\t'),
        '␍' => Some('\r'),
        '␋' => Some('\u{b}'),
        '␌' => Some('\u{c}'),
        '⍽' => Some('\u{a0}'),
        '␣' => Some(' '),
        '∅' => None,
        other => Some(other),
    };
    line.chars().filter_map(letter).collect()
}
