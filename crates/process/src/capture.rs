//! Output within bounds.

use std::borrow::Cow;

use tokio::io::{AsyncRead, AsyncReadExt};

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

    /// Reads to the end, so that the writer never blocks, and keeps the first `keep` bytes.
    pub(crate) async fn fill(&mut self, mut pipe: impl AsyncRead + Unpin, keep: usize) {
        let mut buffer = vec![0; 64 * 1024];
        // A pipe that fails has nothing more to say.
        while let Ok(count @ 1..) = pipe.read(&mut buffer).await {
            let room = keep.saturating_sub(self.bytes.len()).min(count);
            self.bytes.extend_from_slice(&buffer[..room]);
            self.dropped += (count - room) as u64;
        }
    }
}
