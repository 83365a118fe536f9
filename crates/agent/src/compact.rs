//! Making a conversation shorter when it no longer fits: old results become stubs first; if that is not enough,
//! all but the last messages become a summary. The ledger is told what the model no longer has.

use std::{
    collections::{HashMap, HashSet},
    fmt::Write as _,
    sync::Arc,
};

use futures::StreamExt;
use gripper_runtime::Toolbox;

use crate::{
    context::{clip, tagged},
    message::{Content, Message, Role, Source},
    model::{Model, ModelEvent, Request, Usage},
    turn::estimate,
};

/// What a summary is made by.
const PROMPT: &str = include_str!("compact.md");

/// Begins every stub.
const STUB: &str = "[left out to save room: ";

/// Results and pictures of so many of the last answers stay whole.
const WHOLE_ANSWERS: usize = 5;

/// Results that are no longer than this, in bytes, stay: a stub would save nothing.
const SHORT_RESULT: usize = 400;

/// Tokens that stay behind a summary in any case, if there are messages of that size.
const SMALL: u64 = 1_000;

/// Messages that stay behind a summary, at most.
const LAST_MESSAGES: usize = 6;

/// Characters of a call's input and of a result that a summary is made from.
const INPUT_CHARS: usize = 1_000;
const RESULT_CHARS: usize = 2_000;

/// A conversation made shorter.
#[derive(Debug)]
pub struct Shorter {
    /// The conversation.
    pub messages: Vec<Arc<Message>>,
    /// Part of it is a summary now.
    pub summary: bool,
    /// What the summary cost.
    pub usage: Usage,
}

/// Which turn of a toolbox ran the calls of which answer: each by one of its calls.
#[derive(Debug, Default)]
pub struct Ran(Vec<(Arc<str>, String)>);

impl Ran {
    /// Takes down that a call runs.
    pub fn note(&mut self, call: &str, turn: &str) {
        if self.0.last().is_none_or(|(last, _)| **last != *turn) {
            self.0.push((turn.into(), call.to_owned()));
        }
    }

    /// The conversation is this one now: what a turn has shown counts as unseen unless all its results are in it.
    pub fn forget(&mut self, history: &[Arc<Message>], toolbox: &Toolbox) {
        let blocks = history.iter().flat_map(|message| &message.content);
        let whole: HashSet<&str> = blocks
            .filter_map(|block| match block {
                Content::ToolResult { tool_use_id, content, .. } => {
                    let stub =
                        |block: &Content| matches!(block, Content::Text { text } if text.starts_with(STUB));
                    (!content.iter().any(stub)).then_some(tool_use_id.as_str())
                }
                _ => None,
            })
            .collect();
        let answers = history.iter().filter(|message| message.calls().all(|(id, ..)| whole.contains(id)));
        let shown: HashSet<&str> = answers.flat_map(|message| message.calls()).map(|(id, ..)| id).collect();
        let gone = self.0.extract_if(.., |(_, call)| !shown.contains(call.as_str()));
        toolbox.files().ledger.forget_turns(&gone.map(|(turn, _)| turn).collect());
    }
}

/// Makes the conversation shorter: what fills four fifths of the window fills half of it afterwards, or less.
pub async fn shorten(model: &dyn Model, name: &str, history: &[Arc<Message>]) -> Result<Shorter, String> {
    let size = |history: &[Arc<Message>]| history.iter().map(|message| estimate(message)).sum::<u64>();
    let stubbed = with_stubs(history);
    // By proportion: how many tokens there are is only estimated, and not by whom it was found to be too much.
    if size(&stubbed) * 8 <= size(history) * 5 {
        return Ok(Shorter { messages: stubbed, summary: false, usage: Usage::default() });
    }
    let (mut summary, mut usage) = (String::new(), Usage::default());
    let mut stream = model.stream(summary_request(name, history, model.window()));
    while let Some(event) = stream.next().await {
        match event.map_err(|error| error.message)? {
            ModelEvent::Block { content: Content::Text { text }, .. } => summary.push_str(&text),
            ModelEvent::Usage(so_far) => usage = so_far,
            _ => {}
        }
    }
    if summary.trim().is_empty() {
        return Err("the model gave no summary".to_owned());
    }
    let room = (model.window() / 10).min((size(history) / 2).max(SMALL));
    let messages = after_summary(&stubbed, &summary, room);
    Ok(Shorter { messages, summary: true, usage })
}

/// The conversation with one line in place of each long result and each picture, but for those of the last answers.
pub fn with_stubs(history: &[Arc<Message>]) -> Vec<Arc<Message>> {
    let answers = history.iter().enumerate().filter(|(_, message)| message.calls().next().is_some());
    let whole_from = answers.rev().nth(WHOLE_ANSWERS - 1).map_or(0, |(at, _)| at);
    let tools = tools(history);
    let stubbed = |message: &Arc<Message>| {
        let content = message.content.iter().map(|block| stub(block, &tools)).collect();
        Arc::new(Message { role: message.role, content })
    };
    let (old, new) = history.split_at(whole_from);
    old.iter().map(stubbed).chain(new.iter().cloned()).collect()
}

