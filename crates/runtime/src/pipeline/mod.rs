//! The life of a call, top to bottom.
//!
//! Five stages, each a function below: **enabled** and **validate** run when the call is
//! submitted (the scheduler needs to know what it touches), **hooks**, **permission** and
//! **execute** when it is its turn. Whatever happens, `run_call` gives exactly one result.

mod around;
mod ask;
mod result;

use std::{borrow::Cow, panic::AssertUnwindSafe, sync::Arc};

use futures::FutureExt;
use gripper_permissions::{Behavior, COMMAND_TOOL, Decision, HookOpinion, Policy, Request, decide};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::{
    access::Access,
    event::Event,
    executor::Lane,
    hooks::{HookEvent, RewriteTrust},
    place::Place,
    registry::Pool,
    results::Strategy,
    schema::{self, Coercion},
    settings::Settings,
    tool::{
        Block, Call, DynTool, ErrorCode, ProgressSender, ResultBound, SessionEffect, ToolError, ToolOutput,
        Unfit, ValidInput, accept, accept_rewritten,
    },
    toolbox::Toolbox,
};

pub use result::{CallRequest, CallResult, NotACall};

/// A call whose tool is there and whose input is fit.
pub(crate) struct Admitted {
    pub(crate) tool: Arc<dyn DynTool>,
    pub(crate) input: ValidInput,
    pub(crate) access: Access,
    /// Hooks want to see it.
    pub(crate) hooked: bool,
}

/// A result with what only the executor needs to know about it.
pub(crate) struct Outcome {
    pub(crate) result: CallResult,
    pub(crate) effects: Vec<SessionEffect>,
    pub(crate) bound: ResultBound,
    /// The tool itself ran, so a failure is the tool's.
    pub(crate) ran: bool,
}

impl Outcome {
    /// Whether this is a failure of the tool's own work, which calls behind it may have built on.
    pub(crate) fn spreads(&self) -> bool {
        self.ran && self.result.is_error || self.result.error_code == Some(ErrorCode::Timeout)
    }
}

/// Stages 1 and 2, at submission.
pub(crate) fn admit(
    toolbox: &Toolbox,
    pool: &Pool,
    request: CallRequest,
) -> Result<Box<Admitted>, ToolError> {
    let tool = enabled(pool, &request.name)?;
    let input = validate(tool.as_ref(), request.input, toolbox.settings.input_limit)?;
    let access = Access::of(tool.as_ref(), &input, &toolbox.place(), &toolbox.policy());
    let command = access.command_use().is_some();
    let hooked =
        toolbox.hooks.interested(&tool.spec().name) || (command && toolbox.hooks.interested(COMMAND_TOOL));
    Ok(Box::new(Admitted { tool, input, access, hooked }))
}

