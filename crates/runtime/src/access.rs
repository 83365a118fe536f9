//! What a call touches: declared by its tool, used by the scheduler and the decision.

use std::{
    borrow::Cow,
    path::{Path, PathBuf},
};

use gripper_permissions::{CommandPlace, CommandUse, Policy, Request, Subject};

use crate::{
    place::{Located, Place},
    tool::{DynTool, Interrupt, ValidInput},
};

/// Something that calls can get in each other's way about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resource {
    /// A file or folder and everything beneath it, links followed.
    Path(PathBuf),
    /// State that lives and dies with the session: `todo`, `mode`, `user`.
    Session(Cow<'static, str>),
    /// Something outside with a name: `mcp:server`.
    Outside(String),
    /// All of it.
    Everything,
}

/// Whether a resource is only looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    /// Looked at.
    Read,
    /// Changed.
    Write,
}

/// Everything a call declares it would touch. The safe default is [`Access::unknown`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    footprint: Footprint,
    subjects: Vec<Subject>,
    paths: Vec<Located>,
    changes_outside: bool,
    command: Option<String>,
    opaque: bool,
    must_finish: bool,
}

impl Access {
    /// Nothing is known: may change anything, runs alone, is not read-only.
    pub fn unknown() -> Self {
        Self { footprint: Footprint::exclusive(), changes_outside: true, ..Self::nothing() }
    }

    /// Touches nothing.
    pub fn nothing() -> Self {
        Self {
            footprint: Footprint::default(),
            subjects: Vec::new(),
            paths: Vec::new(),
            changes_outside: false,
            command: None,
            opaque: false,
            must_finish: false,
        }
    }

    /// Runs a command line. What that touches is found out by taking it apart, which needs the policy.
    pub fn command(text: &str) -> Self {
        Self { command: Some(text.to_owned()), ..Self::unknown() }
    }

    /// Runs code that nobody takes apart. It is unknown, and more: it may be what any rule forbids.
    pub fn code() -> Self {
        Self { opaque: true, ..Self::unknown() }
    }

    /// What a call of `tool` would touch.
    pub(crate) fn of(tool: &dyn DynTool, input: &ValidInput, place: &Place, policy: &Policy) -> Self {
        let declared = tool.access(input, place);
        let Some(text) = &declared.command else { return declared };
        let (cwd, home) = (place.cwd.to_string_lossy(), policy.home.to_string_lossy());
        let real = |path: &str| place.locate(Path::new(path)).real;
        let place = CommandPlace { cwd: &cwd, home: &home, real: &real };
        let request = Request::command(&tool.spec().name, text, policy, place);
        let mut known = if request.read_only { Self::concurrency_safe() } else { Self::unknown() };
        let analysis = request.command_use().map(|command| &command.analysis);
        // The calls behind it start where it ends.
        if analysis.and_then(|analysis| analysis.cwd()) != Some(&*cwd) {
            known = known.alone();
        }
        let must_finish = analysis.is_some_and(|analysis| analysis.must_finish());
        Self { subjects: request.subjects, must_finish, ..known }
    }

    /// What an interrupt does to the call, where its tool says `usual`.
    pub(crate) fn interrupt(&self, usual: Interrupt) -> Interrupt {
        if self.must_finish { Interrupt::Block } else { usual }
    }

    /// The command line among the subjects, taken apart.
    pub fn command_use(&self) -> Option<&CommandUse> {
        self.subjects.iter().find_map(|subject| match subject {
            Subject::Command(command) => Some(command),
            _ => None,
        })
    }

    /// Says only that it is safe beside other safe calls: reads everything.
    pub fn concurrency_safe() -> Self {
        Self::nothing().uses(Resource::Everything, Use::Read)
    }

    /// Adds a file or folder that is read.
    #[must_use]
    pub fn reads_path(self, path: &Located) -> Self {
        self.path(path, Use::Read)
    }

    /// Adds a file or folder that is changed.
    #[must_use]
    pub fn writes_path(self, path: &Located) -> Self {
        self.path(path, Use::Write)
    }

