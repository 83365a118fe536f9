//! Files that an output names, read ahead: they are what the model is likely to want next.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use futures::future::BoxFuture;
use gripper_runtime::{
    Call, Located, Place,
    files::{Files, Snapshot, ledger::KEPT_BYTES},
    permissions::{Behavior, PathUse, Policy, Sieve},
};

/// How much of an output is looked through.
const LOOKED_AT: usize = 2_000;
/// The most files that are read ahead for one command.
const MOST_FILES: usize = 20;

/// Finds names of files in an output by other means, such as a model: what it finds may be anything.
pub type Finder = Arc<dyn Fn(String) -> BoxFuture<'static, Vec<PathBuf>> + Send + Sync>;

/// Reads files ahead that an output names, if they may be read. Nobody waits for it, and the model has not
/// seen them by that.
pub(super) fn read_ahead(call: &Call, text: &str, finder: Option<&Finder>) {
    let looked_at = beginning(text);
    let ahead = Ahead { place: call.place.clone(), policy: call.policy.clone(), files: call.files.clone() };
    if let Some(finder) = finder.filter(|_| !looked_at.trim().is_empty()) {
        let (found, ahead) = (finder(looked_at.to_owned()), ahead.clone());
        tokio::spawn(async move { ahead.read(found.await) });
    }
    let named = names(looked_at);
    if !named.is_empty() {
        ahead.read(named);
    }
}

/// Where files are read ahead to, and which may be.
#[derive(Clone)]
struct Ahead {
    place: Arc<Place>,
    policy: Arc<Policy>,
    files: Arc<Files>,
}

impl Ahead {
    fn read(self, named: impl IntoIterator<Item = PathBuf> + Send + 'static) {
        tokio::task::spawn_blocking(move || {
            let Self { place, policy, files } = self;
            let named = named.into_iter().map(|name| place.locate(&name));
            let there = named.filter(|path| path.real.is_file());
            for path in there.filter(|path| may_be_shown(&policy, path)).take(MOST_FILES) {
                if let Ok(file) = Snapshot::take(&path, KEPT_BYTES as u64) {
                    files.ledger.read_ahead(&path.real, file.stamp, file.bytes.into());
                }
            }
        });
    }
}

/// Whether a file lies in the working directories and may be read without a question.
pub(super) fn may_be_shown(policy: &Policy, path: &Located) -> bool {
    let root = policy.directories.iter().find(|root| path.real.starts_with(root));
    root.is_some_and(|root| {
        let sieve = Sieve::new(policy, PathUse::new(root, root, false));
        sieve.judge(&path.path_use(false)) == Behavior::Allow
    })
}

fn beginning(text: &str) -> &str {
    let end = text.char_indices().nth(LOOKED_AT).map_or(text.len(), |(at, _)| at);
    text.get(..end).unwrap_or_default()
}

/// What may be names of files: the words of `git status`, and of compilers and grep what stands before the
/// first colon.
fn names(looked_at: &str) -> BTreeSet<PathBuf> {
    let words = looked_at.split(|c: char| c.is_whitespace() || "\"'`()[]<>,;".contains(c));
    let names = words.map(|word| word.split(':').next().unwrap_or_default());
    names.filter(|name| name.len() > 2 && name.contains(['.', '/'])).map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::{beginning, names};

    #[test]
    fn names_are_found_in_what_programs_print() {
        let table = [
            (" M src/a.rs\n?? b.txt", "b.txt src/a.rs"),
            ("\tmodified:   src/lib.rs", "src/lib.rs"),
            ("error[E0425]: no such\n  --> src/main.rs:3:5", "src/main.rs"),
            ("src/x.c:10:2: error: y", "src/x.c"),
            ("lib/a.py:12:def f(x):", "lib/a.py"),
            ("  File \"app/b.py\", line 3, in f", "app/b.py"),
            ("ok: nothing here", ""),
        ];
        for (text, expected) in table {
            let found: Vec<String> = names(text).iter().map(|name| name.display().to_string()).collect();
            assert_eq!(found.join(" "), expected, "{text}");
        }
        assert!(names(beginning(&format!("{}src/late.rs", "x ".repeat(1_000)))).is_empty());
    }
}