/// Shows `look` a call the way rules would see it if no hook spoke, without running anything.
pub fn preview<T>(
    tool: &Arc<dyn DynTool>,
    input: Value,
    (place, policy): (&Place, &Policy),
    look: impl FnOnce(&Request<'_>) -> T,
) -> Result<T, ToolError> {
    let input = validate(tool.as_ref(), input, Settings::default().input_limit)?;
    let access = Access::of(tool.as_ref(), &input, place, policy);
    let admitted = Admitted { tool: tool.clone(), input, access, hooked: false };
    Ok(look(&request(&admitted)))
}

/// Stages 3 to 5, when nothing earlier stands in the way.
pub(crate) async fn run_call(lane: &Lane, admitted: Result<Box<Admitted>, ToolError>) -> Outcome {
    let started = Instant::now();
    let permit = match admitted {
        Err(error) => Err(error),
        Ok(admitted) => tokio::select! {
            biased;
            permit = prepare(lane, admitted) => permit,
            () = lane.cancel().cancelled() => Err(stopped()),
        },
    };
    let mut outcome = match permit {
        Err(error) => failure(lane, error),
        Ok(permit) => execute(lane, permit).await,
    };
    outcome.result.duration = started.elapsed();
    outcome
}

/// Stages 3 and 4: what must be true before the tool may run.
async fn prepare(lane: &Lane, admitted: Box<Admitted>) -> Result<Permit, ToolError> {
    if let Some(reason) = lane.toolbox().halted() {
        let message = format!("not run: a hook ended the session: {reason}");
        return Err(ToolError::new(ErrorCode::HookBlocked, message));
    }
    repeated(lane, &admitted)?;
    let hooked = hooks(lane, admitted).await?;
    if lane.toolbox().hooks.listens(HookEvent::PERMISSION_DENIED) {
        return Box::pin(around::watched(lane, hooked)).await;
    }
    permission(lane, hooked).await
}

/// Stage 1: is the tool there?
fn enabled(pool: &Pool, name: &str) -> Result<Arc<dyn DynTool>, ToolError> {
    if let Some(tool) = pool.get(name) {
        return Ok(tool.clone());
    }
    if let Some(absence) = pool.absence(name) {
        return Err(ToolError::new(absence.code, format!("{name} is not available: {}", absence.reason)));
    }
    let shown: String = name.chars().take(64).collect();
    let near = pool.near(name);
    let hint = if near.is_empty() { String::new() } else { format!(": did you mean {}?", near.join(", ")) };
    Err(ToolError::new(ErrorCode::UnknownTool, format!("there is no tool called \"{shown}\"{hint}"))
        .with(json!({ "near": near })))
}

/// Stage 2: does the input fit?
fn validate(tool: &dyn DynTool, input: Value, limit: usize) -> Result<ValidInput, ToolError> {
    accept(tool, input, limit).map_err(|unfit| unfit_error(tool, unfit))
}

fn unfit_error(tool: &dyn DynTool, unfit: Unfit) -> ToolError {
    match unfit {
        Unfit::TooLarge { limit } => ToolError::new(
            ErrorCode::TooLarge,
            format!(
                "the input is larger than {limit} bytes, the most a call may carry: send less, or split the work into several calls"
            ),
        ),
        Unfit::Problems(problems) => {
            ToolError::new(ErrorCode::InvalidInput, schema::describe(&tool.spec().name, &problems))
                .with(json!({ "problems": problems }))
        }
    }
}

/// A call that failed the same way too often is not tried again.
fn repeated(lane: &Lane, admitted: &Admitted) -> Result<(), ToolError> {
    // Reads may overlap with their twins; the executor settles those in order instead.
    if admitted.access.read_only() {
        return Ok(());
    }
    match lane.failed_too_often() {
        Some(failures) => Err(refusal(failures)),
        None => Ok(()),
    }
}

pub(crate) fn refusal(failures: u32) -> ToolError {
    ToolError::new(
        ErrorCode::Repeated,
        format!(
            "refused: this exact call has already failed {failures} times; change the input or try another way"
        ),
    )
}

/// A call that hooks have seen.
struct Hooked {
    admitted: Box<Admitted>,
    opinion: Option<HookOpinion>,
    notes: Vec<String>,
}

/// Stage 3: hooks may block, decide, rewrite or add to the result.
///
/// What few calls need is boxed here and below: the future of a call is copied several times
/// before it runs, so its size is most of what a call costs.
async fn hooks(lane: &Lane, admitted: Box<Admitted>) -> Result<Hooked, ToolError> {
    if admitted.hooked {
        return Box::pin(around::before(lane, admitted)).await;
    }
    Ok(Hooked { admitted, opinion: None, notes: Vec::new() })
}

/// Puts another input in place, checked again, and leaves a record of both.
fn rewritten(
    lane: &Lane,
    admitted: &mut Admitted,
    input: Value,
    by: &'static str,
    trust: RewriteTrust,
) -> Result<(), ToolError> {
    let tool = admitted.tool.as_ref();
    lane.event(Event::Rewrite {
        call_id: lane.call_id().clone(),
        by,
        before: admitted.input.value().clone(),
        after: input.clone(),
    });
    admitted.input = match trust {
        RewriteTrust::Trust => accept_rewritten(tool, input).map_err(|unfit| unfit_error(tool, unfit))?,
        RewriteTrust::Revalidate | RewriteTrust::PolicyOnly => {
            validate(tool, input, lane.toolbox().settings.input_limit)?
        }
    };
    let toolbox = lane.toolbox();
    admitted.access = Access::of(tool, &admitted.input, &toolbox.place(), &toolbox.policy());
    Ok(())
}

/// A call that may run, and the policy that says so.
struct Permit {
    admitted: Box<Admitted>,
    policy: Arc<Policy>,
    place: Arc<Place>,
    /// Somebody was asked and said yes.
    approved: bool,
    opinion: Option<HookOpinion>,
    notes: Vec<String>,
}

/// Stage 4: may it be done? An ask goes to the approver.
async fn permission(lane: &Lane, hooked: Hooked) -> Result<Permit, ToolError> {
    let Hooked { mut admitted, opinion, notes } = hooked;
    let toolbox = lane.toolbox();
    let place = toolbox.place();
    // Links may have moved since submission: what is judged is what is there now.
    let policy = toolbox.policy();
    admitted.access = Access::of(admitted.tool.as_ref(), &admitted.input, &place, &policy);
    let decision = judge(toolbox, &admitted, &policy, opinion.as_ref(), true);
    lane.event(decision_event(lane, &admitted, &decision));
    let behavior = decision.behavior;
    match behavior {
        Behavior::Allow => {}
        Behavior::Deny => return Err(denied(&decision)),
        Behavior::Ask => {
            // A question may stay open for long; others use the place meanwhile.
            lane.set_aside();
            let asking = ask::ask(lane, &admitted, opinion.as_ref(), decision);
            if let Some(input) = Box::pin(asking).await? {
                rewritten(lane, &mut admitted, input, "approver", RewriteTrust::Revalidate)?;
                // The approver's yes covers its own input, but no yes lifts a deny.
                not_denied(lane, &admitted, &policy, opinion.as_ref())?;
            }
            Box::pin(settle(lane, &admitted)).await?;
        }
    }
    let approved = behavior == Behavior::Ask;
    Ok(Permit { admitted, policy, place, approved, opinion, notes })
}

/// Waits for the call's place in the order, now that it is certain what it touches.
async fn settle(lane: &Lane, admitted: &Admitted) -> Result<(), ToolError> {
    if lane.settle(&admitted.access).await {
        return Ok(());
    }
    let message =
        "not run: with its changed input it touches what a later call is already working on; call it again";
    Err(ToolError::new(ErrorCode::Denied, message))
}

/// Judges the call. `spend` uses a counted grant up, if it is one that allows it.
fn judge(
    toolbox: &Toolbox,
    admitted: &Admitted,
    policy: &Policy,
    hook: Option<&HookOpinion>,
    spend: bool,
) -> Decision {
    toolbox.judge(policy, &admitted.access, spend, |policy| {
        decide(policy, &Request { hook: hook.cloned(), ..request(admitted) })
    })
}

/// The call as rules see it.
fn request(admitted: &Admitted) -> Request<'_> {
    let spec = admitted.tool.spec();
    Request {
        tool: &spec.name,
        server: spec.server.as_deref(),
        also: if spec.server.is_some() { &spec.aliases } else { &[] },
        input: Some(admitted.input.value()),
        subjects: admitted.access.subjects().to_vec(),
        read_only: admitted.access.read_only(),
        opaque: admitted.access.opaque(),
        needs_person: spec.facts.needs_person,
        edits_files: spec.facts.edits_files,
        opinion: admitted.tool.opinion(&admitted.input),
        hook: None,
    }
}

