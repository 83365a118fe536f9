//! The toolbox of an agent that another one started: the same session with less in it.
//!
//! Policy flows down and questions flow up. Whatever changes above (rules, mode, grants, tools of servers) is in
//! force below before the change returns; what is granted below is granted to the session.

use std::{
    collections::BTreeSet,
    sync::{Arc, Weak},
};

use gripper_permissions::{Mode, Policy, Rule, RuleList, Source};

use super::{SessionState, Toolbox, Tools};
use crate::{
    approve::{Approver, Grant},
    guard::Guard,
    hooks::HookSet,
    registry::{Registry, SubAgent, Viewer},
    sync::{Mutex, lock},
    tool::{Agent, DynTool},
};

/// What is particular about an agent below another.
pub struct Child {
    /// Its id.
    pub id: Arc<str>,
    /// What kind of agent it is.
    pub kind: Arc<str>,
    /// Which tools it gets.
    pub viewer: SubAgent,
    /// The mode it works in, as long as that is no wider than the one above.
    pub mode: Option<Mode>,
    /// What it may not do although the one above may, and who says so.
    pub denied: (Vec<Rule>, Source),
    /// Tools of its own, in place of those with their names.
    pub more: Vec<Arc<dyn DynTool>>,
    /// Who answers its questions.
    pub approver: Arc<dyn Approver>,
    /// Whether hooks run around its calls. Those of a hook's own agent would start the next one.
    pub hooked: bool,
}

/// Whom a toolbox shares its session with.
#[derive(Default)]
pub(super) struct Family {
    above: Option<(Arc<Toolbox>, Narrowing)>,
    below: Mutex<Vec<Weak<Toolbox>>>,
}

/// How much less may be done.
struct Narrowing {
    mode: Option<Mode>,
    denied: (Vec<Rule>, Source),
}

impl Narrowing {
    fn of(&self, policy: &Policy) -> Policy {
        let mode = self.mode.filter(|mode| is_narrower(*mode, policy.mode));
        let mut narrowed = mode.map_or_else(|| policy.clone(), |mode| policy.with_mode(mode));
        let (rules, source) = &self.denied;
        rules.iter().for_each(|rule| narrowed.rules.add(RuleList::Deny, rule.clone(), source.clone()));
        narrowed
    }
}

/// Whether everything that `mode` lets through without a question `other` does as well, and it asks no more.
fn is_narrower(mode: Mode, other: Mode) -> bool {
    let width = |mode| match mode {
        Mode::Plan => 0,
        Mode::DontAsk => 1,
        Mode::Default => 2,
        // Each lets something through that the other does not.
        Mode::AcceptEdits | Mode::Auto => 3,
        Mode::BypassPermissions => 4,
    };
    width(mode) < width(other)
}

impl Toolbox {
    /// A toolbox for an agent that this one's agent starts. Files are known to it anew, while changes to them and
    /// results go where those of the session go.
    pub fn child(self: &Arc<Self>, child: Child) -> Arc<Toolbox> {
        let Child { id, kind, mut viewer, mode, denied, more, approver, hooked } = child;
        let mut registry = self.tools.registry.clone();
        // Names are those of a registry, so one that is refused here has been refused before.
        more.into_iter().for_each(|tool| drop(registry.replace(tool)));
        viewer.granted = viewer.granted.map(|names| canonical(names, &registry));
        let viewer = viewer.below(&self.tools.viewer);
        let narrowing = Narrowing { mode, denied };
        let policy = narrowing.of(&self.policy());
        let new = Arc::new(Toolbox {
            session: self.session.clone(),
            agent: Agent { id, kind, depth: self.agent.depth.saturating_add(1) },
            settings: self.settings.clone(),
            hooks: if hooked { self.hooks.clone() } else { Arc::new(HookSet::new()) },
            approver,
            saver: self.saver.clone(),
            results: self.results.clone(),
            files: Arc::new(self.files.below()),
            guard: Mutex::new(Guard::new(self.settings.guard)),
            observers: self.observers.clone(),
            tools: Tools::new(registry, Viewer::Sub(viewer), &policy),
            policy: tokio::sync::watch::Sender::new(Arc::new(policy)),
            grants: self.grants.clone(),
            state: Mutex::new(SessionState::at(self.place())),
            family: Family { above: Some((self.clone(), narrowing)), below: Mutex::default() },
        });
        let mut below = lock(&self.family.below);
        below.retain(|child| child.strong_count() > 0);
        below.push(Arc::downgrade(&new));
        // What changed since the policy was looked at was not told to the new one.
        new.inherit(self);
        let (tools, connecting) = lock(&self.tools.foreign).clone();
        new.set_foreign_tools(tools, connecting);
        drop(below);
        new
    }

    /// Whose calls these are.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }

    /// The one above, if there is one.
    pub(super) fn above(&self) -> Option<&Arc<Toolbox>> {
        self.family.above.as_ref().map(|(above, _)| above)
    }

    /// Lets those below do `what`, while nobody else tells them anything.
    pub(super) fn each_below(&self, what: impl Fn(&Toolbox)) {
        let below = lock(&self.family.below);
        below.iter().filter_map(Weak::upgrade).for_each(|child| what(&child));
    }

    /// Puts the policy above in force as far as it goes here.
    fn inherit(&self, above: &Toolbox) {
        let Some((_, narrowing)) = &self.family.above else { return };
        self.policy.send_replace(Arc::new(narrowing.of(&above.policy())));
        self.hand_down();
    }

    /// The policy has changed: so it does below.
    pub(super) fn hand_down(&self) {
        self.each_below(|child| child.inherit(self));
    }

    /// A grant is one of the session, whoever asked for it.
    pub(super) fn grant_above(&self, grant: Grant) -> Option<Grant> {
        match self.above() {
            Some(above) => {
                above.grant(grant);
                None
            }
            None => Some(grant),
        }
    }
}

/// Names as tools have them, aliases resolved.
fn canonical(names: BTreeSet<String>, registry: &Registry) -> BTreeSet<String> {
    let known = |name: String| registry.get(&name).map_or(name, |tool| tool.spec().name.to_string());
    names.into_iter().map(known).collect()
}
