//! Prompts of servers, which people call as `/mcp__server__prompt`.

use std::{collections::HashSet, sync::Arc};

use gripper_runtime::{
    Block, ErrorCode, ToolError, near_names,
    prompts::{Argument, assign},
};
use rmcp::model::{
    ClientRequest, GetPromptRequest, GetPromptRequestParams, GetPromptResult, ListPromptsRequest,
    PaginatedRequestParams, Prompt, Role, ServerResult,
};
use serde_json::Value;

use super::{MOST_PAGES, Servers, call::Asked, names, results, server::Server};

/// Most text of a prompt, in bytes.
const LONGEST: usize = 1024 * 1024;
/// Most prompts of a server.
const MOST: usize = 1_000;

/// A prompt of a server.
#[derive(Debug, Clone)]
pub struct RemotePrompt {
    /// What it is called here, such as `mcp__server__prompt`.
    pub name: String,
    /// What the server calls it.
    pub original: String,
    /// What it is for.
    pub description: String,
    /// What it takes.
    pub arguments: Vec<Argument>,
}

/// A piece of what a prompt says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spoken {
    /// The model is to have said it, not the person.
    pub by_model: bool,
    /// What is said.
    pub block: Block,
}

fn wrong(words: String) -> ToolError {
    ToolError::new(ErrorCode::InvalidInput, words)
}

impl Server {
    /// Its prompts.
    pub async fn prompts(self: &Arc<Self>) -> Result<Vec<RemotePrompt>, ToolError> {
        let (mut prompts, mut taken, mut seen) = (Vec::new(), HashSet::new(), HashSet::new());
        let mut cursor = None;
        for _ in 0..MOST_PAGES {
            let page = PaginatedRequestParams::default().with_cursor(cursor);
            let request = ClientRequest::ListPromptsRequest(ListPromptsRequest::with_param(page));
            let ServerResult::ListPromptsResult(page) = self.ask(request).await? else {
                return Err(ToolError::new(ErrorCode::Failed, "the server's answer is no list of prompts"));
            };
            let new = page.prompts.into_iter().filter(|prompt| seen.insert(prompt.name.clone()));
            prompts.extend(new);
            cursor = page.next_cursor.filter(|_| prompts.len() < MOST);
            if cursor.is_none() {
                break;
            }
        }
        prompts.truncate(MOST);
        // What is called just so keeps the name.
        let plain = |prompt: &&Prompt| names::is_plain_tool(&self.slug, &prompt.name);
        taken.extend(
            prompts.iter().filter(plain).map(|prompt| format!("mcp__{}__{}", self.slug, prompt.name)),
        );
        let told = |prompt: Prompt| RemotePrompt {
            name: names::of_tool(&self.slug, &prompt.name, &mut taken),
            original: prompt.name,
            description: prompt.description.unwrap_or_default(),
            arguments: prompt.arguments.unwrap_or_default().into_iter().map(argument).collect(),
        };
        Ok(prompts.into_iter().map(told).collect())
    }

    async fn get_prompt(
        self: &Arc<Self>,
        prompt: &RemotePrompt,
        given: Vec<(String, String)>,
    ) -> Result<GetPromptResult, ToolError> {
        let arguments = given.into_iter().map(|(name, value)| (name, Value::String(value))).collect();
        let mut params = GetPromptRequestParams::new(&prompt.original).with_arguments(arguments);
        let mut asked = Asked::default();
        let answer = self.negotiate(&mut asked, |(answers, state)| {
            (params.input_responses, params.request_state) = (answers, state);
            ClientRequest::GetPromptRequest(GetPromptRequest::new(params.clone()))
        });
        match answer.await? {
            ServerResult::GetPromptResult(result) => Ok(result),
            _ => Err(self.failed("its answer is no prompt")),
        }
    }
}

fn argument(told: rmcp::model::PromptArgument) -> Argument {
    Argument { name: told.name, description: told.description, required: told.required == Some(true) }
}

impl Servers {
    /// What the prompt of this name says, with what a person wrote behind the name.
    pub async fn prompt(&self, name: &str, line: &str) -> Result<Vec<Spoken>, ToolError> {
        let behind = name.strip_prefix("mcp__").unwrap_or(name);
        let all = self.all();
        let own = |server: &&Arc<Server>| {
            [&server.slug, &server.config.name]
                .iter()
                .any(|own| behind.strip_prefix(own.as_str()).is_some_and(|rest| rest.starts_with("__")))
        };
        let (mut near, mut asked) = (Vec::new(), false);
        for server in all.iter().filter(own) {
            asked = true;
            let prompts = server.prompts().await?;
            let same = |prompt: &&RemotePrompt| {
                let original = names::original(&server.config.name, &prompt.original, &prompt.name);
                prompt.name == name || original.is_some_and(|original| original == name)
            };
            if let Some(prompt) = prompts.iter().find(same) {
                let given = assign(&prompt.arguments, line)
                    .map_err(|why| wrong(format!("/{name} {why}: /{name}{}", usage(prompt))))?;
                return spoken(name, server.get_prompt(prompt, given).await?);
            }
            // What all names begin with makes none of them near.
            let prefix = format!("mcp__{}__", server.slug);
            let names = prompts.iter().filter_map(|prompt| prompt.name.strip_prefix(&prefix));
            let wanted = name.strip_prefix(&prefix).unwrap_or(name);
            near.extend(near_names(names, wanted).iter().map(|near| format!("/{prefix}{near}")));
        }
        if !asked {
            let servers: Vec<&str> = all.iter().take(20).map(|server| server.slug.as_str()).collect();
            let there = match servers.as_slice() {
                [] => "none is configured".to_owned(),
                servers => format!("there are {}", servers.join(", ")),
            };
            return Err(wrong(format!("there is no server for /{name}: {there}")));
        }
        let hint =
            if near.is_empty() { String::new() } else { format!(": did you mean {}?", near.join(", ")) };
        Err(wrong(format!("the server has no prompt for /{name}{hint}")))
    }
}

fn usage(prompt: &RemotePrompt) -> String {
    let one = |argument: &Argument| match argument.required {
        true => format!(" <{}>", argument.name),
        false => format!(" [{}]", argument.name),
    };
    prompt.arguments.iter().map(one).collect()
}

fn spoken(name: &str, result: GetPromptResult) -> Result<Vec<Spoken>, ToolError> {
    let said = result.messages.into_iter().map(|message| Spoken {
        by_model: message.role == Role::Assistant,
        block: results::block(message.content),
    });
    let said: Vec<Spoken> = said.collect();
    let length: usize =
        said.iter().map(|said| if let Block::Text { text } = &said.block { text.len() } else { 0 }).sum();
    if said.is_empty() {
        return Err(ToolError::new(ErrorCode::Failed, format!("/{name} says nothing")));
    }
    if length > LONGEST {
        let words = format!("/{name} says more than {} KiB", LONGEST / 1024);
        return Err(ToolError::new(ErrorCode::TooLarge, words));
    }
    Ok(said)
}
