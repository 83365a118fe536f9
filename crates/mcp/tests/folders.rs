//! The schema files of the tools here are up to date.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::path::Path;

use gripper_mcp::client::{Accounts, Limits, Servers};
use gripper_testkit::cases;

#[tokio::test]
async fn schema_files_are_up_to_date() {
    let servers = Servers::new(Vec::new(), Vec::new(), "/".into(), Limits::default(), Accounts::default());
    for (tool, folder) in gripper_mcp::tools(&servers).iter().zip(["list_mcp_resources", "read_mcp_resource"])
    {
        let schema = serde_json::to_string_pretty(tool.spec().input.value()).unwrap() + "\n";
        cases::check_text(
            &Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(folder).join("schema.json"),
            &schema,
        );
        tool.spec().input.verify().unwrap();
    }
}
