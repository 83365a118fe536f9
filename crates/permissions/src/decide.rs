//! The decision, step by step. Each step either settles the call or passes it on; the order is
//! the promise: a deny can never be lifted, an ask never lowered, and only then may things be allowed.

use std::{borrow::Cow, sync::Arc};

use gripper_shell::{RiskKind, hidden};
use serde::Serialize;

use crate::{
    Deceptive, HookOpinion, Mode, Opinion, PathUse, Policy, Request, RuleList, SourcedRule, checks,
    cover::{Cover, Coverage},
    index::Index,
    rule::Fit,
    suggest,
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
    /// A path that nothing may write.
    ProtectedPath,
    /// The removal of a folder that everything depends on.
    CriticalRemoval,
    /// A write that leaves the working directories through a link.
    EscapingLink,
    /// A URL that may not be fetched.
    BadUrl,
    /// A URL that leads to this machine, its network or an odd port.
    DoubtfulUrl,
    /// Data that looks secret would leave the machine.
    Exfiltration,
    /// A redirection outside the working directories.
    Redirection,
    /// A rule might forbid what is decided only while it runs.
    PerhapsForbidden,
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
        rule: Box<SourcedRule>,
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
    /// Further rules that are needed beside it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
    /// What else it would allow.
    pub reach: String,
}

/// The answer, and everything needed to explain it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Decision {
    /// Allow, ask or deny.
    pub behavior: Behavior,
    /// The step of the order above that settled it, from 1.
    pub step: u8,
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
    pub(crate) fn new(behavior: Behavior, by: By, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { behavior, step: 0, reason: reason.into(), by, risks: Vec::new(), suggestions: Vec::new() }
    }
}

type Step = fn(&Judge<'_, '_>) -> Option<Decision>;

/// Decides about one call. Pure: the same policy and request always give the same decision.
pub fn decide(policy: &Policy, request: &Request<'_>) -> Decision {
    let judge = Judge { policy, request, index: policy.index() };
    let steps: [Step; 9] = [
        |judge| judge.denied_by_rule(),
        |judge| judge.failed_check(),
        |judge| judge.hook_denial(),
        |judge| judge.plan_mode(),
        |judge| judge.firm_ask(),
        |judge| judge.bypass(),
        |judge| judge.allowed_by_rule_or_hook(),
        |judge| judge.tool_opinion(),
        |judge| judge.unsettled(),
    ];
    let settled =
        steps.iter().zip(1..).find_map(|(step, number)| Some(Decision { step: number, ..step(&judge)? }));
    // The last step always settles it; were it not so, the answer would be no.
    let decision = settled
        .unwrap_or_else(|| Decision::new(Behavior::Deny, By::Check(Check::Unsettled), "nothing settled it"));
    never_ask(policy, with_risks(decision, request))
}

/// Judges the files that one call comes upon in a folder which it may read, many of them and quickly.
///
/// What was settled about the folder itself is not asked about again inside of it.
pub struct Sieve {
    index: Arc<Index>,
    within: PathUse,
    /// The folder itself is delicate, and was decided about as such.
    delicate: bool,
}

impl Sieve {
    /// For files below `within`.
    pub fn new(policy: &Policy, within: PathUse) -> Self {
        let index = policy.index();
        let delicate = checks::delicate(&index, &within).is_some();
        Self { index, within, delicate }
    }

    /// Whether any rule could keep a file from being named.
    pub fn hides_names(&self) -> bool {
        self.index.list(RuleList::Deny).minds_paths()
    }

    /// Whether a file may be shown.
    pub fn judge(&self, file: &PathUse) -> Behavior {
        if self.hides_names() && self.index.list(RuleList::Deny).strikes_path(file).is_some() {
            return Behavior::Deny;
        }
        if file.names_only {
            return Behavior::Allow;
        }
        let asks = self.index.list(RuleList::Ask);
        let rule = |path| asks.strikes_path(path).map(|(_, rule)| rule);
        let asked = asks.minds_paths() && rule(file).is_some_and(|found| rule(&self.within) != Some(found));
        let secret = || !self.delicate && checks::delicate(&self.index, file).is_some();
        if asked || secret() { Behavior::Ask } else { Behavior::Allow }
    }
}

/// One call and the policy it is judged by.
pub(crate) struct Judge<'a, 'r> {
    pub policy: &'a Policy,
    pub request: &'a Request<'r>,
    pub index: Arc<Index>,
}

