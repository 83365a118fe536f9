//! What the suite wants and only the protocol's own level can express, made from a table.
#![expect(deprecated, reason = "the suite tests what only earlier revisions have, too")]

use std::{sync::Arc, time::Duration};

use gripper_mcp::server::Server;
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientCapabilities, CompleteRequestParams,
        CompleteResult, ContentBlock, GetPromptRequestParams, GetPromptResponse, GetPromptResult,
        InputRequests, InputRequiredResult, InputResponses, JsonObject, ListPromptsResult,
        ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, LoggingLevel,
        LoggingMessageNotificationParam, PaginatedRequestParams, Prompt, ReadResourceRequestParams,
        ReadResourceResponse, ReadResourceResult, Resource, ResourceContents, ResourceTemplate,
        ServerCapabilities, ServerConfig, SetLevelRequestParams, SubscribeRequestParams, SubscriptionFilter,
        Tool, UnsubscribeRequestParams,
    },
    service::{RequestContext, SubscriptionContext},
};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::broadcast;

const BINARY_URI: &str = "test://static-binary";
const TEMPLATE: &str = "test://template/{id}/data";

/// The fixtures before the front.
pub(crate) struct Fixtures {
    pub(crate) front: Server,
    pub(crate) data: Arc<Value>,
    /// Which list changed.
    pub(crate) changes: broadcast::Sender<String>,
}

fn made<T: DeserializeOwned>(value: Value) -> Result<T, ErrorData> {
    serde_json::from_value(value).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

fn said(words: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(words)]).into()
}

