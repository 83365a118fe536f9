//! What the suite wants and our tools can do.

use std::{sync::Arc, time::Duration};

use gripper_runtime::{
    Access, Block, DynTool, ErrorCode, Facts, Registry, ToolError, ToolOutput, Toolbox,
    approve::Approver,
    permissions::{Mode, Policy},
    tool::Progress,
};
use gripper_testkit::{Probe, text};
use serde_json::{Value, json};

/// Steps of the tool that reports how far it is.
const STEPS: [f64; 3] = [0.0, 50.0, 100.0];

/// A toolbox with them.
pub(crate) fn toolbox(data: &Value, approver: Arc<dyn Approver>) -> Result<Arc<Toolbox>, String> {
    let header = json!({
        "type": "object",
        "properties": { "region": { "type": "string", "x-mcp-header": "Region" } },
    });
    let tools = [
        simple("test_simple_text", Block::text("This is a simple text response for testing.")),
        simple(
            "test_image_content",
            Block::image("image/png", data["png"].as_str().unwrap_or_default(), None),
        ),
        fails("test_error_handling"),
        progress("test_tool_with_progress"),
        Probe::external("suite", "json_schema_2020_12_tool", "A rich schema", data["schema"].clone()),
        Probe::external("suite", "test_header", "A parameter that is a header too", header),
    ];
    let mut registry = Registry::default();
    for tool in tools {
        registry.register(tool).map_err(|error| error.to_string())?;
    }
    let policy = Policy::new("/").with_mode(Mode::BypassPermissions);
    Ok(Toolbox::builder(registry, policy).approver(approver).build())
}

fn simple(name: &'static str, block: Block) -> Arc<dyn DynTool> {
    Probe::tool(
        name,
        Facts::DEFAULT,
        |_| Access::nothing(),
        move |_, _| {
            let content = vec![block.clone()];
            Box::pin(async { Ok(ToolOutput { content, ..ToolOutput::default() }) })
        },
    )
}

fn fails(name: &'static str) -> Arc<dyn DynTool> {
    Probe::tool(
        name,
        Facts::DEFAULT,
        |_| Access::nothing(),
        |_, _| {
            let words = "This tool intentionally returns an error for testing";
            Box::pin(async move { Err(ToolError::new(ErrorCode::Failed, words)) })
        },
    )
}

fn progress(name: &'static str) -> Arc<dyn DynTool> {
    Probe::tool(
        name,
        Facts::DEFAULT,
        |_| Access::nothing(),
        |_, call| {
            Box::pin(async move {
                for done in STEPS {
                    let message = format!("{done} of 100");
                    call.progress.report(Progress { message, done: Some(done), total: Some(100.0) });
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Ok(text("all steps done"))
            })
        },
    )
}
