//! perl: only the one form that is an edit in place and nothing else, `perl -pi -e 's/…/…/' files`.

use super::Cursor;
use crate::value::Argument;

/// What may stand around the three fields of a replacement here.
const DELIMITERS: &[u8] = b"/|#,!:%";

/// The parts of such a command line.
#[derive(Debug)]
pub(crate) struct PerlEdit<'a> {
    /// The program.
    pub(crate) script: String,
    /// What is put behind the names of the files as they were; empty if they are not kept.
    pub(crate) suffix: &'a str,
    /// The files.
    pub(crate) files: &'a [Argument],
}

/// Takes a command line apart, the program's name first. Nothing for any other use of perl.
pub(super) fn in_place(arguments: &[Argument]) -> Option<PerlEdit<'_>> {
    let (mut scripts, mut prints, mut suffix) = (Vec::new(), false, None);
    let mut at = 1;
    loop {
        let word = arguments.get(at)?.literal()?;
        let Some(letters) = word.strip_prefix('-') else { break };
        at += 1;
        if letters == "-" {
            break;
        }
        let mut rest = letters;
        while let Some(letter) = rest.chars().next() {
            rest = rest.get(1..)?;
            match letter {
                'p' => prints = true,
                'w' => {}
                'l' | '0' => rest = rest.trim_start_matches(|c: char| c.is_digit(8)),
                'i' => suffix = Some(std::mem::take(&mut rest)),
                'e' if rest.is_empty() => {
                    scripts.push(arguments.get(at)?.literal()?);
                    at += 1;
                }
                'e' => scripts.push(std::mem::take(&mut rest)),
                _ => return None,
            }
        }
    }
    let suffix = suffix?;
    let files = arguments.get(at..)?;
    let sound = prints && !scripts.is_empty() && !files.is_empty() && files.iter().all(is_plain_file);
    let script = scripts.join("\n");
    let harmless = !suffix.contains(['*', '/']) && only_replaces(&script);
    (sound && harmless).then_some(PerlEdit { script, suffix, files })
}

/// Perl opens its operands as its two-argument `open` does: some signs in a name make it a command.
fn is_plain_file(file: &Argument) -> bool {
    let plain = |c: char| c.is_alphanumeric() || "/._-+@%,=".contains(c);
    file.literal().is_some_and(|name| name != "-" && !name.starts_with(['+', '=']) && name.chars().all(plain))
}

/// Whether a program is made of `s///`, `tr///` and `y///` alone, with nothing in them that is run.
fn only_replaces(script: &str) -> bool {
    let mut cursor = Cursor::new(script);
    loop {
        cursor.skip_while(|byte| b"; \t\n".contains(&byte));
        if cursor.peek().is_none() {
            return true;
        }
        let replaces = cursor.eat("s");
        if !replaces && !cursor.eat("tr") && !cursor.eat("y") {
            return false;
        }
        let flags: &[u8] = if replaces { b"gimsx" } else { b"cds" };
        let Some(end) = cursor.bump().filter(|byte| DELIMITERS.contains(byte)) else { return false };
        let (Some(from), Some(to)) = (field(script, &mut cursor, end), field(script, &mut cursor, end))
        else {
            return false;
        };
        if replaces && !(interpolates_nothing(from, true) && interpolates_nothing(to, false)) {
            return false;
        }
        cursor.skip_while(|byte| flags.contains(&byte));
        cursor.skip_while(|byte| b" \t\n".contains(&byte));
        if cursor.peek().is_some_and(|byte| byte != b';') {
            return false;
        }
    }
}

/// The text up to the next delimiter that no backslash hides.
fn field<'a>(script: &'a str, cursor: &mut Cursor<'_>, end: u8) -> Option<&'a str> {
    let start = cursor.at;
    loop {
        match cursor.peek()? {
            b'\\' => cursor.at += 2,
            byte if byte == end => break,
            _ => cursor.at += 1,
        }
    }
    let text = script.get(start..cursor.at)?;
    cursor.at += 1;
    Some(text)
}

/// Whether a field holds no code: variables can have subscripts, and those are code; so only what was
/// matched may stand there, and a dollar sign that means the end of a line.
fn interpolates_nothing(text: &str, pattern: bool) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        at += 1;
        let next = bytes.get(at);
        match byte {
            b'\\' => at += 1,
            b'@' => return false,
            b'(' if pattern && next == Some(&b'*') => return false,
            b'(' if pattern
                && next == Some(&b'?')
                && !bytes.get(at + 1).is_some_and(|kind| b":=!<".contains(kind)) =>
            {
                return false;
            }
            b'$' if pattern && next.is_none_or(|next| b")|".contains(next)) => {}
            b'$' => {
                let digits = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
                let length = if next == Some(&b'&') { 1 } else { digits };
                at += length;
                if length == 0 || bytes.get(at).is_some_and(|after| b"[{-:'".contains(after)) {
                    return false;
                }
            }
            _ => {}
        }
    }
    true
}
