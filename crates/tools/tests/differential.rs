//! Grep and Glob against `rg` and `fdfind`: the same results, to the line, over a tree made for it and over
//! the unpacked sources of our own dependencies.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a failed expectation is how tests fail"
)]

use std::{
    collections::HashSet,
    fmt::Debug,
    fs,
    hash::Hash,
    os::unix::{ffi::OsStrExt, fs::symlink},
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, Instant},
};

use gripper_runtime::{Located, permissions::Policy};
use gripper_testkit::{Workspace, registry_sources};
use gripper_tools::{
    glob::{self, Search, Settings},
    grep::{Wanted, search_all},
    walk::{Limit, Root},
};
use serde_json::{Map, Value, json};

/// Searched for in every mode.
const PATTERNS: &[&str] = &[
    "TODO",
    r"\bfn\s+with_\w+",
    "^use std::(io|fs)",
    "unsafe impl",
    r"[A-Z]{12,}_\w+",
    r"\.unwrap_or_else\(\|",
    "café|naïve",
    r"\p{Greek}",
    r"(?i)copyright.{0,40}20\d\d",
    r"#\[cfg\(all\(",
    r"needle",
    "--help",
    r"\d{3}-\d{4}",
    r"^\s*//!.*\?$",
    r"\r$",
    "a{1000}",
    r"extern crate (alloc|std);",
    "impl<'a, T> .* for",
];
const MODES: [(&str, &str); 3] = [("files_with_matches", "-l"), ("count", "-c"), ("content", "-n")];
/// More of the input, and what that is for `rg`.
const FLAGS: &[(&str, &str, &[&str])] = &[
    ("error", r#"{"output_mode": "content", "-i": true, "glob": "*.md"}"#, &["-n", "-i", "-g", "*.md"]),
    ("struct", r#"{"output_mode": "count", "type": "rust", "-i": true}"#, &["-c", "-i", "-t", "rust"]),
    ("panic!", r#"{"output_mode": "content", "-C": 2}"#, &["-n", "-C2"]),
    ("needle", r#"{"output_mode": "content", "-C": 1}"#, &["-n", "-C1"]),
    ("todo!", r#"{"output_mode": "content", "-A": 3}"#, &["-n", "-A3"]),
    ("SAFETY", r#"{"output_mode": "content", "-B": 1, "-A": 4}"#, &["-n", "-B1", "-A4"]),
    (
        r"https?://[\w.]+",
        r#"{"output_mode": "content", "-o": true, "glob": "*.toml"}"#,
        &["-n", "-o", "-g", "*.toml"],
    ),
    (r"\w*needle\w*", r#"{"output_mode": "content", "-o": true, "-n": false}"#, &["-N", "-o"]),
    (
        "x+",
        r#"{"output_mode": "content", "-o": true, "glob": "LICENSE-MIT"}"#,
        &["-n", "-o", "-g", "LICENSE-MIT"],
    ),
    ("^", r#"{"output_mode": "count", "glob": "*.{yml,yaml}"}"#, &["-c", "-g", "*.{yml,yaml}"]),
    (
        "name",
        r#"{"output_mode": "count", "glob": "*.toml !Cargo.toml"}"#,
        &["-c", "-g", "*.toml", "-g", "!Cargo.toml"],
    ),
    ("name", r#"{"glob": "!*.rs,!*.toml"}"#, &["-l", "-g", "!*.rs", "-g", "!*.toml"]),
    ("test", r#"{"glob": "**/tests/**"}"#, &["-l", "-g", "**/tests/**"]),
    ("needle", r#"{"glob": "ignored*"}"#, &["-l", "-g", "ignored*"]),
    ("def ", r#"{"type": "py"}"#, &["-l", "-t", "py"]),
    (
        r"enum \w+ \{.*?\}",
        r#"{"output_mode": "count", "multiline": true, "type": "rust"}"#,
        &["-c", "-U", "--multiline-dotall", "-t", "rust"],
    ),
    (
        r"fn drop\(&mut self\) \{\s+unsafe",
        r#"{"output_mode": "content", "multiline": true}"#,
        &["-n", "-U", "--multiline-dotall"],
    ),
    (
        r"needle.*?end",
        r#"{"output_mode": "content", "multiline": true, "-o": true}"#,
        &["-n", "-o", "-U", "--multiline-dotall"],
    ),
    (r"needle\nnext", r#"{"multiline": true}"#, &["-l", "-U", "--multiline-dotall"]),
];

#[test]
fn grep_finds_what_ripgrep_finds_in_an_odd_tree() {
    let workspace = odd_tree();
    for pattern in PATTERNS {
        for (mode, flag) in MODES {
            compare(&workspace.project(), pattern, &json!({"output_mode": mode}), &[flag]);
        }
    }
    for (pattern, input, flags) in FLAGS {
        compare(&workspace.project(), pattern, &serde_json::from_str(input).unwrap(), flags);
    }
}

#[test]
fn grep_finds_what_ripgrep_finds_in_a_large_tree() {
    for (pattern, (mode, flag)) in PATTERNS.iter().flat_map(|pattern| MODES.map(|mode| (pattern, mode))) {
        compare(&registry_sources(), pattern, &json!({"output_mode": mode}), &[flag]);
    }
    for (pattern, input, flags) in FLAGS {
        compare(&registry_sources(), pattern, &serde_json::from_str(input).unwrap(), flags);
    }
}

fn compare(tree: &Path, pattern: &str, input: &Value, flags: &[&str]) {
    let (mut theirs, binary) = rg(tree, pattern, flags);
    let mut ours = grep(tree, pattern, input.as_object().unwrap().clone());
    if !binary.is_empty() {
        // We show nothing of a file that turns out to be binary at its start; `rg` shows what comes before.
        let other = |line: &String| line != "--" && !binary.iter().any(|file| line.starts_with(file));
        ours.retain(other);
        theirs.retain(other);
    }
    if tree != registry_sources()
        && input["output_mode"] != "files_with_matches"
        && !input["output_mode"].is_null()
    {
        assert_eq!(ours, theirs, "{pattern} {input}: lines in order");
    }
    same(ours, theirs, &format!("{pattern} {input} in {}", tree.display()));
}

/// Compares two sets of results, and tells only a few of those that differ.
fn same<T: Ord + Hash + Debug>(mut ours: Vec<T>, mut theirs: Vec<T>, what: &str) {
    ours.sort_unstable();
    theirs.sort_unstable();
    if ours == theirs {
        return;
    }
    let (mine, other): (HashSet<_>, HashSet<_>) = (ours.iter().collect(), theirs.iter().collect());
    let only =
        |a: &HashSet<&T>, b: &HashSet<&T>| format!("{:?}", a.difference(b).take(5).collect::<Vec<_>>());
    let (mine, other) = (only(&mine, &other), only(&other, &mine));
    panic!("{what}: {} and {} results; only ours {mine}, only theirs {other}", ours.len(), theirs.len());
}

fn root(tree: &Path) -> Root {
    Root { at: Located { written: tree.to_owned(), real: tree.to_owned() }, cwd: tree.to_owned() }
}

fn grep(tree: &Path, pattern: &str, mut input: Map<String, Value>) -> Vec<String> {
    input.insert("pattern".to_owned(), json!(pattern));
    let input = serde_json::from_value(Value::Object(input)).unwrap();
    let found =
        search_all(&root(tree), &input, Wanted::ALL, Instant::now() + Duration::from_secs(300)).unwrap();
    assert_eq!(found.halt, None);
    if found.page.lines == 0 { Vec::new() } else { found.page.text.split('\n').map(str::to_owned).collect() }
}

/// The lines that `rg` prints, and the files in which it stopped because they are binary.
fn rg(tree: &Path, pattern: &str, flags: &[&str]) -> (Vec<String>, Vec<String>) {
    let mut command = Command::new("rg");
    command.args(["--no-config", "--hidden", "-0", "-H", "--no-heading", "--color=never"]);
    command.args(["-g", "!.git", "-g", "!.svn", "-g", "!.hg", "-g", "!.bzr"]);
    if tree != registry_sources() {
        command.args(["--sort", "path"]);
    }
    let output = command.args(flags).args(["-e", pattern]).current_dir(tree).output();
    let output = output.expect("rg, from the package ripgrep");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.is_empty() || errors.starts_with("No files were searched"), "{pattern}: {errors}");
    let (names_only, numbered) = (flags.contains(&"-l"), flags.contains(&"-n"));
    let separator = if names_only { 0 } else { b'\n' };
    let mut binary = Vec::new();
    let mut lines = Vec::new();
    for line in output.stdout.split(|byte| *byte == separator).filter(|line| !line.is_empty()) {
        let text = String::from_utf8_lossy(line);
        match text.split_once('\0') {
            _ if names_only || text == "--" => lines.push(text.into_owned()),
            Some((file, rest)) => lines.push(as_ours(file, rest, numbered)),
            None => binary.push(text.split_once(": ").expect("a warning").0.to_owned()),
        }
    }
    (lines, binary)
}

/// A line as we show it: one separator, and long lines cut.
fn as_ours(file: &str, rest: &str, numbered: bool) -> String {
    let digits = if numbered { rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(0) } else { 0 };
    let (number, text) = rest.split_at(digits);
    let sign = if numbered { text.chars().next().unwrap_or(':') } else { ':' };
    let text = if numbered { &text[1..] } else { text };
    let text = text.strip_suffix('\r').unwrap_or(text);
    let cut = match text.char_indices().nth(500) {
        Some((end, _)) => format!("{} [cut]", &text[..end]),
        None => text.to_owned(),
    };
    let number = if numbered { format!("{number}{sign}") } else { String::new() };
    format!("{file}{sign}{number}{cut}")
}

#[test]
fn glob_finds_what_fd_finds() {
    let workspace = odd_tree();
    for tree in [workspace.project(), registry_sources()] {
        for pattern in [
            "**/*.rs",
            "**/*",
            "**/Cargo.toml",
            "**/*.{md,txt}",
            "**/[A-M]*.rs",
            "**/[!a-z]*",
            "**/*test*",
            "**/.*",
            "**/?.rs",
            "**/tests/*.rs",
            "*/src/**/mod.rs",
            "*/*.toml",
            "**/src/{lib,main}.rs",
        ] {
            let input: glob::Input = serde_json::from_value(json!({"pattern": pattern})).unwrap();
            let settings = Settings { most: usize::MAX / 4, ..Settings::default() };
            let search = Search::new(&input, root(&tree), settings).unwrap();
            let limit = Limit { cancelled: &|| false, deadline: Instant::now() + Duration::from_secs(300) };
            let found = search.run(&Policy::new(&tree), &limit);
            assert!(found.files.windows(2).all(|pair| pair[0].0 >= pair[1].0), "{pattern}: the newest first");
            let ours: Vec<PathBuf> = found.files.into_iter().map(|(_, path)| path).collect();
            same(ours, fd(&tree, pattern), &format!("{pattern} in {}", tree.display()));
        }
    }
}

fn fd(tree: &Path, pattern: &str) -> Vec<PathBuf> {
    let mut command = Command::new("fdfind");
    command.args(["-H", "-I", "-s", "-0", "-a", "-t", "f", "-t", "l", "--full-path"]);
    command.args([".git", ".svn", ".hg", ".bzr"].iter().flat_map(|name| ["-E", name]));
    let output = command.arg("-g").arg(tree.join(pattern)).arg(".").current_dir(tree).output();
    let output = output.expect("fdfind, from the package fd-find").stdout;
    let names = output.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let files = names.map(|name| tree.join(std::ffi::OsStr::from_bytes(name)));
    files.map(|path| path.components().collect::<PathBuf>()).filter(|path| path.is_file()).collect()
}

/// Everything that could be treated differently: ignore files of all kinds, hidden files, links, odd names and
/// odd contents.
fn odd_tree() -> Workspace {
    let tree = Workspace::new();
    fs::create_dir(tree.path(".git")).unwrap();
    let needle = "a needle in a line\nnext\nand more\n\n\nfar\naway\nneedle\nnext end\n";
    for name in [
        "plain.txt",
        ".hidden",
        ".config/deep/x.rs",
        "ignored.txt",
        "ignored.rs",
        "kept/ignored.txt",
        "build/out.rs",
        "sub/build/x.rs",
        "sub/local.rs",
        "sub/only.md",
        "rg.txt",
        "dot.txt",
        "excluded.txt",
        "with space.rs",
        "two  spaces",
        "umläut.rs",
        ".git/config",
        "sub/.svn/entries",
        "sub/.hg/x",
        "tests/a.rs",
        "sub/tests/b.rs",
        "Upper.RS",
        "no-end",
        "src/lib.rs",
        "src/main.rs",
        "sub/src/mod.rs",
        "Cargo.toml",
        "nested/repo/ignored.txt",
        "x.py",
        "-dash.rs",
    ] {
        tree.write(name, needle);
    }
    tree.write(".gitignore", "ignored*\n!kept/ignored.txt\nbuild/\n*.log\n");
    tree.write("sub/.gitignore", "/local.rs\n!build/\n");
    tree.write("sub/.ignore", "only.md\n");
    tree.write(".rgignore", "rg.txt\n");
    tree.write(".ignore", "dot.txt\n");
    tree.write(".git/info/exclude", "excluded.txt\n");
    tree.write("nested/repo/.git/HEAD", "ref: needle\n");
    tree.write("crlf.txt", needle.replace('\n', "\r\n"));
    tree.write("no-end", "the needle\nnext");
    tree.write("empty", "");
    tree.write(
        "long.txt",
        format!("{} needle\nneedle {}\nneedle {}\n", "x".repeat(70_000), "y".repeat(600), "é".repeat(499)),
    );
    tree.write("many.txt", "needle needle\n\nother\n".repeat(5_000));
    tree.write("latin.txt", b"caf\xe9 needle\nna\xefve\n");
    tree.write("binary", b"needle\n\0needle\n");
    tree.write("late", [needle.repeat(4_000).as_bytes(), b"\0"].concat());
    for (name, bom) in [("utf16le", true), ("utf16be", false)] {
        let units = "\u{feff}wide needle\r\nαβγ\n".encode_utf16();
        let bytes = units.flat_map(|unit| if bom { unit.to_le_bytes() } else { unit.to_be_bytes() });
        tree.write(name, bytes.collect::<Vec<u8>>());
    }
    tree.write("bom.txt", "\u{feff}needle first\n");
    fs::write(tree.project().join(std::ffi::OsStr::from_bytes(b"bad\xffname.rs")), needle).unwrap();
    symlink("plain.txt", tree.path("link.rs")).unwrap();
    symlink("sub", tree.path("linked")).unwrap();
    symlink("nowhere", tree.path("broken.rs")).unwrap();
    tree
}
