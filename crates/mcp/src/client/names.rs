//! What tools of servers are called here.
//!
//! A name is `mcp__server__tool` with everything but letters, digits, `_` and `-` replaced. Long names, and
//! those that others have already, end in a hash of what they stand for, so that they stay the same whatever
//! else is connected.

use std::collections::HashSet;

use sha2::{Digest, Sha256};

/// Longest name that every model takes.
const LONGEST: usize = 64;
/// Longest part that stands for the server; what is left is enough for a tool and its hash.
const LONGEST_SERVER: usize = 40;
/// Longest original name that is known beside the one that is used.
const LONGEST_ORIGINAL: usize = 200;
const HASH: usize = 8;

/// Whether a server can be called in the names of its tools just what it is called.
pub(super) fn is_plain(name: &str) -> bool {
    plain(name) == name && !name.contains("__") && name.len() <= LONGEST_SERVER
}

/// The server's part of the names of its tools, different from those in `taken`. It never holds what stands
/// between it and the tool, or a rule for one server could fit another.
pub(super) fn of_server(name: &str, taken: &mut HashSet<String>) -> String {
    let mut wanted = plain(name);
    if wanted.contains("__") {
        while wanted.contains("__") {
            wanted = wanted.replace("__", "_");
        }
        wanted.truncate(wanted.trim_end_matches('_').len());
        taken.insert(wanted.clone());
    }
    unique(wanted, LONGEST_SERVER, name, taken)
}

/// The name of a tool. One that needs no change is its own; others are different from those in `taken`.
pub(super) fn of_tool(server: &str, tool: &str, taken: &mut HashSet<String>) -> String {
    if is_plain_tool(server, tool) {
        return format!("mcp__{server}__{tool}");
    }
    unique(format!("mcp__{server}__{}", plain(tool)), LONGEST, tool, taken)
}

/// The name of a tool before anything in it was replaced, if that is another and cannot be taken for that of
/// another server's tool.
pub(super) fn original(server: &str, tool: &str, name: &str) -> Option<String> {
    let original = format!("mcp__{server}__{tool}");
    let clear = !server.contains("__") && !server.ends_with('_') && original.len() <= LONGEST_ORIGINAL;
    (clear && original != name).then_some(original)
}

/// Whether nothing in the name of a tool needs to be replaced.
pub(super) fn is_plain_tool(server: &str, tool: &str) -> bool {
    plain(tool) == tool && format!("mcp__{server}__{tool}").len() <= LONGEST
}

fn plain(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    name.chars().map(|c| if fits(c) { c } else { '_' }).collect()
}

fn unique(wanted: String, longest: usize, original: &str, taken: &mut HashSet<String>) -> String {
    let mut name = wanted.clone();
    if name.len() > longest || taken.contains(&name) {
        let hash: String =
            Sha256::digest(original).iter().take(HASH / 2).map(|byte| format!("{byte:02x}")).collect();
        let room = longest - HASH - 1;
        name = format!("{}_{hash}", &wanted[..wanted.len().min(room)]);
    }
    // Twice the same original: whoever calls this refuses the second.
    taken.insert(name.clone());
    name
}

#[cfg(test)]
mod tests {
    use super::{of_server, of_tool, original};
    use std::collections::HashSet;

    #[test]
    fn names_are_plain_short_and_different() {
        let mut taken = HashSet::new();
        let long = "x".repeat(300);
        let names: Vec<String> =
            ["do.thing", "do thing", "天気", "a__b", &long, &format!("{long}y"), "do-thing"]
                .map(|tool| of_tool("srv", tool, &mut taken))
                .into();
        assert_eq!(names[0], "mcp__srv__do_thing");
        assert!(names[1].starts_with("mcp__srv__do_thing_") && names[1].len() == 27, "{}", names[1]);
        assert_eq!((names[2].as_str(), names[3].as_str()), ("mcp__srv____", "mcp__srv__a__b"));
        assert!(names[4].len() == 64 && names[5].len() == 64 && names[4] != names[5]);
        assert_eq!(names[6], "mcp__srv__do-thing");
        assert_eq!(original("s.v", "do.it", "mcp__s_v__do_it").as_deref(), Some("mcp__s.v__do.it"));
        assert_eq!(original("srv", "echo", "mcp__srv__echo"), None);
        // Rules for `git` must not fit the tools of these.
        assert_eq!(original("git__evil", "x", "n"), None);
        assert_eq!(original("git_", "x", "n"), None);
        let between = of_server("git__evil", &mut HashSet::new());
        assert!(between.starts_with("git_evil_") && !between.contains("__"), "{between}");
        let server = of_server(&long, &mut HashSet::new());
        let name = of_tool(&server, &long, &mut HashSet::new());
        assert!(name.len() == 64 && name.starts_with(&format!("mcp__{server}__")), "{name}");
    }
}
