//! Characters that deceive a reader: controls, bidirectional overrides, invisible marks.

use std::borrow::Cow;

/// Ranges that are invisible or reorder their neighbours, with the name a person reads.
/// Sorted by first character; a test guards the order. Tab and newline are layout, not deceit,
/// and are left out on purpose.
const TABLE: &[(char, char, &str)] = &[
    ('\u{0}', '\u{8}', "control character"),
    ('\u{b}', '\u{1f}', "control character"),
    ('\u{7f}', '\u{9f}', "control character"),
    ('\u{ad}', '\u{ad}', "soft hyphen"),
    ('\u{34f}', '\u{34f}', "combining grapheme joiner"),
    ('\u{61c}', '\u{61c}', "Arabic letter mark"),
    ('\u{115f}', '\u{1160}', "Hangul filler"),
    ('\u{17b4}', '\u{17b5}', "invisible Khmer vowel"),
    ('\u{180b}', '\u{180f}', "Mongolian separator"),
    ('\u{200b}', '\u{200b}', "zero-width space"),
    ('\u{200c}', '\u{200d}', "zero-width joiner"),
    ('\u{200e}', '\u{200f}', "direction mark"),
    ('\u{2028}', '\u{2029}', "Unicode line separator"),
    ('\u{202a}', '\u{202c}', "bidirectional embedding"),
    ('\u{202d}', '\u{202d}', "left-to-right override"),
    ('\u{202e}', '\u{202e}', "right-to-left override"),
    ('\u{2060}', '\u{2064}', "invisible operator"),
    ('\u{2065}', '\u{2069}', "bidirectional isolate"),
    ('\u{206a}', '\u{206f}', "deprecated format character"),
    ('\u{3164}', '\u{3164}', "Hangul filler"),
    ('\u{fe00}', '\u{fe0f}', "variation selector"),
    ('\u{feff}', '\u{feff}', "byte order mark"),
    ('\u{ffa0}', '\u{ffa0}', "Hangul filler"),
    ('\u{fff9}', '\u{fffb}', "interlinear annotation"),
    ('\u{e0000}', '\u{e007f}', "tag character"),
    ('\u{e0100}', '\u{e01ef}', "variation selector"),
];

/// One hidden character and where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hidden {
    /// Byte offset in the text.
    pub at: usize,
    /// The character itself.
    pub character: char,
}

impl Hidden {
    /// What the character is called, for messages.
    pub fn name(self) -> &'static str {
        name_of(self.character).unwrap_or("hidden character")
    }
}

/// Every hidden character of `text`, in order.
pub fn find(text: &str) -> Vec<Hidden> {
    text.char_indices()
        .filter(|&(_, character)| name_of(character).is_some())
        .map(|(at, character)| Hidden { at, character })
        .collect()
}

/// `text` with every hidden character written as an escape, so that what a person sees on a
/// terminal is what is there. Borrowed when there is nothing to escape.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(|character| name_of(character).is_some()) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if name_of(character).is_some() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

fn name_of(character: char) -> Option<&'static str> {
    if (' '..='~').contains(&character) {
        return None;
    }
    let after = TABLE.partition_point(|&(first, _, _)| first <= character);
    let (_, last, name) = TABLE.get(after.checked_sub(1)?)?;
    (character <= *last).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::{TABLE, find, visible};

    #[test]
    fn table_is_sorted_and_ranges_do_not_overlap() {
        for pair in TABLE.windows(2) {
            assert!(pair[0].1 < pair[1].0, "{:?} and {:?} are out of order", pair[0], pair[1]);
        }
    }

    #[test]
    fn plain_text_in_any_script_is_left_alone() {
        for text in ["ls -la\n\tx", "größe", "日本語", "العربية", "emoji 🎉"] {
            assert!(find(text).is_empty(), "{text}");
            assert_eq!(visible(text), text);
        }
    }

    #[test]
    fn hidden_characters_are_found_where_they_stand() {
        let found = find("a\u{1b}b\u{200b}");
        assert_eq!(found.iter().map(|hidden| hidden.at).collect::<Vec<_>>(), [1, 3]);
        assert_eq!(found[0].name(), "control character");
        assert_eq!(found[1].name(), "zero-width space");
    }

    #[test]
    fn carriage_return_and_escape_are_shown() {
        assert_eq!(visible("a\rb\u{1b}[2J"), r"a\rb\u{1b}[2J");
    }
}
