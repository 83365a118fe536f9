//! A model that plays a script: one answer a line. For demonstrations, tests and replays; needs no key and no network.
//!
//! A line is `{"content": [blocks], "usage"?, "stop_reason"?, "delay_ms"?, "for"?}` with blocks as in the Messages API
//! (ids of calls may be left out), or `{"error": words}` for an answer that fails. Where several agents ask, those
//! whose system prompt or first message has the text of `for` in it get the lines with it, and the others those without.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures::{StreamExt, stream, stream::BoxStream};
use serde::Deserialize;
use serde_json::Value;

use super::{Model, ModelError, ModelEvent, Request, StopReason, Trouble, Usage};
use crate::message::Content;

/// Plays a script.
pub struct Scripted {
    lines: Arc<[Line]>,
    played: Mutex<Vec<bool>>,
}

/// One answer.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Line {
    content: Vec<Value>,
    usage: Option<Usage>,
    stop_reason: Option<StopReason>,
    /// Before each block.
    delay_ms: u64,
    r#for: Option<String>,
    error: Option<String>,
}

impl Scripted {
    /// From JSON Lines.
    pub fn parse(script: &str) -> Result<Self, String> {
        let lines = script.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let read = lines.map(|(at, line)| {
            serde_json::from_str(line).map_err(|error| format!("line {} of the script: {error}", at + 1))
        });
        Ok(Self::new(read.collect::<Result<_, _>>()?))
    }

    /// From answers that were given before.
    pub fn of(answers: impl IntoIterator<Item = Vec<Content>>) -> Self {
        let line = |content: Vec<Content>| Line {
            content: content.iter().filter_map(|block| serde_json::to_value(block).ok()).collect(),
            ..Line::default()
        };
        Self::new(answers.into_iter().map(line).collect())
    }

    fn new(lines: Arc<[Line]>) -> Self {
        let played = Mutex::new(vec![false; lines.len()]);
        Self { lines, played }
    }

    /// The next line for whoever asks.
    fn next(&self, request: &Request) -> Option<usize> {
        let first = request.messages.first().map(|message| message.text()).unwrap_or_default();
        let meant =
            |text: &str| first.contains(text) || request.system.iter().any(|part| part.contains(text));
        let known = |line: &&Line| line.r#for.as_deref().is_some_and(meant);
        let own = self.lines.iter().any(|line| known(&line));
        let mut played = self.played.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |line: &Line| if own { known(&line) } else { line.r#for.is_none() };
        let at = self.lines.iter().zip(&*played).position(|(line, played)| !played && fits(line))?;
        played[at] = true;
        Some(at)
    }
}

impl Model for Scripted {
    fn stream(&self, request: Request) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let Some(number) = self.next(&request) else {
            let words = format!("the script has no answer number {}: add a line to it", self.lines.len() + 1);
            return stream::iter([Err(ModelError::new(Trouble::Refused, words))]).boxed();
        };
        let line = self.lines[number].clone();
        let delay = Duration::from_millis(line.delay_ms);
        let events: VecDeque<_> = line.events(number).into();
        let played = stream::unfold(events, move |mut events| async move {
            let event = events.pop_front()?;
            let begins = matches!(event, Ok(ModelEvent::Text { .. } | ModelEvent::CallStart { .. }));
            if begins && !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            Some((event, events))
        });
        played.boxed()
    }

    fn window(&self) -> u64 {
        200_000
    }
}

impl Line {
    fn events(self, number: usize) -> Vec<Result<ModelEvent, ModelError>> {
        let id = format!("scripted-{number}");
        let mut events = vec![Ok(ModelEvent::Start { id, model: "scripted".to_owned() })];
        let mut stop = StopReason::EndTurn;
        for (index, mut block) in self.content.into_iter().enumerate() {
            if block["type"] == "tool_use" && block.get("id").is_none() {
                block["id"] = format!("call-{number}-{index}").into();
            }
            let content = match serde_json::from_value(block) {
                Ok(content) => content,
                Err(error) => {
                    let words = format!("answer {number} of the script: {error}");
                    return vec![Err(ModelError::new(Trouble::Refused, words))];
                }
            };
            match &content {
                Content::Text { text } => events.push(Ok(ModelEvent::Text { index, text: text.clone() })),
                Content::Thinking { thinking, .. } => {
                    events.push(Ok(ModelEvent::Thinking { index, text: thinking.clone() }));
                }
                Content::ToolUse { id, name, input } => {
                    stop = StopReason::ToolUse;
                    let (id, name) = (id.clone(), name.clone());
                    events.push(Ok(ModelEvent::CallStart { index, id, name }));
                    events.push(Ok(ModelEvent::CallInput { index, json: input.to_string() }));
                }
                _ => {}
            }
            events.push(Ok(ModelEvent::Block { index, content, broken: None }));
        }
        events.extend(self.usage.map(|usage| Ok(ModelEvent::Usage(usage))));
        events.push(match self.error {
            Some(words) => Err(ModelError::new(Trouble::Refused, words)),
            None => Ok(ModelEvent::Stop(self.stop_reason.unwrap_or(stop))),
        });
        events
    }
}
