use encoding_rs::Encoding;
use rstest::rstest;

use super::{CannotEncode, CannotSplice, TextForm, View};

fn form(label: &str) -> TextForm {
    TextForm { encoding: Encoding::for_label(label.as_bytes()).unwrap(), bom: 0 }
}

#[rstest]
#[case::plain(b"a\nb\n", "a\nb\n")]
#[case::empty(b"", "")]
#[case::mark(b"\xEF\xBB\xBFa\n", "a\n")]
#[case::windows(b"a\r\nb\r\n", "a\nb\n")]
#[case::old_mac(b"a\rb\r", "a\nb\n")]
#[case::mixed(b"a\r\r\nb\n\rc\n\r\n", "a\n\nb\n\nc\n\n")]
#[case::damaged("ä\r\n\u{1F600}ö".as_bytes().iter().copied().chain(*b"\r\xFF\nx").collect::<Vec<_>>().leak(),
    "ä\n\u{1F600}ö\n\u{FFFD}\nx")]
#[case::wide(b"\xFF\xFEa\0\r\0\n\0\x42\x6F\x3D\xD8\0\xDE", "a\n\u{6F42}\u{1F600}")]
#[case::wide_damaged(b"\xFE\xFF\0a\xD8\0\0\r\0", "a\u{FFFD}\n\u{FFFD}")]
fn shown_as_plain_text_and_mapped_back(#[case] bytes: &[u8], #[case] text: &str) {
    let view = View::of(bytes).unwrap();
    assert_eq!(view.text(), text);
    let mut end = view.form.bom;
    for (offset, character) in text.char_indices() {
        let place = view.bytes_at(offset..offset + character.len_utf8());
        assert_eq!(place.start, end, "{character:?} follows what is before it");
        assert!(!place.is_empty(), "{character:?} has bytes");
        end = place.end;
    }
    assert_eq!(end, bytes.len());
}

#[rstest]
#[case::western("windows-1252", "Bär\r\nläuft\r\n")]
#[case::shift_jis("Shift_JIS", "吾輩ｱは猫ソ\\である\r\n名前ABC\n")]
#[case::gb18030("gb18030", "我们A的\u{1F600}é中国人\r\n")]
#[case::euc_jp("EUC-JP", "吾輩ｱは\r\n")]
#[case::big5("Big5", "中文A字\r\n")]
fn legacy_characters_keep_their_width(#[case] label: &str, #[case] text: &str) {
    let form = form(label);
    let bytes = form.encoding.encode(text).0.into_owned();
    let view = View::in_form(&bytes, form);
    assert_eq!(view.text(), text.replace("\r\n", "\n"));
    for (offset, character) in view.text().char_indices().filter(|(_, character)| *character != '\n') {
        let place = view.bytes_at(offset..offset + character.len_utf8());
        assert_eq!(form.encoding.decode(&bytes[place]).0, character.to_string());
    }
}

#[rstest]
#[case::nth_keeps_the_nth(b"a\r\nb\nc\rd", 0..6, "1\n2\n3\n4", b"1\r\n2\n3\r4d")]
#[case::further_ones_like_the_last(b"a\nb\r\nc\n", 2..4, "x\ny\nz\n", b"a\nx\r\ny\r\nz\r\nc\n")]
#[case::else_the_one_before(b"a\r\nb\n", 2..3, "x\ny", b"a\r\nx\r\ny\n")]
#[case::else_the_one_after(b"a\r\n", 0..1, "x\ny", b"x\r\ny\r\n")]
#[case::else_a_line_feed(b"a", 0..1, "x\ny", b"x\ny")]
#[case::given_with_returns(b"a\n", 0..1, "x\r\ny\rz", b"x\ny\nz\n")]
#[case::two_line_ends_stay_two(b"a\rb\nc", 2..3, "", b"a\r\n\nc")]
#[case::behind_the_mark(b"\xEF\xBB\xBFa", 0..0, "x\n", b"\xEF\xBB\xBFx\na")]
#[case::beside_damage(b"ab\xFFcd \xC3\xA4\xC3\xB6", 5..6, "C", b"ab\xFFCd \xC3\xA4\xC3\xB6")]
#[case::between_damage(b"\xC3\xA4\xC3\xB6\xC3\xBC\xFF\xFF", 9..9, "C", b"\xC3\xA4\xC3\xB6\xC3\xBC\xFFC\xFF")]
#[case::wide(b"\xFF\xFEa\0\r\0\n\0b\0", 2..3, "\u{1F600}\n", b"\xFF\xFEa\0\r\0\n\0\x3D\xD8\0\xDE\r\0\n\0")]
fn spliced(
    #[case] bytes: &[u8],
    #[case] range: std::ops::Range<usize>,
    #[case] new: &str,
    #[case] expected: &[u8],
) {
    let out = View::of(bytes).unwrap().splice(&[(range, new)]).unwrap();
    assert_eq!(out.escape_ascii().to_string(), expected.escape_ascii().to_string());
}

#[rstest]
#[case::euro_in_latin("iso-8859-2", "€", "ISO-8859-2")]
#[case::yen_would_become_a_backslash("shift_jis", "a¥", "Shift_JIS")]
#[case::emoji("windows-1252", "ä\u{1F600}", "windows-1252")]
fn a_missing_character_is_named(#[case] label: &str, #[case] new: &str, #[case] encoding: &'static str) {
    let failure = View::in_form(b"abc", form(label)).splice(&[(1..2, new)]).unwrap_err();
    let character = new.chars().next_back().unwrap();
    assert_eq!(failure, CannotSplice::Encode(CannotEncode { character, encoding }));
}

#[rstest]
#[case::covered("utf-8", b"ok\na\xFFb", 3..8, "x", 2)]
#[case::two_halves_would_meet("utf-8", b"\xC3x\xA9", 3..4, "", 1)]
#[case::a_lead_byte_would_take_the_letter("shift_jis", b"\x81 a", 3..4, "A", 1)]
#[case::half_a_unit("utf-16le", b"a\0b", 4..4, "x", 1)]
fn damage_is_never_changed_by_accident(
    #[case] label: &str,
    #[case] bytes: &[u8],
    #[case] range: std::ops::Range<usize>,
    #[case] new: &str,
    #[case] line: usize,
) {
    let form = form(label);
    let failure = View::in_form(bytes, form).splice(&[(range, new)]).unwrap_err();
    assert_eq!(failure, CannotSplice::Undecodable { line, encoding: form.encoding.name() });
}

#[test]
fn lines_are_counted_from_one() {
    let view = View::of(b"a\r\nb\rc").unwrap();
    assert_eq!([0, 1, 2, 4].map(|offset| view.line_of(offset)), [1, 1, 2, 3]);
    assert_eq!(view.dominant_ending(), b"\r\n");
}

#[test]
fn binary_files_are_refused_with_their_type() {
    assert_eq!(View::of(b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR").unwrap_err().kind, "PNG image");
}
