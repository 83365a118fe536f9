//! What the model has seen of files through the output of a command such as `cat`.

use gripper_runtime::{
    Call, Located,
    files::{
        Snapshot,
        ledger::{Content, Evidence, KEPT_BYTES, Seen},
    },
    permissions::{EffectKind, Target, Verdict},
    tool::SessionEffect,
};
use memchr::{memchr_iter, memmem};

/// Programs that print files, or lines of them, as they are.
const PRINTERS: [&str; 6] = ["cat", "head", "tail", "sed", "cd", "true"];

/// The files that were printed, all of them or some lines. What was printed is compared with the files, so
/// that no option has to be understood.
pub(super) fn seen(call: &Call, stdout: &[u8]) -> Vec<SessionEffect> {
    files(call, stdout)
        .unwrap_or_default()
        .into_iter()
        .map(|seen| SessionEffect::FileSeen(Box::new(seen)))
        .collect()
}

fn files(call: &Call, stdout: &[u8]) -> Option<Vec<Seen>> {
    let analysis = &call.access.command_use()?.analysis;
    let prints = |name: Option<&str>| name.is_some_and(|name| PRINTERS.contains(&name));
    let parts = analysis.parts();
    if analysis.verdict() != Verdict::ReadOnly
        || !parts.iter().all(|part| prints(part.argv.first().and_then(|word| word.literal())))
    {
        return None;
    }
    let mut files: Vec<Snapshot> = Vec::new();
    for effect in analysis.effects() {
        let EffectKind::Read(Target::Path(path)) = &effect.kind else { continue };
        let path: Located = call.place.locate(path.as_ref());
        files.push(Snapshot::take(&path, KEPT_BYTES as u64).ok()?);
    }
    let whole: Vec<u8> = files.iter().flat_map(|file| file.bytes.iter().copied()).collect();
    if whole == stdout && !files.is_empty() {
        return Some(files.iter().map(|file| note(file, None)).collect());
    }
    let [file] = files.as_slice() else { return None };
    Some(vec![note(file, Some(lines(&file.bytes, stdout)?))])
}

fn note(file: &Snapshot, lines: Option<(u64, u64)>) -> Seen {
    Seen {
        path: file.path.real.clone(),
        stamp: file.stamp,
        content: Content::of(&file.bytes),
        lines,
        evidence: Evidence::Shell,
    }
}

/// Which lines of a file a text is: the first and the last. Nothing if it may be several places.
fn lines(file: &[u8], text: &[u8]) -> Option<(u64, u64)> {
    if text.is_empty() {
        return None;
    }
    let starts = |at: usize| at == 0 || file.get(at - 1) == Some(&b'\n');
    let ends = |at: usize| at == file.len() || file.get(at - 1) == Some(&b'\n');
    let mut places = memmem::find_iter(file, text).filter(|at| starts(*at) && ends(at + text.len()));
    let (at, None) = (places.next()?, places.next()) else { return None };
    let count = |bytes: &[u8]| memchr_iter(b'\n', bytes).count() as u64;
    let first = count(file.get(..at)?) + 1;
    let last = if at + text.len() == file.len() { u64::MAX } else { first + count(text) - 1 };
    Some((first, last))
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn printed_lines_are_found_again() {
        let file = b"a\nb\nc\nb\nlast";
        let table = [
            ("a\nb\n", Some((1, 2))),
            ("c\n", Some((3, 3))),
            ("b\n", None),
            ("b\nlast", Some((4, u64::MAX))),
            ("\nb", None),
            ("las", None),
            ("", None),
        ];
        for (text, expected) in table {
            assert_eq!(lines(file, text.as_bytes()), expected, "{text}");
        }
    }
}
