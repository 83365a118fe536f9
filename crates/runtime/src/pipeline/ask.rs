//! Putting a call to the approver.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gripper_permissions::{Behavior, By, Decision, HookOpinion, RuleList};
use serde_json::{Value, json};

use super::{
    Admitted,
    around::{self, report},
    decision_event, denied, judge, request,
};
use crate::{
    approve::{Answer, Ask, Grant, Pending, Reply},
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
    // It may have changed since the call was judged, and that change would never be announced.
    changes.mark_changed();
    let shown = around::preview(lane, admitted);
    let mut question = Ask {
        id: format!("{}:{}", lane.turn_id(), lane.call_id()).into(),
        call_id: lane.call_id().clone(),
        tool: admitted.tool.spec().name.as_ref().into(),
        agent: toolbox.agent.id.clone(),
        mode: toolbox.policy().mode,
        summary: admitted.tool.summary(&admitted.input),
        input: admitted.input.value().clone(),
        subjects: admitted.access.subjects().to_vec(),
        decision,
        preview: shown.await,
    };
    if toolbox.hooks.listens(HookEvent::PERMISSION_REQUEST)
        && let Some(answer) = Box::pin(ask_hooks(lane, admitted, opinion, &question)).await
    {
        return settle(lane, admitted, opinion, &question, answer, By::Hook).await;
    }
    let (pending, reply) = Reply::open();
    let _taken_back = TakeBack { lane, id: question.id.clone(), pending: &pending };
    toolbox.approver.push(question.clone(), reply);
    if !pending.is_answered() {
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
            answer = pending.wait() => return settle(lane, admitted, opinion, &question, answer, By::Approver).await,
            _ = changes.changed() => {
                let policy = toolbox.policy();
                let now = judge(toolbox, admitted, &policy, opinion, true);
                if now == question.decision && policy.mode == question.mode {
                    continue;
                }
                if now.behavior == Behavior::Ask {
                    (question.decision, question.mode) = (now, policy.mode);
                    toolbox.approver.update(&question);
                    continue;
                }
                if pending.withdraw() {
                    lane.event(decision_event(lane, admitted, &now));
                    return if now.behavior == Behavior::Allow { Ok(None) } else { Err(denied(&now)) };
                }
            }
            () = &mut timer => {
                if pending.withdraw() {
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
            && judge(toolbox, admitted, &toolbox.policy(), Some(&yes), false).behavior == Behavior::Allow
    };
    said.approved.then(Answer::once).filter(|_| may())
}

/// Takes the question off the queue however the wait ends, a cancelled call included.
struct TakeBack<'a> {
    lane: &'a Lane,
    id: std::sync::Arc<str>,
    pending: &'a Pending,
}

impl Drop for TakeBack<'_> {
    fn drop(&mut self) {
        self.pending.withdraw();
        let remove = || self.lane.toolbox().approver.remove(&self.id);
        // This also runs while a panic unwinds, where a second one would end the process.
        catch_unwind(AssertUnwindSafe(remove)).ok();
    }
}

async fn settle(
    lane: &Lane,
    admitted: &Admitted,
    opinion: Option<&HookOpinion>,
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
        Answer::Allow { grant, input, reason } => {
            let reason = match (reason, &grant) {
                (Some(reason), _) => reason,
                (None, Some(grant)) => format!("approved, and {} for later calls", grant.rule),
                (None, None) => "approved once".to_owned(),
            };
            settled(Behavior::Allow, reason);
            if let Some(grant) = grant {
                for words in put_in_force(lane, admitted, opinion, grant).await {
                    lane.toolbox().approver.tell(&question.id, &words);
                }
            }
            Ok(input)
        }
        Answer::Deny { feedback } => {
            let feedback = feedback.map(|words| format!(" ({words})")).unwrap_or_default();
            Err(denied(&settled(Behavior::Deny, format!("{}{feedback}", question.decision.reason))))
        }
    }
}

/// Grants, saves if that was wanted, and gives what the person should know about it. The call at
/// hand is allowed whatever becomes of the rule.
async fn put_in_force(
    lane: &Lane,
    admitted: &Admitted,
    opinion: Option<&HookOpinion>,
    grant: Grant,
) -> Vec<String> {
    let toolbox = lane.toolbox();
    let mut told = Vec::new();
    toolbox.grant(grant.clone());
    let now = judge(toolbox, admitted, &toolbox.policy(), opinion, false);
    if now.behavior != Behavior::Allow {
        told.push(format!(
            "{} does not settle such calls, they will be asked again: {}",
            grant.rule, now.reason
        ));
    }
    let Some(to) = grant.save else { return told };
    for rule in grant.rules() {
        let saved = match &toolbox.saver {
            _ if grant.is_limited() => Err("settings files know no limits".to_owned()),
            None => Err("no settings files are in use here".to_owned()),
            Some(saver) => {
                let (saver, rule) = (saver.clone(), rule.clone());
                let saving = tokio::task::spawn_blocking(move || saver.save(to, RuleList::Allow, &rule));
                saving.await.unwrap_or_else(|_| Err("writing it failed because of a bug".to_owned()))
            }
        };
        told.push(match saved {
            Ok(path) => format!("{rule} is saved in {}", path.display()),
            Err(why) => format!("{rule} holds for this session, but was not saved: {why}"),
        });
    }
    told
}
