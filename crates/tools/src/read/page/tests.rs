use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};
use gripper_runtime::{Located, Place};
use proptest::prelude::{Just, Strategy, any, prop, prop_assert_eq, prop_oneof, proptest};
use rstest::rstest;
use tempfile::TempDir;

use super::{CHUNK, COUNTED_REST, Limits, Page, ReadFailure, Wanted, page_of, push_number, read_page};
use crate::read::lines::{Lines, Source};
use crate::text::decode::TextForm;

fn at(path: impl AsRef<Path>) -> Located {
    Place { cwd: "/".into() }.locate(path.as_ref())
}

const NEVER: &dyn Fn() -> bool = &|| false;

fn wanted(offset: impl Into<Option<u64>>, limit: impl Into<Option<u64>>) -> Wanted {
    Wanted { offset: offset.into(), limit: limit.into() }
}

fn read_bytes(bytes: &[u8], wanted: Wanted) -> Result<Page, ReadFailure> {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, bytes).unwrap();
    read_page(&at(&path), &wanted, &Limits::default(), NEVER)
}

/// The text of the page without the padding of the numbers, which has its own test.
fn shown(page: &Page) -> String {
    page.text.lines().map(str::trim_start).collect::<Vec<_>>().join("\n")
}

#[rstest]
#[case::one(1, "     1\t")]
#[case::six_columns(999_999, "999999\t")]
#[case::wider(1_000_000, "1000000\t")]
#[case::widest(u64::MAX, "18446744073709551615\t")]
fn numbers_stand_right_in_six_columns(#[case] number: u64, #[case] expected: &str) {
    let mut text = String::new();
    push_number(&mut text, number);
    assert_eq!(text, expected);
}

#[rstest]
#[case::final_newline(b"a\nb\n", "1\ta\n2\tb", 2)]
#[case::no_final_newline(b"a\nb", "1\ta\n2\tb", 2)]
#[case::crlf(b"a\r\nb\r\n", "1\ta\n2\tb", 2)]
#[case::mixed(b"a\r\nb\nc\r\n", "1\ta\n2\tb\n3\tc", 3)]
#[case::lone_return_inside(b"a\rb\n", "1\ta\rb", 1)]
#[case::lone_return_at_the_end(b"a\r", "1\ta\r", 1)]
#[case::two_returns(b"a\r\r\n", "1\ta\r", 1)]
#[case::blank_lines(b"\n\n", "1\t\n2\t", 2)]
#[case::bom_hidden(b"\xEF\xBB\xBFa\n", "1\ta", 1)]
#[case::wide_little(b"\xFF\xFEa\0\r\0\n\0\x0A\x0A\n\0", "1\ta\n2\t\u{0A0A}", 2)]
#[case::wide_big(b"\xFE\xFF\0a\0\r\0\n\x0A\x0A\0\n", "1\ta\n2\t\u{0A0A}", 2)]
#[case::wide_odd_end(b"\xFF\xFEa\0\n\0b", "1\ta\n2\t\u{FFFD}", 2)]
#[case::wide_odd_end_like_a_line_feed(b"\xFE\xFF\0aa\0\n", "1\ta\u{6100}\u{FFFD}", 1)]
#[case::western(b"Stra\xDFe f\xFCr B\xE4ume\n", "1\tStraße für Bäume", 1)]
#[case::damaged("äöü äöü\n".as_bytes().iter().copied().chain(*b"x\xC3(y\n").collect::<Vec<_>>().leak(), "1\täöü äöü\n2\tx\u{FFFD}(y", 2)]
#[case::controls_stay(b"\x1B[1mbold\x07\n", "1\t\x1B[1mbold\x07", 1)]
fn whole_files(#[case] bytes: &[u8], #[case] text: &str, #[case] lines: u64) {
    let page = read_bytes(bytes, Wanted::default()).unwrap();
    assert_eq!(shown(&page), text);
    assert_eq!((page.start_line, page.lines, page.total_lines), (1, lines, Some(lines)));
    assert_eq!((page.next_offset, page.shortened_lines), (None, 0));
}

