//! Output within bounds.

use std::borrow::Cow;

/// The beginning of an output.
#[derive(Debug, Default)]
pub struct Captured {
    /// What was kept.
    pub bytes: Vec<u8>,
    /// How many bytes came after that.
    pub dropped: u64,
}

impl Captured {
    /// What was kept, as text.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.bytes)
    }
}
