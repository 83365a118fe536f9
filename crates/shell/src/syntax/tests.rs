use rstest::rstest;

use super::{parse, print, same};

#[rstest]
#[case::words("rm >out x")]
#[case::continuation("r\\\nm x")]
#[case::documents("cat <<A <<'B'\n$x\nA\n$y\nB\nls")]
fn printing_and_parsing_again_changes_nothing(#[case] text: &str) {
    let parsed = parse(text);
    assert_eq!(parsed.error, None);
    let again = parse(&print(&parsed.list));
    assert_eq!(again.error, None);
    assert!(same(&parsed.list, &again.list));
}
