//! The flags of `gripper -p`, with the spellings that wrappers of other agents already use.

use std::path::PathBuf;

use clap::ValueEnum;

use crate::basis::PolicyFlags;

/// Works on a prompt without a screen.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Work on this prompt, print the answer and end; without one it is read from standard input
    #[arg(short, long, value_name = "PROMPT", num_args = 0..=1, default_missing_value = "")]
    print: Option<String>,
    /// The prompt, when it does not follow -p
    #[arg(value_name = "PROMPT", hide = true)]
    prompt: Option<String>,
    #[command(flatten)]
    pub(super) form: Form,
    #[command(flatten)]
    pub(super) work: Work,
    #[command(flatten)]
    pub(super) past: Past,
    #[command(flatten)]
    pub(super) policy: PolicyFlags,
}

/// How one talks with it.
#[derive(clap::Args)]
pub(super) struct Form {
    /// What is printed: the answer, one JSON object at the end, or JSON Lines as it happens
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(super) output_format: OutputFormat,
    /// What is read from standard input: a prompt, or JSON Lines of messages and control requests
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub(super) input_format: InputFormat,
    /// With stream-json: also the pieces of answers as they come
    #[arg(long)]
    pub(super) include_partial_messages: bool,
    /// With stream-json: also the prompts that came in
    #[arg(long)]
    pub(super) replay_user_messages: bool,
    /// Who is asked for permission: stdio for control requests, or a server's tool as mcp__server__tool
    #[arg(long, value_name = "TOOL")]
    pub(super) permission_prompt_tool: Option<String>,
    /// Accepted for wrappers; everything is always told
    #[arg(long, hide = true)]
    verbose: bool,
}

/// What it works with.
#[derive(clap::Args)]
pub(super) struct Work {
    /// The model, as NAME or PROVIDER/NAME; scripted:FILE plays a script
    #[arg(long, value_name = "MODEL")]
    pub(super) model: Option<String>,
    /// The model that takes over when that one has too much to do, of the same provider
    #[arg(long, value_name = "NAME")]
    pub(super) fallback_model: Option<String>,
    /// End after so many answers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) max_turns: Option<u32>,
    /// End when so much is spent
    #[arg(long, value_name = "DOLLARS", value_parser = dollars)]
    pub(super) max_budget_usd: Option<f64>,
    /// Tokens the model may use to think before it answers
    #[arg(long, value_name = "N")]
    pub(super) max_thinking_tokens: Option<u32>,
    /// Allow these tools; rules separated by commas or spaces (repeatable)
    #[arg(long, alias = "allowedTools", value_name = "RULES", num_args = 1..)]
    allowed_tools: Vec<String>,
    /// Never run these tools; rules separated by commas or spaces (repeatable)
    #[arg(long, alias = "disallowedTools", value_name = "RULES", num_args = 1..)]
    disallowed_tools: Vec<String>,
    /// Offer only these built-in tools, separated by commas; default means all
    #[arg(long, value_name = "NAMES")]
    pub(super) tools: Option<String>,
    /// The result must satisfy this JSON Schema: the schema, or a file with it
    #[arg(long, value_name = "JSON|FILE")]
    pub(super) json_schema: Option<String>,
    /// Further agents as JSON: {"name": {"description", "prompt", "tools"?, "model"?}}
    #[arg(long, value_name = "JSON")]
    pub(super) agents: Option<String>,
    /// Use this instead of the built-in system prompt
    #[arg(long, value_name = "TEXT")]
    pub(super) system_prompt: Option<String>,
    /// Use the text of this file instead of the built-in system prompt
    #[arg(long, value_name = "FILE", conflicts_with = "system_prompt")]
    pub(super) system_prompt_file: Option<PathBuf>,
    /// Add this to the system prompt
    #[arg(long, value_name = "TEXT")]
    pub(super) append_system_prompt: Option<String>,
}

/// Which conversation it goes on with.
#[derive(clap::Args)]
pub(super) struct Past {
    /// Go on with the latest session of this folder
    #[arg(short, long)]
    pub(super) r#continue: bool,
    /// Go on with a session, named by its id or the beginning of it
    #[arg(short, long, value_name = "SESSION", conflicts_with = "continue")]
    pub(super) resume: Option<String>,
    /// Go on under a new id and leave the old session as it is
    #[arg(long)]
    pub(super) fork_session: bool,
    /// The id of the new session, a UUID
    #[arg(long, value_name = "UUID", conflicts_with_all = ["continue", "resume"])]
    pub(super) session_id: Option<uuid::Uuid>,
    /// Keep no transcript
    #[arg(long)]
    pub(super) no_session_persistence: bool,
}

/// What is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    Text,
    Json,
    StreamJson,
}

/// What is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum InputFormat {
    Text,
    StreamJson,
}

impl Args {
    /// Whether it is this that was asked for.
    pub(crate) fn wanted(&self) -> bool {
        self.print.is_some() || self.form.input_format == InputFormat::StreamJson
    }

    /// A prompt beside the one that follows -p.
    pub(super) fn second_prompt(&self) -> Option<&str> {
        self.prompt.as_deref().filter(|_| self.print.as_ref().is_some_and(|text| !text.is_empty()))
    }

    /// The prompt on the command line.
    pub(crate) fn prompt(&self) -> Option<&str> {
        let given = self.print.as_deref().filter(|text| !text.is_empty());
        given.or(self.prompt.as_deref()).filter(|text| *text != "-")
    }

    /// The policy's flags with the rules of the other spellings.
    pub(super) fn policy(&self) -> PolicyFlags {
        let mut policy = self.policy.clone();
        policy.add_rules(rules(&self.work.allowed_tools), rules(&self.work.disallowed_tools));
        policy
    }
}

fn dollars(text: &str) -> Result<f64, String> {
    let wrong = || format!("\"{text}\" is not an amount of dollars, such as 2.50");
    text.parse().ok().filter(|amount: &f64| amount.is_finite() && *amount > 0.0).ok_or_else(wrong)
}

/// Rules from lists of them: commas and spaces separate, but not inside parentheses.
fn rules(lists: &[String]) -> Vec<String> {
    let mut rules = Vec::new();
    for list in lists {
        let (mut depth, mut rule) = (0u32, String::new());
        for character in list.chars() {
            match character {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                ',' | ' ' if depth == 0 => {
                    rules.push(std::mem::take(&mut rule));
                    continue;
                }
                _ => {}
            }
            rule.push(character);
        }
        rules.push(rule);
    }
    rules.retain(|rule| !rule.is_empty());
    rules
}

/// The text of an argument that is JSON itself or names a file with it.
pub(super) fn json_or_file(given: &str, flag: &str) -> Result<serde_json::Value, String> {
    let text = if given.trim_start().starts_with('{') {
        given.to_owned()
    } else {
        let path = PathBuf::from(given);
        std::fs::read_to_string(&path).map_err(|error| format!("{flag}: cannot read {given}: {error}"))?
    };
    serde_json::from_str(&text).map_err(|error| format!("{flag}: this is not JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::rules;

    #[test]
    fn rules_are_separated_outside_of_parentheses_only() {
        let given = ["Read,Bash(git log *, --all) Edit(./a b)".to_owned(), "Write".to_owned()];
        assert_eq!(rules(&given), ["Read", "Bash(git log *, --all)", "Edit(./a b)", "Write"]);
        assert!(rules(&[String::new()]).is_empty());
    }
}