    /// Adds what rules call the call by: the type of an agent.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.subjects.push(Subject::Name(name.to_owned()));
        self
    }

    /// Adds any resource.
    #[must_use]
    pub fn uses(mut self, resource: Resource, how: Use) -> Self {
        self.changes_outside |= how == Use::Write && !matches!(resource, Resource::Session(_));
        self.footprint.items.push((resource, how));
        self
    }

    /// Runs alone, although it changes nothing outside the session: for calls whose place in
    /// the order is their meaning.
    #[must_use]
    pub fn alone(mut self) -> Self {
        self.footprint = Footprint::exclusive();
        self
    }

    fn path(mut self, path: &Located, how: Use) -> Self {
        self.subjects.push(path.subject(how == Use::Write));
        self.paths.push(path.clone());
        self.uses(Resource::Path(path.real.clone()), how)
    }

    /// What the scheduler looks at.
    pub fn footprint(&self) -> &Footprint {
        &self.footprint
    }

    /// What rules and checks look at.
    pub fn subjects(&self) -> &[Subject] {
        &self.subjects
    }

    /// The paths among them, as they were judged.
    pub(crate) fn paths(&self) -> &[Located] {
        &self.paths
    }

    /// Whether it runs code that nobody takes apart.
    pub(crate) fn opaque(&self) -> bool {
        self.opaque
    }

    /// Whether nothing outside the session would change.
    pub fn read_only(&self) -> bool {
        !self.changes_outside
    }
}

/// The resources a call reads and writes. Two calls conflict when they overlap on one and at
/// least one of them writes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Footprint {
    items: Vec<(Resource, Use)>,
}

impl Footprint {
    /// Writes everything.
    pub fn exclusive() -> Self {
        Self { items: vec![(Resource::Everything, Use::Write)] }
    }

    /// Whether it writes everything. Such a call conflicts even with one that touches nothing:
    /// it asked to be alone.
    pub fn is_exclusive(&self) -> bool {
        self.items.iter().any(|item| matches!(item, (Resource::Everything, Use::Write)))
    }

    /// Whether it writes anything at all.
    pub fn writes(&self) -> bool {
        self.items.iter().any(|(_, how)| *how == Use::Write)
    }

    /// Whether two calls must keep their order.
    pub fn conflicts(&self, other: &Footprint) -> bool {
        if self.is_exclusive() || other.is_exclusive() {
            return true;
        }
        self.items.iter().any(|(mine, my_use)| {
            other.items.iter().any(|(theirs, their_use)| {
                (*my_use == Use::Write || *their_use == Use::Write) && mine.overlaps(theirs)
            })
        })
    }
}

impl Resource {
    fn overlaps(&self, other: &Resource) -> bool {
        match (self, other) {
            (Resource::Everything, _) | (_, Resource::Everything) => true,
            (Resource::Path(a), Resource::Path(b)) => a.starts_with(b) || b.starts_with(a),
            (Resource::Session(a), Resource::Session(b)) => a == b,
            (Resource::Outside(a), Resource::Outside(b)) => a == b,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Access, Footprint, Resource, Use};
    use crate::place::Place;
    use std::path::Path;

    fn path(path: &str, how: Use) -> Footprint {
        Access::nothing().uses(Resource::Path(path.into()), how).footprint
    }

    #[test]
    fn conflicts_need_overlap_and_a_writer() {
        use Use::{Read, Write};
        let safe = Access::concurrency_safe().footprint;
        let todo = Access::nothing().uses(Resource::Session("todo".into()), Write).footprint;
        let nothing = Footprint::default();
        let table = [
            (path("/a", Write), path("/b", Write), false),
            (path("/a", Write), path("/a", Read), true),
            (path("/a", Read), path("/a", Read), false),
            (path("/src", Read), path("/src/x", Write), true),
            (path("/src", Read), path("/src2/x", Write), false),
            (safe.clone(), path("/a", Write), true),
            (safe.clone(), path("/a", Read), false),
            (safe.clone(), safe.clone(), false),
            (safe, todo.clone(), true),
            (todo.clone(), path("/a", Write), false),
            (todo.clone(), todo, true),
            (nothing.clone(), path("/a", Write), false),
            (Footprint::exclusive(), nothing, true),
        ];
        for (a, b, expected) in table {
            assert_eq!(a.conflicts(&b), expected, "{a:?} {b:?}");
            assert_eq!(b.conflicts(&a), expected, "{b:?} {a:?}");
        }
    }

    #[test]
    fn read_only_means_nothing_outside_changes() {
        let place = Place { cwd: "/w".into() };
        let file = place.locate(Path::new("f"));
        assert!(Access::nothing().reads_path(&file).read_only());
        assert!(!Access::nothing().writes_path(&file).read_only());
        assert!(!Access::unknown().read_only());
        assert!(Access::nothing().uses(Resource::Session("todo".into()), Use::Write).read_only());
        assert!(!Access::nothing().uses(Resource::Outside("mcp:x".into()), Use::Write).read_only());
        assert!(Access::nothing().alone().read_only());
    }
}
