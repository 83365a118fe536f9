//! The decision, step by step. Each step either settles the call or passes it on; the order is
//! the promise: a deny can never be lifted, an ask never lowered, and only then may things be allowed.

use std::borrow::Cow;

use gripper_shell::{Phase, RiskKind, Target, Verdict, hidden};
use serde::Serialize;

use crate::{
    Deceptive, HookOpinion, Mode, Opinion, Policy, Request, RuleList, SourcedRule, Subject, sensitive,
};

/// Allow, ask or deny.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Behavior {
    /// Run it.
    Allow,
    /// Put it to the approver.
    Ask,
    /// Do not run it.
    Deny,
}

/// The built-in checks that can decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Check {
    /// Characters that deceive a reader in a command.
    HiddenCharacters,
    /// A command whose text hides what it does.
    DeceptiveCommand,
    /// The tool talks to a person.
    NeedsPerson,
    /// A path that holds secrets.
    SensitivePath,
    /// A command that may read anything, where nothing hides the sensitive files.
    Unconfined,
    /// A path outside the working directories.
    OutsideDirectories,
    /// Nothing settled it.
    Unsettled,
}

/// Who or what produced a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// A rule, with its source.
    Rule {
        /// Which list it stands in.
        list: RuleList,
        /// The rule and its source.
        #[serde(flatten)]
        rule: SourcedRule,
    },
    /// A built-in check.
    Check(Check),
    /// A hook before the call.
    Hook,
    /// The permission mode.
    Mode(Mode),
    /// The tool's own opinion, or what it declared about itself.
    Tool,
    /// The approver that was asked.
    Approver,
}

/// A named danger and what causes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Risk {
    /// Stable name.
    pub name: Cow<'static, str>,
    /// Where, in words.
    pub detail: String,
}

/// A rule that a person could add to change the outcome.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Suggestion {
    /// The list it would go to.
    pub list: RuleList,
    /// The rule's text.
    pub rule: String,
}

/// The answer, and everything needed to explain it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// Allow, ask or deny.
    pub behavior: Behavior,
    /// One line for people and models.
    pub reason: Cow<'static, str>,
    /// What produced it.
    pub by: By,
    /// Dangers seen on the way.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub risks: Vec<Risk>,
    /// Rules that would change the outcome.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<Suggestion>,
}

impl Decision {
    fn new(behavior: Behavior, by: By, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { behavior, reason: reason.into(), by, risks: Vec::new(), suggestions: Vec::new() }
    }
}

/// Decides about one call. Pure: the same policy and request always give the same decision.
pub fn decide(policy: &Policy, request: &Request<'_>) -> Decision {
    let decision = denied_by_rule(policy, request)
        .or_else(|| failed_check(policy, request))
        .or_else(|| hook_denial(request))
        .or_else(|| plan_mode(policy, request))
        .or_else(|| firm_ask(policy, request))
        .or_else(|| bypass(policy))
        .or_else(|| allowed_by_rule_or_hook(policy, request))
        .or_else(|| tool_opinion(policy, request))
        .unwrap_or_else(|| unsettled(request));
    never_ask(policy, with_risks(decision, request))
}

/// The risks of a command go with every decision about it.
fn with_risks(mut decision: Decision, request: &Request<'_>) -> Decision {
    let risks = request.command_use().map(|command| command.analysis.risks()).unwrap_or_default();
    let mut seen: Vec<RiskKind> = Vec::new();
    for risk in risks {
        if !seen.contains(&risk.kind) {
            seen.push(risk.kind);
            decision.risks.push(Risk { name: risk.kind.name().into(), detail: risk.detail.clone() });
        }
    }
    decision
}

fn rule_decision(behavior: Behavior, list: RuleList, rule: &SourcedRule) -> Decision {
    let reason = format!("{} rule {} ({})", list.name(), rule.rule, rule.source);
    Decision::new(behavior, By::Rule { list, rule: rule.clone() }, reason)
}

/// Step 1: deny rules, never lifted by anything.
fn denied_by_rule(policy: &Policy, request: &Request<'_>) -> Option<Decision> {
    let rule = policy.rules.covering(RuleList::Deny, request.tool)?;
    Some(rule_decision(Behavior::Deny, RuleList::Deny, rule))
}

