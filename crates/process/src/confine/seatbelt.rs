//! A profile in the language of the macOS sandbox.

use std::{
    fmt::Write,
    path::{Path, PathBuf},
};

use super::{Network, Profile};

/// What a program needs to run at all, whatever it may touch.
const HEAD: &str = "(version 1)
(deny default)
(allow process-exec process-fork sysctl-read mach-lookup)
(allow signal (target same-sandbox))
(allow file-read*)
(allow file-write* (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/tty\"))
";

/// The text for `sandbox-exec -p`. Rules that come later win, so what is forbidden comes last; a rule
/// for a path holds whether or not there is such a file.
pub fn seatbelt(profile: &Profile) -> String {
    let mut text = HEAD.to_owned();
    rules(&mut text, "allow file-write*", &profile.writable);
    rules(&mut text, "deny file-write*", &profile.read_only);
    // A folder that is moved away would take its rules along.
    let between = profile.read_only.iter().flat_map(|path| parents(path, &profile.writable));
    let mut between: Vec<PathBuf> = between.collect();
    between.sort();
    between.dedup();
    for path in between {
        line(&mut text, "deny file-write-unlink", "literal", &path);
    }
    rules(&mut text, "deny file-read* file-write*", &profile.hidden);
    match &profile.network {
        // Nothing leads to a proxy here, which `proxy_variables` says before it comes to this.
        Network::None | Network::Proxy(_) => {}
        Network::Full => text.push_str("(allow network*)\n"),
    }
    text
}

fn rules(text: &mut String, rule: &str, paths: &[PathBuf]) {
    for path in paths {
        line(text, rule, "subpath", path);
    }
}

fn line(text: &mut String, rule: &str, kind: &str, path: &Path) {
    let path: PathBuf = path.components().collect();
    let quoted = path.to_string_lossy().replace('\\', "\\\\").replace('"', "\\\"");
    // Writing to a string does not fail.
    writeln!(text, "({rule} ({kind} \"{quoted}\"))").ok();
}

/// The folders from a root down to a path in it.
fn parents(path: &Path, roots: &[PathBuf]) -> Vec<PathBuf> {
    let root = roots.iter().find(|root| path.starts_with(root));
    let inside = |folder: &&Path| root.is_some_and(|root| folder.starts_with(root));
    path.ancestors().skip(1).take_while(inside).map(Path::to_path_buf).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_forbidden_comes_after_what_is_allowed() {
        let profile = Profile {
            writable: vec!["/home/dev/a \"b\"".into()],
            read_only: vec!["/home/dev/a \"b\"/.git/hooks/".into()],
            hidden: vec!["/home/dev/.ssh".into()],
            network: Network::Full,
            ..Profile::default()
        };
        let expected = r#"(allow file-write* (subpath "/home/dev/a \"b\""))
(deny file-write* (subpath "/home/dev/a \"b\"/.git/hooks"))
(deny file-write-unlink (literal "/home/dev/a \"b\""))
(deny file-write-unlink (literal "/home/dev/a \"b\"/.git"))
(deny file-read* file-write* (subpath "/home/dev/.ssh"))
(allow network*)
"#;
        assert_eq!(seatbelt(&profile).strip_prefix(HEAD), Some(expected));
        assert!(!seatbelt(&Profile::default()).contains("network"));
    }
}
