//! What a server gives back, as blocks.

use gripper_runtime::{Block, ToolOutput};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::{Value, json};

/// Pictures that models take.
const PICTURES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];
/// Largest picture that is passed on, in base64.
const LARGEST_PICTURE: usize = 5 * 1024 * 1024;
/// Largest sound that is passed on, in base64.
const LARGEST_SOUND: usize = 10 * 1024 * 1024;

/// The result of a call.
pub(super) fn output(result: CallToolResult) -> ToolOutput {
    let mut content: Vec<Block> = result.content.into_iter().map(block).collect();
    let structured = result.structured_content;
    // Some servers put everything into the structured part.
    if let (true, Some(value)) = (content.is_empty(), &structured) {
        content.push(Block::text(serde_json::to_string_pretty(value).unwrap_or_default()));
    }
    if content.is_empty() {
        content.push(Block::text("(the tool gave nothing back)"));
    }
    let structured = match (structured, result.meta) {
        (structured, None) => structured,
        (Some(Value::Object(mut map)), Some(meta)) => {
            map.entry("_meta").or_insert(Value::Object(meta.0));
            Some(Value::Object(map))
        }
        (None, Some(meta)) => Some(json!({ "_meta": meta.0 })),
        (other, Some(_)) => other,
    };
    ToolOutput { content, structured, is_error: result.is_error == Some(true), effects: Vec::new() }
}

/// One piece of what a server says.
pub(super) fn block(content: ContentBlock) -> Block {
    match content {
        ContentBlock::Text(text) => Block::text(text.text),
        ContentBlock::Image(image) => picture(image.mime_type, image.data),
        ContentBlock::Audio(audio) if audio.data.len() <= LARGEST_SOUND => {
            Block::audio(audio.mime_type, audio.data)
        }
        ContentBlock::Audio(audio) => Block::text(size_of("audio", Some(&audio.mime_type), &audio.data)),
        ContentBlock::Resource(embedded) => resource(embedded.resource),
        ContentBlock::ResourceLink(link) => {
            let about = link.description.map(|text| format!(": {text}")).unwrap_or_default();
            Block::text(format!("[resource {} at {}, ReadMcpResource reads it]{about}", link.name, link.uri))
        }
        other => Block::text(serde_json::to_string(&other).unwrap_or_default()),
    }
}

/// The content of a resource.
pub(super) fn resource(contents: ResourceContents) -> Block {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => Block::text(format!("[{uri}]\n{text}")),
        ResourceContents::BlobResourceContents { mime_type: Some(kind), blob, .. }
            if PICTURES.contains(&kind.as_str()) =>
        {
            picture(kind, blob)
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            Block::text(format!("[{uri}] {}", size_of("data", mime_type.as_deref(), &blob)))
        }
        other => Block::text(serde_json::to_string(&other).unwrap_or_default()),
    }
}

fn picture(kind: String, data: String) -> Block {
    let fits = PICTURES.contains(&kind.as_str()) && data.len() <= LARGEST_PICTURE;
    if fits { Block::image(kind, data, None) } else { Block::text(size_of("image", Some(&kind), &data)) }
}

/// A line in place of what models cannot take.
fn size_of(what: &str, kind: Option<&str>, data: &str) -> String {
    let kind = kind.map(|kind| format!(" of type {kind}")).unwrap_or_default();
    format!("[{what}{kind}, {} KiB, cannot be shown]", (data.len() / 4 * 3).div_ceil(1024))
}

#[cfg(test)]
mod tests {
    use super::output;
    use serde_json::{Value, json};

    fn mapped(value: Value) -> (String, Option<Value>, bool) {
        let output = output(serde_json::from_value(value).unwrap());
        let text: Vec<String> = output.content.iter().map(ToString::to_string).collect();
        (text.join("|"), output.structured, output.is_error)
    }

    #[test]
    fn every_kind_of_content_becomes_a_block() {
        let (text, structured, failed) = mapped(json!({
            "content": [
                {"type": "text", "text": "hello"},
                {"type": "image", "mimeType": "image/png", "data": "AAAA"},
                {"type": "image", "mimeType": "image/tiff", "data": "AAAA"},
                {"type": "audio", "mimeType": "audio/wav", "data": "AAAA"},
                {"type": "resource", "resource": {"uri": "a://t", "text": "inside"}},
                {"type": "resource", "resource": {"uri": "a://b", "blob": "AAAA"}},
                {"type": "resource", "resource": {"uri": "a://p", "mimeType": "image/png", "blob": "AAAA"}},
                {"type": "resource_link", "uri": "a://l", "name": "far"},
            ],
            "structuredContent": {"n": 1}, "_meta": {"k": "v"}, "isError": true,
        }));
        assert_eq!(
            text,
            "hello|[image: png, 1 KiB]|[image of type image/tiff, 1 KiB, cannot be shown]|[audio: wav, 1 KiB]|\
             [a://t]\ninside|[a://b] [data, 1 KiB, cannot be shown]|[image: png, 1 KiB]|\
             [resource far at a://l, ReadMcpResource reads it]"
        );
        assert_eq!((structured, failed), (Some(json!({"n": 1, "_meta": {"k": "v"}})), true));
    }

    #[test]
    fn structure_alone_is_shown_and_nothing_is_said_so() {
        assert_eq!(mapped(json!({"content": [], "structuredContent": {"n": 1}})).0, "{\n  \"n\": 1\n}");
        assert_eq!(mapped(json!({"content": []})).0, "(the tool gave nothing back)");
    }
}
