//! What is known of the shell while a script is followed: variables, functions, working directory.

use std::{collections::HashMap, rc::Rc};

use crate::{
    syntax::tree::Command,
    value::{Argument, Origin, Text},
};

/// How many values a variable may have before it counts as unknown.
const MOST_VALUES: usize = 16;
/// How many variables are followed.
const MOST_VARIABLES: usize = 512;
/// How many working directories are followed.
const MOST_PLACES: usize = 8;
/// How many positional parameters are followed: a function that hands them to itself twice doubles them each time.
const MOST_POSITIONAL: usize = 256;

/// What a variable holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    /// Not set.
    Unset,
    /// One of these.
    OneOf(Vec<Text>),
    /// An array with these elements.
    Array(Vec<Text>),
    /// Assigned, but not known to what.
    Unknown(Origin),
}

impl Value {
    pub(crate) fn one(text: Text) -> Self {
        Self::OneOf(vec![text])
    }

    /// What holds after two ways that meet.
    fn merge(&mut self, other: &Self) {
        if self == other {
            return;
        }
        let inherited = self.is_inherited() || other.is_inherited();
        let (mine, theirs) = (self.options(), other.options());
        *self = match (mine, theirs) {
            (Some(mut values), Some(more)) => {
                for value in more {
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                if values.len() > MOST_VALUES { Self::Unknown(Origin::Computed) } else { Self::OneOf(values) }
            }
            _ if inherited => Self::Unknown(Origin::Inherited),
            _ => Self::Unknown(Origin::Computed),
        };
    }

    /// Whether it may be what the environment says.
    pub(crate) fn is_inherited(&self) -> bool {
        matches!(self, Self::Unknown(Origin::Environment | Origin::Inherited))
    }

    /// The values as alternatives; an unset variable expands to nothing.
    fn options(&self) -> Option<Vec<Text>> {
        match self {
            Self::Unset => Some(vec![Text::default()]),
            Self::OneOf(values) => Some(values.clone()),
            Self::Array(_) | Self::Unknown(_) => None,
        }
    }
}

/// A function the text defines.
#[derive(Debug, Clone)]
pub(crate) enum Function {
    /// Certainly this one.
    Defined(Rc<Command>),
    /// Perhaps defined, perhaps another: calling the name is not followed.
    Unsure,
}

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Defined(mine), Self::Defined(theirs)) => Rc::ptr_eq(mine, theirs),
            (Self::Unsure, Self::Unsure) => true,
            _ => false,
        }
    }
}

/// Where the shell may stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Places {
    /// In one of these folders.
    OneOf(Vec<String>),
    /// Somewhere.
    Unknown,
}

impl Places {
    fn merge(&mut self, other: &Self) {
        if self == other {
            return;
        }
        match (&mut *self, other) {
            (Self::OneOf(mine), Self::OneOf(theirs)) => {
                for place in theirs {
                    if !mine.contains(place) {
                        mine.push(place.clone());
                    }
                }
                if mine.len() > MOST_PLACES {
                    *self = Self::Unknown;
                }
            }
            _ => *self = Self::Unknown,
        }
    }
}

/// The shell's state at one point. Cheap to copy: the tables are shared until written.
#[derive(Debug, Clone)]
pub(crate) struct State {
    variables: Rc<HashMap<String, Value>>,
    functions: Rc<HashMap<String, Function>>,
    /// Where it stands.
    pub cwd: Places,
    /// Where `cd -` would lead.
    pub previous: Places,
    /// The stack of `pushd`.
    pub stack: Rc<Vec<Places>>,
    /// `$1` and so on; none when not known.
    pub positional: Option<Rc<Vec<Text>>>,
    /// `IFS` is not what it was.
    pub split_changed: bool,
    /// Any name may have become a function.
    pub names_unsure: bool,
    /// Patterns that match nothing may go.
    pub patterns_go: bool,
}

impl State {
    pub(crate) fn new(cwd: &str) -> Self {
        Self {
            variables: Rc::default(),
            functions: Rc::default(),
            cwd: Places::OneOf(vec![cwd.to_owned()]),
            previous: Places::Unknown,
            stack: Rc::default(),
            positional: Some(Rc::default()),
            split_changed: false,
            names_unsure: false,
            patterns_go: false,
        }
    }

