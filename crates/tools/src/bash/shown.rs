//! The output of a command as it is shown: no escape sequences, and of a long one the beginning, the end and
//! the lines between that look like errors.

use gripper_process::output::{Output as Kept, Shown};
use gripper_runtime::{Block, permissions::visible};

use super::Output;

/// The most characters that are shown.
const MOST: usize = 30_000;
/// Of those, for lines from the middle.
const BETWEEN: usize = 4_000;
/// Lines that are longer are not looked through.
const LONGEST_LINE: usize = 1024 * 1024;
/// Words in lines that are worth being seen.
const TELLING: [&str; 7] = ["error", "Error", "ERROR", "FAILED", "panicked", "fatal", "warning:"];

/// Both outputs as they came, and how many characters are left out. `mark` and what follows is not shown.
/// `between` is what of the bytes that are left out is worth being seen.
pub(crate) fn shown(output: Shown, mark: &str, between: &str) -> (String, usize) {
    let lost = output.omitted;
    let text = if lost == 0 {
        plain(&bytes(output), mark)
    } else {
        let (head, tail) = (plain(&output.head, mark), plain(&output.tail, mark));
        format!("{head}\n[… {lost} bytes are left out …]\n{between}{tail}")
    };
    shorten(&text, usize::try_from(lost).unwrap_or(usize::MAX))
}

/// The beginning and the end in one piece.
pub(super) fn bytes(output: Shown) -> Vec<u8> {
    let mut all = output.head;
    all.extend(output.tail);
    all
}

/// What was printed before the mark.
pub(super) fn before<'a>(stdout: &'a [u8], mark: &str) -> &'a [u8] {
    let at = memchr::memmem::rfind(stdout, mark.as_bytes()).filter(|_| !mark.is_empty());
    at.and_then(|at| stdout.get(..at.saturating_sub(1))).unwrap_or(stdout)
}

/// Lines that look like errors among those that are no longer in memory, as far as they are on disk.
pub(super) fn telling_between(output: &Kept, shown: &Shown) -> String {
    let mut telling = String::new();
    let (mut cursor, end) = (shown.head.len() as u64, shown.bytes - shown.tail.len() as u64);
    if shown.omitted == 0 || shown.before_file.is_none() {
        return telling;
    }
    let mut rest: Vec<u8> = Vec::new();
    while cursor < end {
        let (bytes, next, _) = output.since(cursor);
        if next <= cursor {
            break;
        }
        let wanted = usize::try_from(end.saturating_sub(next - bytes.len() as u64)).unwrap_or(bytes.len());
        rest.extend_from_slice(bytes.get(..wanted.min(bytes.len())).unwrap_or_default());
        // What comes after the last line feed is the beginning of a line.
        let whole = memchr::memrchr(b'\n', &rest).map_or(0, |at| at + 1);
        for line in plain(rest.get(..whole).unwrap_or_default(), "").lines() {
            if !keep_telling(&mut telling, line) {
                return telling;
            }
        }
        rest.drain(..whole);
        if rest.len() > LONGEST_LINE {
            rest.clear();
        }
        cursor = next;
    }
    telling
}

/// Adds a line if it looks like an error; false when there is no room for more.
fn keep_telling(telling: &mut String, line: &str) -> bool {
    if TELLING.iter().any(|word| line.contains(word)) {
        let line: String = line.chars().take(300).collect();
        if telling.len() + line.len() > BETWEEN {
            return false;
        }
        telling.push_str(&line);
        telling.push('\n');
    }
    true
}

fn shorten(text: &str, lost: usize) -> (String, usize) {
    let total = text.chars().count();
    if total <= MOST {
        return (text.to_owned(), lost);
    }
    let half = (MOST - BETWEEN) / 2;
    let cut = |count: usize| text.char_indices().nth(count).map_or(text.len(), |(at, _)| at);
    let (head, rest) = text.split_at(cut(half));
    let (middle, tail) = rest.split_at(cut(total - half) - head.len());
    let mut telling = String::new();
    middle.lines().all(|line| keep_telling(&mut telling, line));
    let omitted = middle.chars().count().saturating_sub(telling.chars().count());
    let between = if telling.is_empty() { String::new() } else { format!("{telling}[…]\n") };
    let omitted = omitted + lost;
    (format!("{head}\n[… {omitted} characters are left out …]\n{between}{tail}"), omitted)
}

