use rstest::rstest;

use super::{PATCH, difference, hunks, unified};

#[rstest]
#[case::in_a_line("a\nbcd\ne\n", "a\nbxd\ne\n", &[(3..4, "x")])]
#[case::two_lines_one_by_one("ab\ncd\n", "xb\ncy\n", &[(0..1, "x"), (4..5, "y")])]
#[case::line_added("a\nb\n", "a\nx\nb\n", &[(2..2, "x\n")])]
#[case::line_removed("a\nx\nb\n", "a\nb\n", &[(2..4, "")])]
#[case::without_line_end("a", "a\nb", &[(1..1, "\nb")])]
#[case::whole_characters("ä", "ö", &[(0..2, "ö")])]
#[case::equal("a\n", "a\n", &[])]
fn only_the_difference(
    #[case] old: &str,
    #[case] new: &str,
    #[case] expected: &[(std::ops::Range<usize>, &str)],
) {
    assert_eq!(difference(old, new), expected);
}

#[rstest]
#[case::changed(
    "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
    "1\n2\n3\n4\nx\n6\n7\n8\n9\n",
    "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n"
)]
#[case::created("", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n")]
#[case::emptied("a\n", "", "@@ -1,1 +0,0 @@\n-a\n")]
#[case::last_line_end("a", "a\n", "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n")]
#[case::apart(
    "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
    "x\n2\n3\n4\n5\n6\n7\n8\ny\n",
    "@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+y\n"
)]
#[case::equal("a\n", "a\n", "")]
fn as_text(#[case] before: &str, #[case] after: &str, #[case] expected: &str) {
    assert_eq!(unified(before, after, 100), expected);
}

#[test]
fn large_differences_are_cut_and_say_so() {
    let lines = |from: usize, to: usize| (from..to).map(|number| format!("{number}\n")).collect::<String>();
    let (before, after) = (lines(0, 90_000), lines(100_000, 190_000));
    let text = unified(&before, &after, 100);
    assert_eq!(text.lines().count(), 100);
    assert!(
        text.ends_with("\n… 179902 more lines of the difference are left out\n"),
        "{:?}",
        text.lines().last()
    );
    let patch = hunks(&before, &after);
    assert_eq!((patch.len(), patch[0].old_lines, patch[0].lines.len()), (1, 90_000, PATCH.lines + 1));
    assert_eq!(patch[0].lines[PATCH.lines], "\\ 179000 more lines of the patch are left out");
    let long = &hunks("", &"x".repeat(1_000_000))[0].lines[0];
    assert_eq!(long.chars().count(), 1 + PATCH.characters + 1);
}

#[test]
fn a_patch_speaks_camel_case() {
    let value = serde_json::to_value(&hunks("a\n", "b\n")[0]).unwrap();
    let expected = serde_json::json!({"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-a", "+b"]});
    assert_eq!(value, expected);
}
