//! May it be done, and why?
//!
//! One pure function, [`decide`], takes an immutable [`Policy`] and a [`Request`] and gives a
//! [`Decision`] that always says what produced it. No I/O, no clock: a decision can be replayed
//! from the log and comes out the same.
//!
//! ```
//! use gripper_permissions::{decide, Behavior, Policy, Request, Rule, RuleList, Source};
//!
//! let mut policy = Policy::new("/project");
//! policy.rules.add(RuleList::Deny, Rule::parse("WebFetch")?, Source::command_line());
//! let decision = decide(&policy, &Request::new("WebFetch"));
//! assert_eq!(decision.behavior, Behavior::Deny);
//! assert_eq!(decision.reason, "deny rule WebFetch (command line)");
//! # Ok::<(), gripper_permissions::RuleError>(())
//! ```

mod checks;
mod command;
mod cover;
mod decide;
mod diagnostic;
mod examples;
mod glob;
mod index;
mod lint;
mod mode;
mod patterns;
mod policy;
mod programs;
mod request;
mod rule;
pub mod sensitive;
mod suggest;
pub mod tools;
pub mod web;

pub use command::{CommandPlace, CommandUse};
pub use decide::{Behavior, By, Check, Decision, Risk, Sieve, Suggestion, decide};
pub use diagnostic::{Diagnostic, Weight};
pub use examples::{failing_examples, matching};
pub use gripper_shell::{EffectKind, Target, Verdict, Via, hidden::visible, programs};
pub use lint::lint;
pub use mode::{Mode, UnknownMode};
pub use policy::{COMMAND_TOOL, Deceptive, Examples, Flags, Policy, Rules, SourcedRule};
pub use request::{HookOpinion, Opinion, PathUse, Request, Subject};
pub use rule::{Rule, RuleError, RuleList, Scope, Source};