#[rstest]
#[case::middle(wanted(2, 2), "2\tb\n3\tc", Some(4))]
#[case::offset_only(wanted(4, None), "4\td\n5\te", None)]
#[case::limit_only(wanted(None, 1), "1\ta", Some(2))]
#[case::offset_zero_is_one(wanted(0, 1), "1\ta", Some(2))]
#[case::exactly_to_the_end(wanted(4, 2), "4\td\n5\te", None)]
#[case::beyond_the_end(wanted(5, 100), "5\te", None)]
#[case::nothing_asked(wanted(2, 0), "", Some(2))]
fn ranges(#[case] wanted: Wanted, #[case] text: &str, #[case] next: Option<u64>) {
    for file in ["a\nb\nc\nd\ne\n", "a\nb\nc\nd\ne"] {
        let page = read_bytes(file.as_bytes(), wanted).unwrap();
        assert_eq!(shown(&page), text);
        assert_eq!((page.total_lines, page.next_offset), (Some(5), next));
    }
}

#[rstest]
#[case::just_past("a\nb\n", 3, 2)]
#[case::just_past_open_line("a\nb", 3, 2)]
#[case::far_past("a\nb\n", u64::MAX, 2)]
#[case::empty("", 2, 0)]
fn offsets_past_the_end(#[case] file: &str, #[case] offset: u64, #[case] lines: u64) {
    match read_bytes(file.as_bytes(), wanted(offset, None)) {
        Err(ReadFailure::PastEnd { asked, total, .. }) => assert_eq!((asked, total), (offset, lines)),
        other => panic!("{other:?}"),
    }
}

#[rstest]
#[case::nothing(b"", "UTF-8")]
#[case::only_a_mark(b"\xEF\xBB\xBF", "UTF-8")]
#[case::only_a_wide_mark(b"\xFE\xFF", "UTF-16BE")]
fn empty_files_are_pages_without_lines(#[case] bytes: &[u8], #[case] encoding: &str) {
    let page = read_bytes(bytes, Wanted::default()).unwrap();
    assert_eq!((page.text.as_str(), page.lines, page.total_lines), ("", 0, Some(0)));
    assert_eq!((page.next_offset, page.encoding), (None, encoding));
}

#[test]
fn two_thousand_lines_are_the_default() {
    let page = read_bytes("x\n".repeat(2_001).as_bytes(), Wanted::default()).unwrap();
    assert_eq!((page.lines, page.total_lines, page.next_offset), (2_000, Some(2_001), Some(2_001)));
    let page = read_bytes("x\n".repeat(2_001).as_bytes(), wanted(None, 2_001)).unwrap();
    assert_eq!((page.lines, page.next_offset), (2_001, None));
}

#[rstest]
#[case::at_the_limit("é".repeat(2_000), "é".repeat(2_000), 0)]
#[case::one_more("é".repeat(2_001), format!("{}… [characters left out: 1]", "é".repeat(2_000)), 1)]
#[case::beyond_a_chunk("漢".repeat(CHUNK), format!("{}… [characters left out: {}]", "漢".repeat(2_000), CHUNK - 2_000), 1)]
fn long_lines_are_cut_between_characters(#[case] line: String, #[case] text: String, #[case] cut: u64) {
    for end in ["", "\n", "\r\n"] {
        let page = read_bytes(format!("{line}{end}").as_bytes(), Wanted::default()).unwrap();
        assert_eq!(shown(&page), format!("1\t{text}"));
        assert_eq!((page.shortened_lines, page.total_lines), (cut, Some(1)));
    }
}

#[test]
fn a_whole_file_too_large_for_a_page_ends_with_a_whole_line() {
    // Number, tab and line feed add 8 characters, so 100 lines of 1,000 are exactly the bound.
    let line = format!("{}\n", "é".repeat(992));
    let page = read_bytes(line.repeat(101).as_bytes(), Wanted::default()).unwrap();
    assert_eq!((page.lines, page.next_offset, page.total_lines), (100, Some(101), Some(101)));
    let next = read_bytes(line.repeat(300).as_bytes(), wanted(101, None)).unwrap();
    assert_eq!((next.start_line, next.lines, next.next_offset), (101, 100, Some(201)));
}