impl Judge<'_, '_> {
    /// Step 1: deny rules, never lifted by anything.
    fn denied_by_rule(&self) -> Option<Decision> {
        match self.index.list(RuleList::Deny).strikes(self.request)? {
            (Fit::Yes, rule) => Some(rule_decision(Behavior::Deny, RuleList::Deny, rule)),
            _ => None,
        }
    }

    /// Step 2: hard checks.
    fn failed_check(&self) -> Option<Decision> {
        if let Opinion::Deny(reason) = &self.request.opinion {
            return Some(Decision::new(Behavior::Deny, By::Tool, reason.clone()));
        }
        let deceptive = self.policy.flags.deceptive == Deceptive::Deny;
        checks::hidden(self.request)
            .or_else(|| checks::protected(self.policy, self.request))
            .or_else(|| checks::critical_removal(self.policy, self.request))
            .or_else(|| deceptive.then(|| checks::deceptive(self.request, Behavior::Deny)).flatten())
            .or_else(|| checks::bad_url(self.request))
    }

    /// Step 3: a hook that denies.
    fn hook_denial(&self) -> Option<Decision> {
        let Some(HookOpinion::Deny(reason)) = &self.request.hook else { return None };
        Some(Decision::new(Behavior::Deny, By::Hook, format!("a hook denied it: {reason}")))
    }

    /// Step 4: plan mode, which only leaving it can lift. It comes before the asks: were it behind
    /// them, an ask rule or a hook that asks would turn its no into a question.
    fn plan_mode(&self) -> Option<Decision> {
        let request = self.request;
        (self.policy.mode == Mode::Plan && !request.read_only && !request.needs_person).then(|| {
            let reason = format!(
                "plan mode: {} could change something, and only reading is allowed until the plan is accepted",
                request.tool
            );
            Decision::new(Behavior::Deny, By::Mode(Mode::Plan), reason)
        })
    }

    /// Step 5: asks that nothing may lower.
    fn firm_ask(&self) -> Option<Decision> {
        let request = self.request;
        if let Some(HookOpinion::Ask(reason)) = &request.hook {
            return Some(Decision::new(Behavior::Ask, By::Hook, format!("a hook wants it asked: {reason}")));
        }
        if let Some((_, rule)) = self.index.list(RuleList::Ask).strikes(request) {
            return Some(rule_decision(Behavior::Ask, RuleList::Ask, rule));
        }
        if let Some((_, rule)) = self.index.list(RuleList::Deny).strikes(request) {
            let reason = format!("it may be what the deny rule {} ({}) is about", rule.rule, rule.source);
            return Some(Decision::new(Behavior::Ask, By::Check(Check::PerhapsForbidden), reason));
        }
        let forbids = |list| self.index.list(list).minds_deeds();
        if request.opaque && [RuleList::Deny, RuleList::Ask].into_iter().any(forbids) {
            let reason = "what it runs is not taken apart, and may be what a deny or ask rule is about";
            return Some(Decision::new(Behavior::Ask, By::Check(Check::PerhapsForbidden), reason));
        }
        if let Some(decision) = checks::deceptive(request, Behavior::Ask) {
            return Some(decision);
        }
        if let Opinion::Ask { reason, firm: true } = &request.opinion {
            return Some(Decision::new(Behavior::Ask, By::Tool, reason.clone()));
        }
        if request.needs_person {
            let reason = format!("{} is a question to a person", request.tool);
            return Some(Decision::new(Behavior::Ask, By::Check(Check::NeedsPerson), reason));
        }
        let found = checks::malformed(request)
            .or_else(|| checks::sensitive_path(&self.index, request))
            .or_else(|| checks::sensitive_words(self.policy, &self.index, request))
            .or_else(|| checks::blind_removal(request))
            .or_else(|| checks::redirection(self.policy, request))
            .or_else(|| checks::exfiltration(&self.index, request))
            .or_else(|| checks::doubtful_url(request))?;
        // No rule lifts these for a command; a file that a rule names is another matter.
        Some(if request.command_use().is_some() { found } else { self.with_suggestions(found) })
    }

    /// Step 6: bypass, where it is available.
    fn bypass(&self) -> Option<Decision> {
        let active = self.policy.mode == Mode::BypassPermissions && !self.policy.flags.bypass_unavailable;
        active.then(|| {
            Decision::new(Behavior::Allow, By::Mode(Mode::BypassPermissions), "permissions are bypassed")
        })
    }

    /// Step 7: allow rules that cover the whole call, or a hook's yes.
    fn allowed_by_rule_or_hook(&self) -> Option<Decision> {
        if let Some(rule) = self.allow_rule() {
            return Some(rule_decision(Behavior::Allow, RuleList::Allow, &rule));
        }
        match &self.request.hook {
            Some(HookOpinion::Allow(reason)) => {
                Some(Decision::new(Behavior::Allow, By::Hook, format!("a hook allowed it: {reason}")))
            }
            _ => None,
        }
    }

