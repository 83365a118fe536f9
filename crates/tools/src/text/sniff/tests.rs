use encoding_rs::{Encoding, UTF_16BE, UTF_16LE};
use rstest::rstest;

use super::{IN_WORDS, NUL_REACH, SAMPLE, WEAK_MAGIC, sniff};

/// The name of the encoding, with the length of the byte order mark when there is one, or the type in words.
fn verdict(bytes: &[u8]) -> String {
    match sniff(bytes) {
        Ok(form) if form.bom > 0 => format!("{} after {}", form.encoding.name(), form.bom),
        Ok(form) => form.encoding.name().to_owned(),
        Err(kind) => format!("not text: {kind}"),
    }
}

fn wide(text: &str, big_endian: bool) -> Vec<u8> {
    text.encode_utf16()
        .flat_map(|unit| if big_endian { unit.to_be_bytes() } else { unit.to_le_bytes() })
        .collect()
}

fn legacy(label: &str, text: &str) -> Vec<u8> {
    Encoding::for_label(label.as_bytes()).unwrap().encode(text).0.into_owned()
}

#[rstest]
#[case::empty(b"", "UTF-8")]
#[case::ascii(b"plain text\n", "UTF-8")]
#[case::utf8("größer 漢字 😀\n".as_bytes(), "UTF-8")]
#[case::utf8_bom(b"\xEF\xBB\xBFtext", "UTF-8 after 3")]
#[case::utf16le_bom(b"\xFF\xFEa\0", "UTF-16LE after 2")]
#[case::utf16be_bom(b"\xFE\xFF\0a", "UTF-16BE after 2")]
#[case::only_a_bom(b"\xFF\xFE", "UTF-16LE after 2")]
#[case::utf32le(b"\xFF\xFE\0\0a\0\0\0", "not text: UTF-32 text")]
#[case::utf32be(b"\0\0\xFE\xFF\0\0\0a", "not text: UTF-32 text")]
#[case::escapes_are_text(b"\x1B[31mred\x1B[0m\x07\n", "UTF-8")]
#[case::many_controls_in_ascii(b"\x01\x02\x03\x04", "UTF-8")]
#[case::mostly_utf8("äöü äöü \u{1F600}".as_bytes().iter().copied().chain(*b" bad \xC3( end").collect::<Vec<_>>().leak(), "UTF-8")]
#[case::stray_byte(b"all ascii but \xFF one\n", "UTF-8")]
#[case::stray_pair(b"abc\xFF\xFEdef\n", "UTF-8")]
#[case::western_at_the_end(b"une tasse de caf\xE9", "windows-1252")]
#[case::nul(b"abc\0def", "not text: binary data")]
#[case::nul_after_bom(b"\xEF\xBB\xBFabc\0def", "not text: binary data")]
#[case::nul_unit_after_bom(b"\xFF\xFEa\0\0\0", "not text: binary data")]
#[case::records(b"\x01\0\x02\0\x03\0\x04\0", "not text: binary data")]
#[case::png(b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR", "not text: PNG image")]
#[case::jpeg(b"\xFF\xD8\xFF\xE0\0\x10JFIF", "not text: JPEG image")]
#[case::gif(b"GIF89a\x01\0\x01\0\x80", "not text: GIF image")]
#[case::gzip(b"\x1F\x8B\x08\x08abcdefgh\xFF", "not text: gzip archive")]
#[case::zip(b"PK\x03\x04\x14\0\0\0", "not text: ZIP archive")]
#[case::pdf(b"%PDF-1.7\n%\xE2\xE3\xCF\xD3\n1 0 obj", "not text: PDF document")]
#[case::elf(&[b"\x7FELF\x02\x01\x01\0".as_slice(), &[0; 56]].concat(), "not text: ELF executable")]
#[case::windows_program(b"MZ\x90\0\x03\0\0\0", "not text: Windows executable")]
#[case::bitmap(b"BM\x46\0\0\0\0\0", "not text: BMP image")]
#[case::database(b"SQLite format 3\0", "not text: SQLite database")]
#[case::text_like_a_bitmap(b"BMW, MZ and GIF89a are names\n", "UTF-8")]
#[case::western_like_a_bitmap(&legacy("latin1", "BMW fährt über die Brücke\n"), "windows-1252")]
#[case::script(b"#!/bin/sh\necho hello\n", "UTF-8")]
#[case::markup(b"<?xml version=\"1.0\"?><a/>", "UTF-8")]
fn verdicts(#[case] bytes: &[u8], #[case] expected: &str) {
    assert_eq!(verdict(bytes), expected);
}

