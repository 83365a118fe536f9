//! Does a child wait for an answer that nobody will give?

use std::borrow::Cow;

/// No question is longer than this.
const LONGEST: usize = 400;

/// What a question ends with, and which words then make it one; both in small letters.
const QUESTIONS: [(&[&str], &[&str]); 4] = [
    (
        &["[y/n]", "(y/n)", "[n/y]", "[yes/no]", "(yes/no)", "[y|n]", "(y|n)", " y/n", " yes/no", "[y/n/q]"],
        &[""],
    ),
    (&[":"], &["password", "passphrase", "passcode", "enter pin", "verification code", "username", "login"]),
    (
        &["?"],
        &[
            "are you sure",
            "continue",
            "do you want",
            "is this ok",
            "ok to",
            "overwrite",
            "proceed",
            "remove",
            "replace",
            "would you like",
            "(yes/no",
        ],
    ),
    (
        &["", ".", "...", "…"],
        &["press any key", "press enter", "press return", "hit enter", "hit return", "--more--"],
    ),
];

/// The question at the end of an output, if it ends within a line that looks like one.
pub fn looks_like_prompt(tail: &[u8]) -> Option<String> {
    let start = memchr::memrchr(b'\n', tail).map_or(0, |at| at + 1);
    let line = visible(&tail[start..]);
    // What a progress display has overwritten is not part of it.
    let line = line.trim().rsplit('\r').next()?.trim();
    let small = line.to_lowercase();
    // A chosen answer or a mark for the cursor may follow a choice: `[y/N]: `, `(y/n) >`.
    let bare = small.trim_end_matches([' ', ':', '?', '>']);
    let asks = |(ends, words): &(&[&str], &[&str])| {
        let text = if words.contains(&"") { bare } else { &small };
        ends.iter().any(|end| text.ends_with(end)) && words.iter().any(|word| text.contains(word))
    };
    (!line.is_empty() && line.len() <= LONGEST && QUESTIONS.iter().any(asks)).then(|| line.to_owned())
}

/// The text without colours and the like.
fn visible(line: &[u8]) -> Cow<'_, str> {
    let text = String::from_utf8_lossy(line);
    if !text.contains('\x1b') {
        return text;
    }
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest =
        parts.map(|part| part.trim_start_matches(|c: char| !('@'..='~').contains(&c)).get(1..).unwrap_or(""));
    Cow::Owned(rest.fold(first, |text, part| text + part))
}

#[cfg(test)]
mod tests {
    use super::looks_like_prompt;

    #[test]
    fn questions_are_told_from_output() {
        for asks in [
            "[sudo] password for dev: ",
            "Enter passphrase for key '/home/dev/.ssh/id': ",
            "Do you want to continue? [Y/n] ",
            "Really? (y/N): ",
            "Continue connecting (yes/no/[fingerprint])? ",
            "log\nrm: remove write-protected regular file 'x'? ",
            "50%\r99%\rPress any key to continue . . .",
            "\x1b[1mOverwrite x?\x1b[0m ",
            "Username for 'https://example.org': ",
            "Proceed (y/n)?",
        ] {
            assert!(looks_like_prompt(asks.as_bytes()).is_some(), "{asks:?}");
        }
        for other in ["", "done\n", "Continue? [y/N] \n", "compiling", "stopping: ", "why?", "\x1b", "100%\r"]
        {
            assert_eq!(looks_like_prompt(other.as_bytes()), None, "{other:?}");
        }
        assert_eq!(looks_like_prompt(b"a\xff\n\x1b[31mPassword:\x1b[0m "), Some("Password:".into()));
        assert_eq!(looks_like_prompt(&[b'y'; 1 << 20]), None);
    }
}
