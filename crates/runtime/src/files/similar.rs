//! Names close to one that does not exist, so that a typing slip costs one call and not three.

use std::path::Path;

use strsim::normalized_damerau_levenshtein;

/// A folder with a million entries must not take seconds to say "not found".
const ENTRIES_LOOKED_AT: usize = 5_000;
/// The comparison takes the product of both lengths, so names longer than this only count when equal but for
/// case or extension.
const LONGEST_COMPARED: usize = 80;
const MOST_NAMES: usize = 3;
/// Below this share of equal characters a name is noise to the reader.
const ENOUGH: f64 = 0.6;

/// Up to three file names in the folder of `path` that resemble its last part, best first.
pub(super) fn similar_names(path: &Path) -> Vec<String> {
    let (Some(folder), Some(wanted)) = (path.parent(), path.file_name()) else { return Vec::new() };
    // A bare name has the empty path as its parent, which cannot be listed.
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let wanted = wanted.to_string_lossy();
    let mut scored: Vec<(f64, String)> = entries
        .take(ENTRIES_LOOKED_AT)
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| !kind.is_dir()))
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .map(|name| (likeness(&wanted, &name), name))
        .filter(|(score, _)| *score >= ENOUGH)
        .collect();
    scored.sort_by(|(left, left_name), (right, right_name)| {
        right.total_cmp(left).then_with(|| left_name.cmp(right_name))
    });
    scored.into_iter().take(MOST_NAMES).map(|(_, name)| name).collect()
}

/// Case slips rank before wrong extensions, and both before misspellings.
fn likeness(wanted: &str, name: &str) -> f64 {
    let (wanted, name) = (wanted.to_lowercase(), name.to_lowercase());
    if wanted == name {
        return 3.0;
    }
    if Path::new(&wanted).file_stem() == Path::new(&name).file_stem() {
        return 2.0;
    }
    if wanted.len().max(name.len()) > LONGEST_COMPARED {
        return 0.0;
    }
    normalized_damerau_levenshtein(&wanted, &name)
}

#[cfg(test)]
#[path = "similar_tests.rs"]
mod tests;