#[rstest]
#[case::western("windows-1252", "Der Bär läuft über die Straße, später fährt er zurück.\n")]
#[case::cyrillic("windows-1251", "Съешь ещё этих мягких французских булок, да выпей чаю.\n")]
#[case::koi8("KOI8-U", "Съешь ещё этих мягких французских булок, да выпей чаю.\n")]
#[case::japanese("Shift_JIS", "吾輩は猫である。名前はまだ無い。どこで生れたか見当がつかぬ。\n")]
#[case::japanese_unix("EUC-JP", "吾輩は猫である。名前はまだ無い。どこで生れたか見当がつかぬ。\n")]
#[case::chinese("GBK", "我们的中国人民在这里生活和工作，这是一个很好的地方。\n")]
#[case::korean("EUC-KR", "안녕하세요. 오늘은 날씨가 아주 좋습니다. 감사합니다.\n")]
fn legacy_encodings(#[case] name: &str, #[case] text: &str) {
    assert_eq!(verdict(&legacy(name, &text.repeat(5))), name);
}

#[rstest]
#[case::little(false, "UTF-16LE")]
#[case::big(true, "UTF-16BE")]
fn wide_text_without_a_mark(#[case] big_endian: bool, #[case] expected: &str) {
    let cut_in_a_pair = format!("{}😀", "x".repeat(NUL_REACH / 2 - 1));
    for text in ["plain words\r\n", "größer als 漢\n", &"long ".repeat(SAMPLE), &cut_in_a_pair] {
        assert_eq!(verdict(&wide(text, big_endian)), expected, "{text:.20}");
    }
    assert_eq!(verdict(&wide("with \u{1} control", big_endian)), "not text: binary data");
}

#[test]
fn a_character_cut_by_the_sample_is_no_damage() {
    // With so many control characters only sound UTF-8 passes for text.
    for padding in 0..4 {
        let text = format!("{}{}", "x".repeat(padding), "漢\u{1}".repeat(SAMPLE));
        assert_eq!(verdict(text.as_bytes()), "UTF-8");
    }
}

#[test]
fn a_nul_byte_counts_only_near_the_beginning() {
    let with_nul_at = |at: usize| {
        let mut bytes = b"word ".repeat(SAMPLE);
        bytes[at] = 0;
        bytes
    };
    assert_eq!(verdict(&with_nul_at(NUL_REACH - 1)), "not text: binary data");
    assert_eq!(verdict(&with_nul_at(NUL_REACH)), "UTF-8");
}

#[test]
fn compressed_data_without_a_nul_is_not_text() {
    // A fixed sequence that looks random and has every byte but zero.
    let mut state = 1_u32;
    let bytes: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    })
    .filter(|byte| *byte != 0)
    .take(4_000)
    .collect();
    assert_eq!(verdict(&bytes), "not text: binary data");
}

#[test]
fn wide_encodings_are_the_only_ones_with_two_byte_units() {
    for (label, unit) in [("utf-8", 1), ("gb18030", 1), ("shift_jis", 1), ("utf-16le", 2), ("utf-16be", 2)] {
        let form = super::plain(Encoding::for_label(label.as_bytes()).unwrap());
        assert_eq!(form.unit(), unit, "{label}");
    }
    assert_ne!(UTF_16LE, UTF_16BE);
}

#[test]
fn tables_are_sorted() {
    assert!(WEAK_MAGIC.is_sorted());
    assert!(IN_WORDS.is_sorted());
}
