//! Checks the command models and packs them into the library: one compact text per program, read
//! only when that program is met.

#![allow(clippy::print_stdout, reason = "this is how a build script talks to cargo")]

use std::{collections::BTreeMap, env, error::Error, fmt::Write as _, fs, path::Path};

#[path = "src/model/format.rs"]
mod format;
#[path = "src/model/token.rs"]
mod token;

use format::Entry;
use token::{Arity, Deed, Kind, OperandKind, OptionToken};

type Outcome<T> = Result<T, Box<dyn Error>>;

fn main() -> Outcome<()> {
    let folder = Path::new("models");
    println!("cargo:rerun-if-changed=models");
    let mut programs: BTreeMap<String, (String, Entry)> = BTreeMap::new();
    let mut files: Vec<_> = fs::read_dir(folder)?.collect::<Result<Vec<_>, _>>()?;
    files.sort_by_key(std::fs::DirEntry::path);
    for file in files {
        let path = file.path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let family = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        let text = fs::read_to_string(&path)?;
        read_family(&family, &text, &mut programs).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let out = Path::new(&env::var("OUT_DIR")?).join("programs.rs");
    fs::write(out, pack(&programs)?)?;
    Ok(())
}

fn read_family(family: &str, text: &str, programs: &mut BTreeMap<String, (String, Entry)>) -> Outcome<()> {
    let mut tables: BTreeMap<String, toml::Value> = toml::from_str(text)?;
    let groups: BTreeMap<String, String> = match tables.remove("groups") {
        Some(value) => value.try_into()?,
        None => BTreeMap::new(),
    };
    for (name, table) in tables {
        let mut entry: Entry = table.try_into().map_err(|error| format!("[{name}]: {error}"))?;
        prepare(&name, &mut entry, &groups)?;
        for name in std::iter::once(&name).chain(&entry.names) {
            if let Some((other, _)) = programs.insert(name.clone(), (family.to_owned(), entry.clone())) {
                return Err(format!("[{name}] is in {other}.toml too").into());
            }
        }
    }
    Ok(())
}

/// Checks an entry and its subcommands, and writes the option groups out.
fn prepare(place: &str, entry: &mut Entry, groups: &BTreeMap<String, String>) -> Outcome<()> {
    let wrong = |what: &str, text: &str| -> Box<dyn Error> { format!("[{place}]: {what} `{text}`").into() };
    if let Some(field) = entry.unknown.keys().next() {
        return Err(wrong("no such field", field));
    }
    for group in std::mem::take(&mut entry.syntax.groups) {
        let options = groups.get(&group).ok_or_else(|| wrong("no such group", &group))?;
        entry.syntax.options.push('\n');
        entry.syntax.options.push_str(options);
    }
    let mut seen: Vec<String> = Vec::new();
    for token in entry.syntax.options.split_whitespace() {
        let option = OptionToken::parse(token).ok_or_else(|| wrong("malformed option", token))?;
        check_option(place, token, &option)?;
        for name in option.names {
            if !name.starts_with(['-', '+']) {
                return Err(wrong("option without a dash", token));
            }
            if seen.contains(&name) {
                return Err(wrong("option named twice", token));
            }
            seen.push(name);
        }
    }
    for token in entry.syntax.bundled.split_whitespace() {
        let letter = OptionToken::parse(token).ok_or_else(|| wrong("malformed letter", token))?;
        seen.extend(letter.names);
    }
    for kind in entry.conduct.operands.kinds() {
        OperandKind::parse(kind).ok_or_else(|| wrong("no such kind", kind))?;
    }
    for deeds in [&entry.conduct.effects, &entry.conduct.bare].into_iter().chain(entry.changes.keys()) {
        Deed::parse_all(deeds).ok_or_else(|| wrong("no such effect", deeds))?;
    }
    for option in entry.conduct.listing.split_whitespace() {
        if !seen.iter().any(|name| name == option) {
            return Err(wrong("listing option is not among the options", option));
        }
    }
    if !matches!(entry.conduct.data.as_str(), "" | "safe" | "tail") {
        return Err(wrong("data can only be safe or tail, not", &entry.conduct.data));
    }
    for (name, sub) in &mut entry.sub {
        prepare(&format!("{place}.sub.{name}"), sub, groups)?;
    }
    Ok(())
}

/// Checks that an option makes sense on its own.
fn check_option(place: &str, token: &str, option: &OptionToken) -> Outcome<()> {
    let wrong = |what: &str| -> Outcome<()> { Err(format!("[{place}]: {what} `{token}`").into()) };
    let kinds = match option.arity {
        Arity::None => Vec::new(),
        Arity::Required(kind) | Arity::Attached(kind) | Arity::Optional(kind) => vec![kind],
        Arity::Pair(first, second) => vec![first, second],
    };
    if kinds.contains(&Kind::Command) {
        return wrong("a command of its own is an operand, not the value of");
    }
    if kinds.contains(&Kind::CommandUntil) && option.arity != Arity::Required(Kind::CommandUntil) {
        return wrong("a command up to `;` is the only value, and required, in");
    }
    if option.supplies && option.operands.is_some() {
        return wrong("the operands are replaced, so none can be supplied, by");
    }
    let operands = option.operands.as_deref().unwrap_or_default();
    if operands.iter().rev().skip(1).any(|operand| operand.many && operand.kind != Kind::Assign) {
        return wrong("only the last operand can be many in");
    }
    if option
        .deeds
        .iter()
        .enumerate()
        .any(|(at, deed)| option.deeds.iter().skip(at + 1).any(|other| other == deed))
    {
        return wrong("an effect is named twice in");
    }
    Ok(())
}

/// The table as Rust source, sorted by name.
fn pack(programs: &BTreeMap<String, (String, Entry)>) -> Outcome<String> {
    let mut source = String::from("pub(crate) static PROGRAMS: &[Packed] = &[\n");
    for (name, (family, entry)) in programs {
        let options: Vec<&str> = entry.syntax.options.split_whitespace().collect();
        let mut entry = entry.clone();
        entry.syntax.options = options.join(" ");
        let json = serde_json::to_string(&entry)?;
        writeln!(source, "    Packed {{ name: {name:?}, family: {family:?}, entry: {json:?} }},")?;
    }
    source.push_str("];\n");
    Ok(source)
}
