//! How long a conversation is.

use crate::message::{Content, Message};

/// About how many tokens a message takes: four bytes each, and what providers count for a picture.
pub(crate) fn estimate(message: &Message) -> u64 {
    message.content.iter().map(size_of_block).sum::<u64>() / 4
}

fn size_of_block(block: &Content) -> u64 {
    const PICTURE: u64 = 1_600 * 4;
    let length = match block {
        Content::Text { text } => text.len(),
        Content::Thinking { thinking, signature } => thinking.len() + signature.len(),
        Content::ToolUse { name, input, .. } => name.len() + input.text().len(),
        Content::ToolResult { content, .. } => return content.iter().map(size_of_block).sum::<u64>() + 40,
        Content::Image { .. } | Content::Document { .. } => return PICTURE,
        Content::Other(value) => value.to_string().len(),
    };
    length as u64
}
