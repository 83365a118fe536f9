//! One line of the log: how it is made, sealed and opened again.

use std::borrow::Cow;
use std::fmt::Write;

use chrono::{DateTime, SecondsFormat, Utc};
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::redact::redact_value;

/// Longest string in a record, in bytes.
const STRING_BYTES: usize = 16 * 1024;

/// Field size in bytes of JSON over which only the beginning of the field is kept, as a string.
const FIELD_BYTES: usize = 64 * 1024;

/// Longest line, in bytes, with its newline.
pub(super) const LINE_BYTES: usize = 256 * 1024;

/// Room in a line for what is not the caller's body.
const FRAME_BYTES: usize = 4 * 1024;

/// Longest session name and kind, in bytes.
const WORD_BYTES: usize = 200;

/// Kinds that only the log itself writes, because the verifier believes what they say.
pub(super) const RECOVERED: &str = "recovered";
pub(super) const LOST: &str = "lost";
pub(super) const PRUNED: &str = "pruned";

/// Fields of every line. Those of the body must not pass for them.
const FRAME: &[&str] = &["seq", "time", "session", "kind", "prev", "hash"];

const BEFORE_HASH: &str = ",\"hash\":\"";
const AFTER_HASH: &str = "\"}";
const HASH_CHARS: usize = 64;

/// The end of the chain: number and hash of the newest line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    pub(super) seq: u64,
    pub(super) hash: String,
}

impl Mark {
    /// Before the first line.
    pub(super) fn genesis() -> Self {
        Self { seq: 0, hash: "0".repeat(HASH_CHARS) }
    }
}

/// The fields of a line that make the chain.
#[derive(Debug, Deserialize)]
pub(super) struct Frame {
    pub(super) seq: u64,
    pub(super) time: String,
    pub(super) kind: String,
    pub(super) prev: String,
    pub(super) hash: String,
}

/// A kind as a caller may use it.
pub(super) fn callers_kind(kind: &str) -> Cow<'_, str> {
    if [RECOVERED, LOST, PRUNED].contains(&kind) { Cow::Owned(format!("caller_{kind}")) } else { kind.into() }
}

/// Everything between number and hashes, redacted and bounded: all that can be done before the lock is held.
pub(super) fn middle(time: &DateTime<Utc>, session: &str, kind: &str, body: Map<String, Value>) -> String {
    let time = time.to_rfc3339_opts(SecondsFormat::Millis, true);
    let mut out = String::with_capacity(256);
    for (name, value) in [("time", time.as_str()), ("session", session), ("kind", kind)] {
        push_field(&mut out, name, &Value::from(bounded(value, WORD_BYTES)).to_string());
    }
    let mut body = Value::Object(body);
    redact_value(&mut body);
    bound_strings(&mut body);
    let Value::Object(body) = body else { return out };
    let mut left_out = 0_usize;
    for (name, value) in body {
        let name = if FRAME.contains(&name.as_str()) { format!("body_{name}") } else { name };
        let mut json = value.to_string();
        if json.len() > FIELD_BYTES {
            json = Value::from(bounded(&json, STRING_BYTES)).to_string();
        }
        if out.len() + name.len() * 6 + json.len() > LINE_BYTES - FRAME_BYTES {
            left_out += 1;
        } else {
            push_field(&mut out, &name, &json);
        }
    }
    if left_out > 0 {
        push_field(&mut out, "fields_left_out", &left_out.to_string());
    }
    out
}

fn push_field(out: &mut String, name: &str, json: &str) {
    if !out.is_empty() {
        out.push(',');
    }
    // Writing to a String cannot fail.
    let _ = write!(out, "{}:{json}", Value::from(name));
}

fn bound_strings(value: &mut Value) {
    match value {
        Value::String(text) if text.len() > STRING_BYTES => *text = bounded(text, STRING_BYTES).into_owned(),
        Value::Array(items) => items.iter_mut().for_each(bound_strings),
        Value::Object(members) => members.values_mut().for_each(bound_strings),
        _ => {}
    }
}

fn bounded(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let kept = &text[..text.floor_char_boundary(most)];
    Cow::Owned(format!("{kept} [{} bytes left out]", text.len() - kept.len()))
}

/// Makes the line that follows `end`, and moves `end` behind it.
pub(super) fn seal(end: &mut Mark, middle: &str) -> String {
    let seq = end.seq + 1;
    let open = format!("{{\"seq\":{seq},{middle},\"prev\":\"{}\"", end.hash);
    let hash = chain_hash(&end.hash, open.as_bytes());
    let line = format!("{open}{BEFORE_HASH}{hash}{AFTER_HASH}\n");
    *end = Mark { seq, hash };
    line
}

/// Opens a line (without its newline) and checks its own hash, or says in plain words what is wrong with it.
pub(super) fn open(line: &[u8]) -> Result<Frame, String> {
    let frame: Frame =
        serde_json::from_slice(line).map_err(|_| "this is not a line of an audit log".to_owned())?;
    let seal = format!("{BEFORE_HASH}{}{AFTER_HASH}", frame.hash);
    let Some(open) = line.strip_suffix(seal.as_bytes()) else {
        return Err("the line does not end with its hash".to_owned());
    };
    if chain_hash(&frame.prev, open) == frame.hash {
        Ok(frame)
    } else {
        Err("the line was changed: its hash does not fit its content".to_owned())
    }
}

/// SHA-256 over the hash of the line before and the line's own bytes without the hash field.
fn chain_hash(prev: &str, open: &[u8]) -> String {
    hex(Sha256::new().chain_update(prev).chain_update(open).chain_update("}").finalize().as_slice())
}

/// SHA-256 in hexadecimal.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    hex(Sha256::digest(bytes).as_slice())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}
