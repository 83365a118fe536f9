//! Rules about what code may reach: pure crates touch nothing outside, and a few paths have one owner.
//! Tests and the test kit are free to touch what they need.

use syn::visit::{self, Visit};

use super::mentions::{self, Mention};
use super::tree::{RustFile, Tree};
use super::{Rule, Violation};

const PURE_CRATES: &[&str] = &["crates/permissions/src/", "crates/shell/src/"];

/// What a pure crate may not mention: files, processes, the network, the environment, clocks, the runtime.
const IMPURE: &[&str] = &[
    "chrono",
    "rustix",
    "std::env",
    "std::fs",
    "std::io::stderr",
    "std::io::stdin",
    "std::io::stdout",
    "std::net",
    "std::os",
    "std::process",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "tempfile",
    "tokio",
];

/// Methods of `Path` that look at the disk. They need no `use`, so they are found by name.
const IMPURE_METHODS: &[&str] = &[
    "canonicalize",
    "exists",
    "is_dir",
    "is_file",
    "is_symlink",
    "metadata",
    "read_dir",
    "read_link",
    "symlink_metadata",
    "try_exists",
];

/// A path that only the named files, or the files below the named folders, may mention.
struct Reserved {
    path: &'static str,
    places: &'static [&'static str],
    instead: &'static str,
}

/// The most specific entry decides, so a part of a reserved path can have an owner of its own.
const RESERVED: &[Reserved] = &[
    Reserved {
        path: "std::env",
        places: &["crates/runtime/src/environment.rs"],
        instead: "take what you need as an argument; one place reads the environment",
    },
    Reserved {
        path: "std::env::args",
        places: &["crates/cli/src/main.rs"],
        instead: "only main reads the arguments",
    },
    Reserved {
        path: "std::env::args_os",
        places: &["crates/cli/src/main.rs"],
        instead: "only main reads the arguments",
    },
    Reserved {
        path: "std::process::Command",
        places: &["crates/process/"],
        instead: "the process crate is the only one that starts children",
    },
    Reserved {
        path: "tokio::process",
        places: &["crates/process/"],
        instead: "the process crate is the only one that starts children",
    },
];

/// Build scripts and examples run beside the product, not in it: they may reach what they need.
fn is_beside(file: &RustFile) -> bool {
    file.path.ends_with("/build.rs")
        || file.path.contains("/examples/")
        || file.path.starts_with("crates/testkit/")
}

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    tree.rust.iter().filter(|file| !file.is_test() && !is_beside(file)).flat_map(check_file).collect()
}

fn check_file(file: &RustFile) -> Vec<Violation> {
    let mentions = mentions::outside_tests(file);
    if !PURE_CRATES.iter().any(|folder| file.path.starts_with(folder)) {
        return mentions.iter().filter_map(|mention| reserved(file, mention)).collect();
    }
    let mut calls = DiskCalls { file, found: Vec::new() };
    calls.visit_file(&file.syntax);
    calls.found.extend(mentions.iter().filter_map(|mention| impure(file, mention)));
    calls.found
}

struct DiskCalls<'a> {
    file: &'a RustFile,
    found: Vec<Violation>,
}

impl<'ast> Visit<'ast> for DiskCalls<'_> {
    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        let line = call.method.span().start().line;
        let looks_at_disk = call.args.is_empty() && IMPURE_METHODS.iter().any(|name| call.method == name);
        if looks_at_disk && !self.file.is_test_line(line) {
            let message =
                format!("a pure crate calls `{}`, which looks at the disk: pass the fact in", call.method);
            self.found.push(self.file.violation(Rule::Purity, line, message));
        }
        visit::visit_expr_method_call(self, call);
    }
}

fn impure(file: &RustFile, mention: &Mention) -> Option<Violation> {
    // A single word is a variable or a field, not a path.
    if !mention.path.contains("::") || !IMPURE.iter().any(|path| mention.is_below(path)) {
        return None;
    }
    let message = format!(
        "a pure crate mentions `{}`: pass the fact in as data, or do this in a crate above",
        mention.path
    );
    Some(file.violation(Rule::Purity, mention.line, message))
}

fn reserved(file: &RustFile, mention: &Mention) -> Option<Violation> {
    let entry =
        RESERVED.iter().filter(|entry| mention.is_below(entry.path)).max_by_key(|entry| entry.path.len())?;
    if entry.places.iter().any(|place| file.path.starts_with(place)) {
        return None;
    }
    let message = format!("`{}` is kept for {}: {}", mention.path, entry.places.join(", "), entry.instead);
    Some(file.violation(Rule::ReservedPath, mention.line, message))
}
