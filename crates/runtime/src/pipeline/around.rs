//! Hooks around a call.

use std::{panic::AssertUnwindSafe, time::Duration};

use futures::FutureExt;
use gripper_permissions::{HookOpinion, Request};
use serde_json::Value;

use super::{Admitted, CallResult, Hooked, Permit, call_of, permission, request, rewritten, settle};
use crate::{
    event::Event,
    executor::Lane,
    hooks::{Before, BeforeCall, HookEvent, HookRun, RewriteTrust, call_fields},
    tool::{Block, ErrorCode, ToolError},
};

/// How long a question waits for what it could show.
const PREVIEW_LIMIT: Duration = Duration::from_secs(5);

/// Stage 3, for calls that hooks want to see.
pub(super) async fn before(lane: &Lane, mut admitted: Box<Admitted>) -> Result<Hooked, ToolError> {
    let toolbox = lane.toolbox();
    let (place, policy) = (toolbox.place(), toolbox.policy());
    let input = admitted.tool.observable(&admitted.input, &place);
    let call = BeforeCall {
        call_id: lane.call_id(),
        input: &input,
        request: &request(&admitted),
        scene: toolbox.scene(&place, &policy),
    };
    // Hooks that do not answer open no door: a person is asked.
    let silent = || Before {
        opinion: Some(HookOpinion::Ask("the hooks did not answer in time".to_owned())),
        ..Before::default()
    };
    let answer = tokio::time::timeout(toolbox.settings.hook_limit, toolbox.hooks.before(call)).await;
    let before = answer.unwrap_or_else(|_| silent());
    report(lane, before.runs, before.stop);
    let within = |text: String| toolbox.within(lane.call_id(), text);
    if let Some(reason) = before.block.map(within) {
        return Err(ToolError::new(ErrorCode::HookBlocked, format!("a hook blocked this call: {reason}")));
    }
    if let Some(rewrite) = before.input {
        let trust = toolbox.settings.rewrite_trust;
        if trust == RewriteTrust::PolicyOnly && !rewrite.managed {
            let message =
                "a hook tried to change the input, but only managed hooks may; the call was not run";
            return Err(ToolError::new(ErrorCode::HookBlocked, message));
        }
        rewritten(lane, &mut admitted, rewrite.input, "hook", trust)?;
    }
    // Until here calls behind this one were held back, as nobody knew what it would touch.
    settle(lane, &admitted).await?;
    let opinion = before.opinion.map(|opinion| match opinion {
        HookOpinion::Allow(reason) => HookOpinion::Allow(within(reason)),
        HookOpinion::Ask(reason) => HookOpinion::Ask(within(reason)),
        HookOpinion::Deny(reason) => HookOpinion::Deny(within(reason)),
    });
    Ok(Hooked { admitted, opinion, notes: before.context.into_iter().map(within).collect() })
}

/// Tells which hooks ran, and keeps it if one of them wants the session to end.
pub(super) fn report(lane: &Lane, runs: Vec<HookRun>, stop: Option<String>) {
    for mut run in runs {
        run.message = run.message.map(|message| lane.toolbox().within(lane.call_id(), message));
        lane.event(Event::Hook { call_id: Some(lane.call_id().clone()), run });
    }
    lane.toolbox().halt(stop);
}

/// What a call would do, for whoever is asked about it. A tool that takes long over that, or has a bug
/// there, is asked about without it.
pub(super) async fn preview(lane: &Lane, admitted: &Admitted) -> Option<String> {
    let toolbox = lane.toolbox();
    let call = call_of(lane, admitted, (toolbox.place(), toolbox.policy()), false);
    let looking = AssertUnwindSafe(admitted.tool.preview(&admitted.input, &call)).catch_unwind();
    tokio::time::timeout(PREVIEW_LIMIT, looking).await.ok()?.ok()?
}

/// Stage 4, when hooks want to hear of refusals.
pub(super) async fn watched(lane: &Lane, hooked: Hooked) -> Result<Permit, ToolError> {
    let toolbox = lane.toolbox();
    let (tool, input) = (hooked.admitted.tool.clone(), hooked.admitted.input.shared());
    let subjects = hooked.admitted.access.subjects().to_vec();
    let mut error = match permission(lane, hooked).await {
        // Other refusals than those of a decision have this code too.
        Err(error) if error.structured.as_ref().is_some_and(|more| more.get("decision").is_some()) => error,
        other => return other,
    };
    let name = &tool.spec().name;
    let mut fields = call_fields(lane.call_id(), name, &input);
    fields.insert("reason".to_owned(), error.message.clone().into());
    let request = Request { input: Some(&input), subjects, ..Request::new(name) };
    let said = toolbox.fire(HookEvent::PERMISSION_DENIED, name, fields, Some(&request)).await;
    report(lane, said.runs, said.stop);
    said.context.iter().for_each(|note| error.message.push_str(&format!("\n\n{note}")));
    Err(error)
}

/// Hooks after the call: they may replace the result, and add to it.
pub(super) async fn after(lane: &Lane, admitted: &Admitted, result: &mut CallResult) -> Vec<String> {
    if !admitted.hooked {
        return Vec::new();
    }
    let toolbox = lane.toolbox();
    let (place, policy) = (toolbox.place(), toolbox.policy());
    let input = admitted.tool.observable(&admitted.input, &place);
    let call = BeforeCall {
        call_id: lane.call_id(),
        input: &input,
        request: &request(admitted),
        scene: toolbox.scene(&place, &policy),
    };
    let answer = tokio::time::timeout(toolbox.settings.hook_limit, toolbox.hooks.after(call, result)).await;
    let said = answer.unwrap_or_default();
    report(lane, said.runs, said.stop);
    if let Some(output) = said.output {
        let text = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
        result.content = vec![Block::text(text)];
        result.structured = Some(output).filter(Value::is_object);
    }
    let objections = said.objections.into_iter().map(|reason| format!("A hook objects: {reason}"));
    objections.chain(said.context).map(|text| toolbox.within(lane.call_id(), text)).collect()
}