#[test]
fn a_range_too_large_for_a_page_is_measured() {
    let file = format!("{}\n", "é".repeat(992)).repeat(300);
    for (limit, last, chars) in [(101, 101, 101_000), (200, 200, 200_000), (1_000, 300, 300_000)] {
        let failure = read_bytes(file.as_bytes(), wanted(None, limit)).unwrap_err();
        let message = failure.to_string();
        let start = format!("lines 1 to {last} of ");
        let end = format!(
            " make {chars} characters, more than the 100000 that fit one result: \
             use a limit of at most 100 lines, or find the place with Grep"
        );
        assert!(message.starts_with(&start) && message.ends_with(&end), "{message}");
    }
    assert_eq!(read_bytes(file.as_bytes(), wanted(7, 100)).unwrap().lines, 100);
}

#[test]
fn a_nul_deep_inside_is_shown_as_a_sign() {
    let file = [b"text\n".repeat(4_000).as_slice(), b"a\0b\n"].concat();
    let page = read_bytes(&file, wanted(4_001, None)).unwrap();
    assert_eq!(shown(&page), "4001\ta\u{2400}b");
}

#[test]
fn binary_files_are_refused_with_their_type() {
    let message = read_bytes(b"\x89PNG\r\n\x1A\n\0\0\0\rIHDR", Wanted::default()).unwrap_err().to_string();
    assert!(message.contains("cannot be shown as text (PNG image): "), "{message}");
}

#[test]
fn a_huge_rest_is_not_counted() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("file");
    let mut file = File::create(&path).unwrap();
    file.write_all(&b"line\n".repeat(CHUNK)).unwrap();
    // The rest is a hole, which takes no room on the disk.
    file.set_len(2 * COUNTED_REST).unwrap();
    let chunks = Cell::new(0);
    let stop = || chunks.replace(chunks.get() + 1) > 1;
    let page = read_page(&at(&path), &Wanted::default(), &Limits::default(), &stop).unwrap();
    assert_eq!((page.lines, page.total_lines, page.next_offset), (2_000, None, Some(2_001)));
}

#[test]
fn files_without_a_size_are_read_all_the_same() {
    let page = read_page(&at("/proc/self/status"), &Wanted::default(), &Limits::default(), NEVER).unwrap();
    assert!(page.text.contains("VmRSS:"), "{}", page.text);
    assert_eq!(page.total_lines, Some(page.lines));
}

#[test]
fn stop_is_asked_once_per_chunk() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("file");
    std::fs::write(&path, vec![b'x'; 10 * CHUNK]).unwrap();
    for calls_until_stop in [0, 1, 5] {
        let calls = Cell::new(0);
        let stop = || calls.replace(calls.get() + 1) == calls_until_stop;
        let failure = read_page(&at(&path), &Wanted::default(), &Limits::default(), &stop).unwrap_err();
        assert!(matches!(failure, ReadFailure::Cancelled));
        assert_eq!(calls.get(), calls_until_stop + 1);
    }
}

/// A line of about a gibibyte that exists nowhere, and the most bytes anyone asked of it at a time.
struct EndlessLine {
    left: usize,
    largest: usize,
}

impl Read for EndlessLine {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(self.left);
        buffer[..count].fill(b'x');
        self.left -= count;
        self.largest = self.largest.max(buffer.len());
        Ok(count)
    }
}

