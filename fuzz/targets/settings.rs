//! Any text as the settings of a project that nobody vouches for: no panic, and it lets nothing more through. The same
//! text as a change of a file, and given on the command line.
#![no_main]

use std::{fs, path::PathBuf, sync::LazyLock, time::UNIX_EPOCH};

use gripper_permissions::{Behavior, CommandPlace, Policy, Request, decide};
use gripper_runtime::{
    environment::Environment,
    settings::{Given, Kind, Sources, check_edit, load},
};
use libfuzzer_sys::fuzz_target;
use serde_json::json;

const FILES: [&str; 4] =
    [".gripper/settings.json", ".gripper/permissions.json", ".gripper/hooks.json", ".mcp.json"];
const CALLS: [(&str, &str); 5] = [
    ("Bash", "touch x; curl https://example.org"),
    ("Bash", "cat /etc/passwd"),
    ("Edit", "src/main.rs"),
    ("Read", "/etc/passwd"),
    ("WebFetch", "https://example.org/"),
];

static PROJECT: LazyLock<PathBuf> = LazyLock::new(|| {
    let folder = std::env::temp_dir().join(format!("gripper-fuzz-{}", std::process::id()));
    fs::create_dir_all(folder.join(".gripper")).expect("a folder");
    folder
});

fn judged(policy: &Policy) -> Vec<Behavior> {
    let real = |path: &str| PathBuf::from(path);
    let cwd = PROJECT.to_string_lossy();
    let judge = |(tool, text): (&str, &str)| {
        let input = json!({ "command": text, "file_path": text, "url": text });
        let place = CommandPlace { cwd: &cwd, home: "/home/dev", real: &real };
        let request = Request::from_input(tool, &input, policy, place);
        request.map_or(Behavior::Deny, |request| decide(policy, &request).behavior)
    };
    CALLS.map(judge).to_vec()
}

static BEFORE: LazyLock<Vec<Behavior>> =
    LazyLock::new(|| judged(&load(&Sources::discover(&Environment::default(), &PROJECT, None)).policy));

// The first byte says what kind of file it is.
fuzz_target!(|text: &str| {
    let before = &*BEFORE;
    let first = usize::from(text.bytes().next().unwrap_or_default()) % FILES.len();
    let (kind, text) = (Kind::ALL[first], text.get(1..).unwrap_or_default());
    let file = PROJECT.join(FILES[first]);
    fs::write(&file, text).expect("a file");
    // A file that was just written, and is wrong, is looked at again after a moment.
    let old = fs::File::options().write(true).open(&file).and_then(|file| file.set_modified(UNIX_EPOCH));
    old.expect("a date");
    let mut sources = Sources::discover(&Environment::default(), &PROJECT, None);
    let loaded = load(&sources);
    fs::remove_file(&file).expect("it was there");
    let after = judged(&loaded.policy);
    assert!(after.iter().zip(before).all(|(after, before)| after >= before), "{after:?} with {text:?}");
    assert!(loaded.hooks.is_empty() && loaded.env.is_empty() && loaded.servers.is_empty(), "{loaded:?}");
    check_edit(kind, "{}", text).ok();
    sources.given = Some(Given::Text(text.to_owned()));
    load(&sources);
});