    /// Sets the positional parameters, which are known only if each argument is exactly one.
    pub(crate) fn set_positional(&mut self, arguments: &[Argument]) {
        let one = |argument: &Argument| argument.is_one().then(|| argument.text.clone());
        let few = arguments.len() <= MOST_POSITIONAL;
        let known = few.then(|| arguments.iter().map(one).collect::<Option<Vec<_>>>());
        self.positional = known.flatten().map(Rc::new);
    }

    /// A shell started from here as another process: variables and functions stay behind.
    pub(crate) fn fresh(&self, positional: Vec<Text>) -> Self {
        Self {
            variables: Rc::default(),
            functions: Rc::default(),
            cwd: self.cwd.clone(),
            previous: Places::Unknown,
            stack: Rc::default(),
            positional: Some(Rc::new(positional)),
            split_changed: false,
            names_unsure: false,
            patterns_go: false,
        }
    }

    pub(crate) fn variable(&self, name: &str) -> Option<&Value> {
        self.variables.get(name)
    }

    /// Whether there are more variables than are followed.
    pub(crate) fn is_full(&self) -> bool {
        self.variables.len() >= MOST_VARIABLES
    }

    pub(crate) fn set(&mut self, name: &str, value: Value) {
        Rc::make_mut(&mut self.variables).insert(name.to_owned(), value);
    }

    /// What a name stands for, when it is or may be a function.
    pub(crate) fn function(&self, name: &str) -> Option<Function> {
        if self.names_unsure { Some(Function::Unsure) } else { self.functions.get(name).cloned() }
    }

    pub(crate) fn define(&mut self, name: &str, function: Function) {
        Rc::make_mut(&mut self.functions).insert(name.to_owned(), function);
    }

    pub(crate) fn undefine(&mut self, name: &str) {
        if self.functions.contains_key(name) {
            Rc::make_mut(&mut self.functions).remove(name);
        }
    }

    /// What holds after two ways that meet here.
    pub(crate) fn merge(&mut self, other: &Self) {
        if !Rc::ptr_eq(&self.variables, &other.variables) {
            let mine = Rc::make_mut(&mut self.variables);
            for (name, value) in mine.iter_mut() {
                // Assigned on one way only: on the other it is what the environment says.
                match other.variables.get(name) {
                    Some(theirs) => value.merge(theirs),
                    None => *value = Value::Unknown(Origin::Environment),
                }
            }
            for name in other.variables.keys() {
                if !mine.contains_key(name) {
                    mine.insert(name.clone(), Value::Unknown(Origin::Environment));
                }
            }
        }
        if !Rc::ptr_eq(&self.functions, &other.functions) {
            let mine = Rc::make_mut(&mut self.functions);
            for (name, function) in mine.iter_mut() {
                if other.functions.get(name) != Some(function) {
                    *function = Function::Unsure;
                }
            }
            for name in other.functions.keys() {
                mine.entry(name.clone()).or_insert(Function::Unsure);
            }
        }
        self.cwd.merge(&other.cwd);
        self.previous.merge(&other.previous);
        if self.stack.is_empty() {
            // From an empty stack nothing is taken, and the shell stays where it is.
            self.stack = Rc::clone(&other.stack);
        } else if self.stack != other.stack && !other.stack.is_empty() {
            self.stack = Rc::new(vec![Places::Unknown]);
        }
        if self.positional != other.positional {
            self.positional = None;
        }
        self.split_changed |= other.split_changed;
        self.names_unsure |= other.names_unsure;
        self.patterns_go |= other.patterns_go;
    }

    /// Every variable that is known may have any value from here on.
    pub(crate) fn forget_all(&mut self) {
        for value in Rc::make_mut(&mut self.variables).values_mut() {
            *value = Value::Unknown(Origin::Computed);
        }
    }

    /// Every variable in `names` may have any value from here on: a loop assigns it.
    pub(crate) fn forget(&mut self, names: impl IntoIterator<Item = String>) {
        for name in names {
            self.blur(&name);
        }
    }

    /// Whether a variable may be what the environment says.
    pub(crate) fn inherits(&self, name: &str) -> bool {
        self.variable(name).is_none_or(Value::is_inherited)
    }

    /// A variable may have any value from here on, that of the environment too if it may have it now.
    pub(crate) fn blur(&mut self, name: &str) {
        let origin = if self.inherits(name) { Origin::Inherited } else { Origin::Computed };
        self.set(name, Value::Unknown(origin));
    }
}