/// Looks again for a deny, after an approval or under a newer policy.
fn not_denied(
    lane: &Lane,
    admitted: &Admitted,
    policy: &Policy,
    opinion: Option<&HookOpinion>,
) -> Result<(), ToolError> {
    let decision = judge(lane.toolbox(), admitted, policy, opinion, false);
    if decision.behavior != Behavior::Deny {
        return Ok(());
    }
    lane.event(decision_event(lane, admitted, &decision));
    Err(denied(&decision))
}

fn decision_event(lane: &Lane, admitted: &Admitted, decision: &Decision) -> Event {
    Event::Decision {
        call_id: lane.call_id().clone(),
        tool: lane.tool().clone(),
        input: admitted.input.shared(),
        decision: decision.clone(),
    }
}

fn denied(decision: &Decision) -> ToolError {
    ToolError::new(ErrorCode::Denied, format!("not permitted: {}", decision.reason))
        .with(json!({ "decision": decision }))
}

/// Stage 5: run it, under a deadline, with progress and a way to stop it.
async fn execute(lane: &Lane, permit: Permit) -> Outcome {
    let toolbox = lane.toolbox();
    let Permit { admitted, policy, place, approved, opinion, notes } = permit;
    let tool = admitted.tool.as_ref();
    if lane.cancel().is_cancelled() {
        return failure(lane, stopped());
    }
    // A deny added while hooks ran or a person thought still counts.
    let newest = toolbox.policy();
    if !Arc::ptr_eq(&newest, &policy)
        && let Err(denial) = not_denied(lane, &admitted, &newest, opinion.as_ref())
    {
        return failure(lane, denial);
    }
    lane.begin(tool.summary(&admitted.input), tool.time_limit(&admitted.input));
    let call = call_of(lane, &admitted, (place, policy), approved);
    let began = Instant::now();
    let ran = AssertUnwindSafe(tool.run(&admitted.input, &call)).catch_unwind().await;
    if admitted.hooked {
        lane.end_of_work();
    }
    let ran = ran.unwrap_or_else(|panic| Err(panicked(lane.tool(), panic.as_ref())));
    let mut outcome = map(lane, tool, ran);
    outcome.result.duration = began.elapsed();
    let said = around::after(lane, &admitted, &mut outcome.result).await;
    bound(toolbox, &mut outcome);
    // Notes come after the bound, or they would be the first thing cut off.
    for note in repairs(&admitted).into_iter().chain(notes).chain(said) {
        outcome.result.add_note(&note);
    }
    outcome
}