/// Step 2: hard checks.
fn failed_check(policy: &Policy, request: &Request<'_>) -> Option<Decision> {
    if let Opinion::Deny(reason) = &request.opinion {
        return Some(Decision::new(Behavior::Deny, By::Tool, reason.clone()));
    }
    for subject in &request.subjects {
        let Subject::Command(command) = subject else { continue };
        if let Some(found) = hidden::find(&command.text).first() {
            let detail = format!("{} at byte {} of the command", found.name(), found.at);
            let mut decision = Decision::new(
                Behavior::Deny,
                By::Check(Check::HiddenCharacters),
                format!("the command hides a {detail}: write it without hidden characters"),
            );
            decision.risks.push(Risk { name: "hidden_characters".into(), detail });
            return Some(decision);
        }
        if policy.flags.deceptive == Deceptive::Deny {
            return deceptive(request, Behavior::Deny);
        }
    }
    None
}

/// A command whose text hides what it does should be written plainly before anybody judges it.
fn deceptive(request: &Request<'_>, behavior: Behavior) -> Option<Decision> {
    let command = request.command_use()?;
    let risk = command.analysis.risks().iter().find(|risk| risk.kind.phase() == Phase::Allow)?;
    let reason = format!("{}: {}; {}", risk.kind, risk.detail, risk.kind.advice());
    Some(Decision::new(behavior, By::Check(Check::DeceptiveCommand), hidden::visible(&reason).into_owned()))
}

/// Step 3: a hook that denies.
fn hook_denial(request: &Request<'_>) -> Option<Decision> {
    let Some(HookOpinion::Deny(reason)) = &request.hook else { return None };
    Some(Decision::new(Behavior::Deny, By::Hook, format!("a hook denied it: {reason}")))
}

/// Step 4: plan mode, which only leaving it can lift. It comes before the asks: were it behind
/// them, an ask rule or a hook that asks would turn its no into a question.
fn plan_mode(policy: &Policy, request: &Request<'_>) -> Option<Decision> {
    (policy.mode == Mode::Plan && !request.read_only && !request.needs_person).then(|| {
        let reason = format!(
            "plan mode: {} could change something, and only reading is allowed until the plan is accepted",
            request.tool
        );
        Decision::new(Behavior::Deny, By::Mode(Mode::Plan), reason)
    })
}

/// Step 5: asks that nothing may lower.
fn firm_ask(policy: &Policy, request: &Request<'_>) -> Option<Decision> {
    if let Some(HookOpinion::Ask(reason)) = &request.hook {
        return Some(Decision::new(Behavior::Ask, By::Hook, format!("a hook wants it asked: {reason}")));
    }
    if let Some(rule) = policy.rules.covering(RuleList::Ask, request.tool) {
        return Some(rule_decision(Behavior::Ask, RuleList::Ask, rule));
    }
    if let Some(decision) = deceptive(request, Behavior::Ask) {
        return Some(decision);
    }
    if let Opinion::Ask { reason, firm: true } = &request.opinion {
        return Some(Decision::new(Behavior::Ask, By::Tool, reason.clone()));
    }
    request.needs_person.then(|| {
        let reason = format!("{} is a question to a person", request.tool);
        Decision::new(Behavior::Ask, By::Check(Check::NeedsPerson), reason)
    })
}

/// Step 6: bypass, where it is available.
fn bypass(policy: &Policy) -> Option<Decision> {
    let active = policy.mode == Mode::BypassPermissions && !policy.flags.bypass_unavailable;
    active.then(|| {
        Decision::new(Behavior::Allow, By::Mode(Mode::BypassPermissions), "permissions are bypassed")
    })
}

/// Step 7: an allow rule or a hook's yes.
fn allowed_by_rule_or_hook(policy: &Policy, request: &Request<'_>) -> Option<Decision> {
    if let Some(rule) = policy.rules.covering(RuleList::Allow, request.tool) {
        return Some(rule_decision(Behavior::Allow, RuleList::Allow, rule));
    }
    match &request.hook {
        Some(HookOpinion::Allow(reason)) => {
            Some(Decision::new(Behavior::Allow, By::Hook, format!("a hook allowed it: {reason}")))
        }
        _ => None,
    }
}