fn stub(block: &Content, tools: &HashMap<&str, &str>) -> Content {
    match block {
        Content::ToolResult { tool_use_id, content, is_error } => {
            let text: usize = content
                .iter()
                .map(|block| if let Content::Text { text } = block { text.len() } else { 0 })
                .sum();
            let mut left: Vec<Content> = content.iter().map(|block| stub(block, tools)).collect();
            if text > SHORT_RESULT {
                let tool = tools.get(tool_use_id.as_str()).unwrap_or(&"a call");
                let stored = content.iter().find_map(stored_at);
                let stored = stored
                    .map_or("call again if you need it".to_owned(), |path| format!("stored whole in {path}"));
                left.retain(|block| !matches!(block, Content::Text { text } if !text.starts_with(STUB)));
                left.insert(0, Content::text(format!("{STUB}the result of {tool}, {text} bytes; {stored}]")));
            }
            Content::ToolResult { tool_use_id: tool_use_id.clone(), content: left, is_error: *is_error }
        }
        Content::Image { source } | Content::Document { source } => {
            let what = match source {
                Source::Base64 { media_type, data } => {
                    format!("{media_type}, {} KiB", data.len() / 1024 * 3 / 4)
                }
                Source::Url { url } => clip(url, 200),
            };
            Content::text(format!("{STUB}a picture or document, {what}]"))
        }
        other => other.clone(),
    }
}

/// Where the runtime has stored the whole of a result that was already too long for the conversation.
fn stored_at(block: &Content) -> Option<&str> {
    let Content::Text { text } = block else { return None };
    let (_, rest) = text.rsplit_once("The whole text is in ")?;
    Some(rest.split_once("; Read it")?.0)
}

fn tools(history: &[Arc<Message>]) -> HashMap<&str, &str> {
    history.iter().flat_map(|message| message.calls()).map(|(id, name, _)| (id, name)).collect()
}

/// Asks for a summary. The record goes as plain text, which any model takes, and never fills more than its window.
pub fn summary_request(name: &str, history: &[Arc<Message>], window: u64) -> Request {
    let (mut text, tools) = (String::new(), tools(history));
    for message in history {
        text.push_str(if message.role == Role::User { "\n## Person\n" } else { "\n## Agent\n" });
        for block in &message.content {
            match block {
                Content::Text { text: said } => writeln!(text, "{said}").ok(),
                Content::ToolUse { name, input, .. } => {
                    writeln!(text, "[calls {name}: {}]", clip(input.text(), INPUT_CHARS)).ok()
                }
                Content::ToolResult { tool_use_id, content, is_error } => {
                    let said = Message { role: Role::User, content: content.clone() }.text();
                    let tool = tools.get(tool_use_id.as_str()).unwrap_or(&"a call");
                    let how = if *is_error { "failure" } else { "result" };
                    writeln!(text, "[{how} of {tool}: {}]", clip(&said, RESULT_CHARS)).ok()
                }
                Content::Image { .. } | Content::Document { .. } => {
                    writeln!(text, "[a picture or document]").ok()
                }
                Content::Thinking { .. } | Content::Other(_) => None,
            };
        }
    }
    // Two bytes for a token at worst, and room for the answer. What was said first and last matters most.
    let most = usize::try_from(window).unwrap_or(usize::MAX).saturating_mul(3) / 2;
    if text.len() > most {
        let (head, tail) =
            (text.floor_char_boundary(most / 4), text.ceil_char_boundary(text.len() - most / 4 * 3));
        text = format!("{}\n[…]\n{}", &text[..head], &text[tail..]);
    }
    let max_tokens = u32::try_from(window / 10).unwrap_or(u32::MAX).clamp(500, 8_000);
    let messages = vec![Arc::new(Message::user(format!("The record:\n{text}\n\nNow write the summary.")))];
    let system = vec![PROMPT.into()];
    Request {
        model: name.to_owned(),
        system,
        tools: Arc::new([]),
        messages,
        max_tokens,
        thinking: None,
        streamed: true,
    }
}

/// The conversation with a summary in place of all but the last messages. They begin with an answer or with words
/// of the person, never with results, and fill `room` tokens at most; what was said last stays in any case.
pub fn after_summary(history: &[Arc<Message>], summary: &str, room: u64) -> Vec<Arc<Message>> {
    let is_result = |block: &Content| matches!(block, Content::ToolResult { .. });
    let (mut from, mut filled) = (history.len(), 0);
    for (at, message) in history.iter().enumerate().rev().take(LAST_MESSAGES) {
        filled += estimate(message);
        if filled > room {
            break;
        }
        if message.role == Role::Assistant || !message.content.iter().any(is_result) {
            from = at;
        }
    }
    let words =
        format!("Older messages are left out to save room. This summary stands for them:\n\n{summary}");
    let mut first = Message::user(tagged(&words));
    let mut last = history[from..].iter().cloned().peekable();
    let said = match last.next_if(|message| message.role == Role::User) {
        None if from == history.len() => history.last().filter(|message| message.role == Role::User).cloned(),
        said => said,
    };
    first
        .content
        .extend(said.iter().flat_map(|said| &said.content).filter(|block| !is_result(block)).cloned());
    std::iter::once(Arc::new(first)).chain(last).collect()
}

#[cfg(test)]
#[path = "compact_tests.rs"]
mod tests;
