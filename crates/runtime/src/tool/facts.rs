//! Plain data that tools declare about themselves. Layers look at these facts, never at names.

use std::time::Duration;

use crate::results::Strategy;

/// What front ends and filters need to know about a tool.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// Short name for people.
    pub title: &'static str,
    /// Old names that keep working.
    pub aliases: &'static [&'static str],
    /// Three to ten words that searches should find it by.
    pub search_hint: &'static str,
    /// What kind of row it makes.
    pub kind: Kind,
    /// What happens when the person interrupts.
    pub interrupt: Interrupt,
    /// How large a result may be.
    pub bound: ResultBound,
    /// How long a call may run unless it says otherwise.
    pub time_limit: Duration,
    /// Whether its schema may be held back until searched for.
    pub loading: Loading,
    /// Who may have it.
    pub audience: Audience,
    /// Whether background agents may have it.
    pub background: Background,
    /// Changes files and nothing else: `acceptEdits` may wave it through, and agents that only
    /// look around lose it.
    pub edits_files: bool,
    /// The call is a conversation with a person.
    pub needs_person: bool,
    /// A failure makes the calls behind it pointless (a failing command in a chain).
    pub failure_spreads: bool,
    /// What others may be told about it beforehand.
    pub hints: Hints,
}

impl Facts {
    /// The safe defaults; a tool names only what differs.
    pub const DEFAULT: Facts = Facts {
        title: "",
        aliases: &[],
        search_hint: "",
        kind: Kind::Other,
        interrupt: Interrupt::Cancel,
        bound: ResultBound::Chars(30_000, Strategy::KeepBoth),
        time_limit: Duration::from_secs(120),
        loading: Loading::Always,
        audience: Audience::Everyone,
        background: Background::Never,
        edits_files: false,
        needs_person: false,
        failure_spreads: false,
        hints: Hints::UNKNOWN,
    };
}

/// What a client may be told about a tool before any call: the most that a call could do. What a
/// certain call does is judged by its access, never by this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hints {
    /// Changes nothing outside the session.
    pub read_only: bool,
    /// May remove or overwrite something.
    pub destructive: bool,
    /// Twice has the effect of once.
    pub idempotent: bool,
    /// May reach beyond the working directories: other machines, other programs.
    pub open_world: bool,
}

impl Hints {
    /// Anything may happen.
    pub const UNKNOWN: Hints =
        Hints { read_only: false, destructive: true, idempotent: false, open_world: true };
    /// Looks, and leaves everything as it is.
    pub const READS: Hints =
        Hints { read_only: true, destructive: false, idempotent: true, open_world: false };
    /// Changes what is in the working directories.
    pub const CHANGES: Hints =
        Hints { read_only: false, destructive: true, idempotent: false, open_world: false };
}

/// Rows of these kinds are collapsed by front ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// Looks for something.
    Search,
    /// Reads something.
    Read,
    /// Lists something.
    List,
    /// Everything else.
    Other,
}

/// What an interrupt does to a running call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// Stops it.
    Cancel,
    /// Lets it finish: half of it would be worse than all of it.
    Block,
}

/// How large a result may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResultBound {
    /// At most so many characters; the rest is stored.
    Chars(usize, Strategy),
    /// The tool keeps its own bound and its results are never stored.
    SelfBounded,
}

/// When the schema is sent to the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Loading {
    /// With every request.
    Always,
    /// May be announced by name only, and loaded by a search.
    Deferrable,
}

/// Who may have a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Every agent.
    Everyone,
    /// The main agent only.
    MainAgent,
    /// Starts further agents: the main agent, and others up to the configured depth.
    Delegating,
    /// Built-in agents only, not ones people define.
    BuiltinAgents,
}

/// Whether agents nobody watches may have a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Background {
    /// No.
    Never,
    /// Yes.
    Always,
    /// Only when the agent's definition names it.
    WhenGranted,
}
