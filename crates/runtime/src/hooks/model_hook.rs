//! Hooks that ask a model.

use std::{sync::Arc, time::Duration};

use futures::future::BoxFuture;
use gripper_process::Status;
use serde::Deserialize;

use super::contract::Raw;

/// What stands for the event in a prompt.
const PLACE: &str = "$ARGUMENTS";

/// Asks models what they think of something.
pub trait Judge: Send + Sync {
    /// Asks, and waits for the answer. An error says why there is none.
    fn judge(&self, question: Question) -> BoxFuture<'_, Result<Judgement, String>>;
}

/// What a model is asked.
#[derive(Debug, Clone)]
pub struct Question {
    /// What to judge and by what, the event included.
    pub prompt: String,
    /// The model, unless the usual one is good enough.
    pub model: Option<String>,
    /// Whether it may look around with tools before it answers.
    pub looks: bool,
}

/// What a model thinks.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Judgement {
    /// Whether it is fine.
    pub ok: bool,
    /// Why not, or why.
    #[serde(default)]
    pub reason: String,
}

/// Asks; a no counts as that of a command.
pub(super) async fn ask(
    judge: Arc<dyn Judge>,
    prompt: &str,
    model: Option<String>,
    looks: bool,
    event: &str,
    limit: Duration,
) -> Result<Raw, String> {
    let prompt = match prompt.contains(PLACE) {
        true => prompt.replace(PLACE, event),
        false => format!("{prompt}\n\n{event}"),
    };
    let raw = |status, stderr| Raw { status, stdout: String::new(), stderr, cut: false };
    match tokio::time::timeout(limit, judge.judge(Question { prompt, model, looks })).await {
        Err(_) => Ok(raw(Status::TimedOut, String::new())),
        Ok(Ok(Judgement { ok: true, .. })) => Ok(raw(Status::Exited(0), String::new())),
        Ok(Ok(Judgement { reason, .. })) => Ok(raw(Status::Exited(2), reason)),
        Ok(Err(why)) => Err(why),
    }
}
