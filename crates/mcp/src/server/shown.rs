//! Tools and results in the protocol's own shapes.

use std::sync::Arc;

use gripper_runtime::{
    Block, CallResult,
    tool::{Kind, ToolSpec},
};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, MetaObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

/// A client that puts this into `_meta` of a call gets the structured form of any result.
const WANTS_STRUCTURED: &str = "gripper/structured";

/// A tool as clients are told of it.
pub(super) fn tool(spec: &ToolSpec) -> Tool {
    let hints = spec.facts.hints;
    let annotations = ToolAnnotations::with_title(spec.title.as_ref())
        .read_only(hints.read_only)
        .destructive(hints.destructive)
        .idempotent(hints.idempotent)
        .open_world(hints.open_world);
    let shown = Tool::new(spec.name.clone(), spec.description.clone(), object(spec.input.value()))
        .with_title(spec.title.as_ref())
        .with_annotations(annotations);
    match &spec.output_schema {
        // A schema is a promise that every result has the structured form.
        Some(schema) if reads_well(spec) => shown.with_raw_output_schema(object(schema)),
        _ => shown,
    }
}

fn object(schema: &Value) -> Arc<JsonObject> {
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}

/// Whether the structured form is a good reading by itself. Some clients show a model nothing else,
/// and file contents or search results in JSON are worse than their text.
fn reads_well(spec: &ToolSpec) -> bool {
    spec.facts.kind == Kind::Other
}

/// Whether this client wants the structured form whatever the tool.
pub(super) fn wants_structured(meta: &JsonObject) -> bool {
    meta.get(WANTS_STRUCTURED) == Some(&Value::Bool(true))
}

/// A result as clients read it.
pub(super) fn result(result: &CallResult, spec: &ToolSpec, structured: bool) -> CallToolResult {
    let content: Vec<ContentBlock> = result.content.iter().map(block).collect();
    let mut shown = CallToolResult::success(content);
    shown.is_error = Some(result.is_error);
    if result.is_error {
        // What it would have to look like is the schema of good results; the words say it all.
        let mut meta = MetaObject::default();
        meta.insert("gripper/errorCode".to_owned(), json!(result.error_code));
        shown.meta = Some(meta);
    } else if structured || (reads_well(spec) && spec.output_schema.is_some()) {
        shown.structured_content = result.structured.clone();
    }
    shown
}

fn block(block: &Block) -> ContentBlock {
    match block {
        Block::Text { text } => ContentBlock::text(text.clone()),
        Block::Image { source } => ContentBlock::image(source.data.to_string(), source.media_type.clone()),
    }
}
