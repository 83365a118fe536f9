use std::ops::Range;

use encoding_rs::{Encoding, UTF_8};
use proptest::prelude::{
    ProptestConfig, Strategy, TestCaseError, any, prop, prop_assert, prop_assert_eq, proptest,
};
use proptest::sample::{Index, select};
use rstest::rstest;

use super::{Reason, Replacement, TextForm, View, encode, replace, replace_in, rewrite};

fn one<'a>(old: &'a str, new: &'a str) -> Replacement<'a> {
    Replacement { old, new, all: false }
}

fn shown(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).escape_debug().to_string()
}

#[rstest]
#[case::plain("let a = 1;\n", "a = 1", "a = 2", "let a = 2;\n")]
#[case::windows_line_ends("a\r\nb\r\nc\r\n", "a\nb\n", "a\nx\ny\n", "a\r\nx\r\ny\r\nc\r\n")]
#[case::asked_for_with_returns("a\nb\n", "a\r\nb", "a\r\nc", "a\nc\n")]
#[case::mixed_line_ends_of_equal_lines("a\r\nb\nc\rd\n", "a\nb\nc\nd", "a\nb\nx\nc\nD", "a\r\nb\nx\nc\rD\n")]
#[case::at_the_very_end("a\nb", "b", "b\n", "a\nb\n")]
#[case::other_quotes(
    "say “hi” and ‘bye’\n",
    "say \"hi\" and 'bye'",
    "say \"hi\" and 'so'",
    "say “hi” and ‘so’\n"
)]
#[case::straight_in_the_file("it's\n", "it’s", "it’s so", "it's so\n")]
#[case::decomposed("cafe\u{301} au lait\n", "caf\u{E9} au lait", "caf\u{E9} noir", "cafe\u{301} noir\n")]
#[case::composed("caf\u{E9} au lait\n", "cafe\u{301} au lait", "cafe\u{301} noir", "caf\u{E9} noir\n")]
#[case::only_the_mark_differs(
    "caf\u{E9} “x”\n",
    "cafe\u{301} \"x\"",
    "cafe\u{300} \"x\"",
    "cafe\u{300} “x”\n"
)]
fn replaced(#[case] text: &str, #[case] old: &str, #[case] new: &str, #[case] expected: &str) {
    let replaced = replace(text.as_bytes(), &[one(old, new)]).unwrap();
    assert_eq!(shown(&replaced.bytes), shown(expected.as_bytes()));
    let exact = text.replace("\r\n", "\n").replace('\r', "\n").contains(&old.replace("\r\n", "\n"));
    assert_eq!(replaced.notes.is_empty(), exact, "{:?}", replaced.notes);
}

#[test]
fn what_happened_is_reported() {
    let edits = [Replacement { old: "x", new: "y", all: true }, one("y1\n", "z1\nz2\n")];
    let replaced = replace(b"a\nx1\nb\nx2\nc\n", &edits).unwrap();
    assert_eq!(shown(&replaced.bytes), shown(b"a\nz1\nz2\nb\ny2\nc\n"));
    assert_eq!((replaced.count, replaced.lines), (3, 2..6));
    assert_eq!(replaced.hunks[0].lines, [" a", "-x1", "+z1", "+z2", " b", "-x2", "+y2", " c"]);
}

#[test]
fn every_inexact_match_is_replaced_when_all_are_meant() {
    let edit = Replacement { old: "'a'", new: "'b'", all: true };
    let replaced = replace("‘a’ ‚a‘\n".as_bytes(), &[edit]).unwrap();
    assert_eq!((shown(&replaced.bytes), replaced.count), (shown("‘b’ ‚b‘\n".as_bytes()), 2));
    assert!(replaced.notes[0].contains("(on lines 1, 1)"), "{:?}", replaced.notes);
}

#[rstest]
#[case::empty(b"a", "", "b", Reason::EmptyOld)]
#[case::equal(b"a", "a", "a", Reason::Equal)]
#[case::only_line_ends(b"a\r\n", "a\r\n", "a\n", Reason::OnlyLineEnds)]
#[case::twice(b"a\nb\na\n", "a", "c", Reason::NotUnique { lines: vec![1, 3], total: 2 })]
#[case::overlapping(b"aaa", "aa", "b", Reason::NotUnique { lines: vec![1, 1], total: 2 })]
#[case::many(&b"a\n".repeat(12), "a", "b", Reason::NotUnique { lines: (1..=10).collect(), total: 12 })]
#[case::inexact_twice("‘a’ “a” ’a‘".as_bytes(), "'a'", "b", Reason::NotUnique { lines: vec![1, 1], total: 2 })]
fn refused(#[case] bytes: &[u8], #[case] old: &str, #[case] new: &str, #[case] reason: Reason) {
    assert_eq!(replace(bytes, &[one(old, new)]).unwrap_err().reason, reason);
}