#[test]
fn a_line_of_many_chunks_is_counted_and_not_kept() {
    let length = 300 * CHUNK + 1;
    let mut line = EndlessLine { left: length, largest: 0 };
    let source = Source::new(&mut line, 0, Path::new("line"), NEVER);
    let form = TextForm { encoding: UTF_8, bom: 0 };
    let page =
        page_of(Lines::new(source, form, Vec::new(), CHUNK), &Wanted::default(), &Limits::default()).unwrap();
    assert_eq!(
        page.text,
        format!("     1\t{}… [characters left out: {}]", "x".repeat(2_000), length - 2_000)
    );
    assert!(page.text.capacity() < CHUNK, "only the page may be kept, not {}", page.text.capacity());
    assert_eq!(line.largest, CHUNK);
}

/// Hands out at most `most` bytes at a time, as pipes and network file systems do, with an interruption now
/// and then.
struct Dripping<'a> {
    bytes: &'a [u8],
    most: usize,
    reads: usize,
}

impl Read for Dripping<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reads += 1;
        if self.reads.is_multiple_of(5) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let count = buffer.len().min(self.most);
        self.bytes.read(&mut buffer[..count])
    }
}

/// The rules of a page once more, on the whole text and without any care for speed.
fn model(text: &str, wanted: Wanted, limits: Limits, encoding: &'static str) -> Result<Page, String> {
    let mut all: Vec<&str> = text.split('\n').collect();
    if all.last() == Some(&"") {
        all.pop();
    }
    let ended = text.matches('\n').count();
    let first = wanted.offset.unwrap_or(1).max(1);
    if first > 1 && first > all.len() as u64 {
        return Err(format!("past the end: {} lines", all.len()));
    }
    let mut kept: Vec<String> = Vec::new();
    let (mut shortened, mut fits) = (0, true);
    let limit = wanted.limit.unwrap_or(limits.lines) as usize;
    for (index, line) in all.iter().enumerate().skip(first as usize - 1).take(limit) {
        let line = if index < ended { line.strip_suffix('\r').unwrap_or(line) } else { line };
        let chars: Vec<char> = line.chars().collect();
        let head: String = chars.iter().take(limits.line_chars).collect();
        let mark = match chars.len().saturating_sub(limits.line_chars) {
            0 => String::new(),
            more => format!("… [characters left out: {more}]"),
        };
        let line = format!("{:>6}\t{head}{mark}", index + 1);
        let size: usize = kept.iter().chain([&line]).map(|line| line.chars().count() + 1).sum();
        if size > limits.page_chars && !kept.is_empty() {
            fits = false;
            break;
        }
        shortened += u64::from(!mark.is_empty());
        kept.push(line);
    }
    if !fits && wanted.limit.is_some() {
        return Err(format!("too large: {} lines fit", kept.len()));
    }
    let next = first + kept.len() as u64;
    Ok(Page {
        text: kept.join("\n").replace('\0', "\u{2400}"),
        start_line: first,
        lines: kept.len() as u64,
        total_lines: Some(all.len() as u64),
        encoding,
        shortened_lines: shortened,
        next_offset: (next <= all.len() as u64).then_some(next),
    })
}

fn outcome(result: Result<Page, ReadFailure>) -> Result<Page, String> {
    result.map_err(|failure| match failure {
        ReadFailure::PastEnd { total, .. } => format!("past the end: {total} lines"),
        ReadFailure::TooLarge { fits, .. } => format!("too large: {fits} lines fit"),
        other => other.to_string(),
    })
}

fn encoded(text: &str, encoding: &'static Encoding, bom: bool) -> Vec<u8> {
    let text = if bom { format!("\u{FEFF}{text}") } else { text.to_owned() };
    match encoding {
        wide if wide == UTF_16LE => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        wide if wide == UTF_16BE => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        _ => text.into_bytes(),
    }
}

/// Text in which line ends are frequent, and so are characters with a line feed byte or a return byte in
/// them.
fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        4 => "[a-z ]{0,9}",
        2 => Just("\n".to_owned()),
        2 => Just("\r\n".to_owned()),
        1 => Just("\r".to_owned()),
        1 => Just("\0".to_owned()),
        2 => prop::sample::select(vec!["ß", "漢", "😀", "\u{0A0A}", "\u{010A}", "\u{0A00}", "\u{0D0A}", "\u{0D00}", "\u{FEFF}"])
            .prop_map(str::to_owned),
        1 => any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

