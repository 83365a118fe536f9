//! JSON with comments as a tree in which every value knows where it was written.

use std::collections::BTreeMap;

use gripper_permissions::Source;
use jsonc_parser::{CollectOptions, ParseOptions, ast, common::Ranged, parse_to_ast};
use serde_json::{Map, Value};

/// Levels of nesting a file may have.
const DEEPEST: usize = 64;

/// A value and the line it was written on.
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    /// Scope, file and line.
    pub source: Source,
    /// The value.
    pub tree: Tree,
}

/// The shapes of JSON. Objects are sorted by key, so that nothing depends on how a file orders them.
#[derive(Debug, Clone, PartialEq)]
pub enum Tree {
    /// A string, number or boolean.
    Scalar(Value),
    /// A list.
    Array(Vec<Node>),
    /// Keys and values. A null counts as a key that is not there.
    Object(BTreeMap<String, Node>),
}

/// Why a text is not read at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {what}")]
pub struct Broken {
    /// From 1.
    pub line: u32,
    /// From 1, in characters.
    pub column: u32,
    /// What is wrong there.
    pub what: String,
}

/// Comments and trailing commas, and otherwise JSON as everyone reads it.
pub(super) fn dialect() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_trailing_commas: true,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

impl Node {
    /// An object without keys.
    pub fn empty(source: Source) -> Self {
        Self { source, tree: Tree::Object(BTreeMap::new()) }
    }

    /// Reads a file's text. Gives the tree and the places of keys that an equal one further down replaces.
    pub fn parse(text: &str, source: &Source) -> Result<(Self, Vec<(Source, String)>), Broken> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let parsed = parse_to_ast(text, &CollectOptions::default(), &dialect()).map_err(|error| Broken {
            line: error.line_display() as u32,
            column: error.column_display() as u32,
            what: error.kind().to_string().to_lowercase(),
        })?;
        let mut starts = vec![0];
        starts.extend(text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1));
        let mut reader = Reader { source, starts, repeated: Vec::new() };
        match parsed.value {
            Some(value @ ast::Value::Object(_)) => Ok((reader.node(value, 0)?, reader.repeated)),
            Some(value) => Err(reader.broken(value.range().start, "expected an object: { … }")),
            None => Err(reader.broken(0, "the file is empty: expected an object, at least {}")),
        }
    }

    /// The plain value.
    pub fn value(&self) -> Value {
        match &self.tree {
            Tree::Scalar(value) => value.clone(),
            Tree::Array(items) => Value::Array(items.iter().map(Node::value).collect()),
            Tree::Object(map) => Value::Object(
                map.iter().map(|(key, node)| (key.clone(), node.value())).collect::<Map<_, _>>(),
            ),
        }
    }

    /// The value under a key of an object.
    pub fn get(&self, key: &str) -> Option<&Node> {
        match &self.tree {
            Tree::Object(map) => map.get(key),
            _ => None,
        }
    }

    /// The value under keys joined by dots.
    pub fn at(&self, path: &str) -> Option<&Node> {
        path.split('.').try_fold(self, |node, key| node.get(key))
    }

    /// The place of what a JSON pointer leads to, or of the last value on the way that is there.
    pub fn source_at(&self, pointer: &str) -> Source {
        let mut node = self;
        for key in pointer.split('/').skip(1) {
            let key = key.replace("~1", "/").replace("~0", "~");
            let next = match &node.tree {
                Tree::Object(map) => map.get(&key),
                Tree::Array(items) => key.parse::<usize>().ok().and_then(|at| items.get(at)),
                Tree::Scalar(_) => None,
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node.source.clone()
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match &self.tree {
            Tree::Scalar(value) => value.as_str(),
            _ => None,
        }
    }

    /// The elements of a list; nothing for anything else.
    pub fn items(&self) -> &[Node] {
        match &self.tree {
            Tree::Array(items) => items,
            _ => &[],
        }
    }

    /// The keys and values of an object; nothing for anything else.
    pub fn entries(&self) -> impl Iterator<Item = (&String, &Node)> {
        match &self.tree {
            Tree::Object(map) => Some(map.iter()),
            _ => None,
        }
        .into_iter()
        .flatten()
    }

    /// The keys and values of an object, to change.
    pub(super) fn map_mut(&mut self) -> Option<&mut BTreeMap<String, Node>> {
        match &mut self.tree {
            Tree::Object(map) => Some(map),
            _ => None,
        }
    }

    /// Takes out what a JSON pointer leads to. Where the whole pointer leads nowhere, what its longest
    /// part leads to goes: better too much is left out than something read that was not understood.
    pub(super) fn take(&mut self, pointer: &str) -> Option<Node> {
        let (step, rest) = match pointer.strip_prefix('/')?.split_once('/') {
            Some((step, _)) => (step, &pointer[step.len() + 1..]),
            None => (pointer.strip_prefix('/')?, ""),
        };
        let key = step.replace("~1", "/").replace("~0", "~");
        let child = match &mut self.tree {
            Tree::Object(map) => map.get_mut(&key),
            Tree::Array(items) => key.parse::<usize>().ok().and_then(|at| items.get_mut(at)),
            Tree::Scalar(_) => None,
        }?;
        if let Some(taken) = child.take(rest) {
            return Some(taken);
        }
        match &mut self.tree {
            Tree::Object(map) => map.remove(&key),
            Tree::Array(items) => key.parse().ok().filter(|at| *at < items.len()).map(|at| items.remove(at)),
            Tree::Scalar(_) => None,
        }
    }

    /// Lays `stronger` over this one: objects by key, lists joined, anything else replaced.
    pub(super) fn overlay(&mut self, stronger: Node) {
        match (&mut self.tree, stronger.tree) {
            (Tree::Object(below), Tree::Object(above)) => {
                for (key, node) in above {
                    match below.get_mut(&key) {
                        Some(under) => under.overlay(node),
                        None => {
                            below.insert(key, node);
                        }
                    }
                }
            }
            (Tree::Array(below), Tree::Array(above)) => below.extend(above),
            (_, tree) => *self = Node { source: stronger.source, tree },
        }
    }

    /// Every value that is no object, with its keys joined by dots and list places in brackets.
    pub fn leaves(&self) -> Vec<(String, &Node)> {
        let mut found = Vec::new();
        self.walk(String::new(), &mut found);
        found
    }

    fn walk<'n>(&'n self, path: String, found: &mut Vec<(String, &'n Node)>) {
        match &self.tree {
            Tree::Object(map) => {
                let dot = if path.is_empty() { "" } else { "." };
                map.iter().for_each(|(key, node)| node.walk(format!("{path}{dot}{key}"), found));
            }
            Tree::Array(items) => {
                items.iter().enumerate().for_each(|(at, node)| node.walk(format!("{path}[{at}]"), found));
            }
            Tree::Scalar(_) => found.push((path, self)),
        }
    }
}

struct Reader<'a> {
    source: &'a Source,
    starts: Vec<usize>,
    repeated: Vec<(Source, String)>,
}

