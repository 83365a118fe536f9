//! Putting a call to the approver.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gripper_permissions::{Behavior, By, Decision, HookOpinion, RuleList};
use serde_json::{Value, json};

use super::{Admitted, decision_event, denied, judge};
use crate::{
    approve::{Answer, Ask, Grant, Pending, Reply},
    executor::Lane,
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
    };
    let (pending, reply) = Reply::open();
    let _taken_back = TakeBack { lane, id: question.id.clone(), pending: &pending };
    toolbox.approver.push(question.clone(), reply);
    let limit = toolbox.settings.approval_limit;
    let timer = tokio::time::sleep(limit);
    tokio::pin!(timer);
    loop {
        tokio::select! {
            biased;
            answer = pending.wait() => return settle(lane, admitted, opinion, &question, answer).await,
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
) -> Result<Option<Value>, ToolError> {
    let settled = |behavior, reason: String| {
        let decision =
            Decision { behavior, reason: reason.into(), by: By::Approver, ..question.decision.clone() };
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