/// Step 8: what the tool declares about itself.
fn tool_opinion(policy: &Policy, request: &Request<'_>) -> Option<Decision> {
    match &request.opinion {
        Opinion::Allow(reason) => return Some(Decision::new(Behavior::Allow, By::Tool, reason.clone())),
        Opinion::Ask { reason, .. } => return Some(ask(request, By::Tool, reason.clone())),
        Opinion::None | Opinion::Deny(_) => {}
    }
    if let Some(decision) = secret(request).or_else(|| open_reads(policy, request)) {
        return Some(decision);
    }
    if let Some(outside) = first_outside(policy, request) {
        let reason = format!("{} is outside the working directories", hidden::visible(&outside));
        return Some(ask(request, By::Check(Check::OutsideDirectories), reason));
    }
    let risky = request.command_use().is_some_and(|command| !command.analysis.risks().is_empty());
    if request.read_only && !risky {
        let reason = if request.subjects.is_empty() {
            "changes nothing outside the session"
        } else {
            "only reads, inside the working directories"
        };
        return Some(Decision::new(Behavior::Allow, By::Tool, reason));
    }
    // An edit without a known path is not inside anything, so it is not waved through.
    let accepted = policy.mode == Mode::AcceptEdits && request.edits_files && !request.subjects.is_empty();
    accepted.then(|| {
        Decision::new(
            Behavior::Allow,
            By::Mode(Mode::AcceptEdits),
            "edits inside the working directories are accepted",
        )
    })
}

/// A path that holds secrets, as written or as it resolves.
fn secret(request: &Request<'_>) -> Option<Decision> {
    let path = request.subjects.iter().find_map(|subject| match subject {
        Subject::Path(path) if !path.names_only => {
            [&path.written, &path.real].into_iter().find(|path| sensitive::is_secret(&path.to_string_lossy()))
        }
        _ => None,
    })?;
    let reason = format!("{} may hold secrets", hidden::visible(&path.to_string_lossy()));
    Some(ask(request, By::Check(Check::SensitivePath), reason))
}

/// A command that only reads, but decides while it runs what.
fn open_reads(policy: &Policy, request: &Request<'_>) -> Option<Decision> {
    let analysis = &request.command_use()?.analysis;
    if analysis.verdict() != Verdict::ReadOnlyIfConfined {
        return None;
    }
    if !policy.flags.confined {
        let why = analysis
            .confined()
            .first()
            .map_or("which files it reads is decided while it runs", |note| &note.why);
        let reason = format!("{why}, and nothing here hides sensitive files from it");
        return Some(ask(request, By::Check(Check::Unconfined), reason));
    }
    let reads = analysis.reads();
    // Names that are only listed count when something else reads what is not known.
    let lists = if reads.contains(&Target::Unknown) { analysis.lists() } else { Default::default() };
    let pattern = reads.iter().chain(&lists).find_map(|target| match target {
        Target::Pattern(pattern) if sensitive::pattern_is_secret(pattern) => Some(pattern.as_str()),
        _ => None,
    });
    let open = reads.contains(&Target::Unknown);
    let hint = analysis.hints().iter().find(|word| open && sensitive::word_is_secret(word));
    let named = analysis.words().iter().find(|word| open && sensitive::names_secret(word));
    let found = pattern.or(hint.or(named).map(String::as_str))?;
    let reason = format!("`{}` may lead to secrets", hidden::visible(found));
    Some(ask(request, By::Check(Check::SensitivePath), reason))
}

/// Step 9: what is left.
fn unsettled(request: &Request<'_>) -> Decision {
    let reason = match request.command_use() {
        Some(command) => format!("no rule allows it: {}", hidden::visible(&command.summary)),
        None => format!("no rule allows {}", request.tool),
    };
    ask(request, By::Check(Check::Unsettled), reason)
}

/// An ask, with the rule that would have made it needless.
fn ask(request: &Request<'_>, by: By, reason: impl Into<Cow<'static, str>>) -> Decision {
    let mut decision = Decision::new(Behavior::Ask, by, reason);
    decision.suggestions.push(Suggestion { list: RuleList::Allow, rule: request.tool.to_owned() });
    decision
}

/// In `dontAsk` every ask, whatever produced it, is a no: were ask rules exempt, adding one would
/// turn a denial into a question.
fn never_ask(policy: &Policy, decision: Decision) -> Decision {
    if policy.mode != Mode::DontAsk || decision.behavior != Behavior::Ask {
        return decision;
    }
    let reason = format!("{}, and the mode is dontAsk", decision.reason).into();
    Decision { behavior: Behavior::Deny, by: By::Mode(Mode::DontAsk), reason, ..decision }
}

/// The first path, as written or as it resolves, that leaves the working directories.
fn first_outside(policy: &Policy, request: &Request<'_>) -> Option<String> {
    request.subjects.iter().find_map(|subject| match subject {
        Subject::Path(path) if !policy.holds(&path.written) => Some(path.written.display().to_string()),
        Subject::Path(path) if !policy.holds(&path.real) => {
            Some(format!("{} (which leads to {})", path.written.display(), path.real.display()))
        }
        _ => None,
    })
}

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