impl Reader<'_> {
    fn line(&self, at: usize) -> u32 {
        self.starts.partition_point(|start| *start <= at) as u32
    }

    fn broken(&self, at: usize, what: &str) -> Broken {
        let line = self.line(at);
        let start = self.starts.get(line as usize - 1).copied().unwrap_or(at);
        Broken { line, column: (at - start) as u32 + 1, what: what.to_owned() }
    }

    fn node(&mut self, value: ast::Value<'_>, depth: usize) -> Result<Node, Broken> {
        let at = value.range().start;
        if depth > DEEPEST {
            return Err(self.broken(at, &format!("nested deeper than {DEEPEST} levels")));
        }
        let source = Source { line: Some(self.line(at)), ..self.source.clone() };
        let tree = match value {
            ast::Value::Array(array) => Tree::Array(
                array
                    .elements
                    .into_iter()
                    .map(|item| self.node(item, depth + 1))
                    .collect::<Result<_, _>>()?,
            ),
            ast::Value::Object(object) => {
                let mut map = BTreeMap::new();
                for property in object.properties {
                    if property.value.as_null_keyword().is_some() {
                        continue;
                    }
                    let key = property.name.into_string();
                    let node = self.node(property.value, depth + 1)?;
                    if let Some(before) = map.insert(key.clone(), node) {
                        self.repeated.push((before.source, key));
                    }
                }
                Tree::Object(map)
            }
            scalar => Tree::Scalar(scalar.into()),
        };
        Ok(Node { source, tree })
    }
}
