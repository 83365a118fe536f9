//! The repository as the rules see it: the names of all files, and the Rust ones parsed once.

use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use proc_macro2::TokenStream;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::{Rule, Violation};

/// Folders at the root that hold no source of ours.
const NOT_SOURCE: &[&str] = &[".git", "target"];

/// Folders of test data: their files may be broken on purpose.
const TEST_DATA: &[&str] = &["cases", "fixtures", "snapshots"];

pub(super) struct Tree {
    pub(super) root: PathBuf,
    /// Every file, relative to the root, sorted.
    pub(super) files: Vec<String>,
    pub(super) rust: Vec<RustFile>,
    /// Rust files that do not parse.
    pub(super) unparsed: Vec<Violation>,
}

pub(super) struct RustFile {
    pub(super) path: String,
    pub(super) text: String,
    pub(super) tokens: TokenStream,
    pub(super) syntax: syn::File,
    /// The inline modules under `#[cfg(test)]`, from the attribute to the closing brace.
    pub(super) test_modules: Vec<RangeInclusive<usize>>,
}

impl Tree {
    pub(super) fn read(root: &Path) -> Result<Self> {
        let mut files = Vec::new();
        walk(root, "", &mut files)?;
        files.sort();
        let mut tree = Self { root: root.to_owned(), files, rust: Vec::new(), unparsed: Vec::new() };
        for path in tree.files.iter().filter(|path| path.starts_with("crates/") && path.ends_with(".rs")) {
            match RustFile::parse(path, tree.text(path)?) {
                Ok(file) => tree.rust.push(file),
                Err(error) => tree.unparsed.push(Violation {
                    path: path.clone(),
                    line: error.span().start().line,
                    rule: Rule::RustSyntax,
                    message: format!("this is not Rust ({error}): the other rules did not see this file"),
                }),
            }
        }
        Ok(tree)
    }

    pub(super) fn text(&self, path: &str) -> Result<String> {
        fs::read_to_string(self.root.join(path)).with_context(|| format!("cannot read {path} as text"))
    }

    pub(super) fn has(&self, path: &str) -> bool {
        self.files.binary_search_by(|file| file.as_str().cmp(path)).is_ok()
    }

    /// The names of the folders directly below `folder`, sorted.
    pub(super) fn folders(&self, folder: &str) -> Vec<&str> {
        let mut names: Vec<&str> = self
            .files
            .iter()
            .filter_map(|path| path.strip_prefix(folder)?.strip_prefix('/')?.split_once('/'))
            .map(|(name, _)| name)
            .collect();
        names.dedup();
        names
    }
}

impl RustFile {
    fn parse(path: &str, text: String) -> syn::Result<Self> {
        let tokens: TokenStream = text.parse()?;
        let syntax: syn::File = syn::parse2(tokens.clone())?;
        let mut modules = TestModules::default();
        modules.visit_file(&syntax);
        Ok(Self { path: path.to_owned(), text, tokens, syntax, test_modules: modules.found })
    }

    /// Whether the whole file is test code.
    pub(super) fn is_test(&self) -> bool {
        self.path.ends_with("/tests.rs")
            || self.path.ends_with("_tests.rs")
            || self.path.split('/').any(|part| part == "tests" || part == "benches")
    }

    pub(super) fn is_test_line(&self, line: usize) -> bool {
        self.test_modules.iter().any(|lines| lines.contains(&line))
    }

    pub(super) fn violation(&self, rule: Rule, line: usize, message: String) -> Violation {
        Violation { path: self.path.clone(), line, rule, message }
    }
}

#[derive(Default)]
struct TestModules {
    found: Vec<RangeInclusive<usize>>,
}

impl<'ast> Visit<'ast> for TestModules {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.content.is_some() && module.attrs.iter().any(is_cfg_test) {
            let span = module.span();
            self.found.push(span.start().line..=span.end().line);
        } else {
            visit::visit_item_mod(self, module);
        }
    }
}

/// Holds for `#[cfg(test)]` and for `#[cfg(all(test, …))]`, in any order.
fn is_cfg_test(attribute: &syn::Attribute) -> bool {
    let syn::Meta::List(list) = &attribute.meta else { return false };
    let words = list.tokens.to_string();
    let mut words = words.split(|c: char| !c.is_alphanumeric() && c != '_');
    list.path.is_ident("cfg") && words.clone().any(|word| word == "test") && words.all(|word| word != "not")
}

fn walk(root: &Path, below: &str, files: &mut Vec<String>) -> Result<()> {
    let folder = root.join(below);
    let entries = fs::read_dir(&folder).with_context(|| format!("cannot list {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|name| {
            anyhow::anyhow!("a file in {} has a name that is not UTF-8: {}", folder.display(), name.display())
        })?;
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        if !entry.file_type()?.is_dir() {
            files.push(path);
        } else if !is_skipped(&entry.path(), &path, &name) {
            walk(root, &path, files)?;
        }
    }
    Ok(())
}

/// A folder with a `mod.rs` is code, whatever its name: nothing escapes the rules by being called `cases`.
fn is_skipped(folder: &Path, path: &str, name: &str) -> bool {
    NOT_SOURCE.contains(&path) || (TEST_DATA.contains(&name) && !folder.join("mod.rs").exists())
}