#[test]
fn a_letter_is_no_part_of_an_accented_one() {
    let failure = replace("caf\u{E9}\n".as_bytes(), &[one("“cafe", "x")]).unwrap_err();
    assert!(matches!(failure.reason, Reason::NotFound(_)));
    let failure = replace("“caf\u{E9}\n".as_bytes(), &[one("\"cafe", "x")]).unwrap_err();
    assert!(matches!(failure.reason, Reason::NotFound(_)));
}

#[test]
fn the_edit_that_fails_is_named() {
    let failure = replace(b"a b", &[one("a", "c"), one("c", "d"), one("a", "e")]).unwrap_err();
    assert_eq!(failure.edit, 2);
    let many = replace(&b"a\n".repeat(12), &[one("a", "b")]).unwrap_err().to_string();
    assert!(many.contains("12 times, on lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more,"), "{many}");
}

#[rstest]
#[case::line_ends_kept(b"a\r\nb\r\n", "a\nc\nd\n", b"a\r\nc\r\nd\r\n")]
#[case::equal_lines_keep_theirs(b"a\nb\r\nc\r\n", "a\nx\nb\nc\n", b"a\nx\r\nb\r\nc\r\n")]
#[case::line_ends_as_the_content_says(b"a\nb\n", "a\r\nc\r\n", b"a\r\nc\r\n")]
#[case::no_final_line_end(b"a\r\n", "a\nb", b"a\r\nb")]
#[case::mark_kept(b"\xEF\xBB\xBFa\n", "b\n", b"\xEF\xBB\xBFb\n")]
#[case::mark_given_again(b"\xEF\xBB\xBFa\n", "\u{FEFF}b\n", b"\xEF\xBB\xBFb\n")]
#[case::was_empty(b"", "\u{E4}\r\n", b"\xC3\xA4\r\n")]
#[case::was_binary(b"\x7FELF\x02\x01\x01\0", "a\n", b"a\n")]
#[case::wide(b"\xFF\xFEa\0\r\0\n\0", "b\n", b"\xFF\xFEb\0\r\0\n\0")]
#[case::damage_that_stays(
    b"a \xC3\xA4\xC3\xA4\xFF\nb\n",
    "a ää\u{FFFD}\nc\n",
    b"a \xC3\xA4\xC3\xA4\xFF\nc\n"
)]
#[case::damage_that_would_join(b"\xC3\xA4\xC3\xB6\xC3\xBC\xC3x\xA9", "äöü\u{FFFD}\u{FFFD}", "äöü\u{FFFD}\u{FFFD}".as_bytes())]
#[case::emptied(b"a\r\n", "", b"")]
fn rewritten(#[case] old: &[u8], #[case] content: &str, #[case] expected: &[u8]) {
    let out = rewrite(old, content).unwrap();
    assert_eq!(out.escape_ascii().to_string(), expected.escape_ascii().to_string());
}

/// The encodings with the characters that are tried in them and the byte order mark they have.
const FORMS: &[(&str, &str, &[u8])] = &[
    ("utf-8", "ab \tä漢😀“'", b""),
    ("utf-8", "ab äé", b"\xEF\xBB\xBF"),
    ("utf-16le", "ab ä漢😀", b"\xFF\xFE"),
    ("utf-16be", "ab ä漢😀", b"\xFE\xFF"),
    ("utf-16le", "ab ਊ\u{0D0D}", b""),
    ("utf-16be", "ab ਊ\u{0D0D}", b""),
    ("windows-1252", "ab äß€", b""),
    ("shift_jis", "ab\\ソｱ表", b""),
    ("gbk", "ab我们@", b""),
    ("gb18030", "ab我é😀", b""),
];
const ENDINGS: &[&[&str]] = &[&["\n"], &["\r\n"], &["\r"], &["\n", "\r\n"], &["\n", "\r\n", "\r", "\n"]];

/// A file made of characters, some of them followed by bytes that are none, and an edit in it.
#[derive(Debug, Clone)]
struct Case {
    form: TextForm,
    bytes: Vec<u8>,
    endings: usize,
    range: [Index; 2],
    new: String,
}

