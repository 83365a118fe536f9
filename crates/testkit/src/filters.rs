//! Makes output the same for every run.

use regex::Regex;

use crate::Workspace;

/// What differs between runs, and what stands for it.
const VARIABLE: [(&str, &str); 4] = [
    (r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}", "[uuid]"),
    (r#""duration_ms":[0-9.e-]+"#, r#""duration_ms":0"#),
    (r"\b[0-9]+(\.[0-9]+)? (µs|ms|s)\b", "[time]"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|\+00:00)", "[moment]"),
];

/// Replaces the workspace's paths, ids, durations and moments.
pub fn stable(text: &str, workspace: &Workspace) -> String {
    let mut text = text.replace(&*workspace.root().to_string_lossy(), "[root]");
    for (pattern, stand_in) in VARIABLE {
        text = Regex::new(pattern).expect("a valid pattern").replace_all(&text, stand_in).into_owned();
    }
    text
}
