//! Random texts: no panic, no place outside of the text, and printing loses nothing.

use proptest::prelude::{ProptestConfig, Strategy, any, prop, prop_assert, proptest};
use proptest::sample::select;

use crate::syntax::tree::{List, Pipeline};
use crate::syntax::{parse, print, same};

/// What scripts are made of.
const TOKENS: [&str; 96] = [
    "a", "b", "rm", "if", "then", "else", "elif", "fi", "for", "x", "in", "do", "done", "while", "until",
    "case", "esac", "select", "function", "f()", "coproc", "time", "!", "{", "}", "[[", "]]", "=~", "==",
    "-f", "1", "2", "E", "a=", "a=b", "a[1]=", "a=(", "declare", " ", " ", " ", " ", "\n", "\n", ";", ";;",
    ";&", "&", "&&", "|", "||", "|&", "(", ")", "((", "))", "<", ">", ">>", "<<", "<<-", "<<E", "<<'E'",
    "<<<", "\nE\n", "<&", ">&", "&>", ">|", "<>", "-", "'", "\"", "`", "\\", "\\\n", "$", "$(", "$((", "${",
    "${x", ":-", "//", "#", "%", "@", "$'", "$\"", "<(", ">(", "$[", "]", "*", "~", "é", "\r",
];

/// Whether every pipeline stands on whole characters of the text.
fn places_fit(list: &List, text: &str) -> bool {
    let fits = |pipeline: &Pipeline| text.get(pipeline.span.range()).is_some();
    list.items
        .iter()
        .all(|item| fits(&item.chain.first) && item.chain.rest.iter().all(|(_, other)| fits(other)))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn tokens(text in prop::collection::vec(select(TOKENS.as_slice()), 0..25).prop_map(|tokens| tokens.concat())) {
        let parsed = parse(&text);
        prop_assert!(places_fit(&parsed.list, &text));
        if let Some(error) = &parsed.error {
            prop_assert!(text.get(error.span.range()).is_some(), "{error:?}");
        }
        let printed = print(&parsed.list);
        let again = parse(&printed);
        prop_assert!(again.error.is_none(), "{printed:?}: {:?}", again.error);
        prop_assert!(same(&parsed.list, &again.list), "{printed:?}");
    }

    #[test]
    fn characters(text in any::<String>()) {
        let parsed = parse(&text);
        prop_assert!(places_fit(&parsed.list, &text));
    }
}
