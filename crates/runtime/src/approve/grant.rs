//! What a yes allows beyond the call it was given for.

use std::path::{Path, PathBuf};

use gripper_permissions::{Behavior, Decision, Policy, Rule, RuleList, Scope, Source, Subject, Suggestion};
use tokio::time::Instant;

/// An allow rule from an approver. It lifts what allow rules lift: no deny, and no firm ask.
#[derive(Debug, Clone, PartialEq)]
pub struct Grant {
    /// What it allows.
    pub rule: Rule,
    /// Further rules that help only beside it.
    pub also: Vec<Rule>,
    /// Only calls that stay in this folder.
    pub folder: Option<PathBuf>,
    /// Only so many calls after the one it was given for.
    pub uses: Option<u32>,
    /// Only until then.
    pub until: Option<Instant>,
    /// Also for later sessions: the settings file it goes to.
    pub save: Option<SaveTo>,
}

/// A settings file that rules can be saved in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SaveTo {
    /// This checkout only.
    Local,
    /// The project, shared.
    Project,
    /// The person's own settings.
    User,
}

/// Writes rules to settings files.
pub trait SaveRule: Send + Sync {
    /// Adds a rule to a list and gives the file, or says why that failed. May block.
    fn save(&self, to: SaveTo, list: RuleList, rule: &Rule) -> Result<PathBuf, String>;
}

impl Grant {
    /// For the rest of the session.
    pub fn of(rule: Rule) -> Self {
        Self { rule, also: Vec::new(), folder: None, uses: None, until: None, save: None }
    }

    /// What a suggestion offers. `None` when it is not about allowing.
    pub fn suggested(suggestion: &Suggestion) -> Option<Self> {
        let also = suggestion.also.iter().map(|rule| Rule::parse(rule).ok()).collect::<Option<_>>()?;
        let rule = Rule::parse(&suggestion.rule).ok().filter(|_| suggestion.list == RuleList::Allow)?;
        Some(Self { also, ..Self::of(rule) })
    }

    /// Its rules.
    pub fn rules(&self) -> impl Iterator<Item = &Rule> {
        std::iter::once(&self.rule).chain(&self.also)
    }

    /// Whether it holds for some calls of the session and not for others.
    pub(crate) fn is_limited(&self) -> bool {
        self.folder.is_some() || self.uses.is_some() || self.until.is_some()
    }

    fn is_over(&self, now: Instant) -> bool {
        self.uses == Some(0) || self.until.is_some_and(|until| until <= now)
    }

    /// Whether a call stays in the folder. What a command touches need not be all that it names, so
    /// a command, like a call that names nothing, must also work there.
    fn fits(&self, subjects: &[Subject], cwd: &Path) -> bool {
        let Some(folder) = &self.folder else { return true };
        let paths = || {
            subjects.iter().filter_map(|subject| match subject {
                Subject::Path(path) => Some(path),
                _ => None,
            })
        };
        let only_paths = paths().count() == subjects.len() && !subjects.is_empty();
        paths().all(|path| path.written.starts_with(folder) && path.real.starts_with(folder))
            && (only_paths || cwd.starts_with(folder))
    }
}

/// The limited grants of a session. The decision knows no clock and counts nothing: it gets a
/// policy with the grants that hold for the call at hand.
#[derive(Default)]
pub(crate) struct Grants(Vec<Grant>);

impl Grants {
    pub(crate) fn add(&mut self, grant: Grant) {
        self.0.push(grant);
    }

    /// Judges a call under the policy and the grants that hold for it; `spend` counts the use.
    pub(crate) fn judge(
        &mut self,
        policy: &Policy,
        (subjects, cwd): (&[Subject], &Path),
        spend: bool,
        decide: impl Fn(&Policy) -> Decision,
    ) -> Decision {
        let now = Instant::now();
        self.0.retain(|grant| !grant.is_over(now));
        let fitting: Vec<usize> = (0..self.0.len()).filter(|at| self.0[*at].fits(subjects, cwd)).collect();
        if fitting.is_empty() {
            return decide(policy);
        }
        let under = |keep: &dyn Fn(usize) -> bool| {
            let mut widened = policy.clone();
            for rule in fitting.iter().filter(|at| keep(**at)).flat_map(|at| self.0[*at].rules()) {
                widened.rules.add(RuleList::Allow, rule.clone(), Source::of(Scope::Session));
            }
            decide(&widened)
        };
        let free = under(&|at| self.0[at].uses.is_none());
        let counted: Vec<usize> = fitting.iter().copied().filter(|at| self.0[*at].uses.is_some()).collect();
        if counted.is_empty() || free.behavior == Behavior::Allow {
            return free;
        }
        let decision = under(&|_| true);
        if spend && decision.behavior == Behavior::Allow {
            // One part of a command may be allowed by a grant and another by a rule, so the rule that
            // the decision names tells nothing: used is what it could not have done without.
            let needed = |out: &usize| under(&|at| at != *out).behavior != Behavior::Allow;
            let mut used: Vec<usize> = counted.iter().copied().filter(needed).collect();
            if used.is_empty() {
                used.extend(counted.first());
            }
            for at in used {
                self.0[at].uses = self.0[at].uses.map(|uses| uses.saturating_sub(1));
            }
        }
        decision
    }
}
