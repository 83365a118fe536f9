//! What is known of a program's output from its arguments alone.

use super::{
    Model,
    argv::{Given, Reading},
};
use crate::analysis::Output;

/// What is known of the output.
pub(crate) fn foresee(model: &Model, reading: &Reading<'_>) -> Output {
    let conduct = &model.entry.conduct;
    let kinds = [
        (&conduct.number, Output::Number),
        (&conduct.numbers, Output::Numbers),
        (&conduct.plain, Output::Plain),
        (&conduct.ids, Output::PlainWords),
        (&conduct.single, Output::Word),
    ];
    kinds
        .into_iter()
        .find(|(words, _)| prints_one_word(model, reading, words))
        .map_or(Output::Text, |(_, output)| output)
}

/// Whether what was given shows that the program prints one plain word. Each of `words` is a way to
/// show it: the only operand, or an option with its value behind it; with `<` at its end only when
/// standard input is read; with `+one` only for one operand; with `+and(a,b)` only when one of those options is given as well, each with its
/// value. No other options may be given but those in `+only(a,b)`.
fn prints_one_word(model: &Model, reading: &Reading<'_>, words: &str) -> bool {
    if words.is_empty() || reading.operands.len() > 2 {
        return false;
    }
    // An operand with a blank or a dash could come out of some programs as it went in.
    let sound = |text: &str| {
        !text.starts_with('-')
            && text.chars().all(|c| c.is_ascii_alphanumeric() || "_./@{}^~+%:-".contains(c))
    };
    if !reading.operands.iter().all(|operand| operand.literal().is_some_and(sound)) {
        return false;
    }
    let fixed = model.operands.iter().filter(|operand| !operand.many).count();
    let supplied = usize::from(reading.options.iter().any(|given| given.option.supplies));
    let from_stdin = reading.operands.len() <= fixed.saturating_sub(supplied);
    words.split_whitespace().any(|word| {
        let (word, only) = word.split_once("+only(").unwrap_or((word, ""));
        let (word, needed) = word.split_once("+and(").unwrap_or((word, ""));
        let needed: Vec<&str> =
            needed.trim_end_matches(')').split(',').filter(|word| !word.is_empty()).collect();
        let is_needed = |given: &Given<'_>| needed.iter().any(|word| spells(given, word));
        let (word, one) = word.strip_suffix("+one").map_or((word, false), |word| (word, true));
        let (word, stdin) = word.strip_suffix('<').map_or((word, false), |word| (word, true));
        // What is found comes out as an id, and what is not as it went in: that must be no path.
        let named = |operand: &str| match word.strip_suffix('*').filter(|start| !start.is_empty()) {
            Some(start) => {
                operand.starts_with(start) && !operand.contains(['/', ':']) && !operand.contains("..")
            }
            None => operand == word,
        };
        let by_operand = reading.operands.len() == 1
            && reading.operands.iter().any(|operand| operand.literal().is_some_and(named));
        let shown = word.is_empty() || by_operand || reading.options.iter().any(|given| spells(given, word));
        let all = needed.is_empty() || reading.options.iter().any(is_needed);
        let mut others = reading.options.iter().filter(|given| !spells(given, word) && !is_needed(given));
        let only: Vec<&str> = only.trim_end_matches(')').split(',').collect();
        let alone = others.all(|given| given.option.names.iter().any(|name| only.contains(&name.as_str())));
        let counted = !one || reading.operands.len() == fixed.saturating_sub(supplied) + 1;
        shown && all && alone && counted && (from_stdin || !stdin)
    })
}

/// Whether an option is spelt so, its value behind it.
fn spells(given: &Given<'_>, word: &str) -> bool {
    let value = given.values.first().and_then(|(_, value)| value.literal());
    given.option.names.iter().any(|name| match value {
        Some(value) => {
            word.strip_prefix(name.as_str()).is_some_and(|rest| rest.trim_start_matches('=') == value)
        }
        // Digits are an option of their own, whichever they are.
        None if name.ends_with('#') => given.spelt == word,
        None => word == name && given.values.is_empty(),
    })
}
