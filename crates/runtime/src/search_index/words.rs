//! Taking text apart into words and folding their endings.

/// Calls `each` with every word of `text` in lower case. Words end at anything that is not a letter or a
/// digit and where camel case begins a new one; scripts written without spaces give a word per character.
pub(super) fn for_each_word(text: &str, each: &mut impl FnMut(&str)) {
    let mut word = String::new();
    let mut finish = |word: &mut String| {
        if !word.is_empty() {
            each(word);
            word.clear();
        }
    };
    let mut before = ' ';
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let ends_acronym = before.is_uppercase() && chars.peek().is_some_and(|next| next.is_lowercase());
        let begins = c.is_uppercase() && (!before.is_uppercase() || ends_acronym);
        if !c.is_alphanumeric() || begins || unspaced(c) {
            finish(&mut word);
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        if unspaced(c) {
            finish(&mut word);
        }
        before = c;
    }
    finish(&mut word);
}

/// Chinese, Japanese and Korean letters.
fn unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}')
}

/// A word without its ending, so that `creates`, `creating` and `create` are one. The result need not be a word;
/// queries and tools only have to come to the same one.
pub(super) fn fold(word: &str) -> String {
    if !word.is_ascii() || word.len() < 4 {
        return word.to_owned();
    }
    if let Some(start) = word.strip_suffix("ies").filter(|start| start.len() > 2) {
        return format!("{start}y");
    }
    let singular = word.strip_suffix('s').filter(|start| !start.ends_with(['s', 'u', 'i']));
    let stem = singular.unwrap_or(word);
    let verb = stem.strip_suffix("ing").or_else(|| stem.strip_suffix("ed")).filter(|start| start.len() > 2);
    match (verb, stem.strip_suffix('e')) {
        (Some(start), _) => undoubled(start).to_owned(),
        (None, Some(start)) if start.len() > 3 => start.to_owned(),
        _ => stem.to_owned(),
    }
}

/// `runn` of `running` becomes `run`; letters that are often doubled in the word itself stay.
fn undoubled(stem: &str) -> &str {
    match stem.as_bytes() {
        [.., before, last] if before == last && !matches!(last, b'l' | b's' | b'z') && stem.len() > 3 => {
            &stem[..stem.len() - 1]
        }
        _ => stem,
    }
}
