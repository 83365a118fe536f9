//! Deciding from the first bytes of a file whether it is text, and in which encoding.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use infer::MatcherType;

use super::decode::TextForm;

/// How much of the beginning encodings are judged by.
pub(crate) const SAMPLE: usize = 64 * 1024;
/// How far a NUL byte makes the file binary; one further in is shown as a visible sign.
const NUL_REACH: usize = 8 * 1024;
/// One control character in so many bytes is still text, such as a log with colours; compressed data has
/// twice as many.
const BYTES_PER_CONTROL: usize = 20;

/// Types whose magic number is so short or so readable that text may begin with it by chance; they need the
/// content to look binary as well. Named by the extension the detector gives them.
const WEAK_MAGIC: &[&str] = &[
    "ar", "bmp", "bz2", "cpio", "crx", "deb", "der", "dll", "exe", "jxl", "lz", "mp3", "obj", "par2", "pem",
    "ps", "psd", "rtf", "sqlite", "swf",
];

/// Types whose extension alone would not tell a reader what they are, sorted by extension.
const IN_WORDS: &[(&str, &str)] = &[
    ("bc", "LLVM bitcode"),
    ("class", "Java class file"),
    ("der", "DER certificate or key"),
    ("dex", "Android executable"),
    ("dll", "Windows executable"),
    ("elf", "ELF executable"),
    ("exe", "Windows executable"),
    ("gz", "gzip archive"),
    ("jpg", "JPEG image"),
    ("mach", "Mach-O executable"),
    ("obj", "binary data"),
    ("pdf", "PDF document"),
    ("qcow2", "disk image"),
    ("sqlite", "SQLite database"),
    ("wasm", "WebAssembly module"),
];

/// The form of the text that begins with `head`, or what the file is in words when it is not text.
///
/// No more than [`SAMPLE`] bytes are looked at. Whoever has more should hand over at least one more: that is
/// how a character cut by the end of the sample is told from one damaged in the file.
pub(crate) fn sniff(head: &[u8]) -> Result<TextForm, String> {
    let sample = &head[..head.len().min(SAMPLE)];
    let whole = sample.len() == head.len();
    let start = &sample[..sample.len().min(NUL_REACH)];
    if start.starts_with(&[0xFF, 0xFE, 0, 0]) || start.starts_with(&[0, 0, 0xFE, 0xFF]) {
        return Err("UTF-32 text".to_owned());
    }
    if let Some((encoding, bom)) = Encoding::for_bom(sample) {
        let form = TextForm { encoding, bom };
        return if has_nul_unit(start, form.unit()) { Err(type_in_words(sample)) } else { Ok(form) };
    }
    let has_nul = memchr::memchr(0, start).is_some();
    let tally = Utf8Tally::of(sample, whole);
    if tally.damaged == 0 && !has_nul {
        return Ok(plain(UTF_8));
    }
    if has_nul {
        return wide_without_bom(start).map(plain).ok_or_else(|| type_in_words(sample));
    }
    if too_many_controls(sample) || magic(sample).is_some_and(|kind| !WEAK_MAGIC.contains(&kind.extension()))
    {
        return Err(type_in_words(sample));
    }
    Ok(plain(if tally.wide > tally.damaged { UTF_8 } else { legacy(sample, whole) }))
}

fn plain(encoding: &'static Encoding) -> TextForm {
    TextForm { encoding, bom: 0 }
}

fn has_nul_unit(bytes: &[u8], unit: usize) -> bool {
    bytes.chunks_exact(unit).any(|unit| unit.iter().all(|byte| *byte == 0))
}

/// How badly bytes fit UTF-8: the places that are wrong and, when there are any, the characters beyond ASCII
/// that are right.
struct Utf8Tally {
    wide: usize,
    damaged: usize,
}

impl Utf8Tally {
    fn of(sample: &[u8], whole: bool) -> Self {
        let mut tally = Self { wide: 0, damaged: 0 };
        match std::str::from_utf8(sample) {
            Ok(_) => return tally,
            // A last character that the sample cut is no damage.
            Err(error) if error.error_len().is_none() && !whole => return tally,
            Err(_) => {}
        }
        for chunk in sample.utf8_chunks() {
            tally.wide += chunk.valid().chars().filter(|character| !character.is_ascii()).count();
            tally.damaged += usize::from(!chunk.invalid().is_empty());
        }
        tally
    }
}

/// UTF-16 without a byte order mark, when it is plain: most units are Latin characters, so the NUL bytes
/// stand on one side, and what they make up is clean text.
fn wide_without_bom(start: &[u8]) -> Option<&'static Encoding> {
    let units = start.len() / 2;
    let (mut even, mut odd) = (0, 0);
    for unit in start.chunks_exact(2) {
        even += usize::from(unit[0] == 0);
        odd += usize::from(unit[1] == 0);
    }
    // A Latin character has its NUL on the one side; few characters that are not Latin have theirs on the
    // other.
    let mostly = |nuls: usize, others: usize| nuls * 10 >= units * 7 && others * 20 <= units;
    let encoding = match (even, odd) {
        (even, odd) if mostly(odd, even) => UTF_16LE,
        (even, odd) if mostly(even, odd) => UTF_16BE,
        _ => return None,
    };
    // A decoder that is told of no end forgives a last character of which only the first half is there.
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let mut text = String::with_capacity(decoder.max_utf8_buffer_length_without_replacement(start.len())?);
    let (result, _) = decoder.decode_to_string_without_replacement(start, &mut text, false);
    let clean = result == DecoderResult::InputEmpty
        && text.chars().all(|character| !character.is_control() || character.is_ascii_whitespace());
    clean.then_some(encoding)
}

fn too_many_controls(sample: &[u8]) -> bool {
    // Bell, backspace, the white space and escape have their place in logs and terminal recordings.
    let controls = sample.iter().filter(|byte| matches!(byte, 0..=6 | 11 | 14..=26 | 28..=31 | 127)).count();
    controls * BYTES_PER_CONTROL > sample.len()
}

/// The encoding of text that is not UTF-8. The detector only names encodings in which the whole sample is
/// valid.
fn legacy(sample: &[u8], whole: bool) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Deny);
    detector.feed(sample, whole);
    let guess = detector.guess(None, Utf8Detection::Allow);
    // Western is also the answer to "none of them". A control character from above ASCII, or the all but
    // unused ÿ, says that bytes are damaged, and a visible replacement is more honest than a wrong letter.
    let (text, _) = guess.decode_without_bom_handling(sample);
    let damaged = text.chars().any(|character| matches!(character, '\u{80}'..='\u{9F}' | 'ÿ'));
    if damaged { UTF_8 } else { guess }
}

fn magic(sample: &[u8]) -> Option<infer::Type> {
    infer::get(sample).filter(|kind| kind.matcher_type() != MatcherType::Text)
}

fn type_in_words(sample: &[u8]) -> String {
    let Some(kind) = magic(sample) else { return "binary data".to_owned() };
    let extension = kind.extension();
    if let Ok(found) = IN_WORDS.binary_search_by_key(&extension, |(extension, _)| extension) {
        return IN_WORDS[found].1.to_owned();
    }
    let noun = match kind.matcher_type() {
        MatcherType::Archive => "archive",
        MatcherType::Audio => "audio",
        MatcherType::Book => "book",
        MatcherType::Doc => "document",
        MatcherType::Font => "font",
        MatcherType::Image => "image",
        MatcherType::Video => "video",
        _ => "data",
    };
    format!("{} {noun}", extension.to_uppercase())
}

#[cfg(test)]
mod tests;
