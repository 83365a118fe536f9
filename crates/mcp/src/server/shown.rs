//! Tools and results in the protocol's own shapes.

use std::sync::Arc;

use gripper_runtime::{
    Block, CallResult, prompts,
    tool::{Kind, ToolSpec},
};
use rmcp::model::{
    CallToolResult, ContentBlock, JsonObject, MetaObject, Prompt, PromptArgument, Tool, ToolAnnotations,
};
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
    let input = schema(spec, spec.input.value(), Side::Input);
    let shown = Tool::new(spec.name.clone(), spec.description.clone(), input)
        .with_title(spec.title.as_ref())
        .with_annotations(annotations);
    match &spec.output_schema {
        // A schema is a promise that every result has the structured form.
        Some(output) if reads_well(spec) => shown.with_raw_output_schema(schema(spec, output, Side::Output)),
        _ => shown,
    }
}

/// A prompt as clients are told of it.
pub(super) fn prompt(prompt: &prompts::Prompt) -> Prompt {
    let argument = |argument: prompts::Argument| {
        let shown = PromptArgument::new(argument.name).with_required(argument.required);
        match argument.description {
            Some(description) => shown.with_description(description),
            None => shown,
        }
    };
    let arguments = prompt.arguments().into_iter().map(argument).collect();
    Prompt::new(&prompt.name, Some(&prompt.description), Some(arguments))
}

/// What a schema is of.
#[derive(Clone, Copy)]
enum Side {
    Input,
    Output,
}

/// A schema as clients are told. Ours are said in the words that all of them know; those of other
/// servers are passed on as they are.
fn schema(spec: &ToolSpec, schema: &Value, side: Side) -> Arc<JsonObject> {
    let mut shown = schema.as_object().cloned().unwrap_or_default();
    if spec.server.is_none() {
        make_portable(&mut shown, side);
    }
    Arc::new(shown)
}

fn make_portable(schema: &mut JsonObject, side: Side) {
    // Names of Rust's numbers mean nothing to anybody else.
    let foreign =
        |format: &str| ["int", "uint", "float", "double"].iter().any(|name| format.starts_with(name));
    if schema.get("format").and_then(Value::as_str).is_some_and(foreign) {
        schema.shift_remove("format");
    }
    if let Some([kind, Value::String(null)]) = schema.get("type").and_then(Value::as_array).map(Vec::as_slice)
        && null == "null"
    {
        let kind = kind.clone();
        match side {
            // Whatever may be null may be left out, and that needs no word.
            Side::Input => schema.insert("type".to_owned(), kind),
            Side::Output => {
                schema.shift_remove("type");
                schema.insert("anyOf".to_owned(), json!([{ "type": kind }, { "type": "null" }]))
            }
        };
    }
    for (_, part) in schema.iter_mut() {
        match part {
            Value::Object(part) => make_portable(part, side),
            Value::Array(parts) => {
                parts.iter_mut().filter_map(Value::as_object_mut).for_each(|part| make_portable(part, side));
            }
            _ => {}
        }
    }
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
        Block::Audio { source } => ContentBlock::audio(source.data.to_string(), source.media_type.clone()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Side, make_portable};

    #[test]
    fn schemas_use_words_that_every_client_knows() {
        let schema = json!({
            "properties": {
                "type": { "type": ["integer", "null"], "format": "uint64", "minimum": 1 },
                "format": { "type": "string", "format": "uri" },
            },
            "anyOf": [{ "type": ["string", "null"] }],
        });
        let shown = |side| {
            let mut shown = schema.as_object().cloned().unwrap();
            make_portable(&mut shown, side);
            (
                shown["properties"]["type"].clone(),
                shown["anyOf"][0].clone(),
                shown["properties"]["format"].clone(),
            )
        };
        let uri = json!({ "type": "string", "format": "uri" });
        let input = (json!({ "type": "integer", "minimum": 1 }), json!({ "type": "string" }), uri.clone());
        assert_eq!(shown(Side::Input), input);
        let nullable = |kind: &str| json!([{ "type": kind }, { "type": "null" }]);
        let number = json!({ "minimum": 1, "anyOf": nullable("integer") });
        assert_eq!(shown(Side::Output), (number, json!({ "anyOf": nullable("string") }), uri));
    }
}
