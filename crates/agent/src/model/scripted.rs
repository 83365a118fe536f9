//! A model that plays a script: one answer a line. For demonstrations, tests and replays; needs no key and no network.
//!
//! A line is `{"content": [blocks], "usage"?, "stop_reason"?, "delay_ms"?}` with blocks as in the Messages API (ids of
//! calls may be left out), or `{"error": words}` for an answer that fails.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
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
    next: AtomicUsize,
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
    error: Option<String>,
}

impl Scripted {
    /// From JSON Lines.
    pub fn parse(script: &str) -> Result<Self, String> {
        let lines = script.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let read = lines.map(|(at, line)| {
            serde_json::from_str(line).map_err(|error| format!("line {} of the script: {error}", at + 1))
        });
        Ok(Self { lines: read.collect::<Result<_, _>>()?, next: AtomicUsize::new(0) })
    }

    /// From answers that were given before.
    pub fn of(answers: impl IntoIterator<Item = Vec<Content>>) -> Self {
        let line = |content: Vec<Content>| Line {
            content: content.iter().filter_map(|block| serde_json::to_value(block).ok()).collect(),
            ..Line::default()
        };
        Self { lines: answers.into_iter().map(line).collect(), next: AtomicUsize::new(0) }
    }
}

impl Model for Scripted {
    fn stream(&self, _request: Request) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let Some(line) = self.lines.get(number).cloned() else {
            let words = format!("the script has no answer number {}: add a line to it", number + 1);
            return stream::iter([Err(ModelError::new(Trouble::Refused, words))]).boxed();
        };
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
