//! A tool of a server as one of ours.

use std::{
    borrow::Cow,
    collections::HashSet,
    sync::{Arc, Weak},
    time::Duration,
};

use futures::future::BoxFuture;
use gripper_runtime::{
    Access, Call, DynTool, ErrorCode, Place, Resource, ToolError, ToolOutput, Use,
    permissions::Opinion,
    results::Strategy,
    schema::InputSchema,
    tool::{Kind, Loading, ResultBound, ToolSpec, ValidInput},
};
use serde_json::{Value, json};

use super::{call::Asked, names, results, server::Server};

/// Longest description, in bytes.
const DESCRIPTION: usize = 2 * 1024;
/// 25,000 tokens.
const RESULT: usize = 100_000;
/// The most that a tool may ask for.
const LARGEST_RESULT: usize = 500_000;
/// Calls keep their own time, because progress extends it.
const DAY: Duration = Duration::from_secs(86_400);

/// A tool of a server.
pub struct RemoteTool {
    spec: ToolSpec,
    /// The name that the server gives it.
    pub original: String,
    server: Weak<Server>,
    resource: String,
    reads: bool,
}

impl RemoteTool {
    /// The tool under a name that is not in `taken`, and what is wrong with it.
    pub(super) fn new(
        server: &Arc<Server>,
        tool: rmcp::model::Tool,
        taken: &mut HashSet<String>,
    ) -> (Self, Option<String>) {
        let original = tool.name.to_string();
        let name = names::of_tool(&server.slug, &original, taken);
        let description = cut(tool.description.as_deref().unwrap_or_default());
        let open = json!({ "type": "object" });
        let made = |schema| ToolSpec::external(&server.slug, name.clone(), description.clone(), schema);
        let (made, mut complaint) = match made(Value::Object((*tool.input_schema).clone())) {
            Ok(spec) => (Ok(spec), None),
            // What the server itself will check need not be checked here.
            Err(refused) => (made(open), Some(format!("its inputs are not checked here: {refused}"))),
        };
        let mut spec = match made {
            Ok(spec) => spec,
            Err(refused) => {
                complaint = Some(refused.to_string());
                bare(&server.slug, &name)
            }
        };
        spec.aliases.extend(names::original(&server.config.name, &original, &name).map(Cow::Owned));
        let annotations = tool.annotations.unwrap_or_default();
        let title = tool.title.or(annotations.title).unwrap_or_else(|| original.clone());
        spec.title = Cow::Owned(title.chars().take(100).collect());
        spec.output_schema = tool
            .output_schema
            .map(|schema| Value::Object((*schema).clone()))
            .filter(|schema| InputSchema::external(schema.clone()).is_ok());
        let meta = |key: &str| tool.meta.as_ref().and_then(|meta| meta.0.get(&format!("anthropic/{key}")));
        let says = |key: &str| meta(key) == Some(&Value::Bool(true));
        let most =
            meta("maxResultSizeChars").and_then(Value::as_u64).and_then(|most| usize::try_from(most).ok());
        let reads = server.config.trusted && annotations.read_only_hint == Some(true);
        spec.facts.loading = if server.config.always_load || says("alwaysLoad") {
            Loading::Always
        } else {
            Loading::Deferrable
        };
        spec.facts.bound =
            ResultBound::Chars(most.map_or(RESULT, |most| most.clamp(1, LARGEST_RESULT)), Strategy::KeepBoth);
        spec.facts.needs_person = says("requiresUserInteraction");
        spec.facts.time_limit = DAY;
        spec.facts.kind = if reads { Kind::Read } else { Kind::Other };
        let resource = format!("mcp:{}", server.slug);
        (Self { spec, original, server: Arc::downgrade(server), resource, reads }, complaint)
    }
}

/// A spec that takes anything.
fn bare(server: &str, name: &str) -> ToolSpec {
    ToolSpec {
        name: Cow::Owned(name.to_owned()),
        title: Cow::Borrowed(""),
        aliases: Vec::new(),
        search_hint: Cow::Borrowed(""),
        description: Cow::Borrowed(""),
        input: InputSchema::trusted(json!({ "type": "object" })),
        output_schema: None,
        examples: Vec::new(),
        facts: gripper_runtime::Facts::DEFAULT,
        server: Some(server.to_owned()),
    }
}

fn cut(description: &str) -> String {
    if description.len() <= DESCRIPTION {
        return description.to_owned();
    }
    let end = description.floor_char_boundary(DESCRIPTION - '…'.len_utf8());
    format!("{}…", &description[..end])
}

impl DynTool for RemoteTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn access(&self, _input: &ValidInput, _place: &Place) -> Access {
        let how = if self.reads { Use::Read } else { Use::Write };
        Access::nothing().uses(Resource::Outside(self.resource.clone()), how)
    }

    fn opinion(&self, _input: &ValidInput) -> Opinion {
        // Whether it only reads is the server's word; whom it reads for is the person's business.
        let reason = format!("no rule allows {}", self.spec.name).into();
        if self.reads { Opinion::Ask { reason, firm: false } } else { Opinion::None }
    }

    fn summary(&self, input: &ValidInput) -> String {
        let input: String = input.value().to_string().chars().take(200).collect();
        format!("{} {input}", self.spec.title)
    }

    fn run<'a>(
        &'a self,
        input: &'a ValidInput,
        call: &'a Call,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let gone = || ToolError::new(ErrorCode::Disabled, "the server is not configured any more");
            let server = self.server.upgrade().ok_or_else(gone)?;
            let asked = Asked { progress: Some(call.progress.clone()), session: Some(call.session.clone()) };
            let arguments = input.value().as_object().cloned().unwrap_or_default();
            let result = server.call_tool(&self.original, arguments, asked);
            let stopped = || Err(ToolError::new(ErrorCode::Cancelled, "the call was cancelled"));
            Ok(results::output(call.cancel.run_until_cancelled(result).await.unwrap_or_else(stopped)?))
        })
    }
}
