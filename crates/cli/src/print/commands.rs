//! Prompts by name: `/review 12` stands for the text of a file, or for what a server says.

use std::sync::Arc;

use gripper_agent::message::{Content, Message};
use gripper_mcp::client::{Servers, Spoken};
use gripper_runtime::{
    ErrorCode, ToolError,
    prompts::{Prompt, PromptWatch},
};
use serde_json::{Value, json};

use super::complain;
use crate::{exit::Exit, session::Session};

/// Longest name that is looked for.
const LONGEST_NAME: usize = 200;

/// The prompts of the person, of the project and of servers.
pub(super) struct Commands {
    own: PromptWatch,
    servers: Arc<Servers>,
    /// What is wrong with them was said.
    said: bool,
}

impl Commands {
    pub(super) fn of(session: &Session) -> anyhow::Result<Self> {
        Ok(Self {
            own: PromptWatch::start(session.sources()?),
            servers: session.servers.clone(),
            said: false,
        })
    }

    /// The names of those that are known without asking servers.
    pub(super) fn names(&self) -> Vec<String> {
        self.own.known().iter().map(|prompt| prompt.name.clone()).collect()
    }

    /// The same, with what they are for and what they take.
    pub(super) fn told(&self) -> Vec<Value> {
        let told = |prompt: &Prompt| json!({ "name": prompt.name, "description": prompt.description, "argumentHint": prompt.hint() });
        self.own.known().iter().map(told).collect()
    }

    /// What the model is given for what a person said: the same, or the prompt that it names.
    /// An error says how the process should end because of it, and why.
    pub(super) async fn meant(&mut self, mut message: Message) -> Result<Message, (Exit, String)> {
        let Some(Content::Text { text }) = message.content.first() else { return Ok(message) };
        let Some((name, line)) = called(text) else { return Ok(message) };
        let prompts = self.own.look().clone();
        if !std::mem::replace(&mut self.said, true) {
            complain(&prompts.diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>());
        }
        let content = if let Some(prompt) = prompts.get(name) {
            vec![Content::text(prompt.filled_from(line).map_err(|why| (Exit::Usage, why))?)]
        } else if name.starts_with("mcp__") {
            let wrong = |error: ToolError| match error.code {
                ErrorCode::InvalidInput => (Exit::Usage, error.message),
                _ => (Exit::Failed, error.message),
            };
            let spoken = self.servers.prompt(name, line).await.map_err(wrong)?;
            spoken.iter().flat_map(said).collect()
        } else {
            let near = prompts.near(name);
            let hint = match near.as_slice() {
                [] => "begin with a blank if it is no command".to_owned(),
                near => format!("did you mean /{}?", near.join(", /")),
            };
            return Err((Exit::Usage, format!("there is no command /{name}: {hint}")));
        };
        message.content.splice(..1, content);
        Ok(message)
    }
}

/// The prompt that a text names, and what stands behind its name. A path names none: there is another `/` in it.
fn called(text: &str) -> Option<(&str, &str)> {
    let text = text.strip_prefix('/')?;
    let (name, line) = text.split_at(text.find(char::is_whitespace).unwrap_or(text.len()));
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    let named = !name.is_empty() && (name.chars().all(plain) || name.starts_with("mcp__"));
    (named && name.len() <= LONGEST_NAME).then(|| (name, line.trim()))
}

/// A piece of a server's prompt as a part of what the person says.
fn said(spoken: &Spoken) -> Vec<Content> {
    let content = Content::of_block(&spoken.block);
    match (spoken.by_model, content) {
        (false, content) => vec![content],
        (true, Content::Text { text }) => vec![Content::text(format!("[said by the assistant]\n{text}"))],
        (true, other) => vec![Content::text("[shown by the assistant]"), other],
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::called;

    #[rstest]
    #[case::alone("/review", Some(("review", "")))]
    #[case::with_words("/git:commit  all of it\nnow ", Some(("git:commit", "all of it\nnow")))]
    #[case::of_a_server("/mcp__files__a/b x", Some(("mcp__files__a/b", "x")))]
    #[case::path("/usr/bin is full", None)]
    #[case::comment("// says nothing", None)]
    #[case::other_comment("/* nothing */", None)]
    #[case::nothing("/", None)]
    #[case::a_blank_before(" /review", None)]
    #[case::later("see /review", None)]
    fn a_name_follows_the_slash_and_no_other_slash(
        #[case] text: &str,
        #[case] expected: Option<(&str, &str)>,
    ) {
        assert_eq!(called(text), expected);
    }
}