/// What a tool is given besides its input.
fn call_of(
    lane: &Lane,
    admitted: &Admitted,
    (place, policy): (Arc<Place>, Arc<Policy>),
    approved: bool,
) -> Call {
    let toolbox = lane.toolbox();
    Call {
        id: lane.call_id().clone(),
        turn: lane.turn_id().clone(),
        session: toolbox.session.clone(),
        agent: toolbox.agent.clone(),
        place,
        policy,
        pool: lane.pool(),
        progress: ProgressSender::new(lane.reporter()),
        cancel: lane.cancel().clone(),
        files: toolbox.files.clone(),
        access: admitted.access.clone(),
        approved,
    }
}

/// A panic as an error for the model; the process goes on.
pub(crate) fn panicked(tool: &str, panic: &(dyn std::any::Any + Send)) -> ToolError {
    let words: Cow<'_, str> = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(words), _) => Cow::Borrowed(words),
        (_, Some(words)) => words.chars().take(500).collect::<String>().into(),
        _ => Cow::Borrowed("no details"),
    };
    ToolError::new(
        ErrorCode::Panic,
        format!("{tool} has a bug and stopped ({words}); its work may be incomplete"),
    )
}

fn map(lane: &Lane, tool: &dyn DynTool, ran: Result<ToolOutput, ToolError>) -> Outcome {
    let bound = tool.spec().facts.bound;
    let (call_id, name) = (lane.call_id().clone(), lane.tool().clone());
    match ran {
        Err(error) => Outcome {
            result: CallResult::failed(call_id, name, error),
            effects: Vec::new(),
            bound,
            ran: true,
        },
        Ok(output) => {
            let mut result = CallResult::plain(call_id, name, "");
            result.content = output.content;
            result.structured = output.structured;
            result.is_error = output.is_error;
            result.error_code = output.is_error.then_some(ErrorCode::Failed);
            Outcome { result, effects: output.effects, bound, ran: true }
        }
    }
}

/// The model should know that what ran is not quite what it wrote.
fn repairs(admitted: &Admitted) -> Vec<String> {
    let say =
        |repair: &Coercion| format!("(input {}: {} was taken as {})", repair.path, repair.from, repair.to);
    admitted.input.coercions().iter().map(say).collect()
}

fn bound(toolbox: &Toolbox, outcome: &mut Outcome) {
    if let ResultBound::Chars(most, strategy) = outcome.bound {
        shorten(toolbox, &mut outcome.result, most, strategy);
    }
}

/// Brings a result's text down to `most` characters; the whole of it is stored, and pictures and sounds stay.
pub(crate) fn shorten(toolbox: &Toolbox, result: &mut CallResult, most: usize, strategy: Strategy) {
    if result.chars() <= most {
        return;
    }
    let whole = result.to_string();
    if let Some(window) = toolbox.results.bound(&result.call_id, &whole, most, strategy) {
        result.content.retain(|block| !matches!(block, Block::Text { .. }));
        result.content.insert(0, Block::text(window.text));
    }
}

/// Whoever stopped the call has already settled its result; this one is dropped.
fn stopped() -> ToolError {
    ToolError::new(ErrorCode::Cancelled, "cancelled before it began")
}

/// The result of a call that did not get as far as its tool.
fn failure(lane: &Lane, error: ToolError) -> Outcome {
    synthetic(lane.call_id().clone(), lane.tool().clone(), error)
}

/// A result that no tool made.
pub(crate) fn synthetic(call_id: Arc<str>, tool: Arc<str>, error: ToolError) -> Outcome {
    Outcome {
        result: CallResult::failed(call_id, tool, error),
        effects: Vec::new(),
        bound: ResultBound::SelfBounded,
        ran: false,
    }
}