/// Bytes as text: escape sequences taken out, a line that was written over shown as it ended, and what no
/// terminal shows made visible.
pub(crate) fn plain(bytes: &[u8], mark: &str) -> String {
    let text = String::from_utf8_lossy(bytes);
    let text = match text.rfind(mark) {
        Some(at) if !mark.is_empty() => text.get(..at).map(|text| text.strip_suffix('\n').unwrap_or(text)),
        _ => None,
    }
    .unwrap_or(&text);
    let text = without_escapes(text).replace("\r\n", "\n");
    let lines: Vec<&str> = text.split('\n').map(|line| line.rsplit('\r').next().unwrap_or(line)).collect();
    visible(&lines.join("\n")).into_owned()
}

/// The folder behind the mark.
pub(super) fn marked(stdout: &[u8], mark: &str) -> Option<String> {
    let text = std::str::from_utf8(stdout).ok()?;
    let at = text.rfind(mark).filter(|_| !mark.is_empty())?;
    text.get(at + mark.len()..).filter(|path| path.starts_with('/')).map(str::to_owned)
}

fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        plain.push_str(rest.get(..at).unwrap_or_default());
        let after = rest.get(at + 1..).unwrap_or_default();
        let length = match after.chars().next() {
            // Up to the letter that ends it.
            Some('[') => {
                after.get(1..).unwrap_or_default().find(|c: char| ('@'..='~').contains(&c)).map(|end| end + 2)
            }
            // A title or a link: up to the bell or the string terminator.
            Some(']') => match (after.find('\u{7}'), after.find("\u{1b}\\")) {
                (Some(bell), Some(end)) if bell < end => Some(bell + 1),
                (_, Some(end)) => Some(end + 2),
                (Some(bell), None) => Some(bell + 1),
                (None, None) => None,
            },
            Some('(' | ')') => Some(2),
            Some(other) => Some(other.len_utf8()),
            None => None,
        };
        rest = length.and_then(|length| after.get(length..)).unwrap_or_default();
    }
    plain.push_str(rest);
    plain
}

/// What the model reads.
pub(super) fn blocks(output: &Output) -> Vec<Block> {
    if output.is_image
        && let Some((kind, data)) = picture(&output.stdout)
    {
        return vec![Block::image(kind, data, None)];
    }
    let mut text = output.text.trim_end().to_owned();
    let mut notes: Vec<String> = Vec::new();
    match (output.exit_code, &output.return_code_interpretation) {
        (Some(0), _) | (None, _) => {}
        (Some(code), Some(meaning)) => notes.push(format!("exit code {code}: {meaning}")),
        (Some(code), None) => notes.push(format!("exit code {code}")),
    }
    for denied in &output.denied {
        notes.push(format!("the cage refused {denied}"));
    }
    notes.extend(output.notes.iter().cloned());
    if let Some(path) = &output.raw_output_path {
        notes.push(format!("all of the output is in {}", path.display()));
    }
    if text.is_empty() && notes.is_empty() {
        notes.push("no output".to_owned());
    }
    for note in notes {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&format!("({note})"));
    }
    vec![Block::text(text)]
}

/// The kind and the data of a picture that was printed as a data URI.
pub(crate) fn picture(stdout: &str) -> Option<(String, String)> {
    let rest = stdout.trim().strip_prefix("data:")?;
    let (kind, data) = rest.split_once(";base64,")?;
    let sound = data.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='));
    (kind.starts_with("image/") && sound).then(|| (kind.to_owned(), data.to_owned()))
}
