//! What is known of programs when rules are judged or offered, from a table.

use std::{collections::BTreeMap, sync::LazyLock};

use serde::Deserialize;

const TABLE: &str = include_str!("../data/programs.toml");

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Programs {
    interpreters: Vec<String>,
    runners: Vec<String>,
    shells: Vec<String>,
    subcommanded: Vec<String>,
    run_words: Vec<String>,
    open_programs: Vec<String>,
    wrappers: Vec<String>,
    carriers: Vec<String>,
    file_commands: Vec<String>,
    quiet: Vec<String>,
    steering_options: Vec<String>,
    steering_words: Vec<String>,
    usual: BTreeMap<String, String>,
    long: BTreeMap<String, String>,
    words: BTreeMap<String, usize>,
}

static PROGRAMS: LazyLock<Programs> = LazyLock::new(|| toml::from_str(TABLE).unwrap_or_default());

fn among(list: &[String], name: &str) -> bool {
    list.iter().any(|known| known == name)
}

/// Runs whatever code it is given.
pub(crate) fn is_interpreter(name: &str) -> bool {
    // `python3.12` is python.
    let bare = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    among(&PROGRAMS.interpreters, name) || (!bare.is_empty() && among(&PROGRAMS.interpreters, bare))
}

/// Its code is shell code.
pub(crate) fn is_shell(name: &str) -> bool {
    among(&PROGRAMS.shells, name)
}

/// Its first word is a subcommand.
pub(crate) fn has_subcommands(name: &str) -> bool {
    among(&PROGRAMS.subcommanded, name)
}

/// A word behind which a command may stand.
pub(crate) fn runs(word: &str) -> bool {
    among(&PROGRAMS.run_words, word)
}

/// Can run anything by one of its subcommands.
pub(crate) fn is_open(name: &str) -> bool {
    among(&PROGRAMS.open_programs, name)
}

/// Runs another program.
pub(crate) fn is_runner(name: &str) -> bool {
    is_wrapper(name) || is_carrier(name) || among(&PROGRAMS.runners, name)
}

/// Changes nothing about the program behind it.
pub(crate) fn is_wrapper(name: &str) -> bool {
    among(&PROGRAMS.wrappers, name)
}

/// Brings a program arguments from elsewhere.
pub(crate) fn is_carrier(name: &str) -> bool {
    among(&PROGRAMS.carriers, name)
}

/// Passes for a reader, but writes its second operand.
pub(crate) fn is_quiet(name: &str) -> bool {
    among(&PROGRAMS.quiet, name)
}

/// Changes files and nothing else.
pub(crate) fn is_file_command(name: &str) -> bool {
    among(&PROGRAMS.file_commands, name)
}

/// Points a program at other code or another place.
pub(crate) fn steers(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or(word);
    let value = word.trim_start_matches("-o").trim_start();
    among(&PROGRAMS.steering_options, name)
        || PROGRAMS.steering_words.iter().any(|known| value.starts_with(known))
}

/// The name that a program or subcommand usually has.
pub(crate) fn usual_name(name: &str) -> &str {
    PROGRAMS.usual.get(name).map_or(name, String::as_str)
}

/// The long form of an option of a command.
pub(crate) fn long_option(head: &[String], option: &str) -> Option<&'static String> {
    (option.len() == 2).then(|| PROGRAMS.long.get(&format!("{} {option}", head.join(" ")))).flatten()
}

/// How many words of a command make a rule, if the table knows.
pub(crate) fn words(argv: &[&str]) -> Option<usize> {
    let two = argv.get(..2).map(|two| two.join(" "));
    let known = two.and_then(|two| PROGRAMS.words.get(&two)).or_else(|| PROGRAMS.words.get(*argv.first()?));
    known.copied()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_table_is_read() {
        assert!(super::is_interpreter("python3.12") && !super::is_interpreter("git"));
        assert_eq!(super::words(&["npm", "run", "test"]), Some(3));
        assert_eq!(super::words(&["npm", "test"]), Some(2));
        let table: Result<super::Programs, _> = toml::from_str(super::TABLE);
        let table = table.unwrap();
        for list in [
            &table.interpreters,
            &table.wrappers,
            &table.carriers,
            &table.file_commands,
            &table.steering_options,
        ] {
            assert!(list.is_sorted());
        }
    }
}
