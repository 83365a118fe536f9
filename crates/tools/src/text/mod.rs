//! The text of files as bytes: telling text from binary, decoding it, changing it without touching the rest.

pub(crate) mod decode;
pub(crate) mod sniff;
