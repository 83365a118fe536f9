//! Command models: what the arguments of known programs mean. The data is in `models/*.toml`.

pub(crate) mod argv;
mod format;
pub(crate) mod output;
pub(crate) mod settings;
pub(crate) mod token;

use std::{
    collections::{BTreeMap, HashMap},
    sync::{LazyLock, OnceLock},
};

use format::Entry;
use token::{Deed, OperandKind, OptionToken};

include!(concat!(env!("OUT_DIR"), "/programs.rs"));

/// A program as the build script left it.
pub(crate) struct Packed {
    name: &'static str,
    family: &'static str,
    entry: &'static str,
}

static MODELS: LazyLock<Vec<OnceLock<Option<Model>>>> =
    LazyLock::new(|| PROGRAMS.iter().map(|_| OnceLock::new()).collect());

/// The model of a program, by its bare name.
pub(crate) fn find(name: &str) -> Option<&'static Model> {
    let at = PROGRAMS.binary_search_by(|packed| packed.name.cmp(name)).ok()?;
    let packed = PROGRAMS.get(at)?;
    let unpack = || {
        let entry: Entry = serde_json::from_str(packed.entry).ok()?;
        entry.unknown.is_empty().then(|| Model::new(entry))
    };
    MODELS.get(at)?.get_or_init(unpack).as_ref()
}

/// Whether a name is only a builtin: no program of that name can be counted on.
pub(crate) fn is_builtin_only(name: &str) -> bool {
    let at = PROGRAMS.binary_search_by(|packed| packed.name.cmp(name));
    at.ok().and_then(|at| PROGRAMS.get(at)).is_some_and(|packed| packed.family == "builtins")
}

/// Every known program with its family, sorted by name.
pub fn programs() -> impl Iterator<Item = (&'static str, &'static str)> {
    PROGRAMS.iter().map(|packed| (packed.name, packed.family))
}

/// A program or subcommand, ready for matching.
#[derive(Debug)]
pub(crate) struct Model {
    /// As written.
    pub entry: Entry,
    /// The options.
    pub options: Vec<OptionToken>,
    /// Option by spelling.
    index: HashMap<String, usize>,
    /// The letters of a first operand without a dash.
    bundled: Vec<OptionToken>,
    /// Operands by position.
    pub operands: Vec<OperandKind>,
    /// Effects whenever it runs.
    pub deeds: Vec<Deed>,
    /// Effects without operand and subcommand.
    pub bare: Vec<Deed>,
    subs: BTreeMap<String, Sub>,
}

/// A subcommand, compiled when it is first met: some programs have hundreds.
#[derive(Debug)]
struct Sub {
    entry: Entry,
    model: OnceLock<Model>,
}

impl Model {
    fn new(mut entry: Entry) -> Self {
        let tokens = |text: &str| text.split_whitespace().filter_map(OptionToken::parse).collect::<Vec<_>>();
        let options = tokens(&entry.syntax.options);
        let mut index = HashMap::new();
        for (at, option) in options.iter().enumerate() {
            for name in &option.names {
                index.insert(name.clone(), at);
            }
        }
        let mut subs = BTreeMap::new();
        let explains = |entry: &Entry| entry.conduct.info.split_whitespace().any(|word| word == "--help");
        for (name, mut sub) in std::mem::take(&mut entry.sub) {
            // A program that explains itself explains its subcommands as well.
            if explains(&entry) && !explains(&sub) {
                sub.conduct.info.push_str(" --help");
            }
            for other in &sub.names {
                subs.insert(other.clone(), Sub { entry: sub.clone(), model: OnceLock::new() });
            }
            subs.insert(name, Sub { entry: sub, model: OnceLock::new() });
        }
        for (deeds, names) in std::mem::take(&mut entry.changes) {
            for name in names.split_whitespace() {
                let mut sub = Entry::default();
                sub.conduct.effects.clone_from(&deeds);
                sub.conduct.opaque = true;
                if explains(&entry) {
                    "--help".clone_into(&mut sub.conduct.info);
                }
                subs.entry(name.to_owned()).or_insert(Sub { entry: sub, model: OnceLock::new() });
            }
        }
        Self {
            bundled: tokens(&entry.syntax.bundled),
            operands: entry.conduct.operands.kinds().into_iter().filter_map(OperandKind::parse).collect(),
            deeds: Deed::parse_all(&entry.conduct.effects).unwrap_or_else(|| vec![Deed::Unknown]),
            bare: Deed::parse_all(&entry.conduct.bare).unwrap_or_else(|| vec![Deed::Unknown]),
            options,
            index,
            subs,
            entry,
        }
    }

    /// Whether options end at the first operand.
    fn stops_at_operand(&self) -> bool {
        !self.subs.is_empty() || self.entry.syntax.permute == Some(false)
    }

    fn has_subs(&self) -> bool {
        !self.subs.is_empty()
    }

    fn sub(&self, name: &str) -> Option<&Self> {
        let sub = self.subs.get(name)?;
        Some(sub.model.get_or_init(|| Self::new(sub.entry.clone())))
    }

    /// Whether no option can do harm.
    pub(crate) fn is_safe_for_data(&self) -> bool {
        self.entry.conduct.data == "safe"
    }

    fn option(&self, name: &str) -> Option<&OptionToken> {
        self.options.get(*self.index.get(name)?)
    }

    /// The option a long name means: itself, or the only one it begins where that counts.
    fn long_option(&self, name: &str) -> Option<&OptionToken> {
        if let Some(option) = self.option(name) {
            return Some(option);
        }
        if self.entry.syntax.either {
            return self.option(name.get(1..)?);
        }
        if !self.entry.syntax.abbrev || name.len() < 3 {
            return None;
        }
        let mut candidates = self
            .index
            .iter()
            .filter(|(long, _)| long.starts_with(name) && long.starts_with("--"))
            .map(|(_, at)| *at);
        let first = candidates.next()?;
        candidates.all(|other| other == first).then(|| self.options.get(first)).flatten()
    }
}
