//! Single characters in the encodings of files, both ways.

use encoding_rs::{DecoderResult, Encoding, UTF_8, UTF_16BE, UTF_16LE};
use thiserror::Error;

use super::decode::TextForm;

/// The encoding of a file lacks a character of the new text.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error(
    "the file is stored in {encoding}, which has no '{character}' (U+{:04X}); nothing was changed: use \
     characters of that encoding, or convert the file to UTF-8 with a command first",
    u32::from(*character)
)]
pub struct CannotEncode {
    /// The character.
    pub character: char,
    /// The encoding of the file.
    pub encoding: &'static str,
}

/// Appends text in the form of the file.
pub(super) fn push(form: TextForm, text: &str, out: &mut Vec<u8>) -> Result<(), CannotEncode> {
    if form.encoding == UTF_8 {
        out.extend_from_slice(text.as_bytes());
    } else if form.encoding == UTF_16LE {
        out.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    } else if form.encoding == UTF_16BE {
        out.extend(text.encode_utf16().flat_map(u16::to_be_bytes));
    } else {
        push_legacy(form.encoding, text, out)?;
    }
    Ok(())
}

fn push_legacy(encoding: &'static Encoding, text: &str, out: &mut Vec<u8>) -> Result<(), CannotEncode> {
    let mut room = [0; 4];
    for character in text.chars() {
        if character.is_ascii() {
            out.push(character as u8);
            continue;
        }
        let single: &str = character.encode_utf8(&mut room);
        let (bytes, _, missing) = encoding.encode(single);
        // Some encoders write a look-alike, such as a backslash for the yen sign: that is a loss too.
        if missing || encoding.decode_without_bom_handling(&bytes).0 != single {
            return Err(CannotEncode { character, encoding: encoding.name() });
        }
        out.extend_from_slice(&bytes);
    }
    Ok(())
}

/// Decodes the characters of a legacy encoding one by one.
pub(super) struct CharTable {
    encoding: &'static Encoding,
    /// The characters that are one byte, as far as they were asked for.
    singles: [Option<Option<char>>; 256],
}

impl CharTable {
    pub(super) fn of(encoding: &'static Encoding) -> Self {
        Self { encoding, singles: [None; 256] }
    }

    /// The first character and its width in bytes, if there is one.
    pub(super) fn first(&mut self, bytes: &[u8]) -> Option<(char, usize)> {
        let byte = *bytes.first()?;
        let single =
            self.singles[usize::from(byte)].get_or_insert_with(|| decode_one(self.encoding, &[byte]));
        if let Some(character) = *single {
            return Some((character, 1));
        }
        let widest = if self.encoding.is_single_byte() { 1 } else { bytes.len().min(4) };
        (2..=widest).find_map(|width| Some((decode_one(self.encoding, &bytes[..width])?, width)))
    }
}

/// The one character that the bytes are. A code that stands for two characters is none, since an edit could
/// end between them.
fn decode_one(encoding: &'static Encoding, bytes: &[u8]) -> Option<char> {
    let mut room = [0; 16];
    let mut decoder = encoding.new_decoder_without_bom_handling();
    let (result, _, written) = decoder.decode_to_utf8_without_replacement(bytes, &mut room, true);
    let mut characters = std::str::from_utf8(&room[..written]).ok()?.chars();
    let character = characters.next()?;
    (result == DecoderResult::InputEmpty && characters.next().is_none()).then_some(character)
}
