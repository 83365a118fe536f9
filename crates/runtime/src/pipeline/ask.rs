//! Putting a call to the approver.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gripper_permissions::{Behavior, By, Decision, HookOpinion, Rule};
use serde_json::{Value, json};

use super::{Admitted, around::report, decision_event, denied, judge, request};
use crate::{
    approve::{Answer, Ask, Reply},
    executor::Lane,
    hooks::{HookEvent, call_fields},
    tool::{ErrorCode, ToolError},
};

/// Asks, and waits. `Ok(None)`: run it as it is; `Ok(Some(input))`: run it with this input.
///
/// While the question is open the policy may change (another question was answered "for this
/// session"): it is then judged again, and may settle itself.
pub(super) async fn ask(
    lane: &Lane,
    admitted: &Admitted,
    opinion: Option<&HookOpinion>,
    decision: Decision,
) -> Result<Option<Value>, ToolError> {
    let toolbox = lane.toolbox();
    let mut changes = toolbox.policy_changes();
    let mut question = Ask {
        id: format!("{}:{}", lane.turn_id(), lane.call_id()).into(),
        call_id: lane.call_id().clone(),
        tool: admitted.tool.spec().name.as_ref().into(),
        summary: admitted.tool.summary(&admitted.input),
        input: admitted.input.value().clone(),
        decision,
    };
    if toolbox.hooks.listens(HookEvent::PERMISSION_REQUEST)
        && let Some(answer) = Box::pin(ask_hooks(lane, admitted, opinion, &question)).await
    {
        return settle(lane, admitted, &question, answer, By::Hook);
    }
    let reply = Reply::new();
    let _taken_back = TakeBack { lane, id: question.id.clone(), reply: reply.clone() };
    toolbox.approver.push(question.clone(), reply.clone());
    if !reply.is_answered() {
        let message = format!("{} wants to run: {}", question.tool, question.summary);
        let kind = "permission_prompt";
        toolbox.notify(
            HookEvent::NOTIFICATION,
            kind,
            json!({ "message": message, "notification_type": kind }),
        );
    }
    let limit = toolbox.settings.approval_limit;
    let timer = tokio::time::sleep(limit);
    tokio::pin!(timer);
    loop {
        tokio::select! {
            biased;
            answer = reply.wait() => return settle(lane, admitted, &question, answer, By::Approver),
            _ = changes.changed() => {
                let now = judge(admitted, &toolbox.policy(), opinion);
                if now == question.decision {
                    continue;
                }
                if now.behavior == Behavior::Ask {
                    question.decision = now;
                    toolbox.approver.update(&question);
                    continue;
                }
                if reply.withdraw() {
                    lane.event(decision_event(lane, admitted, &now));
                    return if now.behavior == Behavior::Allow { Ok(None) } else { Err(denied(&now)) };
                }
            }
            () = &mut timer => {
                if reply.withdraw() {
                    let message = format!("not permitted: nobody answered within {} s ({})", limit.as_secs(), question.decision.reason);
                    return Err(ToolError::new(ErrorCode::Denied, message).with(json!({ "decision": question.decision })));
                }
            }
        }
    }
}

/// Hooks may answer in place of the approver. Their yes counts only where it would have counted
/// before: it lifts no rule, no check, and no hook that wanted somebody asked.
async fn ask_hooks(
    lane: &Lane,
    admitted: &Admitted,
    opinion: Option<&HookOpinion>,
    question: &Ask,
) -> Option<Answer> {
    let toolbox = lane.toolbox();
    let mut fields = call_fields(lane.call_id(), &question.tool, &question.input);
    fields.insert("reason".to_owned(), question.decision.reason.as_ref().into());
    let request = request(admitted);
    let said = toolbox.fire(HookEvent::PERMISSION_REQUEST, &question.tool, fields, Some(&request)).await;
    report(lane, said.runs, said.stop);
    if let Some(reason) = said.objections.into_iter().next() {
        return Some(Answer::Deny { feedback: Some(toolbox.within(lane.call_id(), reason)) });
    }
    let yes = HookOpinion::Allow("a hook answered".to_owned());
    let may = || {
        !matches!(opinion, Some(HookOpinion::Ask(_) | HookOpinion::Deny(_)))
            && judge(admitted, &toolbox.policy(), Some(&yes)).behavior == Behavior::Allow
    };
    said.approved.then(Answer::once).filter(|_| may())
}

/// Takes the question off the queue however the wait ends, a cancelled call included.
struct TakeBack<'a> {
    lane: &'a Lane,
    id: std::sync::Arc<str>,
    reply: Reply,
}

impl Drop for TakeBack<'_> {
    fn drop(&mut self) {
        self.reply.withdraw();
        let remove = || self.lane.toolbox().approver.remove(&self.id);
        // This also runs while a panic unwinds, where a second one would end the process.
        catch_unwind(AssertUnwindSafe(remove)).ok();
    }
}

fn settle(
    lane: &Lane,
    admitted: &Admitted,
    question: &Ask,
    answer: Answer,
    by: By,
) -> Result<Option<Value>, ToolError> {
    let settled = |behavior, reason: String| {
        let decision =
            Decision { behavior, reason: reason.into(), by: by.clone(), ..question.decision.clone() };
        lane.event(decision_event(lane, admitted, &decision));
        decision
    };
    match answer {
        Answer::Allow { for_session, input } => {
            let reach = if for_session { "approved for this session" } else { "approved once" };
            settled(Behavior::Allow, reach.to_owned());
            if for_session && let Ok(rule) = Rule::parse(&question.tool) {
                lane.toolbox().grant(rule);
            }
            Ok(input)
        }
        Answer::Deny { feedback } => {
            let feedback = feedback.map(|words| format!(" ({words})")).unwrap_or_default();
            Err(denied(&settled(Behavior::Deny, format!("{}{feedback}", question.decision.reason))))
        }
    }
}