impl Case {
    fn strategy() -> impl Strategy<Value = Self> {
        let indexes = |count| prop::collection::vec(any::<Index>(), 0..count);
        let edit = (any::<[Index; 2]>(), indexes(8));
        (select(FORMS), 0..ENDINGS.len(), edit, indexes(40), indexes(3), any::<bool>()).prop_map(
            |((label, letters, mark), endings, (range, new), text, damage, damaged)| {
                let encoding = Encoding::for_label(label.as_bytes()).unwrap();
                let form = TextForm { encoding, bom: mark.len() };
                let letters: Vec<char> = letters.chars().chain(['\n', '\n']).collect();
                let damage: Vec<usize> = damage.iter().map(|at| at.index(text.len() + 1)).collect();
                let mut bytes = mark.to_vec();
                for (at, letter) in text.iter().enumerate() {
                    let ending = ENDINGS[endings][at % ENDINGS[endings].len()];
                    let letter = letter.get(&letters).to_string().replace('\n', ending);
                    encode::push(form, &letter, &mut bytes).unwrap();
                    if damaged && damage.contains(&at) {
                        bytes.extend(if form.unit() == 2 { [0xDD; 2].as_slice() } else { &[0x81] });
                    }
                }
                let new = new.iter().map(|letter| letter.get(&letters)).collect();
                Self { form, bytes, endings, range, new }
            },
        )
    }

    /// Replaces a range by the new text and back, by place and by content.
    fn check(&self) -> Result<(), TestCaseError> {
        let view = View::in_form(&self.bytes, self.form);
        let text = view.text();
        let places: Vec<usize> = text.char_indices().map(|(at, _)| at).chain([text.len()]).collect();
        let [one_end, other] = self.range.map(|index| *index.get(&places));
        let range = one_end.min(other)..one_end.max(other);
        let expected = [&text[..range.start], &self.new, &text[range.end..]].concat();
        let old = &text[range.clone()];
        let damaged = text.contains('\u{FFFD}');
        match view.splice(&[(range.clone(), &self.new)]) {
            Ok(out) => {
                self.check_result(&view, &range, &out, &expected)?;
                self.check_back(&view, &range, &out)?;
            }
            Err(error) => prop_assert!(damaged, "{error}"),
        }
        match replace_in(&view, &[Replacement { old, new: &self.new, all: false }]) {
            Ok(replaced) => self.check_result(&view, &range, &replaced.bytes, &expected)?,
            Err(error) => match error.reason {
                Reason::NotUnique { .. } => prop_assert!(text.find(old) < text.rfind(old)),
                Reason::Equal => prop_assert_eq!(old, &self.new),
                Reason::EmptyOld => prop_assert!(old.is_empty()),
                reason => prop_assert!(damaged, "{reason}"),
            },
        }
        Ok(())
    }

    fn check_result(
        &self,
        view: &View<'_>,
        range: &Range<usize>,
        out: &[u8],
        expected: &str,
    ) -> Result<(), TestCaseError> {
        let place = view.bytes_at(range.clone());
        let changed = View::in_form(out, self.form);
        prop_assert_eq!(changed.text(), expected);
        prop_assert!(out.starts_with(&self.bytes[..place.start]), "bytes before the edit changed");
        prop_assert!(out.ends_with(&self.bytes[place.end..]), "bytes behind the edit changed");
        Ok(())
    }

    fn check_back(&self, view: &View<'_>, range: &Range<usize>, out: &[u8]) -> Result<(), TestCaseError> {
        let (text, old) = (view.text(), &view.text()[range.clone()]);
        let breaks = |text: &str| text.matches('\n').count();
        // A line end that is gone can only be guessed again from others of its kind.
        let certain = match self.endings {
            0 => true,
            1 | 2 => breaks(old) < breaks(text) || breaks(&self.new) > 0,
            3 => breaks(old) == breaks(&self.new),
            _ => false,
        };
        if certain {
            let changed = View::in_form(out, self.form);
            let back = changed.splice(&[(range.start..range.start + self.new.len(), old)]);
            prop_assert_eq!(back.as_deref(), Ok(self.bytes.as_slice()));
        }
        Ok(())
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 10_000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_outside_an_edit_changes_and_it_can_be_undone(case in Case::strategy()) {
        case.check()?;
    }
}

proptest! {
    #[test]
    fn content_is_written_as_it_is(case in Case::strategy(), cut in any::<Index>()) {
        let plain = TextForm { encoding: UTF_8, bom: 0 };
        let view = View::of(&case.bytes).unwrap_or_else(|_| View::in_form(&[], plain));
        let cut = view.text().floor_char_boundary(cut.index(view.text().len() + 1));
        let content = [&view.text()[cut..], "a\n", &view.text()[..cut]].concat();
        let out = match rewrite(&case.bytes, &content) {
            Ok(out) => out,
            // Some characters that can be read in a legacy encoding cannot be written in it.
            Err(error) => {
                prop_assert!(!view.encoding().starts_with("UTF"), "{error}");
                return Ok(());
            }
        };
        let changed = View::in_form(&out, view.form);
        prop_assert_eq!(changed.text(), content);
    }
}