fn forms() -> impl Strategy<Value = (&'static Encoding, bool)> {
    prop::sample::select(vec![
        (UTF_8, false),
        (UTF_8, true),
        (UTF_16LE, true),
        (UTF_16BE, true),
        (UTF_16LE, false),
    ])
}

fn wishes() -> impl Strategy<Value = Wanted> {
    (prop::option::of(0_u64..20), prop::option::of(0_u64..20))
        .prop_map(|(offset, limit)| Wanted { offset, limit })
}

fn bounds() -> impl Strategy<Value = Limits> {
    (1_u64..20, 1_usize..12, 10_usize..300).prop_map(|(lines, line_chars, page_chars)| Limits {
        lines,
        line_chars,
        page_chars,
    })
}

proptest! {
    /// Chunks, pieces and the place where the first of them ends make no difference to the page.
    #[test]
    fn a_page_is_that_of_the_whole_text(
        text in texts(),
        (encoding, bom) in forms(),
        wanted in wishes(),
        limits in bounds(),
        chunk in 1_usize..40,
        most in 1_usize..40,
        head_units in 0_usize..20,
    ) {
        let bytes = encoded(&text, encoding, bom);
        let bom = if bom { encoded("", encoding, true).len() } else { 0 };
        let form = TextForm { encoding, bom };
        let head = bytes.len().min(bom + head_units * form.unit());
        let mut reader = Dripping { bytes: &bytes[head..], most, reads: 0 };
        let source = Source::new(&mut reader, bytes.len() as u64, Path::new("file"), NEVER);
        let page = page_of(Lines::new(source, form, bytes[..head].to_vec(), chunk), &wanted, &limits);
        prop_assert_eq!(outcome(page), model(&text, wanted, limits, encoding.name()));
    }

    /// The same from the file system on, with the encoding found and not given.
    #[test]
    fn a_file_is_read_as_what_it_was_written(
        text in texts(),
        (encoding, bom) in forms(),
        wanted in wishes(),
        limits in bounds(),
        long in any::<bool>(),
    ) {
        // Words make the encoding plain that has no mark; a control character among them would make the file
        // binary.
        let text = text.replace(|c: char| c == '\u{FEFF}' || c.is_control() && !c.is_ascii_whitespace(), "");
        let words: u64 = if long { CHUNK as u64 / 10 } else { 200 };
        let text = "some words\r\n".repeat(words as usize) + &text;
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), encoded(&text, encoding, bom)).unwrap();
        let wanted = Wanted { offset: wanted.offset.map(|offset| offset + words - 5), ..wanted };
        let page = read_page(&at(file.path()), &wanted, &limits, NEVER);
        prop_assert_eq!(outcome(page), model(&text, wanted, limits, encoding.name()));
    }

    /// Whatever the bytes are, a page keeps its bounds and says where to go on, and going on ends.
    #[test]
    fn any_bytes_can_be_paged_through(bytes in prop::collection::vec(any::<u8>(), 0..400), limits in bounds()) {
        let form = TextForm { encoding: UTF_8, bom: 0 };
        let text = String::from_utf8_lossy(&bytes);
        let (mut offset, mut seen) = (1, 0);
        loop {
            let mut reader = bytes.as_slice();
            let source = Source::new(&mut reader, 0, Path::new("file"), NEVER);
            let page = page_of(Lines::new(source, form, Vec::new(), 7), &wanted(offset, None), &limits).unwrap();
            assert!(page.lines <= limits.lines);
            assert!(page.lines == 1 || page.text.chars().count() <= limits.page_chars);
            prop_assert_eq!(Ok(page.clone()), model(&text, wanted(offset, None), limits, "UTF-8"));
            seen += page.lines;
            match page.next_offset {
                Some(next) => offset = next,
                None => break prop_assert_eq!(Some(seen), page.total_lines),
            }
        }
    }
}
