//! Rules about size: functions, files, structs and inline test modules.

use std::ops::RangeInclusive;

use proc_macro2::Span;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::tree::{RustFile, Tree};
use super::{Rule, Violation};

const FUNCTION_LINES: usize = 100;
const FILE_LINES: usize = 500;
/// Tables of cases grow long without growing hard.
const TEST_FILE_LINES: usize = 1_000;
const INLINE_TEST_LINES: usize = 60;
const FIELDS: usize = 16;

pub(super) fn check(tree: &Tree) -> Vec<Violation> {
    tree.rust.iter().flat_map(check_file).collect()
}

fn check_file(file: &RustFile) -> Vec<Violation> {
    let mut sizes = Sizes { file, found: Vec::new() };
    sizes.visit_file(&file.syntax);
    sizes.found.extend(file_length(file));
    sizes.found.extend(inline_tests(file));
    sizes.found
}

fn file_length(file: &RustFile) -> Option<Violation> {
    let limit = if file.is_test() { TEST_FILE_LINES } else { FILE_LINES };
    let tests: usize = file.test_modules.iter().map(lines_of).sum();
    let lines = file.text.lines().count() - tests;
    (lines > limit).then(|| {
        let message = format!("the file has {lines} lines, at most {limit}: split it by subject");
        file.violation(Rule::FileLength, 1, message)
    })
}

fn inline_tests(file: &RustFile) -> impl Iterator<Item = Violation> {
    file.test_modules.iter().filter_map(|module| {
        let lines = lines_of(module);
        (lines > INLINE_TEST_LINES).then(|| {
            let message = format!(
                "the inline tests have {lines} lines, at most {INLINE_TEST_LINES}: move them to a sibling tests.rs"
            );
            file.violation(Rule::InlineTests, *module.start(), message)
        })
    })
}

fn lines_of(range: &RangeInclusive<usize>) -> usize {
    range.end() + 1 - range.start()
}

/// Functions and structs made by a macro are not seen: their size is the macro's business.
struct Sizes<'a> {
    file: &'a RustFile,
    found: Vec<Violation>,
}

impl Sizes<'_> {
    /// Counts from `fn` to the closing brace: attributes, such as the cases of a table, are free.
    fn function(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let first = signature.span().start().line;
        let lines = body.brace_token.span.close().end().line + 1 - first;
        if lines > FUNCTION_LINES {
            let message = format!(
                "function `{}` has {lines} lines, at most {FUNCTION_LINES}: name its steps and make them functions",
                signature.ident
            );
            self.found.push(self.file.violation(Rule::FunctionLength, first, message));
        }
    }

    fn fields(&mut self, name: &syn::Ident, fields: &syn::Fields, place: Span) {
        if fields.len() > FIELDS {
            let message = format!(
                "`{name}` has {} fields, at most {FIELDS}: group those that change together",
                fields.len()
            );
            self.found.push(self.file.violation(Rule::StructFields, place.start().line, message));
        }
    }
}

impl<'ast> Visit<'ast> for Sizes<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        self.function(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
    }

    fn visit_trait_item_fn(&mut self, item: &'ast syn::TraitItemFn) {
        if let Some(body) = &item.default {
            self.function(&item.sig, body);
        }
        visit::visit_trait_item_fn(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.fields(&item.ident, &item.fields, item.ident.span());
    }

    fn visit_variant(&mut self, item: &'ast syn::Variant) {
        self.fields(&item.ident, &item.fields, item.ident.span());
    }
}