    fn allow_rule(&self) -> Option<SourcedRule> {
        let list = self.index.list(RuleList::Allow);
        if let Some(command) = self.request.command_use() {
            return match Coverage::new(self.policy, &self.index, self.request, command).look() {
                Cover::Whole(rule) => rule.cloned(),
                Cover::Lacking(_) => None,
            };
        }
        if let Some(rule) = list.allows_call(self.request) {
            return Some(rule.clone());
        }
        let mut paths = self.request.paths().peekable();
        paths.peek()?;
        let covering: Option<Vec<&SourcedRule>> = paths.map(|path| list.allows_path(path)).collect();
        // A tool that does more with its paths than reading and changing them needs its own rule.
        let only_files = self.request.read_only || self.request.edits_files;
        covering.filter(|_| only_files)?.into_iter().next().cloned()
    }

    /// Step 8: what the tool declares about itself.
    fn tool_opinion(&self) -> Option<Decision> {
        let (policy, request) = (self.policy, self.request);
        match &request.opinion {
            Opinion::Allow(reason) => return Some(Decision::new(Behavior::Allow, By::Tool, reason.clone())),
            Opinion::Ask { reason, .. } => {
                return Some(self.with_suggestions(Decision::new(Behavior::Ask, By::Tool, reason.clone())));
            }
            Opinion::None | Opinion::Deny(_) => {}
        }
        if checks::is_documentation(request) {
            return Some(Decision::new(Behavior::Allow, By::Tool, "the site only publishes documentation"));
        }
        if let Some(decision) = checks::open_reads(policy, request) {
            return Some(self.with_suggestions(decision));
        }
        if let Some(outside) = checks::first_outside(policy, request) {
            let reason = format!("{} is outside the working directories", hidden::visible(&outside));
            let by = By::Check(Check::OutsideDirectories);
            return Some(self.with_suggestions(Decision::new(Behavior::Ask, by, reason)));
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
        self.accepted_edits().or_else(|| self.network_read())
    }

    fn accepted_edits(&self) -> Option<Decision> {
        let (policy, request) = (self.policy, self.request);
        if policy.mode != Mode::AcceptEdits {
            return None;
        }
        let accepted = match request.command_use() {
            Some(command) => {
                let cover = Coverage::new(policy, &self.index, request, command).look();
                matches!(cover, Cover::Whole(_)) && !command.analysis.parts().is_empty()
            }
            // An edit without a known path is not inside anything, so it is not waved through.
            None => request.edits_files && !request.subjects.is_empty(),
        };
        accepted.then(|| {
            let by = By::Mode(Mode::AcceptEdits);
            Decision::new(Behavior::Allow, by, "edits inside the working directories are accepted")
        })
    }

    /// Commands that only query the network, where that is allowed.
    fn network_read(&self) -> Option<Decision> {
        let analysis = &self.request.command_use()?.analysis;
        (self.policy.flags.network_reads && analysis.only_queries()).then(|| {
            Decision::new(
                Behavior::Allow,
                By::Tool,
                "only queries the network, which permissions.networkReads allows",
            )
        })
    }

    /// Step 9: what is left.
    fn unsettled(&self) -> Option<Decision> {
        let reason = match self.request.command_use() {
            Some(command) => format!("no rule allows it: {}", hidden::visible(&command.summary)),
            None => format!("no rule allows {}", self.request.tool),
        };
        let by = By::Check(Check::Unsettled);
        Some(self.with_suggestions(Decision::new(Behavior::Ask, by, reason)))
    }

    /// An ask, with the rules that would have made it needless.
    fn with_suggestions(&self, mut decision: Decision) -> Decision {
        decision.suggestions = suggest::rules(self);
        decision
    }
}

impl Decision {
    /// The step that settled it, in words.
    pub fn step_name(&self) -> &'static str {
        match self.step {
            1 => "deny rules",
            2 => "checks that nothing lifts",
            3 => "hooks that deny",
            4 => "plan mode",
            5 => "ask rules and checks that always ask",
            6 => "bypass mode",
            7 => "allow rules and hooks that allow",
            8 => "what the call is known to do",
            _ => "nothing else settled it",
        }
    }
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
    Decision::new(behavior, By::Rule { list, rule: Box::new(rule.clone()) }, reason)
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

#[cfg(test)]
#[path = "decide_tests.rs"]
mod tests;
