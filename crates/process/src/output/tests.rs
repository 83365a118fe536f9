//! Every byte is where it should be, whatever its way.

use std::fs;

use tempfile::TempDir;

use super::{Output, Source};
use crate::live::Keep;

/// Bytes that tell where they are.
fn stream(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

fn fed(keep: Keep, bytes: &[u8], chunk: usize) -> Output {
    let output = Output::new(keep);
    for chunk in bytes.chunks(chunk) {
        output.take(Source::Stdout, chunk);
    }
    output.flush();
    output
}

#[test]
fn head_and_tail_are_the_ends_of_the_stream() {
    let bytes = stream(1000);
    for (head, tail) in [(0, 0), (10, 0), (0, 10), (10, 20), (500, 500), (999, 999), (2000, 2000)] {
        for chunk in [1, 7, 64, 1000] {
            let shown = fed(Keep { head, tail, file: None, quota: 0 }, &bytes, chunk).snapshot();
            assert!(bytes.starts_with(&shown.head) && bytes.ends_with(&shown.tail), "{head} {tail} {chunk}");
            assert_eq!(shown.head.len(), head.min(1000));
            assert_eq!(shown.tail.len(), tail.min(1000 - shown.head.len()));
            assert_eq!(shown.omitted as usize, 1000 - shown.head.len() - shown.tail.len());
        }
    }
}

#[test]
fn new_output_comes_from_memory_or_from_disk_or_is_told_as_lost() {
    let (bytes, folder) = (stream(1000), TempDir::new().unwrap());
    for (quota, chunk, lost_before) in [(4000, 100, 0), (400, 7, 600), (401, 1000, 600), (0, 90, 980)] {
        let file = (quota > 0).then(|| folder.path().join("out"));
        let output = fed(Keep { head: 10, tail: 20, file, quota }, &bytes, chunk);
        for begin in [0, 5, 10, 600, 799, 800, 979, 980, 999, 1000, 5000] {
            let (mut cursor, mut seen, mut lost) = (begin, Vec::new(), false);
            while cursor != 1000 {
                let (more, next, gap) = output.since(cursor);
                seen.extend(more);
                (cursor, lost) = (next, lost || gap);
            }
            assert_eq!(lost, begin < lost_before, "{quota} {chunk} {begin}");
            assert_eq!(seen, bytes[(begin.max(lost_before) as usize).min(1000)..], "{quota} {chunk} {begin}");
        }
        assert_eq!(output.snapshot().before_file, (quota > 0).then_some(lost_before));
    }
}

#[test]
fn a_long_way_back_is_gone_in_steps() {
    let bytes = stream(5 << 19);
    let output = fed(Keep { head: 3 << 20, tail: 0, file: None, quota: 0 }, &bytes, 1 << 16);
    let (first, next, lost) = output.since(1);
    assert_eq!((first.len(), next, lost), (1 << 20, (1 << 20) + 1, false));
    assert_eq!(first, bytes[1..=1 << 20]);
}

#[test]
fn a_file_that_cannot_be_written_is_not_told_of() {
    let output = fed(Keep { file: Some("/no/such/folder/out".into()), ..Keep::default() }, b"x", 1);
    assert_eq!((output.snapshot().before_file, output.snapshot().head), (None, b"x".into()));
}

#[test]
fn what_was_in_the_place_of_the_file_is_replaced_not_followed() {
    let folder = TempDir::new().unwrap();
    let (file, other) = (folder.path().join("out"), folder.path().join("other"));
    fs::write(&other, "mine").unwrap();
    std::os::unix::fs::symlink(&other, &file).unwrap();
    fed(Keep { file: Some(file.clone()), ..Keep::default() }, b"x", 1);
    assert_eq!((fs::read(file).unwrap(), fs::read(other).unwrap()), (b"x".into(), b"mine".into()));
}

#[test]
fn the_last_lines() {
    for (text, count, last) in [
        ("a\nb\nc\n", 2, "b\nc\n"),
        ("a\nb\nc", 2, "b\nc"),
        ("a\nb\n", 9, "a\nb\n"),
        ("a\n", 0, ""),
        ("\n\n", 1, "\n"),
        ("", 3, ""),
    ] {
        assert_eq!(
            fed(Keep::default(), text.as_bytes(), 1).last_lines(count),
            last.as_bytes(),
            "{text:?} {count}"
        );
    }
}
