use proptest::prelude::{Strategy, any, prop, prop_assert_eq, proptest};
use rstest::rstest;

use super::envelope::{EnvelopeProblem, Hunk, HunkLine, Operation, parse};
use super::place::{Applied, HunkProblem, apply};

fn hunks_of(body: &str) -> Vec<Hunk> {
    let patch = format!("*** Begin Patch\n*** Update File: a\n{body}\n*** End Patch");
    match parse(&patch).unwrap().pop() {
        Some(Operation::Update { hunks, .. }) => hunks,
        other => panic!("{other:?}"),
    }
}

fn applied(file: &str, body: &str) -> Result<Applied, HunkProblem> {
    apply(file.as_bytes(), &hunks_of(body))
}

const WHOLE: &str = "\
*** Begin Patch
*** Add File: new file.txt
+one
+
+two
*** Delete File: old.txt

*** Update File: a.rs
*** Move to: b.rs
@@ class A
@@ fn b
 keep

-gone
+here

@@
+last
*** End of File
*** End Patch";

fn whole() -> Vec<Operation> {
    let keep = |text: &str| HunkLine::Keep(text.into());
    let hunk = Hunk {
        contexts: vec!["class A".into(), "fn b".into()],
        lines: vec![keep("keep"), keep(""), HunkLine::Remove("gone".into()), HunkLine::Add("here".into())],
        at_end: false,
        line: 10,
    };
    let last = Hunk { contexts: vec![], lines: vec![HunkLine::Add("last".into())], at_end: true, line: 17 };
    vec![
        Operation::Add { path: "new file.txt".into(), content: "one\n\ntwo\n".into() },
        Operation::Delete { path: "old.txt".into() },
        Operation::Update { path: "a.rs".into(), move_to: Some("b.rs".into()), hunks: vec![hunk, last] },
    ]
}

fn unnumbered(mut operations: Vec<Operation>) -> Vec<Operation> {
    for operation in &mut operations {
        if let Operation::Update { hunks, .. } = operation {
            hunks.iter_mut().for_each(|hunk| hunk.line = 0);
        }
    }
    operations
}

#[rstest]
#[case::plain(WHOLE.to_owned())]
#[case::final_newline(format!("\n{WHOLE}\n\n"))]
#[case::crlf(WHOLE.replace('\n', "\r\n"))]
#[case::fence(format!("```diff\n{WHOLE}\n```"))]
#[case::here_document(format!("apply_patch <<'EOF'\n{WHOLE}\nEOF\n"))]
#[case::bare_here_document(format!("<<\"PATCH\"\n{WHOLE}\nPATCH"))]
#[case::blanks_after_marks(WHOLE.replace("@@\n", "@@  \n").replace("End Patch", "End Patch ").replace(": a.rs", ":a.rs "))]
#[case::diff_numbers(WHOLE.replace("@@\n", "@@ -10,2 +11,3 @@ fn c\n").replace("class A", "class A @@"))]
#[case::diff_remark(WHOLE.replace("+here\n", "+here\n\\ No newline at end of file\n"))]
fn the_envelope_is_read_as_models_send_it(#[case] patch: String) {
    assert_eq!(unnumbered(parse(&patch).unwrap()), unnumbered(whole()));
    assert_eq!(parse(WHOLE).unwrap(), whole());
}

#[rstest]
#[case::nothing("", 1, "expected `*** Begin Patch`, found nothing")]
#[case::prose("Here it is:\n*** Begin Patch", 1, "expected `*** Begin Patch`, found \"Here it is:\"")]
#[case::cut("*** Begin Patch\n*** Delete File: a\n", 3, "was it cut?")]
#[case::empty("*** Begin Patch\n*** End Patch", 2, "it changes nothing")]
#[case::more("*** Begin Patch\n*** Delete File: a\n*** End Patch\nthanks", 4, "expected nothing after")]
#[case::no_section("*** Begin Patch\n+x\n*** End Patch", 2, "expected `*** Add File: PATH`")]
#[case::no_path("*** Begin Patch\n*** Delete File: \n*** End Patch", 2, "expected a path after")]
#[case::no_plus("*** Begin Patch\n*** Add File: a\nx\n*** End Patch", 3, "of the new file after `+`")]
#[case::no_prefix("*** Begin Patch\n*** Update File: a\n@@\n-x\ny\n*** End Patch", 5, "begins with a blank")]
#[case::no_hunk("*** Begin Patch\n*** Update File: a\n*** End Patch", 2, "expected changes of a")]
#[case::no_change(
    "*** Begin Patch\n*** Update File: a\n@@\n x\n*** End Patch",
    3,
    "the hunk changes nothing"
)]
#[case::twice(
    "*** Begin Patch\n*** Delete File: a\n*** Add File: a\n*** End Patch",
    3,
    "occurs already in the section at line 2"
)]
#[case::moved_onto(
    "*** Begin Patch\n*** Delete File: a\n*** Update File: b\n*** Move to: a\n*** End Patch",
    3,
    "a occurs already"
)]
fn what_is_no_patch_is_told_with_its_line(#[case] patch: &str, #[case] line: usize, #[case] message: &str) {
    let problem: EnvelopeProblem = parse(patch).unwrap_err();
    assert_eq!(problem.line, line, "{problem}");
    assert!(problem.to_string().contains(message), "{problem}");
}