/// The state of a call between rounds, which only this server can make.
fn state(name: &str, round: usize) -> String {
    let secret = format!("{}/{name}/{round}", std::process::id());
    let seal: String = Sha256::digest(secret.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{round}.{seal}")
}

/// Whether an answer has the shape of one to a question of any kind.
fn answers(response: &Value) -> bool {
    ["action", "content", "roots"].iter().any(|field| response.get(field).is_some())
}

/// What is still to be asked; nothing if all rounds are over.
fn missing(
    (name, fixture): (&str, &Value),
    (given, echoed): (Option<&InputResponses>, Option<&String>),
    client: Option<ClientCapabilities>,
) -> Result<Option<InputRequiredResult>, ErrorData> {
    let rounds = fixture["rounds"].as_array().map_or(&[][..], Vec::as_slice);
    let round = match echoed {
        None => 0,
        Some(echoed) => (0..rounds.len())
            .find(|round| state(name, *round) == *echoed)
            .ok_or_else(|| ErrorData::invalid_params("this requestState was not made here", None))?,
    };
    let client = client.unwrap_or_default();
    let can = |method: &str| match method {
        "elicitation/create" => client.elicitation.is_some(),
        "sampling/createMessage" => client.sampling.is_some(),
        _ => client.roots.is_some(),
    };
    for (number, asked) in rounds.iter().enumerate().skip(round) {
        let mut asked: JsonObject = made(asked.clone())?;
        asked.retain(|_, request| can(request["method"].as_str().unwrap_or_default()));
        let answered = |key: &String| given.and_then(|given| given.get(key)).is_some_and(answers);
        if number > round || !asked.keys().all(answered) {
            let requests: InputRequests = made(Value::Object(asked))?;
            return Ok(Some(InputRequiredResult::new(Some(requests), Some(state(name, number)))));
        }
    }
    Ok(None)
}

impl Fixtures {
    async fn call(
        &self,
        fixture: &Value,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let failed = |error: rmcp::ServiceError| ErrorData::internal_error(error.to_string(), None);
        let argument = |name: &str| {
            params.arguments.as_ref().and_then(|all| all.get(name)?.as_str()).unwrap_or_default()
        };
        if let Some(needed) = fixture.get("needs") {
            return Err(ErrorData::missing_required_client_capability(made(needed.clone())?));
        }
        if let Some(list) = fixture["changes"].as_str() {
            self.changes.send(list.to_owned()).ok();
        }
        if let Some(logs) = fixture["logs"].as_array()
            && (context.meta.protocol_version().is_none() || context.meta.log_level().is_some())
        {
            for words in logs {
                let log = LoggingMessageNotificationParam::new(LoggingLevel::Info, words.clone());
                context.peer.notify_logging_message(log).await.map_err(failed)?;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        if let Some(form) = fixture.get("form") {
            let mut form = form.clone();
            if form["message"] == "" {
                form["message"] = argument("message").into();
            }
            let answer = context.peer.create_elicitation(made(form)?).await.map_err(failed)?;
            return Ok(said(format!("User response: {}", json!(answer))));
        }
        if let Some(sample) = fixture.get("sample") {
            let mut sample = sample.clone();
            let content = json!({ "type": "text", "text": argument("prompt") });
            sample["messages"] = json!([{ "role": "user", "content": content }]);
            let answer = context.peer.create_message(made(sample)?).await.map_err(failed)?;
            return Ok(said(format!("LLM response: {}", json!(answer))));
        }
        if let Some(content) = fixture.get("content") {
            return Ok(CallToolResult::success(made(content.clone())?).into());
        }
        let given = (params.input_responses.as_ref(), params.request_state.as_ref());
        match missing((&params.name, fixture), given, context.client_capabilities())? {
            Some(asked) => Ok(asked.into()),
            None => Ok(said(format!("state-ok, with {}", json!(params.input_responses)))),
        }
    }
}

impl ServerHandler for Fixtures {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.front.get_info();
        info.capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_prompts()
            .enable_prompts_list_changed()
            .enable_resources()
            .enable_resources_subscribe()
            .enable_completions()
            .enable_logging()
            .build();
        info
    }

    async fn list_tools(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut all = self.front.list_tools(page, context).await?;
        let schema: Arc<JsonObject> = Arc::new(made(json!({ "type": "object" }))?);
        for (name, _) in self.data["tools"].as_object().into_iter().flatten() {
            all.tools.push(Tool::new(name.clone(), "A fixture of the suite", schema.clone()));
        }
        Ok(all)
    }

    async fn call_tool(
        &self,
        params: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        match self.data["tools"].get(params.name.as_ref()) {
            Some(fixture) => self.call(fixture, params, context).await,
            None => self.front.call_tool(params, context).await,
        }
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let prompt = |(name, fixture): (&String, &Value)| {
            let arguments = serde_json::from_value(fixture["arguments"].clone()).ok();
            Prompt::new(name.clone(), Some("A fixture of the suite"), arguments)
        };
        let all = self.data["prompts"].as_object().into_iter().flatten().map(prompt);
        Ok(ListPromptsResult::with_all_items(all.collect()))
    }

    async fn get_prompt(
        &self,
        params: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let Some(fixture) = self.data["prompts"].get(&params.name) else {
            return Err(ErrorData::invalid_params("there is no such prompt", None));
        };
        let given = (params.input_responses.as_ref(), params.request_state.as_ref());
        if let Some(asked) = missing((&params.name, fixture), given, context.client_capabilities())? {
            return Ok(asked.into());
        }
        let mut messages = fixture["messages"].to_string();
        for (name, value) in params.arguments.iter().flatten() {
            messages = messages.replace(&format!("{{{name}}}"), value.as_str().unwrap_or_default());
        }
        let messages = serde_json::from_str(&messages)
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        Ok(GetPromptResult::new(messages).into())
    }

    async fn complete(
        &self,
        _params: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Ok(CompleteResult::default())
    }

    async fn set_level(
        &self,
        params: SetLevelRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.front.set_level(params, context).await
    }

    async fn subscribe(
        &self,
        _params: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _params: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, subscription: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes.subscribe();
        loop {
            let change = tokio::select! {
                () = subscription.cancelled() => return Ok(()),
                change = changes.recv() => change,
            };
            // What the client did not ask for is held back by the sink itself.
            match change.as_deref() {
                Ok("tools") => subscription.sink().notify_tool_list_changed().await.ok(),
                Ok(_) => subscription.sink().notify_prompt_list_changed().await.ok(),
                Err(_) => return Ok(()),
            };
        }
    }

    async fn list_resources(
        &self,
        page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut all = self.front.list_resources(page, context).await?;
        let binary = Resource::new(BINARY_URI, "picture").with_description("A picture");
        all.resources.push(binary.with_mime_type("image/png"));
        Ok(all)
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new(TEMPLATE, "template").with_mime_type("application/json");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        params: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let id = params.uri.strip_prefix("test://template/").and_then(|rest| rest.strip_suffix("/data"));
        let contents = match id {
            Some(id) => {
                let made = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
                ResourceContents::text(made.to_string(), params.uri).with_mime_type("application/json")
            }
            None if params.uri == BINARY_URI => {
                let png = self.data["png"].as_str().unwrap_or_default();
                ResourceContents::blob(png, params.uri).with_mime_type("image/png")
            }
            None => return self.front.read_resource(params, context).await,
        };
        Ok(ReadResourceResult::new(vec![contents]).into())
    }
}
