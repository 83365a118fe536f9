//! Tables of harmless and harmful scripts in many disguises, and hostile text.

use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert, proptest};
use proptest::sample::select;

use super::{FindingKind, ScriptEffects, awk, jq, sed};

mod awk_tests;
mod jq_tests;
mod sed_tests;

type Check = fn(&str) -> ScriptEffects;

fn all_clean(check: Check, scripts: &[&str]) {
    for script in scripts {
        assert_eq!(check(script).findings, [], "{script:?} is harmless");
    }
}

fn all_found(check: Check, kind: &FindingKind, scripts: &[&str]) {
    for script in scripts {
        let findings = check(script).findings;
        assert!(findings.iter().any(|finding| finding.kind == *kind), "{script:?}: {findings:?}");
    }
}

fn all_named(check: Check, kind: fn(String) -> FindingKind, scripts: &[(&str, &str)]) {
    for (script, name) in scripts {
        all_found(check, &kind((*name).to_owned()), &[script]);
    }
}

fn writes(name: String) -> FindingKind {
    FindingKind::Write(Some(name))
}

#[test]
fn findings_point_at_their_cause() {
    let found = sed("p\ns/é/b/gw out").findings;
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].at, 10..15);
    let found = awk("{ print > \"f\"; system(x) }").findings;
    assert_eq!(found.iter().map(|finding| finding.at.clone()).collect::<Vec<_>>(), [8..9, 15..21]);
    let found = jq(".env, env").findings;
    assert_eq!(found[0].at, 6..9);
}

const PIECES: &[&str] = &[
    "a",
    "e",
    "w f",
    "s/",
    "y,",
    "/",
    "\\",
    "\n",
    "[",
    "]",
    "[:",
    ":]",
    "{",
    "}",
    "(",
    ")",
    ";",
    ",",
    "#",
    "\"",
    "\\(",
    "$",
    "@",
    ".",
    "..",
    "!",
    "|",
    "|&",
    ">",
    ">>",
    "<",
    "=",
    "++",
    "/=",
    "?",
    ":",
    "::",
    "1",
    "0x",
    "1e",
    " ",
    "print ",
    "getline ",
    "if ",
    "end",
    "def ",
    "env",
    "ENV",
    "function f(",
    "ARGV[1]",
    "é",
    "→",
    "\u{0}",
    "\r",
    "a\\\n",
    "\"\\(",
    "$ENV",
    "{\"",
    "for (",
    "é[",
];

fn soup() -> impl Strategy<Value = String> {
    vec(select(PIECES), 0..40).prop_map(|pieces| pieces.concat())
}

fn sound(check: Check, script: &str) -> bool {
    check(script).findings.iter().all(|finding| script.get(finding.at.clone()).is_some())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn no_text_breaks_the_sed_parser(wild in any::<String>(), soup in soup()) {
        prop_assert!(sound(sed, &wild) && sound(sed, &soup));
    }

    #[test]
    fn no_text_breaks_the_awk_parser(wild in any::<String>(), soup in soup()) {
        prop_assert!(sound(awk, &wild) && sound(awk, &soup));
    }

    #[test]
    fn no_text_breaks_the_jq_parser(wild in any::<String>(), soup in soup()) {
        prop_assert!(sound(jq, &wild) && sound(jq, &soup));
    }

    /// The text of an `a` may swallow the next line but none after it.
    #[test]
    fn nothing_hides_a_sed_command_two_lines_later(soup in soup()) {
        let script = format!("{soup}\n#\np\n#\ne id");
        prop_assert!(!sed(&script).is_clean(), "{script:?}");
    }

    #[test]
    fn nothing_hides_an_awk_action_in_a_later_line(soup in soup()) {
        let script = format!("{soup}\n\nBEGIN {{ system(\"id\") }}");
        prop_assert!(!awk(&script).is_clean(), "{script:?}");
    }

    #[test]
    fn nothing_hides_a_later_use_of_the_environment_in_jq(soup in soup()) {
        let filter = format!("{soup}\n| env");
        prop_assert!(!jq(&filter).is_clean(), "{filter:?}");
    }
}

#[test]
fn long_hostile_text_is_read_to_its_end() {
    for piece in PIECES {
        let script = piece.repeat(65_536 / piece.len());
        for check in [sed, awk, jq] {
            assert!(sound(check, &script), "{piece:?}");
        }
    }
    let deep = format!("{}1{}", "(".repeat(30_000), ")".repeat(30_000));
    assert!(awk(&deep).is_clean() && jq(&deep).is_clean());
    let deep = format!("{}p{}", "{".repeat(30_000), "}".repeat(30_000));
    assert!(sed(&deep).is_clean());
    let nested = format!("{}1{}", "\"\\(".repeat(15_000), ")\"".repeat(15_000));
    assert!(jq(&nested).is_clean());
    let late = format!("{}e", "p;".repeat(32_000));
    all_found(sed, &FindingKind::Exec, &[&late]);
}