#[rstest]
#[case::replace("a\nb\nc\n", " a\n-b\n+B\n c", "a\nB\nc\n")]
#[case::open_end_stays("a\nb", "-b\n+B\n+C", "a\nB\nC")]
#[case::append_to_open_end("a\nb", " b\n+c", "a\nb\nc")]
#[case::remove_at_open_end("a\nb\nc", "@@\n-b\n@@\n-c", "a")]
#[case::remove_all("a\nb", "-a\n-b", "")]
#[case::fill_empty("", "+a", "a\n")]
#[case::insert_at_end("a\n", "@@\n+b", "a\nb\n")]
#[case::insert_below_context("a\nb\nc\n", "@@ b\n+x", "a\nb\nx\nc\n")]
#[case::narrowed("f\nx\ng\nx\n", "@@ g\n-x\n+y", "f\nx\ng\ny\n")]
#[case::narrowed_twice("A\n f\n x\nB\n f\n x\n", "@@ B\n@@ f\n- x\n+ y", "A\n f\n x\nB\n f\n y\n")]
#[case::context_repeated("f\na\nb\n", "@@ f\n f\n-a\n+A", "f\nA\nb\n")]
#[case::one_context_for_two("f\na\nb\nc\n", "@@ f\n-a\n+A\n@@ f\n-c\n+C", "f\nA\nb\nC\n")]
#[case::overlapping_context("a\nb\nc\n", "-a\n+A\n b\n@@\n b\n-c\n+C", "A\nb\nC\n")]
#[case::end_anchor("x\ny\nx\n", "-x\n+z\n*** End of File", "x\ny\nz\n")]
#[case::empty_line_at_end("a\nb\n", "-b\n+c\n ", "a\nc\n")]
#[case::crlf("a\r\nb\r\nc\r\n", " a\n-b\n+B\n+D\n c", "a\r\nB\r\nD\r\nc\r\n")]
#[case::mixed("a\r\nb\nc\r\n", "-a\n-b\n-c\n+A\n+B\n+C", "A\r\nB\nC\r\n")]
fn hunks_change_their_lines_alone(#[case] file: &str, #[case] body: &str, #[case] expected: &str) {
    let applied = applied(file, body).unwrap();
    assert_eq!(String::from_utf8(applied.bytes).unwrap(), expected);
    assert_eq!(applied.notes, Vec::<String>::new());
}

#[rstest]
#[case::line_end(
    "a  \nb\nc\t\n",
    " a\n-b\n+B\n c",
    "a  \nB\nc\t\n",
    "at line 1 only if white space at the ends"
)]
#[case::indentation("\ta\n\tb\n", "   a\n-  b\n+\tB", "\ta\n\tB\n", "only if indentation")]
#[case::several("x\ny\nx\n", "-x\n+z", "z\ny\nx\n", "at line 1 and again at line 3: the first")]
#[case::beginning(
    "def f(x):\n  a\n",
    "@@ def f\n-  a\n+  b",
    "def f(x):\n  b\n",
    "for the beginning of line 1"
)]
#[case::not_the_end("x\ny\n", "-x\n+z\n*** End of File", "z\ny\n", "which is not the end")]
fn what_did_not_fit_exactly_is_told(
    #[case] file: &str,
    #[case] body: &str,
    #[case] expected: &str,
    #[case] note: &str,
) {
    let applied = applied(file, body).unwrap();
    assert_eq!(String::from_utf8(applied.bytes).unwrap(), expected);
    assert!(applied.notes.len() == 1 && applied.notes[0].contains(note), "{:?}", applied.notes);
}

