//! Models as judges, for hooks that ask one.

use std::sync::Arc;

use futures::{FutureExt, StreamExt, future::BoxFuture};
use gripper_runtime::{
    Child, SubAgent,
    hooks::{Judge, Judgement, Question},
    permissions::{Mode, Source},
};
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Crew, Member, ModelChoice, crew::new_id};
use crate::{
    message::Message,
    model::{ModelEvent, Request, Usage, config::Chosen},
    structured_output::{Delivery, StructuredOutput},
    turn::{Agent, Limits, Till},
};

/// Longest answer of a model that only says yes or no.
const SHORT: u32 = 1_024;
/// Bytes beyond which such an answer is not read.
const LONGEST: usize = 64 * 1024;
/// Braces of an answer behind which a judgement is looked for.
const MOST_BRACES: usize = 200;
/// Answers after which an agent that looks around should know.
const MOST_TURNS: u32 = 50;

impl Judge for Crew {
    fn judge(&self, question: Question) -> BoxFuture<'_, Result<Judgement, String>> {
        async move {
            // Hooks belong to the session, so what they cost is the main agent's.
            let lead = self.state().members.get("main").cloned().ok_or("the session has not begun")?;
            let model = match question.model.as_deref().map_or(ModelChoice::Fast, ModelChoice::from) {
                ModelChoice::Inherit => lead.model.clone(),
                ModelChoice::Fast => self.models().fast().unwrap_or_else(|| lead.model.clone()),
                ModelChoice::Named(name) => self.models().named(&name)?,
            };
            match question.looks {
                true => self.look(lead, model, question.prompt).await,
                false => ask(&lead, model, question.prompt).await,
            }
        }
        .boxed()
    }
}

async fn ask(lead: &Member, model: Chosen, prompt: String) -> Result<Judgement, String> {
    let said = say(lead, model, include_str!("prompts/judge.md"), prompt).await?;
    judgement_in(&said).ok_or_else(|| "the model did not say whether it is fine".to_owned())
}

/// What a model answers to one question, in few words.
pub(super) async fn say(
    lead: &Member,
    model: Chosen,
    system: &str,
    prompt: String,
) -> Result<String, String> {
    let request = Request {
        model: model.name,
        system: vec![system.trim().into()],
        tools: Arc::from([]),
        messages: vec![Arc::new(Message::user(prompt))],
        max_tokens: SHORT,
        thinking: None,
        streamed: true,
    };
    let (mut said, mut usage) = (String::new(), Usage::default());
    let mut events = model.model.stream(request);
    while let Some(event) = events.next().await {
        match event.map_err(|error| format!("the model did not answer: {error}"))? {
            ModelEvent::Text { text, .. } if said.len() + text.len() > LONGEST => {
                return Err("the model says far more than it was asked".to_owned());
            }
            ModelEvent::Text { text, .. } => said.push_str(&text),
            ModelEvent::Usage(now) => usage = now,
            _ => {}
        }
    }
    lead.till.put(model.price.map_or(0.0, |price| price.cost(&usage)));
    Ok(said)
}

/// What a model says about it. Models like to put words or a fence around what they were asked for, and may repeat
/// what they judge: of several judgements a no counts.
fn judgement_in(said: &str) -> Option<Judgement> {
    let starts = said.match_indices('{').take(MOST_BRACES);
    let read = |(from, _): (usize, &str)| {
        serde_json::Deserializer::from_str(&said[from..]).into_iter::<Judgement>().next()?.ok()
    };
    let mut all: Vec<Judgement> = starts.filter_map(read).collect();
    let no = all.iter().position(|judgement| !judgement.ok);
    match no {
        Some(at) => Some(all.swap_remove(at)),
        None => all.pop(),
    }
}

impl Crew {
    /// Lets an agent look around before it says what it thinks.
    async fn look(&self, lead: Member, model: Chosen, prompt: String) -> Result<Judgement, String> {
        let above = lead.toolbox.upgrade().ok_or("the session is over")?;
        let schema = json!({
            "type": "object",
            "properties": {
                "ok": { "type": "boolean", "description": "Whether it is fine." },
                "reason": { "type": "string", "description": "Why not." },
            },
            "required": ["ok"],
            "additionalProperties": false,
        });
        let delivery = Delivery::default();
        let tool = StructuredOutput::new(schema, delivery.clone())?.for_any_agent();
        let toolbox = above.child(Child {
            id: new_id("hook").into(),
            kind: "hook".into(),
            viewer: SubAgent { explores: true, ..SubAgent::default() },
            mode: Some(Mode::Plan),
            denied: (Vec::new(), Source::command_line()),
            more: vec![Arc::new(tool)],
            approver: self.worker(&above),
            hooked: false,
        });
        let mut system: Vec<Arc<str>> = vec![include_str!("prompts/judge_looks.md").trim().into()];
        system.extend(lead.about.iter().cloned());
        let budget = lead.budget.map(|budget| (budget - lead.till.total()).max(0.0));
        let limits = Limits { turns: Some(MOST_TURNS), budget, ..Limits::default() };
        let config = self.config(&model, system, limits, Till::default(), Some(delivery.clone()));
        // Nobody watches: what is sent is dropped.
        let (sender, _) = mpsc::channel(1);
        let mut agent = Agent::new(toolbox, model.model, config, Vec::new(), sender);
        let outcome = agent.run(Message::user(prompt), &CancellationToken::new()).await;
        lead.till.put(outcome.cost);
        let delivered = delivery.value().and_then(|value| serde_json::from_value(value).ok());
        delivered.ok_or_else(|| format!("the agent did not say whether it is fine: {:?}", outcome.end))
    }
}

#[cfg(test)]
mod tests {
    use super::judgement_in;

    #[test]
    fn a_no_counts_whatever_stands_around_it() {
        let ok = |said: &str| judgement_in(said).map(|judgement| judgement.ok);
        assert_eq!(ok("fine: {\"ok\": true}"), Some(true));
        assert_eq!(ok("awk '{print}' is not fine\n{\"ok\": false, \"reason\": \"{x}\"}"), Some(false));
        assert_eq!(ok("{\"ok\": false} {\"ok\": true}"), Some(false));
        assert_eq!(ok("{\"ok\": \"yes\"} {"), None);
    }
}