#[rstest]
#[case::differs(
    "a\nb\nc\n",
    " a\n-x\n+y",
    "at line 3 of the patch does not fit the file: most like it is line 1, but line 2 is \"b\" where the hunk has \"x\""
)]
#[case::past_the_end("a\nb\n", " b\n-x\n+y", "line 3 is the end of the file where")]
#[case::nothing_alike("a\n", "-x\n+y", "no line is like \"x\", read the file again")]
#[case::order("a\nb\n", "-b\n+B\n@@\n-a\n+A", "its lines are at line 1, above line 3")]
#[case::context("a\n", "@@ class B\n-a\n+b", "no line is like \"class B\"")]
#[case::loose_and_twice("\tx\n\tx\n", "-x\n+y", "lines 1 and 2 are equally near")]
#[case::binary("a\0b\n", "-x\n+y", "not a text file")]
fn what_does_not_fit_is_told(#[case] file: &str, #[case] body: &str, #[case] message: &str) {
    let problem = applied(file, body).unwrap_err();
    assert!(problem.to_string().contains(message), "{problem}");
}

#[test]
fn other_encodings_are_kept() {
    let wide = |text: &str| -> Vec<u8> {
        std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_le_bytes).collect()
    };
    let applied = apply(&wide("é\r\nb\r\n"), &hunks_of(" é\n-b\n+ü\n+c")).unwrap();
    assert_eq!(applied.bytes, wide("é\r\nü\r\nc\r\n"));
}

/// What becomes of a line, and what is put before it.
#[derive(Debug, Clone)]
struct Fate {
    text: String,
    stays: bool,
    before: Vec<String>,
    crlf: bool,
}

fn any_fate() -> impl Strategy<Value = Fate> {
    let before = prop::collection::vec("[a-c+@* \u{e9}-]{0,5}", 1..3);
    let before = prop::option::weighted(0.15, before).prop_map(Option::unwrap_or_default);
    ("[a-c+@* \u{e9}-]{0,5}", prop::bool::weighted(0.85), before, any::<bool>())
        .prop_map(|(text, stays, before, crlf)| Fate { text, stays, before, crlf })
}

/// The hunks of a change with three lines of context, as an envelope.
fn envelope(lines: &[String]) -> Vec<Hunk> {
    let near =
        |at: usize| (at.saturating_sub(3)..lines.len().min(at + 4)).any(|near| !lines[near].starts_with(' '));
    let mut body = String::new();
    for (at, line) in lines.iter().enumerate() {
        if near(at) {
            body += if at == 0 || !near(at - 1) { "@@\n" } else { "" };
            body += &format!("{line}\n");
        }
    }
    hunks_of(body.trim_end_matches('\n'))
}

fn joined(lines: &[(String, bool)], final_newline: bool) -> String {
    let mut text: String =
        lines.iter().map(|(line, crlf)| format!("{line}{}", if *crlf { "\r\n" } else { "\n" })).collect();
    if !final_newline && !text.is_empty() {
        text.truncate(text.len() - if text.ends_with("\r\n") { 2 } else { 1 });
    }
    text
}

proptest! {
    #[test]
    fn a_diff_applied_gives_the_other_file(
        mut fates in prop::collection::vec(any_fate(), 1..40),
        crlf in any::<bool>(),
        mixed in any::<bool>(),
        final_newline in any::<bool>(),
    ) {
        // A single line without an end says nothing about line ends, and new ones are line feeds then.
        let crlf = crlf && (final_newline || fates.len() > 1);
        if mixed {
            // Which line end a new line gets is the view's to say; one in place of another keeps it.
            for fate in &mut fates {
                fate.before.truncate(usize::from(!fate.stays));
                fate.before.resize(usize::from(!fate.stays), "new".to_owned());
            }
        }
        let (mut old, mut new, mut diff) = (Vec::new(), Vec::new(), Vec::new());
        for (number, fate) in fates.iter().enumerate() {
            // Lines differ, so that there is one place for each hunk.
            let line = format!("{number}:{}", fate.text);
            let ending = if mixed { fate.crlf } else { crlf };
            old.push((line.clone(), ending));
            new.extend(fate.before.iter().map(|line| (line.clone(), ending)));
            diff.extend(fate.before.iter().map(|line| format!("+{line}")));
            diff.push(format!("{}{line}", if fate.stays { ' ' } else { '-' }));
            if fate.stays {
                new.push((line, ending));
            }
        }
        if diff.iter().all(|line| line.starts_with(' ')) {
            return Ok(());
        }
        let applied = apply(joined(&old, final_newline).as_bytes(), &envelope(&diff)).unwrap();
        prop_assert_eq!(String::from_utf8(applied.bytes).unwrap(), joined(&new, final_newline));
        prop_assert_eq!(applied.notes, Vec::<String>::new());
    }
}
